"""Which parameters can be trained, and what their groups ask for."""

from __future__ import annotations

import hashlib
import json
import numbers
from collections.abc import Iterator
from typing import Any

import torch

from onebit import _core, arguments

#: What a group's parameters can be, besides torch.float32: the engine keeps their values as that.
SIXTEEN_BITS = (torch.bfloat16, torch.float16)

# Settings that are the same for all groups, by their names in a recipe, and what they are there at
# first.
_COMMON = {"betas": (0.9, 0.999), "eps": 1e-8, "bias_correction": True, "amsgrad": False,
           "eps_inside_sqrt": False}

_WHOLE = ("its gradient is divided over the ranks too, and error feedback needs a whole gradient on "
          "every rank. Give the optimizer a model that is not sharded: onebit sends one bit an "
          "element instead, or exact means inside a node with ranks_per_node=")

_STILL = ("set requires_grad before the optimizer is made. To train a parameter in a part of the run, "
          "leave it True, and give it a group whose `lr` is 0 in the other part")

_LARGEST = torch.finfo(torch.float32).max

# Ranks compare their learning rates after so many updates, and after 1, 2, 4 ... of the first ones.
_UPDATES_BETWEEN_COMPARISONS = 64


def trained(groups: list[dict[str, Any]], first: int
            ) -> Iterator[tuple[int, str, torch.nn.Parameter]]:
    """Yields (number of the group, name, parameter) for every parameter to train, each once. The
    first group has the number `first`."""
    seen: set[int] = set()
    for number, group in enumerate(groups, first):
        for place, parameter in enumerate(group["params"]):
            name = _name_of(number, group, place)
            check_whole(name, parameter)
            if not parameter.requires_grad or parameter.numel() == 0 or id(parameter) in seen:
                continue
            check_trainable(name, parameter)
            seen.add(id(parameter))
            yield number, name, parameter


def frozen(groups: list[dict[str, Any]], first: int) -> list[tuple[str, torch.nn.Parameter]]:
    """Returns the parameters with their names that are not trained, because they are frozen."""
    return [(_name_of(number, group, place), parameter)
            for number, group in enumerate(groups, first)
            for place, parameter in enumerate(group["params"]) if not parameter.requires_grad]


def check_as_before(trained: list[tuple[str, torch.nn.Parameter]],
                    frozen: list[tuple[str, torch.nn.Parameter]]) -> None:
    """Error: a parameter was frozen or thawed after the optimizer was made."""
    for name, parameter in trained:
        if not parameter.requires_grad:
            raise _core.Error(f"parameter {name} has been frozen since the optimizer was made, and "
                              f"its momentum would still move it: {_STILL}")
    for name, parameter in frozen:
        if parameter.requires_grad:
            raise _core.Error(f"parameter {name} was frozen when the optimizer was made, so it is "
                              f"not trained: {_STILL}")


def _name_of(number: int, group: dict[str, Any], place: int) -> str:
    names = group.get("param_names")
    return f"`{names[place]}`" if names else f"{place} of group {number}"


def check_whole(name: str, parameter: torch.nn.Parameter) -> None:
    """Error: the ranks divide the parameter among them."""
    owner = None
    if _is_distributed_tensor(parameter):
        owner = "FSDP2 or tensor parallelism (a DTensor)"
    elif getattr(parameter, "_is_flat_param", False) or type(parameter).__name__ == "FlatParameter":
        owner = "FSDP"
    elif hasattr(parameter, "ds_id"):
        owner = "ZeRO"
    elif getattr(parameter, "tensor_model_parallel", False):
        owner = "tensor parallelism"
    if owner is not None:
        raise _core.Error(f"parameter {name} is sharded over the ranks by {owner}: {_WHOLE}")


def _is_distributed_tensor(parameter: torch.nn.Parameter) -> bool:
    kinds = (type(parameter), type(parameter.data))
    return any(base.__name__ == "DTensor" for kind in kinds for base in kind.__mro__)


