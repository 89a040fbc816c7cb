#!/usr/bin/env python3
"""Runs every CUDA test, the sanitizers, the benches and the comparison with PyTorch on one NVIDIA
GPU. Writes a table, the same as JSON, and one line that names what to look at first.

    gpu_check.py --programs FOLDER... [--results FOLDER] [--no-sanitizer] [--no-bench] [--no-compare]

A part that fails, crashes or hangs does not stop the others. A test program that fails is run again
suite by suite, each in its own process, because a failing kernel destroys the CUDA context of its
process. The exit status is 1 if any part failed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

TESTS = ("device", "ops", "attention", "updates", "comm", "transport", "compress", "model", "training", "pretrain",
         "squad", "classify", "tag", "embed")
WORDS = ("uda", "CUDA", "Nccl", "Staged")  # in the names of tests that use a device
# Death tests restart their own program, which fails under the explicit loader of a bundle.
WITHOUT = "-*DeathTest*"
FILTER = ":".join(f"*{word}*" for word in WORDS) + WITHOUT
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZED_TESTS = ("ops", "attention")
SANITIZED = "*cuda_bf16*:*cuda_f32*"
# racecheck reports races within cuBLASLt's own kernels, which do not synchronise by barriers.
NOT_CUBLAS = "-*Linear*"
# Seconds after which a part is killed.
TEST_LIMIT, SUITE_LIMIT, SANITIZER_LIMIT, BENCH_LIMIT, COMPARE_LIMIT = 600, 120, 900, 300, 900
CAUSE = re.compile(r"Failure$|rror[: ]|FAILED|got .*wanted|what\(\)|========= (Invalid|Race|Uninit)")


@dataclass
class Part:
    """One process and its outcome."""
    name: str
    result: str = "passed"  # or: failed, crashed, killed, absent
    seconds: float = 0.0
    passed: int = 0
    skipped: int = 0
    failed: list = field(default_factory=list)  # names of tests
    cause: str = ""  # from the first line of the log that names one
    log: str = ""


class Check:
    """Runs parts and keeps their results, with logs in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.parts = []

    def run(self, name, command, limit):
        part = Part(name, log=re.sub(r"\W+", "-", name) + ".log")
        print(f"== {name}", file=sys.stderr, flush=True)
        began = time.monotonic()
        path = self.folder / part.log
        with open(path, "wb") as log:
            try:
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                           stdin=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                log.write(f"Error: {error}\n".encode())
                part.result = "absent"
            else:
                part.result = outcome(process, limit)
        part.seconds = round(time.monotonic() - began, 1)
        read_log(part, path.read_text(errors="replace"), limit)
        if part.result != "passed":
            print(f"   {part.result}: {part.cause}", file=sys.stderr, flush=True)
        self.parts.append(part)
        return part


def outcome(process, limit):
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        status = None
    try:
        os.killpg(process.pid, signal.SIGKILL)  # its children that still run
    except ProcessLookupError:
        pass
    process.wait()
    if status is None:
        return "killed"
    return "passed" if status == 0 else "failed" if status > 0 else "crashed"


def read_log(part, text, limit):
    part.passed = len(re.findall(r"^\[       OK \]", text, re.M))
    part.skipped = len(re.findall(r"^\[  SKIPPED \] .* ms\)$", text, re.M))
    part.failed = re.findall(r"^\[  FAILED  \] (\S+?),? .*ms\)$", text, re.M)
    if part.result == "passed":
        return
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [i for i, line in enumerate(lines) if CAUSE.search(line)]
    if part.result == "killed":
        part.cause = f"not done after {limit} s; the last line: {lines[-1] if lines else ''}"
    elif named:
        # GoogleTest prints the location in one line and the failure in the next ones.
        part.cause = " ".join(lines[named[0]:named[0] + 4])[:400]
    else:
        part.cause = " ".join(lines[-2:])[:400] or "it printed nothing"


def found(folders, name):
    """Returns the program's path, or its path in the first folder if no folder contains it."""
    paths = [folder.resolve() / name for folder in folders]
    return str(next((path for path in paths if path.exists()), paths[0]))


def suites_of(program):
    try:
        listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={FILTER}"], text=True,
                                capture_output=True, timeout=SUITE_LIMIT, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.split("#")[0].strip() for line in listed.splitlines()
            if re.match(r"^\S+\.(\s|$)", line)]


def filter_of(suite):
    """Returns the filter for the tests of FILTER that belong to a suite ("Linear.")."""
    if any(word in suite for word in WORDS):
        return suite + "*" + WITHOUT
    return ":".join(f"{suite}*{word}*" for word in WORDS) + WITHOUT


def run_tests(check, programs):
    for name in TESTS:
        program = found(programs, f"test_{name}")
        whole = check.run(f"tests {name}", [program, f"--gtest_filter={FILTER}"], TEST_LIMIT)
        if whole.result in ("passed", "absent"):
            continue
        for suite in suites_of(program):
            check.run(f"tests {name}, {suite.rstrip('.')} alone",
                      [program, f"--gtest_filter={filter_of(suite)}"], SUITE_LIMIT)


