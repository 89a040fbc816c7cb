#!/usr/bin/env python3
"""Groups sources that can be compiled as one translation unit.

    tools/source_units.py MOST SOURCE...

The compiler spends most of its time on headers that nearly all sources share. One unit parses them
once for all its sources. Two sources go into different units if both define the same local name (in
an unnamed namespace, or as a macro), or if one defines a local name that the other has from a
header of its folder. A source that Highway includes again for every instruction set stays alone,
unless it is compiled for only one (units_of).

Prints one line per unit of several sources, in the format of CMake lists: SOURCE;SOURCE.
"""
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


def units_of(sources, most, key_of=lambda source: None, one_instruction_set=False):
    """Returns lists of at most `most` sources with the same key that can be one translation unit.
    Each source goes into the first unit that fits. one_instruction_set: HWY_COMPILE_ONLY_STATIC."""
    units = []  # (key, local names, names from headers, sources)
    for source in sources:
        text = Path(source).read_text()
        local = in_namespace(text, local_names(text))
        shared = in_namespace(text, names_from_headers(text, Path(source).parent))
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
    for unit in units_of(sys.argv[2:], int(sys.argv[1])):
        if len(unit) > 1:
            print(";".join(unit))


if __name__ == "__main__":
    main()
