"""Warnings at the line of the user's script."""

from __future__ import annotations

import sys
import warnings


def warn(text: str) -> None:
    """A UserWarning at the nearest caller outside of onebit and torch, which wraps step()."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and (
            frame.f_globals.get("__name__", "").split(".")[0] in ("onebit", "torch")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
