"""deepspeed.initialize()."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from onebit import _core, arguments
from onebit.deepspeed.config import DeepSpeedConfig, config_of
from onebit.deepspeed.engine import DeepSpeedEngine
from onebit.deepspeed.launch import check_mpi, init_distributed, local_rank
from onebit.torch import EngineOptimizer


def initialize(
    args: Any = None,
    model: torch.nn.Module | None = None,
    optimizer: Any = None,
    model_parameters: Iterable[Any] | None = None,
    training_data: Any = None,
    lr_scheduler: Any = None,
    distributed_port: int = 29500,
    mpu: Any = None,
    dist_init_required: bool | None = None,
    collate_fn: Callable[..., Any] | None = None,
    config: Any = None,
    mesh_param: Any = None,
    config_params: Any = None,
) -> tuple[DeepSpeedEngine, EngineOptimizer, Any, Any]:
    """Returns (engine, optimizer, data loader, schedule), as DeepSpeed does. The loader is None
    without `training_data`, the schedule None without one in the config and `lr_scheduler`. Without
    `model_parameters` all parameters with requires_grad are trained. Errors: a key of the config,
    an optimizer that averages nothing, two configs, none."""
    if model is None:
        raise _core.Error("initialize() needs a model")
    arguments.small(distributed_port, "distributed_port")
    if collate_fn is not None:
        arguments.function(collate_fn, "collate_fn")
    for name, value in (("mpu", mpu), ("mesh_param", mesh_param)):
        if value is not None:
            raise _core.Error(f"initialize({name}=...) is for models that are divided among ranks; "
                              "here every rank has the whole model")
    check_mpi(args)
    settings = config_of(args, config, config_params)
    local = local_rank(args)
    if dist_init_required is not None:
        arguments.flag(dist_init_required, "dist_init_required")
    if dist_init_required is False and not torch.distributed.is_initialized():
        raise _core.Error("initialize(dist_init_required=False) needs a process group: call "
                          "deepspeed.init_distributed() before it")
    init_distributed(distributed_port=distributed_port)
    engine = DeepSpeedEngine(model, DeepSpeedConfig(settings), optimizer, model_parameters,
                             lr_scheduler, local)
    if training_data is not None:
        engine.training_dataloader = engine.deepspeed_io(training_data, collate_fn=collate_fn)
    return engine, engine.optimizer, engine.training_dataloader, engine.lr_scheduler
