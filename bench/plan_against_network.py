#!/usr/bin/env python3
"""Compares the step times that `onebit plan` predicts with those that bench/network.py measured.

    ./run bench plan                                   # build/network, of `./run bench network`
    python3 bench/plan_against_network.py --network DIR

The machine is measured with the bench's placement: `onebit doctor --output` runs on all ranks at
the same time, each on its core, and the median measurement counts. With more ranks than cores, only
one rank per core measures, and its rates are divided among the ranks of the core. Ranks that share
a core would not measure at the same moments, and would find rates that are too high. Points without
a limit of the link are left out, because a plan needs a bandwidth. Prints a table and writes
plan.md beside the results.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from network import ONEBIT_MODES, TORCH_MODES, duration, ordered, recipe
from network_lab import Link, NetworkLab, end_on_signals, rate_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
LATENCY = "50us"


def total(machine, compute):
    """Returns the seconds of a fixed mix of work, by which measurements are ordered."""
    costs = machine[compute]
    return sum(1 / costs[way]["products_flops_per_second"] for way in ("forward", "backward"))


def part_of(costs, parts):
    """Returns the costs for a rank that has one of `parts` equal parts of a machine."""
    return {key: part_of(value, parts) if isinstance(value, dict) else
            value / parts if key.endswith("_per_second") else
            value * parts if key.endswith("_seconds_per_element") else value
            for key, value in costs.items()}


def measured_machine(options, all_ranks, ranks_per_host, compute):
    """Returns the costs of a rank: the median of measurements that run at the same time."""
    hosts = max(1, min(all_ranks, os.cpu_count()) // ranks_per_host)
    ranks = hosts * ranks_per_host
    with tempfile.TemporaryDirectory() as place:
        words = f'exec "$0" doctor --threads 1 --output {place}/$RANK.json'
        with NetworkLab(ranks, Link(None, 0), pin=True, ranks_per_host=ranks_per_host) as lab:
            status = lab.run_plain(["sh", "-c", words, options.program], options.timeout,
                                   stdout=subprocess.DEVNULL)
        if status != 0:
            raise SystemExit(f"onebit doctor ended with {status}")
        machines = [json.loads(path.read_text()) for path in pathlib.Path(place).glob("*.json")]
    machines.sort(key=lambda machine: total(machine, compute))
    return part_of(machines[(len(machines) - 1) // 2], all_ranks / ranks)


def planned_step(options, setting, mode, ranks, rate, machine):
    """Returns the seconds per step that `onebit plan` predicts."""
    hosts = ranks // setting["ranks_per_host"]
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        values = argparse.Namespace(**setting, steps=options.steps)
        (folder / "recipe.json").write_text(json.dumps(recipe(values, mode, ranks)))
        (folder / "machine.json").write_text(json.dumps(machine))
        words = [options.program, "plan", "--recipe", folder / "recipe.json", "--hosts", str(hosts),
                 "--ranks-per-host", str(setting["ranks_per_host"]), "--bandwidth",
                 f"{rate_of(rate) / 1e6:g}Mb/s", "--latency", LATENCY, "--measured",
                 folder / "machine.json", "--json"]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"onebit plan: {done.stderr.strip()}")
    choices = json.loads(done.stdout)["plan"]["choices"]
    if mode in ONEBIT_MODES:
        return next(one for one in choices if one["of_recipe"])["compressed_step"]["seconds"]
    return next(one for one in choices if one["name"] == "bf16 averages")["dense_step"]["seconds"]


def rows_of(options, results):
    setting = {"ranks_per_host": 1, "compute": "f32", **results["setting"]}
    machines = {}
    for mode, ranks, rate, point in ordered(results):
        planned = mode not in TORCH_MODES and mode != "onebit-two" and rate_of(rate)
        if not planned or "failed" in point:
            continue
        if ranks not in machines:
            machines[ranks] = measured_machine(options, ranks, setting["ranks_per_host"],
                                               setting["compute"])
        step = planned_step(options, setting, mode, ranks, rate, machines[ranks])
        yield ranks, rate, mode, step, point["step"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/onebit")
    parser.add_argument("--network", type=pathlib.Path, default=ROOT / "build/network",
                        help="what bench/network.py wrote")
    parser.add_argument("--timeout", type=float, default=600, help="of a measurement, in seconds")
    options = parser.parse_args()
    options.steps = 5  # in the recipe (the time of a step does not depend on it)
    return options


def main():
    options = arguments()
    end_on_signals()
    path = options.network / "results.json"
    if not path.exists():
        raise SystemExit(f"{path}: not there: run `./run bench network` first, or give --network")
    lines = ["| ranks | link | mode | planned | measured | |", "|---|---|---|---|---|---|"]
    differences = []
    for ranks, rate, mode, planned, measured in rows_of(options, json.loads(path.read_text())):
        differences.append(abs(planned / measured - 1))
        lines.append(f"| {ranks} | {rate} | {mode} | {duration(planned)} | {duration(measured)} | "
                     f"{100 * (planned / measured - 1):+.0f} % |")
        print(lines[-1], flush=True)
    if not differences:
        raise SystemExit(f"{path}: has no point that a plan could be compared with")
    print(f"{len(differences)} points, at most {100 * max(differences):.0f} % apart, in the median "
          f"{100 * statistics.median(differences):.0f} %")
    (options.network / "plan.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
