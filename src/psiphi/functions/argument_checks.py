"""What the doors do with arguments that do not fit: say what came, what was expected, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NoReturn

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, is_foreign, is_lazy, on_card, one_of, owner, read
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.spaces import ANY
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays import dask_arrays
from psiphi.functions.arrays.array_dispatch import constant, enter, stacked
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import on_tape
from psiphi.model.state_checks import check_order

AXES = ("world", "frame")


# -- what is asked for --------------------------------------------------------------------------------------------------------


def names(model: Model, frames: Any) -> tuple[str, ...]:
    """The names of one frame or of several, all of this robot."""
    one = (
        isinstance(frames, str)
        or not isinstance(frames, Iterable)
        or getattr(frames, "shape", None) == ()
    )
    each: tuple[Any, ...] = (frames,) if one else tuple(frames)
    return tuple(model.frame(frame).name for frame in each)


def check_axes(axes: Any) -> None:
    """ "world" or "frame"."""
    one_of("axes", axes, AXES, "leave it out for world axes")


def expression(given: Any) -> Expression:
    """An expression of one robot that has a space of its own."""
    if not isinstance(given, Expression):
        raise StateError(
            f"pp.function got a {type(given).__name__}, expected an operator expression",
            "s = robot.operators",
        )
    if given.model is None:
        raise StateError(f"{given} belongs to no robot", "write it with s = robot.operators")
    if ANY in (given.rows, given.cols):
        raise StateError(f"{given} has no space of its own", "multiply it with an operator first")
    return given


# -- arguments ----------------------------------------------------------------------------------------------------------------


def plain(
    model: Model, name: str, inputs: Sequence[Argument], values: Iterable[Any]
) -> tuple[Any, ...]:
    """The arguments as plain arrays; arrays that bring a NumPy protocol of their own (dask, units) pass as they are."""
    values = tuple(values)
    on_host(name, *values)
    return tuple(
        value if _has_protocol(value) else _read(model, name, arg, value)
        for arg, value in zip(inputs, values, strict=True)
    )


def parameters(model: Model, name: str, given: Any) -> Any:
    """The free numbers of a call, or words where none came."""
    if given is None:
        n = model.freed.size if model.freed is not None else 0
        cause = f"{name}{': ' if name else ''}numbers of {model.name} are inputs, and no parameters came"
        remedy = f"give parameters=, {n} numbers in the last axis, or use light.at(parameters); light.parameters() are the robot's"
        raise StateError(cause, remedy)
    return given


def with_parameters(
    name: str, inputs: Sequence[Argument], values: Sequence[Any], given: Any
) -> tuple[Any, ...]:
    """The arguments in a row, the free numbers that came by name among them."""
    names = [arg.name for arg in inputs]
    if PARAMETERS not in names:
        remedy = 'leave them out, or free some: robot.free("mass")'
        raise StateError(f"{name}: parameters came, and no number is an input", remedy)
    if len(values) >= len(names):
        raise StateError(
            f"{name}: parameters came twice",
            f"give ({', '.join(names)}) in this order, or parameters= by name",
        )
    at = names.index(PARAMETERS)
    return (*values[:at], given, *values[at:])


def entered(function: Any, values: Sequence[Any], out: Any, dtype: Any, check: Any = False) -> Any:
    """A call whose arrays, or some of them, are of another library or on a graphics card."""
    check_dtype(function.name, dtype)
    if on_tape(*values):  # a user's law of control is traced
        cause = f"{function.name}: its robot has parameters of {next(owner(x) for x in values if is_foreign(x))}"
        raise StateError(
            cause, "a law of your own may ask a robot at numbers; psiphi's controllers ask any"
        )
    return enter(function, values, out, dtype, check)


def on_host(name: str, *values: Any) -> None:
    """Refuse arrays of a graphics card, and of other libraries, where a part of the work is NumPy's."""
    if any(map(on_card, values)):
        cause = (
            f"{name}: an argument is on a graphics card, and a part of this is computed on the host"
        )
        raise StateError(
            cause,
            "give arrays of the host: x.cpu() (torch), x.get() (CuPy), numpy.asarray(x) (JAX)",
        )
    if foreign := [owner(value) for value in values if is_foreign(value)]:
        cause = f"{name}: an argument is an array of {foreign[0]}, and a part of this is computed by NumPy"
        raise StateError(
            cause, "give NumPy arrays: x.detach().numpy() (torch), numpy.asarray(x) (JAX)"
        )


