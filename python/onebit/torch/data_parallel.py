"""Models inside torch's DistributedDataParallel."""

import gc
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from onebit import _core, arguments
from onebit.torch.warning import warn


# torch compares the annotations, which must not be texts.
def ddp_hook(
    optimizer: Any,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    """A communication hook with which DistributedDataParallel averages nothing and leaves that to
    the optimizer: `model.register_comm_hook(optimizer, onebit.torch.ddp_hook)`, before the first
    step. Gradients are then sent in step(), not during the backward pass."""
    if not hasattr(optimizer, "_leave_wrapper"):
        raise TypeError("optimizer must be one of onebit.torch, not "
                        f"{arguments.kind(optimizer)}: register_comm_hook(optimizer, ddp_hook)")
    arguments.instance(bucket, "bucket", dist.GradBucket,  # type: ignore[attr-defined]
                       "a bucket of DistributedDataParallel")
    optimizer._leave_wrapper()
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def take_over(optimizer: Any, parameters: list[torch.nn.Parameter]) -> None:
    """Registers ddp_hook with modules in DistributedDataParallel that have the parameters, for
    example because a library has wrapped them. Error: one has another hook."""
    trained = {id(parameter) for parameter in parameters}
    for one in gc.get_objects():
        if not issubclass(type(one), DistributedDataParallel):
            continue
        if all(id(parameter) not in trained for parameter in one.module.parameters()):
            continue
        if one._comm_hooks:
            raise _core.Error(
                "the model is in DistributedDataParallel with another communication hook, which "
                "averages gradients before the optimizer sends one bit: train the module itself, "
                "or register no hook but onebit.torch.ddp_hook")
        one.register_comm_hook(optimizer, ddp_hook)
        optimizer._leave_wrapper()
        warn(
            "the model is in DistributedDataParallel. From now on the optimizer averages in its "
            "place, and gradients are sent in step(). Train the module itself, and they leave "
            "during the backward pass")
