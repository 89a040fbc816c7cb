"""An optimizer of PyTorch over onebit's engine."""

from __future__ import annotations

import contextlib
import json
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from onebit import _core, arguments
from onebit.torch import gradient_scaling, parameters, states
from onebit.torch.data_parallel import take_over
from onebit.torch.first_passes import FirstPasses
from onebit.torch.flat_module import FlatParameters, Trained
from onebit.torch.process_group import ranks_of

_UPDATES_OF_AN_ENDLESS_RUN = 2**31

# By parameter, the optimizer that was made last.
_OWNERS: WeakIdKeyDictionary = WeakIdKeyDictionary()


class EngineOptimizer(torch.optim.Optimizer):
    """An optimizer whose arithmetic and exchange are the engine's.

    The engine is made in the first step(), because it places the parameters in the order in which
    the backward pass completes their gradients: complete gradients are sent to the other ranks
    while the pass still runs. From then on `p.data` and `p.grad` of 32-bit parameters are views of
    the engine's two buffers.
    """

    # torch.amp.GradScaler leaves it to such an optimizer whether an update is skipped.
    _step_supports_amp_scaling = True

    def __init__(
        self,
        params: Iterable[Any],
        recipe: dict[str, Any],
        *,
        process_group: Any = None,
        ranks_per_node: int | None = None,
        threads: int | None = None,
        ranks: _core.Ranks | None = None,
    ) -> None:
        """`recipe` has the keys of docs/recipe.md that the engine reads, at least `optimizer`.
        `process_group` is a group of torch.distributed, by default its default group. Without a
        group there is a single rank. `ranks_per_node` is how many ranks in a row exchange exact
        means before one of them sends bits to other nodes, by default as many as are on one
        machine. `threads` is how many cores the update uses, by default as many as torch's
        operations. Errors: a key that is wrong, a parameter that cannot be trained, other
        parameters on another rank. Collective."""
        own = arguments.mapping(recipe, "recipe")
        self._recipe: dict[str, Any] = json.loads(arguments.json_text(own, "recipe"))
        for section in ("optimizer", "run"):
            arguments.mapping(self._recipe.setdefault(section, {}), f"recipe[{section!r}]")
        run = self._recipe["run"]
        run.setdefault("steps", _UPDATES_OF_AN_ENDLESS_RUN)
        if ranks_per_node is not None:
            if arguments.small(ranks_per_node, "ranks_per_node") < 1:
                raise _core.Error(f"ranks_per_node must be at least 1, not {ranks_per_node}")
            run["levels"] = "one" if ranks_per_node == 1 else "two"
        _core.check_recipe(json.dumps(self._recipe))
        self._settings = self._recipe["optimizer"].setdefault("params", {})
        if threads is not None and arguments.small(threads, "threads") < 1:
            raise _core.Error(f"threads must be at least 1, not {threads}")
        self._threads = threads or torch.get_num_threads()
        if ranks is None:
            ranks = ranks_of(process_group)
        self._ranks = arguments.instance(ranks, "ranks", _core.Ranks, "a group of onebit's ranks")
        if ranks_per_node is not None:
            self._ranks.set_ranks_per_node(ranks_per_node)
        self._flat: FlatParameters | None = None
        self._announces = True  # this pass is the last of an accumulation
        self._accumulation = 1
        self._passes: list[int] = []  # since the last step, by parameter
        self._waits = not run.get("overlap", True)  # for step(): gradients do not leave before
        self._is_wrapped = False  # in DistributedDataParallel, whose averages a hook replaces
        self._skipped = 0  # updates that a GradScaler has skipped
        self._trained: list[Trained] = []
        self._frozen: list[tuple[str, torch.nn.Parameter]] = []
        self._first_passes = FirstPasses()
        self._lost = ""  # a parameter that a later optimizer trains
        self._is_complete = False
        #: What the engine reports of the last update: "step", "phase" ("warmup", "compressed"),
        #: "gradient_norm", "wire_bytes" (sent by this rank), "wait_seconds" and others.
        self.last_step: dict[str, Any] = {}
        if not isinstance(params, torch.Tensor):  # of which torch says what is wrong
            params = arguments.elements(params, "params", "parameters or groups")
        super().__init__(params, {"lr": self._settings.get("lr", 1e-3),
                                  "weight_decay": self._settings.get("weight_decay", 0.0)})
        self._is_complete = True
        self._train(self.param_groups)
        if not self._trained:
            raise _core.Error("no parameter has requires_grad and elements: nothing to train")

    @property
    def ranks(self) -> _core.Ranks:
        """The ranks among which gradients are averaged."""
        return self._ranks

    @property
    def loss_scale(self) -> float:
        """What the loss of the coming backward pass must be multiplied by: 1 unless the recipe has
        fp16. All ranks read it before every pass, or none does."""
        return self._begun().begin()

    @property
    def accumulation(self) -> int:
        """How many backward passes add to the gradients before each step(), by default 1. Gradients
        are sent in the last of them, as outside of no_sync(). Divide the losses by it yourself."""
        return self._accumulation

    @accumulation.setter
    def accumulation(self, passes: int) -> None:
        if arguments.small(passes, "accumulation") < 1:
            raise _core.Error(f"accumulation must be at least 1, not {passes}")
        self._accumulation = passes

    def add_settings(self, settings: dict[str, Any]) -> None:
        """Adds keys of a recipe to those that the constructor had. Errors: a key that is wrong, one
        that has another value already, a step has been made."""
        if self._flat is not None:
            raise _core.Error("settings can only be added before the first step")
        added = json.loads(arguments.json_text(arguments.mapping(settings, "settings"), "settings"))
        for key, value in added.items():
            if self._recipe.get(key, value) not in (value, 0):  # 0: clipping that was not asked for
                raise _core.Error(f"key `{key}` is {self._recipe[key]!r} in the optimizer and "
                                  f"{value!r} in the config: give it in one of them")
        _core.check_recipe(json.dumps(self._recipe | added))
        self._recipe |= added

    # --- the parameters ---------------------------------------------------------------------------

    def _train(self, groups: list[dict[str, Any]]) -> None:
        """Takes the parameters of more groups. Collective."""
        first = len(self.param_groups) - len(groups)
        found = list(parameters.trained(groups, first))
        self._frozen += parameters.frozen(groups, first)
        parameters.check_settings(self.param_groups, self._settings)
        together = ([(one.name, one.parameter) for one in self._trained]
                    + [(name, parameter) for _, name, parameter in found])
        parameters.check_on_one_device(together)
        parameters.check_own_memory(together)
        parameters.check_same_on_ranks(self._ranks, found)
        all_held = [parameters.held_entries(self.param_groups[number], name, parameter)
                    for number, name, parameter in found]
        parameters.check_numbers(self.param_groups)
        for (number, name, parameter), held in zip(found, all_held):
            index = len(self._trained)
            self._trained.append(Trained(parameter, name, number, held))
            if parameter in _OWNERS and (before := _OWNERS[parameter]()) is not None:
                before._lost = before._lost or name
            _OWNERS[parameter] = weakref.ref(self)
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                self._hook_of(index))
            self._broadcast(parameter)

    def _broadcast(self, parameter: torch.nn.Parameter) -> None:
        """Gives all ranks the values of rank 0, as DistributedDataParallel does."""
        values = parameter.detach().reshape(-1).view(torch.uint8)
        on_host = values.cpu()  # the same memory, if the parameter is on the CPU
        self._ranks.broadcast(on_host.numpy(), 0)
        if parameter.is_cuda:
            values.copy_(on_host)

    def _used_groups(self) -> list[int]:
        return sorted({one.group for one in self._trained})

    def _rates(self) -> tuple[float, list[tuple[float, float]]]:
        return parameters.rates(self.param_groups, self._used_groups())

    # --- the engine -------------------------------------------------------------------------------

    def _engine(self) -> FlatParameters:
        if self._flat is None:
            self._flat = self._make_engine()
        return self._flat

    def _begun(self) -> FlatParameters:
        """The engine with the settings of the coming pass, which weight decay that is part of the
        gradient needs in it."""
        engine = self._engine()
        if not engine.is_open:
            engine.set_groups(self._rates()[1])
        return engine

    def _make_engine(self) -> FlatParameters:
        """All ranks place the parameters as rank 0's backward pass has completed them."""
        order = self._first_passes.agree(self._ranks, len(self._trained))
        if self._first_passes.are_added_up and not self._waits:
            self._waits = True
            self._first_passes.warn_of_waiting(self._ranks)
        return self._placed(order[::-1])

    def _placed(self, order: list[int]) -> FlatParameters:
        used = self._used_groups()
        placed = [Trained(one.parameter, one.name, used.index(one.group), one.held)
                  for one in self._trained]
        parameters.check_same_settings(self._ranks, self._recipe)
        recipe = self._recipe | {"train_batch_size": self._ranks.size,
                                 "train_micro_batch_size_per_gpu": 1}
        return FlatParameters(placed, order, json.dumps(recipe), self._ranks, self._threads)

    def _hook_of(self, index: int) -> Callable[[torch.Tensor], None]:
        reference = weakref.ref(self)  # a parameter must not keep its optimizer

        def hook(_: torch.Tensor) -> None:
            if (optimizer := reference()) is not None:
                optimizer._arrived(index)

        return hook

    def _arrived(self, index: int) -> None:
        if self._lost:
            return
        if self._flat is not None:
            leaves = self._announces and not self._waits and self._is_last_pass(index)
            if leaves:
                self._begun()
            self._flat.arrived(index, leaves)
        elif self._announces:
            self._first_passes.arrived(index, self._trained[index].parameter, self._accumulation)

    def _is_last_pass(self, index: int) -> bool:
        if self._accumulation == 1:
            return True
        if not self._passes:
            self._passes = [0] * len(self._trained)
        self._passes[index] += 1
        return self._passes[index] >= self._accumulation

    def _wait_for_step(self, what: str) -> None:
        """From now on gradients are sent in step(). Error: some have been sent already."""
        if self._flat is not None and not self._waits and self._flat.has_begun:
            raise _core.Error(
                f"{what} changes gradients after the backward pass, and they are on their way to "
                "the other ranks: use it from the first step on, or give the optimizer "
                "overlap=False")
        self._waits = True

    def _leave_wrapper(self) -> None:
        """DistributedDataParallel averages nothing from now on."""
        self._wait_for_step("a model in DistributedDataParallel")
        self._is_wrapped = True

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which backward passes only add to the gradients: all passes of an
        accumulation but the last, as in DistributedDataParallel."""
        before = self._announces
        self._announces = False
        try:
            yield
        finally:
            self._announces = before

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None, *, grad_scaler: Any = None) -> Any:
        """Averages the gradients over the ranks, by one bit an element after the warm-up, and makes
        an update. Every rank must call it. Gradients are read as they were when the backward pass
        completed them: scale or clip them with `max_grad_norm`, not by hand. `grad_scaler` is what
        torch.amp.GradScaler passes."""
        loss = None
        self._check_parameters()
        if closure is not None:
            arguments.function(closure, "closure")
            with torch.enable_grad():
                loss = closure()
        scale = 1.0
        if grad_scaler is not None:
            arguments.instance(grad_scaler, "grad_scaler", torch.amp.GradScaler,
                               "a torch.amp.GradScaler")
            self._wait_for_step("torch.amp.GradScaler")
            finite, scale = gradient_scaling.agree(grad_scaler, self, self._ranks)
            if not finite:
                self._skip()
                return loss
        parameters.check_settings(self.param_groups, self._settings)
        rate, settings = self._rates()
        engine = self._begun()
        engine.begin()
        engine.set_groups(settings)
        self._passes.clear()
        self.last_step = engine.step(rate, scale)
        self.last_step["skipped_steps"] += self._skipped
        parameters.check_same_rates(self._ranks, engine.completed_steps, self.param_groups)
        return loss

    def _check_parameters(self) -> None:
        if self._lost:
            raise _core.Error(
                f"parameter {self._lost} is trained by another optimizer, which was made after this "
                "one: one optimizer trains a parameter at a time, so use that one")
        parameters.check_as_before([(one.name, one.parameter) for one in self._trained],
                                   self._frozen)
        if not self.last_step:
            self._take_over()

    def _take_over(self) -> None:
        if self._ranks.size > 1 and not self._is_wrapped:
            take_over(self, [one.parameter for one in self._trained])

    def _skip(self) -> None:
        self._skipped += 1
        self.last_step = self.last_step | {
            "applied": False,
            "skipped_steps": self.last_step.get("skipped_steps", 0) + 1,
            "step": self._flat.completed_steps if self._flat else 0,
        }

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Sets all gradients to zero, in one pass over their buffer. model.zero_grad() costs one copy
        of every gradient more, because it leaves the buffer."""
        if self._flat is None:
            self._first_passes.zeroed()
            super().zero_grad(set_to_none)
        else:
            self._flat.zero_gradients()

    # --- state ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """torch's groups, and under "onebit" the engine's state of this rank: every rank saves its
        own. Values are in the model's state_dict(). The values of 16-bit parameters and of 0/1 Adam
        are here as well. Collective."""
        state = super().state_dict()
        state["param_groups"] = [
            {key: value for key, value in group.items() if key != "exp_avg_mask"}
            for group in state["param_groups"]]
        engine = self._flat
        with_values = engine is not None and (
            engine.is_narrow or self._recipe["optimizer"]["type"].lower() == "zerooneadam")
        state["onebit"] = {
            "ranks": self._ranks.size,
            "order": engine.order if engine else None,
            "shapes": states.shapes(self._trained),
            "waits": self._waits,
            "skipped": self._skipped,
            "engines": {self._ranks.rank: engine.state(with_values)} if engine else {},
        }
        return state

    def full_state_dict(self) -> dict[str, Any] | None:
        """Returns on rank 0 the state of all ranks, which any number of ranks can load, and None on
        the others. Collective."""
        return states.gathered(self.state_dict(), self._ranks)

    def load_state_dict(self, state_dict: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Loads what state_dict() of the same rank has returned: the run then continues bit for
        bit. For another number of ranks it takes a list of the states of all ranks, or what
        full_state_dict() has returned. The model's values must have been loaded before. Errors: a
        rank's state is missing, or is of other parameters. Collective."""
        state = states.merged(state_dict)
        saved = state.pop("onebit")
        has_engine = saved["order"] is not None
        if has_engine:
            states.check_ranks(saved, self._ranks)
            states.check_parameters(saved, self._trained)
        masks = [group.get("exp_avg_mask") for group in self.param_groups]
        super().load_state_dict(state)
        for group, mask in zip(self.param_groups, masks):
            if mask is not None:
                group["exp_avg_mask"] = mask
        parameters.check_settings(self.param_groups, self._settings)
        self._waits, self._skipped = self._waits or saved["waits"], saved["skipped"]
        self._take_over()
        if not has_engine:
            return
        if self._flat is None or self._flat.order != saved["order"]:
            self._flat = self._placed(saved["order"])
        engines = saved["engines"]
        if saved["ranks"] == self._ranks.size:
            engines = {self._ranks.rank: engines[self._ranks.rank]}
        self._flat.load_state(engines, saved["ranks"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters, before the first step. Collective."""
        if self._flat is not None:
            raise _core.Error(
                "parameters cannot be added after the first step, in which the engine has placed "
                "them: make a new optimizer with all of them")
        if "params" not in arguments.mapping(param_group, "param_group"):
            raise _core.Error("param_group has no `params`")
        super().add_param_group(param_group)
        if not self._is_complete:
            return
        try:
            self._train(self.param_groups[-1:])
        except BaseException:
            del self.param_groups[-1]
            raise

    def __getstate__(self) -> dict[str, Any]:
        raise _core.Error(
            "this optimizer cannot be copied or pickled, as it is connected with the other ranks: "
            "make another one and load state_dict() into it")
