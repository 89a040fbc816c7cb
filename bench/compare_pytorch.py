#!/usr/bin/env python3
"""The training step of model_bench in PyTorch, on the same machine with as many threads.

    pip install torch transformers
    bench/compare_pytorch.py [--onebit build/bench/model_bench] [--threads 2] [--batch 32]

transformers' BertForPreTraining with SDPA attention, fused AdamW, dropout on, and the decoder run
on the masked rows only, as model_bench does. With --onebit the two take turns, and the ratio of
their best rates is printed. --compute bf16 is PyTorch's autocast.
"""

import argparse
import re
import subprocess
import time

import torch
from transformers import BertConfig, BertForPreTraining

PRESETS = {
    "bert-tiny": (2, 128), "bert-mini": (4, 256), "bert-small": (4, 512),
    "bert-medium": (8, 512), "bert-base": (12, 768), "bert-large": (24, 1024),
}


class Step:
    def __init__(self, options):
        torch.manual_seed(1)
        layers, hidden = PRESETS[options.preset]
        config = BertConfig(vocab_size=30522, hidden_size=hidden, num_hidden_layers=layers,
                            num_attention_heads=hidden // 64, intermediate_size=4 * hidden,
                            attn_implementation="sdpa")
        self.model = BertForPreTraining(config).train()
        named = list(self.model.named_parameters())
        spared = [p for n, p in named if "bias" in n or "LayerNorm" in n]
        decayed = [p for n, p in named if not ("bias" in n or "LayerNorm" in n)]
        self.optimizer = torch.optim.AdamW(
            [dict(params=decayed, weight_decay=0.01), dict(params=spared, weight_decay=0.0)],
            lr=1e-4, fused=True)
        shape = (options.batch, options.tokens)
        self.tokens = torch.randint(0, 30522, shape)
        self.segments = (torch.arange(options.tokens) >= options.tokens // 2).long()
        self.segments = self.segments.expand(shape).contiguous()
        columns = 1 + torch.arange(options.masked) * (options.tokens - 1) // options.masked
        rows = torch.arange(options.batch)[:, None] * options.tokens + columns
        self.masked_rows = rows.reshape(-1)
        self.targets = torch.randint(0, 30522, self.masked_rows.shape)
        self.next_sentence = torch.randint(0, 2, (options.batch,))
        self.half = options.compute == "bf16"

    def loss(self):
        states, pooled = self.model.bert(self.tokens, token_type_ids=self.segments,
                                         return_dict=False)[:2]
        chosen = states.reshape(-1, states.shape[-1])[self.masked_rows]
        words = self.model.cls.predictions(chosen)
        pairs = self.model.cls.seq_relationship(pooled)
        cross_entropy = torch.nn.functional.cross_entropy
        return (cross_entropy(words.float(), self.targets) +
                cross_entropy(pairs.float(), self.next_sentence))

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.half):
            loss = self.loss()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def pytorch_rates(step, options):
    """Samples a second by wall clock and by processor time, the best of some steps."""
    wall, processor = 0.0, 0.0
    for _ in range(options.steps):
        began, used = time.perf_counter(), time.process_time()
        step.run()
        wall = max(wall, options.batch / (time.perf_counter() - began))
        processor = max(processor, options.batch / (time.process_time() - used))
    return wall, processor


def onebit_rates(options):
    flags = ["--preset", options.preset, "--compute", options.compute,
             "--batch", str(options.batch), "--tokens", str(options.tokens),
             "--masked", str(options.masked), "--threads", str(options.threads),
             "--steps", str(options.steps), "--rounds", "1"]
    output = subprocess.run([options.onebit, *flags], check=True, capture_output=True,
                            text=True).stdout
    found = re.search(r"step: ([\d.]+) samples/s by wall clock, ([\d.]+) a processor", output)
    return float(found[1]), float(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--onebit", help="model_bench, to compare with")
    parser.add_argument("--preset", default="bert-base", choices=PRESETS)
    parser.add_argument("--compute", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--masked", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="a round")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    step = Step(options)
    step.run()
    theirs, ours = (0.0, 0.0), (0.0, 0.0)
    for _ in range(options.rounds):
        theirs = tuple(map(max, theirs, pytorch_rates(step, options)))
        if options.onebit:
            ours = tuple(map(max, ours, onebit_rates(options)))
    print(f"PyTorch {torch.__version__}: {theirs[0]:.2f} samples/s by wall clock, "
          f"{theirs[1]:.2f} a processor second")
    if options.onebit:
        print(f"onebit: {ours[0]:.2f} samples/s by wall clock, {ours[1]:.2f} a processor second")
        print(f"ratio: {ours[0] / theirs[0]:.2f} by wall clock, {ours[1] / theirs[1]:.2f} by "
              f"processor time")


if __name__ == "__main__":
    main()
