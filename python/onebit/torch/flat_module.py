"""Parameters of a module as views of the engine's two flat buffers."""

from __future__ import annotations

from typing import Any

import torch

from onebit import _core


class FlatParameters:
    """Moves parameters into the engine's memory and tells it which gradients are complete.

    `order` has the index of every parameter in the order of the buffers. The engine takes
    gradients from the end of its buffer to the beginning, so the parameter whose gradient is
    complete first stands last.
    """

    def __init__(self, parameters: list[torch.nn.Parameter], order: list[int], decays: list[bool],
                 recipe: str, ranks: _core.Ranks, threads: int) -> None:
        self.order = order
        declared = [(str(index), list(parameters[index].shape), decays[index], True)
                    for index in order]
        self._engine = _core.Engine(declared, recipe, ranks, threads)
        values = torch.from_numpy(self._engine.values())
        self._gradients = torch.from_numpy(self._engine.gradients())
        self._parameters = parameters
        self._place = {index: place for place, index in enumerate(order)}
        self._begins = [self._engine.range(place)[0] for place in range(len(order))]
        self._views: list[torch.Tensor] = [torch.empty(0)] * len(parameters)
        for index, begin in zip(order, self._begins):
            self._move(index, begin, values)
        self._engine.broadcast_values()
        self._has_begun = False
        self._reset()

    def _move(self, index: int, begin: int, values: torch.Tensor) -> None:
        parameter = self._parameters[index]
        end = begin + parameter.numel()
        value = values[begin:end].view(parameter.shape)
        self._views[index] = self._gradients[begin:end].view(parameter.shape)
        value.copy_(parameter.data)
        if parameter.grad is not None:
            self._views[index].copy_(parameter.grad)
        parameter.data = value
        parameter.grad = self._views[index]

    def _reset(self) -> None:
        self._is_complete = [False] * len(self.order)
        self._next = len(self.order)  # places from here on have been announced

    def begin(self) -> float:
        """Begins the pass whose gradients count, unless it has begun. Returns the loss scale."""
        if not self._has_begun:
            self._scale, self._is_awaited = self._engine.begin_backward()
            self._has_begun = True
        return self._scale

    def arrived(self, index: int, is_last: bool) -> None:
        """A backward pass has completed this gradient. `is_last` is whether no other adds to it."""
        parameter, view = self._parameters[index], self._views[index]
        gradient = parameter.grad
        if gradient is not view and gradient.data_ptr() != view.data_ptr():
            view.copy_(gradient)  # zero_grad(set_to_none=True) of the model
            parameter.grad = view
        if not is_last:
            return
        self.begin()
        place = self._place[index]
        if self._is_awaited and place >= self._next:
            raise _core.Error(
                "a second backward pass has added to gradients that are on their way to the other "
                "ranks: put all passes before the last one into `with optimizer.no_sync():`")
        self._is_complete[place] = True
        first = self._next
        while first > 0 and self._is_complete[first - 1]:
            first -= 1
        self._announce(first)

    def _announce(self, first: int) -> None:
        if first == self._next:
            return
        end = self._begins[self._next] if self._next < len(self._begins) else self._engine.size
        self._next = first
        if self._is_awaited:
            self._engine.gradients_ready(self._begins[first], end)

    def step(self, rate: float) -> dict[str, Any]:
        """Makes an update from the gradients, also where no pass has completed one."""
        for index, parameter in enumerate(self._parameters):
            view = self._views[index]
            if parameter.grad is None:
                view.zero_()
                parameter.grad = view
            elif parameter.grad.data_ptr() != view.data_ptr():
                view.copy_(parameter.grad)
                parameter.grad = view
        self.begin()
        self._announce(0)
        self._reset()
        self._has_begun = False
        self._engine.end_backward()
        return self._engine.step(rate)

    def zero_gradients(self) -> None:
        self._gradients.zero_()
        for parameter, view in zip(self._parameters, self._views):
            parameter.grad = view

    def replicas_agree(self) -> bool:
        return self._engine.replicas_agree()

    def state(self) -> dict[str, Any]:
        """Texts, and f32 tensors."""
        return {key: value if isinstance(value, str) else torch.from_numpy(value)
                for key, value in self._engine.state().items()}

    def load_state(self, state: dict[str, Any], saved_ranks: int) -> None:
        self._engine.load_state(
            {key: value if isinstance(value, str) else value.contiguous().numpy()
             for key, value in state.items()}, saved_ranks)
