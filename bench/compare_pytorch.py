#!/usr/bin/env python3
"""Measures model_bench's training step in PyTorch, on the same machine and number of threads.

    pip install torch transformers
    bench/compare_pytorch.py [--onebit build/bench/model_bench] [--threads 2] [--batch 32]

Runs transformers' BertForPreTraining or ModernBertForMaskedLM with SDPA attention, fused AdamW, the
preset's dropout, and the decoder only on masked rows, like model_bench. With --onebit both programs
run in turns, and the ratio of their best rates is printed. --compute bf16 is PyTorch's autocast.
"""

import argparse
import time

import torch
from bench_programs import number_in, run_bench
from bert_shapes import MODERN_PRESETS, PRESETS
from pytorch_bert import pretraining_step


def pytorch_rates(step, inputs, options):
    """Returns samples per second by wall-clock and by processor time, of the best step."""
    wall, processor = 0.0, 0.0
    for _ in range(options.steps):
        began, used = time.perf_counter(), time.process_time()
        step.run(inputs)
        wall = max(wall, options.batch / (time.perf_counter() - began))
        processor = max(processor, options.batch / (time.process_time() - used))
    return wall, processor


def onebit_rates(options):
    flags = {name: getattr(options, name) for name in
             ("preset", "compute", "batch", "tokens", "masked", "threads", "steps")}
    return number_in(run_bench(options.onebit, flags | {"rounds": 1}),
                     r"step: ([\d.]+) samples/s by wall clock, ([\d.]+) per processor")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--onebit", help="model_bench, to compare with")
    parser.add_argument("--preset", default="bert-base", choices=[*PRESETS, *MODERN_PRESETS])
    parser.add_argument("--compute", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--masked", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="per round")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    step = pretraining_step(options.preset, "f32" if options.compute == "f32" else "autocast")
    inputs = step.inputs(options.batch, options.tokens, options.masked)
    step.run(inputs)
    theirs, ours = (0.0, 0.0), (0.0, 0.0)
    for _ in range(options.rounds):
        theirs = tuple(map(max, theirs, pytorch_rates(step, inputs, options)))
        if options.onebit:
            ours = tuple(map(max, ours, onebit_rates(options)))
    print(f"PyTorch {torch.__version__}: {theirs[0]:.2f} samples/s by wall clock, "
          f"{theirs[1]:.2f} per processor second")
    if options.onebit:
        print(f"onebit: {ours[0]:.2f} samples/s by wall clock, {ours[1]:.2f} per processor second")
        print(f"ratio: {ours[0] / theirs[0]:.2f} by wall clock, {ours[1] / theirs[1]:.2f} by "
              f"processor time")


if __name__ == "__main__":
    main()
