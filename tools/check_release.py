#!/usr/bin/env python3
"""Checks that a version can be published: every file names it, and the tree is what was committed.

    check_release.py [--version] [ROOT]
"""

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Where a version stands that is not taken from PROJECT_VERSION, with what precedes it.
PLACES = {
    "CITATION.cff": r"^version: ([0-9.]+)$",
    "python/onebit/_core.pyi": r"^version: str = '([0-9.]+)'$",
    "docs/building.md": r"find_package\(onebit ([0-9.]+) REQUIRED\)",
    "tests/package/consumer/CMakeLists.txt": r"find_package\(onebit ([0-9.]+) REQUIRED\)",
}
SECTION = re.compile(r"^## (\S+)(?: \((.*)\))?$", re.MULTILINE)


def version_of(root):
    return re.search(r"project\(onebit VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]


def git(root, *words):
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True,
                          check=False)
    return done.stdout if done.returncode == 0 else ""


def problems_of(root):
    version = version_of(root)
    problems = []
    for name, pattern in PLACES.items():
        found = re.search(pattern, (root / name).read_text(), re.MULTILINE)
        if found is None or not f"{version}.".startswith(found[1] + "."):
            problems.append(f"{name} names version {found and found[1]}, CMakeLists.txt {version}")
    section = SECTION.search((root / "CHANGELOG.md").read_text())
    if section is None or section[1] != version:
        problems.append(f"CHANGELOG.md does not begin with a section \"## {version} (date)\"")
    else:
        try:
            datetime.date.fromisoformat(section[2] or "")
        except ValueError:
            problems.append(f"CHANGELOG.md: {version} has no date but \"{section[2]}\": write the "
                            "day of publication as YYYY-MM-DD")
    if git(root, "status", "--porcelain"):
        problems.append("the tree has changes that are not committed")
    if git(root, "tag", "--list", f"v{version}"):
        problems.append(f"the tag v{version} exists: raise the version in CMakeLists.txt")
    return problems


def main(*words):
    root = next((Path(word) for word in words if not word.startswith("--")), ROOT)
    if "--version" in words:
        print(version_of(root))
        return 0
    problems = problems_of(root)
    for problem in problems:
        print(f"release: {problem}")
    if not problems:
        print(f"release: {version_of(root)} is named everywhere, and the tree is committed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
