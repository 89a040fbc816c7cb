"""The backward passes before the first step."""

from __future__ import annotations

import torch

from onebit import _core
from onebit.torch.warning import warn


class FirstPasses:
    """In which order the passes complete gradients, and whether a script adds up several of them.

    The engine sends gradients during a pass only if it knows that the pass is the last one before
    step(). A loop of PyTorch does not say so. The passes before the first step show it.
    """

    def __init__(self) -> None:
        self._passes: dict[int, int] = {}
        self._latest: dict[int, tuple[int, int]] = {}
        self.are_added_up = False

    def arrived(self, index: int, parameter: torch.nn.Parameter, accumulation: int) -> None:
        """A pass that may be the last of an accumulation has completed a gradient."""
        gradient = parameter.grad
        if gradient is None or gradient.layout != torch.strided:
            return  # step() says what is wrong
        address, version = self._latest.get(index, (0, 0))
        is_added = gradient.data_ptr() == address and gradient._version > version
        self._latest[index] = gradient.data_ptr(), gradient._version
        self._passes[index] = self._passes[index] + 1 if is_added else 1
        self.are_added_up = self.are_added_up or self._passes[index] > accumulation

    def zeroed(self) -> None:
        self._latest.clear()

    def agree(self, ranks: _core.Ranks, count: int) -> list[int]:
        """Returns all `count` parameters by their first gradient on rank 0, and parameters without
        one last. `are_added_up` is then whether a rank has seen it. Collective."""
        order = list(self._passes) + [index for index in range(count) if index not in self._passes]
        shared = torch.tensor(order, dtype=torch.int64)
        ranks.broadcast(shared.numpy(), 0)
        seen = torch.tensor([float(self.are_added_up)], dtype=torch.float64)
        ranks.maximum(seen.numpy())
        self.are_added_up = bool(seen[0] > 0)
        return shared.tolist()

    def warn_of_waiting(self, ranks: _core.Ranks) -> None:
        """Says why gradients leave in step(), and how they would leave earlier."""
        if ranks.size > 1:
            warn(
                "several backward passes have added to a gradient before the first step: gradients "
                "are sent in step() and not during a pass. Set optimizer.accumulation, or put all "
                "passes but the last into `with optimizer.no_sync():`, and they leave during the "
                "last one")
