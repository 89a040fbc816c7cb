#!/usr/bin/env python3
"""Measures training steps by the rate of the network: onebit with 16-bit gradients and at one bit
per element, and PyTorch's DistributedDataParallel over Gloo, with and without its fp16 hook.

    ./run bench network                                         # everything that is here, bert-base
    ./run bench network --install-torch                         # PyTorch too: 5 GB into .venv
    ./run bench network --model bert-mini --rates 1gbit none --ranks 2 --modes onebit dense16
    ./run bench network --ranks 8 --ranks-per-host 4 --modes onebit onebit-two     # levels

Ranks run in network namespaces on this machine (tools/network_lab.py, as root), one core each.
Writes results.json, table.md, curves.svg and the programs' output (logs/) to --output. Points that
are in results.json are not measured again, so the command can be repeated with more points or after
an interruption. --again measures all of them.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from bert_shapes import PRESETS
from network_picture import COLOURS, picture
from network_quiet import wait_until_quiet
from network_text import make_store

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from network_lab import (CANNOT, CannotRun, Link, NetworkLab, delay_of,  # noqa: E402
                         end_on_signals, rate_of)

RATES = ("100mbit", "200mbit", "1gbit", "4gbit", "10gbit", "none")
MODES = tuple(COLOURS)
TORCH_MODES = ("ddp", "ddp-fp16")
ONEBIT_MODES = ("onebit", "onebit-clip", "onebit-two")  # -two: two levels
# In this number of steps after the freeze, the buckets' shares of the norm are not known yet, and
# gradients are clipped after the backward pass (docs/optimizers.md).
CLIPPED_LATE = 10
PACKAGES = ("torch", "transformers")


class PointFailure(Exception):
    """A point could not be measured. The message is the reason."""


def recipe(options, mode, ranks):
    optimizer = {"type": "AdamW", "params": {"lr": 1e-4, "weight_decay": 0.01}}
    steps = 1 + options.steps
    if mode in ONEBIT_MODES:
        optimizer["type"] = "OneBitAdam"
        optimizer["params"]["freeze_step"] = 2
        steps += 2
    clipping = {}
    if mode == "onebit-clip":
        clipping = {"gradient_clipping": 1.0}
        steps += CLIPPED_LATE
    return {
        **clipping,
        "train_batch_size": options.batch * ranks,
        "train_micro_batch_size_per_gpu": options.batch,
        "communication_data_type": "bf16",
        "bf16": {"enabled": options.compute == "bf16"},
        "optimizer": optimizer,
        "model": {"preset": options.model},
        "data": {"sequence_length": options.tokens, "short_sequence_probability": 0,
                 "max_predictions_per_sequence": round(0.15 * options.tokens)},
        "run": {"steps": steps, "keep_last": 1, "levels": "two" if mode == "onebit-two" else "one"},
        "tensorboard": {"enabled": False},
    }


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(text):
    """Parses a duration in onebit's format: "12.3 ms", "3m 05s"."""
    return sum(float(number) * UNITS[unit]
               for number, unit in re.findall(r"([\d.]+) ?([a-z]+)", text))


def expected_step(log, mode):
    name = "step, compressed" if mode in ONEBIT_MODES else "step"
    found = re.search(rf"^\s*{name}  +.*, expected (.*?)\s*$", log, re.MULTILINE)
    return seconds_of(found.group(1)) if found else None


def run_onebit(options, store, mode, lab, rate):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "recipe.json").write_text(json.dumps(recipe(options, mode, lab.ranks)))
        command = [options.program, "pretrain", "--recipe", folder / "recipe.json", "--data", store,
                   "--output", folder / "run", "--device", "cpu", "--threads", "1"]
        log = folder / "log.txt"
        with open(log, "w", encoding="utf-8") as file:
            status = lab.run(command, options.timeout, stdout=file, stderr=file)
        said = log.read_text(errors="replace")
        logs = options.output / "logs"
        logs.mkdir(exist_ok=True)
        (logs / f"{mode}-{lab.ranks}-{rate}.txt").write_text(said)
        if status != 0:
            raise PointFailure(f"status {status}: {' '.join(said.split())[-300:]}")
        lines = [json.loads(line) for line in open(folder / "run/metrics.jsonl", encoding="utf-8")]
    wanted = "compressed" if mode in ONEBIT_MODES else "dense"
    # The first step of a phase allocates what the others use.
    steps = [line for line in lines if line["kind"] == "step" and line["phase"] == wanted]
    steps = steps[-options.steps:]
    middle = statistics.median_low(line["seconds"]["step"] for line in steps)
    step = next(line for line in steps if line["seconds"]["step"] == middle)
    parts = step["seconds"]
    working = sum(parts[name] for name in ("data", "forward", "backward", "optimizer"))
    return {"step": middle, "waiting": max(0.0, middle - working), "expected":
            expected_step(said, mode), "wire_bytes": step["wire_bytes"],
            "between_bytes": step["wire_bytes"] - step.get("wire_bytes_inside_node", 0),
            "steps": [line["seconds"]["step"] for line in steps]}


