"""The presets of `onebit` by size, and what a training step of one costs."""

VOCABULARY = 30522

# (layers, hidden); a head has 64 of the hidden, the feed-forward layer is four times as wide.
PRESETS = {
    "bert-tiny": (2, 128), "bert-mini": (4, 256), "bert-small": (4, 512),
    "bert-medium": (8, 512), "bert-base": (12, 768), "bert-large": (24, 1024),
}


def training_flops(preset, tokens, masked=0):
    """Of one sequence, forward and backward, as model::training_flops counts: matrix products
    alone, a multiply-add as two."""
    layers, hidden = PRESETS[preset]
    linear = 2 * tokens * (4 + 2 * 4) * hidden ** 2
    attention = 4 * tokens ** 2 * hidden
    head = 2 * masked * hidden * (hidden + VOCABULARY)
    return 3 * (layers * (linear + attention) + head)
