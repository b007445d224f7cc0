"""Checks of arguments: arrays of real numbers, numbers, names, flags and paths.

Each function returns the checked value or raises an error that says what was passed.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util.errors import Error, StateError
from psiphi._util.text import nearest, shown

R = TypeVar("R")
EMPTY = np.empty(0)
GRADIENT_LOST = (
    "is a tensor that requires grad, or is of forward mode, and torch would lose that here: "
    "detach it"
)
MAX_DEPTH = 8  # nesting of lists that `contains_grad` searches
GPU_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged of DLPack
MAX_FLOAT = float(np.finfo(float).max)
SEEDS = (
    int,
    np.integer,
    np.random.Generator,
    np.random.BitGenerator,
    np.random.SeedSequence,
    type(None),
)


class ArgumentSpec(Protocol):
    """An argument of a compiled function: its name and its core shape."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def array_library(value: object) -> str:
    """ "torch" or "jax" for an array (or tracer) of these libraries, else ""."""
    if type(value) is not np.ndarray:
        for library, kind in (("torch", "Tensor"), ("jax", "Array")):
            module = sys.modules.get(library)
            if module is not None and isinstance(value, getattr(module, kind, ())):
                return library
    return ""


def is_foreign(value: object) -> bool:
    """Whether an array is of torch or JAX, or on the GPU (see `functions/arrays/`)."""
    return type(value) is not np.ndarray and (array_library(value) != "" or on_gpu(value))


SYMBOLS = {  # {module of a type: what its values are, and the method that takes them}
    "casadi": ("a CasADi expression", "robot.to_casadi(name)"),
    "sympy": ("a SymPy expression", "robot.symbolic(name)"),
}


def symbol_library(value: object) -> str:
    """The key of SYMBOLS for an expression of a computer algebra system, else ""."""
    module = type(value).__module__.partition(".")[0]
    return module if module in SYMBOLS else ""


def _symbol_fault(verb: str, value: object) -> str:
    what, method = SYMBOLS[symbol_library(value)]
    return f"{verb} {what}, expected real numbers ({method} is the function of such expressions)"


def is_lazy(value: object) -> bool:
    """Whether the value is a Dask array."""
    module = None if type(value) is np.ndarray else sys.modules.get("dask.array")
    return module is not None and isinstance(value, module.Array)


def on_gpu(value: Any) -> bool:
    """Whether an array (CuPy, torch, JAX) is in the memory of a GPU, according to DLPack."""
    if array_library(value) == "torch":
        return value.is_cuda
    query = None if type(value) is np.ndarray else getattr(type(value), "__dlpack_device__", None)
    if query is None:
        return False
    try:
        return query(value)[0] in GPU_DEVICES
    except Exception:  # tracers and sharded arrays; the code that reads them raises the error
        return False


def requires_grad(value: Any) -> bool:
    """Whether a torch tensor requires a gradient or carries a forward-mode tangent."""
    if array_library(value) != "torch":
        return False
    forward = sys.modules["torch"].autograd.forward_ad
    return value.requires_grad or (
        forward._current_level >= 0 and forward.unpack_dual(value).tangent is not None
    )


