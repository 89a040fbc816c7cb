# ./run fuzz: runs libFuzzer on the readers of untrusted files.
# shellcheck shell=bash

run_fuzz() {
  local name=all seconds=60 target
  if [ $# -gt 0 ] && ! [[ "$1" =~ ^[0-9]+$ ]]; then
    name="$1"
    shift
  fi
  if [ $# -gt 0 ]; then
    [[ "$1" =~ ^[1-9][0-9]*$ ]] || die "fuzz: \"$1\" is no number of seconds; see ./run help"
    seconds="$1"
    shift
  fi
  [ $# -eq 0 ] || die "fuzz: unknown option \"$1\"; see ./run help"
  local -a targets=()
  if [ "$name" = all ]; then
    mapfile -t targets < <(cd tests/fuzz && printf '%s\n' *_fuzz.cc | sed 's/_fuzz\.cc$//')
  else
    [ -f "tests/fuzz/${name}_fuzz.cc" ] || die "fuzz: there is no tests/fuzz/${name}_fuzz.cc"
    targets=("$name")
  fi
  install_packages tools/debian_packages.txt tools/debian_packages_fuzz.txt
  configure fuzz
  python3 -B tools/make_fuzz_seeds.py build-fuzz/seeds
  build fuzz "${targets[@]/%/_fuzz}"
  for target in "${targets[@]}"; do
    fuzz_target "$target" "$seconds" || die "fuzz: $target failed; build-fuzz/findings has the input"
  done
}

# fuzz_target NAME SECONDS: runs one target, whose corpus in build-fuzz/corpus persists between
# runs.
fuzz_target() {
  local corpus="build-fuzz/corpus/$1"
  mkdir -p "$corpus" build-fuzz/findings
  say "$1 for $2 s"
  ASAN_OPTIONS=quarantine_size_mb=32 UBSAN_OPTIONS=print_stacktrace=1 \
    "build-fuzz/tests/fuzz/$1_fuzz" -max_total_time="$2" -rss_limit_mb=512 -malloc_limit_mb=256 \
    -timeout=10 -max_len=32768 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/findings/$1-" "$corpus" "build-fuzz/seeds/$1"
}
