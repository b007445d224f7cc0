"""What a call may be given: anything that reads as an array of real numbers; everything else is told what it is."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import nearest, shown

R = TypeVar("R")
EMPTY = np.empty(0)
SLOPE_LOST = "is a tensor that requires grad, or is of forward mode, and torch would lose that here: detach it"
DEEPEST = 8  # lists in lists that are looked through
CARDS = (2, 13)  # kDLCUDA, kDLCUDAManaged
SEEDS = (
    int,
    np.integer,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.SeedSequence,
    type(None),
)


def owner(value: Any) -> str:
    """The library with derivatives of its own that an array (or a tracer) belongs to: "torch", "jax", or none."""
    if type(value) is not np.ndarray:
        for library, kind in (("torch", "Tensor"), ("jax", "Array")):
            module = sys.modules.get(library)
            if module is not None and isinstance(value, getattr(module, kind, ())):
                return library
    return ""


def is_foreign(value: Any) -> bool:
    """Whether an array takes a way of its own (`functions/arrays/array_dispatch.py`): it is of torch or JAX, or on a graphics card."""
    return type(value) is not np.ndarray and (owner(value) != "" or on_card(value))


def is_lazy(value: Any) -> bool:
    """Whether it is an array of Dask's."""
    module = None if type(value) is np.ndarray else sys.modules.get("dask.array")
    return module is not None and isinstance(value, module.Array)


def on_card(value: Any) -> bool:
    """Whether the numbers are in the memory of a graphics card (CuPy, torch, JAX): by DLPack's own word."""
    if owner(value) == "torch":
        return value.is_cuda
    ask = None if type(value) is np.ndarray else getattr(type(value), "__dlpack_device__", None)
    if ask is None:
        return False
    try:
        return ask(value)[0] in CARDS
    except (
        Exception
    ):  # a tracer, an array in pieces on several cards: whatever reads it finds the words
        return False


def wants_slope(value: Any) -> bool:
    """Whether a tensor of torch wants a gradient, or carries a change along for forward mode."""
    if owner(value) != "torch":
        return False
    forward = sys.modules["torch"].autograd.forward_ad
    return value.requires_grad or (
        forward._current_level >= 0 and forward.unpack_dual(value).tangent is not None
    )


def read(value: Any, shape: tuple[int, ...] | None) -> tuple[np.ndarray, str]:
    """`value` as a plain array (..., *shape) of real numbers, and what is wrong with it ('' when nothing is).

    Lists, numbers, tables (pandas, xarray) and anything with `__array__` are read; masked arrays when nothing is masked.

    >>> read([1, 2, 3], (3,))
    (array([1, 2, 3]), '')
    >>> read([1, None], (2,))[1]
    'holds None, expected real numbers'
    """
    if (
        type(value) is np.ndarray
        and value.dtype.char in "df"
        and (not shape or value.shape[-len(shape) :] == shape)
    ):
        return value, ""
    if on_card(value):
        return EMPTY, "is on a graphics card, and this is computed on the host"
    if wants_slope(value):
        return EMPTY, SLOPE_LOST
    try:
        array = np.asarray(value)
    except Exception as error:  # an object's own __array__ may raise anything
        ragged = isinstance(value, list | tuple) and "inhomogeneous" in str(error)
        return (
            EMPTY,
            "is ragged: its rows have different lengths"
            if ragged
            else f"cannot be read as an array ({error})",
        )
    fault = _not_real(value, array) or _masked(value) or (SLOPE_LOST if holds_slope(value) else "")
    if not fault and shape is not None and array.shape[max(0, array.ndim - len(shape)) :] != shape:
        came = (
            f"has shape {array.shape}, expected"
            if array.ndim
            else f"is the number {shown(value)}, expected shape"
        )
        fault = f"{came} ({', '.join(['...', *map(str, shape)])})"
    return array, fault


def real(name: str, value: Any, shape: tuple[int, ...], remedy: str) -> np.ndarray:
    """`value` as float64 (..., *shape), or a StateError."""
    array, fault = read(value, shape)
    if fault:
        raise StateError(f"{name} {fault}", remedy)
    return array.astype(float, copy=False)