def contains_grad(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether nested lists contain a tensor that requires a gradient, down to `depth` levels."""
    if not depth or not isinstance(value, list | tuple) or "torch" not in sys.modules:
        return False
    return any(
        contains_grad(x, depth - 1) or requires_grad(x)
        for x in value
        if type(x) not in (float, int)
    )


def read_array(value: object, shape: tuple[int, ...] | None) -> tuple[np.ndarray, str]:
    """`value` as a plain array (..., *shape) of real numbers, and what is wrong with it, or "".

    Reads numbers, lists, tables (pandas, xarray) and anything with `__array__`; a masked array only
    if no element is masked.

    >>> read_array([1, 2, 3], (3,))
    (array([1, 2, 3]), '')
    >>> read_array([1, None], (2,))[1]
    'holds None, expected real numbers'
    """
    if (
        type(value) is np.ndarray
        and value.dtype.char in "df"
        and (not shape or value.shape[-len(shape) :] == shape)
    ):
        return value, ""
    if symbol_library(value) and not hasattr(value, "full"):
        return EMPTY, _symbol_fault("is", value)
    if on_gpu(value):
        return EMPTY, "is on the GPU, but this function runs on the CPU"
    if requires_grad(value):
        return EMPTY, GRADIENT_LOST
    try:
        array = np.asarray(value)
    except Exception as error:  # an object's own __array__ may raise anything
        if isinstance(value, list | tuple) and "inhomogeneous" in str(error):
            return EMPTY, "is ragged: its rows have different lengths"
        return EMPTY, f"cannot be read as an array ({error})"
    fault = _not_real(value, array) or _masked(value)
    fault = fault or (GRADIENT_LOST if contains_grad(value) else "")
    if not fault and shape is not None and array.shape[max(0, array.ndim - len(shape)) :] != shape:
        actual = f"has shape {array.shape}, expected"
        if not array.ndim:
            actual = f"is the number {shown(value)}, expected shape"
        fault = f"{actual} ({', '.join(['...', *map(str, shape)])})"
    return array, fault


def real_array(name: str, value: object, shape: tuple[int, ...], remedy: str) -> np.ndarray:
    """`value` as float64 (..., *shape)."""
    array, fault = read_array(value, shape)
    if fault:
        raise StateError(f"{name} {fault}", remedy)
    return array.astype(float, copy=False)


def finite_array(
    name: str, value: object, shape: tuple[int, ...], remedy: str, most: float = MAX_FLOAT
) -> np.ndarray:
    """`value` as float64 (..., *shape) with |x| <= most, which excludes NaN and infinity."""
    array = real_array(name, value, shape, remedy)
    if not (np.abs(array) <= most).all():
        beyond = f", or beyond {most:g}" if most < MAX_FLOAT else ""
        raise StateError(
            f"{name} holds numbers that are not finite{beyond}", "check where they come from"
        )
    return array


def check_count(name: str, values: Sequence[object], expected: Iterable[str]) -> None:
    """Check that there is one argument for each of the expected names."""
    if len(values) != len(names := list(expected)):
        cause = f"{name}: got {len(values)} arguments, expected ({', '.join(names)})"
        raise StateError(cause, "give them in this order")


def check_robot(name: str, value: object, kind: type[R]) -> R:
    """`value`, checked to be of class `kind`; `name` is the function that is called."""
    if not isinstance(value, kind):
        raise StateError(
            f"{name} of {shown(value)}, expected a robot",
            "pp.load, pp.from_dh and pp.Builder make one",
        )
    return value


def batch_axes(
    name: str, shapes: Mapping[str, tuple[int, ...]], kind: type[Error] = StateError
) -> tuple[int, ...]:
    """The batch axes of several arguments, broadcast; an error names one argument of each shape."""
    different = set(shapes.values())
    if len(different) == 1:
        return different.pop()
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        examples = {shape: x for x, shape in shapes.items()}
        each = ", ".join(f"{x} {shape}" for shape, x in examples.items())
        cause = f"{name}{': ' if name else ''}the batch axes do not fit together: {each}"
        raise kind(cause, "make them equal, 1, or absent") from None


def check_array(name: str, arg: ArgumentSpec, shape: Sequence[object], dtype: str) -> None:
    """Check the shape and dtype of another library's array that is passed for `arg`."""
    if dtype not in ("float64", "float32"):
        raise StateError(
            f"{name}: {arg.name} is of dtype {dtype}, expected float64 or float32", "convert it"
        )
    if len(shape) < len(arg.shape) or tuple(shape[len(shape) - len(arg.shape) :]) != arg.shape:
        expected = ", ".join(["...", *map(str, arg.shape)])
        raise StateError(
            f"{name}: {arg.name} has shape {tuple(shape)}, expected ({expected})",
            "batch axes come first",
        )


def broadcast_row(
    name: str,
    value: object,
    count: int,
    bounds: tuple[float, float],
    expected: str,
    remedy: str,
    kind: type[Error] = StateError,
) -> np.ndarray:
    """One number or `count` numbers within closed bounds, as a new array (count,). Not a bool."""
    row = real_array(name, value, (), remedy)
    if (
        isinstance(value, bool | np.bool_)
        or row.shape not in ((), (count,))
        or not ((row >= bounds[0]) & (row <= bounds[1])).all()
    ):
        raise kind(f"{name} is {shown(value)}, expected {expected}", remedy)
    return np.broadcast_to(row, (count,)).copy()


def coefficients(name: str, value: object, nv: int, most: float = MAX_FLOAT) -> np.ndarray:
    """One number of at least 0, or nv of them, as a new array (nv,)."""
    expected = f"one or nv = {nv} numbers of at least 0"
    return broadcast_row(name, value, nv, (0.0, most), expected, "give a number or an array")


def whole_number(name: str, value: Any) -> int:
    """An integer of at least 0."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0 or isinstance(value, bool | np.bool_):
        raise StateError(
            f"{name} is {shown(value)}, expected a whole number of at least 0", "give 0, 1, 2, ..."
        )
    return number


def positive_count(name: str, value: object, most: int, remedy: str = "") -> int:
    """An integer from 1 to `most`."""
    number = whole_number(name, value)
    if not 1 <= number <= most:
        raise StateError(
            f"{name} is {shown(number)}, expected 1 to {most}", remedy or "give 1, 2, ..."
        )
    return number


def batch_place(where: Sequence[object], batch: tuple[int, ...]) -> tuple[int, ...]:
    """The place of one element of a batch, from one index for each of its axes.

    >>> batch_place((-1, 0), (3, 2))
    (2, 0)
    """
    try:
        if any(isinstance(i, bool | np.bool_) for i in where):
            raise TypeError
        indices = [operator.index(i) for i in where]  # type: ignore[arg-type]
        return tuple(range(n)[i] for i, n in zip(indices, batch, strict=True))
    except (TypeError, ValueError, IndexError):
        raise StateError(
            f"element {shown(where)} of a batch of shape {batch}",
            "give one index per batch axis, within the batch",
        ) from None


def positive_number(name: str, value: object, remedy: str, most: float = 1.7e308) -> float:
    """A number above zero and at most `most`: finite by default."""
    array = real_array(name, value, (), remedy)
    if array.ndim or isinstance(value, bool | np.bool_) or not 0.0 < float(array) <= most:
        raise StateError(f"{name} is {shown(value)}, expected a positive number", remedy)
    return float(array)


def nonnegative_number(name: str, value: object, remedy: str = "give a number") -> float:
    """One finite number of at least 0."""
    number = real_array(name, value, (), remedy)
    if number.ndim or isinstance(value, bool | np.bool_) or not 0.0 <= number < np.inf:
        raise StateError(
            f"{name} is {shown(value)}, expected one finite number of at least 0", remedy
        )
    return float(number)


def is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value is iterable, but neither text nor a 0-d array."""
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes)
        and getattr(value, "shape", None) != ()
    )


