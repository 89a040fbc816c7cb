"""Checkpoints in DeepSpeed's layout: a folder a tag, and the newest tag in `latest`."""

from __future__ import annotations

import hashlib
import os
import pathlib
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import torch

from onebit import _core, arguments

if TYPE_CHECKING:
    from onebit.deepspeed.engine import DeepSpeedEngine

MODEL_FILE = "mp_rank_00_model_states.pt"
COUNTERS = ("global_steps", "global_samples", "skipped_steps", "micro_steps")
# What the engine writes beside the client's state.
_OWN = ("module", "lr_scheduler", *COUNTERS, "dp_world_size", "mp_world_size", "ds_config")
# What DeepSpeed's engine writes in addition.
_THEIRS = ("optimizer", "buffer_names", "param_shapes", "frozen_param_shapes", "shared_params",
           "frozen_param_fragments", "data_sampler", "random_ltd", "sparse_tensor_module_names",
           "csr_tensor_module_names", "ds_version")


def rank_file(rank: int) -> str:
    return f"onebit_rank_{rank:04d}_optim_states.pt"


def name_of(tag: Any) -> str:
    """Returns the name of a tag's folder. Error: it is no name of a folder."""
    if not isinstance(tag, (str, int)) or isinstance(tag, bool):
        raise TypeError(f"tag must be a str, not {arguments.kind(tag)}")
    name = arguments.path(str(tag), "tag")
    if "/" in name or name.startswith(".") or name == "latest":
        raise _core.Error(f"tag is {name!r}: it must be the name of a folder, without / and without "
                          "a . at its beginning, and not `latest`")
    return name


def _writes(engine: DeepSpeedEngine) -> bool:
    """Whether this rank writes what all ranks share. On disks of their own the first rank of every
    host does."""
    rank = engine.local_rank if engine.use_node_local_storage() else engine.global_rank
    return rank == 0


def _check_tag(ranks: _core.Ranks, tag: str) -> None:
    digest = torch.tensor(list(hashlib.sha256(tag.encode()).digest()), dtype=torch.uint8)
    first = digest.clone()
    ranks.broadcast(first.numpy(), 0)
    if not torch.equal(digest, first):
        raise _core.Error(f"save_checkpoint(tag={tag!r}) on rank {ranks.rank}: rank 0 has another "
                          "tag, and all ranks must give the same")


def save(engine: DeepSpeedEngine, folder: str, tag: str, client: dict[str, Any], is_latest: bool,
         exclude_frozen: bool) -> None:
    """Writes a checkpoint. Nothing half-written has the tag's name: ranks write beside it, and the
    folder is renamed when all have ended."""
    arguments.instance(client, "client_state", dict, "a dict")
    if taken := sorted(set(client) & set(_OWN)):
        raise _core.Error(f"save_checkpoint(client_state=...) has the key `{taken[0]}`, which is the "
                          "engine's: give it another name")
    ranks = engine.optimizer.ranks
    _check_tag(ranks, tag)
    final, partial = pathlib.Path(folder) / tag, pathlib.Path(folder) / f".{tag}.partial"
    writes = _writes(engine)
    if writes:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    ranks.barrier()
    try:
        if writes:
            schedule = engine.lr_scheduler
            _write(client | {
                "module": engine.module_state_dict(exclude_frozen),
                "lr_scheduler": schedule.state_dict() if schedule else None,
                "dp_world_size": engine.world_size,
                "mp_world_size": 1,
                "ds_config": engine.config,
            } | {name: getattr(engine, name) for name in COUNTERS}, partial / MODEL_FILE)
        _write({"optimizer": engine.optimizer.state_dict()}, partial / rank_file(ranks.rank))
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    ranks.barrier()
    if writes:
        _publish(final, partial, tag if is_latest else None)
    ranks.barrier()


def _write(values: dict[str, Any], path: pathlib.Path) -> None:
    """Error: the file cannot be written, for example because its disk is full."""
    try:
        with open(path, "wb") as file:
            torch.save(values, file)
    except (OSError, RuntimeError) as error:
        reason = error if isinstance(error, OSError) else error.__context__  # of what torch says
        if not isinstance(reason, OSError):
            raise
        raise _core.Error(f"{path} cannot be written: {reason.strerror}. Checkpoints that are there "
                          "already are unchanged") from error


def _publish(final: pathlib.Path, partial: pathlib.Path, latest: str | None) -> None:
    replaced = final.parent / f".{final.name}.replaced"
    shutil.rmtree(replaced, ignore_errors=True)
    if final.exists():
        final.rename(replaced)
    partial.rename(final)
    shutil.rmtree(replaced, ignore_errors=True)
    if latest is not None:
        beside = final.parent / ".latest.partial"
        beside.write_text(latest, encoding="utf-8")
        os.replace(beside, final.parent / "latest")


def save_values(engine: DeepSpeedEngine, folder: str, name: str, values: dict[str, Any]) -> None:
    if _writes(engine):
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        partial = path / f".{name}.partial"
        try:
            _write(values, partial)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        os.replace(partial, path / name)
    engine.optimizer.ranks.barrier()


def find(folder: str, tag: str | None) -> pathlib.Path | None:
    """Returns the tag's folder, by default the one that `latest` names. None: there is no
    checkpoint. Error: the tag that was asked for is missing."""
    root = pathlib.Path(folder)
    if tag is None:
        latest = root / "latest"
        if not latest.is_file():
            return None
        tag = latest.read_text(encoding="utf-8").strip()
    found = root / name_of(tag)
    if not (found / MODEL_FILE).is_file():
        there = sorted(path.parent.name for path in root.glob(f"[!.]*/{MODEL_FILE}"))
        raise _core.Error(f"{found}: there is no {MODEL_FILE}; the tags of {folder} are {there}")
    return found


def load(path: pathlib.Path) -> Any:
    """Reads a file of a checkpoint. It may hold any object of Python, as DeepSpeed's: load only
    checkpoints of your own. Its tensors are read when they are used."""
    if not path.exists():
        raise _core.Error(f"{path}: there is no such file: the state of every rank that wrote the "
                          "checkpoint is needed. Where hosts have disks of their own "
                          "(use_node_local_storage), copy the other hosts' files there first")
    try:
        return torch.load(path, map_location="cpu", weights_only=False, mmap=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise _core.Error(f"{path}: {error}") from error


def optimizer_state(engine: DeepSpeedEngine, folder: pathlib.Path, state: dict[str, Any]) -> Any:
    """Returns the optimizer's state of this rank, or the states of all ranks in a list if the
    checkpoint is of another number of ranks. Errors: it is DeepSpeed's, a rank's file is missing."""
    if "ds_version" in state:
        raise _core.Error(f"{folder} was written by DeepSpeed, whose state has the error feedback of "
                          "one rank only, so that it cannot be continued: "
                          "load_checkpoint(load_optimizer_states=False) takes its model")
    saved = state["dp_world_size"]
    if saved == engine.world_size:
        return load(folder / rank_file(engine.global_rank))["optimizer"]
    return [load(folder / rank_file(rank))["optimizer"] for rank in range(saved)]


def client_state(state: dict[str, Any]) -> dict[str, Any]:
    """Returns what the script gave to save_checkpoint()."""
    return {key: value for key, value in state.items() if key not in _OWN + _THEIRS}
