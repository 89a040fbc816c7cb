"""Checks of the arguments of public functions: an error names the argument, and nothing is copied
or converted in silence. Types are checked here, values where they are used."""

from __future__ import annotations

import json
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Union

from onebit import _core

T = TypeVar("T")

Folder = Union[str, "os.PathLike[str]"]
Recipe = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Overrides = Union[Mapping[str, Any], Sequence[str]]

_MOST_INT32, _MOST_INT64 = 2**31 - 1, 2**63 - 1


def kind(value: object) -> str:
    """The name of the value's type, for errors."""
    return type(value).__name__


def text(value: object, name: str) -> str:
    """A str that is Unicode. UnicodeEncodeError: it has half of a surrogate pair, for example a
    path whose bytes are not UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        error.reason += f", in {name}"
        raise
    return value


def elements(value: object, name: str, expected: str) -> list[Any]:
    """The elements of something that can be iterated, but of no text."""
    if not isinstance(value, (str, bytes)) and isinstance(value, Iterable):
        try:
            return list(value)
        except TypeError:  # an array without a dimension has the method, too
            pass
    raise TypeError(f"{name} must be an iterable of {expected}, not {kind(value)}")


def texts(value: object, name: str) -> list[str]:
    """A list of texts. A single str is a mistake here: it is a sequence of letters."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be a list of texts, not one text: write [{name}]")
    return [text(one, f"{name}[{index}]")
            for index, one in enumerate(elements(value, name, "texts"))]


def path(value: object, name: str) -> str:
    """A path, which is not empty."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, not {kind(value)}")
    given = text(os.fspath(value), name)
    if not given or "\0" in given:
        raise _core.Error(f"{name} is {'empty' if not given else 'no path'}: give a file or a folder")
    return given


def whole(value: object, name: str, most: int = _MOST_INT64) -> int:
    """A whole number, also numpy's. Not a bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {kind(value)}")
    try:
        number = operator.index(value)
    except TypeError as error:  # an array of several numbers has the method, too
        raise TypeError(f"{name} must be a whole number, not {kind(value)}") from error
    if not -most <= number <= most:
        raise _core.Error(f"{name} must be at most {most} in size, not {number}")
    return number


def small(value: object, name: str) -> int:
    """A whole number of 32 bits."""
    return whole(value, name, _MOST_INT32)


def number(value: object, name: str) -> float:
    """A finite number, also numpy's. Not a bool."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, not {kind(value)}")
    try:
        given = float(value)
    except OverflowError:
        given = float("inf")
    if given != given or given in (float("inf"), float("-inf")):
        raise _core.Error(f"{name} must be a finite number, not {value}")
    return given


def flag(value: object, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {kind(value)}")
    return value


def function(value: object, name: str) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, not {kind(value)}")
    return value


def instance(value: object, name: str, of: type[T], expected: str) -> T:
    """An object of a class."""
    if not isinstance(value, of):
        raise TypeError(f"{name} must be {expected}, not {kind(value)}")
    return value


def mapping(value: object, name: str) -> dict[str, Any]:
    """A dict, or the like, with texts as keys."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, not {kind(value)}")
    return {text(key, f"a key of {name}"): one for key, one in value.items()}


def maybe(check: Callable[[object, str], T], value: object, name: str) -> T | None:
    """None, or what `check` returns."""
    return None if value is None else check(value, name)


def paths(value: object, name: str) -> list[str]:
    """A path, or several."""
    if isinstance(value, (str, os.PathLike)):
        return [path(value, name)]
    return [path(one, f"{name}[{index}]")
            for index, one in enumerate(elements(value, name, "paths"))]


def weighted_paths(value: object, name: str) -> list[tuple[str, float]]:
    """A path, several, or a mapping from paths to weights."""
    if isinstance(value, Mapping):
        found = [(path(one, name), number(weight, f"{name}[{one!r}]"))
                 for one, weight in value.items()]
        for one, weight in found:
            if weight <= 0:  # 0 is how a store without a weight is passed on
                raise _core.Error(f"{name}[{one!r}] is {weight}: a weight must be above 0")
        return found
    return [(one, 0.0) for one in paths(value, name)]


def named_paths(value: object, name: str) -> list[tuple[str, str]]:
    """A path without a name, or a mapping from names to paths."""
    if isinstance(value, Mapping):
        return [(text(title, name), path(one, f"{name}[{title!r}]"))
                for title, one in value.items()]
    return [("", path(value, name))]


def _assignments(overrides: object) -> list[str]:
    if not isinstance(overrides, Mapping):
        given = texts(overrides, "overrides")
        for index, one in enumerate(given):
            if "=" not in one:
                raise _core.Error(f"overrides[{index}] is {one!r}: write key=value, for example "
                                  "optimizer.params.lr=1e-4")
        return given
    lines = []
    for key, value in overrides.items():
        if "=" in text(key, "a key of overrides"):
            raise _core.Error(f"overrides: the key {key!r} has a =")
        lines.append(f"{key}={json_text(value, f'overrides[{key!r}]')}")
    return lines


def json_text(value: object, name: str) -> str:
    """The value as JSON."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{name} cannot be written as JSON: {error}") from error


def recipe(value: object, overrides: object = None) -> _core.Recipe:
    """A recipe from a path or a mapping, with `overrides` as the program's --set has them."""
    lines = [] if overrides is None else _assignments(overrides)
    if isinstance(value, Mapping):
        return _core.Recipe("", json_text(dict(value), "recipe"), lines)
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"recipe must be a path or a dict, not {kind(value)}")
    return _core.Recipe(path(value, "recipe"), "", lines)
