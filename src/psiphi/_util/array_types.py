"""Types of arrays at the public functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike


class HasArray(Protocol):
    """A NumPy array, or anything that turns into one: a table of pandas or xarray, a tensor."""

    def __array__(self) -> np.ndarray[Any, np.dtype[Any]]: ...


Number: TypeAlias = float | HasArray
Numbers: TypeAlias = (
    Number | Sequence[Number] | Sequence[Sequence[Number]] | Sequence[Sequence[Sequence[Number]]]
)
Array: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"  # what comes out: float64, or float32 where that went in
Out: TypeAlias = (
    "np.ndarray[Any, Any] | Sequence[np.ndarray[Any, Any]] | None"  # arrays that take the results
)
DType: TypeAlias = "DTypeLike | None"  # float64, float32, or as the arguments are
Wrenches: TypeAlias = Mapping[str, Numbers]  # by the names of frames


class AnyScalar(Protocol):
    """A number, an array of numbers, or a tape expression: what the laws of joints and bodies run on."""

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...


class AnyArray(AnyScalar, Protocol):
    """An array of any library: NumPy, torch, JAX, CuPy or Dask, or an object array of tape expressions."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __len__(self) -> int: ...
