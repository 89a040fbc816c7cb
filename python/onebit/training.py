"""Training from a recipe: what the program's `pretrain` and `... train` commands do."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from onebit import _core, arguments
from onebit.arguments import Folder, Overrides, Recipe


class Callbacks:
    """What a run reports, and how it is ended. Derive from it, and override what you need.

    The methods are called on every rank, on the thread that called `train`. An exception that one
    of them raises ends the run on all ranks and leaves `train`. The checkpoints so far stay.
    """

    def on_step(self, record: dict[str, Any]) -> None:
        """Called after every step with its line of `metrics.jsonl`: "step", "loss",
        "learning_rate", "metrics" and others. A skipped step has no line."""

    def on_evaluation(self, record: dict[str, Any]) -> None:
        """Called after every evaluation with its line of `metrics.jsonl`."""

    def should_stop(self) -> bool:
        """Asked after every step. If any rank answers True, all ranks save a checkpoint and end."""
        return False


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The outcome of a run."""

    folder: pathlib.Path  # of the run
    steps: int  # completed, over all starts of the run
    samples: int
    finished: bool  # False: the run was asked to end before its last step
    metrics: dict[str, Any] | None  # the record of the last step of this start
    evaluation: dict[str, Any] | None  # the record of the last evaluation of this start
    best: dict[str, Any] | None  # "step" and metrics of the best model, if the run keeps one
    model: pathlib.Path | None  # the folder of the model


def _overridden(callbacks: Callbacks, name: str) -> bool:
    own = getattr(callbacks, name, None)
    if own is None:
        return False
    arguments.function(own, f"callbacks.{name}")
    return getattr(own, "__func__", own) is not getattr(Callbacks, name)


def train(
    recipe: Recipe,
    *,
    data: Folder | Sequence[Folder] | Mapping[Folder, float],
    output: Folder,
    valid: Folder | Mapping[str, Folder] | None = None,
    model: Folder | None = None,
    resume: bool | str = False,
    overrides: Overrides | None = None,
    callbacks: Callbacks | None = None,
    quiet: bool = False,
    device: str = "auto",
    threads: int = 0,
) -> TrainingResult:
    """Trains what the recipe says and leaves in `output` the files that the program leaves.

    `recipe` is a path or a dict, and its key "task" chooses what is trained. `overrides` changes
    values: {"run.steps": 100}, or ["run.steps=100"]. `data` is the training file, or for
    pre-training the store: several stores, or {store: weight}. `valid` is evaluated during the run,
    for pre-training also {name: store}. `model` is where a fine-tuning or a continued pre-training
    starts. `resume` continues from the latest checkpoint in `output`, or from the checkpoint whose
    tag it is. `quiet` leaves out the tables, and the measurement that the start table needs.
    `device` is "cpu", "cuda" or "auto". With 0 `threads` the ranks of this machine share all its
    processors.

    In a process that torchrun, mpirun or srun has started, all ranks train together: each makes the
    same call. Under MPI a process can train once.

    Ctrl-C saves a checkpoint after the current step, and raises KeyboardInterrupt. Handlers of
    signals stay as they are.

    Errors: `onebit.Error` with what, where and how to mend it. `onebit.PeerError` where another
    rank has failed.
    """
    given = Callbacks() if callbacks is None else callbacks
    if not any(hasattr(given, name) for name in ("on_step", "on_evaluation", "should_stop")):
        raise TypeError(f"callbacks must be a Callbacks, not {arguments.kind(given)}: it has none of "
                        "on_step, on_evaluation, should_stop")
    reports_steps = _overridden(given, "on_step")
    reports_evaluations = _overridden(given, "on_evaluation")

    def on_line(text: str) -> None:
        record = json.loads(text)
        if record["kind"] == "step":
            if reports_steps:
                given.on_step(record)
        elif reports_evaluations:
            given.on_evaluation(record)

    tag: str | None = None
    if isinstance(resume, str):
        tag = arguments.text(resume, "resume")
        if not tag:
            raise _core.Error("resume is empty: give True, or the tag of a checkpoint")
    elif not isinstance(resume, bool):
        raise TypeError(f"resume must be True, False or a tag, not {arguments.kind(resume)}")
    elif resume:
        tag = ""
    folder = arguments.path(output, "output")
    result = json.loads(_core.train(
        arguments.recipe(recipe, overrides),
        arguments.maybe(arguments.path, model, "model") or "",
        arguments.weighted_paths(data, "data"),
        [] if valid is None else arguments.named_paths(valid, "valid"),
        folder,
        tag,
        arguments.flag(quiet, "quiet"),
        arguments.text(device, "device"),
        arguments.small(threads, "threads"),
        on_line if reports_steps or reports_evaluations else None,
        given.should_stop if _overridden(given, "should_stop") else None,
    ))
    found = result.pop("model")
    return TrainingResult(folder=pathlib.Path(folder),
                          model=None if found is None else pathlib.Path(found), **result)
