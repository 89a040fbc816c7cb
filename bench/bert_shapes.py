"""The sizes of onebit's presets, and the operations of a training step."""

VOCABULARY = 30522

# (layers, hidden size), where a head has size 64 and the feed-forward layer is four times as wide.
PRESETS = {
    "bert-tiny": (2, 128), "bert-mini": (4, 256), "bert-small": (4, 512),
    "bert-medium": (8, 512), "bert-base": (12, 768), "bert-large": (24, 1024),
}

# ModernBERT's: (layers, hidden size, feed-forward width).
MODERN_PRESETS = {
    "modern-tiny": (4, 128, 192), "modern-mini": (7, 256, 384), "modern-small": (10, 384, 576),
    "modern-medium": (19, 512, 768), "modern-base": (22, 768, 1152),
    "modern-large": (28, 1024, 2624),
}


def training_flops(preset, tokens, masked=0):
    """Returns the operations of one sequence, forward and backward, counted like
    model::training_flops: matrix products only, two operations per multiply-add."""
    layers, hidden = PRESETS[preset]
    linear = 2 * tokens * (4 + 2 * 4) * hidden ** 2
    attention = 4 * tokens ** 2 * hidden
    head = 2 * masked * hidden * (hidden + VOCABULARY)
    return 3 * (layers * (linear + attention) + head)
