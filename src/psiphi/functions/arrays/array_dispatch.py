"""The entry point for arrays that are not NumPy's: those of torch and JAX, and all on the GPU.

A function runs where its input arrays are: on the CPU or on the GPU.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from psiphi._util.array_types import AnyArray, DType, Out
from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.validate import (
    array_library,
    is_foreign,
    is_lazy,
    on_gpu,
    read_array,
    requires_grad,
)
from psiphi.backends.cuda.device_arrays import BY_MODULE, library_of
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays.function_registry import ArrayFunction, RunnableFunction

MODULES = {
    "torch": "psiphi.functions.arrays.torch_operators",
    "jax": "psiphi.functions.arrays.jax_primitives",
}
FLOAT32 = np.dtype(np.float32)
_calls: dict[str, Any] = {}  # {library: its `call`}


def dispatch(
    function: ArrayFunction,
    values: Sequence[Any],
    out: Out = None,
    dtype: DType = None,
    check: object = False,
) -> Any:
    """The results of a function for arguments some of which are foreign (`validate.is_foreign`)."""
    if out is None and dtype is None and check is False and _are_cpu_tensors(values):
        return _import_library("torch") and _calls["torch"](function, values)
    name, library = function.name, _common_library(values)
    gpu = [on_gpu(value) for value in values]
    if check is not False:
        where = "on the GPU" if any(gpu) else f"of {library}"
        raise StateError(
            f"{name}: check=True works on NumPy arrays, and these arrays are {where}",
            "leave check= out, or convert the arrays to NumPy",
        )
    if library == "torch" and out is None and dtype is None and (all(gpu) or not any(gpu)):
        return _import_library("torch") and _calls["torch"](function, values)
    in_xla = (  # a call that XLA can make
        out is None
        and dtype is None
        and (hasattr(function, "source") or any(map(is_tracer, values)))
    )
    if any(gpu) and not (
        library == "jax" and in_xla and all(array_library(value) == library for value in values)
    ):
        return cast("RunnableFunction", function).run(values, out, dtype)
    if out is not None or dtype is not None:
        option = "out" if out is not None else "dtype"
        raise StateError(
            f"{name}: {option}= is for NumPy arrays, and these are of {library}",
            f"leave it out, and convert the results with {library}",
        )
    return _import_library("jax") and _calls["jax"](function, values)


def call(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The results of a function for arrays of any library; of NumPy if none is foreign."""
    if any(map(is_foreign, values)):
        return dispatch(cast("ArrayFunction", function), values)
    return function(*values)


