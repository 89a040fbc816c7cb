"""Processes of torch.distributed train over onebit's own connections."""

import os
import signal
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
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
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


def test_a_rank_that_goes_on_without_the_optimizer_leaves(port):
    results = ends(start(2, """
        try:
            for number in range(1000):
                if number == 8 and rank == 1:
                    raise RuntimeError("out of data")
                step()
        except onebit.PeerError as error:
            print(error)
        except RuntimeError:
            optimizer.ranks.leave()
            try:
                optimizer.ranks.barrier()
            except onebit.Error as error:
                print(error)
            sys.stdin.readline()  # until the other rank has ended
    """, port))
    assert [code for code, _, _ in results] == [0, 0], results
    assert "rank 1" in results[0][1] and "ended while rank 0 waited" in results[0][1], results
    assert "rank 1 has left its group" in results[1][1], results


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


def test_groups_of_processes_train_apart(port):
    """Two groups of two ranks, of which each trains a model of its own."""
    results = ends(start(4, """
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        torch.manual_seed(rank // 2)
        model = torch.nn.Linear(16, 4)
        mine = pairs[rank // 2]
        optimizer = ot.OnebitAdam(model.parameters(), lr=1e-2, freeze_step=3, threads=1,
                                  process_group=mine)
        assert optimizer.ranks.size == 2 and optimizer.ranks.rank == rank % 2
        for _ in range(8): step()
        print(rank // 2, model.weight.detach().numpy().tobytes().hex())
        try:
            ot.OnebitAdam(model.parameters(), process_group=pairs[1 - rank // 2])
        except onebit.Error as error:
            assert "is not in process_group=" in str(error)
        else:
            raise SystemExit("no error")
    """, port))
    assert [code for code, _, _ in results] == [0] * 4, results
    assert results[0][1] == results[1][1] and results[2][1] == results[3][1]
    assert results[0][1][2:] != results[2][1][2:]


def test_wrapped_and_sharded_models(port):
    """In DistributedDataParallel a run is the one without, whether the script registers the hook or
    not. Another hook is refused, and so is FSDP."""
    results = ends(start(2, """
        import itertools
        from torch.nn.parallel import DistributedDataParallel
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.device_mesh import init_device_mesh
        torch.manual_seed(rank)
        for _ in range(12): step()
        expected = [p.detach().clone() for p in model.parameters()]

        def build():
            torch.manual_seed(rank)
            return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(),
                                       torch.nn.Linear(64, 4))

        model = DistributedDataParallel(build())
        model.register_comm_hook(None, fp16_compress_hook)
        optimizer = ot.OnebitAdam(model.parameters(), lr=1e-2, threads=1)
        try:
            step()
        except onebit.Error as error:
            assert "another communication hook" in str(error), error
        else:
            raise SystemExit("no error of another hook")
        for registers, options in itertools.product((True, False), (
                {}, {"gradient_as_bucket_view": True}, {"static_graph": True})):
            model = DistributedDataParallel(build(), **options)
            optimizer = ot.OnebitAdam(model.parameters(), lr=1e-2, freeze_step=5, threads=1)
            if registers:
                model.register_comm_hook(optimizer, ot.ddp_hook)
            torch.manual_seed(rank)
            for _ in range(12): step()
            assert optimizer.last_step["phase"] == "compressed"
            for p, e in zip(model.parameters(), expected):
                assert torch.equal(p, e), options
        model = build()
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        try:
            ot.OnebitAdam(model.parameters(), threads=1)
        except onebit.Error as error:
            assert "sharded over the ranks by FSDP2" in str(error), error
        else:
            raise SystemExit("no error of FSDP")
    """, port))
    assert [code for code, _, _ in results] == [0, 0], results


def test_ctrl_c_ends_a_step_that_waits(port):
    """Rank 1 does not come to the step, so rank 0 would wait for ever."""
    processes = start(2, """
        import time
        for _ in range(8): step()
        print("ready", flush=True)
        if rank == 1:
            time.sleep(120)
        try:
            step()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(0)
        except onebit.PeerError as error:
            print(error, flush=True)
            os._exit(0)
    """, port)
    for process in processes:
        assert process.stdout.readline().strip() == "ready", process.stderr.read()
    time.sleep(1)
    processes[0].send_signal(signal.SIGINT)
    assert processes[0].communicate(timeout=60)[0].strip() == "interrupted"
    processes[1].kill()
    processes[1].communicate()