def finite(
    name: str, value: Any, shape: tuple[int, ...], remedy: str, most: float = np.finfo(float).max
) -> np.ndarray:
    """`value` as finite float64 (..., *shape), of a size up to `most`, or a StateError."""
    array = real(name, value, shape, remedy)
    if not (np.abs(array) <= most).all():
        beyond = f", or beyond {most:g}" if most < np.finfo(float).max else ""
        raise StateError(
            f"{name} holds numbers that are not finite{beyond}", "look at where they came from"
        )
    return array


def as_many(name: str, values: Sequence[Any], expected: Iterable[str]) -> None:
    """As many arguments as there are names, or a StateError that says these."""
    if len(values) != len(names := list(expected)):
        cause = f"{name}: {len(values)} arguments came, expected ({', '.join(names)})"
        raise StateError(cause, "give them in this order")


def check_robot(name: str, value: Any, kind: type[R]) -> R:
    """A robot of some `kind` for the function `name`, or a StateError."""
    if not isinstance(value, kind):
        raise StateError(
            f"{name} of {shown(value)}, expected a robot",
            "pp.load, pp.from_dh and pp.Builder make one",
        )
    return value


def batch_axes(
    name: str, shapes: Mapping[str, tuple[int, ...]], kind: type[Error] = StateError
) -> tuple[int, ...]:
    """The batch axes of several arguments together, or an error that shows them; those alike are shown once."""
    different = set(shapes.values())
    if len(different) == 1:
        return different.pop()
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        each = ", ".join(
            f"{x} {shape}"
            for x, shape in {shape: (x, shape) for x, shape in shapes.items()}.values()
        )
        cause = f"{name}{': ' if name else ''}the batch axes do not fit together: {each}"
        raise kind(cause, "make them equal, 1, or absent") from None


def check_array(name: str, arg: Any, shape: Sequence[Any], kind: str) -> None:
    """The shape and the type of an array that is not NumPy's, for an argument (`sweeps.program`); or an error that names it."""
    if kind not in ("float64", "float32"):
        raise StateError(
            f"{name}: {arg.name} is of dtype {kind}, expected float64 or float32", "convert it"
        )
    if len(shape) < len(arg.shape) or tuple(shape[len(shape) - len(arg.shape) :]) != arg.shape:
        wanted = ", ".join(["...", *map(str, arg.shape)])
        raise StateError(
            f"{name}: {arg.name} has shape {tuple(shape)}, expected ({wanted})",
            "batch axes come first",
        )


def one_or_each(
    name: str,
    given: Any,
    count: int,
    ends: tuple[float, float],
    expected: str,
    remedy: str,
    kind: type[Error] = StateError,
) -> np.ndarray:
    """One number between two, these among them, or `count` of such, as a row (count,) of one's own; True is none."""
    row = real(name, given, (), remedy)
    if (
        isinstance(given, bool | np.bool_)
        or row.shape not in ((), (count,))
        or not ((row >= ends[0]) & (row <= ends[1])).all()
    ):
        raise kind(f"{name} is {shown(given)}, expected {expected}", remedy)
    return np.broadcast_to(row, (count,)).copy()


def coefficients(name: str, given: Any, nv: int, most: float = np.finfo(float).max) -> np.ndarray:
    """One number of at least 0, or nv of them, as a row (nv,)."""
    expected = f"one or nv = {nv} numbers of at least 0"
    return one_or_each(name, given, nv, (0.0, most), expected, "give a number or an array")


def whole(name: str, value: Any) -> int:
    """A whole number of at least 0, or a StateError."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0 or isinstance(value, bool | np.bool_):
        raise StateError(
            f"{name} is {shown(value)}, expected a whole number of at least 0", "give 0, 1, 2, ..."
        )
    return number


def positive(name: str, value: Any, remedy: str, most: float = 1.7e308) -> float:
    """A number above zero, finite unless `most` says otherwise, or a StateError."""
    array = real(name, value, (), remedy)
    if array.ndim or isinstance(value, bool | np.bool_) or not 0.0 < float(array) <= most:
        raise StateError(f"{name} is {shown(value)}, expected a positive number", remedy)
    return float(array)


def not_negative(name: str, value: Any, remedy: str = "give a number") -> float:
    """One finite number of at least 0, or a StateError."""
    number = real(name, value, (), remedy)
    if number.ndim or isinstance(value, bool | np.bool_) or not 0.0 <= number < np.inf:
        raise StateError(
            f"{name} is {shown(value)}, expected one finite number of at least 0", remedy
        )
    return float(number)


def is_several(value: Any) -> bool:
    """Whether it is a list of things: text is one thing, and so is an array without axes."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes)
        and getattr(value, "shape", None) != ()
    )


