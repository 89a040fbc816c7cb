"""DeepSpeed's 1-bit optimizers with their constructors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onebit import _core, arguments
from onebit.torch.engine_optimizer import EngineOptimizer
from onebit.torch.warning import warn

# The types of arguments. The others are numbers. Values are checked as keys of a recipe.
_FLAGS = ("bias_correction", "eps_inside_sqrt", "amsgrad", "cuda_aware", "overlap")
_WHOLE = ("var_freeze_step", "var_update_scaler", "local_step_scaler", "local_step_clipper",
          "steps")
_TEXTS = ("clip", "comm_backend_name")
_CLIPS = ("by_bucket", "exact")


def checked(given: dict[str, Any]) -> dict[str, Any]:
    """Returns arguments of an optimizer as a recipe has them. TypeError: one has another type."""
    return {name: _checked_one(name, value) for name, value in given.items()}


def _checked_one(name: str, value: Any) -> Any:
    if name in _FLAGS:
        return arguments.flag(value, name)
    if name in _WHOLE:
        return arguments.whole(value, name)
    if name in _TEXTS or (name == "freeze_step" and isinstance(value, str)):
        return arguments.text(value, name)
    if name == "freeze_step":
        return arguments.whole(value, name)
    if name == "betas":
        return [arguments.number(one, f"betas[{index}]") for index, one in enumerate(
            arguments.elements(value, name, "two numbers"))]
    return arguments.number(value, name)


def _recipe(
    kind: str,
    settings: dict[str, Any],
    *,
    max_grad_norm: float,
    clip: str = "by_bucket",
    overlap: bool = True,
    bucket_mb: float = 4,
    steps: int | None = None,
) -> dict[str, Any]:
    """The recipe of an optimizer. `clip` is "by_bucket" or "exact" (docs/optimizers.md), `overlap`
    whether gradients are sent during the backward pass, `bucket_mb` how many MiB are sent at once,
    and `steps` the number of updates of the whole run, which lets the engine warn of a warm-up that
    would not end."""
    given = checked({"max_grad_norm": max_grad_norm, "clip": clip, "overlap": overlap,
                      "bucket_mb": bucket_mb})
    run: dict[str, Any] = {"overlap": given["overlap"], "bucket_mb": given["bucket_mb"]}
    if steps is not None:
        run["steps"] = arguments.whole(steps, "steps")
    if given["clip"] not in _CLIPS:
        raise _core.Error(f"clip is {clip!r}; it must be one of {', '.join(map(repr, _CLIPS))}")
    if given["max_grad_norm"] > 0 and overlap:
        run["clip"] = given["clip"]
    return {"optimizer": {"type": kind, "params": checked(settings)},
            "gradient_clipping": given["max_grad_norm"], "run": run}


_RUN_OPTIONS = ("clip", "overlap", "bucket_mb", "steps")
_ENGINE_OPTIONS = ("process_group", "ranks_per_node", "threads", "ranks")

_said: set[str] = set()


def _say_without_effect(**given: tuple[Any, Any, str]) -> None:
    """Warns once a process of each argument (value, usual value, why it has no effect) that is not
    as usual. TypeError: one has another type."""
    for name, (value, usual, why) in given.items():
        if usual is not None:
            value = _checked_one(name, value)
        if value is not usual and value != usual and name not in _said:
            _said.add(name)
            warn(f"{name}={value!r} has no effect: {why}")


def _say_transport(deepspeed: Any, cuda_aware: bool, comm_backend_name: str) -> None:
    connections = "the ranks have TCP connections of their own"
    _say_without_effect(
        deepspeed=(deepspeed is not None or None, None,
                   "the optimizer needs no engine of DeepSpeed"),
        cuda_aware=(cuda_aware, False, connections),
        comm_backend_name=(comm_backend_name, "nccl", connections))


class _DeepSpeedOptimizer(EngineOptimizer):
    """An optimizer with DeepSpeed's constructor. Every one has the options of EngineOptimizer and
    of _recipe() too."""

    def __init__(self, params: Iterable[Any], kind: str, settings: dict[str, Any],
                 max_grad_norm: float, options: dict[str, Any]) -> None:
        run = {key: options.pop(key) for key in _RUN_OPTIONS if key in options}
        for name in options.keys() - set(_ENGINE_OPTIONS):
            known = ", ".join((*_ENGINE_OPTIONS[:-1], *_RUN_OPTIONS))
            raise TypeError(f"{type(self).__name__}() has no argument {name!r}. Besides DeepSpeed's "
                            f"it has {known}")
        super().__init__(params, _recipe(kind, settings, max_grad_norm=max_grad_norm, **run),
                         **options)


class OnebitAdam(_DeepSpeedOptimizer):
    """1-bit Adam: Adam for `freeze_step` updates, then one bit an element between ranks
    (docs/optimizers.md). The first arguments are DeepSpeed's, in its order. `deepspeed`,
    `cuda_aware` and `comm_backend_name` have no effect."""

    def __init__(
        self,
        params: Iterable[Any],
        deepspeed: Any = None,
        lr: float = 1e-3,
        freeze_step: int | str = 100000,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
        weight_decay: float = 0.0,
        max_grad_norm: float = 0.0,
        amsgrad: bool = False,
        cuda_aware: bool = False,
        comm_backend_name: str = "nccl",
        **options: Any,
    ) -> None:
        """`freeze_step` is the number of updates of the warm-up, or "auto": when the variance has
        settled. Every optimizer here has the same `options`: process_group, ranks_per_node,
        threads, clip, overlap, bucket_mb, steps."""
        _say_transport(deepspeed, cuda_aware, comm_backend_name)
        super().__init__(
            params, "OneBitAdam",
            {"lr": lr, "freeze_step": freeze_step, "bias_correction": bias_correction,
             "betas": betas, "eps": eps, "eps_inside_sqrt": eps_inside_sqrt,
             "weight_decay": weight_decay, "amsgrad": amsgrad},
            max_grad_norm, options)


class OnebitLamb(_DeepSpeedOptimizer):
    """1-bit LAMB: LAMB for `freeze_step` updates, then one bit an element between ranks. The first
    arguments are DeepSpeed's, in its order. `coeff_beta` and `factor_...`, which correct its frozen
    trust ratios, have no effect, since the ratios here are exact."""

    def __init__(
        self,
        params: Iterable[Any],
        deepspeed: Any = None,
        lr: float = 1e-3,
        freeze_step: int | str = 100000,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
        weight_decay: float = 0.0,
        max_grad_norm: float = 0.0,
        max_coeff: float = 10.0,
        min_coeff: float = 0.01,
        amsgrad: bool = False,
        cuda_aware: bool = False,
        comm_backend_name: str = "nccl",
        coeff_beta: float = 0.9,
        factor_max: float = 4.0,
        factor_min: float = 0.5,
        factor_threshold: float = 0.1,
        **options: Any,
    ) -> None:
        _say_transport(deepspeed, cuda_aware, comm_backend_name)
        why = "the trust ratios are exact here, and need no correction"
        _say_without_effect(
            coeff_beta=(coeff_beta, 0.9, why), factor_max=(factor_max, 4.0, why),
            factor_min=(factor_min, 0.5, why), factor_threshold=(factor_threshold, 0.1, why))
        super().__init__(
            params, "OneBitLamb",
            {"lr": lr, "freeze_step": freeze_step, "bias_correction": bias_correction,
             "betas": betas, "eps": eps, "eps_inside_sqrt": eps_inside_sqrt,
             "weight_decay": weight_decay, "max_coeff": max_coeff, "min_coeff": min_coeff,
             "amsgrad": amsgrad},
            max_grad_norm, options)


class ZeroOneAdam(_DeepSpeedOptimizer):
    """0/1 Adam: between exchanges of one bit ranks make updates of their own. The first arguments
    are DeepSpeed's, in its order. The ranks' values differ between exchanges."""

    def __init__(
        self,
        params: Iterable[Any],
        deepspeed: Any = None,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
        weight_decay: float = 0.0,
        max_grad_norm: float = 0.0,
        var_freeze_step: int = 100000,
        var_update_scaler: int = 16,
        local_step_scaler: int = 32678,
        local_step_clipper: int = 16,
        amsgrad: bool = False,
        cuda_aware: bool = False,
        comm_backend_name: str = "nccl",
        **options: Any,
    ) -> None:
        _say_transport(deepspeed, cuda_aware, comm_backend_name)
        super().__init__(
            params, "ZeroOneAdam",
            {"lr": lr, "bias_correction": bias_correction, "betas": betas, "eps": eps,
             "eps_inside_sqrt": eps_inside_sqrt, "weight_decay": weight_decay,
             "var_freeze_step": var_freeze_step, "var_update_scaler": var_update_scaler,
             "local_step_scaler": local_step_scaler, "local_step_clipper": local_step_clipper,
             "amsgrad": amsgrad},
            max_grad_norm, options)
