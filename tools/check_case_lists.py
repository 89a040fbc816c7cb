#!/usr/bin/env python3
"""Whether every pattern of a list of test cases matches a case, so that a renamed test does not drop out
of the list unnoticed.

    check_case_lists.py PATTERNS PROGRAM...

PATTERNS are GoogleTest's, separated by ":" and "-". A program is a test, asked for its cases.
"""
import re
import subprocess
import sys
from fnmatch import fnmatchcase


def patterns_of(text):
    return [pattern for pattern in re.split(r":-?|^-", text) if pattern]


def cases_in(listing):
    """The full names in the output of --gtest_list_tests."""
    names, suite = [], ""
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if re.fullmatch(r"\S+\.", name):
            suite = name
        elif re.fullmatch(r"  \S+", name):
            names.append(suite + name.strip())
    return names


def unmatched(patterns, names):
    return [pattern for pattern in patterns
            if not any(fnmatchcase(name, pattern.replace("[", "[[]")) for name in names)]


def main(arguments):
    if len(arguments) < 2:
        print(__doc__)
        return 2
    names = []
    for program in arguments[1:]:
        listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True,
                                check=True)
        names += cases_in(listed.stdout)
    missing = unmatched(patterns_of(arguments[0]), names)
    for pattern in missing:
        print(f"{pattern} matches no test: it was renamed or deleted "
              "(cmake/OnebitTestCases.cmake lists it)")
    print(f"{len(names)} cases in {len(arguments) - 1} programs, {len(missing)} patterns without one")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