def _has_protocol(value: Any) -> bool:
    """Whether `value` speaks for itself in a gufunc. Tables (pandas, xarray) try to and do not know core axes: not they."""
    own = getattr(type(value), "__array_ufunc__", None)
    return (
        own is not None and own is not np.ndarray.__array_ufunc__ and not hasattr(value, "to_numpy")
    )


def _read(model: Model, name: str, arg: Argument, value: Any) -> np.ndarray:
    array, fault = read(value, arg.shape)
    if fault:
        raise StateError(f"{name}: {arg.name} {fault}", _remedy(model, arg, array))
    if arg.per_joint:
        check_order(model, f"{name}: {arg.name}", value, arg.per_joint)
    return array


def _remedy(model: Model, arg: Argument, array: np.ndarray) -> str:
    """How the argument should look; a mix-up of nq and nv and a batch that stands last are named."""
    if not arg.per_joint:
        return f"give {arg.name} {' x '.join(map(str, arg.shape))} real numbers in its last axes"
    length, other = ("nq", "nv") if arg.per_joint == "q" else ("nv", "nq")
    text = f"give {arg.name} robot.{length} = {arg.shape[0]} real numbers in its last axis"
    if array.ndim and array.shape[-1] == getattr(model, other) != arg.shape[0]:
        return f"{text} ({array.shape[-1]} is robot.{other}; robot.neutral() shows a q)"
    if array.ndim == 2 and array.shape[0] == arg.shape[0]:
        return f"{text}; batch axes come first, so try {arg.name}.T"
    return text


def check_upright(model: Model, name: str, q: Any) -> None:
    """Refuse one configuration with a quaternion of zeros, which has no direction; in a batch it is NaN, in its element."""
    if (
        model.quaternions
        and type(q) is np.ndarray
        and q.shape == (model.nq,)
        and q.dtype.kind in "fiub"
    ):
        model.upright(name, q)


def mapping(f_ext: Any) -> Mapping:
    """f_ext as given, when it is {frame name: wrench}."""
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
        return np.array([*f_ext.values()])  # of one state
    wrenches = {frame: _wrench(frame, wrench) for frame, wrench in f_ext.items()}
    batch_axes("f_ext", {repr(frame): tuple(w.shape[:-1]) for frame, w in wrenches.items()})
    if any(map(is_lazy, wrenches.values())):
        return dask_arrays.stacked(list(wrenches.values()))
    foreign = [w for w in wrenches.values() if is_foreign(w)]
    if foreign:  # numbers beside arrays of another library go there
        return stacked([w if is_foreign(w) else constant(foreign[0], w) for w in wrenches.values()])
    return np.stack(np.broadcast_arrays(*wrenches.values()), axis=-2)


def _wrench(frame: Any, given: Any) -> Any:
    """[moment; force] (..., 6) of one frame; what has fewer numbers would be spread over six beside others."""
    array, fault = (given, "") if is_foreign(given) or is_lazy(given) else read(given, (6,))
    if not fault and tuple(array.shape[-1:]) != (6,):
        fault = f"has shape {tuple(array.shape)}, expected (..., 6)"
    kind = str(array.dtype).removeprefix("torch.") if owner(array) else "float64"
    if not fault and kind not in ("float64", "float32"):
        fault = f"is of dtype {kind}, expected float64 or float32"
    if fault:
        raise StateError(
            f"f_ext[{frame!r}] {fault}", "give [moment; force], six numbers in the last axis"
        )
    return array


def fitting_out(
    model: Model, name: str, source: Any, values: Sequence[Any], out: Any
) -> tuple[Any, ...]:
    """`out` as a tuple that fits the results of this call."""
    arrays = [np.asarray(value) for value in plain(model, name, source.inputs, values)]
    shapes = {
        arg.name: a.shape[: a.ndim - len(arg.shape)]
        for arg, a in zip(source.inputs, arrays, strict=True)
    }
    return check_out(name, source.outputs, out, batch_axes(name, shapes))


