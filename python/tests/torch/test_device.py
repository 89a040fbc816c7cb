"""Parameters on a CUDA device. These tests need none: python/tests/torch/conftest.py says how the
others run on an emulated one."""

import contextlib
import types

import pytest
import torch

import onebit
from onebit import _core
from onebit.torch import device, parameters
from test_optimizers import optimizer_of, make_model, train
from conftest import CHOSEN
from ranks import run_ranks


class Recorder:
    """An engine, and torch's functions for streams, that note their calls."""

    def __init__(self, monkeypatch):
        self.calls = []
        monkeypatch.setattr(torch.cuda, "device", self.device)
        monkeypatch.setattr(torch.cuda, "current_stream",
                            lambda index: types.SimpleNamespace(cuda_stream=100 + index))

    @contextlib.contextmanager
    def device(self, index):
        self.calls.append(("enter", index))
        yield
        self.calls.append(("leave", index))

    def wait_for_stream(self, stream):
        self.calls.append(("wait for", stream))

    def make_stream_wait(self, stream):
        self.calls.append(("hold", stream))


def test_the_engine_takes_turns_with_torchs_current_stream(monkeypatch):
    engine = Recorder(monkeypatch)
    cuda = device.Cuda(1)
    cuda.catch_up(engine)
    assert engine.calls == [("enter", 1), ("wait for", 101), ("leave", 1)]
    engine.calls.clear()
    with cuda.turn(engine):
        engine.calls.append("work")
    assert engine.calls == [("enter", 1), ("wait for", 101), "work", ("hold", 101), ("leave", 1)]


def test_the_current_device_is_restored_after_an_error(monkeypatch):
    entered = []

    class Device:
        def __init__(self, index):
            pass

        def __enter__(self):
            entered.append("in")

        def __exit__(self, *_):
            entered.append("out")

    engine = Recorder(monkeypatch)
    monkeypatch.setattr(torch.cuda, "device", Device)
    with pytest.raises(onebit.PeerError), device.Cuda(0).turn(engine):
        raise onebit.PeerError("gone")
    assert entered == ["in", "out"]


def parameter_on(place, **more):
    return types.SimpleNamespace(is_meta=False, is_cuda=place.startswith("cuda"),
                                 device=torch.device(place), **more)


def test_devices_that_cannot_be_used_are_named():
    if not _core.has_cuda():
        with pytest.raises(onebit.Error, match="`w` is on cuda:1, and this package was built with"):
            parameters.check_trainable("`w`", parameter_on("cuda:1"))
    with pytest.raises(onebit.Error, match="`w` is on xpu:0: it must be on a CUDA device"):
        parameters.check_trainable("`w`", parameter_on("xpu:0"))
    parts = [("`a`", parameter_on("cuda:0")), ("`b`", parameter_on("cuda:1"))]
    with pytest.raises(onebit.Error, match="`b` is on cuda:1 and parameter `a` on cuda:0"):
        parameters.check_on_one_device(parts)
    parameters.check_on_one_device(parts[:1] * 2)


def test_a_cpu_has_no_streams():
    engine = _core.Engine([("a", [2], 0, [])], """{"train_batch_size": 1, "run": {"steps": 9},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}""", _core.one_rank(), 1, None)
    for call in (engine.wait_for_stream, engine.make_stream_wait):
        with pytest.raises(onebit.Error, match="on the CPU, which has no streams"):
            call(0)


@pytest.mark.skipif(CHOSEN == "cpu", reason="for the emulated CUDA device")
def test_messages_go_from_device_to_device_where_each_rank_has_its_own():
    def work(ranks):
        model = make_model()
        optimizer = optimizer_of("adam", model.parameters(), 2, ranks=ranks)
        train(model, optimizer, 4, ranks.rank)
        return optimizer._flat.transport

    expected = {"staged": "staged through host memory", "nccl": "nccl"}[CHOSEN]
    assert all(expected in transport for transport in run_ranks(2, work))