def check_trainable(name: str, parameter: torch.nn.Parameter) -> None:
    if parameter.is_meta:
        raise _core.Error(f"parameter {name} is on the meta device and has no values: give the "
                          "model memory with to_empty() and initial values first")
    if parameter.is_cuda and not _core.has_cuda():
        raise _core.Error(
            f"parameter {name} is on {parameter.device}, and this package was built without CUDA: "
            "install it from source where nvcc is present (docs/python.md), or train on the CPU")
    if not parameter.is_cuda and parameter.device.type != "cpu":
        raise _core.Error(f"parameter {name} is on {parameter.device}: it must be on a CUDA device "
                          "or on the CPU")
    if parameter.layout != torch.strided:
        raise _core.Error(f"parameter {name} is {parameter.layout}: it must be dense")
    if parameter.dtype.is_complex:
        raise _core.Error(f"parameter {name} is {parameter.dtype}: train torch.view_as_real() of "
                          "it, which has a sign to send")
    if parameter.dtype != torch.float32 and parameter.dtype not in SIXTEEN_BITS:
        raise _core.Error(f"parameter {name} is {parameter.dtype}: it must be torch.float32, "
                          "torch.bfloat16 or torch.float16")
    if not parameter.is_contiguous():
        raise _core.Error(f"parameter {name} of strides {tuple(parameter.stride())} is not "
                          "contiguous: set `p.data = p.data.contiguous()` before")


def check_gradient(name: str, parameter: torch.nn.Parameter) -> None:
    gradient = parameter.grad
    if gradient is not None and gradient.layout != torch.strided:
        raise _core.Error(f"the gradient of parameter {name} is {gradient.layout}: it must be "
                          "dense; an embedding has sparse=False")


def check_on_one_device(parts: list[tuple[str, torch.nn.Parameter]]) -> None:
    """Error: the parameters are on several devices."""
    for name, parameter in parts[1:]:
        first, other = parts[0]
        if parameter.device != other.device:
            raise _core.Error(f"parameter {name} is on {parameter.device} and parameter {first} on "
                              f"{other.device}: onebit trains the parameters of one device. Start "
                              "a rank for each device, with the whole model on it")


def check_own_memory(parts: list[tuple[str, torch.nn.Parameter]]) -> None:
    """Error: two parameters share memory, so that each of them would move both."""
    places = sorted((one.data_ptr(), one.numel() * one.element_size(), name) for name, one in parts)
    for (begin, size, before), (end, _, name) in zip(places, places[1:]):
        if end < begin + size:
            raise _core.Error(f"parameters {before} and {name} share memory: where a module shares a "
                              "weight, both have the same torch.nn.Parameter. Else clone() one of them")


def check_same_on_ranks(ranks: _core.Ranks, parts: list[tuple[int, str, torch.nn.Parameter]]
                        ) -> None:
    """Error: another rank has other parameters. Collective."""
    text = ";".join(f"{number} {tuple(parameter.shape)} {parameter.dtype} {parameter.device.type}"
                    for number, _, parameter in parts)
    if not _is_same(ranks, text):
        raise _core.Error(
            f"rank {ranks.rank} has {len(parts)} parameters, and another rank has others. All ranks "
            "train the same ones: an optimizer inside ZeroRedundancyOptimizer, for example, gets a "
            "part of them")


def _is_same(ranks: _core.Ranks, text: str) -> bool:
    """Whether all ranks have the same text. Collective."""
    if ranks.size == 1:
        return True
    mark = float(int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "little"))
    bounds = torch.tensor([mark, -mark], dtype=torch.float64)
    ranks.maximum(bounds.numpy())
    return bool(bounds[0] == -bounds[1])


def check_same_settings(ranks: _core.Ranks, recipe: dict[str, Any]) -> None:
    """Error: another rank's optimizer has other settings. Collective."""
    text = json.dumps(recipe, sort_keys=True)
    if _is_same(ranks, text):
        return
    own = _flat(recipe)
    settings = [_flat(json.loads(_text_of(ranks, root, text))) for root in range(ranks.size)]
    other = next(rank for rank, theirs in enumerate(settings) if theirs != own)
    theirs = settings[other]
    different = [f"`{key}` is {own.get(key)!r} on rank {ranks.rank} and {theirs.get(key)!r} on rank "
                 f"{other}" for key in sorted(own | theirs) if own.get(key) != theirs.get(key)]
    raise _core.Error(f"{', '.join(different)}: all ranks make the optimizer with the same arguments")


def _text_of(ranks: _core.Ranks, root: int, text: str) -> str:
    """The text of rank `root`. Collective."""
    data = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    size = torch.tensor([data.numel()])
    ranks.broadcast(size.numpy(), root)
    received = data if ranks.rank == root else torch.empty(int(size), dtype=torch.uint8)
    ranks.broadcast(received.numpy(), root)
    return received.numpy().tobytes().decode()


def _flat(section: dict[str, Any], before: str = "") -> dict[str, Any]:
    """The settings by their keys with dots."""
    found: dict[str, Any] = {}
    for key, value in section.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return found