def several(name: str, value: Any, remedy: str = "") -> list:
    """A list of things, or a StateError."""
    if not is_several(value):
        raise StateError(
            f"{name} is {shown(value)}, expected a list", remedy or f"give {name}=[...]"
        )
    return list(value)


def names(what: str, value: Any, of: str = "names", remedy: str = "") -> list[str]:
    """One name, or several, or a StateError."""
    remedy = remedy or f'give {what}="name", or a list of names'
    each = [value] if isinstance(value, str) else several(what, value, remedy)
    for name in each:
        if not isinstance(name, str):
            raise StateError(f"{what} holds {shown(name)}, expected {of}", remedy)
    return each


def generator(rng: Any) -> np.random.Generator:
    """A Generator, from a seed or as it is; NumPy reads other things as seeds, and crashes on some."""
    if (
        not isinstance(rng, SEEDS)
        or isinstance(rng, bool)
        or (isinstance(rng, int | np.integer) and rng < 0)
    ):
        raise StateError(
            f"rng is {shown(rng)}, expected a seed or a Generator", "give a whole number"
        )
    return np.random.default_rng(rng)


def one_of(
    name: str,
    value: Any,
    known: Iterable[str],
    remedy: str = "",
    kind: Callable[..., Error] = StateError,
) -> str:
    """One of some words, or an error that lists them; without a remedy it says which is nearest."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise kind(
            f"{name} is {shown(value)}, expected one of {', '.join(words)}",
            remedy or nearest(value, words),
        )
    return value


def flag(name: str, value: Any, remedy: str = "give one of the two") -> bool:
    """True or False: words like "no" would count as True."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise StateError(f"{name} is {shown(value)}, expected True or False", remedy)
    return bool(value)


def path(name: str, value: Any, expected: str, remedy: str, kind: type[Error] = StateError) -> str:
    """The text of a path, or an error."""
    if not isinstance(value, str | os.PathLike):
        raise kind(f"{name} is {shown(value)}, expected {expected}", remedy)
    return os.fsdecode(value)


def _not_real(value: Any, array: np.ndarray) -> str:
    kind, dtype = array.dtype.kind, array.dtype
    if kind in "iub" or (kind == "f" and dtype.itemsize <= 8):
        return ""
    if array.ndim == 0 and not isinstance(value, np.ndarray):
        return f"is {shown(value)}, expected real numbers"
    for element in array.flat if kind in "OUS" else ():
        if not isinstance(element, int | float):
            return f"holds {shown(element)}, expected real numbers"
    return f"is of dtype {shown(str(dtype))[1:-1]}, expected float64 or float32"


def holds_slope(value: Any, deep: int = DEEPEST) -> bool:
    """Whether a tensor in a list, or in lists in it, wants a slope; a list may hold itself, so that some depth is the end."""
    if not deep or not isinstance(value, list | tuple) or "torch" not in sys.modules:
        return False
    return any(
        holds_slope(x, deep - 1) or wants_slope(x) for x in value if type(x) not in (float, int)
    )


def _masked(value: Any) -> str:
    if not isinstance(value, np.ma.MaskedArray) or not np.ma.is_masked(value):
        return ""
    place = [int(i) for i in np.argwhere(np.ma.getmaskarray(value))[0]]
    return f"is masked at {place}, expected numbers everywhere"


def frozen(values, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A read-only float64 copy of `values`."""
    array = np.array(values, dtype=float)
    if shape is not None:
        array = array.reshape(shape)
    array.flags.writeable = False
    return array


def beneath(system: Any) -> Any:
    """The robot of a closed system, or of another that says which is its own; a robot is its own."""
    return getattr(system, "robot", system)
