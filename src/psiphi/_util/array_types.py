"""Types of array arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike


class HasArray(Protocol):
    """A NumPy array, or an object that converts to one: a pandas or xarray table, a tensor."""

    def __array__(self) -> np.ndarray[Any, np.dtype[Any]]: ...


Number: TypeAlias = float | HasArray
Numbers: TypeAlias = (
    Number | Sequence[Number] | Sequence[Sequence[Number]] | Sequence[Sequence[Sequence[Number]]]
)
Array: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"  # float64; float32 for float32
# arrays for the results; None: the result gets a new array
Out: TypeAlias = "np.ndarray[Any, Any] | Sequence[np.ndarray[Any, Any] | None] | None"
DType: TypeAlias = "DTypeLike | None"  # float64, float32, or None: that of the arguments
Wrenches: TypeAlias = Mapping[str, Numbers]  # frame name -> wrench


class AnyScalar(Protocol):
    """A number, an array or a tape expression. The laws of joints and bodies run on these."""

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...


class AnyArray(AnyScalar, Protocol):
    """An array of NumPy, torch, JAX, CuPy or Dask, or of tape expressions (dtype object)."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def reshape(self, *shape: Any) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __len__(self) -> int: ...
