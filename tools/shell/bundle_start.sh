#!/usr/bin/env bash
# start PROGRAM [ARGUMENT...]: runs a program of the bundle's bin/ with the bundle's libraries and
# this machine's CUDA libraries, from LD_LIBRARY_PATH, CUDA_HOME, /usr/local/cuda, the system,
# or a Python environment (the packages nvidia-cublas and nvidia-nccl, dependencies of PyTorch).
set -euo pipefail
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
program="$1"
shift

folders=()
IFS=: read -ra given <<<"${LD_LIBRARY_PATH:-}"
for folder in "${given[@]}" "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64 \
  /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib/wsl/lib; do
  [ -z "$folder" ] || [ ! -d "$folder" ] || folders+=("$folder")
done

# folder_of LIBRARY: prints the first folder that contains it.
folder_of() {
  local folder
  for folder in "${folders[@]}"; do
    [ ! -e "$folder/$1" ] || { echo "$folder" && return; }
  done
}

missing=()
in_python=()
while read -r library; do
  [ -z "$(folder_of "$library")" ] || continue
  if [ ${#in_python[@]} -eq 0 ] && command -v python3 >/dev/null; then
    mapfile -t in_python < <(python3 -c '
import glob, importlib.util
found = importlib.util.find_spec("nvidia")
for place in found.submodule_search_locations if found else []:
    print(*glob.glob(f"{place}/*/lib"), sep="\n")' 2>/dev/null)
    [ ${#in_python[@]} -eq 0 ] || folders+=("${in_python[@]}")
  fi
  [ -n "$(folder_of "$library")" ] || missing+=("$library")
done <"$here/lib/cuda-libraries"
for library in "${missing[@]}"; do
  what="NCCL cannot be used"
  if [[ $library == libcublasLt* ]]; then
    what="CUDA cannot be used"
    export CUDA_VISIBLE_DEVICES=
  fi
  if [ -e /dev/nvidiactl ] || [ -n "${ONEBIT_BUNDLE_VERBOSE:-}" ]; then
    echo "$(basename "$0"): $library not found, so $what: install the CUDA toolkit's libraries and" \
      "NCCL (or PyTorch for this CUDA version), or name their folder in LD_LIBRARY_PATH" >&2
  fi
done
# The loader is started explicitly, so /proc/self/exe is the loader: the program can neither restart
# itself with OpenMP's settings nor pass its own path to the ranks that it launches.
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-2000}" ONEBIT_PROGRAM="$here/onebit"
# Uses the newer of the two C libraries, which serves both the machine's and the bundle's libraries.
libraries="$here/lib$(printf ':%s' "${folders[@]}")"
ours="$(cat "$here/lib/runtime/version")"
theirs="$(getconf GNU_LIBC_VERSION 2>/dev/null || echo glibc 0)"
if [ "$(printf '%s\n%s\n' "$ours" "$theirs" | sort -V | tail -n 1)" = "$theirs" ] &&
  [ -e /lib64/ld-linux-x86-64.so.2 ]; then
  loader=/lib64/ld-linux-x86-64.so.2
  libraries="$libraries:$here/lib/runtime"
else
  loader="$here/lib/runtime/ld-linux-x86-64.so.2"
  libraries="$here/lib/runtime:$libraries"
fi
exec "$loader" --library-path "$libraries" "$here/bin/$program" "$@"
