#!/usr/bin/env python3
"""Compares what models of PyTorch learn with OnebitAdam and with AdamW under DistributedDataParallel,
in pairs of the same seed and samples.

    PYTHONPATH=build/python build-python/venv/bin/python bench/torch_study.py --output build/torch-study

Ranks are processes of one thread each. The schedule is linear, and OnebitAdam's warm-up is 15 % of
the steps. PowerSGD has the same warm-up and one bucket. Writes results.json and table.md: the loss
on held-out samples, of every run, and the mean of the paired differences with its standard error.
Finished runs are not repeated, so the command can be run again with more --seeds, --tasks or
--optimizers. The task digits needs scikit-learn, or --digits with its file digits.csv.gz. Without
--text the tasks gpt and bert read onebit's own documents. Long runs read these several times, and
then the held-out loss also depends on how well a run remembers them.
"""

import argparse
import json
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch_tasks import TASKS, held_out_loss

WARMUP = 0.15
DECAY = 0.01
OPTIMIZERS = ("adamw", "onebit", "powersgd1", "powersgd4")
RIVAL = "adamw"


def prepare(options, model, rate):
    """Returns the network that computes losses, and the optimizer."""
    freeze = max(2, round(WARMUP * options.steps))
    if options.optimizer == "onebit":
        import onebit.torch as ot
        return model, ot.OnebitAdam(model.parameters(), lr=rate, freeze_step=freeze,
                                    weight_decay=DECAY, threads=1)
    # PowerSGD makes two collectives for each bucket, and Gloo mixes up the collectives of
    # several buckets.
    network = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=4096)
    if options.optimizer.startswith("powersgd"):
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(options.optimizer[-1]),
            start_powerSGD_iter=freeze)
        network.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return network, torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=DECAY)


def train(options):
    """One rank of a run. Rank 0 prints the result."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    task = TASKS[options.task](options)
    torch.manual_seed(options.seed)
    model = task.model()
    rate = options.rate or task.rate
    network, optimizer = prepare(options, model, rate)
    generator = torch.Generator().manual_seed(1000 * options.seed + rank)
    torch.manual_seed(1000 * options.seed + rank)  # dropout
    first = max(1, options.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(
        (step + 1) / first, (options.steps - step) / (options.steps - first)))
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss = network(task.sample(generator))
        loss.backward()
        optimizer.step()
        schedule.step()
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    others = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(others, flat)
    if rank == 0:
        print(json.dumps({"held_out": held_out_loss(task, model), "train": loss.item(),
                          "parameters": flat.numel(),
                          "ranks_equal": all(torch.equal(flat, other) for other in others)}),
              flush=True)
    dist.barrier()
    dist.destroy_process_group()


def run(options, task, optimizer, seed):
    """Returns the result of a run on ranks of their own processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-B", __file__, "--task", task, "--optimizer", optimizer, "--seed",
               str(seed), "--steps", str(options.steps)]
    if options.digits:
        command += ["--digits", str(options.digits)]
    if options.text:
        command += ["--text", str(options.text)]
    if options.rate:
        command += ["--rate", str(options.rate)]
    ranks = []
    for rank in range(options.ranks):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": options.ranks,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        ranks.append(subprocess.Popen(
            command, env=os.environ | {name: str(value) for name, value in variables.items()},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    said = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"{task}, {optimizer}, seed {seed}: {said[0][1][-2000:]}")
    return json.loads(said[0][0].splitlines()[-1])


def error_of(values):
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def table(results, options):
    """Returns the table of a study: for each task the seeds' losses, then the differences."""
    lines = []
    for task in options.tasks:
        runs = {optimizer: {seed: results[key]["held_out"] for seed in options.seeds
                            if (key := f"{task}/{optimizer}/{seed}") in results}
                for optimizer in options.optimizers}
        some = next((result for key, result in results.items() if key.startswith(task + "/")), None)
        if some is None:
            continue
        others = [optimizer for optimizer in options.optimizers if optimizer != RIVAL]
        lines += [f"**{task}**, {some['parameters']:,} parameters, {options.steps} steps:", "",
                  "| seed | " + " | ".join([RIVAL, *others]) + " |",
                  "|---|" + "---|" * (1 + len(others))]
        for seed in options.seeds:
            cells = [f"{runs[RIVAL].get(seed, math.nan):.4f}"]
            cells += [f"{runs[other].get(seed, math.nan):.4f}" for other in others]
            lines.append(f"| {seed} | " + " | ".join(cells) + " |")
        cells = ["-"]
        for other in others:
            both = [100 * (runs[other][seed] / runs[RIVAL][seed] - 1) for seed in options.seeds
                    if seed in runs[other] and seed in runs[RIVAL]]
            cells.append(f"{statistics.mean(both):+.2f} % ({error_of(both):.2f})" if both else "-")
        lines += [f"| against {RIVAL}, mean (standard error) | " + " | ".join(cells) + " |", ""]
    return "\n".join(lines)


def study(options):
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "results.json"
    stored = json.loads(path.read_text()) if path.exists() else {"steps": options.steps, "runs": {}}
    if stored["steps"] != options.steps:
        raise SystemExit(f"{path} has runs of {stored['steps']} steps, not of {options.steps}: "
                         "choose another --output")
    for seed in options.seeds:
        for task in options.tasks:
            for optimizer in options.optimizers:
                key = f"{task}/{optimizer}/{seed}"
                if key in stored["runs"]:
                    continue
                stored["runs"][key] = run(options, task, optimizer, seed)
                print(f"{key}: {stored['runs'][key]}", flush=True)
                path.write_text(json.dumps(stored, indent=1) + "\n")
                (options.output / "table.md").write_text(table(stored["runs"], options))
    print(table(stored["runs"], options))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/torch-study"))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=OPTIMIZERS)
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rate", type=float, help="default: the task's")
    parser.add_argument("--digits", type=pathlib.Path, help="scikit-learn's digits.csv.gz")
    parser.add_argument("--text", type=pathlib.Path, help="plain text, some megabytes")
    for name in ("--task", "--optimizer"):
        parser.add_argument(name, help=argparse.SUPPRESS)  # of a rank
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    if options.task:
        train(options)
    else:
        study(options)


if __name__ == "__main__":
    main()
