#!/usr/bin/env python3
"""Pre-trains one model with Adam and with 1-bit Adam or 0/1 Adam, or with LAMB and 1-bit LAMB, in
pairs with the same seed and samples, at several numbers of ranks. Writes tables (Markdown) and a
picture (SVG). Runs whose names start with "deepspeed" use DeepSpeed's arithmetic
(bench/deepspeed_pretrain.cc), those with "muon" use Muon (bench/muon_pretrain.cc).

    bench/compression_study.py --program build/onebit --data corpus/ --valid valid/ --output study/

The task must leave the first plateau (word frequencies), on which almost all optimizers are equal,
and must leave it early: if a run leaves it at a third of its steps or later, this step determines
the final loss, and it depends on seed and rounding. With the default, bench/compression_study.json
on the demo's text with 1,024 words, every seed leaves it at a fifth of the run. The final loss is
comes from the whole held-out split (`onebit evaluate`), the curves come from the run itself. The
tables contain the mean of the paired differences and its standard error. Finished runs are not
repeated, so the command can be run again with more --ranks, --runs or --seeds.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEEPSPEED = "deepspeed"


def optimizers(steps, rate):
    def named(kind, **params):
        return {"type": kind, "params": {"lr": rate, "weight_decay": 0.01, **params}}

    return {
        "adam": named("AdamW"),
        "10%": named("OneBitAdam", freeze_step=steps // 10),
        "auto": named("OneBitAdam", freeze_step="auto"),
        "01": named("ZeroOneAdam", var_freeze_step=steps // 10, local_step_scaler=steps // 3),
        "01half": named("ZeroOneAdam", var_freeze_step=steps // 2, local_step_scaler=steps // 3),
        "01all": named("ZeroOneAdam", var_freeze_step=steps),
        "lamb": named("Lamb"),
        "lamb10%": named("OneBitLamb", freeze_step=steps // 10),
        "lambauto": named("OneBitLamb", freeze_step="auto"),
        "muon": named("AdamW"),
        "muon10%": named("OneBitAdam", freeze_step=steps // 10),
    }


def family_of(name):
    """Returns the dense optimizer of a run's family."""
    return next((dense for dense in ("lamb", "muon") if name.startswith(dense)), "adam")


def arithmetic_of(name):
    """Returns a run's name without the prefix "deepspeed", and whether it had this prefix."""
    return name.removeprefix(DEEPSPEED), name.startswith(DEEPSPEED)


def rival_of(name):
    """Returns the run with which `name` is compared."""
    dense = family_of(arithmetic_of(name)[0])
    if name == "muon":
        return "adam"
    return dense + "-clip" if "-clip" in name else dense


def rate_of(options, family):
    """Returns the requested learning rate, or None for the recipe's."""
    if family == "lamb":
        return options.lamb_rate
    return options.muon_rate if family == "muon" else options.rate


