"""What the engine says about its config, under DeepSpeed's names."""

from __future__ import annotations

from typing import Any

import torch

from onebit import _core, arguments
from onebit.deepspeed.config import DeepSpeedConfig


class EngineSettings:
    """The part of the engine that only reads."""

    _config: DeepSpeedConfig
    _device: torch.device
    optimizer: Any  # an EngineOptimizer, to which the engine adds `cur_scale` and `overflow`

    def train_batch_size(self) -> int:
        return self._config.train_batch_size

    def train_micro_batch_size_per_gpu(self) -> int:
        return self._config.train_micro_batch_size_per_gpu

    def gradient_accumulation_steps(self) -> int:
        return self._config.gradient_accumulation_steps

    def get_batch_info(self) -> tuple[int, int, int]:
        """Returns the batch of all ranks, the micro-batch and the micro-batches of a step."""
        return (self.train_batch_size(), self.train_micro_batch_size_per_gpu(),
                self.gradient_accumulation_steps())

    def set_train_batch_size(self, train_batch_size: int) -> None:
        """Changes how many micro-batches a step has. Error: it is no whole number."""
        arguments.small(train_batch_size, "train_batch_size")
        one_pass = self.train_micro_batch_size_per_gpu() * self.world_size
        if train_batch_size < 1 or train_batch_size % one_pass:
            raise _core.Error(f"set_train_batch_size({train_batch_size}): it must be a multiple of "
                              f"{one_pass}, one micro-batch of every rank")
        self._config.train_batch_size = train_batch_size
        self._config.gradient_accumulation_steps = train_batch_size // one_pass

    def optimizer_name(self) -> str | None:
        """The config's optimizer in small letters, or the class of the script's own."""
        return self._config.optimizer_name or type(self.optimizer).__name__

    def optimizer_params(self) -> dict[str, Any]:
        return self._config.optimizer_params

    def scheduler_name(self) -> str | None:
        return self._config.scheduler_name

    def scheduler_params(self) -> dict[str, Any]:
        return self._config.scheduler_params

    def fp16_enabled(self) -> bool:
        return self._config.fp16_enabled

    def bfloat16_enabled(self) -> bool:
        return self._config.bfloat16_enabled

    def amp_enabled(self) -> bool:
        return False

    def loss_scale(self) -> float:
        """The config's constant scale, 0 for a dynamic one. optimizer.cur_scale is the present
        scale."""
        return self._config.loss_scale

    def dynamic_loss_scale(self) -> bool:
        return self._config.loss_scale == 0

    def gradient_clipping(self) -> float:
        return self._config.gradient_clipping

    def steps_per_print(self) -> int:
        return self._config.steps_per_print

    def wall_clock_breakdown(self) -> bool:
        return self._config.wall_clock_breakdown

    def pld_enabled(self) -> bool:
        return self._config.pld_enabled

    def pld_params(self) -> dict[str, Any]:
        return self._config.pld_params

    def sparse_gradients_enabled(self) -> bool:
        return False

    def zero_optimization(self) -> bool:
        return False

    def zero_optimization_stage(self) -> int:
        return 0

    def zero_offload_optimizer(self) -> None:
        """None: there is no ZeRO."""

    zero_offload_param = zero_offload_optimizer

    def use_node_local_storage(self) -> bool:
        return self._config.use_node_local_storage

    @property
    def config(self) -> dict[str, Any]:
        """The config as it was given."""
        return self._config.values

    @property
    def world_size(self) -> int:
        return int(self.optimizer.ranks.size)

    dp_world_size = world_size

    @property
    def mp_world_size(self) -> int:
        return 1

    @property
    def global_rank(self) -> int:
        return int(self.optimizer.ranks.rank)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self._device

    def get_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def set_lr(self, lr: float) -> None:
        """Sets the rate of all groups, which then wins over the config's schedule."""
        rate = arguments.number(lr, "lr")
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def get_mom(self) -> list[Any]:
        betas = self._config.optimizer_params.get("betas", (0.9, 0.999))
        return [group.get("betas", betas) for group in self.optimizer.param_groups]
