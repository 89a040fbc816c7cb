#!/usr/bin/env python3
"""Fine-tunes the same BERT on the same questions with onebit and with PyTorch, and compares F1.

    tools/compare_squad.py --program build/onebit --model MODEL --data policyqa-dev.json.gz \\
        --work DIR [--seeds 1 2 3] [--sides onebit pytorch onebit-1bit] [--epochs 3]

The file is split by document, 80 : 20, the same for every seed. Both train on the windows of
`onebit squad windows` that contain the whole answer, with AdamW (decay 0.01 of matrices and
embeddings), a linear schedule with a warm-up of a tenth, clipping at 1, dropout 0.1, in f32. Both
are decoded and scored by the published rules (squad_rules.py). `onebit-1bit` runs 1-bit Adam on two
ranks under mpirun. Results are added to DIR/results.json, so that sides and seeds can be run one by
one. The table at the end shows all of them. Needs torch, transformers and tokenizers.
"""

import argparse
import gzip
import json
import pathlib
import random
import statistics
import subprocess
import time

import squad_rules as rules

OPTIONS = {"max_question_length": 64, "n_best": 20, "max_answer_length": 30,
           "max_sequence_length": 384, "doc_stride": 128}


def split(path, work):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        whole = json.load(file)
    documents = sorted(whole["data"], key=lambda article: article.get("title", ""))
    random.Random(2018).shuffle(documents)
    cut = len(documents) * 4 // 5
    for name, part in (("train", documents[:cut]), ("dev", documents[cut:])):
        (work / f"{name}.json").write_text(json.dumps({"version": "1.1", "data": part}))
    return [sum(1 for _ in rules.questions_of({"data": part}))
            for part in (documents[:cut], documents[cut:])]


def recipe(given, seed, compressed):
    params = {"lr": given.lr, "weight_decay": 0.01}
    if compressed:
        params["freeze_step"] = given.freeze_step
    return {"task": "squad",
            "train_batch_size": given.batch,
            "train_micro_batch_size_per_gpu": given.batch // (2 if compressed else 1),
            "gradient_clipping": 1.0,
            "optimizer": {"type": "OneBitAdam" if compressed else "AdamW", "params": params},
            "scheduler": {"type": "linear", "params": {"warmup_proportion": 0.1}},
            "data": {"epochs": given.epochs}, "tensorboard": {"enabled": False},
            "run": {"seed": seed}}


def by_onebit(given, seed, compressed):
    name = f"{'onebit-1bit' if compressed else 'onebit'}-{seed}"
    (given.work / f"{name}.json").write_text(json.dumps(recipe(given, seed, compressed), indent=2))
    output = given.work / name
    command = [given.program, "squad", "train", "--model", given.model, "--train",
               given.work / "train.json", "--recipe", given.work / f"{name}.json", "--output",
               output, "--resume", "--threads", 1 if compressed else given.threads]
    if compressed:
        command = ["mpirun", "--allow-run-as-root", "-np", 2, "--oversubscribe", *command]
    subprocess.run([str(c) for c in command], check=True)
    subprocess.run([str(c) for c in (given.program, "squad", "predict", "--model", output,
                                     "--input", given.work / "dev.json", "--output",
                                     output / "dev.json", "--projection")], check=True)
    return json.loads((output / "dev.json").read_text())


