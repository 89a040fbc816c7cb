"""DeepSpeed's deepspeed.comm: torch.distributed under another name.

These are the script's own collectives. The engine's gradients do not pass through them.
"""

from __future__ import annotations

import os
from typing import Any

import torch.distributed as dist

from onebit.deepspeed.launch import init_distributed

__all__ = ["get_local_rank", "init_distributed", "is_available", "is_initialized", "log_summary"]


def get_local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


def is_available() -> bool:
    return dist.is_available()


def is_initialized() -> bool:
    return dist.is_available() and dist.is_initialized()


def log_summary(*_: Any, **__: Any) -> None:
    """Has no effect: collectives are not timed. optimizer.last_step has the seconds of a step."""


def __getattr__(name: str) -> Any:
    if hasattr(dist, name):
        return getattr(dist, name)
    raise AttributeError(f"deepspeed.comm has no `{name}`, and neither has torch.distributed")