# -- when NumPy refused -------------------------------------------------------------------------------------------------------


def retell(
    model: Model,
    name: str,
    source: Any,
    values: Sequence[Any],
    out: Any,
    dtype: Any,
    error: Exception,
) -> NoReturn:
    """Raise the StateError behind NumPy's complaint; what nobody here can explain, as it is."""
    try:
        fitting_out(model, name, source, values, None)
        check_dtype(name, dtype)
        fitting_out(model, name, source, values, out)
    except Error as words:
        raise words from error
    strangers = [type(value).__name__ for value in values if type(value) is not np.ndarray]
    if strangers and not isinstance(error, Error):
        raise StateError(
            f"{name}: {', '.join(strangers)}: {error}", "give plain NumPy arrays"
        ) from error
    raise error


def check_dtype(name: str, dtype: Any) -> None:
    """float64, float32, or none."""
    if dtype is None:
        return
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        kind = np.dtype(object)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise StateError(
            f"{name}: dtype is {shown(dtype)}, expected float64 or float32",
            "leave it out, or give one of these",
        )


def check_out(
    name: str, outputs: Collection[Argument], out: Any, batch: tuple[int, ...]
) -> tuple[Any, ...]:
    """The arrays to write to, one or None for each result; they may have more batch axes than the arguments (`batch`)."""
    given = out if isinstance(out, tuple) else (out,) + (None,) * (len(outputs) - 1)
    if len(given) != len(outputs) or (
        len(outputs) > 1 and out is not None and not isinstance(out, tuple)
    ):
        want = "an array" if len(outputs) == 1 else f"a tuple of {len(outputs)} arrays"
        came = f"a tuple of {len(out)}" if isinstance(out, tuple) else f"one {type(out).__name__}"
        raise StateError(f"{name}: out is {came}, expected {want}", f"give {want}, or leave it out")
    for arg, array in zip(outputs, given, strict=True):
        fault = "" if array is None else _out_fault(array, arg, batch)
        if fault:
            raise StateError(
                f"{name}: out {fault}", f"give np.empty({(*batch, *arg.shape)}), or leave it out"
            )
    if any(_overlap(a, b) for a, b in combinations(given, 2) if a is not None and b is not None):
        raise StateError(
            f"{name}: two arrays of out share memory",
            "give every result an array of its own, or leave it out",
        )
    return given


def are_plain_rooms(out: Any) -> bool:
    """Whether NumPy itself tells what does not fit about arrays to write to."""
    given = out if isinstance(out, tuple) else (out,)
    plain = all(type(array) is np.ndarray and array.dtype.kind == "f" for array in given)
    return plain and not any(np.may_share_memory(a, b) for a, b in combinations(given, 2))


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=10_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:  # strides of no matrix's columns, or of their like
        return False


def put(name: str, result: np.ndarray, out: Any) -> np.ndarray:
    """A result that is already there, in the array given for it."""
    (array,) = check_out(name, (Argument("a", result.shape[-1:]),), out, result.shape[:-1])
    return into(array, result)


def into(array: Any, result: np.ndarray) -> np.ndarray:
    """The result in an array that fits; itself, where there is none."""
    if array is None:
        return result
    np.copyto(array, result, casting="same_kind")
    return array


def _out_fault(array: Any, arg: Argument, batch: tuple[int, ...]) -> str:
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        return f"is {shown(array)}, expected a NumPy array"
    if not array.flags.writeable:
        return "is read-only"
    if array.dtype.kind not in "fc":  # NumPy would write numbers into text, and cut them short
        return f"is of dtype {array.dtype}, expected float64"
    lead = array.shape[: max(0, array.ndim - len(arg.shape))]
    try:
        fits = array.shape == lead + arg.shape and np.broadcast_shapes(lead, batch) == lead
    except ValueError:
        fits = False
    return "" if fits else f"has shape {array.shape}, expected {(*batch, *arg.shape)}"
