"""Where the lines of the log go."""

from __future__ import annotations

from collections.abc import Callable

from onebit import _core, arguments

_LEVELS = ["debug", "info", "warning", "error"]


def set_log(function: Callable[[str, str], None] | None, level: str = "info") -> None:
    """Calls `function(level, text)` with each line of the log, each table and each state of the
    progress line, instead of writing them to standard error. None writes them there again.

    `level` is "debug", "info", "warning" or "error": lines below it are dropped. The function may be
    called on any thread. What it raises is shown, and ends nothing.

        >>> onebit.set_log(lambda level, text: print(text.rstrip()))      # in a notebook
    """
    lowest = arguments.text(level, "level")
    if lowest not in _LEVELS:
        raise _core.Error(f"level is one of {', '.join(_LEVELS)}, not {lowest!r}")
    if function is None:
        _core.set_log(None)
    else:
        report = arguments.function(function, "function")
        _core.set_log(lambda number, text: report(_LEVELS[number], text))
    _core.set_log_level(_LEVELS.index(lowest))
