"""DeepSpeed's deepspeed.zero. Here every rank has whole parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from onebit import _core

_WHY = ("every rank keeps whole parameters, gradients and states, since error feedback needs a "
        "whole gradient on every rank (DeepSpeed's 1-bit optimizers refuse ZeRO too)")


@contextlib.contextmanager
def Init(module: Any = None, *_: Any, enabled: bool = True,  # noqa: N802 - DeepSpeed's name
         **__: Any) -> Iterator[None]:
    """Has no effect with enabled=False. Error: parameters are to be divided among ranks."""
    if enabled:
        raise _core.Error(f"deepspeed.zero.Init is not supported: {_WHY}. Make the model without it, "
                          "or give enabled=False")
    yield


@contextlib.contextmanager
def GatheredParameters(params: Any, *_: Any, **__: Any) -> Iterator[None]:  # noqa: N802
    """Has no effect: parameters are whole."""
    yield


def register_external_parameter(module: Any, parameter: Any) -> None:
    """Has no effect: parameters are whole."""


unregister_external_parameter = register_external_parameter
