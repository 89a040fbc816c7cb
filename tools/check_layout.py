#!/usr/bin/env python3
"""Checks the project's conventions: sizes, numbers of files, names, op families, mirrored tests that are named after
what they test, macros, stray words.

Exit status 1 with file:line for every breach. Limits are at the top.
Usage: check_layout.py [ROOT]
"""
import re
import sys
from pathlib import Path

import few_files
import tests_by_name
from cpp_source import (ROOT, Report, cpp_files, functions, tree_files,
                        without_comments_and_strings)

MAX_LINES = {".h": 200, ".cc": 400, ".cu": 400, ".py": 400, ".sh": 400}
MAX_FUNCTION_LINES = 60
MAX_MACROS = 10
MAX_COMMENT_COLUMNS = 100  # the formatter leaves comments as they are
# One member of an argument struct in a call: the formatter gives each a line, and they are read as
# one list, so they do not make a function long.
ARGUMENT = re.compile(r"\s*\.\w+ = [^;]*,\s*")

FORBIDDEN_NAME = re.compile(r"(^|_)(utils?|common|helpers?|misc|new|v\d+|old)(_|$)")
SNAKE = re.compile(r"[a-z0-9][a-z0-9_]*")
# Preprocessor conditions that are not a build option in disguise.
ALLOWED_CONDITION = re.compile(r"__CUDACC__|__x86_64__|__CUDA_ARCH__|\bHWY_|__SANITIZE_|_INL_H_")
# Macros that Highway's protocol asks for: headers compiled once an instruction set. And the words of
# CUDA C++, which the emulated device has to define.
PROTOCOL_MACRO = re.compile(r"HWY_\w+|\w+_INL_H_|__(global|device|host|launch_bounds)__")
MARK = re.compile(r"\b(TO" r"DO|FIX" r"ME|HA" r"CK|XX" r"X|BUG" r"BUG)\b")
MACHINE_PATH = re.compile(r"(?<![-\w.$}/:])/(home|root|work|Users|mnt|tmp/(venv|build))[/-][\w.-]")
EXACT_EXP2 = re.compile(r"\b(exp2f?|__exp2f)\(")
# Calls that belong to one place: the pattern, the files that are this place, what others use.
ONE_PLACE = [
    (re.compile(r"(\.|->)dump\("), {"onebit/ground/base/json.cc"},
     "throws for bytes that are not UTF-8, at the end of the work: json_text() or exact_json_text() "
     "of onebit/ground/base/json.h"),
    (re.compile(r"\bstrerror\("), {"onebit/ground/base/error.cc"},
     "reason_of() or require_call() of onebit/ground/base/error.h"),
    (re.compile(r"\b(require|fail|format|log_\w+)\([^;]*\berrno\b"), set(),
     "errno is read before or after the call that is meant, as arguments are evaluated in any "
     "order: require_call() of onebit/ground/base/error.h, or read it into a variable first"),
    (re.compile(r"\bfmt::print\(\s*stderr|\bstd::cerr\b"), set(),
     "ends a run if the terminal or the disk of the log fails: show() of onebit/ground/base/log.h"),
    (re.compile(r"\bstd::random_device\b"), set(),
     "asks for a newer C library than wheels may: random_id() of onebit/ground/base/machine.h"),
]
LINK = re.compile(r"\bhttps?://([\w.-]+)")
# Documentation may be linked. Packages come from whatever the system is set up to use.
# 127.0.0.1 is the reader's own machine.
LINK_HOSTS = {"127.0.0.1", "arxiv.org", "git-lfs.github.com", "github.com", "huggingface.co",
              "json-schema.org", "protobuf.dev", "www.apache.org", "www.unicode.org", "www.w3.org"}
TEXT_SUFFIXES = {".h", ".cc", ".cu", ".cmake", ".md", ".py", ".sh", ".proto", ""}
TEST_FOLDERS = {"reference", "tree", "package", "fuzz", "deepspeed", "muon", "plain",
                "sanitizers", "emulated_cuda", "emulated_backend"}
# The floors whose files are families of operations.
OP_FLOORS = ("ops", "attention", "updates")
# Headers that are named as the vendor names them.
VENDOR_HEADERS = Path("tests/emulated_cuda/include")


