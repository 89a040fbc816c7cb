#!/usr/bin/env python3
"""The fine-tuning step of SQuAD in PyTorch, and beside squad_bench in the same run:

    bench/compare_squad_pytorch.py --onebit build/squad_bench --data ../shared/data/xquad.en.json \\
        --vocab vocab.txt [--preset bert-base] [--batch 8] [--steps 4] [--rounds 2]

PyTorch trains transformers' BertForQuestionAnswering with AdamW and clipping, bf16 by autocast, on
windows of the same lengths: every window padded to --max-length, as the published programs do, and
windows grouped by length and padded to the longest of the batch. Each is measured in turns with
onebit; the rate of the best round counts. Needs a Python with torch and transformers.
"""

import argparse
import random
import re
import subprocess
import time

import torch
from transformers import BertConfig, BertForQuestionAnswering

PRESETS = {"bert-tiny": (128, 2, 2), "bert-mini": (256, 4, 4), "bert-base": (768, 12, 12),
           "bert-large": (1024, 24, 16)}


class Step:
    def __init__(self, options):
        hidden, layers, heads = PRESETS[options.preset]
        config = BertConfig(hidden_size=hidden, num_hidden_layers=options.layers or layers,
                            num_attention_heads=heads, intermediate_size=4 * hidden)
        torch.manual_seed(1)
        self.model = BertForQuestionAnswering(config).train()
        self.half = options.compute == "bf16"
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-5)

    def run(self, lengths, padded_to):
        rows = len(lengths)
        ids = torch.randint(1000, 20000, (rows, padded_to))
        mask = (torch.arange(padded_to)[None] < torch.tensor(lengths)[:, None]).long()
        at = torch.tensor(lengths) // 2
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.half):
            loss = self.model(input_ids=ids, attention_mask=mask, start_positions=at,
                              end_positions=at).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


def batches(lengths, options, grouped):
    """(lengths, padded to) of the steps of a round."""
    order = random.Random(1).sample(lengths, len(lengths))
    if not grouped:
        chunks = [order[i * options.batch:(i + 1) * options.batch] for i in range(options.steps)]
        return [(chunk, options.max_length) for chunk in chunks]
    # Sorted, then every so-many-th batch: a round sees short and long ones as an epoch does.
    order = sorted(order)
    chunks = [order[i:i + options.batch] for i in range(0, len(order), options.batch)]
    chunks = [c for c in chunks if len(c) == options.batch]
    stride = (len(chunks) - 1) / max(1, options.steps - 1)
    chosen = [chunks[round(i * stride)] for i in range(options.steps)]
    return [(chunk, max(chunk)) for chunk in chosen]


def pytorch_rate(step, rounds):
    began = time.perf_counter()
    for lengths, padded_to in rounds:
        step.run(lengths, padded_to)
    return sum(len(lengths) for lengths, _ in rounds) / (time.perf_counter() - began)


def onebit(options, *more):
    flags = ["--data", options.data, "--vocab", options.vocab, "--preset", options.preset,
             "--compute", options.compute, "--batch", options.batch, "--micro", options.batch,
             "--max-length", options.max_length, "--threads", options.threads,
             "--steps", options.steps, "--rounds", 1, "--layers", options.layers, *more]
    return subprocess.run([options.onebit, *map(str, flags)], check=True, capture_output=True,
                          text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--onebit", required=True, help="squad_bench")
    parser.add_argument("--data", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--preset", default="bert-base", choices=PRESETS)
    parser.add_argument("--layers", type=int, default=0, help="instead of the preset's")
    parser.add_argument("--compute", default="bf16", choices=("f32", "bf16"))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--max-length", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="a round")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    lengths = [int(line) for line in onebit(options, "--lengths").split()]
    print(f"{len(lengths)} windows of {sum(lengths) / len(lengths):.1f} tokens, {options.preset}, "
          f"{options.compute}, batch {options.batch}, {options.threads} threads, "
          f"PyTorch {torch.__version__}")
    step = Step(options)
    padded, grouped = (batches(lengths, options, g) for g in (False, True))
    step.run(*padded[0])
    best = {"PyTorch, padded": 0.0, "PyTorch, grouped": 0.0, "onebit": 0.0}
    for _ in range(options.rounds):
        found = re.search(r"packed: ([\d.]+) windows/s", onebit(options))
        rates = (pytorch_rate(step, padded), pytorch_rate(step, grouped), float(found[1]))
        best = {name: max(old, now) for (name, old), now in zip(best.items(), rates)}
    for name, rate in best.items():
        print(f"{name}: {rate:.3f} windows/s, onebit is {best['onebit'] / rate:.2f} times as fast")


if __name__ == "__main__":
    main()
