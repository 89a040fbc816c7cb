"""Parameters of a module in the engine's two flat buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from onebit import _core
from onebit.torch.device import device_of
from onebit.torch.parameters import check_gradient
from onebit.torch.warning import warn


@dataclass
class Trained:
    """A parameter to train."""

    parameter: torch.nn.Parameter
    name: str  # for errors
    group: int
    held: list[tuple[int, int]]  # ranges of elements that an exp_avg_mask holds


class FlatParameters:
    """Moves parameters into the engine's memory and tells it which gradients are complete.

    A parameter of 32 bits and its gradient become views. The values of one of 16 bits are what
    rounding the engine's makes of them, and its gradient is copied when it is complete. What the
    script writes into it counts, except what it writes to `.data`: torch keeps no count of such
    writes.

    `order` has the index of every parameter in the order of the buffers. The engine takes
    gradients from the end of its buffer to the beginning, so the parameter whose gradient is
    complete first stands last.
    """

    def __init__(self, trained: list[Trained], order: list[int], recipe: str, ranks: _core.Ranks,
                 threads: int) -> None:
        self.order = order
        self.trained = trained
        declared = [(str(index), list(one.parameter.shape), one.group, one.held)
                    for index, one in ((index, trained[index]) for index in order)]
        self._device = device_of(trained[0].parameter)
        self._engine = _core.Engine(declared, recipe, ranks, threads, self._device.index)
        self._gradients = from_dlpack(self._engine.gradients())
        self._parameters = [one.parameter for one in trained]
        self._place = {index: place for place, index in enumerate(order)}
        self._begins = [self._engine.range(place)[0] for place in range(len(order))]
        self._values: list[torch.Tensor] = [torch.empty(0)] * len(trained)
        self._views: list[torch.Tensor] = [torch.empty(0)] * len(trained)
        for place in range(len(order)):
            self._move(place)
        narrow = [index for index, one in enumerate(trained)
                  if one.parameter.dtype != torch.float32]
        self.is_narrow = bool(narrow)
        self._narrow = [self._parameters[index].data for index in narrow]
        self._wide = [self._values[index] for index in narrow]
        self._narrow_indices = narrow
        self._versions: list[int] = []  # of the narrow, when they were last written here
        self._places_of_values = [parameter.data_ptr() for parameter in self._parameters]
        with self._device.turn(self._engine):
            self._engine.broadcast_values()
        self._round()
        self._has_begun = False
        self._warned = False
        self._reset()

    def _move(self, place: int) -> None:
        index, begin = self.order[place], self._begins[place]
        parameter = self._parameters[index]
        end = begin + parameter.numel()
        # With a storage of its own. safetensors saves no tensor that is a part of a storage, and
        # torch.save() would save all of the storage.
        value = from_dlpack(self._engine.values(place)).view(parameter.shape)
        view = self._gradients[begin:end].view(parameter.shape)
        self._values[index], self._views[index] = value, view
        value.copy_(parameter.data)
        if parameter.grad is not None:
            check_gradient(self.trained[index].name, parameter)
            view.copy_(parameter.grad)
        if parameter.dtype == torch.float32:
            parameter.data = value
            parameter.grad = view

    def _round(self) -> None:
        """What the module sees of 16-bit parameters follows the engine's values."""
        if self.is_narrow:
            torch._foreach_copy_(self._narrow, self._wide)
            self._versions = [self._parameters[index]._version for index in self._narrow_indices]

    def _take_narrow(self) -> None:
        """The engine's values follow elements of 16-bit parameters that the script has written, for
        example by load_state_dict() of the model."""
        for index, version in zip(self._narrow_indices, self._versions):
            parameter, wide = self._parameters[index], self._values[index]
            if parameter._version != version:
                is_written = parameter.data != wide.to(parameter.dtype)
                wide[is_written] = parameter.data[is_written].float()

    def _check_in_place(self) -> None:
        """Error: the module's parameters are no longer those that the engine updates."""
        for index, place in enumerate(self._places_of_values):
            parameter = self._parameters[index]
            if parameter.data_ptr() != place:
                raise _core.Error(
                    f"parameter {self.trained[index].name} has other memory than in the first step "
                    f"(it is {parameter.dtype} on {parameter.device} now), so that updates would not "
                    "reach it: call model.to(), half() or float(), or set `p.data`, before the first "
                    "step, or make a new optimizer")

    def _reset(self) -> None:
        self._is_complete = [False] * len(self.order)
        self._next = len(self.order)  # places from here on have been announced
        self._sent_version: int | None = None  # of the gradients, once all are on their way

    @property
    def has_begun(self) -> bool:
        """Whether a pass has begun during which gradients are sent."""
        return self._has_begun and self._is_awaited

    @property
    def is_open(self) -> bool:
        """Whether begin() has been called since the last step()."""
        return self._has_begun

    @property
    def completed_steps(self) -> int:
        return self._engine.completed_steps

    @property
    def transport(self) -> str:
        """What carries the gradients: "tcp", "nccl" or another."""
        return self._engine.transport

    def set_groups(self, settings: list[tuple[float, float]]) -> None:
        self._engine.set_groups(settings)

    def begin(self) -> float:
        """Begins the pass whose gradients count, unless it has begun. Returns the loss scale."""
        if not self._has_begun:
            with self._device.turn(self._engine):
                self._scale, self._is_awaited = self._engine.begin_backward()
            self._has_begun = True
        return self._scale

    def _is_view(self, index: int, gradient: torch.Tensor) -> bool:
        if gradient.layout != torch.strided:
            check_gradient(self.trained[index].name, self._parameters[index])
        return gradient.data_ptr() == self._views[index].data_ptr()

    def arrived(self, index: int, is_last: bool) -> None:
        """A backward pass has completed this gradient. `is_last` is whether it is sent now."""
        parameter, view = self._parameters[index], self._views[index]
        gradient = parameter.grad
        assert gradient is not None
        if gradient is not view and not self._is_view(index, gradient):
            # zero_grad(set_to_none=True) of the model, or a parameter of 16 bits
            values = gradient.detach()  # backward(create_graph=True) keeps a graph
            if gradient.dtype == torch.float32:
                view.copy_(values)
                parameter.grad = view
            elif is_last:
                view.copy_(values)
        if not is_last:
            return
        self.begin()
        self._device.catch_up(self._engine)
        place = self._place[index]
        if self._is_awaited and place >= self._next:
            raise _core.Error(
                "a second backward pass has added to gradients that are on their way to the other "
                "ranks: put all passes before the last one into `with optimizer.no_sync():`, or give "
                "the optimizer overlap=False. Two optimizers that take turns and a reentrant "
                "checkpoint need the latter")
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
        if not self._is_awaited:
            return
        self._engine.gradients_ready(self._begins[first], end)
        if first == 0:
            self._sent_version = self._gradients._version

    def _collect(self) -> None:
        """Takes gradients that have not been sent yet from where they are. A missing gradient is
        zero."""
        for index, parameter in enumerate(self._parameters):
            view, gradient = self._views[index], parameter.grad
            if gradient is None:
                view.zero_()
            elif not self._is_view(index, gradient):
                if self.has_begun and self._is_complete[self._place[index]]:
                    continue  # of 16 bits, and on its way
                view.copy_(gradient)
            if parameter.dtype == torch.float32:
                parameter.grad = view

    def step(self, rate: float, scale: float) -> dict[str, Any]:
        """Makes an update from the gradients over `scale`, also where no pass has completed one.
        Only gradients that wait for the call may have a scale. Error: parameters have moved."""
        self._check_in_place()
        self._take_narrow()
        if self._sent_version not in (None, self._gradients._version) and not self._warned:
            self._warned = True
            warn(
                "gradients were changed after the backward pass had sent them: the other ranks do "
                "not see the change. Clip with max_grad_norm=, scale the loss, or give the "
                "optimizer overlap=False")
        if self._sent_version is None:
            self._collect()
            if scale != 1:
                self._gradients.mul_(1 / scale)
        self.begin()
        with self._device.turn(self._engine):
            self._announce(0)
            self._reset()
            self._has_begun = False
            self._engine.end_backward()
            outcome = self._engine.step(rate)
        self._round()
        return outcome

    def zero_gradients(self) -> None:
        self._gradients.zero_()
        for parameter, view in zip(self._parameters, self._views):
            parameter.grad = view if parameter.dtype == torch.float32 else None

    def replicas_agree(self) -> bool:
        with self._device.turn(self._engine):
            return self._engine.replicas_agree()

    def state(self, with_values: bool) -> dict[str, Any]:
        """Texts, and f32 tensors on the CPU."""
        with self._device.turn(self._engine):
            state = self._engine.state(with_values)
        return {key: value if isinstance(value, str) else torch.from_numpy(value)
                for key, value in state.items()}

    def load_state(self, states: dict[int, dict[str, Any]], saved_ranks: int) -> None:
        self._check_in_place()
        self._take_narrow()
        arrays = {rank: {key: value if isinstance(value, str) else value.cpu().contiguous().numpy()
                         for key, value in state.items()} for rank, state in states.items()}
        with self._device.turn(self._engine):
            self._engine.load_state(arrays, saved_ranks)
        self._round()
