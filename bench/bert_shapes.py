"""The sizes of onebit's presets, and the operations of a training step."""

VOCABULARY = 30522

# (layers, hidden size), where a head has size 64 and the feed-forward layer is four times as wide.
PRESETS = {
    "bert-tiny": (2, 128), "bert-mini": (4, 256), "bert-small": (4, 512),
    "bert-medium": (8, 512), "bert-base": (12, 768), "bert-large": (24, 1024),
}


def training_flops(preset, tokens, masked=0):
    """Returns the operations of one sequence, forward and backward, counted like
    model::training_flops: matrix products only, two operations per multiply-add."""
    layers, hidden = PRESETS[preset]
    linear = 2 * tokens * (4 + 2 * 4) * hidden ** 2
    attention = 4 * tokens ** 2 * hidden
    head = 2 * masked * hidden * (hidden + VOCABULARY)
    return 3 * (layers * (linear + attention) + head)
