#!/usr/bin/env python3
"""Resumes runs of 1-bit Adam on other numbers of ranks and with another freeze, and compares where they end.

    bench/resume_study.py --program build/onebit --data corpus/ --valid valid/ --output study/ --f32

The task is compression_study.py's. Runs of 1, 2 and 8 ranks freeze after a tenth of the steps and keep a
checkpoint of the warm-up and one of the compressed phase. Copies of them go on from either, as the
cases below say; the table has the masked-word loss on the whole held-out split at the end against that of
the run that was not interrupted. What is finished is not run again.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess

import compression_study as study

# (ranks of the first part, ranks of the second, in which phase it is taken up, freeze then: a share of
# the steps, or None: as it was)
CASES = [(2, 2, "warm-up", None), (2, 1, "warm-up", None), (2, 8, "warm-up", None),
         (2, 2, "compressed", None), (2, 1, "compressed", None), (2, 4, "compressed", None),
         (2, 8, "compressed", None), (8, 2, "compressed", None), (8, 1, "compressed", None),
         (1, 4, "compressed", None), (2, 2, "warm-up", 1 / 12), (2, 2, "warm-up", 1 / 5),
         (2, 2, "compressed", 1 / 2)]


def recipe(options, ranks, seed, freeze_share):
    made = study.recipe(options, "10%", ranks, seed)
    steps = made["run"]["steps"]
    # The fifteenth part of the steps lies in the warm-up, the fifth of these checkpoints is a third.
    made["run"].update(checkpoint_every=steps // 15, keep_last=16)
    if freeze_share is not None:
        made["optimizer"]["params"]["freeze_step"] = round(steps * freeze_share)
    return made


def train(options, folder, ranks, made, tag=None):
    """Whether the run in `folder` is finished; with `tag` it goes on from that checkpoint."""
    if (folder / "done").exists():
        return True
    path = folder / "recipe.json"
    path.write_text(json.dumps(made, indent=2) + "\n")
    command = ["mpirun", "--bind-to", "none", "--oversubscribe"]
    if os.getuid() == 0:
        command.append("--allow-run-as-root")
    command += ["-np", ranks, options.program, "pretrain", "--recipe", path, "--data", options.data,
                "--valid", options.valid, "--output", folder / "run",
                "--threads", max(1, options.cores // ranks)]
    if tag:
        command += ["--resume", tag]
    with open(folder / "log.txt", "w", encoding="utf-8") as log:
        ended = subprocess.run([str(part) for part in command], stdout=log, stderr=log, check=False,
                               env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    if ended.returncode == 0:
        (folder / "done").write_text("whole\n")
    else:
        print(f"{folder.name}: did not end, see {folder / 'log.txt'}")
    return ended.returncode == 0


def unbroken(options, ranks, seed):
    folder = options.output / f"unbroken-{ranks}-{seed}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    made = recipe(options, ranks, seed, None)
    return folder if train(options, folder, ranks, made) else None


def resumed(options, whole, case, seed):
    first, second, phase, freeze_share = case
    changed = "" if freeze_share is None else f"-freeze{round(100 * freeze_share)}"
    folder = options.output / f"{first}to{second}-{phase}{changed}-{seed}"
    made = recipe(options, second, seed, freeze_share)
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copytree(whole / "run", folder / "run")
    step = made["run"]["steps"] // (15 if phase == "warm-up" else 3)
    return folder if train(options, folder, second, made, f"global_step{step}") else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default="build/onebit")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--valid", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--recipe", type=pathlib.Path, default=study.ROOT / "bench/compression_study.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[42])
    parser.add_argument("--steps", type=int, help="default: the recipe's")
    parser.add_argument("--dropout", action="store_true", help="as the model's preset has it")
    parser.add_argument("--f32", action="store_true", help="compute in f32; default bf16")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="to share among the ranks")
    options = parser.parse_args()
    options.clip = 0
    rows = ["| seed | first on | then on | taken up in the | freeze after, then | held-out loss "
            "| against the unbroken run |", "|---|---|---|---|---|---|---|"]
    for seed in options.seeds:
        ends = {}
        for case in CASES:
            first, second, phase, freeze_share = case
            whole = unbroken(options, first, seed)
            if whole is None:
                continue
            if first not in ends:
                ends[first] = study.evaluate(options, whole)
                rows.append(f"| {seed} | {first} | - | - | - | {ends[first]:.4f} | |")
            folder = resumed(options, whole, case, seed)
            if folder is None:
                continue
            end = study.evaluate(options, folder)
            made = json.loads((folder / "recipe.json").read_text())
            freeze = made["optimizer"]["params"]["freeze_step"] if freeze_share else "as it was"
            rows.append(f"| {seed} | {first} | {second} | {phase} | {freeze} | {end:.4f} | "
                        f"{100 * (end / ends[first] - 1):+.2f} % |")
            (options.output / "resume.md").write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
