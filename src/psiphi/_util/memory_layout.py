"""Numbers laid as code reads them, number by number with all elements side by side; and such arrays that stay as they are, of
which functions keep what they make of them alone."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

LINE = 64  # bytes that memory gives at a time
_made: dict[
    int, dict[Any, np.ndarray]
] = {}  # by the id of an array that is kept: what was made of it


def room(lead: tuple[int, ...], size: int, kind: Any = float) -> np.ndarray:
    """(*lead, size), as code reads it: of each number all elements side by side, from a line of memory on. From one number to
    the next it is an odd count of lines: a multiple of many would send all of them to the same few places of the caches."""
    if not lead:
        return np.empty(size, kind)
    count = math.prod(lead)
    lines = -(-count * np.dtype(kind).itemsize // LINE) | 1
    memory = np.empty(size * lines * LINE + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    rows = memory[start : start + size * lines * LINE].view(kind).reshape(size, -1)
    return np.moveaxis(rows[:, :count].reshape(size, *lead), 0, -1)


def kept(numbers: np.ndarray) -> np.ndarray:
    """The same numbers in memory that nobody writes to: functions keep what they make of them, as long as it is there."""
    out = room(numbers.shape[:-1], numbers.shape[-1], numbers.dtype)
    out[...] = numbers
    out.flags.writeable = False
    _made[id(out)] = {}
    weakref.finalize(out, _made.pop, id(out), None).atexit = False
    return out


def made_of(numbers: np.ndarray) -> dict[Any, np.ndarray] | None:
    """What was made of an array that is kept; None of any other, and of one that somebody has made writeable again."""
    found = _made.get(id(numbers))
    return None if found is None or numbers.flags.writeable else found
