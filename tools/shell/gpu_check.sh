# Every CUDA test and the CUDA bench of a build or a bundle, in one table, and the comparison with
# PyTorch where there is one. Sourced by ./run and by the bundle's gpu-check; needs the CUDA libraries
# and nothing of the build machine.
# shellcheck shell=bash

GPU_TESTS=(device ops comm compress model training tasks)
GPU_FILTER='*uda*:*CUDA*:*Nccl*:*Staged*'

# gpu_check TEST_PREFIX BENCH COMPARISON RESULTS_FOLDER [--no-sanitizer] [--no-bench] [--no-compare]
# Programs are TEST_PREFIX<name>, with every "@" in it replaced by the name; COMPARISON is
# compare_cuda_pytorch.py.
gpu_check() {
  local prefix="$1" bench="$2" comparison="$3" results="$4" name option
  local sanitizer=1 measure=1 compare=1
  shift 4
  for option in "$@"; do
    case "$option" in
      --no-sanitizer) sanitizer=0 ;;
      --no-bench) measure=0 ;;
      --no-compare) compare=0 ;;
      *) printf 'gpu-check: unknown option "%s"\n' "$option" >&2 && return 2 ;;
    esac
  done
  mkdir -p "$results"
  PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader ||
    printf 'no NVIDIA driver here: every test will be skipped\n'
  local -a rows=()
  local failed=0
  for name in "${GPU_TESTS[@]}"; do
    [ "$name" != ops ] || continue
    gpu_step "tests $name" "$results/$name.log" "${prefix//@/$name}" --gtest_filter="$GPU_FILTER"
  done
  # A kernel that fails takes its process's CUDA context along: a process for every operation.
  for name in $("${prefix//@/ops}" --gtest_list_tests | grep -E '^(Backends|Devices)/'); do
    gpu_step "ops ${name%.}" "$results/ops-$(basename "${name%.}").log" "${prefix//@/ops}" \
      --gtest_filter="$name*cuda*"
  done
  if [ "$sanitizer" = 1 ] && command -v compute-sanitizer >/dev/null; then
    for name in memcheck racecheck initcheck; do
      gpu_step "$name ops" "$results/$name-ops.log" compute-sanitizer --tool "$name" \
        --error-exitcode 9 "${prefix//@/ops}" --gtest_filter='*cuda_bf16*'
    done
  fi
  if [ "$measure" = 1 ]; then
    gpu_step "matrix products" "$results/products.log" "$(dirname "$bench")/cuda_products_bench"
    gpu_step "bench" "$results/bench.log" "$bench"
    sed -n '/^cuda:0/,$p' "$results/bench.log"
  fi
  [ "$compare" = 0 ] || gpu_compare "$comparison" "$results"
  printf '\n%-32s %-8s %8s  %s\n' what result seconds 'passed, failed, skipped'
  printf '%s\n' "${rows[@]}"
  return "$failed"
}

# gpu_compare COMPARISON RESULTS_FOLDER
gpu_compare() {
  local comparison="$1" results="$2"
  if ! python3 -c 'import torch, transformers' 2>/dev/null; then
    printf 'the comparison with PyTorch was left out: python3 has no torch and transformers here\n'
    return
  fi
  gpu_step "against PyTorch" "$results/comparison.log" \
    python3 "$comparison" --output "$results/comparison.json"
  sed -n -e '/^no CUDA/p' -e '/^bert-/,$p' "$results/comparison.log"
}

# gpu_step NAME LOG COMMAND...: adds to rows and failed of the caller.
gpu_step() {
  local name="$1" log="$2" started=$SECONDS result=passed counts
  shift 2
  printf '== %s\n' "$name"
  if ! "$@" >"$log" 2>&1; then
    result=FAILED
    failed=1
    grep -E 'FAILED|Failure|ERROR|rror:|got .*wanted' "$log" | head -n 40
  fi
  counts="$(grep -c '^\[       OK' "$log"), $(grep -c '^\[  FAILED  \].*ms' "$log")"
  counts+=", $(grep -c '^\[  SKIPPED \].*ms' "$log")"
  rows+=("$(printf '%-32s %-8s %8s  %s' "$name" "$result" "$((SECONDS - started))" "$counts")")
}
