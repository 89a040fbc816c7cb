# ./run test: every stage builds its tests and runs them; the first stage that fails is the last.
# shellcheck shell=bash

run_test() {
  local -a stages=() filter=()
  with_cuda=
  # What ./run bench needs, and examples/, is compiled with --all.
  release_targets=(onebit_program onebit_tests)
  while [ $# -gt 0 ]; do
    case "$1" in
      --stage)
        case "${2:-}" in
          release | dev | tsan | emulated) stages+=("$2") ;;
          *) die "--stage takes release, dev, tsan or emulated" ;;
        esac
        shift 2
        ;;
      --all)
        stages=(release dev tsan)
        release_targets=(all)
        shift
        ;;
      --cuda)
        # shellcheck disable=SC2034 # read by wants_cuda
        with_cuda=yes
        shift
        ;;
      --filter)
        [ $# -ge 2 ] || die "--filter takes a regular expression"
        filter=(-R "$2")
        shift 2
        ;;
      *) die "test: unknown option \"$1\"; see ./run help" ;;
    esac
  done
  [ ${#stages[@]} -gt 0 ] || stages=(release)
  install_packages tools/debian_packages.txt

  # A breach of the project's rules is found without a compiler.
  if ! python3 -B tools/check_floors.py || ! python3 -B tools/check_layout.py; then
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi

  local stage started status=0
  local -a folders=()
  for stage in "${stages[@]}"; do
    started=$SECONDS
    folders+=("$(build_folder_of "$stage")")
    test_stage "$stage" "${filter[@]}" || status=1
    say "$stage took $((SECONDS - started)) s"
    [ "$status" -eq 0 ] || break
  done
  if [ "$status" -ne 0 ] && [ ${#folders[@]} -lt ${#stages[@]} ]; then
    say "not run after the failure: ${stages[*]:${#folders[@]}}"
  fi
  python3 -B tools/count_tests.py "${folders[@]}" || status=1
  return "$status"
}

# test_stage PRESET [CTEST OPTION...]
test_stage() {
  local preset="$1" folder
  shift
  folder="$(build_folder_of "$preset")"
  rm -rf "$folder/test-results"
  say "$preset: building"
  if [ "$preset" = release ]; then
    configure_release || return 1
    build "$preset" "${release_targets[@]}" || return 1
  else
    configure "$preset" || return 1
    build "$preset" onebit_tests || return 1
  fi
  mkdir -p "$folder/test-results"
  say "$preset: testing"
  # One more than the cores: a test of the launcher waits most of its time.
  ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$(($(nproc) + 1))" \
    --output-junit "$PWD/$folder/test-results/ctest.xml" "$@"
}
