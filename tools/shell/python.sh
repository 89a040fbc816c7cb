# The Python package: its environment, its module and its tests.
# shellcheck shell=bash

# The environment of the tests, made when it is first needed.
python_folder=build-python

# make_python_environment PACKAGE...: installs what the environment lacks. Fails where the index of
# packages cannot be reached.
make_python_environment() {
  [ -x "$python_folder/venv/bin/python" ] || python3 -m venv "$python_folder/venv" || return 1
  local package
  local -a missing=()
  for package in "$@"; do
    [ -n "$("$python_folder/venv/bin/python" -c "
import importlib.util as util
print('' if util.find_spec('${package//-/_}') is None else 'there')")" ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] || say "installing ${missing[*]} in $python_folder/venv"
  [ ${#missing[@]} -eq 0 ] ||
    "$python_folder/venv/bin/pip" install --quiet --disable-pip-version-check "${missing[@]}"
}

# configure_python: the release build with the module for the environment's Python. What CMake
# remembers of another Python is forgotten.
configure_python() {
  configure release '-UPython_*' '-U_Python_*' -DONEBIT_PYTHON=ON "-DPython_EXECUTABLE=$PWD/$python_folder/venv/bin/python"
}

# test_python STAGE: "python" has the tests that need no torch, "torch" the others. Where the
# packages cannot be installed, one skipped test says so.
test_python() {
  local stage="$1" results="$PWD/$python_folder/test-results" tests=python/tests/core
  local -a packages=(nanobind numpy pytest mypy)
  [ "$stage" = python ] || { packages+=(torch transformers accelerate) && tests=python/tests/torch; }
  install_packages tools/debian_packages_python.txt
  mkdir -p "$results"
  rm -f "$results/$stage"*.xml
  if ! make_python_environment "${packages[@]}"; then
    say "$stage: its packages cannot be installed here"
    printf '<testsuite><testcase name="%s (packages)"><skipped/></testcase></testsuite>\n' \
      "$stage" >"$results/$stage.xml"
    return 0
  fi
  configure_python || return 1
  build release onebit_python onebit_program || return 1
  say "$stage: testing"
  ONEBIT_PROGRAM="$PWD/build/onebit" run_pytest build "$results/$stage.xml" "$tests" || return 1
  [ "$stage" = python ] || test_emulated_module "$results"
}

# run_pytest BUILD RESULTS TEST...: with the module of a build folder.
run_pytest() {
  local build_folder="$1" results="$2"
  shift 2
  PYTHONPATH="$PWD/$build_folder/python" \
    "$python_folder/venv/bin/python" -B -m pytest -q -p no:cacheprovider --junitxml "$results" "$@"
}

# test_emulated_module RESULTS: the optimizers for PyTorch on the emulated CUDA device, with messages
# through the host's memory and with messages between devices. These are the tests that need no
# process group.
test_emulated_module() {
  local results="$1" tests=python/tests/torch
  configure emulated "-DONEBIT_FLOORS_FROM=$PWD/build" '-UPython_*' '-U_Python_*' -DONEBIT_PYTHON=ON \
    "-DPython_EXECUTABLE=$PWD/$python_folder/venv/bin/python" || return 1
  build emulated onebit_python || return 1
  say "torch: testing on the emulated CUDA device"
  ONEBIT_TEST_DEVICE=staged run_pytest build-emulated "$results/torch-staged.xml" \
    "$tests"/test_{device,optimizers,groups,states,precision,modules}.py || return 1
  ONEBIT_TEST_DEVICE=nccl ONEBIT_EMULATED_CUDA_DEVICES=8 run_pytest build-emulated \
    "$results/torch-nccl.xml" "$tests"/test_{device,optimizers}.py
}
