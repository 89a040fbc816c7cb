#!/usr/bin/env python3
"""Seeds faults into the CUDA backend, one at a time, and checks that a test detects each. A fault
removes a barrier, a fence, a wait for an event or a copy, or a check of bounds (fault_list.py).

Usage: seeded_faults.py BUILD_FOLDER [--only REGEX] [--jobs N]
       seeded_faults.py --check

BUILD_FOLDER is built with -DONEBIT_CUDA=EMULATED (`./run test --stage emulated`). The source tree
is not modified: a changed copy is compiled and linked before the libraries into a separate program.
Prints a table, and exits with 1 if a fault was detected in no schedule. --check only checks that
the sources still contain the code of every fault.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fault_list import FAULTS

ROOT = Path(__file__).resolve().parents[2]
SCHEDULES = ("late", "random:1", "random:2", "eager")
TIMEOUT_SECONDS = 300


def changed(fault):
    """Returns the file's text with the fault. Raises ValueError if its code is not found."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    count = text.count(fault.find)
    if count < fault.number or (count != 1 and fault.number == 1 and not fault.of_several):
        raise ValueError(f"{fault.name}: {fault.file} has {fault.find!r} {count} times")
    at = -1
    for _ in range(fault.number):
        at = text.index(fault.find, at + 1)
    return text[:at] + fault.replace + text[at + len(fault.find):]


def check():
    problems = []
    for fault in FAULTS:
        try:
            changed(fault)
        except ValueError as error:
            problems.append(str(error))
    names = [fault.name for fault in FAULTS]
    problems += [f"{name}: twice" for name in set(names) if names.count(name) > 1]
    print("\n".join(problems + [f"{len(FAULTS)} faults, {len(problems)} problems"]))
    return 1 if problems else 0


@dataclass
class Compiled:
    """The way a build compiles a source."""
    folder: Path
    command: str
    unit: Path | None  # the file that includes the source, if several are compiled as one


def compiled_sources(folder):
    """Returns {path in the tree: Compiled}."""
    found = {}
    for one in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
        file = Path(one["file"])
        sources, unit = [file], None
        if not file.exists():
            continue  # a generated source of a program that has not been built
        if file.parent.name == "units":
            names = re.findall(r'^#include "(\S+\.cc)"$', file.read_text(encoding="utf-8"), re.MULTILINE)
            sources, unit = [ROOT / name for name in names], file
        for source in sources:
            if source.is_relative_to(ROOT):
                found[str(source.relative_to(ROOT))] = Compiled(folder, one["command"], unit)
    return found


class Build:
    """Compiles changed sources and links them into copies of test programs."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        self.compiled = {}
        cache = (self.folder / "CMakeCache.txt").read_text(encoding="utf-8")
        floors_from = re.search(r"^ONEBIT_FLOORS_FROM:PATH=(.+)$", cache, re.MULTILINE)
        if floors_from:
            self.compiled |= compiled_sources(Path(floors_from[1]).resolve())
        self.compiled |= compiled_sources(self.folder)

    def run(self, command, folder=None):
        done = subprocess.run(command, cwd=folder or self.folder, capture_output=True, text=True,
                              shell=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command}\n{done.stdout}{done.stderr}")

    def compile(self, source, place, changed_file):
        """Compiles `source`. The changed file in `place` takes precedence over the tree's."""
        how = self.compiled[source]
        words = shlex.split(how.command)
        given = place / source if source == changed_file else ROOT / source
        if how.unit:
            given = how.unit  # which finds the changed file in `place` first
        target = place / (given.name + ".o")
        words[words.index("-o") + 1] = str(target)
        words[words.index("-c") + 1] = str(given)
        compiler = next(i for i, word in enumerate(words) if word.startswith("-"))
        words.insert(compiler, f"-I{place}")
        # A fault may leave unused names.
        self.run(shlex.join(words + ["-Wno-error"]), how.folder)
        return target

    def link(self, program, objects, place):
        listed = subprocess.run(["ninja", "-t", "commands", f"test_{program}"], cwd=self.folder,
                                capture_output=True, text=True, check=True).stdout.splitlines()
        known = f"-o tests/{program}/test_{program}"
        command = next(line for line in reversed(listed) if known in line)
        target = place / f"test_{program}"
        extra = " ".join(str(one) for one in objects)
        self.run(command.replace(known, f"-o {target} {extra}", 1))
        return target

    def with_fault(self, fault):
        place = self.folder / "faults" / fault.name
        shutil.rmtree(place, ignore_errors=True)  # left by an earlier list of faults
        copy = place / fault.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(changed(fault), encoding="utf-8")
        sources = fault.compiled or (fault.file,)
        objects = [self.compile(source, place, fault.file) for source in sources]
        return self.link(fault.program, objects, place)


def fails(program, filter_text, schedule):
    """Returns how the tests fail, in one line, or the empty string if they pass."""
    environment = dict(os.environ, ONEBIT_EMULATED_CUDA_SCHEDULE=schedule)
    try:
        done = subprocess.run([program, f"--gtest_filter={filter_text}", "--gtest_fail_fast"],
                              env=environment, capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "does not end"
    if "Running 0 tests" in done.stdout:
        raise RuntimeError(f"{program}: no test matches {filter_text}")
    if done.returncode == 0:
        return ""
    for line in done.stderr.splitlines():
        if line.startswith("emulated device:"):
            return line
    return "a test fails" if done.returncode > 0 else f"ends with signal {-done.returncode}"


def seen_in(build, fault):
    """Returns (fault, schedule that detects it or None, how, seconds)."""
    started = time.monotonic()
    found, how = None, ""
    try:
        program = build.with_fault(fault)
        for schedule in fault.schedules or SCHEDULES:
            how = fails(program, fault.tests, schedule)
            if how:
                found = schedule
                break
        program.unlink()
    except RuntimeError as error:
        how = f"cannot be tried: {error}"
    return fault, found, how, time.monotonic() - started


def run(folder, pattern, jobs):
    build = Build(folder)
    chosen = [fault for fault in FAULTS if re.search(pattern, fault.name)]
    for program, tests in sorted({(fault.program, fault.tests) for fault in chosen}):
        how = fails(build.folder / "tests" / program / f"test_{program}", tests, "late")
        if how:
            print(f"{program} {tests} fails without any fault: {how}")
            return 1
    missed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for fault, schedule, how, seconds in pool.map(lambda one: seen_in(build, one), chosen):
            missed += schedule is None
            print(f"{fault.name:34} {schedule or 'NOT SEEN':9} {seconds:6.1f} s  {how[:110]}",
                  flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults seen")
    return 1 if missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        return check()
    if options.folder is None:
        parser.error("BUILD_FOLDER is missing")
    return run(options.folder, options.only, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
