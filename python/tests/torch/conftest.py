"""The device of the optimizers' tests: the CPU, or with ONEBIT_TEST_DEVICE the emulated CUDA device.

The extension is then of a build with ONEBIT_CUDA=EMULATED. The emulated device's memory is the
host's, so torch's CPU tensors lie in it, and torch's work is complete when a call returns. The
engine's work is not: a test fails where torch does not wait for it. "staged" gives all ranks the
same device, and "nccl" one to each.
"""

import contextlib
import os
import signal

import pytest

from onebit.torch import device, flat_module
from ranks import rank_of_thread

# Where the tests run in the background, the shell has them ignore Ctrl-C, and their children, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
DEFAULT_STREAM = 0
CHOSEN = os.environ.get("ONEBIT_TEST_DEVICE", "cpu")


class Emulated(device.Cpu):
    def __init__(self, index):
        self.index = index

    def catch_up(self, engine):
        engine.wait_for_stream(DEFAULT_STREAM)

    @contextlib.contextmanager
    def turn(self, engine):
        engine.wait_for_stream(DEFAULT_STREAM)
        yield
        engine.make_stream_wait(DEFAULT_STREAM)
        engine.synchronize()  # as torch would before it reads on the host


@pytest.fixture(autouse=True)
def chosen_device(monkeypatch):
    assert CHOSEN in ("cpu", "staged", "nccl")
    if CHOSEN != "cpu":
        monkeypatch.setattr(flat_module, "device_of", lambda _: Emulated(
            rank_of_thread() if CHOSEN == "nccl" else 0))
