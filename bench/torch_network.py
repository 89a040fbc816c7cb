#!/usr/bin/env python3
"""Measures steps of a model of PyTorch by the rate of the network: OnebitAdam, and
DistributedDataParallel over Gloo without a hook, with its fp16 hook and with PowerSGD.

    PYTHONPATH=build/python build-python/venv/bin/python bench/torch_network.py --output build/torch-network

Two ranks run in network namespaces on this machine (tools/network_lab.py, as root), one core each.
Modes take turns in every round, and a ratio compares two steps of one round. Writes results.json, table.md and
curves.svg to --output. Rounds that are in results.json are not measured again, so the command can be
repeated with more --rounds or after an interruption.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import tempfile

from network_picture import picture
from network_quiet import wait_until_quiet
from torch_network_rank import MODES

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from network_lab import (CANNOT, CannotRun, Link, NetworkLab, end_on_signals,  # noqa: E402
                         rate_of)

RANKS = 2
COLOURS = {"alone": "", "onebit": "#d55e00", "ddp": "#3584c4", "ddp-fp16": "#56b4e9",
           "powersgd1": "#009e73", "powersgd4": "#e69f00"}
NAMES = {"alone": "no exchange", "onebit": "onebit.torch", "ddp": "DDP", "ddp-fp16": "DDP, fp16 hook",
         "powersgd1": "PowerSGD, rank 1", "powersgd4": "PowerSGD, rank 4"}


def measure(options, mode, rate):
    """Returns what rank 0 reports of the mode's steps."""
    command = [sys.executable, "-B", ROOT / "bench/torch_network_rank.py", "--mode", mode,
               "--steps", options.steps, "--batch", options.batch, "--width", options.width,
               "--layers", options.layers]
    with NetworkLab(RANKS, Link(rate_of(rate)), pin=True) as lab, \
            tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        status = lab.run_plain(command, options.timeout, stdout=said, stderr=said)
        said.seek(0)
        lines = said.read().splitlines()
    reports = [line for line in lines if line.startswith("{")]
    if status != 0 or not reports:
        raise SystemExit(f"{mode} at {rate}: status {status}: {' '.join(lines)[-600:]}")
    report = json.loads(reports[-1])
    report["step"] = statistics.median(report["seconds"])
    return report


def spread(values, scale, digits):
    """Returns "median (all)"."""
    shown = [f"{scale * value:.{digits}f}" for value in sorted(values)]
    middle = f"{scale * statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({', '.join(shown)})"


def rows_of(results, rate):
    """Returns {mode: its rounds}, of rounds in which every mode was measured."""
    modes = results["modes"]
    points = results["rates"].get(rate, {})
    rounds = min((len(points.get(mode, [])) for mode in modes), default=0)
    return {mode: points[mode][:rounds] for mode in modes} if rounds else {}


def table(results):
    """Returns the table: medians of rounds, with all of them in brackets."""
    lines = ["| link | mode | step, ms | against no exchange | against the fp16 hook | "
             "MB a rank sends | processor, ms |", "|---|---|---|---|---|---|---|"]
    for rate in results["rates"]:
        modes = rows_of(results, rate)
        for mode, points in modes.items():
            def ratio(rival, mine=points, modes=modes):
                if rival not in modes:
                    return "-"
                return spread([point["step"] / other["step"]
                               for point, other in zip(mine, modes[rival])], 1, 2)
            lines.append(
                f"| {rate} | {NAMES[mode]} | {spread([p['step'] for p in points], 1e3, 0)} | "
                f"{ratio('alone')} | {ratio('ddp-fp16')} | "
                f"{statistics.median(p['wire'] for p in points) / 1e6:.3f} | "
                f"{spread([p['processor'] for p in points], 1e3, 0)} |")
    return "\n".join(lines) + "\n"


def lines_of(results, batch):
    """Returns the picture's lines: samples per second by the logarithm of the rate."""
    rates = [rate for rate in results["rates"] if rows_of(results, rate)]
    if not rates:
        return {}
    logs = {rate: math.log(rate_of(rate)) for rate in rates if rate_of(rate)}
    if "none" in rates:
        logs["none"] = max(logs.values(), default=0) + math.log(4)
    low, high = min(logs.values()), max(logs.values())
    lines = {}
    for rate in rates:
        at = (logs[rate] - low) / (high - low) if high > low else 0.5
        for mode, points in rows_of(results, rate).items():
            step = statistics.median(point["step"] for point in points)
            lines.setdefault((mode, RANKS), []).append((rate, at, batch * RANKS / step))
    return lines


def write(options, results):
    path = options.output / "results.json"
    fresh = path.with_suffix(".partial")
    fresh.write_text(json.dumps(results, indent=1) + "\n")
    fresh.replace(path)
    (options.output / "table.md").write_text(table(results))
    if lines := lines_of(results, options.batch):
        title = (f"samples/s against the rate of the links: {options.layers} linear layers of "
                 f"{options.width}, {options.batch} samples a rank, one core each")
        (options.output / "curves.svg").write_text(picture(lines, title, COLOURS, NAMES))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/torch-network")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--rates", nargs="+", default=("200mbit", "1gbit", "none"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12, help="timed, of each mode and round")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="samples a rank")
    parser.add_argument("--timeout", type=float, default=600, help="of a mode, in seconds")
    parser.add_argument("--no-wait", action="store_true", help="measure on a busy machine")
    return parser.parse_args()


def open_results(options):
    setting = {name: getattr(options, name) for name in ("steps", "width", "layers", "batch")}
    path = options.output / "results.json"
    if not path.exists():
        return {"setting": setting, "modes": list(options.modes), "rates": {}}
    results = json.loads(path.read_text())
    if results["setting"] != setting or results["modes"] != list(options.modes):
        raise SystemExit(f"{path} was measured with {results['setting']} and {results['modes']}: "
                         "choose another --output")
    return results


def main():
    options = arguments()
    end_on_signals()
    options.output.mkdir(parents=True, exist_ok=True)
    results = open_results(options)
    for number in range(options.rounds):
        for rate in options.rates:
            points = results["rates"].setdefault(rate, {})
            for mode in options.modes:
                done = points.setdefault(mode, [])
                if len(done) > number:
                    continue
                if not options.no_wait and mode == options.modes[0]:
                    wait_until_quiet()
                done.append(measure(options, mode, rate))
                print(f"round {number + 1}, {rate}, {mode}: {1e3 * done[-1]['step']:.0f} ms, "
                      f"{done[-1]['wire'] / 1e6:.3f} MB", flush=True)
                write(options, results)
    print(table(results))


if __name__ == "__main__":
    try:
        main()
    except CannotRun as error:
        print(f"torch_network: {error}", file=sys.stderr)
        sys.exit(CANNOT)
