"""Checks of arguments: read them as arrays, or raise an error that says what came, what was
expected and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NoReturn, Protocol, TypeVar, cast

import numpy as np

from psiphi._util.array_types import DType, Out
from psiphi._util.errors import Error, StateError
from psiphi._util.text import shown
from psiphi._util.validate import (
    array_library,
    batch_axes,
    is_foreign,
    is_lazy,
    on_gpu,
    one_of,
    read_array,
    symbol_library,
)
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.spaces import ANY
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays import dask_arrays
from psiphi.functions.arrays.array_dispatch import convert_like, dispatch, stack_arrays
from psiphi.functions.arrays.function_registry import ArrayFunction
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import on_tape
from psiphi.model.state_checks import check_column_order

T = TypeVar("T")
AXES = ("world", "frame")


class HasArguments(Protocol):
    """The inputs and outputs of a function: `CompileJob`, `ExpressionFunction`."""

    @property
    def inputs(self) -> Sequence[Argument]: ...
    @property
    def outputs(self) -> Sequence[Argument]: ...


# -- frames, axes, expressions ---------------------------------------------------------------------


def frame_names(model: Model, frames: object) -> tuple[str, ...]:
    """The names of one or several frames of this robot; `frames` are names or `Frame`s."""
    one = (
        isinstance(frames, str)
        or not isinstance(frames, Iterable)
        or getattr(frames, "shape", None) == ()
    )
    each: tuple[Any, ...] = (frames,) if one else tuple(cast("Iterable[Any]", frames))
    return tuple(model.frame(frame).name for frame in each)


def check_axes(axes: object) -> None:
    """Check that axes are "world" or "frame"."""
    one_of("axes", axes, AXES, "leave it out for world axes")


def check_expression(value: object) -> Expression:
    """`value`, checked to be an expression of one robot with known spaces."""
    if not isinstance(value, Expression):
        raise StateError(
            f"pp.function got a {type(value).__name__}, expected an operator expression",
            "s = robot.operators",
        )
    if value.model is None:
        raise StateError(f"{value} belongs to no robot", "write it with s = robot.operators")
    if ANY in (value.rows, value.cols):
        raise StateError(f"the space of {value} is not known", "multiply it by an operator first")
    return value


# -- arguments -------------------------------------------------------------------------------------


def plain_arrays(
    model: Model, name: str, inputs: Sequence[Argument], values: Iterable[object]
) -> tuple[Any, ...]:
    """The arguments as plain arrays. Arrays with their own `__array_ufunc__` (Dask, units) are
    returned unchanged."""
    values = tuple(values)
    require_numpy(name, *values)
    return tuple(
        value if _has_ufunc_protocol(value) else _read_argument(model, name, arg, value)
        for arg, value in zip(inputs, values, strict=True)
    )


def require_parameters(model: Model, name: str, parameters: T | None) -> T:
    """`parameters`, checked not to be None; the model has free parameters."""
    if parameters is None:
        n = model.freed.size if model.freed is not None else 0
        raise StateError(
            f"{name}{': ' if name else ''}{model.name} has free parameters, and parameters= is "
            "missing",
            f"pass parameters=, {n} numbers in the last axis (robot.parameters() are the current "
            "ones), or bind them: robot.at(parameters)",
        )
    return parameters


def insert_parameters(
    name: str, inputs: Sequence[Argument], values: Sequence[Any], parameters: object
) -> tuple[Any, ...]:
    """The arguments in order, with `parameters`, which were passed by name."""
    names = [arg.name for arg in inputs]
    if PARAMETERS not in names:
        raise StateError(
            f"{name}: parameters= is passed, but the robot has no free parameters",
            'leave it out, or free some: robot.free("mass")',
        )
    if len(values) >= len(names):
        raise StateError(
            f"{name}: parameters are passed twice",
            f"pass ({', '.join(names)}) in this order, or parameters= by name",
        )
    place = names.index(PARAMETERS)
    return (*values[:place], parameters, *values[place:])


def call_foreign(
    function: ArrayFunction,
    values: Sequence[Any],
    out: Out,
    dtype: DType,
    check: object = False,
) -> Any:
    """Call a function with arrays of another library, or on the GPU, among its arguments."""
    check_dtype(function.name, dtype)
    if on_tape(*values):  # the call is in a control law that is being traced
        library = next(array_library(x) for x in values if is_foreign(x))
        raise StateError(
            f"{function.name}: its robot has parameters of {library}, and a control law is being "
            "traced",
            "use a robot with NumPy parameters in your own law; psiphi's controllers accept any",
        )
    return dispatch(function, values, out, dtype, check)


def require_numpy(name: str, *values: object) -> None:
    """Refuse arrays of other libraries and on the GPU, where a part of the work needs NumPy."""
    if any(map(on_gpu, values)):
        raise StateError(
            f"{name}: an argument is on the GPU, and a part of this is computed on the CPU",
            "give arrays on the CPU: x.cpu() (torch), x.get() (CuPy), numpy.asarray(x) (JAX)",
        )
    if foreign := [array_library(value) for value in values if is_foreign(value)]:
        raise StateError(
            f"{name}: an argument is an array of {foreign[0]}, and a part of this is computed by "
            "NumPy",
            "give NumPy arrays: x.detach().numpy() (torch), numpy.asarray(x) (JAX)",
        )


def _has_ufunc_protocol(value: object) -> bool:
    """Whether `value` handles gufuncs itself. Tables (pandas, xarray) define the protocol, but do
    not support core axes."""
    protocol = getattr(type(value), "__array_ufunc__", None)
    return (
        protocol is not None
        and protocol is not np.ndarray.__array_ufunc__
        and not hasattr(value, "to_numpy")
        and not symbol_library(value)
    )


def _read_argument(model: Model, name: str, arg: Argument, value: object) -> np.ndarray:
    array, fault = read_array(value, arg.shape)
    if fault:
        raise StateError(f"{name}: {arg.name} {fault}", _shape_remedy(model, arg, array))
    if arg.per_joint:
        check_column_order(model, f"{name}: {arg.name}", value, arg.per_joint)
    return array


def _shape_remedy(model: Model, arg: Argument, array: np.ndarray) -> str:
    """What to give for the argument; mentions nq given for nv, or batch axes that come last."""
    if not arg.per_joint:
        return f"give {arg.name} {' x '.join(map(str, arg.shape))} real numbers in its last axes"
    length, other = ("nq", "nv") if arg.per_joint == "q" else ("nv", "nq")
    text = f"give {arg.name} robot.{length} = {arg.shape[0]} real numbers in its last axis"
    if array.ndim and array.shape[-1] == getattr(model, other) != arg.shape[0]:
        return f"{text} ({array.shape[-1]} is robot.{other}; robot.neutral() shows a q)"
    if array.ndim == 2 and array.shape[0] == arg.shape[0]:
        return f"{text}; batch axes come first, so try {arg.name}.T"
    return text


def check_single_configuration(model: Model, name: str, q: object) -> None:
    """Raise if a single configuration q has a zero quaternion.

    In a batch, that element becomes NaN. Arrays of other libraries are not read.
    """
    if (
        model.quaternions
        and type(q) is np.ndarray
        and q.shape == (model.nq,)
        and q.dtype.kind in "fiub"
    ):
        model.check_nonzero_quaternions(name, q)


def check_wrench_mapping(f_ext: object) -> Mapping:
    """`f_ext`, checked to be {frame name: wrench}."""
    if isinstance(f_ext, Mapping):
        return f_ext
    raise StateError(
        f"f_ext is {shown(f_ext)}, expected {{frame name: wrench (..., 6)}}", "give a dict"
    )


def stack_wrenches(f_ext: Mapping) -> Any:
    """(..., frames, 6) from {frame: (..., 6)}."""
    if f_ext and all(
        type(w) is np.ndarray and w.shape == (6,) and w.dtype.char in "df" for w in f_ext.values()
    ):
        return np.array([*f_ext.values()])  # one state
    wrenches = {frame: _read_wrench(frame, wrench) for frame, wrench in f_ext.items()}
    batch_axes("f_ext", {repr(frame): tuple(w.shape[:-1]) for frame, w in wrenches.items()})
    if any(map(is_lazy, wrenches.values())):
        return dask_arrays.stack_lazy(list(wrenches.values()))
    foreign = [w for w in wrenches.values() if is_foreign(w)]
    if foreign:  # NumPy arrays are converted to that library
        return stack_arrays(
            [w if is_foreign(w) else convert_like(foreign[0], w) for w in wrenches.values()]
        )
    return np.stack(np.broadcast_arrays(*wrenches.values()), axis=-2)


def _read_wrench(frame: object, value: object) -> Any:
    """The wrench [moment; force] (..., 6) on one frame."""
    array: Any = value
    fault = ""
    if not is_foreign(value) and not is_lazy(value):
        array, fault = read_array(value, (6,))
    if not fault and tuple(array.shape[-1:]) != (6,):  # fewer numbers would broadcast
        fault = f"has shape {tuple(array.shape)}, expected (..., 6)"
    kind = str(array.dtype).removeprefix("torch.") if array_library(array) else "float64"
    if not fault and kind not in ("float64", "float32"):
        fault = f"is of dtype {kind}, expected float64 or float32"
    if fault:
        raise StateError(
            f"f_ext[{frame!r}] {fault}", "give [moment; force], six numbers in the last axis"
        )
    return array


def matching_out(
    model: Model, name: str, source: HasArguments, values: Sequence[Any], out: Out
) -> tuple[Any, ...]:
    """`out` as a tuple of arrays, or None, that fit the results of this call."""
    arrays = [np.asarray(value) for value in plain_arrays(model, name, source.inputs, values)]
    shapes = {
        arg.name: a.shape[: a.ndim - len(arg.shape)]
        for arg, a in zip(source.inputs, arrays, strict=True)
    }
    return check_out(name, source.outputs, out, batch_axes(name, shapes))


# -- errors of NumPy, and arrays for results -------------------------------------------------------


def raise_state_error(
    model: Model,
    name: str,
    source: HasArguments,
    values: Sequence[Any],
    out: Out,
    dtype: DType,
    error: Exception,
) -> NoReturn:
    """Raise a StateError that explains an error of NumPy; if there is no explanation, the error."""
    try:
        matching_out(model, name, source, values, None)
        check_dtype(name, dtype)
        matching_out(model, name, source, values, out)
    except Error as explanation:
        raise explanation from error
    others = [type(value).__name__ for value in values if type(value) is not np.ndarray]
    if others and not isinstance(error, Error):
        raise StateError(
            f"{name}: {', '.join(others)}: {error}", "give plain NumPy arrays"
        ) from error
    raise error


def check_dtype(name: str, dtype: object) -> None:
    """Check that the dtype is float64, float32 or None."""
    if dtype is None:
        return
    try:
        kind = np.dtype(cast("Any", dtype))
    except (TypeError, ValueError):
        kind = np.dtype(object)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise StateError(
            f"{name}: dtype is {shown(dtype)}, expected float64 or float32",
            "leave it out, or give one of these",
        )


def check_out(
    name: str, outputs: Collection[Argument], out: Out, batch: tuple[int, ...]
) -> tuple[Any, ...]:
    """`out` as a tuple with one array or None per result. The arrays may have more batch axes than
    the arguments, whose batch axes are `batch`."""
    arrays = out if isinstance(out, tuple) else (out,) + (None,) * (len(outputs) - 1)
    if len(arrays) != len(outputs) or (
        len(outputs) > 1 and out is not None and not isinstance(out, tuple)
    ):
        expected = "an array" if len(outputs) == 1 else f"a tuple of {len(outputs)} arrays"
        came = f"a tuple of {len(out)}" if isinstance(out, tuple) else f"one {type(out).__name__}"
        raise StateError(
            f"{name}: out is {came}, expected {expected}", f"give {expected}, or leave it out"
        )
    for arg, array in zip(outputs, arrays, strict=True):
        fault = "" if array is None else _out_fault(array, arg, batch)
        if fault:
            raise StateError(
                f"{name}: out {fault}", f"give np.empty({(*batch, *arg.shape)}), or leave it out"
            )
    targets = [array for array in arrays if isinstance(array, np.ndarray)]
    if any(_overlap(a, b) for a, b in combinations(targets, 2)):
        raise StateError(
            f"{name}: two arrays of out share memory",
            "give each result its own array, or leave it out",
        )
    return arrays


def are_plain_outputs(out: Out) -> bool:
    """Whether `out` can be passed on without a check, since NumPy finds all of its faults."""
    arrays: tuple[Any, ...] = out if isinstance(out, tuple) else (out,)
    plain = all(type(array) is np.ndarray and array.dtype.kind == "f" for array in arrays)
    return plain and not any(np.may_share_memory(a, b) for a, b in combinations(arrays, 2))


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:  # unusual strides
        return False


def store_result(name: str, result: np.ndarray, out: Out) -> np.ndarray:
    """Copy a result that is already computed into `out`, and return the array."""
    (array,) = check_out(name, (Argument("a", result.shape[-1:]),), out, result.shape[:-1])
    return copy_into(array, result)


def copy_into(array: np.ndarray | None, result: np.ndarray) -> np.ndarray:
    """`array`, with the result copied into it; the result itself if `array` is None."""
    if array is None:
        return result
    np.copyto(array, result, casting="same_kind")
    return array


def _out_fault(array: object, arg: Argument, batch: tuple[int, ...]) -> str:
    """Why a result cannot be stored in the array, or ""."""
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        return f"is {shown(array)}, expected a NumPy array"
    if not array.flags.writeable:
        return "is read-only"
    if array.dtype.kind not in "fc":  # NumPy would convert numbers to truncated text
        return f"is of dtype {array.dtype}, expected float64"
    lead = array.shape[: max(0, array.ndim - len(arg.shape))]
    try:
        fits = array.shape == lead + arg.shape and np.broadcast_shapes(lead, batch) == lead
    except ValueError:
        fits = False
    return "" if fits else f"has shape {array.shape}, expected {(*batch, *arg.shape)}"
