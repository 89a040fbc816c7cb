#!/usr/bin/env python3
"""Groups sources that can be compiled as one translation unit.

    tools/source_units.py MOST SOURCE...
    tools/source_units.py --separated MOST SOURCE...
    tools/source_units.py [--separated] --write UNIT SOURCE...

The compiler spends most of its time on headers that nearly all sources share. One unit parses them
once for all its sources. Two sources go into different units if both define the same local name (in
an unnamed namespace, or as a macro), or if one defines a local name that the other has from a
header of its folder. A source that Highway includes again for every instruction set stays alone,
unless it is compiled for only one (units_of).

Prints one line per unit of several sources, in the format of CMake lists: SOURCE;SOURCE.

Tests use their local names inside of their unnamed namespace only, up to the end of the source. With
--separated, each of them gets a namespace of its own around it, and local names no longer collide.
--write writes such a unit. It names sources as from the root of the repository, as #include does.
"""
import argparse
import functools
import re
import sys
from pathlib import Path

# clang-format puts every definition at namespace scope at the left margin.
DEFINITION = re.compile(
    r"^(?:(?:struct|class|enum class|enum|union|using|concept)\s+(\w+)"
    r"|(?:\w[\w:<>,&*\[\] ]*?[\s&*])(\w+)\s*(?:\(|=|\{|\[|;))")

# One definition may declare several constants.
CONSTANTS = re.compile(r"^(?:constexpr|const)\b")
CONSTANT = re.compile(r"\b(k[A-Z]\w*) ?[=({\[]")


def local_names(text):
    """Returns a source's local names: in unnamed or Highway's namespaces, macros, and main()."""
    names = set(re.findall(r"^#define (\w+)", text, re.M)) - {"HWY_TARGET_INCLUDE"}  # undefined first
    if re.search(r"^(int main|BENCHMARK_MAIN)\(", text, re.M):
        names.add("main")
    inside = constants_go_on = False
    for line in text.splitlines():
        if line == "namespace {" or line.endswith("HWY_NAMESPACE {"):
            inside = True
        elif line == "}  // namespace" or line.endswith("HWY_NAMESPACE") and line[0] == "}":
            inside = False
        elif inside and line and not line[0].isspace():
            if match := DEFINITION.match(line):
                names.add(match.group(1) or match.group(2))
            constants_go_on = CONSTANTS.match(line) is not None
        if inside and constants_go_on:
            names.update(CONSTANT.findall(line))
            constants_go_on = not line.endswith(";")
    return names - {"namespace"}  # DEFINITION matches it in using-directives


ROOT = Path(__file__).resolve().parent.parent
# The end of a source that has nothing behind its unnamed namespace.
ALL_IS_LOCAL = re.compile(r"^}  // namespace\n\n?}  // namespace [\w:]+\n*\Z", re.M)


def is_separable(text):
    """Whether a namespace around the unnamed one separates the source from others of a unit."""
    return (text.count("\nnamespace {\n") == 1 and ALL_IS_LOCAL.search(text) is not None
            and "HWY_TARGET_INCLUDE" not in text)


def name_of(source):
    """Returns the source's path from the root, so that a unit is the same in every clone."""
    return Path(source).resolve().relative_to(ROOT).as_posix()


def separated(source):
    """Returns the source with a namespace of its own. Messages name the source's lines."""
    text = Path(source).read_text()
    own = "in_" + re.sub(r"\W", "_", Path(source).stem)
    begin, end = text.index("\nnamespace {\n") + 1, ALL_IS_LOCAL.search(text).start()
    return (f'#line 1 "{name_of(source)}"\n{text[:begin]}namespace {own} {{ {text[begin:end]}'
            f"}} {text[end:]}")


def text_of_unit(sources, separate):
    """Returns the text of a unit: included sources, or with `separate` separable ones themselves."""
    return "".join(separated(source) if separate and is_separable(Path(source).read_text())
                   else f'#include "{name_of(source)}"\n' for source in sources)


def in_namespace(text, names):
    """Qualifies names with the namespace that the source opens first, except macros and main()."""
    opened = re.search(r"^namespace ([\w:]+) {", text, re.M)
    macros = set(re.findall(r"^#define (\w+)", text, re.M))
    return {name if name in macros or name == "main" else (opened and opened.group(1), name)
            for name in names}


@functools.cache
def header_names(header):
    """Returns names at namespace scope of a header and of those it includes from its folder."""
    text = header.read_text()
    matches = [DEFINITION.match(line) for line in text.splitlines()]
    names = {match.group(1) or match.group(2) for match in matches if match}
    return frozenset(names | names_from_headers(text, header.parent))


def names_from_headers(text, folder):
    headers = {folder / Path(name).name for name in re.findall(r'^#include "([^"]+)"', text, re.M)
               if Path(name).parent.name == folder.resolve().name}
    return {name for header in headers if header.is_file() for name in header_names(header)}


def units_of(sources, most, key_of=lambda source: None, one_instruction_set=False, separate=False):
    """Returns lists of at most `most` sources with the same key that can be one translation unit.
    Each source goes into the first unit that fits. one_instruction_set: HWY_COMPILE_ONLY_STATIC.
    separate: the unit is text_of_unit."""
    units = []  # (key, local names, names from headers, sources)
    for source in sources:
        text = Path(source).read_text()
        local = in_namespace(text, local_names(text))
        shared = in_namespace(text, names_from_headers(text, Path(source).parent))
        if separate and is_separable(text):
            local = {name for name in local if isinstance(name, str)}  # macros and main()
            shared = set()
        of_many = "HWY_TARGET_INCLUDE" in text and not one_instruction_set
        key = (key_of(source), source if of_many else None)
        for unit in units:
            if (unit[0] == key and len(unit[3]) < most and not local & (unit[1] | unit[2])
                    and not shared & unit[1]):
                unit[1].update(local)
                unit[2].update(shared)
                unit[3].append(source)
                break
        else:
            units.append((key, set(local), set(shared), [source]))
    return [unit[3] for unit in units]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--separated", action="store_true")
    parser.add_argument("--write", metavar="UNIT")
    parser.add_argument("words", nargs="+")
    options = parser.parse_args()
    if options.write:
        unit, text = Path(options.write), text_of_unit(options.words, options.separated)
        if not unit.is_file() or unit.read_text() != text:  # else it is not compiled again
            unit.write_text(text)
        return
    most, *sources = options.words
    for unit in units_of(sources, int(most), separate=options.separated):
        if len(unit) > 1:
            print(";".join(unit))


if __name__ == "__main__":
    main()
