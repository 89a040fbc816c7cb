#!/usr/bin/env python3
"""The program is not linked with CUDA's libraries, and they define the functions that it looks up.

Usage: cuda_libraries_test.py PROGRAM LIBRARY...
"""
import re
import subprocess
import sys
from pathlib import Path

PREFIXES = {"libcublasLt": "cublasLt", "libnccl": "nccl"}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions_of(listing, prefix):
    """Returns the functions with this prefix that `nm` lists as defined."""
    return set(re.findall(rf"\b[TW] ({prefix}[A-Z]\w*)", listing))


def main(program, *libraries):
    problems = [f"{program} needs {name} to start" for name in
                re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", program))
                if name.startswith(tuple(PREFIXES))]
    defined = output_of("nm", program)
    for library in map(Path, libraries):
        prefix = PREFIXES[library.name.split(".")[0]]
        called = functions_of(defined, prefix)
        if not called:
            problems.append(f"{program} calls nothing of {library.name}")
        missing = called - functions_of(output_of("nm", "-D", str(library)), prefix)
        problems += [f"{library} has no {name}" for name in sorted(missing)]
    print(*problems, f"{len(libraries)} libraries, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
