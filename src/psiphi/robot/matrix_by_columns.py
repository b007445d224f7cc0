"""Matrices of large robots, too large to write out in code: their O(N) operator on the columns of the identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.free_memory import free_memory
from psiphi._util.validate import flag, is_lazy
from psiphi.backends.c.c_columns import Columns
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.functions import argument_checks
from psiphi.functions import value_checks as checked
from psiphi.functions.arrays.dask_arrays import in_blocks, refuse_lazy
from psiphi.model.state_checks import check_states
from psiphi.robot.catalogue.quantities import CATALOGUE

LARGE = 100_000_000  # bytes that are asked for without looking


def matrix(robot: Any, name: str, q: Any, out: Any, dtype: Any, check: Any) -> Any:
    """`robot.mass_matrix(q)` and its like, with `out=`, `dtype=` and `check=` as everywhere."""
    argument_checks.on_host(name, q)
    source = robot.function(name).source
    if is_lazy(q):
        if out is not None or check is not False:
            refuse_lazy(name, "out= and check= are of numbers", q)
        return in_blocks(name, getattr(robot, name), source.inputs, source.outputs, (q,), dtype)
    q = np.asarray(*argument_checks.plain(robot, name, source.inputs, (q,)))
    argument_checks.check_dtype(name, dtype)
    given = argument_checks.check_out(name, source.outputs, out, q.shape[:-1])
    if not flag("check", check):
        return _matrix(robot, name, q, given, dtype)
    check_states(robot, name, source.inputs, (q,))
    with np.errstate(all="ignore"):
        result = _matrix(robot, name, q, given, dtype)
    checked.after(robot, name, source, (q,), result)
    return result


def _matrix(robot: Any, name: str, q: np.ndarray, out: tuple, dtype: Any) -> Any:
    function = robot.function(CATALOGUE[name].columns)
    kind = np.dtype(dtype or (np.float32 if q.dtype == np.float32 else np.float64))
    _fits(robot, name, 4 * kind.itemsize * robot.nv**2 * (q.size // max(robot.nq, 1)))
    arrays = q[..., None, :], np.eye(robot.nv, dtype=kind)
    columns = function.run(arrays, (None,) * function.ufunc.nout, kind)
    if (
        not isinstance(columns, tuple) and columns.shape[-1] != columns.shape[-2]
    ):  # a momentum by joint rates
        return argument_checks.into(out[0], columns.swapaxes(-1, -2))
    if not isinstance(columns, tuple):  # M and its inverse are symmetric, to the last bit
        return argument_checks.into(out[0], (columns + columns.swapaxes(-1, -2)) / 2)
    return tuple(
        argument_checks.into(array, x.swapaxes(-1, -2))
        for array, x in zip(out, columns, strict=True)
    )


def written(robot: Any, function: Any) -> Any:
    """The code of a function for other people's programs: of a large robot's matrix, the loops of its operator."""
    if function.written_out:
        return function.source.code
    asked = function.source.asked
    one = robot.function(asked.columns).source.code
    return Columns(Program(asked.columns, function.inputs, function.outputs, ()), one)


def answers(robot: Any, function: Any, given: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """What it answers at one state."""
    if function.written_out:
        result = function.ufunc(*given)
        return result if isinstance(result, tuple) else (result,)
    operator = robot.function(function.source.asked.columns)
    named = dict(zip((arg.name for arg in function.inputs), given, strict=True))
    columns = operator.ufunc(*(named.get(arg.name, np.eye(arg.size)) for arg in operator.inputs))
    return tuple(x.T for x in (columns if isinstance(columns, tuple) else (columns,)))


def _fits(robot: Any, name: str, needed: int) -> None:
    """What will not fit is refused before it starts."""
    if needed > LARGE and needed > (free := free_memory()):
        cause = (
            f"{name} of {robot.name} takes {needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free"
        )
        raise StateError(
            cause,
            f"ask for products: robot.{CATALOGUE[name].columns}(q, x) takes as many numbers as x has",
        )