def windows(given, name, *flags):
    done = subprocess.run([str(c) for c in (given.program, "squad", "windows", "--model",
                                            given.model, given.work / f"{name}.json", *flags)],
                          check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def padded(torch, chunk, separator):
    longest = max(len(w["tokens"]) for w in chunk)
    ids, mask, segments = (torch.zeros(len(chunk), longest, dtype=torch.long) for _ in range(3))
    for row, window in enumerate(chunk):
        tokens = window["tokens"]
        ids[row, :len(tokens)] = torch.tensor(tokens)
        mask[row, :len(tokens)] = 1
        segments[row, tokens.index(separator) + 1:len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def by_length(chunk, size):
    """Splits a chunk into parts of similar length, which need less padding. The weighted sum of
    their losses is the chunk's loss."""
    ordered = sorted(chunk, key=lambda window: len(window["tokens"]))
    return [ordered[i:i + size] for i in range(0, len(ordered), size)]


def backward(torch, model, part, weight, separator):
    labels = torch.tensor([w["label"] for w in part])
    loss = weight * model(**padded(torch, part, separator), start_positions=labels[:, 0],
                          end_positions=labels[:, 1]).loss
    loss.backward()
    return loss.item()


def train_pytorch(given, torch, model, chosen, separator):
    decaying = [p for n, p in model.named_parameters() if p.ndim > 1]
    others = [p for n, p in model.named_parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW([{"params": decaying, "weight_decay": 0.01},
                                   {"params": others, "weight_decay": 0.0}], lr=given.lr, eps=1e-8)
    steps = -(-int(given.epochs * len(chosen)) // given.batch)
    warmup = 0.1 * steps
    factor = lambda s: s / warmup if s < warmup else max(0.0, (steps - s) / max(1, steps - warmup))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    order, generator = [], random.Random(given.seed)
    for step in range(steps):
        while len(order) < given.batch:
            order += generator.sample(range(len(chosen)), len(chosen))
        chunk, order = [chosen[i] for i in order[:given.batch]], order[given.batch:]
        optimizer.zero_grad(set_to_none=True)
        loss = sum(backward(torch, model, part, len(part) / len(chunk), separator)
                   for part in by_length(chunk, 6))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            print(f"pytorch, seed {given.seed}: step {step}/{steps}, loss {loss:.3f}",
                  flush=True)


def by_pytorch(given, seed):
    import torch
    from transformers import BertForQuestionAnswering

    from squad_tokens import Tokens
    torch.manual_seed(seed)
    torch.set_num_threads(given.threads)
    given.seed = seed
    names = (given.model / "vocab.txt").read_text().split("\n")
    separator = names.index("[SEP]")
    model = BertForQuestionAnswering.from_pretrained(given.model)
    model.train()
    chosen = [w for w in windows(given, "train", "--training") if w["label"] != [0, 0]]
    train_pytorch(given, torch, model, chosen, separator)
    model.eval()
    logits = {}
    for window in windows(given, "dev"):
        with torch.no_grad():
            out = model(**padded(torch, [window], separator))
        logits.setdefault(window["id"], []).append(
            (out.start_logits[0].tolist(), out.end_logits[0].tolist()))
    tokens, predictions = Tokens(given.model / "vocab.txt", cased=False), {}
    for context, question in rules.questions_of(json.loads((given.work / "dev.json").read_text())):
        features = rules.Features(tokens.pieces, context, question["question"], OPTIONS)
        best = rules.n_best(features, logits[question["id"]], OPTIONS, tokens.words)
        predictions[question["id"]] = best[0][0]
    return predictions


def show(results):
    for side, by_seed in results.items():
        for measure in ("exact_match", "f1"):
            values = [score[measure] for score in by_seed.values()]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            print(f"{side:12} {measure:12} mean {statistics.mean(values):.2f}, deviation "
                  f"{spread:.2f}: {', '.join(f'{v:.2f}' for v in values)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "model", "data", "work"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--sides", nargs="+", default=["onebit", "pytorch", "onebit-1bit"],
                        choices=["onebit", "pytorch", "onebit-1bit"])
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--freeze-step", type=int, default=120)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    train, dev = split(given.data, given.work)
    print(f"{train} questions to train on, {dev} of other documents to be scored by")
    file = given.work / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    dataset = json.loads((given.work / "dev.json").read_text())
    for seed in given.seeds:
        for side in given.sides:
            if str(seed) in results.setdefault(side, {}):
                continue
            began = time.time()
            predictions = (by_pytorch(given, seed) if side == "pytorch"
                           else by_onebit(given, seed, side == "onebit-1bit"))
            score = rules.score_version1(dataset, predictions)
            results[side][str(seed)] = score | {"seconds": round(time.time() - began)}
            file.write_text(json.dumps(results, indent=2) + "\n")
            print(side, seed, results[side][str(seed)], flush=True)
    show(results)


if __name__ == "__main__":
    main()
