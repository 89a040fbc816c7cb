"""DeepSpeed's config, as the engine reads it."""

from __future__ import annotations

import json
from typing import Any

import torch.distributed as dist

from onebit import _core, arguments
from onebit.deepspeed.arguments import config_argument

# Keys of DeepSpeed's engine that onebit's optimizer does not read.
_BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
_LAYER_DROP = "progressive_layer_drop"
#: Optimizers of the config, in small letters as DeepSpeed's engine names them.
ADAM_OPTIMIZER, ADAMW_OPTIMIZER, LAMB_OPTIMIZER = "adam", "adamw", "lamb"
ONEBIT_ADAM_OPTIMIZER, ONEBIT_LAMB_OPTIMIZER = "onebitadam", "onebitlamb"
ZERO_ONE_ADAM_OPTIMIZER = "zerooneadam"

DeepSpeedConfigError = _core.Error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"key `{twice[0]}` is there twice")
    return found


def _read_file(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise _core.Error(f"{path}: {error}; write it as JSON, without comments and without commas "
                          "at the end of a list") from error
    except (OSError, ValueError) as error:
        raise _core.Error(f"{path}: {error}") from error


def config_of(args: Any, config: Any, config_params: Any) -> Any:
    """Returns the config that was given in one of DeepSpeed's three ways: initialize(config=), its
    older name config_params, or args.deepspeed_config. Errors: none of them, two of them."""
    named = config_argument(args)
    direct = config if config is not None else config_params
    if direct is not None and named is not None:
        raise _core.Error("there are two configs, initialize(config=...) and --deepspeed_config: "
                          "give one of them")
    if direct is None and named is None:
        raise _core.Error("there is no config: give initialize(config=...) or --deepspeed_config")
    return direct if direct is not None else named


def batch_sizes(config: dict[str, Any], ranks: int) -> tuple[int, int, int]:
    """Returns the batch of all ranks, the micro-batch of a rank and the number of micro-batches of
    a step. The config has at least one of the three. Error: they do not fit each other."""
    sizes: list[Any] = [config.get(name) for name in _BATCH_KEYS]
    train, micro, passes = sizes
    for name, value in zip(_BATCH_KEYS, sizes):
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


class DeepSpeedConfig:
    """A config, from a dictionary or a file, with DeepSpeed's names of its values."""

    def __init__(self, config: Any, mpu: Any = None, mesh_device: Any = None) -> None:
        """Errors: a file that cannot be read, sizes of batches that do not fit the ranks, a key
        that onebit does not know or cannot fulfil."""
        if isinstance(config, dict):
            read = json.loads(arguments.json_text(arguments.mapping(config, "config"), "config"))
        else:
            read = _read_file(arguments.path(config, "config"))
        if not isinstance(read, dict):
            raise _core.Error(f"{config}: a config is a JSON object")
        #: The config as it was given.
        self.values: dict[str, Any] = read
        ranks = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
        (self.train_batch_size, self.train_micro_batch_size_per_gpu,
         self.gradient_accumulation_steps) = batch_sizes(read, ranks)
        self._check_tensorboard()
        self._check_types()
        if "optimizer" in read:
            _core.check_recipe(json.dumps(self.recipe() | {"run": {"steps": 2**31}}),
                               "config" if isinstance(config, dict) else str(config))

    def recipe(self) -> dict[str, Any]:
        """Returns the keys that the optimizer reads."""
        own = (*_BATCH_KEYS, _LAYER_DROP, "tensorboard")
        return {key: value for key, value in self.values.items() if key not in own}

    def _section(self, name: str) -> dict[str, Any]:
        found = self.values.get(name, {})
        return found if isinstance(found, dict) else {}

    def _is_enabled(self, *names: str) -> bool:
        return any(self._section(name).get("enabled") is True for name in names)

    def _check_tensorboard(self) -> None:
        if self._is_enabled("tensorboard"):
            raise _core.Error("config: key `tensorboard.enabled` is true, but this engine writes no "
                              "events: set it to false, and write values of engine.get_lr(), "
                              "engine.get_global_grad_norm() and your losses in the script")

    def _check_types(self) -> None:
        """Error: a key that this engine reads itself has another type."""
        sections = ("fp16", "bf16", "bfloat16", "optimizer", "scheduler", "checkpoint", _LAYER_DROP)
        try:
            for name in sections:
                arguments.mapping(self.values.get(name, {}), name)
            for name in ("steps_per_print", "gradient_clipping"):
                arguments.number(self.values.get(name) or 0, name)
            for name in ("loss_scale", "initial_scale_power"):
                arguments.number(self._section("fp16").get(name, 0), f"fp16.{name}")
        except TypeError as error:
            raise _core.Error(f"config: key {error}") from error

    @property
    def fp16_enabled(self) -> bool:
        return self._is_enabled("fp16")

    @property
    def bfloat16_enabled(self) -> bool:
        return self._is_enabled("bf16", "bfloat16")

    @property
    def pld_enabled(self) -> bool:
        return self._is_enabled(_LAYER_DROP)

    @property
    def pld_params(self) -> dict[str, Any]:
        return self._section(_LAYER_DROP)

    @property
    def loss_scale(self) -> float:
        """The constant scale, or 0 for a dynamic one."""
        return float(self._section("fp16").get("loss_scale", 0)) if self.fp16_enabled else 1.0

    @property
    def initial_loss_scale(self) -> float:
        power = self._section("fp16").get("initial_scale_power", 16)
        return self.loss_scale or 2.0 ** power

    @property
    def gradient_clipping(self) -> float:
        return float(self.values.get("gradient_clipping") or 0.0)

    @property
    def optimizer_name(self) -> str | None:
        name = self._section("optimizer").get("type")
        return name.lower() if isinstance(name, str) else None

    @property
    def optimizer_params(self) -> dict[str, Any]:
        return dict(self._section("optimizer").get("params", {}))

    @property
    def scheduler_name(self) -> str | None:
        return self._section("scheduler").get("type")

    @property
    def scheduler_params(self) -> dict[str, Any]:
        return dict(self._section("scheduler").get("params", {}))

    @property
    def steps_per_print(self) -> int:
        return int(self.values.get("steps_per_print") or 10)

    @property
    def wall_clock_breakdown(self) -> bool:
        return bool(self.values.get("wall_clock_breakdown", False))

    @property
    def zero_enabled(self) -> bool:
        return False

    @property
    def zero_optimization_stage(self) -> int:
        return 0

    @property
    def dataloader_drop_last(self) -> bool:
        return bool(self.values.get("dataloader_drop_last", False))

    @property
    def use_node_local_storage(self) -> bool:
        return bool(self._section("checkpoint").get("use_node_local_storage", False))
