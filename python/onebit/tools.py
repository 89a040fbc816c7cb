"""What the program's commands `prepare`, `convert`, `plan` and `doctor` compute, as dicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from onebit import _core, arguments
from onebit.arguments import Folder, Overrides, Recipe

Progress = Callable[[dict[str, Any]], None]


def _progress(function: object) -> Callable[[str], None] | None:
    if function is None:
        return None
    report = arguments.function(function, "progress")
    return lambda text: report(json.loads(text))


def prepare(
    inputs: Folder | Sequence[Folder],
    output: Folder,
    *,
    vocab_size: int | None = None,
    vocab: Folder | None = None,
    vocab_type: str = "wordpiece",
    source: str = "text",
    cased: bool | None = None,
    format: str = "auto",
    locale: str = "en",
    threads: int = 0,
    overwrite: bool = False,
    drop_duplicates: bool = False,
    skip_bad_records: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Turns text, or examples of other programs, into a store to train from.

    Give `vocab_size` to learn a vocabulary from the text, of `vocab_type` "wordpiece", "unigram" or
    "bpe" (byte pairs), or `vocab`, a vocab.txt or a model's folder. `source` is "text", or "hdf5" or
    "tfrecord" for examples with pairs and masks of their own, which need `vocab`. The other options
    are the program's (docs/pretraining.md). `progress` is called about once a second with a dict.
    An exception that it raises, or Ctrl-C, ends the work and leaves nothing behind.

    Returns "output", "manifest" (counts, checksums, sources), "decisions" (what was chosen
    automatically), "seconds".
    """
    files, folder = arguments.paths(inputs, "inputs"), arguments.path(output, "output")
    words = arguments.maybe(arguments.path, vocab, "vocab")
    size = arguments.maybe(arguments.small, vocab_size, "vocab_size")
    kind = arguments.text(vocab_type, "vocab_type")
    cased = arguments.maybe(arguments.flag, cased, "cased")
    report = _progress(progress)
    options = (
        arguments.text(format, "format"), arguments.text(locale, "locale"),
        arguments.small(threads, "threads"), arguments.flag(overwrite, "overwrite"),
        arguments.flag(drop_duplicates, "drop_duplicates"),
        arguments.flag(skip_bad_records, "skip_bad_records"))
    found: dict[str, Any]
    if arguments.text(source, "source") == "text":
        found = json.loads(
            _core.prepare_text(files, folder, size, words, kind, cased, *options, report))
        return found
    if words is None or size is not None:
        raise _core.Error(f"source {source!r} needs vocab, the vocabulary that the files were "
                          "written with, and no vocab_size")
    if options[:2] != ("auto", "en") or drop_duplicates or skip_bad_records or kind != "wordpiece":
        raise _core.Error(f"source {source!r}: vocab_type, format, locale, drop_duplicates and "
                          "skip_bad_records are for text")
    found = json.loads(
        _core.prepare_samples(files, folder, source, words, cased, overwrite, report))
    return found


def convert(
    input: Folder,
    output: Folder,
    *,
    source: str | None = None,
    config: Folder | None = None,
    vocab: Folder | None = None,
    heads: int | None = None,
    hidden_act: str | None = None,
    cased: bool | None = None,
    drop: Sequence[str] = (),
    dtype: str | None = None,
    naming: str = "huggingface",
) -> list[str]:
    """Turns any BERT checkpoint into a Hugging Face folder, which must not exist yet.

    `source` is "safetensors", "torch", "tensorflow" or "deepspeed" (detected by default),
    `hidden_act` "gelu" or "gelu_new", `dtype` "f32", "bf16" or "f16" (by default the type in the
    file), `naming` "huggingface", "plain", "fused" or "google". `drop` has the beginnings of names
    that are left out. Returns sentences about what was found and decided.
    """
    return _core.convert(
        arguments.path(input, "input"), arguments.path(output, "output"),
        arguments.maybe(arguments.text, source, "source"),
        arguments.maybe(arguments.path, config, "config"),
        arguments.maybe(arguments.path, vocab, "vocab"),
        arguments.maybe(arguments.whole, heads, "heads"),
        arguments.maybe(arguments.text, hidden_act, "hidden_act"),
        arguments.maybe(arguments.flag, cased, "cased"),
        arguments.texts(drop, "drop"),
        arguments.maybe(arguments.text, dtype, "dtype"),
        arguments.text(naming, "naming"))


def plan(
    recipe: Recipe,
    *,
    bandwidth: str,
    hosts: int = 1,
    ranks_per_host: int = 1,
    latency: str = "50us",
    measured: Folder | None = None,
    watts: float = 350.0,
    threads: int = 0,
    model: Folder | None = None,
    overrides: Overrides | None = None,
) -> dict[str, Any]:
    """Predicts memory, time and energy of a pre-training on a cluster (docs/plan.md has the keys).

    `bandwidth` is "10Gb/s" or the like. `measured` is what `onebit doctor --output` wrote on such a
    machine: without it this machine is measured for some seconds. `watts` is the power of one
    machine.
    """
    found: dict[str, Any] = json.loads(_core.plan(
        arguments.recipe(recipe, overrides), arguments.small(hosts, "hosts"),
        arguments.small(ranks_per_host, "ranks_per_host"), arguments.text(bandwidth, "bandwidth"),
        arguments.text(latency, "latency"), arguments.maybe(arguments.path, measured, "measured"),
        arguments.number(watts, "watts"), arguments.small(threads, "threads"),
        arguments.maybe(arguments.path, model, "model")))
    return found


def doctor(*, measure: bool = False, threads: int = 0) -> dict[str, Any]:
    """What this machine offers for training, and "problems": sentences about what looks wrong.

    `measure` also measures the speed of products and of memory, which takes two seconds.
    """
    found: dict[str, Any] = json.loads(
        _core.doctor(arguments.flag(measure, "measure"), arguments.small(threads, "threads")))
    return found
