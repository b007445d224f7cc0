"""What a law of a user's own may say where it is read (`memoryless.py`): the functions, methods and values that are known.

A value is `Existing`, an object that was there before, or `Found`, something of the call. What was made in the call may be
changed; what is no array may hold what was there before.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType, NoneType
from typing import Any, NamedTuple

import numpy as np


class Unsure(Exception):
    """Why a function may be one of more than its arguments."""


@dataclass(frozen=True, eq=False)
class Existing:
    """An object that was there before."""

    value: Any


class Found(NamedTuple):
    """Something of the call."""

    made: bool = False  # in this call
    array: bool = False  # surely a number or an array of numbers
    numeric: bool = False  # surely nothing but numbers, however deep


MADE, VIEW, SEEN = Found(True, True, True), Found(False, True, True), Found()
LIST, SERIES = Found(True, False, True), Found(False, False, True)  # of numbers
Value = Existing | Found


def part(of: Found) -> Found:
    """An element, or a slice."""
    return Found(False, of.array, of.numeric)


def holding(parts: list[Found]) -> Found:
    """A list of these."""
    return Found(True, False, all(x.numeric for x in parts))


def computed(parts: list[Found]) -> Found:
    """What arithmetic makes of these: of arrays an array, of lists perhaps a list."""
    return Found(True, all(x.array for x in parts), all(x.numeric for x in parts))


class Usage(NamedTuple):
    """What may be called: with how many arguments in their order (the next might be `out`), and what it answers."""

    most: int
    answers: Found = MADE
    of_numbers: bool = False  # it answers so only of numbers; else with objects


def _words(place: Any, words: str, most: int, answers: Found = MADE) -> dict[int, Usage]:
    return {id(getattr(place, name)): Usage(most, answers, place is np or not answers.array) for name in words.split()}


CALLED = {  # by identity
    **_words(np, "zeros ones zeros_like ones_like eye identity array full full_like arange linspace where", 3),
    **_words(np, "concatenate stack dot vdot inner outer kron cross sum prod mean cumsum trace append tile", 2),
    **_words(np, "hstack vstack column_stack", 1),
    **_words(np.linalg, "norm", 3),
    **_words(np, "asarray reshape ravel transpose squeeze diag diff flip atleast_1d atleast_2d broadcast_to", 2, VIEW),
    **_words(np, "swapaxes moveaxis", 3, VIEW),
    **_words(np, "einsum", 5, VIEW),
    **_words(math, " ".join(name for name, x in vars(math).items() if callable(x) and name[0] != "_"), 4),
    **_words(builtins, "abs bool float int len pow", 3),
    **_words(builtins, "sum", 1),
    **_words(builtins, "dict list tuple", 1, LIST),
    **_words(builtins, "range", 3, VIEW),
    **_words(builtins, "enumerate max min reversed zip", 5, SERIES),
}
METHODS = {  # of arrays, lists and dicts
    **dict.fromkeys(("cumsum", "dot", "flatten", "mean", "prod", "sum"), Usage(1)),
    **dict.fromkeys(("diagonal", "ravel", "reshape", "squeeze", "swapaxes", "transpose"), Usage(5, VIEW)),
    **dict.fromkeys(("get", "items", "keys", "values"), Usage(2, SEEN)),
    "tolist": Usage(0, LIST),
}
CHANGING = {"append": Usage(1, SEEN), "extend": Usage(1, SEEN)}  # of what was made in this call, with numbers
ATTRIBUTES = {"T": VIEW, "real": VIEW, "ndim": VIEW, "size": VIEW, "shape": SEEN}
# keywords that change nothing
WORDS = ("axis", "keepdims", "dtype", "ord", "axes", "frame", "frames", "f_ext", "method", "strict")
NUMBERS = (bool, int, float, complex)
PLAIN = (*NUMBERS, str, bytes, NoneType, EllipsisType, range, slice)  # they cannot be changed
DTYPES = (bool, int, float)
DEEPEST = 12  # containers within containers


def found(value: Value) -> Found:
    """What is said of a value that is computed with; what was there before must be numbers, texts, arrays, or hold such."""
    if isinstance(value, Found):
        return value
    x = value.value
    if not is_plain(x):
        raise Unsure(f"it reads a {type(x).__name__}, which may change")
    number = type(x) in NUMBERS or issubclass(type(x), np.generic)
    return Found(number or type(x) in PLAIN, number or type(x) is np.ndarray, _is_numeric(x))


def _is_numeric(x: Any) -> bool:
    """Whether there is nothing but numbers in it."""
    if type(x) in (list, tuple):
        return all(map(_is_numeric, x))
    return type(x) in NUMBERS or type(x) is np.ndarray or issubclass(type(x), np.generic) or any(x is kind for kind in DTYPES)


def either(a: Value, b: Value) -> Value:
    """What is the one or the other."""
    if isinstance(a, Existing) and isinstance(b, Existing) and a.value is b.value:
        return a
    return Found(*(x and y for x, y in zip(found(a), found(b), strict=True)))


def is_plain(x: Any, deep: int = DEEPEST) -> bool:
    """Whether it is a number, a text or an array of numbers, or a container of such."""
    if type(x) is np.ndarray or issubclass(type(x), np.generic):
        return x.dtype.kind in "biufc"
    if type(x) in (list, tuple, set, frozenset):
        return deep > 0 and all(is_plain(y, deep - 1) for y in x)
    if type(x) is dict:
        return deep > 0 and all(is_plain(y, deep - 1) for y in (*x, *x.values()))
    return type(x) in PLAIN or any(x is kind for kind in DTYPES)


def answer(usage: Usage, given: list[Value], named: Mapping[str, Value], text: str) -> Found:
    """What such a call answers."""
    kind = named.get("dtype", Existing(float))
    if len(given) > usage.most or not set(named) <= set(WORDS) or not (isinstance(kind, Existing) and kind.value in DTYPES):
        raise Unsure(f"{text} may change what was there before")
    values = [found(value) for value in (*given, *named.values())]
    numeric = all(value.numeric for value in values[: len(given)])
    return usage.answers if numeric or not usage.of_numbers else Found(usage.answers.made)
