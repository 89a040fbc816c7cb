#!/usr/bin/env python3
"""Finds settings that are described twice: as a key of a recipe and as an option of a command.

An option that means a key is declared with KeyOptions (onebit/training/commands/key_options.h): type,
limits, meaning and default are then those of the key. The keys are those of docs/recipe.md: in an
application's floor the keys of its task, in floors that commands share the keys of all tasks. An
option for a key has the key's name, or has it among its names.

    check_options.py [ROOT]
"""
import re
import sys
from pathlib import Path

from cpp_source import ROOT, Report, tree_files, without_comments

APPS = "onebit/apps"
SHARED = ("onebit/training/finetune", "onebit/training/commands", "onebit/program")
SECTION = re.compile(r"^## (?:`(?P<section>[\w.]+)`|Top level).*?(?:, task `(?P<task>\w+)`)?$",
                     re.MULTILINE)
# The column `for`, where a table has one, names tasks.
KEY = re.compile(r"^\| `(\w+)` \| (?!a section)(?P<tasks>(?:`\w+`(?:, )?)*)", re.MULTILINE)
OPTION = re.compile(r"\badd_(?:option|flag|flag_callback|text_callback|number_callback)\(\s*"
                    r'"(?P<names>-[^"]*)"(?!\s*,\s*"\w+\.[\w.]+"\s*,)')
ALIAS = re.compile(r'\badd(?P<flag>_flag)?\(\s*"(?P<names>-[^"]*)",\s*"(?P<key>[\w.]+)"'
                   r'(?:,\s*"(?P<value>[^"]*)")?')
# Sections whose keys an option may mean, besides the sections of tasks. Keys of other sections are
# set with --set.
SECTIONS = {"data", "run"}
# The name of an option that several files use.
CONSTANT = re.compile(r'constexpr const char\* (k\w+) =\s*("-[^"]*");')
# Options that share a name with a key and mean something else: (file, option): what.
OTHERS = {
    ("embed_encode_command.cc", "--format"): "texts to encode may also be lines",
    ("embed_encode_command.cc", "--header"): "of the file to encode, not of examples",
    ("embed_encode_command.cc", "--no-header"): "of the file to encode, not of examples",
    ("classify_command.cc", "--glue"): "also names the files that are read, and has AX",
    ("prepare_command.cc", "--format"): "of plain text, not of examples",
    ("prepare_command.cc", "--skip-bad-records"): "there is no recipe",
    ("search_index_command.cc", "--format"): "of plain text, not of examples",
    ("search_index_command.cc", "--skip-bad-records"): "of plain text, not of examples",
    ("serve_command.cc", "--max-sequence-length"): "of all models that are served",
}
# Flags for a value of a key whose name says nothing alone ("text").
NAMED_BY_VALUE = {"--no-projection": "answers.text"}


def keys_of(document):
    """{task or None: names of keys} of docs/recipe.md; None: every task."""
    keys = {}
    headings = list(SECTION.finditer(document))
    for number, heading in enumerate(headings):
        if heading["section"] not in SECTIONS and not heading["task"]:
            continue
        end = headings[number + 1].start() if number + 1 < len(headings) else len(document)
        for key in KEY.finditer(document, heading.end(), end):
            for task in re.findall(r"\w+", key["tasks"]) or [heading["task"]]:
                keys.setdefault(task, set()).add(key[1])
    return keys


def known_in(path, keys):
    """Returns the names of the keys that an option in this file may mean."""
    if path.is_relative_to(APPS):
        return keys.get(None, set()) | keys.get(path.parts[2], set())
    return set().union(*keys.values()) if any(map(path.is_relative_to, SHARED)) else set()


def constants_of(root):
    """Returns {name: literal} of the constants that name options."""
    found = {}
    for path in tree_files(root):
        if path.suffix == ".h" and path.parts[0] == "onebit":
            found.update(CONSTANT.findall((root / path).read_text(encoding="utf-8")))
    return found


def key_name(option):
    return re.sub(r"^--(no-)?", "", option).replace("-", "_")


def check_file(report, path, text, known):
    def line_of(match):
        return text.count("\n", 0, match.start()) + 1

    for match in OPTION.finditer(text):
        for option in match["names"].split(","):
            if option.startswith("--") and key_name(option) in known and \
                    (path.name, option) not in OTHERS:
                report.add(path, line_of(match), f"{option} is a key of recipes, too: declare it "
                           "with KeyOptions (onebit/training/commands/key_options.h)")
    for match in ALIAS.finditer(text):
        name = match["key"].split(".")[-1]
        names = [option for option in match["names"].split(",") if option.startswith("--")]
        is_named = any(key_name(option) == name or (match["flag"] and
                                                    key_name(option) == match["value"]) or
                       NAMED_BY_VALUE.get(option) == match["key"] for option in names)
        if not is_named:
            report.add(path, line_of(match), f"{match['names']} is an option for the key "
                       f"{match['key']}: give it the name --{name.replace('_', '-')}, too")


def main(root=ROOT):
    report, files = Report("options"), 0
    keys = keys_of((root / "docs/recipe.md").read_text(encoding="utf-8"))
    constants = constants_of(root)
    name = re.compile(r"(?:\b\w+::)?\b(k\w+)\b")
    for path in tree_files(root):
        known = known_in(path, keys)
        if not known or path.suffix != ".cc":
            continue
        files += 1
        text = without_comments((root / path).read_text(encoding="utf-8"))
        text = name.sub(lambda match: constants.get(match[1], match[0]), text)
        check_file(report, path, text, known)
    return report.finish(files)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
