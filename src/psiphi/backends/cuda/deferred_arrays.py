"""Arrays of a card that are not there yet: what is sent to the card is written down, and sent when they are.

A compiler of programs (XLA, within `jit`) makes memory when a program runs. Code that works on arrays of a card works on
promised ones, too: they are SPAN bytes apart in an address space of their own, so that an address says which array it is in,
and how far inside. Kernels that they would be given to are noted in a `Ledger`; the library's own arithmetic waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from psiphi.backends.cuda.device_arrays import View
from psiphi.backends.cuda.dlpack import CUDA

SPAN = 1 << 44  # bytes: more than any array has


class Noted(NamedTuple):
    """A kernel, by card, and what it will be given: bytes within arrays, and numbers behind them; for n states."""

    kernel: Callable[[int], Any]
    arrays: list[tuple[int, int]]
    numbers: list[int]
    n: int


class Later:
    """What the library's own arithmetic makes of promised arrays: `of(arrays)`, once these are there."""

    def __init__(self, of: Callable[[Sequence[Any]], Any]):
        self.of = of

    def __getitem__(self, key: Any) -> Later:
        return Later(lambda arrays: self.of(arrays)[key])

    def __add__(self, other: Later) -> Later:
        return Later(lambda arrays: self.of(arrays) + other.of(arrays))

    def reshape(self, *shape: int) -> Later:
        return Later(lambda arrays: self.of(arrays).reshape(*shape))


class Promised(Later):
    """An array to come: an argument, `numbers` of the host, or (`is_made`) memory for results of kernels."""

    def __init__(self, ledger: Ledger, shape: tuple[int, ...], char: str, numbers: np.ndarray | None, is_made: bool):
        super().__init__(lambda arrays: arrays[self.index])
        self.ledger, self.shape, self.char, self.numbers, self.is_made = ledger, tuple(shape), char, numbers, is_made
        self.index = len(ledger.arrays)
        ledger.arrays.append(self)

    @property
    def card_library(self) -> PromisedArrays:
        return PROMISED

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def pointer(self) -> int:
        return (1 + self.index) * SPAN

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def reshape(self, *shape: int) -> Promised:
        """The same memory: rows follow each other."""
        other = copy(self)
        other.shape, other.of = shape, lambda arrays: arrays[self.index].reshape(shape)
        return other


class Ledger:
    """The arrays and the kernels of one call; it stands where a stream would."""

    def __init__(self) -> None:
        self.arrays: list[Promised] = []
        self.sent: list[Noted] = []

    def argument(self, shape: tuple[int, ...], char: str) -> Promised:
        return Promised(self, shape, char, None, False)

    def note(self, kernel: Callable[[int], Any], pointers: Sequence[int], numbers: list[int], n: int) -> None:
        self.sent.append(Noted(kernel, [(p // SPAN - 1, p % SPAN) for p in pointers], numbers, n))

    @property
    def order(self) -> list[int]:
        """Where each array stands among those that a program passes: what goes in first, what is made behind it."""
        ranked = sorted(range(len(self.arrays)), key=lambda index: self.arrays[index].is_made)
        return [place for _, place in sorted(zip(ranked, range(len(ranked)), strict=True))]


class PromisedArrays:
    """The row of promised arrays among the libraries (`device_arrays.py`)."""

    name = "jax"  # whose programs they will be in

    def view(self, x: Promised) -> View:
        return View(x.pointer, x.shape, x.char, True, 0)

    def stream(self, x: Promised) -> Ledger:
        return x.ledger

    def empty(self, x: Promised, shape: tuple[int, ...], char: str) -> tuple[Promised, int]:
        made = Promised(x.ledger, shape, char, None, True)
        return made, made.pointer

    def put(self, x: Promised, array: np.ndarray) -> Promised:
        return Promised(x.ledger, array.shape, array.dtype.char, array, False)

    def full(self, x: Promised, size: int, value: float) -> Promised:
        return self.put(x, np.full(size, value, x.char))

    def ready(self, x: Promised, made: Promised, stream: Ledger) -> Promised:
        return made


PROMISED = PromisedArrays()
