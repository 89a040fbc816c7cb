#!/usr/bin/env python3
"""Finds settings that are described twice: as a key of a recipe and as an option of a command.

An option that means a key is declared with KeyOptions (onebit/training/commands/key_options.h): type,
limits, meaning and default are then those of the key. The keys are those of docs/recipe.md. An option
for a key has the key's name, or has it among its names.

    check_options.py [ROOT]
"""
import re
import sys
from pathlib import Path

from cpp_source import ROOT, Report, tree_files, without_comments

FLOORS = {"onebit/apps": None, "onebit/training/finetune": ("squad", "classify", "tag", "embed"),
          "onebit/training/commands": ("pretrain", "squad", "classify", "tag", "embed")}
SECTION = re.compile(r"^## (?:`(?P<section>[\w.]+)`|Top level).*?(?:, task `(?P<task>\w+)`)?$",
                     re.MULTILINE)
# The column `for`, where a table has one, names tasks.
KEY = re.compile(r"^\| `(\w+)` \| (?!a section)(?P<tasks>(?:`\w+`(?:, )?)*)", re.MULTILINE)
OPTION = re.compile(r"\badd_(?:option|flag|flag_callback|text_callback|number_callback)\(\s*"
                    r'"(?P<names>-[^"]*)"(?!\s*,\s*"\w+\.[\w.]+"\s*,)')
ALIAS = re.compile(r'\badd(?P<flag>_flag)?\(\s*"(?P<names>-[^"]*)",\s*"(?P<key>[\w.]+)"'
                   r'(?:,\s*"(?P<value>[^"]*)")?')
# Sections whose keys an option may mean. The optimizer's and the scheduler's are set with --set.
SECTIONS = {"data", "answers", "classify", "tag", "embed", "run"}
# Options that share a name with a key and mean something else: (file, option): what.
OTHERS = {
    ("embed_encode_command.cc", "--format"): "texts to encode may also be lines",
    ("embed_encode_command.cc", "--header"): "of the file to encode, not of examples",
    ("embed_encode_command.cc", "--no-header"): "of the file to encode, not of examples",
    ("classify_command.cc", "--glue"): "also names the files that are read, and has AX",
}
# Flags for a value of a key whose name says nothing alone ("text").
NAMED_BY_VALUE = {"--no-projection": "answers.text"}


def keys_of(document):
    """{task or None: names of keys} of docs/recipe.md; None: every task."""
    keys = {}
    headings = list(SECTION.finditer(document))
    for number, heading in enumerate(headings):
        if heading["section"] not in SECTIONS:
            continue
        end = headings[number + 1].start() if number + 1 < len(headings) else len(document)
        for key in KEY.finditer(document, heading.end(), end):
            for task in re.findall(r"\w+", key["tasks"]) or [heading["task"]]:
                keys.setdefault(task, set()).add(key[1])
    return keys


def tasks_of(path):
    for folder, tasks in FLOORS.items():
        if str(path).startswith(folder + "/"):
            return tasks or (path.parts[2],)
    return ()


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
    for path in tree_files(root):
        tasks = tasks_of(path)
        if not tasks or path.suffix != ".cc":
            continue
        files += 1
        known = set().union(keys.get(None, set()), *(keys.get(task, set()) for task in tasks))
        text = without_comments((root / path).read_text(encoding="utf-8"))
        check_file(report, path, text, known)
    return report.finish(files)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
