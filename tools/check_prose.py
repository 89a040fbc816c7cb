#!/usr/bin/env python3
"""Checks that prose stays easy to read: how often comments and documents join facts with a semicolon,
and how often "those of" or "that of" stands for a noun.

A place is a page of the documents, a floor, a folder of tests, or another folder of code (its comments).
Limits are at the top, per 1,000 words.
Usage: check_prose.py [ROOT]           a table of places, and what breaks the limits
       check_prose.py [ROOT] --list PLACE   the lines that are counted
"""
import io
import re
import sys
import tokenize
from pathlib import Path

from cpp_source import ROOT, Report, cpp_files, tree_files

LIMITS = {"semicolons": 3.0, "those of": 0.7}
PATTERNS = {"semicolons": re.compile(";"), "those of": re.compile(r"\b(those|that)\s+of\b", re.I)}
WORD = re.compile(r"[A-Za-z][\w'-]*")

# A comment of C++, or a literal, which may hold the marks of a comment.
CPP_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                       r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.DOTALL)
# What a document quotes: blocks with a fence or indented, code in a line, the target of a link,
# comments.
QUOTED = re.compile(r"^```.*?^```|(?<=\n\n)(?:    [^\n]*\n)+|``.+?``|`[^`]+`|(?<=\])\([^)\s]+\)"
                    r"|<!--.*?-->|&\w+;", re.DOTALL | re.MULTILINE)


def blank(text):
    return "".join(character if character == "\n" else " " for character in text)


def only(pieces, text):
    """Returns the text of which everything but the pieces (begin, end) is blank."""
    kept, at = [], 0
    for begin, end in pieces:
        kept += [blank(text[at:begin]), text[begin:end]]
        at = end
    return "".join(kept) + blank(text[at:])


def cpp_comments(text):
    comments = [match.span() for match in CPP_TOKEN.finditer(text) if match[0][0] == "/"]
    return only(comments, text)


def python_comments(text):
    """Comments, and strings that are statements: what they document."""
    lines = [0]
    for line in text.split("\n"):
        lines.append(lines[-1] + len(line) + 1)
    pieces, before = [], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        documents = token.type == tokenize.STRING and before in (
            tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type == tokenize.COMMENT or documents:
            pieces.append((lines[token.start[0] - 1] + token.start[1],
                           lines[token.end[0] - 1] + token.end[1]))
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
            before = token.type
    return only(pieces, text)


def shell_comments(text):
    return only([match.span() for match in re.finditer(r"^\s*#.*$", text, re.MULTILINE)], text)


def prose_of(path, text, sources):
    """Returns the prose of a file, with its lines where they are, or nothing."""
    if path.suffix == ".md":
        return QUOTED.sub(lambda quoted: blank(quoted[0]), text)
    if path in sources:
        return cpp_comments(text)
    if path.suffix == ".py":
        return python_comments(text)
    return shell_comments(text) if path.suffix == ".sh" else ""


def place_of(path):
    if path.suffix == ".md":
        return str(path)
    depth = {"onebit": 3, "tests": 2}.get(path.parts[0], 1)
    return str(Path(*path.parts[:-1][:depth]))


def read_places(root):
    """Returns {place: [(path, prose)]}."""
    places, sources = {}, set(cpp_files(root))
    for path in tree_files(root):
        if path.suffix in (".md", ".py", ".sh") or path in sources:
            text = prose_of(path, (root / path).read_text(encoding="utf-8"), sources)
            places.setdefault(place_of(path), []).append((path, text))
    return places


def count(files):
    """Returns the number of words of a place, and {what: how often}."""
    words = sum(len(WORD.findall(text)) for _, text in files)
    return words, {what: sum(len(pattern.findall(text)) for _, text in files)
                   for what, pattern in PATTERNS.items()}


def list_place(files):
    for path, text in files:
        for number, line in enumerate(text.split("\n"), 1):
            for what, pattern in PATTERNS.items():
                for _ in pattern.finditer(line):
                    print(f"{path}:{number}: {what}: {line.strip()}")


def main(root=ROOT, option="", place=""):
    report, places = Report("prose"), read_places(root)
    if option == "--list":
        return list_place(places[place])
    print(f"{'per 1,000 words':44} words " + " ".join(f"{what:>10}" for what in PATTERNS))
    for where, files in sorted(places.items()):
        words, counts = count(files)
        rates = {what: 1000 * number / max(words, 1) for what, number in counts.items()}
        print(f"{where:44} {words:5} " + " ".join(f"{rates[what]:10.1f}" for what in PATTERNS))
        for what, number in counts.items():
            # A short place may have one.
            if number > 1 and rates[what] > LIMITS[what]:
                report.add(where, 1, f"{number} {what} in {words} words, {rates[what]:.2f} per 1,000; "
                                     f"at most {LIMITS[what]:.1f}: give each fact its sentence, and repeat "
                                     f"the noun (check_prose.py --list {where})")
    return report.finish(sum(map(len, places.values())))


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:]]
    tree = [Path(arguments.pop(0))] if arguments and not arguments[0].startswith("--") else [ROOT]
    sys.exit(main(*tree, *arguments))