def as_list(name: str, value: object, remedy: str = "") -> list:
    """An iterable as a list; text and 0-d arrays are errors."""
    if is_list(value):
        return list(value)
    raise StateError(f"{name} is {shown(value)}, expected a list", remedy or f"give {name}=[...]")


def as_names(what: str, value: object, of: str = "names", remedy: str = "") -> list[str]:
    """One name, or an iterable of names, as a list."""
    remedy = remedy or f'give {what}="name", or a list of names'
    each = [value] if isinstance(value, str) else as_list(what, value, remedy)
    for name in each:
        if not isinstance(name, str):
            raise StateError(f"{what} holds {shown(name)}, expected {of}", remedy)
    return each


def generator(rng: Any) -> np.random.Generator:
    """A NumPy Generator, from a seed or a Generator. NumPy itself accepts more, or crashes."""
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
    value: object,
    known: Iterable[str],
    remedy: str = "",
    kind: Callable[..., Error] = StateError,
) -> str:
    """One of the known words; by default the remedy names the nearest of them."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise kind(
            f"{name} is {shown(value)}, expected one of {', '.join(words)}",
            remedy or nearest(value, words),
        )
    return value


def flag(name: str, value: object, remedy: str = "give one of the two") -> bool:
    """True or False, or 1 or 0; other values, such as the true string "no", are errors."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise StateError(f"{name} is {shown(value)}, expected True or False", remedy)
    return bool(value)


def path(
    name: str, value: object, expected: str, remedy: str, kind: type[Error] = StateError
) -> str:
    """A path as text."""
    if not isinstance(value, str | os.PathLike):
        raise kind(f"{name} is {shown(value)}, expected {expected}", remedy)
    return os.fsdecode(value)


def _not_real(value: object, array: np.ndarray) -> str:
    kind, dtype = array.dtype.kind, array.dtype
    if kind in "iub" or (kind == "f" and dtype.itemsize <= 8):
        return ""
    if array.ndim == 0 and not isinstance(value, np.ndarray):
        return f"is {shown(value)}, expected real numbers"
    for element in array.flat if kind in "OUS" else ():
        if symbol_library(element):
            return _symbol_fault("holds", element)
        if not isinstance(element, int | float):
            return f"holds {shown(element)}, expected real numbers"
    return f"is of dtype {shown(str(dtype))[1:-1]}, expected float64 or float32"


def _masked(value: object) -> str:
    if not isinstance(value, np.ma.MaskedArray) or not np.ma.is_masked(value):
        return ""
    place = [int(i) for i in np.argwhere(np.ma.getmaskarray(value))[0]]
    return f"is masked at {place}, expected numbers everywhere"


def frozen(values: ArrayLike, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A read-only float64 copy of `values`."""
    array = np.array(values, dtype=float)
    if shape is not None:
        array = array.reshape(shape)
    array.flags.writeable = False
    return array


def robot_of(system: object) -> Any:
    """The robot of a `System` or of any object with a `robot`; a robot itself is returned."""
    return getattr(system, "robot", system)


def matching_names(what: str, patterns: object, known: Iterable[str], on: str) -> list[str]:
    """The known names that match one of the patterns (names or globs), in the order of `known`.

    A pattern without a match is an error; `what` and `on` are used in its message.

    >>> matching_names("joints", ["b*", "a"], ["a", "b1", "b2", "c"], "robot")
    ['a', 'b1', 'b2']
    """
    known, found = list(known), set()
    for pattern in as_names(what, patterns):
        matches = {name for name in known if fnmatchcase(name, pattern)}
        if pattern in known:  # a name may contain characters of patterns
            matches = {pattern}
        if not matches:
            raise StateError(f"{on} has no {what} {shown(pattern)}", nearest(pattern, known))
        found |= matches
    return [name for name in known if name in found]
