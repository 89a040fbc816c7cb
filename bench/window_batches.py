"""Makes batches of SQuAD windows for programs that pad, from the windows' lengths."""

import random
from pathlib import Path


def read_lengths(path):
    """Reads integers. Lines that start with '#' are comments."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [int(word) for line in lines if not line.startswith("#") for word in line.split()]


def window_batches(lengths, batch, steps, max_length, grouped, multiple=1):
    """Returns (lengths, padded length) of the steps of a round, or of an epoch if `steps` is 0.

    Every window is padded to `max_length`. With `grouped`, windows of similar length form a batch
    and are padded to the longest of them, rounded up to a multiple of `multiple`.
    """
    order = random.Random(1).sample(lengths, len(lengths))
    if grouped:
        order.sort()
    chunks = [order[i:i + batch] for i in range(0, len(order) - batch + 1, batch)]
    steps = min(steps or len(chunks), len(chunks))
    if not grouped:
        return [(chunk, max_length) for chunk in chunks[:steps]]
    # Batches are sampled evenly, so that a round has short and long ones like an epoch.
    stride = (len(chunks) - 1) / max(1, steps - 1)
    chosen = [chunks[round(i * stride)] for i in range(steps)]
    return [(chunk, -(-max(chunk) // multiple) * multiple) for chunk in chosen]
