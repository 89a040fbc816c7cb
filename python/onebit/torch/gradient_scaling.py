"""torch.amp.GradScaler with an optimizer of several ranks.

Each rank has a scaler of its own, which sees the gradients of this rank alone. The ranks agree
before an update on whether one of them has found a gradient that is not finite, and every scaler
gets the result: so all skip the same updates, and their scales stay equal.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.amp.grad_scaler import OptState

from onebit import _core

# GradScaler.step() passes itself to a step() with an argument `grad_scaler`, which is the only way
# to give it the ranks' result, and says each time that a later torch will not.
warnings.filterwarnings("ignore", message="GradScaler is going to stop passing itself",
                        category=FutureWarning)


def agree(scaler: Any, optimizer: torch.optim.Optimizer, ranks: _core.Ranks) -> tuple[bool, float]:
    """Returns whether all gradients of all ranks are finite, and the scale that they still have.
    Error: the ranks' scales differ. Collective."""
    state = scaler._per_optimizer_states[id(optimizer)]
    is_unscaled = state["stage"] is OptState.UNSCALED
    if not is_unscaled:
        scaler._check_inf_per_device(optimizer)
    found = state["found_inf_per_device"]
    if not found:  # no gradient on this rank
        found[torch.device("cpu")] = torch.zeros(())
    scale = float(scaler.get_scale())
    numbers = torch.tensor([float(any(one.item() for one in found.values())), scale, -scale],
                           dtype=torch.float64)
    ranks.maximum(numbers.numpy())
    if numbers[1] != -numbers[2]:
        raise _core.Error(
            f"the GradScaler of rank {ranks.rank} has the scale {scale} and another rank's has "
            f"{float(numbers[1])} or {float(-numbers[2])}: make all alike, and load the same state "
            "into all")
    for one in found.values():
        one.fill_(float(numbers[0] > 0))
    return not bool(numbers[0] > 0), 1.0 if is_unscaled else scale