def run_pytorch(options, mode, lab):
    command = [options.python, "-B", ROOT / "bench/network_pytorch.py", "--preset", options.model,
               "--batch", options.batch, "--tokens", options.tokens, "--masked",
               round(0.15 * options.tokens), "--steps", options.steps, "--compute", options.compute]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        status = lab.run_plain(command + (["--fp16"] if mode == "ddp-fp16" else []),
                               options.timeout, stdout=said, stderr=said)
        said.seek(0)
        lines = said.read().splitlines()
    reports = [line for line in lines if line.startswith("{")]
    if status != 0 or not reports:
        raise PointFailure(f"status {status}: {' '.join(' '.join(lines).split())[-300:]}")
    report = json.loads(reports[-1])
    step = statistics.median(report["seconds"])
    return {"step": step, "waiting": max(0.0, step - statistics.median(report["alone"])),
            "expected": None, "steps": report["seconds"], "torch": report["torch"]}


def measure(options, store, mode, ranks, rate):
    link = Link(rate_of(rate), options.delay)
    with NetworkLab(ranks, link, pin=True, ranks_per_host=options.ranks_per_host) as lab:
        point = (run_pytorch(options, mode, lab) if mode in TORCH_MODES
                 else run_onebit(options, store, mode, lab, rate))
    point["samples"] = options.batch * ranks / point["step"]
    return point


def torch_python(options):
    """Returns a Python with PyTorch, or None. Installs one if requested."""
    if options.install_torch:
        place = ROOT / ".venv"
        if not (place / "bin/python").exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin/pip", "install", "--quiet", *PACKAGES], check=True)
    for python in filter(None, (options.python, ROOT / ".venv/bin/python", sys.executable)):
        found = shutil.which(str(python))
        if found and subprocess.run([found, "-c", f"import {', '.join(PACKAGES)}"],
                                    capture_output=True, check=False).returncode == 0:
            return found
    return None


def setting(options):
    """Returns the settings that all points of a file share."""
    return {"model": options.model, "batch": options.batch, "tokens": options.tokens,
            "compute": options.compute, "delay": options.delay, "ranks_per_host": options.ranks_per_host}


def open_results(options):
    path = options.output / "results.json"
    if not path.exists():
        return {"setting": setting(options), "points": {}}
    results = json.loads(path.read_text())
    if {"ranks_per_host": 1, "compute": "f32", **results["setting"]} != setting(options):
        raise SystemExit(f"{path} was measured with {results['setting']}, not with "
                         f"{setting(options)}: choose another --output")
    return results


def duration(seconds):
    return "-" if seconds is None else f"{seconds:.3g} s" if seconds >= 1 else \
        f"{seconds * 1e3:.3g} ms"


def ordered(results):
    """Returns [(mode, ranks, rate, point)], in the order of the table."""
    points = [(*key.split("/"), point) for key, point in results["points"].items()]
    return sorted(((mode, int(ranks), rate, point) for mode, ranks, rate, point in points),
                  key=lambda one: (one[1], rate_of(one[2]) or math.inf, MODES.index(one[0])))


def table(results):
    rows = ["| ranks | link | mode | step | expected | waiting | MB to other hosts, a rank | "
            "samples/s | against dense16 |", "|---|---|---|---|---|---|---|---|---|"]
    measured = {(mode, ranks, rate): point for mode, ranks, rate, point in ordered(results)
                if "failed" not in point}
    for mode, ranks, rate, point in ordered(results):
        if "failed" in point:
            rows.append(f"| {ranks} | {rate} | {mode} | failed: {point['failed'][:80]} | | | | | |")
            continue
        rival = measured.get(("dense16", ranks, rate))
        ratio = f"{point['samples'] / rival['samples']:.2f}" if rival else "-"
        sent = point.get("between_bytes")
        rows.append(f"| {ranks} | {rate} | {mode} | {duration(point['step'])} | "
                    f"{duration(point['expected'])} | {duration(point['waiting'])} | "
                    f"{'-' if sent is None else f'{sent / 1e6:.3g}'} | "
                    f"{point['samples']:.3g} | {ratio} |")
    return "\n".join(rows) + "\n"