def check_sizes(report, path, text):
    # A header that holds kernels is compiled as a source is.
    limit = MAX_LINES.get(".cc" if path.name.endswith("_inl.h") else path.suffix)
    count = text.count("\n")
    lines = text.split("\n")
    if limit and count > limit:
        report.add(path, count, f"{count} lines; a {path.suffix} file has at most {limit}")
    if path.suffix in (".h", ".cc", ".cu"):
        for first, last, name in functions(text):
            length = sum(not ARGUMENT.fullmatch(line) for line in lines[first - 1:last])
            if length > MAX_FUNCTION_LINES:
                report.add(path, first, f"{name} has {length} lines; at most "
                                        f"{MAX_FUNCTION_LINES}")


def check_comments(report, path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_COMMENT_COLUMNS and line.lstrip().startswith("//"):
            report.add(path, number, f"a comment of {len(line)} columns; at most "
                                     f"{MAX_COMMENT_COLUMNS}")


def check_name(report, path):
    if path.parts[0] not in ("onebit", "tests", "bench", "examples", "tools") or is_golden(path):
        return
    if FORBIDDEN_NAME.search(path.stem.lower()):
        report.add(path, 1, "a name that says nothing (utils, common, helpers, _new, _v2): name "
                            "the file after its idea")
    named_by_us = VENDOR_HEADERS not in path.parents
    if path.suffix in (".h", ".cc", ".cu", ".py") and named_by_us and not SNAKE.fullmatch(path.stem):
        report.add(path, 1, "file names are snake_case")
    if path.parts[0] == "onebit" and len(path.parts) > 4:
        report.add(path, 1, "is deeper than onebit/<wing>/<floor>/<file>")


def check_header(report, path, text):
    code = without_comments_and_strings(text)
    first = next((line.strip() for line in code.split("\n") if line.strip()), "")
    once_per_target = "HWY_TARGET_TOGGLE" in code
    if first != "#pragma once" and not once_per_target:
        report.add(path, 1, "a header starts with #pragma once")
    for number, line in enumerate(code.split("\n"), 1):
        if re.match(r"\s*using\s+namespace\b", line):
            report.add(path, number, "using namespace in a header")


def check_recipe(report, path, text):
    """A recipe that names its task is refused in one sentence by the commands of other tasks."""
    if '"task":' not in text:
        report.add(path, 1, 'a recipe names its "task"')


# A directive with the lines that continue it.
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)


def check_preprocessor(report, path, text, macros):
    for match in DIRECTIVE.finditer(without_comments_and_strings(text)):
        number = text.count("\n", 0, match.start()) + 1
        word, rest = match.groups()
        if word in ("if", "ifdef", "ifndef", "elif") and not ALLOWED_CONDITION.search(rest):
            report.add(path, number, "a build option picks files, it is no #if in the code")
        if word == "define":
            name = re.match(r"\s*(\w+)", rest).group(1)
            if not PROTOCOL_MACRO.fullmatch(name):
                macros.setdefault(name, (path, number))


