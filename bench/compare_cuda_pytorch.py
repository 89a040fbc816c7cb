#!/usr/bin/env python3
"""Compares onebit's whole training step with PyTorch's on one NVIDIA GPU, in one table.

    bench/compare_cuda_pytorch.py [--minutes 8] [--output comparison.json]

bert-large in bf16, forward, backward and AdamW, dropout on: pre-training on sequences of 128 and of
512 tokens (with the decoder only on masked rows), and fine-tuning on SQuAD's windows of at most 384
tokens with XQuAD's lengths (bench/xquad_windows.txt). Each side uses its fastest micro-batch, found
by trial, and one update per micro-batch. PyTorch runs transformers' models with SDPA, torch.compile
and fused AdamW (pytorch_trials.py lists the choices in its favour), windows padded to 384, like the
reference, and grouped by length. onebit runs model_bench and squad_bench with packed windows. Rates
are medians. Shares are relative to the rate of torch.matmul on 8192^3 in the same run, and count
only operations on real tokens.

A part that fails is marked in its cell, and the rest continues. Needs Python 3.10 with torch and
transformers, and the programs, which are beside this file or in build/bench.

    bench/compare_cuda_pytorch.py --device cpu --preset bert-tiny      # the same path, in seconds
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_programs import BenchFailure, number_in, run_bench
from bert_shapes import PRESETS, training_flops
from window_batches import read_lengths

HERE = Path(__file__).resolve().parent
FIRST_TOKENS = 16384  # in the first micro-batch tried, as smaller ones do not fill a GPU
MOST_TRIALS = 6
# onebit's trials double the micro-batch until the rate grows by less than this factor. PyTorch's
# trials continue until its memory is full.
WORTHWHILE = 1.02
ONEBIT_SECONDS = 60.0  # for one run of a bench program
ONEBIT_SHARE = 0.25  # of a case's time


class Case:
    """One kind of training: sequences of `tokens`, or windows of the given lengths."""

    def __init__(self, name, tokens, masked=0, windows=None):
        self.name, self.tokens, self.masked, self.windows = name, tokens, masked, windows
        self.onebit, self.pytorch, self.notes = [], [], []

    def flops(self, preset):
        """Returns the mean operations of a sequence, without padding."""
        lengths = read_lengths(self.windows) if self.windows else [self.tokens]
        return sum(training_flops(preset, n, self.masked) for n in lengths) / len(lengths)

    def micros(self, options):
        if options.micro:
            return options.micro
        first = 1 << (FIRST_TOKENS // self.tokens).bit_length() - 1
        return [first << i for i in range(MOST_TRIALS)]


def cases_of(options):
    cases = {"128": Case("pre-training, 128", 128, masked=20),
             "512": Case("pre-training, 512", 512, masked=77),
             "squad": Case("SQuAD, 384", 384, windows=options.windows)}
    return [cases[name] for name in options.cases]


def best(trials, kind=None):
    """Returns the fastest successful trial of a kind, or None."""
    done = [t for t in trials if "rate" in t and (kind is None or t["case"] == kind)]
    return max(done, key=lambda t: t["rate"], default=None)


def run_onebit(case, options, ends):
    """Doubles the micro-batch while that is faster. Appends to case.onebit."""
    for micro in case.micros(options):
        flags = {"preset": options.preset, "compute": options.compute, "device": options.device,
                 "batch": micro, "rounds": options.rounds, "threads": options.threads}
        if case.windows:
            whole = max(1, len(read_lengths(case.windows)) // micro)
            flags |= {"windows": case.windows, "micro": micro, "max-length": case.tokens,
                      "steps": min(options.steps or whole, whole)}
        else:
            flags |= {"tokens": case.tokens, "masked": case.masked, "steps": options.steps or 5}
        trial = {"case": "onebit", "micro": micro}
        program = options.programs / ("squad_bench" if case.windows else "model_bench")
        before = best(case.onebit)
        began = time.monotonic()
        try:
            printed = run_bench(program, flags, max(10.0, min(ONEBIT_SECONDS, ends - began)))
            trial["rate"] = number_in(printed, r"median of \d+ \w+: ([\d.]+)")
        except BenchFailure as error:
            trial["failed"] = "out of memory" if "out of memory" in str(error) else str(error)
        trial["seconds"] = time.monotonic() - began
        case.onebit.append(trial)
        print(described(case, "onebit", trial), file=sys.stderr, flush=True)
        if "failed" in trial or before and trial["rate"] < WORTHWHILE * before["rate"]:
            break
        if time.monotonic() + 1.5 * trial["seconds"] > ends:
            break


def pytorch_command(case, options, seconds):
    words = [sys.executable, str(HERE / "pytorch_trials.py")]
    flags = {name: getattr(options, name) for name in
             ("preset", "device", "compute", "precision", "compile", "mode", "threads", "rounds",
              "steps")}
    flags |= {"tokens": case.tokens, "masked": case.masked, "seconds": seconds}
    if case.windows:
        flags["windows"] = case.windows
    for name, value in flags.items():
        words += [f"--{name}", str(value)]
    return [*words, "--micro", *map(str, case.micros(options))]


def run_pytorch(case, options, ends):
    """Runs pytorch_trials.py until it ends or the time is over. Returns its reports."""
    seconds = max(30.0, ends - time.monotonic())
    # The compiler's caches are in a temporary folder: a killed process may leave an incomplete
    # file, on which the next process would fail.
    with tempfile.TemporaryFile("w+") as reported, tempfile.TemporaryFile("w+") as errors, \
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        caches = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
        # A new session, with which torch.compile's workers are killed.
        process = subprocess.Popen(pytorch_command(case, options, 0.85 * seconds), stdout=reported,
                                   stderr=errors, start_new_session=True,
                                   env={**os.environ, **caches})
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        reported.seek(0)
        lines = [json.loads(line) for line in reported if line.startswith("{") and line.endswith("}\n")]
        errors.seek(0)
        last_words = (errors.read().strip() or "nothing").splitlines()[-1]
    if status is None:
        case.notes.append(f"ended after {seconds:.0f} s, before it was done")
    elif status != 0:
        case.notes.append(f"ended with status {status}: {last_words[:300]}")
    case.pytorch = [fact for fact in lines if fact["what"] == "trial"]
    case.notes += [fact["note"] for fact in lines if fact["what"] == "note"]
    for trial in case.pytorch:
        print(described(case, "PyTorch", trial), file=sys.stderr, flush=True)
    return lines


def described(case, who, trial):
    how = {"onebit": "", "pretraining": ""}.get(trial["case"], ", " + trial["case"])
    how += f", compiled: {trial['compiled']}" if "compiled" in trial else ""
    how += f", SDPA: {trial['sdpa']}" if trial.get("sdpa", "default") != "default" else ""
    came = f"{trial['rate']:.1f}/s" if "rate" in trial else trial["failed"]
    return (f"{case.name}: {who}{how}, micro-batch {trial['micro']}: {came} "
            f"({trial['seconds']:.0f} s)")


def cells(trials, kind, share_of):
    """Returns the cells rate, compilation, micro-batch and share, or the failure."""
    found = best(trials, kind)
    if found is None:
        failed = [t["failed"] for t in trials if t["case"] == kind and "failed" in t]
        short = "out of memory" if failed == ["out of memory"] else "failed" if failed else "no rate"
        return [short, "", "", ""]
    return [f"{found['rate']:.1f}", found.get("compiled", ""), str(found["micro"]),
            share_of(found["rate"])]


def rows_of(case, preset, ceiling):
    """Returns one row, or for windows one for each kind of padding."""
    def share_of(rate):
        return f"{100 * rate * case.flops(preset) / ceiling:.0f} %" if ceiling else "?"

    kinds = ("padded", "grouped") if case.windows else ("pretraining",)
    ours = cells(case.onebit, "onebit", share_of)
    for kind in kinds:
        theirs, mine = best(case.pytorch, kind), best(case.onebit)
        ratio = f"{mine['rate'] / theirs['rate']:.2f}" if theirs and mine else "?"
        name = f"{case.name}, {kind}" if case.windows else case.name
        yield [name, *cells(case.pytorch, kind, share_of), ours[0], *ours[2:], ratio]


def print_table(rows):
    head = ["sequences/s", "PyTorch", "compiled", "micro", "of ceiling", "onebit", "micro",
            "of ceiling", "ratio"]
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for row in table:
        aligned = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        print("  ".join(aligned).rstrip())


def report(options, cases, machine, ceiling):
    print(f"{options.preset}, {options.compute}, {machine.get('device') or options.device}, "
          f"PyTorch {machine.get('torch', 'absent')}; the ceiling, torch.matmul: "
          + (f"{ceiling / 1e12:.1f} TFLOP/s" if ceiling else "not measured"))
    print_table([row for case in cases for row in rows_of(case, options.preset, ceiling)])
    for case in cases:
        for who, trials in (("PyTorch", case.pytorch), ("onebit", case.onebit)):
            for trial in trials:
                if "failed" in trial:
                    print(described(case, who, trial))
        for note in case.notes:
            print(f"{case.name}: PyTorch: {note}")
    if not options.output:
        return
    written = {"preset": options.preset, "compute": options.compute, "machine": machine,
               "precision": options.precision, "ceiling_tflops": ceiling and ceiling / 1e12,
               "cases": []}
    for case in cases:
        ours = best(case.onebit)
        ratios = {kind: ours["rate"] / best(case.pytorch, kind)["rate"]
                  for kind in {t["case"] for t in case.pytorch}
                  if ours and best(case.pytorch, kind)}
        written["cases"].append({"name": case.name, "flops_a_sequence": case.flops(options.preset),
                                 "ratio": ratios, "onebit": case.onebit, "pytorch": case.pytorch,
                                 "notes": case.notes})
    Path(options.output).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def compare(options):
    """Runs all cases. Returns whether each has the rates of both sides."""
    cases = cases_of(options)
    ends = time.monotonic() + 60 * options.minutes
    machine, ceilings = {}, []
    for number, case in enumerate(cases):
        began = time.monotonic()
        share = (ends - began) / (len(cases) - number)
        reported = run_pytorch(case, options, began + (1 - ONEBIT_SHARE) * share)
        machine = next((fact for fact in reported if fact["what"] == "machine"), machine)
        if machine and machine["device"] is None:
            print("no CUDA device here: nothing was compared")
            return True
        ceilings += [1e12 * fact["tflops"] for fact in reported if fact["what"] == "ceiling"]
        run_onebit(case, options, began + share)
    # Each case's process measured the ceiling. The highest one gives the lowest shares.
    report(options, cases, machine, max(ceilings, default=None))
    return all(best(case.onebit) and best(case.pytorch) for case in cases)


def main():
    beside = HERE if (HERE / "model_bench").exists() else HERE.parent / "build" / "bench"
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=8, help="for everything")
    parser.add_argument("--output", help="write the same as JSON")
    parser.add_argument("--cases", nargs="+", default=["128", "512", "squad"],
                        choices=("128", "512", "squad"))
    parser.add_argument("--preset", default="bert-large", choices=PRESETS)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--programs", type=Path, default=beside, help="model_bench, squad_bench")
    parser.add_argument("--windows", default=str(HERE / "xquad_windows.txt"), help="lengths")
    parser.add_argument("--precision", default="bf16", choices=("bf16", "autocast"),
                        help="PyTorch's: bf16 weights beside f32 masters, or autocast")
    parser.add_argument("--compile", choices=("none", "layers", "all"),
                        help="PyTorch's: the layer alone, or the whole model as well "
                             "(default: all; on the CPU none)")
    parser.add_argument("--mode", default="default", help="torch.compile's")
    parser.add_argument("--micro", type=int, nargs="+", help="micro-batches to try, both sides")
    parser.add_argument("--threads", type=int, default=1, help="of each, with --device cpu")
    parser.add_argument("--rounds", type=int, default=5, help="the median of so many")
    parser.add_argument("--steps", type=int, default=0, help="a round; 0: 5, or windows' epoch")
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    options.compute = "f32" if on_cpu else "bf16"
    options.compile = options.compile or ("none" if on_cpu else "all")
    if on_cpu:
        options.micro = options.micro or [4]
        options.steps = options.steps or 2
        options.rounds = min(options.rounds, 3)
    return 0 if compare(options) else 1


if __name__ == "__main__":
    sys.exit(main())
