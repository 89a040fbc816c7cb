#!/usr/bin/env python3
"""Measures SQuAD's fine-tuning step in PyTorch and in squad_bench, in the same run:

    bench/compare_squad_pytorch.py --onebit build/bench/squad_bench --data xquad.en.json \\
        --vocab vocab.txt [--preset bert-base] [--batch 8] [--steps 4] [--rounds 2]

PyTorch trains transformers' BertForQuestionAnswering with AdamW and clipping, bf16 by autocast, on
windows of the same lengths: every window padded to --max-length, like the published programs, and
windows grouped by length and padded to the longest of the batch. Each is measured in turns with
onebit, and the best round counts. Needs a Python with torch and transformers.
"""

import argparse
import time

import torch
from bench_programs import number_in, run_bench
from bert_shapes import PRESETS
from pytorch_bert import QuestionAnsweringStep
from window_batches import window_batches


def pytorch_rate(step, rounds):
    began = time.perf_counter()
    for lengths, padded_to in rounds:
        step.run(step.inputs(lengths, padded_to))
    return sum(len(lengths) for lengths, _ in rounds) / (time.perf_counter() - began)


def onebit(options, **more):
    flags = {name.replace("_", "-"): getattr(options, name) for name in
             ("data", "vocab", "preset", "compute", "batch", "max_length", "threads", "steps",
              "layers")}
    return run_bench(options.onebit, flags | {"micro": options.batch, "rounds": 1} | more)


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
    lengths = [int(line) for line in onebit(options, lengths=None).split()]
    print(f"{len(lengths)} windows of {sum(lengths) / len(lengths):.1f} tokens, {options.preset}, "
          f"{options.compute}, batch {options.batch}, {options.threads} threads, "
          f"PyTorch {torch.__version__}")
    # The published SQuAD programs use unfused AdamW.
    step = QuestionAnsweringStep(options.preset, "f32" if options.compute == "f32" else "autocast",
                                 layers=options.layers, fused=False)
    padded, grouped = (window_batches(lengths, options.batch, options.steps, options.max_length, g)
                       for g in (False, True))
    step.run(step.inputs(*padded[0]))
    best = {"PyTorch, padded": 0.0, "PyTorch, grouped": 0.0, "onebit": 0.0}
    for _ in range(options.rounds):
        rates = (pytorch_rate(step, padded), pytorch_rate(step, grouped),
                 number_in(onebit(options), r"packed: ([\d.]+) windows/s"))
        best = {name: max(old, now) for (name, old), now in zip(best.items(), rates)}
    for name, rate in best.items():
        print(f"{name}: {rate:.3f} windows/s, onebit is {best['onebit'] / rate:.2f} times as fast")


if __name__ == "__main__":
    main()
