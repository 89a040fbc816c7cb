# ./run test: every stage builds its tests and runs them, until a stage fails. While the tests of
# one stage run, the next stage is built.
# shellcheck shell=bash

# shellcheck source=tools/shell/python.sh
source tools/shell/python.sh

run_test() {
  local -a stages=() filter=()
  with_cuda=
  test_parts=1
  # Only --all also compiles examples/ and the programs of ./run bench.
  release_targets=(onebit_program onebit_tests)
  while [ $# -gt 0 ]; do
    case "$1" in
      --stage)
        case "${2:-}" in
          release | dev | tsan | emulated | python | torch) stages+=("$2") ;;
          *) die "--stage takes release, dev, tsan, emulated, python or torch" ;;
        esac
        shift 2
        ;;
      --all)
        stages=(release dev tsan emulated python torch)
        release_targets=(all)
        shift
        ;;
      --parts)
        [[ "${2:-}" =~ ^[1-9][0-9]?$ ]] || die "test: --parts takes a number from 1 to 99"
        test_parts=$2
        shift 2
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

  # The checks that need no compiler run first.
  if ! python3 -B tools/check_floors.py || ! python3 -B tools/check_layout.py; then
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi

  local index next status=0
  local -a folders=()
  trap end_testing EXIT
  make_folder_in_memory
  build_stage "${stages[0]}" || status=1
  for index in "${!stages[@]}"; do
    [ "$status" -eq 0 ] || break
    next="${stages[index + 1]:-}"
    folders+=("$(build_folder_of "${stages[index]}")")
    if [ -n "$next" ]; then
      start_building "$next"
    fi
    run_tests_of "${stages[index]}" "${filter[@]}" || status=1
    [ "$status" -eq 0 ] || stop_building
    if [ -n "$next" ]; then
      wait "$builder" || status=1
      builder=""
    fi
  done
  if [ "$status" -ne 0 ] && [ ${#folders[@]} -lt ${#stages[@]} ]; then
    say "not run after the failure: ${stages[*]:${#folders[@]}}"
  fi
  [ ${#folders[@]} -gt 0 ] || folders=("$(build_folder_of "${stages[0]}")")
  python3 -B tools/count_tests.py "${folders[@]}" || status=1
  return "$status"
}

release_is_built=""

# build_stage PRESET
build_stage() {
  local preset="$1" started=$SECONDS before=0 after=0
  case "$preset" in python | torch) return 0 ;; esac # built by test_python
  read_processor_seconds before
  rm -rf "$(build_folder_of "$preset")/test-results"
  # Objects of test sources are identical in these builds and are linked from the release build.
  local -a from=("-DONEBIT_TESTS_FROM=${release_is_built:+$PWD/build}")
  say "$preset: building"
  if [ "$preset" = release ]; then
    configure_release || return 1
    build "$preset" "${release_targets[@]}" || return 1
    release_is_built=yes
  else
    # Floors without a CUDA half are identical in the emulated build, and the thread sanitizer
    # watches only some floors (cmake/OnebitFloors.cmake).
    [ "$preset" = dev ] || from+=("-DONEBIT_FLOORS_FROM=${release_is_built:+$PWD/build}")
    configure "$preset" "${from[@]}" || return 1
    build "$preset" onebit_tests || return 1
  fi
  read_processor_seconds after
  say "$preset: built in $((SECONDS - started)) s" \
    "(processor: $((after - before)) s)"
}

# Tests write their files into memory if there is room. On a disk they would wait for it (fsync), and
# so would the build beside them. Whoever sets TMPDIR chooses another folder.
folder_in_memory=""
make_folder_in_memory() {
  local -i free needed=$((6 << 20)) # KiB
  [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] || return 0
  free="$(df --output=avail -k /dev/shm | tail -n 1)"
  [ "$free" -ge "$needed" ] || return 0
  free="$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)"
  [ "$free" -ge "$needed" ] || return 0
  # Short, because paths of sockets are.
  folder_in_memory="$(mktemp -d /dev/shm/onebit-XXXX)"
  chmod 1777 "$folder_in_memory" # as /tmp: some tests act as another user
  export TMPDIR="$folder_in_memory"
}

end_testing() {
  stop_building
  [ -z "$folder_in_memory" ] || rm -rf "$folder_in_memory"
}

# start_building PRESET: runs build_beside_tests in its own process group, `builder`, which is
# terminated with the script.
builder=""
start_building() {
  set -m
  build_beside_tests "$1" &
  builder=$!
  set +m
}

stop_building() {
  [ -z "$builder" ] || kill -- "-$builder" 2>/dev/null || true
}

# build_beside_tests PRESET: build_stage at low priority, because the previous stage's tests run at
# the same time (tests of the launcher mostly wait). Prints one line, or the whole log on failure.
build_beside_tests() {
  local preset="$1" log
  log="$(mktemp)"
  renice -n 19 "$BASHPID" >/dev/null 2>&1 || true
  if build_stage "$preset" >"$log" 2>&1; then
    tail -n 1 "$log"
    rm -f "$log"
  else
    cat "$log"
    rm -f "$log"
    return 1
  fi
}

# run_tests_of PRESET [CTEST OPTION...]
run_tests_of() {
  local preset="$1" folder started=$SECONDS status=0 before=0 after=0
  read_processor_seconds before
  shift
  case "$preset" in
    python | torch)
      test_python "$preset" || status=1
      say "$preset: built and tested in $((SECONDS - started)) s"
      return "$status"
      ;;
  esac
  folder="$(build_folder_of "$preset")"
  mkdir -p "$folder/test-results"
  local -a part=()
  if [ "$preset" != release ] && [ "$test_parts" -gt 1 ]; then
    local -i turn=$(($(git rev-list --count HEAD) % test_parts))
    # GoogleTest's own variables: every program runs this part of its cases.
    part=("GTEST_TOTAL_SHARDS=$test_parts" "GTEST_SHARD_INDEX=$turn")
    say "$preset: testing part $((turn + 1)) of $test_parts"
  else
    say "$preset: testing"
  fi
  # One job more than cores, because tests of the launcher mostly wait.
  env "${part[@]}" \
    ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$(($(nproc) + 1))" \
    --output-junit "$PWD/$folder/test-results/ctest.xml" "$@" || status=1
  read_processor_seconds after
  say "$preset: tested in $((SECONDS - started)) s" \
    "(processor: $((after - before)) s)"
  return "$status"
}
