# ./run bundle: one folder that runs on another Linux machine with an NVIDIA driver and the CUDA
# libraries: program, GPU tests, benches, the comparison with PyTorch, recipes and the shared
# libraries they need.
# shellcheck shell=bash

# shellcheck source=/dev/null
source tools/shell/gpu_check.sh

BUNDLE_LIMIT_BYTES=60000000
GPU_BENCHES=(cuda_bench cuda_products_bench model_bench squad_bench)
# The comparison with PyTorch and what it imports and reads.
COMPARISON_FILES=(compare_cuda_pytorch.py pytorch_trials.py pytorch_bert.py bert_shapes.py
  bench_programs.py window_batches.py xquad_windows.txt)
# What the machine has: the driver's and the CUDA toolkit's libraries.
BUNDLE_LEFT_OUT='^(libcuda|libcudart|libcublas|libcublasLt|libnccl|libnvidia|libcudnn)'

run_bundle() {
  [ $# -eq 0 ] || die "bundle: unknown option \"$1\"; see ./run help"
  install_packages tools/debian_packages.txt
  configure release -DONEBIT_CUDA=ON
  local -a targets=(onebit_program "${GPU_BENCHES[@]}")
  local name
  for name in "${GPU_TESTS[@]}"; do targets+=("test_$name"); done
  build release "${targets[@]}"
  make_bundle build build/bundle
}

run_gpu_check() {
  install_packages tools/debian_packages.txt
  configure release -DONEBIT_CUDA=ON
  local -a targets=("${GPU_BENCHES[@]}")
  local name
  for name in "${GPU_TESTS[@]}"; do targets+=("test_$name"); done
  build release "${targets[@]}"
  gpu_check "$PWD/build/tests/@/test_@" "$PWD/build/bench/cuda_bench" \
    "$PWD/bench/compare_cuda_pytorch.py" build/gpu-check "$@"
}

# make_bundle BUILD_FOLDER BUNDLE
make_bundle() {
  local from="$1" to="$2" name
  rm -rf "$to"
  mkdir -p "$to/bin" "$to/lib" "$to/bench"
  cp "$from/onebit" "${GPU_BENCHES[@]/#/$from/bench/}" "$to/bin/"
  for name in "${GPU_TESTS[@]}"; do cp "$from/tests/$name/test_$name" "$to/bin/"; done
  strip "$to"/bin/*
  copy_libraries "$to"
  cp -r recipes "$to/recipes"
  cp "${COMPARISON_FILES[@]/#/bench/}" "$to/bench/"
  cp tools/shell/gpu_check.sh "$to/lib/gpu_check.sh"
  getconf GNU_LIBC_VERSION >"$to/lib/libc_version"
  write_starters "$to"
  tar -C "$(dirname "$to")" -cJf "$to.tar.xz" "$(basename "$to")"
  local size
  size=$(stat -c %s "$to.tar.xz")
  say "$to.tar.xz: $size bytes"
  [ "$size" -le "$BUNDLE_LIMIT_BYTES" ] ||
    die "the bundle has $size bytes packed; at most $BUNDLE_LIMIT_BYTES are allowed"
}

# The shared libraries of all programs, with the C library and its loader.
copy_libraries() {
  local to="$1" path
  for path in "$to"/bin/*; do ldd "$path"; done |
    awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | sort -u |
    while read -r path; do
      [[ "$(basename "$path")" =~ $BUNDLE_LEFT_OUT ]] || cp -L "$path" "$to/lib/"
    done
}

# onebit, gpu-check: run with the bundle's libraries, and with its C library and loader where the
# machine's is older.
write_starters() {
  local to="$1"
  cat >"$to/start" <<'STARTER'
#!/usr/bin/env bash
# start PROGRAM [ARGUMENT...]: a program of bin/ with the libraries of this folder.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
program="$1"
shift
libraries="$here/lib"
for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64; do
  [ -d "$folder" ] && libraries="$libraries:$folder"
done
libraries="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
loader="$here/lib/ld-linux-x86-64.so.2"
for folder in /usr/lib/x86_64-linux-gnu /usr/lib64; do
  [ -d "$folder" ] && libraries="$libraries:$folder"
done
exec "$loader" --library-path "$libraries" "$here/bin/$program" "$@"
STARTER
  cat >"$to/onebit" <<'STARTER'
#!/usr/bin/env bash
exec "$(dirname "${BASH_SOURCE[0]}")/start" onebit "$@"
STARTER
  cat >"$to/gpu-check" <<'STARTER'
#!/usr/bin/env bash
# Every CUDA test and bench in one table, and the comparison with PyTorch:
#   gpu-check [RESULTS_FOLDER] [--no-sanitizer] [--no-bench] [--no-compare]
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
results="$here/results"
case "${1:-}" in
  -* | '') ;;
  *) results="$1" && shift ;;
esac
source "$here/lib/gpu_check.sh"
mkdir -p "$here/bin/links"
for name in "${GPU_TESTS[@]}"; do
  printf '#!/bin/sh\nexec "%s/start" test_%s "$@"\n' "$here" "$name" >"$here/bin/links/$name"
done
chmod +x "$here"/bin/links/*
gpu_check "$here/bin/links/@" "$here/bench/cuda_bench" "$here/bench/compare_cuda_pytorch.py" \
  "$results" "$@"
STARTER
  local bench
  for bench in "${GPU_BENCHES[@]}"; do
    cat >"$to/bench/$bench" <<'STARTER'
#!/bin/sh
exec "$(dirname "$0")/../start" "$(basename "$0")" "$@"
STARTER
    chmod +x "$to/bench/$bench"
  done
  chmod +x "$to/start" "$to/onebit" "$to/gpu-check"
}
