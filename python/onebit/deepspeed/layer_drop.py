"""Progressive layer drop, as DeepSpeed's engine has it: the model drops, the engine says how often."""

from __future__ import annotations

import math
from typing import Any


class ProgressiveLayerDrop:
    """theta(step) falls from 1 to `theta`. A model gets it in forward(pld_theta=...)."""

    def __init__(self, theta: float = 0.5, gamma: float = 0.001, enabled: bool = True) -> None:
        self.theta, self.gamma = theta, gamma
        self.current_theta = 1.0

    def get_state(self) -> dict[str, Any]:
        return {"progressive_layer_drop": True, "pld_theta": self.get_theta()}

    def get_theta(self) -> float:
        return self.current_theta

    def update_state(self, global_step: int) -> None:
        self.current_theta = (1 - self.theta) * math.exp(-self.gamma * global_step) + self.theta
