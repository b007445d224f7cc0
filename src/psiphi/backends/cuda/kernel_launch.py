"""A call on arrays of a graphics card: what came is looked at, results are made beside it, and the kernel goes on its stream.

Nothing is copied to the host, nothing waits. Rows have to follow each other in memory; an argument has the batch axes of the
others, or one row for all of them.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_array, on_card
from psiphi.backends import kernel_cache
from psiphi.backends.cuda import cuda_driver
from psiphi.backends.cuda.cuda_kernel import NAME
from psiphi.backends.cuda.deferred_arrays import LaunchRecord
from psiphi.backends.cuda.device_arrays import NAMES, ArrayView, library_of
from psiphi.backends.cuda.dlpack import SIZE
from psiphi.backends.cuda.shared_memory import WARP, CudaGrid
from psiphi.compiler.sweeps.sweep_program import Argument

Arguments = Sequence[Argument]


def launch(
    name: str,
    inputs: Arguments,
    outputs: Arguments,
    values: Sequence[Any],
    out: Any,
    dtype: Any,
    kernel: Callable[[str, int, int], Any],
) -> Any:
    """The results of a kernel; `kernel(char, device, n)` loads the one for so many states of a number type on a card."""
    views = views_of(name, inputs, values)
    char, device = one_kind(name, inputs, views, dtype)
    batch, steps = batch_of(name, inputs, views)
    library, like = library_of(f"{name}: {inputs[0].name}", values[0]), values[0]
    made = _results(name, library, like, outputs, batch, char, device, out)
    n, stream = math.prod(batch), library.stream(like)
    if out is not None:
        _check_apart(name, inputs, views, outputs, [pointer for _, pointer in made], n * SIZE[char])
    if n and any(arg.size for arg in outputs):
        pointers = [*(view.pointer for view in views), *(pointer for _, pointer in made)]
        whose = f"{name}: {inputs[0].name}"
        send(lambda card: kernel(char, card, n), pointers, [*steps, n], n, stream, device, whose)
    results = tuple(library.ready(like, array, stream) for array, _ in made)
    return results[0] if len(results) == 1 else results


@dataclass(frozen=True)
class CudaKernel:
    """A kernel on a card, and how it is launched."""

    loaded: Any
    grid: CudaGrid


def loaded(text: bytes, name: str, card: int) -> CudaKernel:
    """A kernel on a card: its machine code from the cache, by `name` and card, or assembled now."""
    cards = cuda_driver.driver()
    built = kernel_cache.remember(
        kernel_cache.key(name, json.dumps(cards.key(card))), lambda: cards.assemble(text, card)
    )
    return CudaKernel(
        cards.load(built, NAME, card), CudaGrid.of(text[: text.index(b"\n") + 1].decode())
    )


def few_states(card: int) -> int:
    """Up to how many states a card is not busy with one warp for 32 of them: as many warps as it has multiprocessors."""
    return WARP * cuda_driver.driver().processors(card)


def send(
    kernel: Callable[[int], CudaKernel],
    pointers: list[int],
    numbers: list[int],
    n: int,
    stream: Any,
    device: int,
    whose: str,
) -> None:
    """Put a kernel, by card, for n states on a stream; `whose` names the array that it comes from."""
    if isinstance(stream, LaunchRecord):
        return stream.note(kernel, pointers, numbers, n)
    code = kernel(device)
    words = [*map(ctypes.c_void_p, pointers), *map(ctypes.c_int64, numbers)]
    parameters = (ctypes.c_void_p * len(words))(*map(ctypes.addressof, words))
    blocks = math.ceil(n / code.grid.states)
    cards = cuda_driver.driver()
    try:
        cards.launch(code.loaded, blocks, code.grid.threads, parameters, stream, device)
    except cuda_driver.DriverError as error:
        if stream and cards.owner(stream) != cards.context(device):
            cause = f"{whose} is on card {device}, and the current stream is of another card"
            raise StateError(
                cause,
                f"make card {device} current: torch.cuda.device({device}), cupy.cuda.Device({device})",
            ) from error
        raise


def room(words: str, library: Any, like: Any, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
    """A new array beside another, and its pointer; where there is no room, words that name it."""
    try:
        return library.empty(like, shape, char)
    except Exception as error:  # each library has its own
        if "memory" not in f"{type(error).__name__} {error}".lower():
            raise
        size = math.prod(shape) * SIZE[char] / 1e9
        cause = f"{words}: {shape} numbers of {NAMES[char]} take {size:.3g} GB, and the card has not so much left"
        raise StateError(
            cause, "use a smaller batch, or free arrays (torch.cuda.empty_cache())"
        ) from error


def views_of(name: str, inputs: Arguments, values: Sequence[Any]) -> list[ArrayView]:
    """The memory of every argument, or an error that names the one that has none there."""
    there = next(arg.name for arg, value in zip(inputs, values, strict=True) if on_card(value))
    first = next(value for value in values if on_card(value))
    views = []
    for arg, value in zip(inputs, values, strict=True):
        if not on_card(value):
            cause = f"{name}: {arg.name} is a {type(value).__name__} on the host, and {there} is on a graphics card"
            raise StateError(cause, f"bring {arg.name} to the card, or {there} to the host")
        library = library_of(f"{name}: {arg.name}", value)
        if library.name != library_of(name, first).name:
            cause = f"{name}: {arg.name} is an array of {library.name}, and {there} of {library_of(name, first).name}"
            raise StateError(cause, "give arrays of one library")
        view = library.view(value)
        _check(name, arg, view)
        views.append(view)
    return views


def _check(name: str, arg: Argument, view: ArrayView) -> None:
    check_array(name, arg, view.shape, NAMES.get(view.char, view.char))
    if not view.contiguous:
        cause = f"{name}: {arg.name} is not contiguous: its rows do not follow each other in memory"
        raise StateError(
            cause, f"give {arg.name}.contiguous() (torch) or ascontiguousarray({arg.name})"
        )
    if view.pointer % SIZE[view.char]:
        raise StateError(
            f"{name}: {arg.name} does not begin at a multiple of {SIZE[view.char]} bytes", "copy it"
        )


def looked_at(name: str, inputs: Arguments, values: Sequence[Any]) -> tuple[str, int]:
    """The type and the card of arrays, or words of a function that hands them to others; what torch follows is not followed."""
    seen = [x.detach() if hasattr(x, "detach") else x for x in values]
    return one_kind(name, inputs, views_of(name, inputs, seen), None)


def one_kind(name: str, inputs: Arguments, views: list[ArrayView], dtype: Any) -> tuple[str, int]:
    """The number type and the card, the same for all."""
    first = views[0]
    for arg, view in zip(inputs, views, strict=True):
        if view.char != first.char:
            cause = f"{name}: {arg.name} is {NAMES[view.char]}, and {inputs[0].name} {NAMES[first.char]}"
            raise StateError(
                cause, "give one type on graphics cards, where nothing is converted by itself"
            )
        if view.device != first.device:
            cause = f"{name}: {arg.name} is on card {view.device}, and {inputs[0].name} on card {first.device}"
            raise StateError(cause, "bring them to one card")
    if dtype is not None and np.dtype(dtype).char != first.char:
        cause = f"{name}: dtype is {np.dtype(dtype)}, and the arrays are {NAMES[first.char]}"
        raise StateError(
            cause, "convert the arrays; on graphics cards nothing is converted by itself"
        )
    return first.char, first.device


def batch_of(
    name: str, inputs: Arguments, views: list[ArrayView]
) -> tuple[tuple[int, ...], list[int]]:
    """The batch axes of the call, and how far the states of each argument are apart: 0 where one row serves all."""
    leads = [
        view.shape[: len(view.shape) - len(arg.shape)]
        for arg, view in zip(inputs, views, strict=True)
    ]
    batch = batch_axes(name, {arg.name: lead for arg, lead in zip(inputs, leads, strict=True)})
    n, steps = math.prod(batch), []
    for arg, lead, view in zip(inputs, leads, views, strict=True):
        rows = math.prod(lead)
        if rows not in (1, n):
            cause = f"{name}: {arg.name} has batch axes {lead} in a call of {batch}"
            raise StateError(
                cause,
                f"on graphics cards give {arg.name} all of them, or one row: expand, then make contiguous",
            )
        steps.append(arg.size * SIZE[view.char] if rows > 1 else 0)
    return batch, steps


def _check_apart(
    name: str,
    inputs: Arguments,
    views: list[ArrayView],
    outputs: Arguments,
    places: list[int],
    unit: int,
) -> None:
    """Threads write results while others still read arguments: they may not be the same memory."""
    taken = [
        (arg.name, view.pointer, math.prod(view.shape) * SIZE[view.char])
        for arg, view in zip(inputs, views, strict=True)
    ]
    for arg, start in zip(outputs, places, strict=True):
        for other, begin, size in taken:
            if start < begin + size and begin < start + arg.size * unit:
                raise StateError(
                    f"{name}: out shares memory with {other}",
                    "give memory of its own, or leave out= out",
                )
        taken.append(("another result", start, arg.size * unit))


def _results(
    name: str,
    library: Any,
    like: Any,
    outputs: Arguments,
    batch: tuple[int, ...],
    char: str,
    device: int,
    out: Any,
) -> list[tuple[Any, int]]:
    """New arrays, or those given, with their pointers."""
    given = out if isinstance(out, tuple) else (out,) + (None,) * (len(outputs) - 1)
    if len(given) != len(outputs):
        raise StateError(
            f"{name}: out has {len(given)} arrays, expected {len(outputs)}",
            "give one for each result, or none",
        )
    made = []
    for arg, array in zip(outputs, given, strict=True):
        shape = batch + arg.shape
        if array is None:
            made.append(room(f"{name}: the result {arg.name}", library, like, shape, char))
            continue
        if not on_card(array) or library.name == "jax":
            raise StateError(
                f"{name}: out is a {type(array).__name__}",
                f"give an array of {library.name} on the card, or none",
            )
        view = library.view(array)
        if (view.shape, view.char, view.device, view.contiguous) != (shape, char, device, True):
            cause = f"{name}: out is {view.char} {view.shape} on card {view.device}"
            raise StateError(
                cause, f"give a contiguous {NAMES[char]} {shape} on card {device}, or leave it out"
            )
        made.append((array, view.pointer))
    return made
