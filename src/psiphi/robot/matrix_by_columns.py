"""Matrices of large robots, column by column: an O(N) operator applied to the identity.

Straight-line code for the whole matrix would be too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import DType, Out
from psiphi._util.errors import StateError
from psiphi._util.free_memory import free_memory
from psiphi._util.validate import flag, is_lazy
from psiphi.backends.c.c_columns import Columns
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.functions import argument_checks, result_checks
from psiphi.functions.arrays.dask_arrays import map_blocks, refuse_lazy
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.state_checks import check_states
from psiphi.robot.catalogue.catalogue import CATALOGUE

if TYPE_CHECKING:
    from psiphi.robot.quantity_methods import QuantityMethods

UNCHECKED_BYTES = 100_000_000  # smaller results are not compared with the free memory


def compute_matrix(
    robot: QuantityMethods, name: str, q: object, out: Out, dtype: DType, check: bool
) -> Any:
    """The matrix `name` of a large robot at q."""
    argument_checks.require_numpy(name, q)
    source = robot.unbound_function(name).source
    if is_lazy(q):
        if out is not None or check is not False:
            refuse_lazy(name, "out= and check= need NumPy arrays", q)
        return map_blocks(name, getattr(robot, name), source.inputs, source.outputs, (q,), dtype)
    array = np.asarray(*argument_checks.plain_arrays(robot, name, source.inputs, (q,)))
    argument_checks.check_dtype(name, dtype)
    results = argument_checks.check_out(name, source.outputs, out, array.shape[:-1])
    if not flag("check", check):
        return _matrix_from_columns(robot, name, array, results, dtype)
    check_states(robot, name, source.inputs, (array,))
    with np.errstate(all="ignore"):
        result = _matrix_from_columns(robot, name, array, results, dtype)
    result_checks.check_results(robot, name, source, (array,), result)
    return result


def _matrix_from_columns(
    robot: QuantityMethods, name: str, q: np.ndarray, out: tuple, dtype: DType
) -> Any:
    function = robot.unbound_function(CATALOGUE[name].columns)
    kind = np.dtype(dtype or (np.float32 if q.dtype == np.float32 else np.float64))
    _check_memory(robot, name, 4 * kind.itemsize * robot.nv**2 * (q.size // max(robot.nq, 1)))
    arrays = q[..., None, :], np.eye(robot.nv, dtype=kind)
    columns = function.run(arrays, (None,) * len(function.outputs), kind)
    if isinstance(columns, tuple):
        pairs = zip(out, columns, strict=True)
        return tuple(argument_checks.copy_into(array, x.swapaxes(-1, -2)) for array, x in pairs)
    transposed = columns.swapaxes(-1, -2)
    if columns.shape[-1] == columns.shape[-2]:  # M and its inverse: make them exactly symmetric
        return argument_checks.copy_into(out[0], (columns + transposed) / 2)
    return argument_checks.copy_into(out[0], transposed)  # a centroidal momentum matrix


def compiled_function(
    robot: QuantityMethods, function: DifferentiableFunction
) -> DifferentiableFunction:
    """The function whose code computes `function`: for a matrix of a large robot, its columns."""
    if function.written_out:
        return function
    return robot.unbound_function(function.source.request.columns)


def exported_code(robot: QuantityMethods, function: DifferentiableFunction) -> Any:
    """The code of a function for export; for a matrix of a large robot, loops over its columns."""
    if function.written_out:
        return function.source.code
    operator = compiled_function(robot, function)
    loops: Any = operator.source.code
    program = Program(operator.name, tuple(function.inputs), tuple(function.outputs), ())
    return Columns(program, loops)


def evaluate(
    robot: QuantityMethods, function: DifferentiableFunction, values: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """The results of `exported_code` at one state."""
    if function.written_out:
        result = function.run(values)
        return result if isinstance(result, tuple) else (result,)
    operator = compiled_function(robot, function)
    named = dict(zip((arg.name for arg in function.inputs), values, strict=True))
    columns = operator.run([named.get(arg.name, np.eye(arg.size)) for arg in operator.inputs])
    return tuple(x.T for x in (columns if isinstance(columns, tuple) else (columns,)))


def _check_memory(robot: QuantityMethods, name: str, needed: int) -> None:
    """Raise a StateError if this many bytes are not free."""
    if needed > UNCHECKED_BYTES and needed > (free := free_memory()):
        cause = (
            f"{name} of {robot.name} takes {needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free"
        )
        product = f"robot.{CATALOGUE[name].columns}(q, x)"
        raise StateError(cause, f"use products: {product} needs no more memory than x")
