"""Calls with one wrong argument each. Every one must work, or raise an exception that says which
argument is wrong: nothing ends the process, hangs, or copies in silence.

A table of a test has for every public name the function and arguments with which it works.
public_names() says which names and arguments a table must have.
"""

import faulthandler
import inspect
import json
import os
import pathlib
import subprocess
import sys

SECONDS = 900


class OnAnotherDevice:
    """An array of a GPU, as DLPack shows it."""

    def __dlpack_device__(self):
        return 2, 0  # CUDA

    def __dlpack__(self, **_):
        raise BufferError("its memory is a GPU's")


class Strange:
    def __index__(self):
        raise LookupError("an index of its own")


def wrong_values():
    """Values that are wrong for most arguments: other types, other sizes, arrays that are empty,
    strided, of f64 and f16, of no dimension, of another device."""
    import numpy as np

    return [None, True, 0, -1, 2**31, 2**63, -(2**63), 2**100, 1.5, float("nan"), float("inf"),
            10**400, "", "x", "\ud800", "a\0b", "x" * 100000, b"x", [], [1], [None], ["\ud800"],
            [["x"]], ["x"] * 3, {}, {"x": "x"}, {1: 2}, object(), Strange(), int, len, np.int64(1),
            np.float64(2), np.array(1.0), np.zeros(4)[::2], np.zeros((2, 2)), np.array([np.nan]),
            np.zeros(0), np.zeros(3, np.float16), np.array(["x"], object), slice(None), range(2),
            OnAnotherDevice()]


def _members(name, kind):
    for member, value in sorted(vars(kind).items()):
        if inspect.isfunction(value) and (not member.startswith("_") or member == "__getitem__"):
            if len(inspect.signature(value).parameters) > 1:  # besides self
                yield f"{name}.{member}"
        if isinstance(value, property) and value.fset is not None and not member.startswith("_"):
            yield f"{name}.{member}"


def public_names(found):
    """Yields the functions and classes of {name: object}, and the members of the classes that take
    arguments. Exceptions, modules and other objects are left out."""
    for name, value in sorted(found.items()):
        if inspect.isclass(value):
            if not issubclass(value, BaseException):
                yield name
                yield from _members(name, value)
        elif callable(value):
            yield name


def _arguments(function):
    return {name for name, one in inspect.signature(function).parameters.items()
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}


def call_with_each(renew, valid, values, works=True):
    """Prints for each call a line: the argument, its value, and what came of it. `renew` returns the
    function, of a new object if calls change it. `works` is whether it works with `valid`."""
    function = renew()
    missing = _arguments(function) - set(valid)
    assert not missing, f"the table lacks {sorted(missing)}"
    if works:
        function(**valid)
    for argument in valid:
        for value in values:
            function = renew()
            shown = ascii(value)[:60] if "Tensor" not in type(value).__name__ else "a tensor"
            try:
                function(**{**valid, argument: value})
                outcome = ["works", ""]
            except Exception as error:  # noqa: BLE001 - the test judges it
                outcome = [type(error).__name__, str(error)]
            print(json.dumps([argument, shown, *outcome]), flush=True)


def run_child(script, *words, cwd):
    """Runs a test file as a program, in a process of its own."""
    folders = [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-B", script, *map(str, words)], cwd=cwd, text=True, capture_output=True,
        check=False, timeout=2 * SECONDS, env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)})


def begin_child():
    """Ends the process after some time, with a message that shows where it hangs."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)


def lines_of(done):
    """The lines of call_with_each() from a child that has ended as it should."""
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert done.returncode == 0, (lines[-1:], done.stderr[-2000:])
    return lines


def checked_outcomes(name, lines, accepted):
    """Yields (argument, value, outcome, message, where) of lines, after the checks that are the same
    for every function. `accepted` are names of exceptions."""
    for argument, value, outcome, message in lines:
        where = f"{name}({argument}={value}): {outcome}: {message[:300]}"
        assert "incompatible function arguments" not in message, where
        assert "bad_alloc" not in message, where
        if value.startswith(("<class", "<built-in")):  # a function raises errors of its own
            continue
        assert outcome == "works" or outcome in accepted, where
        yield argument, value, outcome, message, where
