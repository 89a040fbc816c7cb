# ./run bundle: makes one folder that runs on another Linux machine with an NVIDIA driver and the
# CUDA libraries. It contains the program, GPU tests, benches, the comparison with PyTorch, recipes
# and the shared libraries that these need.
# shellcheck shell=bash

BUNDLE_LIMIT_BYTES=60000000
GPU_BENCHES=(cuda_bench cuda_products_bench model_bench squad_bench)
# The script of the comparison with PyTorch and the files that it imports and reads.
COMPARISON_FILES=(compare_cuda_pytorch.py pytorch_trials.py pytorch_bert.py bert_shapes.py
  bench_programs.py window_batches.py xquad_windows.txt)
# The target machine provides the libraries of the driver and of the CUDA toolkit.
BUNDLE_LEFT_OUT='^(libcuda|libcudart|libcublas|libcublasLt|libnccl|libnvidia|libcudnn)'

# Reads the names of the test programs that tools/gpu_check.py runs into GPU_TESTS.
read_gpu_tests() {
  mapfile -t GPU_TESTS < <(PYTHONPATH=tools python3 -B -c \
    'import gpu_check; print(*gpu_check.TESTS, sep="\n")')
  [ ${#GPU_TESTS[@]} -gt 0 ] || die "tools/gpu_check.py does not list its tests"
}

run_bundle() {
  [ $# -eq 0 ] || die "bundle: unknown option \"$1\"; see ./run help"
  install_packages tools/debian_packages.txt
  read_gpu_tests
  configure release -DONEBIT_CUDA=ON
  local -a targets=(onebit_program "${GPU_BENCHES[@]}")
  local name
  for name in "${GPU_TESTS[@]}"; do targets+=("test_$name"); done
  build release "${targets[@]}"
  make_bundle build build/bundle
}

run_gpu_check() {
  install_packages tools/debian_packages.txt
  read_gpu_tests
  configure release -DONEBIT_CUDA=ON
  local -a targets=("${GPU_BENCHES[@]}")
  local name
  for name in "${GPU_TESTS[@]}"; do targets+=("test_$name"); done
  build release "${targets[@]}"
  python3 tools/gpu_check.py --programs build/bench "${GPU_TESTS[@]/#/build/tests/}" \
    --results build/gpu-check "$@"
}

# make_bundle BUILD_FOLDER BUNDLE
make_bundle() {
  local from="$1" to="$2" name
  rm -rf "$to"
  mkdir -p "$to/bin" "$to/lib" "$to/check"
  cp "$from/onebit" "${GPU_BENCHES[@]/#/$from/bench/}" "$to/bin/"
  for name in "${GPU_TESTS[@]}"; do cp "$from/tests/$name/test_$name" "$to/bin/"; done
  strip "$to"/bin/*
  copy_libraries "$from" "$to"
  cp -r recipes "$to/recipes"
  cp "${COMPARISON_FILES[@]/#/bench/}" tools/gpu_check.py "$to/check/"
  # The libraries that the programs load at run time if a GPU is used
  # (device/cuda_cublas_library.cc, transport/nccl_library.cc).
  { grep -aohE 'lib(cublasLt|nccl)\.so\.[0-9]+' "$to"/bin/* || true; } |
    sort -u >"$to/lib/cuda-libraries"
  grep -q cublasLt "$to/lib/cuda-libraries" || die "the programs of $from name no cuBLASLt"
  getconf GNU_LIBC_VERSION >"$to/lib/runtime/version"
  write_starters "$to"
  tar -C "$(dirname "$to")" -cJf "$to.tar.xz" "$(basename "$to")"
  local size
  size=$(stat -c %s "$to.tar.xz")
  say "$to.tar.xz: $size bytes"
  [ "$size" -le "$BUNDLE_LIMIT_BYTES" ] ||
    die "the bundle has $size bytes packed; at most $BUNDLE_LIMIT_BYTES are allowed"
}

# The C library and the compiler's run-time libraries, kept apart from the others: bundle_start.sh
# prefers the machine's if they are newer, because its CUDA libraries may need them.
BUNDLE_RUNTIME='^(ld-linux|libc|libm|libmvec|libdl|libpthread|librt|libresolv|libutil|libstdc\+\+|libgcc_s|libgomp)[-.]'

# Copies the shared libraries of all programs, including the C library and its loader.
copy_libraries() {
  local from="$1" to="$2" path name
  mkdir -p "$to/lib/runtime"
  # The programs load MPI when it has started them (transport/mpi_job.cc).
  if [ -e "$from/libonebit_mpi.so" ]; then cp "$from/libonebit_mpi.so" "$to/lib/"; fi
  for path in "$to"/bin/* "$to"/lib/*.so; do [ ! -e "$path" ] || ldd "$path"; done |
    awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' | sort -u |
    while read -r path; do
      name="$(basename "$path")"
      [[ "$name" =~ $BUNDLE_LEFT_OUT ]] && continue
      [[ "$name" =~ $BUNDLE_RUNTIME ]] && name="runtime/$name"
      cp -L "$path" "$to/lib/$name"
    done
}

# Writes the scripts `onebit` and `gpu-check`, which run programs with the bundle's libraries.
write_starters() {
  local to="$1" name
  cp tools/shell/bundle_start.sh "$to/start"
  cat >"$to/onebit" <<'STARTER'
#!/usr/bin/env bash
exec "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/start" onebit "$@"
STARTER
  cat >"$to/gpu-check" <<'STARTER'
#!/usr/bin/env bash
# Every CUDA test, sanitizer and bench in one table, and the comparison with PyTorch:
#   gpu-check [RESULTS_FOLDER] [--no-sanitizer] [--no-bench] [--no-compare]
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
results="$PWD/results"
case "${1:-}" in
  -* | '') ;;
  *) results="$1" && shift ;;
esac
exec python3 "$here/check/gpu_check.py" --programs "$here/check" --results "$results" "$@"
STARTER
  for name in "${GPU_BENCHES[@]}" "${GPU_TESTS[@]/#/test_}"; do
    cat >"$to/check/$name" <<'STARTER'
#!/bin/sh
here="$(readlink -f "$0")"
exec "$(dirname "$here")/../start" "$(basename "$here")" "$@"
STARTER
    chmod +x "$to/check/$name"
  done
  chmod +x "$to/start" "$to/onebit" "$to/gpu-check"
}
