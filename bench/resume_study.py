#!/usr/bin/env python3
"""Resumes runs of 1-bit Adam with other numbers of ranks or another freeze, and compares the
results.

    bench/resume_study.py --program build/onebit --data corpus/ --valid valid/ --output study/ --f32

The task is compression_study.py's. Runs of 1, 2 and 8 ranks freeze after a tenth of the steps
and keep a checkpoint of the warm-up and one of the compressed phase. Copies of them resume from one
of these (CASES). The table compares their final masked-word loss on the whole held-out split with
the loss of the uninterrupted run. Finished runs are not repeated.
"""
import json
import shutil

import compression_study as study

# (ranks of the first part, ranks of the second, phase of the checkpoint, freeze of the second part:
# a share of the steps, or None if unchanged)
CASES = [(2, 2, "warm-up", None), (2, 1, "warm-up", None), (2, 8, "warm-up", None),
         (2, 2, "compressed", None), (2, 1, "compressed", None), (2, 4, "compressed", None),
         (2, 8, "compressed", None), (8, 2, "compressed", None), (8, 1, "compressed", None),
         (1, 4, "compressed", None), (2, 2, "warm-up", 1 / 12), (2, 2, "warm-up", 1 / 5),
         (2, 2, "compressed", 1 / 2)]


def recipe(options, ranks, seed, freeze_share):
    made = study.recipe(options, "10%", ranks, seed)
    steps = made["run"]["steps"]
    # The first checkpoint lies in the warm-up, the fifth in the compressed phase.
    made["run"].update(checkpoint_every=steps // 15, keep_last=16)
    if freeze_share is not None:
        made["optimizer"]["params"]["freeze_step"] = round(steps * freeze_share)
    return made


def unbroken(options, ranks, seed):
    folder = options.output / f"unbroken-{ranks}-{seed}"
    if (folder / "done").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = recipe(options, ranks, seed, None)
    return folder if study.launch(options, folder, ranks, made) else None


def resumed(options, whole, case, seed):
    first, second, phase, freeze_share = case
    changed = "" if freeze_share is None else f"-freeze{round(100 * freeze_share)}"
    folder = options.output / f"{first}to{second}-{phase}{changed}-{seed}"
    if (folder / "done").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(whole / "run", folder / "run")
    made = recipe(options, second, seed, freeze_share)
    step = made["run"]["steps"] // (15 if phase == "warm-up" else 3)
    resume = ["--resume", f"global_step{step}"]
    return folder if study.launch(options, folder, second, made, resume) else None


def main():
    options = study.common_parser(__doc__, [42]).parse_args()
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
