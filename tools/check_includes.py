#!/usr/bin/env python3
"""Checks that sources compile alone. Builds that parse shared headers once for many sources
(ONEBIT_QUICK_BUILD) do not detect a missing include.

    check_includes.py BUILD_FOLDER[,BUILD_FOLDER] SOURCE...

A folder contains compile_commands.json of a build with ONEBIT_QUICK_BUILD=OFF. If a source is in
both, the first one's command is used. Sources are parsed with all warnings, and no code is
generated. ONEBIT_JOBS sets the number of parallel jobs (default: the number of cores).
"""
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def command_of(entry):
    """Returns the compile command without its output file and without a compiler launcher."""
    words = shlex.split(entry["command"])
    compiler = next(i for i, word in enumerate(words) if word.startswith("-")) - 1
    words = words[compiler:]
    at = words.index("-o")
    del words[at:at + 2]
    words.remove("-c")
    return words + ["-fsyntax-only"]


def parses(entry):
    """Returns (whether the source compiles alone, the compiler's output)."""
    done = subprocess.run(command_of(entry), cwd=entry["directory"], capture_output=True, text=True,
                          check=False)
    return done.returncode == 0, done.stderr


def main(arguments):
    if len(arguments) < 1:
        print(__doc__)
        return 2
    wanted = {str((ROOT / source).resolve()) for source in arguments[1:]}
    found = {}
    for folder in reversed(arguments[0].split(",")):
        with open(Path(folder) / "compile_commands.json", encoding="utf-8") as file:
            found |= {entry["file"]: entry for entry in json.load(file) if entry["file"] in wanted}
    entries = list(found.values())
    jobs = int(os.environ.get("ONEBIT_JOBS") or os.cpu_count())
    failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for entry, (good, said) in zip(entries, pool.map(parses, entries)):
            if not good:
                failed += 1
                print(f"{Path(entry['file']).relative_to(ROOT)} does not compile alone:\n{said}")
    left_out = len(wanted) - len(entries)
    print(f"{len(entries)} sources compiled alone, {failed} failed"
          + (f"; {left_out} are not in this build" if left_out else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
