"""Models inside torch's DistributedDataParallel."""

import gc
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from onebit import _core, arguments


# torch compares the annotations, which must not be texts.
def ddp_hook(
    optimizer: Any,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    """A communication hook with which DistributedDataParallel averages nothing and leaves that to
    the optimizer: `model.register_comm_hook(optimizer, onebit.torch.ddp_hook)`, before the first
    step. Gradients are then sent in step(), not during the backward pass."""
    if not hasattr(optimizer, "_wait_for_step"):
        raise TypeError("optimizer must be one of onebit.torch, not "
                        f"{arguments.kind(optimizer)}: register_comm_hook(optimizer, ddp_hook)")
    arguments.instance(bucket, "bucket", dist.GradBucket,  # type: ignore[attr-defined]
                       "a bucket of DistributedDataParallel")
    optimizer._wait_for_step("a model in DistributedDataParallel")
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def check_not_wrapped(parameters: list[torch.nn.Parameter]) -> None:
    """Error: one of the parameters is inside a DistributedDataParallel."""
    trained = {id(parameter) for parameter in parameters}
    for one in gc.get_objects():
        if not issubclass(type(one), DistributedDataParallel):
            continue
        if any(id(parameter) in trained for parameter in one.module.parameters()):
            raise _core.Error(
                "the model is in DistributedDataParallel, which averages gradients at 16 or 32 "
                "bits before the optimizer sends one: train the module itself, or call "
                "`model.register_comm_hook(optimizer, onebit.torch.ddp_hook)` before the first "
                "step")
