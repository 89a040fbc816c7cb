#!/usr/bin/env python3
"""Pre-trains one model with Adam and with each kind of 1-bit Adam, from the same seed and samples,
and writes what came of it: a table (Markdown) and a picture (SVG) of held-out losses.

    bench/compression_study.py --program build/onebit --data corpus/ --valid valid/ --output study/

A run that has been finished is not run again, one that was cut goes on: the command may be repeated,
with more --ranks or --runs.
"""
import argparse
import json
import os
import pathlib
import subprocess

ADAM = {"type": "AdamW", "params": {"weight_decay": 0.01}}


def onebit(freeze_step, rate=1, **params):
    return {"type": "OneBitAdam", "rate": rate,
            "params": {"weight_decay": 0.01, "freeze_step": freeze_step, **params}}


def runs_of(steps):
    tenth = steps // 10
    return {
        "adam": ADAM,
        "local-10%": onebit(tenth),
        "auto": onebit("auto"),
        "live-level-10%": onebit(tenth, variance="live_level"),
        "frozen-10%": onebit(tenth, variance="frozen"),
        "deepspeed-10%": onebit(tenth, parity="deepspeed"),
        "adam-high-rate": {**ADAM, "rate": 3},
        "frozen-5%-high-rate": onebit(steps // 20, rate=3, variance="frozen"),
        "local-5%-high-rate": onebit(steps // 20, rate=3),
    }


def recipe(options, optimizer):
    rate = options.rate * optimizer.get("rate", 1)
    params = {**optimizer["params"], "lr": rate}
    return {
        "train_batch_size": options.batch,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": True},
        # What is compared with exchanges without rounding.
        "communication_data_type": "fp32",
        "optimizer": {"type": optimizer["type"], "params": params},
        "scheduler": {"type": "linear", "params": {"lr": rate, "warmup_num_steps": options.steps // 20}},
        "model": {"preset": options.model},
        "data": {"sequence_length": options.length,
                 "max_predictions_per_sequence": round(0.15 * options.length),
                 "evaluation_samples": options.evaluation_samples},
        "run": {"steps": options.steps, "checkpoint_every": options.steps // 10,
                "evaluate_every": options.steps // 10, "keep_last": 1, "seed": options.seed,
                "watch_every": 1, "watch_tensors": "key.bias"},
    }


def train(options, name, ranks):
    folder = options.output / f"{name}-{ranks}"
    done = folder / "done"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recipe.json"
    path.write_text(json.dumps(recipe(options, runs_of(options.steps)[name]), indent=2) + "\n")
    command = ["mpirun", "--bind-to", "none", "--oversubscribe", "-np", str(ranks), options.program,
               "pretrain", "--recipe", path, "--data", options.data, "--valid", options.valid,
               "--output", folder / "run", "--threads", str(max(1, os.cpu_count() // ranks))]
    if (folder / "run" / "latest").exists():
        command.append("--resume")
    with open(folder / "log.txt", "a", encoding="utf-8") as log:
        if subprocess.run([str(part) for part in command], stdout=log, stderr=log).returncode == 0:
            done.write_text("whole\n")
        elif "had a gradient that is not finite" in pathlib.Path(log.name).read_text():
            done.write_text("diverged\n")
        else:
            print(f"{name}, {ranks} ranks: did not end, see {log.name}")
    return folder


def read(folder):
    lines = [json.loads(line) for line in open(folder / "run" / "metrics.jsonl", encoding="utf-8")]
    steps = [line for line in lines if "phase" in line]
    compressed = [line for line in steps if line["phase"] == "compressed"]
    dense = sum(line["wire_bytes_dense16"] for line in compressed)
    return {
        "diverged": "diverged" in (folder / "done").read_text(),
        "held_out": {line["step"]: line["held_out"]["mlm_loss"] for line in lines
                     if "held_out" in line},
        "freeze": compressed[0]["step"] - 1 if compressed else None,
        "update": max(line["watch"]["largest_update_over_rate"] for line in steps),
        "key_bias": max(line["watch"]["largest_value"] for line in steps),
        "bytes": dense / sum(line["wire_bytes"] for line in compressed) if compressed else None,
    }


def table(results):
    rows = ["| run | ranks | warm-up ends | held-out MLM loss, half way | at the end | against Adam "
            "| largest update / rate | largest key bias | bytes in the compressed phase |",
            "|---|---|---|---|---|---|---|---|---|"]
    for (name, ranks), result in results.items():
        losses = result["held_out"]
        last = max(losses)
        half = f"{losses[last // 2]:.4f}" if last // 2 in losses else "-"
        end = f"diverged after step {last}: " if result["diverged"] else ""
        rival = "adam-high-rate" if "high-rate" in name else "adam"
        base = [r for (n, _), r in sorted(results.items(), key=lambda item: item[0][1] != ranks)
                if n == rival and last in r["held_out"]]
        gap = f"{100 * (losses[last] / base[0]['held_out'][last] - 1):+.2f} %" if base else "-"
        rows.append(f"| {name} | {ranks} | {result['freeze'] or '-'} | {half} | "
                    f"{end}{losses[last]:.4f} | {gap} | {result['update']:.3g} | {result['key_bias']:.3g} | "
                    + (f"1/{result['bytes']:.2f} |" if result["bytes"] else "- |"))
    return "\n".join(rows) + "\n"


def picture(results):
    width, height, left, bottom = 860, 480, 60, 40
    points = [(s, l) for r in results.values() if not r["diverged"]
              for s, l in r["held_out"].items() if s > 0]
    last, low, high = max(s for s, _ in points), min(l for _, l in points), max(l for _, l in points)
    colours = ["#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"]
    names = list(dict.fromkeys(name for name, _ in results))

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
    for row, ((name, ranks), result) in enumerate(results.items()):
        dash = "" if ranks == 2 else f' stroke-dasharray="{ranks}"'
        line = " ".join(place(s, min(l, high)) for s, l in sorted(result["held_out"].items())
                        if s > 0)
        style = f'stroke="{colours[names.index(name) % len(colours)]}" stroke-width="1.6"{dash}'
        y = 30 + 18 * row
        parts.append(f'<polyline points="{line}" fill="none" {style}/>'
                     f'<line x1="{width - 205}" x2="{width - 180}" y1="{y}" y2="{y}" {style}/>'
                     f'<text x="{width - 174}" y="{y + 4}">{name}, {ranks} ranks</text>')
    parts.append(f'<text x="{left}" y="14">held-out MLM loss against the step</text></svg>')
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default="build/onebit")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--valid", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--model", default="bert-mini")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--runs", nargs="+", help="names as in the table; default: all")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--evaluation-samples", type=int, default=1000)
    options = parser.parse_args()
    names = options.runs or list(runs_of(options.steps))
    results = {}
    for ranks in options.ranks:
        for name in names:
            folder = train(options, name, ranks)
            if (folder / "done").exists():
                results[name, ranks] = read(folder)
                (options.output / "table.md").write_text(table(results))
                (options.output / "curves.svg").write_text(picture(results))
    print(table(results))


if __name__ == "__main__":
    main()
