"""Dask arrays: a call on them returns Dask arrays, and runs block by block when they are computed.

Blocks are cut along batch axes only; an argument whose core axes are cut is rechunked first.
Nothing is imported: the caller has a Dask array, so Dask is loaded. A worker receives the function,
a few kB, and finds its machine code in the cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray, DType
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_array, is_lazy
from psiphi.compiler.sweeps.sweep_program import Argument

Arguments = Sequence[Argument]


def refuse_lazy(name: str, what: str, *values: object) -> None:
    """Refuse Dask arrays where numbers are needed now; `what` is the reason."""
    if any(map(is_lazy, values)):
        raise StateError(
            f"{name}: {what}, and an argument is a Dask array",
            "give x.compute(), or call it on the blocks",
        )


def map_blocks(
    name: str,
    call: Callable,
    inputs: Arguments,
    outputs: Arguments,
    values: Sequence[Any],
    dtype: DType,
) -> Any:
    """The results of `call(*arrays)` as Dask arrays. `inputs` and `outputs` define core axes."""
    da = sys.modules["dask.array"]
    arrays = [_with_whole_core(name, arg, value) for arg, value in zip(inputs, values, strict=True)]
    _check_batches(name, inputs, arrays)
    arrays = _align_chunks(inputs, arrays)
    letters = [
        ",".join(f"{arg.name}{i}_{j}" for j in range(len(arg.shape)))
        for i, arg in enumerate((*inputs, *outputs))
    ]
    core = [f"({letter})" for letter in letters]
    kind = (
        np.dtype(dtype)
        if dtype is not None
        else np.result_type(np.float32, *(x.dtype for x in arrays))
    )
    sizes = {
        f"{arg.name}{i}_{j}": n
        for i, arg in enumerate((*inputs, *outputs))
        for j, n in enumerate(arg.shape)
    }
    signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
    many = len(outputs) > 1
    new = {key: sizes[key] for key in ",".join(letters[len(inputs) :]).split(",") if key}
    meta = tuple(np.empty((0,) * _result_ndim(arrays, inputs, arg), kind) for arg in outputs)
    run = BlockwiseCall(call, None if dtype is None else np.dtype(dtype).char)
    return da.apply_gufunc(
        run, signature, *arrays, output_sizes=new, meta=meta if many else meta[0]
    )


class BlockwiseCall:
    """A call on the NumPy arrays of one block; a worker needs nothing else."""

    def __init__(self, call: Callable, dtype: str | None):
        self.call, self.dtype = call, dtype

    def __call__(self, *blocks: Any) -> Any:
        arrays = [np.asarray(x) for x in blocks]
        return (
            self.call(*arrays)
            if self.dtype is None
            else self.call(*arrays, dtype=np.dtype(self.dtype))
        )


def stack_lazy(arrays: Sequence[Any]) -> Any:
    """Arrays (..., 6), broadcast, as one Dask array (..., len, 6)."""
    da = sys.modules["dask.array"]
    return da.stack(da.broadcast_arrays(*map(da.asarray, arrays)), axis=-2)


def _with_whole_core(name: str, arg: Argument, value: AnyArray) -> Any:
    """The argument with each core axis in one chunk. Its shape and dtype are checked now, its
    numbers when they are computed."""
    da = sys.modules["dask.array"]
    array: Any = value if is_lazy(value) else np.asarray(value)
    readable = array.dtype.kind in "iub" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8)
    check_array(name, arg, array.shape, "float64" if readable else str(array.dtype))
    lead = array.ndim - len(arg.shape)
    if not is_lazy(array):
        return da.from_array(array, chunks=-1) if lead else array
    return array.rechunk(dict.fromkeys(range(lead, array.ndim), -1)) if arg.shape else array


def _align_chunks(inputs: Arguments, values: Sequence[Any]) -> list[Any]:
    """The arguments with equal chunks along shared batch axes, which are counted from the right."""
    pairs: list[Any] = []
    for number, (arg, x) in enumerate(zip(inputs, values, strict=True)):
        lead = x.ndim - len(arg.shape)
        pairs += (
            [x, (*range(-lead, 0), *((number, k) for k in range(len(arg.shape))))]
            if is_lazy(x)
            else []
        )
    _, arrays = sys.modules["dask.array"].core.unify_chunks(*pairs)
    aligned = iter(arrays)
    return [next(aligned) if is_lazy(x) else x for x in values]


def _result_ndim(values: Sequence[Any], inputs: Arguments, out: Argument) -> int:
    batch = max(x.ndim - len(arg.shape) for arg, x in zip(inputs, values, strict=True))
    return batch + len(out.shape)


def _check_batches(name: str, inputs: Arguments, values: Sequence[Any]) -> None:
    leads = {
        arg.name: x.shape[: x.ndim - len(arg.shape)] for arg, x in zip(inputs, values, strict=True)
    }
    if all(n == n for lead in leads.values() for n in lead):  # an unknown length is NaN
        batch_axes(name, leads)