def _are_cpu_tensors(values: Sequence[Any]) -> bool:
    """Whether all are plain tensors on the CPU: the most frequent case, which must be fast."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and all(type(x) is torch.Tensor and not x.is_cuda for x in values)


def _import_library(library: str) -> bool:
    """Import the module for a library, when its first array is passed."""
    if library not in _calls:
        _calls[library] = import_optional(
            MODULES[library], f"an array of {library}", f"psiphi[{library}]"
        ).call
    return True


# torch.compile calls it once, and does not trace it
_import_library._dynamo_marked_constant = True  # type: ignore[attr-defined]


def stack_arrays(values: Sequence[AnyArray]) -> Any:
    """Arrays (..., 6), one of them foreign, as one array (..., len, 6) of their library."""
    library = _common_library(values)
    return (BY_MODULE[library] if library else library_of("f_ext", values[0])).stack(values)


def full_like(like: AnyArray, shape: int | tuple[int, ...], value: float) -> Any:
    """An array of equal numbers, of the library, device and dtype of `like`; of float64 for NumPy
    and lists."""
    name = array_library(like)
    if not name and not on_gpu(like):
        return np.full(shape, value)
    library = BY_MODULE[name] if name else library_of("like", like)
    if isinstance(shape, int):
        return library.full(like, shape, value)
    return library.full(like, math.prod(shape), value).reshape(shape)


def convert_like(like: AnyArray, array: np.ndarray) -> Any:
    """A NumPy array converted to the library, device and dtype of `like`."""
    name = array_library(like)
    if not name and not on_gpu(like):
        return array.astype(like.dtype, copy=False)
    kind = str(like.dtype).removeprefix("torch.")
    return (BY_MODULE[name] if name else library_of("like", like)).put(like, array.astype(kind))


def widest_array(*values: object) -> Any:
    """The foreign array with the widest dtype; the results have that dtype."""
    arrays: list[Any] = [x for x in values if is_foreign(x)]
    found, *others = arrays
    for x in others:  # torch.compile does not support `max` with a key
        found = x if x.dtype.itemsize > found.dtype.itemsize else found
    return found


def beside(like: AnyArray, value: Any) -> Any:
    """`value` for arithmetic with `like`: numbers and NumPy arrays are converted to its library,
    device and dtype; other arrays are returned unchanged."""
    if type(value) is np.ndarray and type(like) is np.ndarray:
        return value.astype(like.dtype, copy=False)
    if is_foreign(value) or is_lazy(value):
        return value
    return convert_like(like, np.asarray(value))


def in_one_library(name: str, inputs: Sequence[Argument], values: Sequence[Any]) -> list[Any]:
    """The arguments as arrays of one library: if some are foreign, the others are read as numbers
    and converted to the library, device and widest dtype of these."""
    if not any(map(is_foreign, values)):
        return list(values)
    like = widest_array(*values)
    return [
        x if is_foreign(x) else convert_like(like, read_numbers(name, arg, x))
        for arg, x in zip(inputs, values, strict=True)
    ]


def constants_beside(values: Sequence[object], size: int, value: float = 0.0) -> Any:
    """An array (size,) of equal numbers, of the library, device and dtype of the arguments: float32
    if all of them are."""
    foreign = [x for x in values if type(x) is not np.ndarray and is_foreign(x)]
    if foreign:
        return full_like(widest_array(*foreign), size, value)
    kinds = {getattr(x, "dtype", None) for x in values}
    return np.full(size, value, FLOAT32 if kinds == {FLOAT32} else np.float64)


def is_single(x: object) -> bool:
    """Whether x is an array of float32, of any library."""
    return str(getattr(x, "dtype", "")).endswith("float32")


def in_double(x: Any) -> Any:
    """An array of float32 as float64, in its library. JAX must have float64 enabled: if it has not,
    the array itself is returned, as for every other x."""
    is_short = array_library(x) == "jax" and not sys.modules["jax"].config.jax_enable_x64
    return cast_array(x, "float64") if is_single(x) and not is_short else x


def cast_array(x: AnyArray, dtype: str) -> Any:
    """An array of any library with another dtype."""
    if array_library(x) == "torch":
        return cast("Any", x).to(getattr(sys.modules["torch"], dtype))
    return cast("Any", x).astype(dtype)


def scalar_dt(name: str, array: np.ndarray) -> float:
    """dt as a float, where other arguments are arrays of another library."""
    if array.ndim:
        cause = f"{name}: dt is an array of NumPy, and other arguments are not"
        raise StateError(cause, "give one number, or an array (..., 1) of the same library")
    return float(array)


def as_row(dt: Any) -> Any:
    """A foreign dt as an array (..., 1), as functions expect it."""
    return dt if dt.ndim else dt.reshape(1)


def dt_beside(like: AnyArray, dt: Any, read: Callable[[Any], float]) -> Any:
    """dt as an array (..., 1) of the library of `like`; `read` reads a number."""
    return as_row(dt) if is_foreign(dt) else full_like(like, 1, read(dt))


def contiguous(x: AnyArray) -> Any:
    """The array with contiguous memory, as GPU kernels need it; arrays of JAX always have."""
    name = array_library(x)
    if name == "torch":
        return cast("Any", x).contiguous()
    return x if name == "jax" or not on_gpu(x) else array_module(x).ascontiguousarray(x)


def array_module(like: object) -> Any:
    """The module with the functions (log, linalg) of an array's library."""
    name = array_library(like) or (library_of("an argument", like).name if on_gpu(like) else "")
    return (
        np
        if not name
        else import_optional(
            {"jax": "jax.numpy"}.get(name, name), f"an array of {name}", f"psiphi[{name}]"
        )
    )


def is_tracer(x: object) -> bool:
    """Whether x is a tracer of JAX, whose device is not known."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def is_differentiated(x: object) -> bool:
    """Whether operations on x are recorded for derivatives: a tensor that requires a gradient, or
    a tracer."""
    return requires_grad(x) or is_tracer(x)


def read_numbers(name: str, arg: Argument, value: object) -> np.ndarray:
    """An argument of the function `name` that is not foreign, as a NumPy array of real numbers."""
    array, fault = read_array(value, arg.shape)
    if fault:
        expected = ", ".join(["...", *map(str, arg.shape)])
        raise StateError(f"{name}: {arg.name} {fault}", f"give real numbers ({expected})")
    return array


def batch_shapes(function: ArrayFunction, shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The batch shape of each argument, from the shapes of the arrays."""
    return [
        tuple(shape[: len(shape) - len(arg.shape)])
        for arg, shape in zip(function.inputs, shapes, strict=True)
    ]


def _common_library(values: Sequence[object]) -> str:
    """The library of the arrays, torch or JAX; "" for other arrays on the GPU. Arrays of both are
    an error."""
    libraries = {array_library(value) for value in values} - {""}
    if len(libraries) > 1:
        raise StateError(
            f"one call got arrays of {' and '.join(sorted(libraries))}",
            "give arrays of one library",
        )
    return libraries.pop() if libraries else ""
