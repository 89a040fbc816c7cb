#!/usr/bin/env python3
"""Checks that every file includes only headers of lower floors, by their full paths.

The table in onebit/README.md defines which floor may include which. It must list exactly the floors
that are included, and so must DEPENDS in each floor's CMakeLists.txt. Prints file:line of every
violation and exits with 1 if there is any. Usage: check_floors.py [ROOT]
"""
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

from cpp_source import ROOT, Report, cpp_files, without_comments

# (pattern of headers, files that may include them, reason): only wrappers include vendor headers.
VENDOR_HEADERS = [
    (r"(dnnl|oneapi/dnnl/).*",
     ["onebit/device/onednn_*", "onebit/ops/*_cpu.cc", "onebit/ops/*_cpu.h", "bench/*",
      "tests/device/context_test.cc"],
     "oneDNN stays behind onebit/device/onednn_*.h and onebit/ops/*_cpu.cc"),
    (r"hdf5\.h",
     ["onebit/samples/hdf5_rows.cc"],
     "libhdf5 runs in the process that onebit/samples/hdf5_rows.cc is for"),
    (r"mpi\.h",
     ["onebit/comm/mpi_*.cc", "onebit/comm/mpi_job.h", "tests/comm/*mpi*.cc"],
     "MPI stays behind onebit/comm/mpi_*.cc"),
    (r"onebit/comm/mpi_job\.h",
     ["onebit/comm/mpi_*.cc"],
     "MPI stays behind onebit/comm/mpi_*.cc"),
    (r"nccl.*",
     ["onebit/comm/nccl_*", "tests/emulated_cuda/*"],
     "NCCL stays behind onebit/comm/nccl_*"),
    (r"(cuda|cublas|cudnn|cub/|cutlass/|cute/|nvtx|thrust/|curand|cooperative_groups).*",
     ["*.cu", "*_cuda.h", "*_cuda.cc", "onebit/device/cuda_*",
      "onebit/comm/nccl_*", "tests/emulated_cuda/*"],
     "CUDA headers are seen only by *.cu and *_cuda files"),
    (r"onebit/device/onednn_stream\.h",
     ["onebit/device/*", "onebit/kernels/*", "onebit/ops/*", "bench/*", "tests/device/*",
      "tests/ops/*"],
     "only CPU ops use the stream of oneDNN"),
    (r"CLI/.*",
     ["onebit/cli/command_line.cc", "onebit/cli/main.cc", "onebit/cli/training_words.cc",
      "onebit/cli/usage.cc", "bench/*"],
     "CLI11 takes seconds to compile: commands use onebit/cli/command_line.h"),
    (r"omp\.h",
     ["onebit/base/parallel_parts_openmp.cc"],
     "loops go through parallel_for"),
]

# Highway's documentation asks for its headers to be included in quotes.
QUOTED_LIBRARIES = ("hwy/",)

TABLE = Path("onebit/README.md")
ARCHITECTURE = Path("docs/architecture.md")
TABLE_ROW = re.compile(r"^\| `(\w+)` \|.*\| ([a-z ]+) \|$", re.MULTILINE)
DEPENDS = re.compile(r"\bDEPENDS\b([^)]*?)(?:LIBRARIES|\))")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)


def includes_of(root, path):
    text = without_comments((root / path).read_text(encoding="utf-8"))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def floor_of(name):
    parts = Path(name).parts
    return parts[1] if len(parts) > 2 and parts[0] == "onebit" else None


def read_table(root):
    """Returns {floor: (line of README, the floors that it may include)}."""
    text = (root / TABLE).read_text(encoding="utf-8")
    return {row[1]: (text.count("\n", 0, row.start()) + 1,
                     [] if row[2] == "nothing" else row[2].split())
            for row in TABLE_ROW.finditer(text)}


def check_direction(report, table, path, line, target):
    own, other = floor_of(path), floor_of(target)
    if own is None or own not in table:
        return
    below = table[own][1]
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
    for floor, (line, below) in table.items():
        for other in below:
            if other not in included[floor]:
                report.add(TABLE, line, f"no file of floor {floor} includes {other}: take it out")
        lists = root / "onebit" / floor / "CMakeLists.txt"
        text = lists.read_text(encoding="utf-8")
        depends = DEPENDS.search(text)
        linked = depends[1].split() if depends else []
        if "onebit_floor(" in text and set(linked) != set(below):
            report.add(lists.relative_to(root), 1,
                       f"DEPENDS is {' '.join(linked)}; {TABLE} says {' '.join(below)}")


def check_order(report, table):
    """Reports floors that may include each other, directly or by way of others."""
    def is_below(floor, other, seen):
        return any(one == other or (one not in seen and is_below(one, other, seen | {one}))
                   for one in table.get(floor, (0, []))[1])

    for floor, (line, below) in table.items():
        for other in below:
            if is_below(other, floor, {other}):
                report.add(TABLE, line, f"floor {floor} may include {other}, which may include "
                                        f"{floor} in turn")


def check_picture(report, root, table):
    """Reports floors that the picture in docs/architecture.md does not show."""
    picture = root / ARCHITECTURE
    if not picture.is_file():
        return
    blocks = picture.read_text(encoding="utf-8").split("```")
    shown = set(re.findall(r"\w+", blocks[1])) if len(blocks) > 1 else set()
    for floor in table:
        if floor not in shown:
            report.add(ARCHITECTURE, 1, f"the picture of the floors has no {floor}")


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
        for line, quote, target in includes_of(root, path):
            check_path(report, root, path, line, quote, target)
            check_vendor_headers(report, path, line, target)
            if quote == '"' and not target.startswith(QUOTED_LIBRARIES):
                check_direction(report, table, path, line, target)
                graph.setdefault(str(path), []).append((line, target))
    # Highway compiles a source once per target by including it in itself; that is no cycle.
    graph = {node: [edge for edge in edges if edge[1] != node] for node, edges in graph.items()}
    check_cycles(report, graph)
    check_table(report, root, table, graph)
    check_order(report, table)
    check_picture(report, root, table)
    return report.finish(len(files))


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
