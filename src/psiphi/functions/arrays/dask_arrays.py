"""Dask arrays: a call on them is a plan of calls on their blocks, made when somebody computes it, here or on a cluster.

Blocks are cut along batch axes alone; an argument whose own axes are cut is put together first. Nothing is imported: who holds
such an array has imported Dask. What travels to a worker is the function, some kB, and it finds its machine code in the cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_array, is_lazy
from psiphi.compiler.sweeps.sweep_program import Argument

Arguments = Sequence[Argument]


def refuse_lazy(name: str, what: str, *values: Any) -> None:
    """Refuse Dask arrays where numbers are needed now."""
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
    dtype: Any,
) -> Any:
    """The results of `call(*arrays)` as Dask arrays; `inputs` and `outputs` say which axes are its own."""
    da = sys.modules["dask.array"]
    whole = [_in_one_piece(name, arg, value) for arg, value in zip(inputs, values, strict=True)]
    _check_batches(name, inputs, whole)
    whole = _align_chunks(inputs, whole)
    letters = [
        ",".join(f"{arg.name}{i}_{j}" for j in range(len(arg.shape)))
        for i, arg in enumerate((*inputs, *outputs))
    ]
    core = [f"({letter})" for letter in letters]
    kind = (
        np.dtype(dtype)
        if dtype is not None
        else np.result_type(np.float32, *(x.dtype for x in whole))
    )
    sizes = {
        f"{arg.name}{i}_{j}": n
        for i, arg in enumerate((*inputs, *outputs))
        for j, n in enumerate(arg.shape)
    }
    signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
    many = len(outputs) > 1
    new = {key: sizes[key] for key in ",".join(letters[len(inputs) :]).split(",") if key}
    meta = tuple(np.empty((0,) * _result_ndim(whole, inputs, arg), kind) for arg in outputs)
    run = BlockwiseCall(call, None if dtype is None else np.dtype(dtype).char)
    return da.apply_gufunc(run, signature, *whole, output_sizes=new, meta=meta if many else meta[0])


class BlockwiseCall:
    """A call on plain arrays, as a worker runs it: what it needs is in the call alone."""

    def __init__(self, call: Callable, dtype: str | None):
        self.call, self.dtype = call, dtype

    def __call__(self, *arrays: np.ndarray) -> Any:
        given = [np.asarray(x) for x in arrays]
        return (
            self.call(*given)
            if self.dtype is None
            else self.call(*given, dtype=np.dtype(self.dtype))
        )


def stack_lazy(arrays: Sequence[Any]) -> Any:
    """Arrays (..., 6), broadcast, as one (..., len, 6)."""
    da = sys.modules["dask.array"]
    return da.stack(da.broadcast_arrays(*map(da.asarray, arrays)), axis=-2)


def _in_one_piece(name: str, arg: Argument, value: Any) -> Any:
    """The argument with its own axes in one piece; its shape and type are checked now, its numbers later."""
    da = sys.modules["dask.array"]
    if not is_lazy(value):
        value = np.asarray(value)
    readable = value.dtype.kind in "iub" or (value.dtype.kind == "f" and value.dtype.itemsize <= 8)
    check_array(name, arg, value.shape, "float64" if readable else str(value.dtype))
    lead = value.ndim - len(arg.shape)
    if not is_lazy(value):
        return da.from_array(value, chunks=-1) if lead else value
    return value.rechunk(dict.fromkeys(range(lead, value.ndim), -1)) if arg.shape else value


def _align_chunks(inputs: Arguments, values: Sequence[Any]) -> list[Any]:
    """The arguments, cut at the same places along batch axes that they share; axes are told apart from the right."""
    pairs: list[Any] = []
    for number, (arg, x) in enumerate(zip(inputs, values, strict=True)):
        lead = x.ndim - len(arg.shape)
        pairs += (
            [x, (*range(-lead, 0), *((number, k) for k in range(len(arg.shape))))]
            if is_lazy(x)
            else []
        )
    _, arrays = sys.modules["dask.array"].core.unify_chunks(*pairs)
    cut = iter(arrays)
    return [next(cut) if is_lazy(x) else x for x in values]


def _result_ndim(values: Sequence[Any], inputs: Arguments, out: Argument) -> int:
    return max(x.ndim - len(arg.shape) for arg, x in zip(inputs, values, strict=True)) + len(
        out.shape
    )


def _check_batches(name: str, inputs: Arguments, values: Sequence[Any]) -> None:
    leads = {
        arg.name: x.shape[: x.ndim - len(arg.shape)] for arg, x in zip(inputs, values, strict=True)
    }
    if all(
        n == n for lead in leads.values() for n in lead
    ):  # a block of unknown length is NaN long
        batch_axes(name, leads)