def lines_of(results):
    """Returns the picture's lines. Rates are placed by their logarithm, "none" after the
    highest."""
    points = [one for one in ordered(results) if "failed" not in one[3]]
    if not points:
        return {}
    logs = {rate: math.log(rate_of(rate)) for _, _, rate, _ in points if rate_of(rate)}
    if any(not rate_of(rate) for _, _, rate, _ in points):
        logs["none"] = max(logs.values(), default=0) + math.log(4)
    low, high = min(logs.values()), max(logs.values())
    lines = {}
    for mode, ranks, rate, point in points:
        at = (logs[rate] - low) / (high - low) if high > low else 0.5
        lines.setdefault((mode, ranks), []).append((rate, at, point["samples"]))
    return lines


def write(options, results):
    path = options.output / "results.json"
    fresh = path.with_suffix(".partial")
    fresh.write_text(json.dumps(results, indent=1) + "\n")
    fresh.replace(path)
    (options.output / "table.md").write_text(table(results))
    if lines := lines_of(results):
        title = (f"samples/s against the rate of the links: {options.model}, {options.batch} x "
                 f"{options.tokens} tokens a rank in {options.compute}, one core each")
        (options.output / "curves.svg").write_text(picture(lines, title))


def rate_name(text):
    rate_of(text)
    return text


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/onebit")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/network")
    parser.add_argument("--data", type=pathlib.Path, help="a token store; default: random words")
    parser.add_argument("--model", default="bert-base", choices=PRESETS)
    parser.add_argument("--batch", type=int, default=4, help="sequences a rank")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--compute", default="f32", choices=("f32", "bf16"),
                        help="bf16: PyTorch's autocast; for processors with bf16 instructions")
    parser.add_argument("--steps", type=int, default=5, help="measured, of each point")
    parser.add_argument("--rates", nargs="+", default=RATES, type=rate_name,
                        help="e.g. 100mbit 4gbit none")
    parser.add_argument("--delay", type=delay_of, default=0, help="from rank to rank, e.g. 1ms")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--ranks-per-host", type=int, default=1,
                        help="ranks that share a host's link and memory; onebit-two needs two")
    parser.add_argument("--modes", nargs="+", choices=MODES,
                        help="default: all, those on two levels with several ranks a host")
    parser.add_argument("--timeout", type=float, default=3600, help="of a point, in seconds")
    parser.add_argument("--again", action="store_true", help="measure what is there anew")
    parser.add_argument("--python", help="one that has torch and transformers")
    parser.add_argument("--install-torch", action="store_true", help="into .venv (5 GB)")
    return parser.parse_args()


def main():
    options = arguments()
    end_on_signals()
    options.output.mkdir(parents=True, exist_ok=True)
    results = open_results(options)
    modes = options.modes or [mode for mode in MODES
                              if mode != "onebit-two" or options.ranks_per_host > 1]
    if set(modes) & set(TORCH_MODES):
        options.python = torch_python(options)
        if not options.python:
            modes = [mode for mode in modes if mode not in TORCH_MODES]
            print(f"left out: {', '.join(TORCH_MODES)}; no Python here has torch and transformers "
                  "(--python names one, --install-torch makes one)")
    cores = len(os.sched_getaffinity(0))
    for ranks in options.ranks:
        if ranks > cores:
            print(f"{ranks} ranks share {cores} cores: compare modes, not numbers of ranks")
    store = options.data or make_store(options.program, options.output)
    for ranks in options.ranks:
        for rate in options.rates:
            for mode in modes:
                key = f"{mode}/{ranks}/{rate}"
                if not options.again and "step" in results["points"].get(key, {}):
                    continue
                wait_until_quiet()
                try:
                    results["points"][key] = measure(options, store, mode, ranks, rate)
                except PointFailure as error:
                    results["points"][key] = {"failed": str(error)}
                point = results["points"][key]
                print(f"{key}: " + (f"failed, {point['failed']}" if "failed" in point else
                                    f"{duration(point['step'])} a step"), flush=True)
                write(options, results)
    print(table(results))


if __name__ == "__main__":
    try:
        main()
    except CannotRun as error:
        print(f"network: {error}", file=sys.stderr)
        sys.exit(CANNOT)
