#!/usr/bin/env python3
"""Checks that links in the documents lead to files and headings that exist.

    check_links.py [ROOT]
"""
import re
import sys
from pathlib import Path

from cpp_source import ROOT, Report, tree_files

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors_of(text):
    """The names that GitHub gives to headings."""
    names = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return names


def main(root=ROOT):
    report, documents = Report("links"), 0
    for path in tree_files(root):
        if path.suffix != ".md":
            continue
        documents += 1
        text = (root / path).read_text(encoding="utf-8")
        for match in LINK.finditer(text):
            target, _, anchor = match[1].partition("#")
            if ":" in target:
                continue
            line = text.count("\n", 0, match.start()) + 1
            file = (root / path.parent / target if target else root / path).resolve()
            if not file.exists():
                report.add(path, line, f"links to {target}, which does not exist")
            elif anchor and file.suffix == ".md" and \
                    anchor not in anchors_of(file.read_text(encoding="utf-8")):
                report.add(path, line, f"links to #{anchor}: {target or path} has no such heading")
    return report.finish(documents)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
