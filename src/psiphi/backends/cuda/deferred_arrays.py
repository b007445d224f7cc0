"""Stand-ins for GPU arrays that do not exist yet: launches are recorded, and run when they exist.

XLA, the compiler behind JAX's `jit`, allocates memory only when a program runs. Code for GPU arrays
also works on deferred arrays: these are SPAN bytes apart in an address space of their own, so that
an address tells the array and the offset in it. Kernel calls on them go to a `LaunchRecord`;
arithmetic of the array library becomes a `DeferredExpression`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psiphi.backends.cuda.device_arrays import ArrayView
from psiphi.backends.cuda.dlpack import CUDA

Index: TypeAlias = int | slice | EllipsisType | None
SPAN = 1 << 44  # bytes: more than any array has


class KernelCall(NamedTuple):
    """A call of a kernel (by GPU) for n states: (array, offset in bytes) pairs, then numbers."""

    kernel: Callable[[int], Any]
    arrays: list[tuple[int, int]]
    numbers: list[int]
    n: int


class DeferredExpression:
    """Arithmetic of the array library on deferred arrays: `of(arrays)`, once these exist."""

    def __init__(self, of: Callable[[Sequence[Any]], Any]):
        self.of = of

    def __getitem__(self, key: Index | tuple[Index, ...]) -> DeferredExpression:
        return DeferredExpression(lambda arrays: self.of(arrays)[key])

    def __add__(self, other: DeferredExpression) -> DeferredExpression:
        return DeferredExpression(lambda arrays: self.of(arrays) + other.of(arrays))

    def reshape(self, *shape: int) -> DeferredExpression:
        return DeferredExpression(lambda arrays: self.of(arrays).reshape(*shape))


class DeferredArray(DeferredExpression):
    """A deferred array: an argument, `numbers` of the host, or (`is_output`) memory for results."""

    def __init__(
        self,
        record: LaunchRecord,
        shape: tuple[int, ...],
        char: str,
        numbers: np.ndarray | None,
        is_output: bool,
    ):
        super().__init__(lambda arrays: arrays[self.index])
        self.record, self.shape, self.char = record, tuple(shape), char
        self.numbers, self.is_output = numbers, is_output
        self.index = len(record.arrays)
        record.arrays.append(self)

    @property
    def gpu_library(self) -> DeferredArrays:
        return DEFERRED

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def pointer(self) -> int:
        return (1 + self.index) * SPAN

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def reshape(self, *shape: int) -> DeferredArray:
        """The same memory with another shape."""
        other = copy(self)
        other.shape, other.of = shape, lambda arrays: arrays[self.index].reshape(shape)
        return other


class LaunchRecord:
    """The arrays and the kernel calls of one function call; it takes the place of a stream."""

    def __init__(self) -> None:
        self.arrays: list[DeferredArray] = []
        self.calls: list[KernelCall] = []

    def add_argument(self, shape: tuple[int, ...], char: str) -> DeferredArray:
        return DeferredArray(self, shape, char, None, False)

    def add_call(
        self, kernel: Callable[[int], Any], pointers: Sequence[int], numbers: list[int], n: int
    ) -> None:
        self.calls.append(
            KernelCall(kernel, [(p // SPAN - 1, p % SPAN) for p in pointers], numbers, n)
        )

    @property
    def order(self) -> list[int]:
        """The position of each array among those of the XLA program: inputs first, then outputs."""
        ranked = sorted(range(len(self.arrays)), key=lambda index: self.arrays[index].is_output)
        return [position for _, position in sorted(zip(ranked, range(len(ranked)), strict=True))]


class DeferredArrays:
    """The row of deferred arrays among the array libraries (`device_arrays.py`)."""

    name = "jax"

    def view(self, x: DeferredArray) -> ArrayView:
        return ArrayView(x.pointer, x.shape, x.char, True, 0)

    def stream(self, x: DeferredArray) -> LaunchRecord:
        return x.record

    def empty(
        self, x: DeferredArray, shape: tuple[int, ...], char: str
    ) -> tuple[DeferredArray, int]:
        made = DeferredArray(x.record, shape, char, None, True)
        return made, made.pointer

    def put(self, x: DeferredArray, array: np.ndarray) -> DeferredArray:
        return DeferredArray(x.record, array.shape, array.dtype.char, array, False)

    def full(self, x: DeferredArray, size: int, value: float) -> DeferredArray:
        return self.put(x, np.full(size, value, x.char))

    def ready(self, x: DeferredArray, made: DeferredArray, stream: LaunchRecord) -> DeferredArray:
        return made


DEFERRED = DeferredArrays()
