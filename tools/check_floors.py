#!/usr/bin/env python3
"""Checks that every file includes only headers of lower floors, by their full paths.

The table in onebit/README.md defines which floor may include which, and the order of the wings. It
must list exactly the floors that are included, and so must DEPENDS in each floor's CMakeLists.txt.
`apps` in it are all applications. An application needs no row: then DEPENDS alone lists its floors.
Prints file:line of every violation and exits with 1 if there is any. Usage: check_floors.py [ROOT]
"""
import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from cpp_source import ROOT, Report, cpp_files, without_comments

# (pattern of headers, files that may include them, reason): only wrappers include vendor headers.
VENDOR_HEADERS = [
    (r"(dnnl|oneapi/dnnl/).*",
     ["onebit/math/device/onednn_*", "onebit/math/ops/*_cpu.cc", "onebit/math/ops/*_cpu.h", "bench/*",
      "tests/device/context_test.cc"],
     "oneDNN stays behind onebit/math/device/onednn_*.h and onebit/math/ops/*_cpu.cc"),
    (r"hdf5\.h",
     ["onebit/data/samples/hdf5_rows.cc"],
     "libhdf5 runs in the process that onebit/data/samples/hdf5_rows.cc is for"),
    (r"mpi\.h",
     ["onebit/exchange/transport/mpi_plugin.cc"],
     "MPI stays behind onebit/exchange/transport/mpi_plugin.cc, which is a shared object of its own"),
    (r"onebit/exchange/transport/mpi_job\.h",
     ["onebit/exchange/transport/mpi_*.cc"],
     "MPI stays behind onebit/exchange/transport/mpi_*.cc"),
    (r"nccl.*",
     ["onebit/exchange/transport/nccl_*", "tests/emulated_cuda/*"],
     "NCCL stays behind onebit/exchange/transport/nccl_*"),
    (r"(cuda|cublas|cudnn|cub/|cutlass/|cute/|nvtx|thrust/|curand|cooperative_groups).*",
     ["*.cu", "*_cuda.h", "*_cuda.cc", "onebit/math/device/cuda_*",
      "onebit/exchange/transport/nccl_*", "tests/emulated_cuda/*"],
     "CUDA headers are seen only by *.cu and *_cuda files"),
    (r"onebit/math/device/onednn_stream\.h",
     ["onebit/math/device/*", "onebit/math/kernels/*", "onebit/math/ops/*", "bench/*", "tests/device/*",
      "tests/ops/*"],
     "only CPU ops use the stream of oneDNN"),
    (r"CLI/.*",
     ["onebit/training/commands/command_line.cc", "onebit/program/cli/main.cc", "onebit/program/cli/training_words.cc",
      "onebit/training/commands/usage.cc", "bench/*"],
     "CLI11 takes seconds to compile: commands use onebit/training/commands/command_line.h"),
    (r"omp\.h",
     ["onebit/ground/base/parallel_parts_openmp.cc"],
     "loops go through parallel_for"),
]

# Highway's documentation asks for its headers to be included in quotes.
QUOTED_LIBRARIES = ("hwy/",)

TABLE = Path("onebit/README.md")
TABLE_ROW = re.compile(r"^\| (\w+) \| `(\w+)` \|.*\| ([a-z_ ]+) \|$", re.MULTILINE)
# The wing of applications, which stands for all of them in the table, and what CMake calls them.
APPS, ALL_APPS = "apps", "${ONEBIT_APPS}"
DEPENDS = re.compile(r"\bDEPENDS\b([^)]*?)(?:LIBRARIES|\))")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)


def includes_of(root, path):
    text = without_comments((root / path).read_text(encoding="utf-8"))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


@dataclass(frozen=True)
class Floor:
    """A row of the table: its line, the floor's wing, and the floors that it may include."""
    line: int
    wing: str
    below: list
    path: Path = TABLE


def floor_of(name):
    parts = Path(name).parts
    return parts[2] if len(parts) > 3 and parts[0] == "onebit" else None


def read_rows(root):
    """Returns {name: Floor} in the order of the table, whose first wing is the highest."""
    text = (root / TABLE).read_text(encoding="utf-8")
    return {row[2]: Floor(text.count("\n", 0, row.start()) + 1, row[1],
                          [] if row[3] == "nothing" else row[3].split())
            for row in TABLE_ROW.finditer(text)}


def linked_floors(lists):
    """The floors in DEPENDS of a floor's CMakeLists.txt."""
    depends = DEPENDS.search(lists.read_text(encoding="utf-8"))
    return depends[1].split() if depends else []


def read_table(root):
    """The same with the applications that have no row, and with all of them in place of `apps`."""
    table = read_rows(root)
    for lists in sorted((root / "onebit" / APPS).glob("*/CMakeLists.txt")):
        table.setdefault(lists.parent.name, Floor(1, APPS, linked_floors(lists),
                                                       lists.relative_to(root)))
    apps = [floor for floor, row in table.items() if row.wing == APPS]
    for row in table.values():
        if APPS in row.below:
            row.below.remove(APPS)
            row.below.extend(apps)
    return table


