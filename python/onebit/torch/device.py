"""The device of the parameters, and the order of torch's work on it and of the engine's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from onebit import _core


class Cpu:
    """Calls of torch and of the engine return completed work, so there is nothing to order."""

    #: The number of the CUDA device.
    index: int | None = None

    def catch_up(self, engine: _core.Engine) -> None:
        """Later work of the engine waits for what torch has submitted."""

    @contextlib.contextmanager
    def turn(self, engine: _core.Engine) -> Iterator[None]:
        """The engine's work inside waits for what torch has submitted before, and what torch submits
        afterwards waits for it."""
        yield


class Cuda(Cpu):
    """torch submits work to its current stream, which is another one in each thread and context of
    torch.cuda.stream(). The engine has streams of its own, and changes the current device."""

    def __init__(self, index: int) -> None:
        self.index = index

    def _stream(self) -> int:
        return int(torch.cuda.current_stream(self.index).cuda_stream)

    def catch_up(self, engine: _core.Engine) -> None:
        with torch.cuda.device(self.index):
            engine.wait_for_stream(self._stream())

    @contextlib.contextmanager
    def turn(self, engine: _core.Engine) -> Iterator[None]:
        with torch.cuda.device(self.index):
            engine.wait_for_stream(self._stream())
            yield
            engine.make_stream_wait(self._stream())


def device_of(parameter: torch.nn.Parameter) -> Cpu:
    """Returns the device of a parameter that can be trained."""
    return Cuda(parameter.get_device()) if parameter.is_cuda else Cpu()