def run_sanitizers(check, programs):
    tool = shutil.which("compute-sanitizer", path=os.environ["PATH"] + ":" + cuda_home() + "/bin")
    if tool is None:
        print("the sanitizers were left out: there is no compute-sanitizer here", file=sys.stderr)
        return
    for name in SANITIZERS:
        tests = SANITIZED + (NOT_CUBLAS if name == "racecheck" else "")
        for floor in SANITIZED_TESTS:
            check.run(f"{name} {floor}", [tool, "--tool", name, "--error-exitcode", "9",
                                          found(programs, f"test_{floor}"), f"--gtest_filter={tests}"],
                      SANITIZER_LIMIT)


def run_benches(check, programs):
    """Runs the benches and returns the rows of cuda_bench."""
    check.run("matrix products", [found(programs, "cuda_products_bench")], BENCH_LIMIT)
    rows = check.folder / "bench.json"
    part = check.run("bench", [found(programs, "cuda_bench"), "--json", str(rows)], BENCH_LIMIT)
    sys.stdout.write((check.folder / part.log).read_text(errors="replace"))
    try:
        return json.loads(rows.read_text())
    except (OSError, ValueError):
        return []


def run_comparison(check, programs):
    benches = Path(found(programs, "model_bench")).parent
    script = benches / "compare_cuda_pytorch.py"
    if not script.exists():
        script = Path(__file__).resolve().parents[1] / "bench" / "compare_cuda_pytorch.py"
    there = subprocess.run([sys.executable, "-c", "import torch, transformers"],
                           capture_output=True, check=False)
    if there.returncode != 0:
        print("the comparison with PyTorch was left out: python3 has no torch and transformers here",
              file=sys.stderr)
        return
    part = check.run("against PyTorch", [sys.executable, str(script), "--programs", str(benches),
                                         "--output", str(check.folder / "comparison.json")],
                     COMPARE_LIMIT)
    sys.stdout.write((check.folder / part.log).read_text(errors="replace"))


def cuda_home():
    return os.environ.get("CUDA_HOME", "/usr/local/cuda")


def gpu():
    """Returns nvidia-smi's description of the first GPU, or nothing without a driver."""
    asked = "name,driver_version,memory.total,clocks.max.sm"
    try:
        said = subprocess.run(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"],
                              text=True, capture_output=True, timeout=60, check=True).stdout
        return said.splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def look_first(device, parts, rows):
    """Returns one line that names the first failure, or else the row furthest from its bound."""
    if not device:
        return "nothing was tested: there is no NVIDIA driver here"
    for part in sorted((p for p in parts if p.result != "passed"), key=lambda p: " alone" not in p.name):
        what = part.failed[0] if part.failed else part.name
        return f"look first at {what} ({part.result}; {part.log}): {part.cause}"
    slow = min((row for row in rows if row.get("share") is not None), key=lambda row: row["share"],
               default=None)
    if slow is None:
        return "nothing failed"
    return (f"nothing failed; furthest from its bound: {slow['name']}, {100 * slow['share']:.0f} % "
            f"of {slow['bound']}")


def print_table(parts):
    width = max(len(part.name) for part in parts)
    print(f"\n{'part':{width}}  result   seconds  passed  failed  skipped")
    for part in parts:
        print(f"{part.name:{width}}  {part.result:8} {part.seconds:7.1f}  {part.passed:6}  "
              f"{len(part.failed):6}  {part.skipped:7}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, nargs="+", required=True,
                        help="folders of the test programs and benches")
    parser.add_argument("--results", type=Path, default=Path("gpu-check"),
                        help="folder for logs and gpu-check.json (default: gpu-check)")
    parser.add_argument("--no-sanitizer", action="store_true", help="leave compute-sanitizer out")
    parser.add_argument("--no-bench", action="store_true", help="leave the benches out")
    parser.add_argument("--no-compare", action="store_true", help="leave PyTorch out")
    options = parser.parse_args(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    check, rows, device = Check(options.results), [], gpu()
    print(device or "no NVIDIA driver here: every test will be skipped", flush=True)
    run_tests(check, options.programs)
    if not options.no_bench:
        rows = run_benches(check, options.programs)
    if not options.no_compare:
        run_comparison(check, options.programs)
    if not options.no_sanitizer:
        run_sanitizers(check, options.programs)
    print_table(check.parts)
    first = look_first(device, check.parts, rows)
    print(first)
    (options.results / "gpu-check.json").write_text(json.dumps(
        {"gpu": device, "parts": [asdict(part) for part in check.parts], "kernels": rows,
         "look_first": first}, indent=1) + "\n")
    return 0 if all(part.result == "passed" for part in check.parts) else 1


if __name__ == "__main__":
    sys.exit(main())