def check_direction(report, table, path, line, target):
    own, other = floor_of(path), floor_of(target)
    if own is None or own not in table:
        return
    below = table[own].below
    if not target.startswith("onebit/"):
        report.add(path, line, f'floor {own} includes "{target}", which is outside onebit/')
    elif other not in table:
        report.add(path, line, f'"{target}": there is no floor {other}')
    elif other != own and other not in below:
        report.add(path, line, f'floor {own} may include {", ".join(below) or "nothing"}; '
                               f'"{target}" is none of these ({TABLE})')


def check_table(report, root, table, graph):
    """Reports floors in the table that are not included, and DEPENDS that differ from the table."""
    included = {floor: set() for floor in table}
    for source, edges in graph.items():
        if floor_of(source) in included:
            included[floor_of(source)].update(floor_of(target) for _, target in edges)
    for floor, row in table.items():
        for other in row.below:
            if other not in included[floor]:
                report.add(row.path, row.line,
                           f"no file of floor {floor} includes {other}: take it out")
        lists = root / "onebit" / row.wing / floor / "CMakeLists.txt"
        text, linked = lists.read_text(encoding="utf-8"), linked_floors(lists)
        if ALL_APPS in linked:
            linked.remove(ALL_APPS)
            linked += [name for name, other in table.items() if other.wing == APPS]
        if "onebit_floor(" in text and set(linked) != set(row.below):
            report.add(lists.relative_to(root), 1,
                       f"DEPENDS is {' '.join(linked)}; {TABLE} says {' '.join(row.below)}")


def check_order(report, table):
    """Reports floors that may include each other, directly or by way of others."""
    def is_below(floor, other, seen):
        return any(one == other or (one not in seen and is_below(one, other, seen | {one}))
                   for one in (table[floor].below if floor in table else ()))

    for floor, row in table.items():
        for other in row.below:
            if is_below(other, floor, {other}):
                report.add(row.path, row.line, f"floor {floor} may include {other}, which may include "
                                            f"{floor} in turn")


def check_wings(report, table):
    """Reports floors that may include floors of a higher wing."""
    wings = list(dict.fromkeys(row.wing for row in table.values()))
    for floor, row in table.items():
        for other in row.below:
            if other in table and wings.index(table[other].wing) < wings.index(row.wing):
                report.add(row.path, row.line, f"floor {floor} of wing {row.wing} may include {other} "
                                            f"of {table[other].wing}, which is a higher wing")


def check_path(report, root, path, line, quote, target):
    ours = target.split("/")[0] in ("onebit", "tests", "bench", "examples")
    if quote == '"' and not ours and not target.startswith(QUOTED_LIBRARIES):
        report.add(path, line, f'"{target}": give the path from the repository root, '
                               "or <> for a library")
    elif ours and quote == "<" and path.parts[:2] != ("tests", "package"):
        report.add(path, line, f"<{target}>: our own headers are included in quotes")
    elif ours and not (root / target).is_file():
        report.add(path, line, f'"{target}": there is no such file')


def check_vendor_headers(report, path, line, target):
    for pattern, allowed, reason in VENDOR_HEADERS:
        if re.fullmatch(pattern, target) and not any(fnmatch(str(path), one) for one in allowed):
            report.add(path, line, f"includes {target}: {reason}")


def check_cycles(report, graph):
    """Reports include cycles, which #pragma once hides from the compiler."""
    state = {}

    def visit(node, trail):
        state[node] = "open"
        for line, target in graph.get(node, []):
            if state.get(target) == "open":
                ring = " -> ".join(trail[trail.index(target):] + [target])
                report.add(node, line, f"include cycle: {ring}")
            elif target not in state:
                visit(target, trail + [target])
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            visit(node, [node])


def main(root=ROOT):
    report, graph, table = Report("floors"), {}, read_table(root)
    files = cpp_files(root)
    for path in files:
        floor = floor_of(path)
        if path.parts[0] == "onebit" and floor not in table:
            report.add(path, 1, "is on no floor; see onebit/README.md")
        elif path.parts[0] == "onebit" and path.parts[1] != table[floor].wing:
            report.add(path, 1, f"floor {floor} belongs to wing {table[floor].wing}")
        for line, quote, target in includes_of(root, path):
            check_path(report, root, path, line, quote, target)
            check_vendor_headers(report, path, line, target)
            if quote == '"' and not target.startswith(QUOTED_LIBRARIES):
                check_direction(report, table, path, line, target)
                graph.setdefault(str(path), []).append((line, target))
    # Highway compiles a source once per target by including it in itself. That is no cycle.
    graph = {node: [edge for edge in edges if edge[1] != node] for node, edges in graph.items()}
    check_cycles(report, graph)
    check_table(report, root, table, graph)
    check_order(report, table)
    check_wings(report, table)
    return report.finish(len(files))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
