# ./run bench: runs every benchmark program in sequence. ./run bench network: measures training
# steps over slow links. ./run bench plan: compares them with the predictions of `onebit plan`.
# shellcheck shell=bash

run_bench() {
  local filter=. program
  if [ "${1:-}" = network ]; then
    shift
    build_program
    python3 -B bench/network.py "$@"
    return
  fi
  if [ "${1:-}" = plan ]; then
    shift
    build_program
    python3 -B bench/plan_against_network.py "$@"
    return
  fi
  if [ "${1:-}" = --filter ] && [ $# -eq 2 ]; then
    filter="$2"
  elif [ $# -gt 0 ]; then
    die "bench: unknown option \"$1\"; see ./run help"
  fi
  install_packages tools/debian_packages.txt
  configure_release
  build release all
  for program in build/bench/*_bench; do
    [ -x "$program" ] || die "there is no benchmark program in build/bench"
    [[ "$(basename "$program")" =~ $filter ]] || continue
    say "$(basename "$program")"
    "$program"
  done
}
