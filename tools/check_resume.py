#!/usr/bin/env python3
"""Kills training at random moments and checks that it resumes exactly.

One run is not interrupted. Another, with the same recipe and seed, is killed repeatedly (SIGKILL to
all its processes, each time after a random delay) and resumed until it finishes. Every line of the
second run's metrics.jsonl must then equal the first run's in step, losses, rates and norms, bit for
bit. Checkpoints are written every few steps, so that many kills interrupt a write.

    tools/check_resume.py --program build/onebit --data STORE --recipe recipes/bert-tiny.json \
        --ranks 2 --kills 20 --work /tmp/resume [--set key=value ...]
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

COMPARED = ["samples", "loss", "metrics", "learning_rate", "gradient_norm",
            "clip_coefficient", "skipped_steps", "phase"]


def command(args, output, resume):
    line = []
    if args.ranks > 1:
        line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "-np", str(args.ranks)]
    line += [args.program, "pretrain", "--recipe", args.recipe, "--data", args.data,
             "--output", str(output)]
    for setting in args.set:
        line += ["--set", setting]
    return line + (["--resume"] if resume else [])


def kill_tree(process):
    """Sends SIGKILL to the process and all its descendants."""
    children = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True,
                              check=False).stdout.split()
    for child in children:
        kill_tree(int(child))
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def read_metrics(folder):
    steps = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "step":
            if record["step"] in steps:
                sys.exit(f"{folder}: step {record['step']} is in metrics.jsonl twice")
            steps[record["step"]] = {key: record[key] for key in COMPARED}
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    args = parser.parse_args()
    work = pathlib.Path(args.work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    begin = time.time()
    log = open(work / "log", "wb")
    subprocess.run(command(args, work / "unbroken", False), check=True, stdout=log, stderr=log)
    duration = time.time() - begin

    chance = random.Random(args.seed)
    kills = during_write = resumed = 0
    while True:
        process = subprocess.Popen(command(args, work / "killed", True), stdout=log, stderr=log)
        delay = chance.uniform(0.05, 2.5 * duration / max(args.kills, 1)) if kills < args.kills \
            else 3600
        try:
            status = process.wait(timeout=delay)
            if status != 0:
                sys.exit(f"the resumed run failed with status {status}; see {work / 'log'}")
            if kills >= args.kills:
                break
            # The run finished before it was killed often enough: start it from scratch.
            shutil.rmtree(work / "killed")
            resumed = 0
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)
            process.wait()
            kills += 1
            during_write += any(work.glob("killed/*.partial"))
            resumed += (work / "killed" / "latest").exists()

    unbroken, killed = read_metrics(work / "unbroken"), read_metrics(work / "killed")
    if unbroken.keys() != killed.keys():
        sys.exit(f"other steps: {sorted(unbroken.keys() ^ killed.keys())[:10]}")
    for step, record in unbroken.items():
        if record != killed[step]:
            sys.exit(f"step {step} differs: {record} against {killed[step]}")
    phases = {record["phase"] for record in unbroken.values()}
    if not resumed or not during_write:
        sys.exit(f"nothing was shown: {resumed} kills after a checkpoint, {during_write} inside a "
                 "write; take a larger model, more frequent checkpoints or another --seed")
    print(f"{kills} kills ({resumed} after a checkpoint, {during_write} inside a checkpoint write), {args.ranks} rank(s), "
          f"{len(unbroken)} steps, phases {', '.join(sorted(phases))}: every step equal, bit for bit")


if __name__ == "__main__":
    main()