def check_same_rates(ranks: _core.Ranks, updates: int, groups: list[dict[str, Any]]) -> None:
    """Compares the learning rates and decays of the ranks, after some of the updates. Error: they
    differ, and so do the parameters. Collective."""
    is_early = updates & (updates - 1) == 0  # a power of two
    if updates % _UPDATES_BETWEEN_COMPARISONS != 0 and not is_early:
        return
    own = torch.tensor([_number(group, number, name) for number, group in enumerate(groups)
                        for name in ("lr", "weight_decay")], dtype=torch.float64)
    bounds = torch.cat([own, -own])
    ranks.maximum(bounds.numpy())
    largest, smallest = bounds.chunk(2)[0], -bounds.chunk(2)[1]
    # Mathematical functions of two machines may differ in the last bit.
    different = (largest - smallest > 1e-6 * largest).nonzero().view(-1).tolist()
    if different:
        place = different[0]
        number, kind = divmod(place, 2)
        raise _core.Error(
            f"parameter group {number}: `{('lr', 'weight_decay')[kind]}` is {own[place]} on rank "
            f"{ranks.rank}, and between {smallest[place]} and {largest[place]} on the ranks, so their "
            "parameters are no longer equal. A schedule that follows a loss needs the mean of all "
            "ranks (torch.distributed.all_reduce)")


def check_settings(groups: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Error: a group has its own value of what is the same for all."""
    for number, group in enumerate(groups):
        for name, usual in _COMMON.items():
            common = settings.get(name, usual)
            if name not in group or bool(_plain(group[name]) == _plain(common)):
                continue
            raise _core.Error(
                f"parameter group {number} has `{name}` {group[name]} and the optimizer {common}: "
                "all groups have the optimizer's. A group can have its own `lr` and `weight_decay`")


def _plain(value: Any) -> Any:
    """The value so that equal settings are equal: (0.9, 1) and [0.9, 1.0]."""
    return list(value) if isinstance(value, tuple) else value


def _number(group: dict[str, Any], number: int, name: str) -> float:
    if name not in group:
        raise _core.Error(f"parameter group {number} has no `{name}`")
    given = group[name]
    if isinstance(given, torch.Tensor) and given.numel() == 1:  # as torch's optimizers take it
        given = given.item()
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise TypeError(f"parameter group {number}: `{name}` must be a number, not "
                        f"{arguments.kind(given)}")
    value = float(given)
    if not 0 <= value <= _LARGEST:
        raise _core.Error(f"parameter group {number}: `{name}` is {value}: it must be a number from "
                          f"0 to {_LARGEST:.1e}")
    return value


def check_numbers(groups: list[dict[str, Any]]) -> None:
    """Error: a group's learning rate or weight decay is not a number of at least 0."""
    for number, group in enumerate(groups):
        _number(group, number, "lr")
        _number(group, number, "weight_decay")


def rates(groups: list[dict[str, Any]], used: list[int]) -> tuple[float, list[tuple[float, float]]]:
    """Returns the largest learning rate, and for each of the groups in `used` the factor that makes
    it the group's, and the group's weight decay."""
    own = [_number(groups[number], number, "lr") for number in used]
    decays = [_number(groups[number], number, "weight_decay") for number in used]
    largest = max(own)
    return largest, [(rate / largest if largest > 0 else 1.0, decay)
                     for rate, decay in zip(own, decays)]


def held_entries(group: dict[str, Any], name: str, parameter: torch.nn.Parameter
                 ) -> list[tuple[int, int]]:
    """Returns the ranges of a parameter's elements that are 0 in the group's `exp_avg_mask`, which
    has the parameter's number of elements in any shape, or a shape that broadcasts to its shape."""
    mask = group.get("exp_avg_mask")
    if mask is None:
        return []
    mask = torch.as_tensor(mask).detach().cpu()
    if mask.numel() != parameter.numel():
        try:
            mask = mask.expand(parameter.shape)
        except RuntimeError:
            raise _core.Error(
                f"`exp_avg_mask` of shape {tuple(mask.shape)} does not fit parameter {name} of "
                f"shape {tuple(parameter.shape)}: give its parameter a group of its own") from None
    flat = mask.reshape(-1)
    if not bool(((flat == 0) | (flat == 1)).all()):
        raise _core.Error(f"`exp_avg_mask` of parameter {name} has entries other than 0 and 1")
    still = torch.cat([torch.zeros(1, dtype=torch.int8), (flat == 0).to(torch.int8),
                       torch.zeros(1, dtype=torch.int8)])
    change = still[1:] - still[:-1]
    begins, ends = (change == 1).nonzero().view(-1), (change == -1).nonzero().view(-1)
    return list(zip(begins.tolist(), ends.tolist()))
