#!/usr/bin/env python3
"""Runs clang-tidy quickly over many sources.

    tools/run_clang_tidy.py [--parts N --turn K --changed FILE...] build-lint -- SOURCE...

clang-tidy spends most of its time on headers that nearly all sources share, because it parses and
checks them once per source. So up to 80 sources with the same arguments are included by a generated
unit (source_units.py), whose findings are findings of its sources. If a unit does not compile, its
sources are checked one by one. Highway's loops are checked for one instruction set.

With --parts, it checks the sources that changed and every N-th unit of the others, of which --turn
chooses the first.

Exits with 1 if there are findings. ONEBIT_JOBS sets the number of parallel jobs.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from source_units import units_of

MOST_IN_A_UNIT = 80
SECONDS_BETWEEN_LINES = 30
# Disables the check for included sources, and warnings of names that shadow another source's: GCC
# compiles every source alone.
IN_UNITS = ["--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-shadow"]


def compile_arguments(entry):
    """Returns the arguments of a compile command without its input and outputs."""
    words = entry.get("arguments") or shlex.split(entry["command"])
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MT", "-MF", "-MQ"):
            skip = True
        elif word in ("-c", "-MD", "-MMD") or word == entry["file"]:
            continue
        else:
            kept.append(word)
    compiler = next(i for i, word in enumerate(kept) if re.search(r"(\+\+|clang|gcc|cc)[-\d.]*$", word))
    return kept[compiler:]


def split_arguments(arguments):
    """Returns (arguments that all sources of a unit must share, arguments that are merged). Folders
    of system headers and definitions do not harm the other sources. Options of code generation do
    not matter to clang-tidy."""
    others, own, words = [], [], iter(arguments)
    for word in words:
        if word == "-isystem":
            own.append((word, next(words)))
        elif word.startswith("-D"):
            own.append((word,))
        elif not word.startswith(("-O", "-fPI")):
            others.append(word)
    return tuple(others), tuple(own)


def units_with_arguments(sources, entries):
    """Returns (compile arguments, sources) of each unit."""
    parts = {source: split_arguments(compile_arguments(entries[source])) for source in sources}

    # Benchmarks and tests may define the same names as other top-level folders.
    def key(source):
        return parts[source][0], Path(source).relative_to(os.getcwd()).parts[0]

    units = []
    for members in units_of(sources, MOST_IN_A_UNIT, key, one_instruction_set=True):
        own = dict.fromkeys(words for source in members for words in parts[source][1])
        arguments = [*parts[members[0]][0], *(word for words in own for word in words)]
        units.append((arguments, members))
    return units


class Tidy:
    def __init__(self, build):
        self.build = build
        self.folder = os.path.join(build, "tidy")

    def run(self, database, source, *more):
        command = ["clang-tidy", "-p", database, "--quiet", "--warnings-as-errors=*",
                   "--extra-arg=-DHWY_COMPILE_ONLY_STATIC",
                   "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-missing-braces",
                   *more, source]
        done = subprocess.run(command, capture_output=True, text=True)
        # Without findings, stderr explains the failure: a crash, a missing file.
        return done.returncode, done.stdout or f"{source}: clang-tidy failed\n{done.stderr}"

    def check(self, unit, members):
        """Returns the findings of the sources as one text, empty if there are none."""
        if len(members) > 1:
            status, text = self.run(self.folder, unit, *IN_UNITS)
            if status == 0:
                return ""
            if "-warnings-as-errors]" in text and "[clang-diagnostic-error]" not in text:
                return text
            why = next((line for line in text.splitlines() if "[clang-diagnostic-error]" in line), "")
            print(f"{len(members)} sources are checked one by one, as a unit of them does not compile: "
                  f"{why}", flush=True)
        found = [self.run(self.build, source) for source in members]
        return "".join(text for status, text in found if status != 0)


def write_units(folder, units):
    os.makedirs(folder, exist_ok=True)
    database, paths = [], []
    for number, (arguments, members) in enumerate(units):
        name = os.path.relpath(os.path.dirname(members[0])).replace("/", "_")
        path = os.path.abspath(os.path.join(folder, f"{name}_{number}.cc"))
        Path(path).write_text("".join(f'#include "{member}"\n' for member in members))
        database.append({"directory": os.getcwd(), "file": path,
                         "arguments": [*arguments, "-c", path]})
        paths.append(path)
    Path(folder, "compile_commands.json").write_text(json.dumps(database, indent=1))
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--turn", type=int, default=0)
    parser.add_argument("--changed", nargs="*", default=[])
    parser.add_argument("build", help="folder of the compile database")
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    database = json.loads(Path(options.build, "compile_commands.json").read_text())
    entries = {os.path.normpath(os.path.join(entry["directory"], entry["file"])): entry
               for entry in database}
    sources = [os.path.abspath(source) for source in options.sources]
    for source in sources:
        if source not in entries:
            print(f"left out, since this build does not compile it: {os.path.relpath(source)}")
    sources = [source for source in sources if source in entries]
    changed = {os.path.abspath(source) for source in options.changed}
    units = units_with_arguments([source for source in sources if source in changed], entries)
    others = units_with_arguments([source for source in sources if source not in changed], entries)
    units += others[options.turn % options.parts::options.parts]
    sources = [source for _, members in units for source in members]
    tidy = Tidy(options.build)
    paths = write_units(tidy.folder, units)
    jobs = int(os.environ.get("ONEBIT_JOBS") or os.cpu_count() or 1)
    print(f"{len(sources)} sources in {len(units)} units, {jobs} at once", flush=True)
    status, said = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(tidy.check, path, members): members
                   for path, (_, members) in zip(paths, units)}
        for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            if text := done.result():
                status = 1
                print(text, flush=True)
            if time.monotonic() - said > SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                print(f"{number} of {len(units)} units checked", flush=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
