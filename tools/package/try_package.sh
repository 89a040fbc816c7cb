#!/usr/bin/env bash
# Tries an installed onebit, with ranks over tcp or openmpi, and with PYTHON its package for Python.
#   try_package.sh PROGRAM TRANSPORT [PYTHON]
set -euo pipefail
tree="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
program="$1" transport="$2" python="${3:-}"
version="$(sed -n 's/^project(onebit VERSION \([0-9.]*\).*/\1/p' "$tree/CMakeLists.txt")"
folder="$(mktemp -d "${TMPDIR:-/tmp}/onebit-try-XXXXXX")"
trap 'rm -rf "$folder"' EXIT

# expect TEXT COMMAND...: the command succeeds, and the text is in what it prints.
expect() {
  local text="$1" output
  shift
  output="$("$@" 2>&1)" || { printf '%s\n' "$output" >&2 && echo "try_package: $* failed" >&2 && exit 1; }
  case "$output" in
    *"$text"*) ;;
    *) printf '%s\n' "$output" >&2 && echo "try_package: \"$text\" is not in that of $*" >&2 && exit 1 ;;
  esac
}

mkdir "$folder/text"
cat "$tree"/docs/*.md >"$folder/text/docs.txt"
cd "$folder"
expect "$version" "$program" --version
expect "oneDNN" "$program" doctor
expect "" "$program" prepare --input text --output store --vocab-size 400
cat >recipe.json <<'JSON'
{"task": "pretrain", "train_batch_size": 8,
 "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 10}},
 "model": {"preset": "bert-tiny"}, "data": {"sequence_length": 32}, "run": {"steps": 20}}
JSON
expect "2 ranks" "$program" launch --with "$transport" --ranks-per-host 2 -- \
  pretrain --recipe recipe.json --data store --output run
[ -s run/latest ] || { echo "try_package: two ranks left no checkpoint" >&2 && exit 1; }
expect "%" "$program" fill run "the ranks of a [MASK]"
echo "onebit $version trained with two ranks over $transport"
[ -n "$python" ] || exit 0

expect "$version" "$python" -m onebit --version
"$python" -c '
import time
begun = time.perf_counter()
import onebit
print(f"import onebit: {time.perf_counter() - begun:.3f} s ({onebit.__file__})")'
ONEBIT_PROGRAM="$program" "$python" -B -m pytest -q -p no:cacheprovider "$tree/python/tests/core"
