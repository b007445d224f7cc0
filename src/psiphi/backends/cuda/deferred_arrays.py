"""Arrays of a card that are not there yet: what is sent to the card is written down, and sent when they are.

A compiler of programs (XLA, within `jit`) makes memory when a program runs. Code that works on arrays of a card works on
promised ones, too: they are SPAN bytes apart in an address space of their own, so that an address says which array it is in,
and how far inside. Kernels that they would be given to are noted in a `LaunchRecord`; the library's own arithmetic waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from psiphi.backends.cuda.device_arrays import ArrayView
from psiphi.backends.cuda.dlpack import CUDA

SPAN = 1 << 44  # bytes: more than any array has


class KernelCall(NamedTuple):
    """A kernel, by card, and what it will be given: bytes within arrays, and numbers behind them; for n states."""

    kernel: Callable[[int], Any]
    arrays: list[tuple[int, int]]
    numbers: list[int]
    n: int


class DeferredExpression:
    """What the library's own arithmetic makes of promised arrays: `of(arrays)`, once these are there."""

    def __init__(self, of: Callable[[Sequence[Any]], Any]):
        self.of = of

    def __getitem__(self, key: Any) -> DeferredExpression:
        return DeferredExpression(lambda arrays: self.of(arrays)[key])

    def __add__(self, other: DeferredExpression) -> DeferredExpression:
        return DeferredExpression(lambda arrays: self.of(arrays) + other.of(arrays))

    def reshape(self, *shape: int) -> DeferredExpression:
        return DeferredExpression(lambda arrays: self.of(arrays).reshape(*shape))


class DeferredArray(DeferredExpression):
    """An array to come: an argument, `numbers` of the host, or (`is_made`) memory for results of kernels."""

    def __init__(
        self,
        ledger: LaunchRecord,
        shape: tuple[int, ...],
        char: str,
        numbers: np.ndarray | None,
        is_made: bool,
    ):
        super().__init__(lambda arrays: arrays[self.index])
        self.ledger, self.shape, self.char, self.numbers, self.is_made = (
            ledger,
            tuple(shape),
            char,
            numbers,
            is_made,
        )
        self.index = len(ledger.arrays)
        ledger.arrays.append(self)

    @property
    def card_library(self) -> DeferredArrays:
        return PROMISED

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def pointer(self) -> int:
        return (1 + self.index) * SPAN

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def reshape(self, *shape: int) -> DeferredArray:
        """The same memory: rows follow each other."""
        other = copy(self)
        other.shape, other.of = shape, lambda arrays: arrays[self.index].reshape(shape)
        return other


class LaunchRecord:
    """The arrays and the kernels of one call; it stands where a stream would."""

    def __init__(self) -> None:
        self.arrays: list[DeferredArray] = []
        self.sent: list[KernelCall] = []

    def argument(self, shape: tuple[int, ...], char: str) -> DeferredArray:
        return DeferredArray(self, shape, char, None, False)

    def note(
        self, kernel: Callable[[int], Any], pointers: Sequence[int], numbers: list[int], n: int
    ) -> None:
        self.sent.append(
            KernelCall(kernel, [(p // SPAN - 1, p % SPAN) for p in pointers], numbers, n)
        )

    @property
    def order(self) -> list[int]:
        """Where each array stands among those that a program passes: what goes in first, what is made behind it."""
        ranked = sorted(range(len(self.arrays)), key=lambda index: self.arrays[index].is_made)
        return [place for _, place in sorted(zip(ranked, range(len(ranked)), strict=True))]


class DeferredArrays:
    """The row of promised arrays among the libraries (`device_arrays.py`)."""

    name = "jax"  # whose programs they will be in

    def view(self, x: DeferredArray) -> ArrayView:
        return ArrayView(x.pointer, x.shape, x.char, True, 0)

    def stream(self, x: DeferredArray) -> LaunchRecord:
        return x.ledger

    def empty(
        self, x: DeferredArray, shape: tuple[int, ...], char: str
    ) -> tuple[DeferredArray, int]:
        made = DeferredArray(x.ledger, shape, char, None, True)
        return made, made.pointer

    def put(self, x: DeferredArray, array: np.ndarray) -> DeferredArray:
        return DeferredArray(x.ledger, array.shape, array.dtype.char, array, False)

    def full(self, x: DeferredArray, size: int, value: float) -> DeferredArray:
        return self.put(x, np.full(size, value, x.char))

    def ready(self, x: DeferredArray, made: DeferredArray, stream: LaunchRecord) -> DeferredArray:
        return made


PROMISED = DeferredArrays()
