"""The optimizer of the engine, with the names that DeepSpeed's has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from onebit import _core
from onebit.deepspeed.config import DeepSpeedConfig
from onebit.torch import EngineOptimizer
from onebit.torch.optimizers import checked


class DeepSpeedOptimizer(EngineOptimizer):
    """An optimizer that the config names, or that a script makes by a name of DeepSpeed's."""

    #: The loss scale of the latest backward pass, 1 without fp16.
    cur_scale = 1.0
    #: Whether gradients of the latest step overflowed, so that it changed nothing.
    overflow = False

    @property
    def optimizer(self) -> DeepSpeedOptimizer:
        """Returns itself. In DeepSpeed an optimizer for fp16 contains the optimizer."""
        return self

    def get_lamb_coeffs(self) -> list[float]:
        """Returns an empty list: LAMB's ratios stay in the engine, and no step copies them out."""
        return []

    def backward(self, loss: torch.Tensor, **_: Any) -> None:
        raise _core.Error("optimizer.backward(loss) is not supported: call engine.backward(loss)")


def _named(kind: str, **fixed: Any) -> type[DeepSpeedOptimizer]:
    """Returns DeepSpeed's class for an optimizer without compression."""

    class Named(DeepSpeedOptimizer):
        __doc__ = f"{kind}, computed by onebit, with averages over the ranks."

        def __init__(self, params: Iterable[Any] | None = None, lr: float = 1e-3,
                     bias_correction: bool = True, betas: tuple[float, float] = (0.9, 0.999),
                     eps: float = 1e-8, weight_decay: float = 0.0, **others: Any) -> None:
            params = others.pop("model_params", params)
            for name in ("set_grad_none", "fp32_optimizer_states", "max_grad_norm"):
                if others.pop(name, None) and name == "max_grad_norm":
                    raise _core.Error("max_grad_norm is not supported by DeepSpeed's optimizers: "
                                      "give gradient_clipping in the config")
            settings = checked({"lr": lr, "bias_correction": bias_correction, "betas": betas,
                                "eps": eps, "weight_decay": weight_decay} | others)
            super().__init__(params, {"optimizer": {"type": kind, "params": fixed | settings}})

    return Named


FusedAdam = _named("Adam")
FusedLamb = _named("Lamb")


def optimizer_of(given: Any, parameters: Iterable[Any], config: DeepSpeedConfig) -> EngineOptimizer:
    """Returns the optimizer of initialize(optimizer=...), or of the config. Errors: neither is
    there, or the script's optimizer averages nothing."""
    if given is None:
        if config.optimizer_name is None:
            raise _core.Error("there is no optimizer: the config needs a section `optimizer`")
        return DeepSpeedOptimizer(parameters, config.recipe())
    if callable(given) and not isinstance(given, torch.optim.Optimizer):
        given = given(parameters)
    if not isinstance(given, EngineOptimizer):
        raise _core.Error(
            f"initialize(optimizer=...) is of {type(given).__name__}, which averages nothing: name "
            "one in the config's section `optimizer`, or give one of onebit.torch or "
            "deepspeed.ops")
    given.add_settings({key: value for key, value in config.recipe().items()
                        if key not in ("optimizer", "scheduler")})
    return given
