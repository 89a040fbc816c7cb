#!/usr/bin/env python3
"""One rank of PyTorch's DistributedDataParallel over Gloo, for bench/network.py: runs the
pre-training step of the other benches, with gradients averaged over ranks.

Rank 0 prints one line of JSON: the seconds of every step, and of the same steps without the
exchange. Needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""

import argparse
import json
import os
import time

import torch
from bert_shapes import PRESETS
from pytorch_bert import PretrainingStep
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks


class Loss(torch.nn.Module):
    """A module whose forward returns the loss, as DistributedDataParallel requires."""

    def __init__(self, step):
        super().__init__()
        self.model = step.model
        self.loss = step.loss

    def forward(self, inputs):
        return self.loss(inputs)


def timed(step, inputs):
    torch.distributed.barrier()
    began = time.perf_counter()
    step.run(inputs)
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--preset", default="bert-base", choices=PRESETS)
    parser.add_argument("--batch", type=int, default=4, help="sequences a rank")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--masked", type=int, default=20)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--compute", default="f32", choices=("f32", "bf16"),
                        help="bf16: autocast, with gradients in f32")
    parser.add_argument("--fp16", action="store_true", help="send gradients as fp16")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    step = PretrainingStep(options.preset, "f32" if options.compute == "f32" else "autocast")
    inputs = step.inputs(options.batch, options.tokens, options.masked)
    ranked = torch.nn.parallel.DistributedDataParallel(Loss(step))
    if options.fp16:
        ranked.register_comm_hook(None, default_hooks.fp16_compress_hook)
    step.loss_of = ranked
    with ranked.no_sync():
        alone = [timed(step, inputs) for _ in range(3)]
    seconds = [timed(step, inputs) for _ in range(options.steps + 1)]
    # The first step is left out: DistributedDataParallel rebuilds its buckets after it.
    report = {"seconds": seconds[1:], "alone": alone[1:], "torch": torch.__version__}
    if int(os.environ["RANK"]) == 0:
        print(json.dumps(report), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