def check_words(report, path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if MARK.search(line):
            report.add(path, number, "an open mark: do it, or file an issue")
        if MACHINE_PATH.search(line):
            report.add(path, number, "an absolute path of one machine")
        for host in LINK.findall(line):
            if host.rstrip(".") not in LINK_HOSTS:
                report.add(path, number, f"links to {host}, which is not in LINK_HOSTS of "
                                         "tools/check_layout.py")


def check_one_place(report, path, text):
    code = without_comments_and_strings(text)
    for pattern, exempt, instead in ONE_PLACE:
        if str(path) in exempt:
            continue
        for match in pattern.finditer(code):
            number = code.count("\n", 0, match.start()) + 1
            word = re.match(r"\W*([\w:]+)", match.group()).group(1)
            report.add(path, number, f"{word}: {instead}")


def check_kernel_functions(report, path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if EXACT_EXP2.search(line):
            report.add(path, number, "exp2f() takes three instructions more for denormal results: "
                                     "approximate_exp2() of onebit/math/kernels/approximate_cuda.h")


def family_of(stem, ops):
    """The family that a file of one of OP_FLOORS belongs to: the longest name with a header and a source
    that the file's name begins with, or the file's own where there is none."""
    words = stem.split("_")
    for count in range(len(words), 0, -1):
        name = "_".join(words[:count])
        if {f"{name}.h", f"{name}.cc"} <= ops:
            return name
    return None


def check_op_families(report, names, floor):
    """A family is a contract, its checks and its backends. Other files are pieces of a family."""
    folder = f"onebit/math/{floor}"
    ops = {Path(name).name for name in names if re.fullmatch(rf"{folder}/\w+\.(h|cc|cu)", name)}
    tests = {Path(name).name for name in names if name.startswith(f"tests/{floor}/")}
    cuda = any(name.endswith("_cuda.cu") for name in ops)
    families = set()
    for name in sorted(ops):
        family = family_of(Path(name).stem, ops)
        backend = re.fullmatch(r"(\w+)_(cpu\.cc|cuda\.cu)", name)
        if family is None and not backend:
            report.add(f"{folder}/{name}", 1, "belongs to no op family: what families share "
                                              "belongs to onebit/kernels")
        elif backend:
            families.add(family or backend.group(1))
    for family in sorted(families):
        wanted = [f"{family}.h", f"{family}.cc", f"{family}_cpu.cc"]
        if cuda:
            wanted.append(f"{family}_cuda.cu")
        for missing in [name for name in wanted if name not in ops]:
            report.add(f"{folder}/{family}.h", 1,
                       f"op family incomplete: {folder}/{missing} is missing")
        if not any(re.fullmatch(rf"{family}_(\w+_)?test\.cc", test) for test in tests):
            report.add(f"{folder}/{family}.h", 1,
                       f"op family incomplete: tests/{floor}/{family}_test.cc is missing")


def check_mirror(report, names):
    paths = [Path(name) for name in sorted(names)]
    wing_of = {path.parts[2]: path.parts[1] for path in paths if path.match("onebit/*/*/*")}
    floors = set(wing_of)
    for path in paths:
        parts = path.parts
        if parts[0] == "tests" and len(parts) > 2 and parts[1] not in floors | TEST_FOLDERS:
            report.add(path, 1, f"tests/{parts[1]} mirrors no floor")
    for floor in sorted(floors):
        lists = f"onebit/{wing_of[floor]}/{floor}/CMakeLists.txt"
        if lists in names and not any(name.startswith(f"tests/{floor}/") for name in names):
            report.add(lists, 1, f"there is no tests/{floor}")


def check_macro_budget(report, macros):
    if len(macros) > MAX_MACROS:
        for name, (path, line) in macros.items():
            report.add(path, line, f"macro {name}: {len(macros)} in the project, at most "
                                   f"{MAX_MACROS}")


def is_golden(path):
    return path.parts[0] == "tests" and "golden" in path.parts[2:]


def is_text(path):
    return path.suffix in TEXT_SUFFIXES and path.name != "LICENSE" and not is_golden(path)


def main(root=ROOT):
    report, macros = Report("layout"), {}
    files = tree_files(root)
    sources = set(cpp_files(root))
    for path in files:
        check_name(report, path)
        if path.parts[0] == "recipes" and path.suffix == ".json":
            check_recipe(report, path, (root / path).read_text(encoding="utf-8"))
        if not is_text(path):
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            report.add(path, 1, f"not UTF-8 at byte {error.start}")
            continue
        check_sizes(report, path, text)
        check_words(report, path, text)
        if path in sources:
            check_preprocessor(report, path, text, macros)
            check_comments(report, path, text)
            if path.parts[0] == "onebit":
                check_one_place(report, path, text)
            if path.parts[0] == "onebit" and path.stem.endswith("_cuda"):
                check_kernel_functions(report, path, text)
        if path.suffix == ".h":
            check_header(report, path, text)
    names = {str(path) for path in files}
    for floor in OP_FLOORS:
        check_op_families(report, names, floor)
    check_mirror(report, names)
    few_files.check_floor_sizes(report, names)
    few_files.check_private_headers(report, root, files)
    tests_by_name.check(report, names)
    check_macro_budget(report, macros)
    return report.finish(len(files))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
