"""Few and full files: how many files a floor may have, and which headers are worth a file of their
own. check_layout.py asks for both."""
import re
from pathlib import Path

from cpp_source import without_comments

MAX_FLOOR_FILES = 45

# A header that only one other file of its floor includes is a part of that file, unless its contract
# is longer than this, in lines that are neither blank nor of the preprocessor.
SHORT_CONTRACT_LINES = 20
PRIVATE_HEADERS = {
    "exchange/checkpoint/checkpoint_repair": "checkpoint_recovery.cc is full",
    "program/cli/training_words": "launch_command.cc is full",
    "data/formats/family_names": "families.cc is full",
    "data/formats/config_choices": "encoder_config_file.cc is full",
    "data/text/unicode_classes": "the interface of a generated source",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(onebit/[^"]+)\.h"', re.MULTILINE)


def module_of(path):
    """The file's name without its folder of onebit, its ending and its device."""
    return re.sub(r"_(cpu|cuda)$", "", str(path.with_suffix("")).removeprefix("onebit/"))


def contract_lines(text):
    return sum(bool(line.strip()) and not line.lstrip().startswith("#")
               for line in text.split("\n"))


def check_floor_sizes(report, names):
    counts = {}
    for name in names:
        parts = Path(name).parts
        if parts[0] == "onebit" and len(parts) == 4:
            counts[parts[1:3]] = counts.get(parts[1:3], 0) + 1
    for (wing, floor), count in sorted(counts.items()):
        if count > MAX_FLOOR_FILES:
            report.add(f"onebit/{wing}/{floor}", 1, f"{count} files, at most {MAX_FLOOR_FILES}: join "
                                                    "what is one subject, or make a floor of a subject")


def check_private_headers(report, root, files):
    users, headers = {}, {}
    for path in files:
        if path.suffix not in (".h", ".cc", ".cu") or path.parts[0] not in ("onebit", "tests"):
            continue
        text = (root / path).read_text(encoding="utf-8")
        for target in INCLUDE.findall(without_comments(text)):
            users.setdefault(target.removeprefix("onebit/"), set()).add(path)
        if path.suffix == ".h" and path.parts[0] == "onebit" and not path.stem.endswith("_inl"):
            headers[path] = contract_lines(text)
    for path, lines in sorted(headers.items()):
        header = str(path.with_suffix("")).removeprefix("onebit/")
        others = {module_of(user): user for user in users.get(header, ())
                  if module_of(user) != module_of(path)}
        if lines > SHORT_CONTRACT_LINES or header in PRIVATE_HEADERS or len(others) != 1:
            continue
        user = next(iter(others.values()))
        if user.parent == path.parent:
            report.add(path, 1, f"only {user} includes this header of {lines} lines: make it a part "
                                "of that file, or give its reason in PRIVATE_HEADERS of "
                                "tools/few_files.py")
