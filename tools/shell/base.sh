# Functions shared by the commands of ./run, which sources this file from the repository's root.
# shellcheck shell=bash

say() { printf '== %s\n' "$*"; }

# read_processor_seconds NAME: sets the variable to the processor time of all commands that this
# shell has waited for. (In a subshell "times" would start at 0.)
read_processor_seconds() {
  local file
  file="$(mktemp)"
  times >"$file"
  printf -v "$1" '%s' "$(awk 'NR == 2 {
    for (i = 1; i <= 2; ++i) { split($i, part, /[ms]/); seconds += 60 * part[1] + part[2] }
    printf "%d", seconds + 0.5
  }' "$file")"
  rm -f "$file"
}

die() {
  printf 'run: %s\n' "$*" >&2
  exit 1
}

# The number of parallel compile jobs, limited by memory: a heavy source takes up to 1.5 GB.
build_jobs() {
  local cores free_kb by_memory
  cores=$(nproc)
  free_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((${free_kb:-1572864} / 1572864))
  [ "$by_memory" -ge 1 ] || by_memory=1
  [ "$by_memory" -le "$cores" ] || by_memory=$cores
  echo "${ONEBIT_JOBS:-$by_memory}"
}

# Prints the packages listed in the given files that are not installed.
missing_packages() {
  local package
  sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@" | while read -r package; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
}

# install_packages LIST...
install_packages() {
  local -a missing
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "not a Debian system: expecting the equivalents of the packages in $*"
    return
  fi
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  local -a superuser=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "these packages are missing: ${missing[*]}. Run as root, install sudo, or have" \
        "them installed with: apt-get install ${missing[*]}"
    superuser=(sudo)
  fi
  say "installing ${missing[*]}"
  "${superuser[@]}" apt-get -q update ||
    die "apt-get update failed; the packages needed are: ${missing[*]}"
  "${superuser[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y --no-install-recommends install "${missing[@]}" ||
    die "apt-get could not install: ${missing[*]}"
}

# find_nvcc: prints the path of nvcc, searching where CMake does. Fails if there is none.
find_nvcc() {
  local beside="${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"
  command -v nvcc || { [ -x "$beside" ] && echo "$beside"; }
}

# wants_cuda: whether to compile the CUDA backend, which takes as long as everything else: with
# --cuda, or if the machine has both a GPU and nvcc.
wants_cuda() {
  [ -n "${with_cuda:-}" ] || { [ -e /dev/nvidia0 ] && find_nvcc >/dev/null; }
}

# configure_release: the preset "release", with CUDA if wants_cuda. ONEBIT_QUICK_BUILD halves the
# build time by parsing shared headers once for many sources. Only OFF detects missing includes.
configure_release() {
  local cuda=OFF
  if wants_cuda; then
    cuda=ON
  fi
  configure release "-DONEBIT_CUDA=$cuda" "-DONEBIT_QUICK_BUILD=${ONEBIT_QUICK_BUILD:-ON}" \
    "-DONEBIT_PYTHON=OFF"
}

# configure PRESET [OPTION...]: uses ccache if it is installed. Warnings end a build of the
# project's developers if the compiler is one that they know. A build for users (for_users) keeps
# what the folder is configured with, at first that they do not.
configure() {
  local preset="$1"
  shift
  local -a launcher=()
  if command -v ccache >/dev/null; then
    # CCACHE_SLOPPINESS allows caching with precompiled headers. The other two settings let several
    # clones of the repository share cache entries.
    local cached="env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_BASEDIR=$PWD"
    cached+=";CCACHE_NOHASHDIR=1;ccache"
    launcher=("-DCMAKE_CXX_COMPILER_LAUNCHER=$cached" "-DCMAKE_CUDA_COMPILER_LAUNCHER=$cached")
  fi
  local -a warnings=()
  [ -n "${for_users:-}" ] || warnings=(-DONEBIT_WARNINGS_ARE_ERRORS=KNOWN)
  cmake --preset "$preset" --log-level=NOTICE "${launcher[@]}" "${warnings[@]}" "$@"
}

# build_folder_of PRESET
build_folder_of() {
  case "$1" in
    release) echo build ;;
    python | torch) echo build-python ;;
    *) echo "build-$1" ;;
  esac
}

# build PRESET TARGET...
build() {
  local preset="$1"
  shift
  cmake --build "$(build_folder_of "$preset")" --parallel "$(build_jobs)" --target "$@"
}

build_program() {
  install_packages tools/debian_packages.txt
  configure_release
  build release onebit_program
}
