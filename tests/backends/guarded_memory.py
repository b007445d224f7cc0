"""Memory with a wall: arrays that end, or begin, at a page nobody may touch, and actions that may
die of it."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import sys
import traceback
from collections.abc import Callable

import numpy as np

from tests.children import exit_code

PAGE = mmap.PAGESIZE
POSIX = hasattr(os, "fork") and not sys.platform.startswith("win")


def array(values: np.ndarray, wall: str) -> np.ndarray:
    """A C-ordered copy of the values, its last byte before the wall ("after") or its first one
    behind it ("before")."""
    libc = ctypes.CDLL(None, use_errno=True)
    pages = 2 + -(-values.nbytes // PAGE)
    memory = mmap.mmap(-1, pages * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages - 1):
        if libc.mprotect(ctypes.c_void_p(start + page * PAGE), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = PAGE if wall == "before" else (pages - 1) * PAGE - values.nbytes
    out = np.ndarray(values.shape, values.dtype, memory, offset)
    out[...] = values
    return out


def outcome(action: Callable[[], None]) -> int:
    """The exit code of the action in a process of its own: 0, 1 for an exception, -11 for a fall
    over the wall."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return exit_code(child)