def ranks_per_node(name, ranks):
    """Returns the ranks per node. On two levels there are two simulated nodes."""
    return max(1, ranks // 2) if name.endswith("-two") else ranks


def clipping(name, norm):
    """Returns the recipe's keys for no clipping, "-clip" (1-bit Adam: by bucket) or
    "-clip-exact"."""
    keys = {}
    if "-clip" in name:
        keys["gradient_clipping"] = norm
    if name.endswith("-clip-exact"):
        keys["run"] = {"clip": "exact"}
    return keys


def recipe(options, name, ranks, seed):
    base = json.loads(options.recipe.read_text())
    steps = options.steps or base["run"]["steps"]
    name = arithmetic_of(name)[0]
    asked_rate = rate_of(options, family_of(name))
    if asked_rate:
        base["scheduler"]["params"]["warmup_max_lr"] = asked_rate
    rate = asked_rate or base["optimizer"]["params"]["lr"]
    batch = base["train_batch_size"]
    base.update(
        train_micro_batch_size_per_gpu=batch // ranks,
        gradient_accumulation_steps=1,
        communication_data_type="fp32",
        optimizer=optimizers(steps, rate)[name.split("-")[0]],
        bf16={"enabled": not options.f32})
    base["scheduler"]["params"]["total_num_steps"] = steps
    if not options.dropout:
        base["model"].update(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    base["run"].update(steps=steps, seed=seed, checkpoint_every=0, keep_last=1,
                       evaluate_every=max(1, steps // 6))
    clip = clipping(name, options.clip)
    base["run"].update(clip.pop("run", {}))
    if name.endswith("-two"):
        base["run"]["levels"] = "two"
    base.update(clip)
    return base


def launch(options, folder, ranks, made, more=(), per_node=1, program=None):
    """Trains with the recipe `made` in folder/run, with `more` arguments. Returns whether
    it succeeded, which it records in the file folder/done."""
    path = folder / "recipe.json"
    path.write_text(json.dumps(made, indent=2) + "\n")
    threads = max(1, options.cores // ranks)
    command = ["mpirun", "--bind-to", "none", "--oversubscribe"]
    if os.getuid() == 0:
        command.append("--allow-run-as-root")
    command += ["-np", ranks, program or options.program, "pretrain", "--recipe", path,
                "--data", options.data, "--valid", options.valid, "--output", folder / "run",
                "--threads", threads, *more]
    # Ranks that share a core must not spin while they wait.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive",
                   "ONEBIT_RANKS_A_NODE": str(per_node)}
    with open(folder / "log.txt", "w", encoding="utf-8") as log:
        ended = subprocess.run([str(part) for part in command], stdout=log, stderr=log,
                               env=environment, check=False)
    if ended.returncode == 0:
        (folder / "done").write_text("whole\n")
    else:
        print(f"{folder.name}: did not end, see {folder / 'log.txt'}")
    return ended.returncode == 0


def train(options, name, ranks, seed):
    folder = options.output / f"{name}-{ranks}-{seed}"
    if (folder / "done").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program, more = options.program, []
    if arithmetic_of(name)[1]:
        program = options.deepspeed_program
    elif family_of(name) == "muon":
        program = options.muon_program
        words = zip(("--sends", "--lead"), name.split("-")[1:])
        more = [word for pair in words for word in pair]
    launch(options, folder, ranks, recipe(options, name, ranks, seed), more,
           per_node=ranks_per_node(name, ranks), program=program)
    return folder


def evaluate(options, folder):
    """Returns the MLM loss of the trained model on the whole held-out split."""
    path = folder / "evaluation.json"
    if not path.exists():
        command = [options.program, "evaluate", folder / "run", "--data", options.valid, "--json"]
        path.write_text(subprocess.run([str(part) for part in command], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout)
    return json.loads(path.read_text())["mlm_loss"]


def read(options, folder):
    with open(folder / "run" / "metrics.jsonl", encoding="utf-8") as text:
        lines = [json.loads(line) for line in text]
    steps = [line for line in lines if line["kind"] == "step"]
    compressed = [line for line in steps if line["phase"] == "compressed"]
    held_out = {line["step"]: line["held_out"]["mlm_loss"] for line in lines if "held_out" in line}
    mean, left = None, None
    for line in steps:
        loss = line["metrics"]["mlm_loss"]
        mean = loss if mean is None else 0.98 * mean + 0.02 * loss
        if left is None and mean < options.left:
            left = line["step"]
    return {
        "held_out": held_out,
        "end": evaluate(options, folder),
        "left": left,
        "freeze": compressed[0]["step"] - 1 if compressed else None,
        "compressed": share(compressed) if compressed else None,
        "whole": share(steps),
    }


def share(lines):
    """Returns by what factor fewer bytes were sent than by averaging 16-bit gradients."""
    sent = sum(line["wire_bytes"] for line in lines)
    return sum(line["wire_bytes_dense16"] for line in lines) / sent if sent else None


def mean_and_error(values, digits):
    """Returns two cells of a table, or "-" if there are too few values."""
    if not values:
        return "- | -"
    mean = f"{statistics.fmean(values):+.{digits}f} %"
    if len(values) == 1:
        return f"{mean} | -"
    return f"{mean} | {statistics.stdev(values) / math.sqrt(len(values)):.{digits}f} %"


def runs_table(results):
    rows = ["| run | ranks | seed | warm-up ends | leaves the plateau | held-out MLM loss at the end "
            "| bytes in the compressed phase | in the whole run |", "|---|---|---|---|---|---|---|---|"]
    for (name, ranks, seed), result in sorted(results.items()):
        sent, whole = (f"1/{result[phase]:.2f}" if result[phase] else "-"
                       for phase in ("compressed", "whole"))
        rows.append(f"| {name} | {ranks} | {seed} | {result['freeze'] or '-'} | {result['left'] or '-'} | "
                    f"{result['end']:.4f} | {sent} | {whole} |")
    return "\n".join(rows) + "\n"


def dense_result(results, name, ranks, seed):
    """Returns the result of the run with which this one is compared, or None."""
    rival = rival_of(name)
    rivals = [key for key in results if key[0] == rival and key[2] == seed]
    if name == rival:
        rivals = [key for key in rivals if key[1] < ranks]
    if not rivals:
        return None
    return results[min(rivals, key=lambda key: (key[1] != ranks, key[1]))]


def pairs_table(results):
    """Compares each run with Adam's or LAMB's of the same seed, at the same number of ranks or else
    the fewest. Dense runs are compared with those at the fewest ranks, which shows the effect of
    rounding."""
    rows = ["| run | ranks | pairs | loss against the dense run's | standard error | each | leaves "
            "the plateau, against them | standard error | bytes in the whole run |",
            "|---|---|---|---|---|---|---|---|---|"]
    for name, ranks in sorted({key[:2] for key in results}):
        loss, left, whole = {}, [], []
        for (other, of_ranks, seed), result in results.items():
            dense = dense_result(results, name, ranks, seed)
            if (other, of_ranks) != (name, ranks) or dense is None:
                continue
            loss[seed] = 100 * (result["end"] / dense["end"] - 1)
            whole += [result["whole"]] if result["whole"] else []
            if result["left"] and dense["left"]:
                left.append(100 * (result["left"] / dense["left"] - 1))
        if loss:
            each = ", ".join(f"{seed}: {change:+.2f}" for seed, change in loss.items())
            sent = f"1/{statistics.fmean(whole):.2f}" if whole else "-"
            rows.append(f"| {name} | {ranks} | {len(loss)} | {mean_and_error([*loss.values()], 2)} | "
                        f"{each} % | {mean_and_error(left, 1)} | {sent} |")
    return "\n".join(rows) + "\n"


def picture(results):
    width, height, left, bottom = 860, 480, 60, 40
    points = [(s, l) for r in results.values() for s, l in r["held_out"].items() if s > 0]
    last, low, high = max(s for s, _ in points), min(l for _, l in points), max(l for _, l in points)
    high = max(high, low + 1e-3)
    colours = ["#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00"]
    names = list(dict.fromkeys(name for name, _, _ in results))

    def place(step, loss):
        x = left + (width - left - 220) * step / last
        y = 20 + (height - 20 - bottom) * (high - loss) / (high - low)
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>']
    for tick in range(6):
        loss = low + (high - low) * tick / 5
        x, y = place(0, loss).split(",")
        parts.append(f'<line x1="{x}" x2="{width - 220}" y1="{y}" y2="{y}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y}" text-anchor="end">{loss:.2f}</text>')
        x = place(last * tick / 5, low).split(",")[0]
        parts.append(f'<text x="{x}" y="{height - 15}" text-anchor="middle">{last * tick // 5}</text>')
    legend = {}
    for (name, ranks, _), result in results.items():
        dash = "" if ranks <= 2 else f' stroke-dasharray="{ranks}"'
        style = f'stroke="{colours[names.index(name) % len(colours)]}" stroke-width="1.2"{dash}'
        line = " ".join(place(s, l) for s, l in sorted(result["held_out"].items()) if s > 0)
        parts.append(f'<polyline points="{line}" fill="none" {style}/>')
        legend.setdefault((name, ranks), style)
    for row, ((name, ranks), style) in enumerate(legend.items()):
        y = 30 + 18 * row
        parts.append(f'<line x1="{width - 205}" x2="{width - 180}" y1="{y}" y2="{y}" {style}/>'
                     f'<text x="{width - 174}" y="{y + 4}">{name}, {ranks} ranks</text>')
    parts.append(f'<text x="{left}" y="14">held-out MLM loss against the step</text></svg>')
    return "\n".join(parts) + "\n"


def common_parser(description, seeds):
    """Returns the options that all studies on this task share."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default="build/onebit")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--valid", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--recipe", type=pathlib.Path, default=ROOT / "bench" / "compression_study.json",
                        help="model, data, schedule and batch; its optimizer gives the learning rate")
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("--steps", type=int, help="default: the recipe's")
    parser.add_argument("--rate", type=float, help="learning rate of Adam; default: the recipe's")
    parser.add_argument("--dropout", action="store_true", help="as the model's preset has it")
    parser.add_argument("--f32", action="store_true", help="compute in f32; default bf16")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="to share among the ranks")
    return parser


def main():
    parser = common_parser(__doc__, [42, 2, 3, 4, 5])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--runs", nargs="+", default=["adam", "10%", "auto"],
                        help="of adam, 10%%, auto, 01, 01half, 01all (0/1 Adam whose variance follows "
                             "a tenth, a half and all of the updates), lamb, lamb10%%, lambauto; each also with -clip (in "
                             "the compressed phase by bucket), -clip-exact or -two (two levels: two "
                             "nodes of half of the ranks) behind it, or deepspeed before it, as "
                             "deepspeed10%%; and of muon, muon10%%-update, muon10%%-momentum, "
                             "muon10%%-whitened (what is sent at one bit), each also with the owner's "
                             "lead, as muon10%%-update-1.095")
    parser.add_argument("--deepspeed-program", type=pathlib.Path,
                        default="build/bench/deepspeed_pretrain",
                        help="trains the runs named deepspeed...")
    parser.add_argument("--muon-program", type=pathlib.Path, default="build/bench/muon_pretrain",
                        help="trains the runs named muon...")
    parser.add_argument("--muon-rate", type=float, help="the same of Muon")
    parser.add_argument("--lamb-rate", type=float, default=0.005, help="learning rate of LAMB")
    parser.add_argument("--clip", type=float, default=1.0, help="gradient norm that -clip clips at")
    parser.add_argument("--left", type=float, default=5.0,
                        help="the plateau is left when the running mean of the loss is below this")
    options = parser.parse_args()
    for name in options.runs:
        try:
            recipe(options, name, options.ranks[0], options.seeds[0])
        except KeyError as unknown:
            parser.error(f"--runs {name}: there is no run {unknown}; see --help")
    results, failed = {}, []
    for seed in options.seeds:
        for ranks in options.ranks:
            for name in options.runs:
                folder = train(options, name, ranks, seed)
                if (folder / "done").exists():
                    results[name, ranks, seed] = read(options, folder)
                    tables = pairs_table(results) + "\n" + runs_table(results)
                    (options.output / "table.md").write_text(tables)
                    (options.output / "curves.svg").write_text(picture(results))
                else:
                    failed.append(folder / "log.txt")
    if not results:
        sys.exit(f"no run has ended well; the first says why in {failed[0]}")
    print((options.output / "table.md").read_text())


if __name__ == "__main__":
    main()
