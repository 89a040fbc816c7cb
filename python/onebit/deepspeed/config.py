"""DeepSpeed's config, as the engine reads it."""

from __future__ import annotations

import json
import os
from typing import Any

from onebit import _core


def read_config(args: Any, config: Any, config_params: Any) -> dict[str, Any]:
    """Returns the config that was given in one of DeepSpeed's three ways: initialize(config=), its
    older name config_params, or args.deepspeed_config. Errors: none of them, a file that cannot be
    read, args.deepspeed_mpi."""
    if getattr(args, "deepspeed_mpi", False):
        raise _core.Error("--deepspeed_mpi is not supported: start the ranks with torchrun")
    source = config if config is not None else config_params
    if source is None:
        source = getattr(args, "deepspeed_config", None)
    if source is None:
        raise _core.Error("there is no config: give initialize(config=...) or --deepspeed_config")
    if isinstance(source, dict):
        return dict(source)
    path = os.fspath(source)
    try:
        with open(path, encoding="utf-8") as file:
            read = json.load(file)
    except (OSError, ValueError) as error:
        raise _core.Error(f"{path}: {error}") from error
    if not isinstance(read, dict):
        raise _core.Error(f"{path}: a config is a JSON object")
    return read


def batch_sizes(config: dict[str, Any], ranks: int) -> tuple[int, int, int]:
    """Returns the batch of all ranks, the micro-batch of a rank and the number of micro-batches of
    a step, of which the config has at least one. Error: they do not fit each other."""
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    train, micro, passes = (config.get(name) for name in names)
    for name, value in zip(names, (train, micro, passes)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise _core.Error(f"config: key `{name}` must be a whole number of at least 1, "
                              f"not {value!r}")
    if train is None and micro is None:
        raise _core.Error("config: give train_batch_size or train_micro_batch_size_per_gpu")
    if micro is None:
        micro = train // (ranks * (passes or 1))
    if passes is None:
        passes = 1 if train is None else train // (ranks * micro) if micro else 0
    if train is None:
        train = micro * passes * ranks
    if train != micro * passes * ranks or micro < 1 or passes < 1:
        raise _core.Error(
            f"config: train_batch_size {train} is not train_micro_batch_size_per_gpu {micro} times "
            f"gradient_accumulation_steps {passes} times {ranks} ranks")
    return train, micro, passes


def is_enabled(config: dict[str, Any], *sections: str) -> bool:
    """Whether one of the sections has "enabled": true."""
    return any(isinstance(config.get(name), dict) and config[name].get("enabled") is True
               for name in sections)
