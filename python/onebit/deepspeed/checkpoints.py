"""Checkpoints in DeepSpeed's layout: a folder a tag, and the newest tag in `latest`."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Any

import torch

from onebit import _core

MODEL_FILE = "mp_rank_00_model_states.pt"


def rank_file(rank: int) -> str:
    return f"onebit_rank_{rank:04d}_optim_states.pt"


def save(folder: str, tag: str, ranks: _core.Ranks, model: dict[str, Any], rank: dict[str, Any],
         is_latest: bool) -> None:
    """Writes a checkpoint. Nothing half-written has the tag's name: ranks write beside it, and rank
    0 renames the folder when all have ended. Collective."""
    final, partial = pathlib.Path(folder) / tag, pathlib.Path(folder) / f".{tag}.partial"
    if ranks.rank == 0:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    ranks.barrier()
    if ranks.rank == 0:
        torch.save(model, partial / MODEL_FILE)
    torch.save(rank, partial / rank_file(ranks.rank))
    ranks.barrier()
    if ranks.rank == 0:
        replaced = pathlib.Path(folder) / f".{tag}.replaced"
        shutil.rmtree(replaced, ignore_errors=True)
        if final.exists():
            final.rename(replaced)
        partial.rename(final)
        shutil.rmtree(replaced, ignore_errors=True)
        if is_latest:
            beside = pathlib.Path(folder) / ".latest.partial"
            beside.write_text(tag, encoding="utf-8")
            os.replace(beside, pathlib.Path(folder) / "latest")
    ranks.barrier()


def find(folder: str, tag: str | None) -> pathlib.Path | None:
    """Returns the tag's folder, at first that of `latest`. None: there is no checkpoint. Error: the
    tag that was asked for is missing."""
    root = pathlib.Path(folder)
    if tag is None:
        latest = root / "latest"
        if not latest.is_file():
            return None
        tag = latest.read_text(encoding="utf-8").strip()
    found = root / str(tag)
    if not (found / MODEL_FILE).is_file():
        there = sorted(path.parent.name for path in root.glob(f"*/{MODEL_FILE}"))
        raise _core.Error(f"{found}: there is no {MODEL_FILE}; {folder} has the tags {there}")
    return found


def load(path: pathlib.Path) -> Any:
    """Reads a file of a checkpoint. It may hold any object of Python, as DeepSpeed's: load only
    checkpoints of your own."""
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except FileNotFoundError:
        raise _core.Error(f"{path}: there is no such file: every rank needs its own") from None
    except (OSError, RuntimeError, EOFError) as error:
        raise _core.Error(f"{path}: {error}") from error


