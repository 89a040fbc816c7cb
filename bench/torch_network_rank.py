#!/usr/bin/env python3
"""One rank of bench/torch_network.py: times steps of a stack of linear layers.

Rank 0 prints one line of JSON: the seconds of the steps, their processor time, and the bytes that
left through this rank's network card. Needs RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
GLOO_SOCKET_IFNAME.
"""

import argparse
import json
import os
import pathlib
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

MODES = ("alone", "ddp", "ddp-fp16", "powersgd1", "powersgd4", "onebit")
FIRST = 5  # steps that are not timed: warm-up, DDP's second layout of buckets


def stack(width, layers):
    blocks = [block for _ in range(layers) for block in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*blocks, nn.Linear(width, 1))


def prepare(mode, model):
    """Returns the network that computes, and the optimizer."""
    if mode == "onebit":
        import onebit.torch as ot
        return model, ot.OnebitAdam(model.parameters(), lr=1e-4, freeze_step=2, threads=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if mode == "alone":
        return model, optimizer
    # PowerSGD makes two collectives for each bucket, and Gloo mixes up the collectives of
    # several buckets.
    size = {"bucket_cap_mb": 4096} if mode.startswith("powersgd") else {}
    network = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, **size)
    if mode == "ddp-fp16":
        network.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if mode.startswith("powersgd"):
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=int(mode[-1]),
                                            start_powerSGD_iter=2)
        network.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return network, optimizer


def sent_bytes():
    card = os.environ["GLOO_SOCKET_IFNAME"]
    return int(pathlib.Path(f"/sys/class/net/{card}/statistics/tx_bytes").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model = stack(options.width, options.layers)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    network, optimizer = prepare(options.mode, model)
    inputs, targets = torch.randn(options.batch, options.width), torch.randn(options.batch, 1)
    seconds, processor, wire = [], [], []
    for _ in range(FIRST + options.steps):
        dist.barrier()
        sent, busy, began = sent_bytes(), time.process_time(), time.perf_counter()
        optimizer.zero_grad()
        (network(inputs) - targets).square().mean().backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - busy)
        wire.append(sent_bytes() - sent)
    if dist.get_rank() == 0:
        print(json.dumps({"parameters": parameters, "seconds": seconds[FIRST:],
                          "processor": statistics.median(processor[FIRST:]),
                          "wire": statistics.median(wire[FIRST:]), "torch": torch.__version__}),
              flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
