"""The one door for arrays that are not NumPy's: torch, JAX, and whatever lies on a graphics card."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.extras import need
from psiphi._util.validate import is_foreign, on_card, owner, read, wants_slope
from psiphi.backends.cuda.device_arrays import BY_MODULE, library_of

WAYS = {
    "torch": "psiphi.functions.arrays.torch_operators",
    "jax": "psiphi.functions.arrays.jax_primitives",
}
_entered: dict[str, Any] = {}


def enter(
    function: Any, values: Sequence[Any], out: Any = None, dtype: Any = None, check: Any = False
) -> Any:
    """The results of a function for arrays some of which are foreign (`arguments.is_foreign`)."""
    if out is None and dtype is None and check is False and _are_tensors(values):
        return _import("torch") and _entered["torch"](function, values)
    name, library = function.name, _owner(values)
    there = [on_card(value) for value in values]
    if check is not False:
        where = "on a graphics card" if any(there) else f"of {library}"
        raise StateError(
            f"{name}: check=True looks at numbers, and these are {where}",
            "check NumPy arrays on the host",
        )
    if library == "torch" and out is None and dtype is None and (all(there) or not any(there)):
        return _import("torch") and _entered["torch"](function, values)
    plain = (
        out is None
        and dtype is None
        and (hasattr(function, "source") or any(map(is_traced, values)))
    )
    if any(there) and not (
        library == "jax" and plain and all(owner(value) == library for value in values)
    ):
        return function.run(values, out, dtype)
    if out is not None or dtype is not None:
        word = "out" if out is not None else "dtype"
        raise StateError(
            f"{name}: {word}= is for NumPy arrays, and these are of {library}",
            f"leave it out; {library} converts",
        )
    return _import("jax") and _entered["jax"](function, values)


def _are_tensors(values: Sequence[Any]) -> bool:
    """Whether these are all plain tensors of the host: the way that is taken most, and not to be asked about twice."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and all(type(x) is torch.Tensor and not x.is_cuda for x in values)


def _import(library: str) -> bool:
    """The file that knows a library, imported when the first of its arrays comes."""
    if library not in _entered:
        _entered[library] = need(WAYS[library], f"an array of {library}", f"psiphi[{library}]").call
    return True


_import._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compile asks once, and does not look inside


def stacked(values: Sequence[Any]) -> Any:
    """Arrays (..., 6), one of them foreign, as one (..., len, 6) of their library."""
    library = _owner(values)
    return (BY_MODULE[library] if library else library_of("f_ext", values[0])).stack(values)


def full(like: Any, size: int, value: float) -> Any:
    """So many equal numbers in the library of `like`, where it lies, in its type."""
    name = owner(like)
    return (BY_MODULE[name] if name else library_of("like", like)).full(like, size, value)


def constant(like: Any, array: np.ndarray) -> Any:
    """Numbers of ours in the library of `like`, where it lies, in its type."""
    name = owner(like)
    if not name and not on_card(like):
        return array.astype(like.dtype, copy=False)
    kind = str(like.dtype).removeprefix("torch.")
    return (BY_MODULE[name] if name else library_of("like", like)).put(like, array.astype(kind))


def widest(*values: Any) -> Any:
    """The foreign one of these that a number is put beside: of several types the widest, which is that of the results."""
    found, *others = [x for x in values if is_foreign(x)]
    for x in others:  # torch.compile knows no `max` by a key
        found = x if x.dtype.itemsize > found.dtype.itemsize else found
    return found


def one_number(name: str, array: np.ndarray) -> float:
    """A dt that came as a number, beside arrays of another library."""
    if array.ndim:
        cause = f"{name}: dt is an array of NumPy, and other arguments are not"
        raise StateError(cause, "give one number, or an array (..., 1) of the same library")
    return float(array)


def in_a_row(dt: Any) -> Any:
    """A foreign dt as functions take it, (..., 1): one number is so for all elements."""
    return dt if dt.ndim else dt.reshape(1)


def packed(x: Any) -> Any:
    """The same numbers, rows behind each other, as kernels of cards read them; JAX has no others."""
    name = owner(x)
    if name == "torch":
        return x.contiguous()
    return x if name == "jax" or not on_card(x) else mathematics(x).ascontiguousarray(x)


def mathematics(like: Any) -> Any:
    """The module that has the functions (log, linalg) of an array's library."""
    name = owner(like) or (library_of("an argument", like).name if on_card(like) else "")
    return (
        np
        if not name
        else need({"jax": "jax.numpy"}.get(name, name), f"an array of {name}", f"psiphi[{name}]")
    )


def is_traced(x: Any) -> bool:
    """Whether it stands for an array of JAX: where its numbers are is not known."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.core.Tracer)


def is_followed(x: Any) -> bool:
    """Whether a library follows what is done with an array, for its derivatives: a tensor that wants a gradient, a tracer."""
    return wants_slope(x) or is_traced(x)


def numbers(function: Any, index: int, value: Any) -> Any:
    """An argument that is not foreign, beside others that are: as NumPy's numbers, or an error."""
    arg = function.inputs[index]
    array, fault = read(value, arg.shape)
    if fault:
        wanted = ", ".join(["...", *map(str, arg.shape)])
        raise StateError(f"{function.name}: {arg.name} {fault}", f"give real numbers ({wanted})")
    return array


def leads(function: Any, shapes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """The batch axes of every argument."""
    return [
        tuple(shape[: len(shape) - len(arg.shape)])
        for arg, shape in zip(function.inputs, shapes, strict=True)
    ]


def _owner(values: Sequence[Any]) -> str:
    """The library that most of the arrays belong to; empty where they are of a card alone. Two are refused."""
    found = {owner(value) for value in values} - {""}
    if len(found) > 1:
        raise StateError(
            f"arrays of {' and '.join(sorted(found))} came in one call",
            "give arrays of one library",
        )
    return found.pop() if found else ""
