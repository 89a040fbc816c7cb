"""The ranks of a process group of torch.distributed."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from onebit import _core


def ranks_of(process_group: Any = None) -> _core.Ranks:
    """Returns the ranks of the group, at first the default one, for messages of onebit's own. A
    process without torch.distributed is a single rank. Collective."""
    if not dist.is_available() or not dist.is_initialized():
        return _core.one_rank()
    if dist.get_world_size(process_group) == 1:
        return _core.one_rank()
    raise NotImplementedError
