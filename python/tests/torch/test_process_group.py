"""Processes of torch.distributed train over onebit's own connections."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

PROLOGUE = """
import os, sys, torch, torch.distributed as dist
import onebit, onebit.torch as ot
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
optimizer = ot.OnebitAdam(model.parameters(), lr=1e-2, freeze_step=5, threads=1)
def step():
    inputs = torch.randn(8, 16)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), inputs[:, :4].argmax(dim=1)).backward()
    optimizer.step()
"""


def start(count, script, port):
    processes = []
    for rank in range(count):
        environment = os.environ | {
            "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        processes.append(subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + textwrap.dedent(script)], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return processes


def ends(processes, seconds=240):
    results = []
    for process in processes:
        out, err = process.communicate(timeout=seconds)
        results.append((process.returncode, out, err))
    return results


@pytest.fixture
def port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_processes_agree_to_the_bit(port):
    results = ends(start(3, """
        for _ in range(20): step()
        flat = torch.cat([p.detach().view(-1) for p in model.parameters()])
        print(optimizer.last_step["phase"], flat.numpy().tobytes().hex()[:4000])
        dist.destroy_process_group()
    """, port))
    assert [code for code, _, _ in results] == [0, 0, 0], results
    outs = {out for _, out, _ in results}
    assert len(outs) == 1 and outs.pop().startswith("compressed")


@pytest.mark.parametrize("failure", ["raise RuntimeError('out of data')", "os._exit(3)",
                                     "os.kill(os.getpid(), 9)"])
def test_a_rank_that_ends_ends_the_others(failure, port):
    began = time.monotonic()
    results = ends(start(2, f"""
        for number in range(1000):
            if number == 8 and rank == 1:
                {failure}
            step()
    """, port))
    assert results[0][0] != 0 and results[1][0] != 0
    assert "PeerError" in results[0][2], results[0][2]
    assert time.monotonic() - began < 200
