# ./run lint: formatting, clang-tidy over the compile database, shellcheck.
# shellcheck shell=bash
source tools/shell/format.sh

run_lint() {
  local fast="" status=0 started=$SECONDS used=0
  tidy_parts=1
  case "${1:-}" in
    --fast) fast=yes && shift ;;
    --parts)
      [[ "${2:-}" =~ ^[1-9][0-9]?$ ]] || die "lint: --parts takes a number from 1 to 99"
      tidy_parts=$2
      shift 2
      ;;
  esac
  install_packages tools/debian_packages.txt tools/debian_packages_lint.txt
  say "clang-format"
  cpp_sources | xargs -r clang-format --dry-run -Werror || status=1
  say "shellcheck"
  shellcheck -x run .ci/run tools/shell/*.sh || status=1
  say "the tree"
  python3 -B tools/check_floors.py || status=1
  python3 -B tools/check_layout.py || status=1
  python3 -B tools/check_links.py || status=1
  python3 -B tools/check_options.py || status=1
  python3 -B tools/check_prose.py || status=1
  if [ -z "$fast" ]; then
    lint_with_clang_tidy "$@" || status=1
  fi
  [ "$status" -eq 0 ] || die "lint found what is printed above; ./run format mends formatting"
  read_processor_seconds used
  say "nothing found, in $((SECONDS - started)) s (processor: $used s)"
}

# Prints the sources given, by default those under onebit/ that the last 10 commits changed, and a
# sixteenth of all, which rotates with every commit. Quick builds do not detect missing includes,
# and parsing all sources takes two processors ten minutes.
sources_to_compile_alone() {
  local parts=16 turn
  if [ $# -gt 0 ]; then
    printf '%s\n' "$@"
    return
  fi
  turn=$(($(git rev-list --count HEAD) % parts))
  {
    git diff --name-only --diff-filter=d HEAD~10 -- 'onebit/*.cc' 2>/dev/null || true
    git ls-files -- 'onebit/*.cc' | awk -v turn="$turn" -v parts="$parts" 'NR % parts == turn'
  } | sort -u
}

# Checks the sources given, by default all, including tests and benchmarks. With --parts N these are
# the sources that the last 10 commits changed and an N-th of the others, which changes with every
# commit. Sources of the CUDA backend are in the compile database if nvcc is installed.
# tests/emulated_cuda supports only GCC.
lint_with_clang_tidy() {
  local -a sources=("$@") alone changed
  # ONEBIT_QUICK_BUILD=OFF: clang cannot read GCC's precompiled headers, and the compile database
  # must list every source.
  configure release -B build-lint -DONEBIT_QUICK_BUILD=OFF -DONEBIT_CUDA=AUTO >/dev/null
  if [ ${#sources[@]} -eq 0 ]; then
    mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.cc' ':!tests/emulated_cuda')
  fi
  # A source is the same with MPI and CUDA and without, so it is looked at without, and by clang.
  # Those that wrap either of them are compiled as in the build above.
  configure plain -B build-lint/plain -DCMAKE_CXX_COMPILER=clang++ -DONEBIT_QUICK_BUILD=OFF >/dev/null
  say "sources alone"
  mapfile -t alone < <(sources_to_compile_alone "$@")
  python3 -B tools/check_includes.py build-lint/plain,build-lint "${alone[@]}" || return 1
  say "clang-tidy"
  mapfile -t changed < <(git diff --name-only --diff-filter=d HEAD~10 -- '*.cc' 2>/dev/null || true)
  ONEBIT_JOBS="$(build_jobs)" python3 -B tools/run_clang_tidy.py --parts "$tidy_parts" \
    --turn "$(git rev-list --count HEAD)" --changed "${changed[@]}" -- build-lint "${sources[@]}"
}
