"""An optimizer of PyTorch over onebit's engine."""

from __future__ import annotations

import copy
import json
import math
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

from onebit import _core
from onebit.torch.flat_module import FlatParameters
from onebit.torch.process_group import ranks_of

_UPDATES_OF_AN_ENDLESS_RUN = 2**31


class EngineOptimizer(torch.optim.Optimizer):
    """An optimizer whose arithmetic and exchange are the engine's.

    The engine is made in the first step(), because it places the parameters in the order in which
    the backward pass completes their gradients: what is complete leaves for the other ranks while
    the pass goes on. From then on `p.data` and `p.grad` are views of the engine's two buffers.
    """

    # torch.amp.GradScaler hands such an optimizer its scale, which step() refuses. Without this it
    # would scale gradients that are on their way already.
    _step_supports_amp_scaling = True

    def __init__(
        self,
        params: Iterable[Any],
        recipe: dict[str, Any],
        *,
        process_group: Any = None,
        threads: int | None = None,
        ranks: _core.Ranks | None = None,
    ) -> None:
        """`recipe` has the keys of docs/recipe.md that the engine reads, at least `optimizer`.
        `process_group` is one of torch.distributed, at first the default one. Without one there is
        a single rank. `threads` is how many cores the update uses, at first as many as torch's
        operations. Errors: a key that is wrong, a parameter that cannot be trained."""
        self._recipe = copy.deepcopy(recipe)
        self._recipe.setdefault("run", {}).setdefault("steps", _UPDATES_OF_AN_ENDLESS_RUN)
        _core.check_recipe(json.dumps(self._recipe))
        self._settings = self._recipe["optimizer"].setdefault("params", {})
        super().__init__(params, {"lr": self._settings.get("lr", 1e-3),
                                  "weight_decay": self._settings.get("weight_decay", 0.0)})
        self._ranks = ranks if ranks is not None else ranks_of(process_group)
        self._threads = threads or torch.get_num_threads()
        self._flat: FlatParameters | None = None
        self._announces = True
        #: What the engine reports of the last update: "step", "phase" ("warmup", "compressed"),
        #: "gradient_norm", "wire_bytes" (sent by this rank), "wait_seconds" and others.
        self.last_step: dict[str, Any] = {}
        self._parameters = self._check_groups()
        self._arrivals: list[int] = []
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._hook_of(index))
            for index, parameter in enumerate(self._parameters)
        ]
        self._broadcast_values()

    @property
    def ranks(self) -> _core.Ranks:
        """The ranks among which gradients are averaged."""
        return self._ranks

    @property
    def loss_scale(self) -> float:
        """What the loss of the coming backward pass must be multiplied by: 1 unless the recipe has
        fp16. All ranks read it before every pass, or none does."""
        return self._engine().begin()

    def add_settings(self, settings: dict[str, Any]) -> None:
        """Adds keys of a recipe to those that the constructor had. Errors: a key that is wrong, one
        that has another value already, a step has been made."""
        if self._flat is not None:
            raise _core.Error("settings can only be added before the first step")
        for key, value in settings.items():
            if self._recipe.get(key, value) not in (value, 0):  # 0: clipping that was not asked for
                raise _core.Error(f"key `{key}` is {self._recipe[key]!r} in the optimizer and "
                                  f"{value!r} in the config: give it in one of them")
        self._recipe |= copy.deepcopy(settings)
        _core.check_recipe(json.dumps(self._recipe))

    # --- the parameters ---------------------------------------------------------------------------

    def _name_of(self, group: int, place: int) -> str:
        names = self.param_groups[group].get("param_names")
        return f"`{names[place]}`" if names else f"{place} of group {group}"

    def _check_groups(self) -> list[torch.nn.Parameter]:
        """Returns the parameters to train, in their order."""
        parameters: list[torch.nn.Parameter] = []
        for number, group in enumerate(self.param_groups):
            for place, parameter in enumerate(group["params"]):
                if not parameter.requires_grad or parameter.numel() == 0:
                    continue
                self._check_parameter(self._name_of(number, place), parameter)
                parameters.append(parameter)
        if not parameters:
            raise _core.Error("no parameter has requires_grad and elements: nothing to train")
        decays = {group["weight_decay"] for group in self.param_groups if group["weight_decay"]}
        if len(decays) > 1:
            raise _core.Error(
                f"parameter groups have the weight decays {sorted(decays)}: all groups that decay "
                "must have the same one, and others 0")
        self._settings["weight_decay"] = decays.pop() if decays else 0.0
        self._rate()
        return parameters

    @staticmethod
    def _check_parameter(name: str, parameter: torch.nn.Parameter) -> None:
        kind = type(parameter.data).__name__
        if kind == "DTensor" or hasattr(parameter, "_spec"):
            raise _core.Error(
                f"parameter {name} is sharded over ranks (FSDP, tensor parallelism): its gradient "
                "is too, and error feedback needs a whole gradient on every rank. Give the "
                "optimizer a model that is not sharded")
        if parameter.device.type != "cpu":
            raise _core.Error(
                f"parameter {name} is on {parameter.device}: this package trains on CPUs; build "
                "onebit from source for CUDA")
        if parameter.dtype != torch.float32:
            raise _core.Error(
                f"parameter {name} is {parameter.dtype}: parameters are torch.float32, and 16-bit "
                "arithmetic comes from torch.autocast")
        if parameter.layout != torch.strided or parameter.is_sparse:
            raise _core.Error(f"parameter {name} is {parameter.layout}: it must be dense")

    def _rate(self) -> float:
        rates = {float(group["lr"]) for group in self.param_groups}
        if len(rates) > 1:
            raise _core.Error(
                f"parameter groups have the learning rates {sorted(rates)}: all must have the same")
        rate = rates.pop()
        if not math.isfinite(rate) or rate < 0:
            raise _core.Error(f"the learning rate is {rate}: it must be a number of at least 0")
        return rate

    def _broadcast_values(self) -> None:
        """Gives all ranks the values of rank 0, as DistributedDataParallel does."""
        with torch.no_grad():
            for parameter in self._parameters:
                values = parameter.detach().contiguous()
                self._ranks.broadcast(values.view(-1).numpy(), 0)
                if values.data_ptr() != parameter.data_ptr():
                    parameter.copy_(values)

    # --- the engine -------------------------------------------------------------------------------

    def _engine(self) -> FlatParameters:
        if self._flat is None:
            self._flat = self._make_engine()
        return self._flat

    def _make_engine(self) -> FlatParameters:
        """All ranks place the parameters as rank 0's backward pass has completed them."""
        seen = set(self._arrivals)
        order = self._arrivals + [i for i in range(len(self._parameters)) if i not in seen]
        shared = torch.tensor(order, dtype=torch.int64)
        self._ranks.broadcast(shared.numpy(), 0)
        decays = {
            id(parameter): group["weight_decay"] != 0
            for group in self.param_groups for parameter in group["params"]
        }
        size = self._ranks.size
        recipe = self._recipe | {"train_batch_size": size, "train_micro_batch_size_per_gpu": 1}
        return FlatParameters(
            self._parameters, shared.tolist()[::-1],
            [decays[id(parameter)] for parameter in self._parameters],
            json.dumps(recipe), self._ranks, self._threads)

    def _hook_of(self, index: int) -> Callable[[torch.Tensor], None]:
        reference = weakref.ref(self)  # a parameter must not keep its optimizer

        def hook(_: torch.Tensor) -> None:
            optimizer = reference()
            if optimizer is not None:
                optimizer._arrived(index)

        return hook

    def _arrived(self, index: int) -> None:
        if self._flat is not None:
            self._flat.arrived(index, self._announces)
        elif index not in self._arrivals:
            self._arrivals.append(index)

    def no_sync(self) -> Any:
        """A context in which backward passes only add to the gradients: all passes of an
        accumulation but the last, as in DistributedDataParallel."""
        return _Accumulation(self)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Averages the gradients over the ranks, by one bit an element after the warm-up, and makes
        an update. Every rank must call it. Gradients are read as they were when the backward pass
        completed them: scale or clip them with `max_grad_norm`, not by hand."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if getattr(self, "grad_scale", None) is not None:
            raise _core.Error(
                "torch.amp.GradScaler is not supported: use torch.autocast with bfloat16, which "
                "needs no scale")
        self.last_step = self._engine().step(self._rate())
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets all gradients to zero, in one pass over their buffer. model.zero_grad() costs one copy
        of every gradient more, because it leaves the buffer."""
        if self._flat is None:
            super().zero_grad(set_to_none)
        else:
            self._flat.zero_gradients()

    # --- state ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """torch's groups, and under "onebit" the engine's state of this rank: every rank saves its
        own. Values are in the model's state_dict()."""
        state = super().state_dict()
        state["onebit"] = {
            "ranks": self._ranks.size,
            "rank": self._ranks.rank,
            "order": self._flat.order if self._flat else None,
            "engine": self._flat.state() if self._flat else None,
        }
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what state_dict() of the same rank has returned. The model's values must have been
        loaded before. Errors: another number of ranks, another rank's state."""
        state = dict(state_dict)
        saved = state.pop("onebit", None)
        if saved is None:
            raise _core.Error(
                "the state has no entry \"onebit\": it is of another optimizer, whose averages this "
                "one cannot continue")
        if (saved["ranks"], saved["rank"]) != (self._ranks.size, self._ranks.rank):
            raise _core.Error(
                f"the state is of rank {saved['rank']} of {saved['ranks']} and is loaded by rank "
                f"{self._ranks.rank} of {self._ranks.size}: every rank saves and loads its own")
        super().load_state_dict(state)
        if saved["engine"] is None:
            return
        if self._flat is None:
            self._arrivals = saved["order"][::-1]
        if self._engine().order != saved["order"]:
            raise _core.Error("the state is of parameters in another order")
        self._engine().load_state(saved["engine"], saved["ranks"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if getattr(self, "_parameters", None):
            raise _core.Error(
                "parameters cannot be added to this optimizer: make a new one with all of them")
        super().add_param_group(param_group)


class _Accumulation:
    def __init__(self, optimizer: EngineOptimizer) -> None:
        self._optimizer = optimizer

    def __enter__(self) -> None:
        self._before = self._optimizer._announces
        self._optimizer._announces = False

    def __exit__(self, *_: object) -> None:
        self._optimizer._announces = self._before
