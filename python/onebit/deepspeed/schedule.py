"""A schedule of the config's section `scheduler`."""

from __future__ import annotations

import json
from typing import Any

from onebit import _core
from onebit.torch import EngineOptimizer


class EngineSchedule:
    """Sets the learning rate of every update, as the engine computes it. A rate that the script
    writes into a parameter group wins from then on, as with DeepSpeed's scripts."""

    def __init__(self, optimizer: EngineOptimizer, recipe: dict[str, Any]) -> None:
        self.optimizer = optimizer
        self._schedule = _core.Schedule(json.dumps(recipe))
        self.last_batch_iteration = 0
        self._rates: list[float] | None = None
        self._set()

    def _set(self) -> None:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        if self._rates is not None and rates != self._rates:
            return  # the script's own
        rate = self._schedule.rate(self.last_batch_iteration + 1)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self._rates = [rate] * len(rates)

    def step(self, last_batch_iteration: int | None = None) -> None:
        """Sets the rate of the next update."""
        self.last_batch_iteration = (self.last_batch_iteration + 1 if last_batch_iteration is None
                                     else last_batch_iteration)
        self._set()

    def get_lr(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    get_last_lr = get_lr

    def state_dict(self) -> dict[str, Any]:
        return {"last_batch_iteration": self.last_batch_iteration}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.last_batch_iteration = state["last_batch_iteration"]
        self._rates = None
        self._set()
