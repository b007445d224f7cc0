"""Arrays whose memory layout suits compiled code, and read-only copies that cache derived arrays.

Compiled code runs over a batch, so the last axis (the numbers of one element) is the slowest in
memory: for each number, the values of all batch elements are adjacent.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable

import numpy as np
from numpy.typing import DTypeLike

CACHE_LINE = 64  # bytes
_derived: dict[int, dict[Hashable, np.ndarray]] = {}  # by the id of a frozen copy


def aligned_array(batch: tuple[int, ...], size: int, dtype: DTypeLike = float) -> np.ndarray:
    """An empty array (*batch, size): for each number, all batch elements are adjacent in memory.

    Each row of elements starts at a cache line. The stride between rows is an odd number of lines,
    since rows at multiples of a large power of two would compete for the same cache sets.
    """
    if not batch:
        return np.empty(size, dtype)
    count = math.prod(batch)
    lines = -(-count * np.dtype(dtype).itemsize // CACHE_LINE) | 1
    memory = np.empty(size * lines * CACHE_LINE + CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    rows = memory[start : start + size * lines * CACHE_LINE].view(dtype).reshape(size, -1)
    return np.moveaxis(rows[:, :count].reshape(size, *batch), 0, -1)


def frozen_copy(array: np.ndarray) -> np.ndarray:
    """A read-only, aligned copy. Functions cache arrays derived from it while it exists."""
    out = aligned_array(array.shape[:-1], array.shape[-1], array.dtype)
    out[...] = array
    out.flags.writeable = False
    _derived[id(out)] = {}
    weakref.finalize(out, _derived.pop, id(out), None).atexit = False
    return out


def derived_arrays(array: np.ndarray) -> dict[Hashable, np.ndarray] | None:
    """The cache of arrays derived from a frozen copy; None for other and for writable arrays."""
    found = _derived.get(id(array))
    return None if found is None or array.flags.writeable else found
