"""The engine's state in the state_dict of an optimizer, under "onebit"."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from onebit import _core, arguments
from onebit.torch.flat_module import Trained

# Of a state under "onebit": the number of ranks, the order of the parameters in the engine, their
# shapes, whether gradients wait for step(), the updates that a GradScaler has skipped, the engine's
# state by rank.
_ENTRIES = {"ranks", "order", "shapes", "waits", "skipped", "engines"}


def merged(states: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the state of one rank, or of all: the entries "onebit" of several states together."""
    parts = [states] if isinstance(states, Mapping) else arguments.elements(
        states, "state_dict", "states")
    if not parts:
        raise _core.Error("state_dict is empty: there is no state to load")
    for part in parts:
        own = arguments.mapping(part, "state_dict").get("onebit")
        if own is None:
            raise _core.Error(
                "state_dict has no entry \"onebit\": it is of another optimizer, whose averages this "
                "one cannot continue")
        absent = _ENTRIES - set(arguments.mapping(own, "state_dict[\"onebit\"]"))
        if absent or not isinstance(own["engines"], Mapping) or "param_groups" not in part:
            raise _core.Error("state_dict is not what state_dict() has returned: it lacks "
                              f"{', '.join(sorted(absent)) or 'param_groups or engines'}")
    result = dict(parts[0])
    first = parts[0]["onebit"]
    result["onebit"] = first | {"engines": dict(first["engines"])}
    for part in parts[1:]:
        own = part["onebit"]
        if (own["ranks"], own["order"]) != (first["ranks"], first["order"]):
            raise _core.Error("the states are of different runs: they have other numbers of ranks "
                              "or orders of parameters")
        result["onebit"]["engines"].update(own["engines"])
    return result


def check_ranks(saved: dict[str, Any], ranks: _core.Ranks) -> None:
    """Error: a rank's state is missing that this number of ranks needs."""
    present, count = sorted(saved["engines"]), saved["ranks"]
    if count == ranks.size and ranks.rank in saved["engines"]:
        return
    if len(present) < count:
        raise _core.Error(
            f"the state is of rank {', '.join(map(str, present))} of {count} and is loaded by rank "
            f"{ranks.rank} of {ranks.size}: load a list of the states of all ranks, or what "
            "full_state_dict() has returned")


def shapes(trained: list[Trained]) -> list[list[int]]:
    return [list(one.parameter.shape) for one in trained]


def check_parameters(saved: dict[str, Any], trained: list[Trained]) -> None:
    """Error: the state is of other parameters."""
    if len(saved["shapes"]) != len(trained) or len(saved["order"]) != len(trained):
        raise _core.Error(f"the state is of {len(saved['shapes'])} parameters and is loaded by an "
                          f"optimizer of {len(trained)}")
    for one, theirs, own in zip(trained, saved["shapes"], shapes(trained)):
        if list(theirs) != own:
            raise _core.Error(f"the state is of another model: parameter {one.name} has the shape "
                              f"{tuple(own)}, and had {tuple(theirs)} when it was saved")


def gathered(state: dict[str, Any], ranks: _core.Ranks) -> dict[str, Any] | None:
    """Returns on rank 0 the state with the engines of all ranks, else None. Collective."""
    memory = io.BytesIO()
    torch.save(state["onebit"]["engines"], memory)
    own = torch.frombuffer(bytearray(memory.getvalue()), dtype=torch.uint8)
    for root in range(1, ranks.size):
        size = torch.tensor([own.numel() if ranks.rank == root else 0])
        ranks.broadcast(size.numpy(), root)
        sent = own if ranks.rank == root else torch.empty(int(size), dtype=torch.uint8)
        ranks.broadcast(sent.numpy(), root)
        if ranks.rank == 0:
            state["onebit"]["engines"].update(
                torch.load(io.BytesIO(sent.numpy().tobytes()), weights_only=True))
    return state if ranks.rank == 0 else None
