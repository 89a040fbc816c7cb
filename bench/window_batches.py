"""Batches of SQuAD windows for a program that pads, from the windows' lengths."""

import random
from pathlib import Path


def read_lengths(path):
    """Whole numbers; a line that begins with '#' is a comment."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [int(word) for line in lines if not line.startswith("#") for word in line.split()]


def window_batches(lengths, batch, steps, max_length, grouped, multiple=1):
    """(lengths, padded to) of the steps of a round; `steps` 0: of an epoch.

    Every window padded to `max_length`, or, `grouped`, windows of like length together and padded
    to the longest of the batch, rounded up to a multiple of `multiple`.
    """
    order = random.Random(1).sample(lengths, len(lengths))
    if grouped:
        order.sort()
    chunks = [order[i:i + batch] for i in range(0, len(order) - batch + 1, batch)]
    steps = min(steps or len(chunks), len(chunks))
    if not grouped:
        return [(chunk, max_length) for chunk in chunks[:steps]]
    # Every so-many-th batch: a round sees short and long ones as an epoch does.
    stride = (len(chunks) - 1) / max(1, steps - 1)
    chosen = [chunks[round(i * stride)] for i in range(steps)]
    return [(chunk, -(-max(chunk) // multiple) * multiple) for chunk in chosen]
