"""Launches a kernel on GPU arrays: checks arguments, allocates results, enqueues on the stream.

Nothing is copied to the host, and nothing waits. Arrays must be contiguous; an argument has the
batch axes of the others, or one row for all of them.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from psiphi._util.array_types import AnyArray, DType
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_array, on_gpu
from psiphi.backends import kernel_cache
from psiphi.backends.cuda import driver_bindings
from psiphi.backends.cuda.cuda_kernel import NAME
from psiphi.backends.cuda.deferred_arrays import LaunchRecord
from psiphi.backends.cuda.device_arrays import NAMES, ArrayLibrary, ArrayView, library_of
from psiphi.backends.cuda.dlpack import SIZE
from psiphi.backends.cuda.driver_bindings import LoadedKernel
from psiphi.backends.cuda.shared_memory import WARP, CudaGrid
from psiphi.compiler.sweeps.sweep_program import Argument

Arguments = Sequence[Argument]
GpuOut: TypeAlias = AnyArray | Sequence[AnyArray | None] | None


def launch(
    name: str,
    inputs: Arguments,
    outputs: Arguments,
    values: Sequence[AnyArray],
    out: GpuOut,
    dtype: DType,
    kernel: Callable[[str, int, int], CudaKernel],
) -> Any:
    """The results of a kernel; `kernel(char, device, n)` loads it for n states on a GPU."""
    views = views_of(name, inputs, values)
    char, device = common_dtype_and_device(name, inputs, views, dtype)
    batch, steps = batch_and_strides(name, inputs, views)
    library, first = library_of(f"{name}: {inputs[0].name}", values[0]), values[0]
    arrays = _result_arrays(name, library, first, outputs, batch, char, device, out)
    n, stream = math.prod(batch), library.stream(first)
    if out is not None:
        _check_no_overlap(
            name, inputs, views, outputs, [pointer for _, pointer in arrays], n * SIZE[char]
        )
    if n and any(arg.size for arg in outputs):
        pointers = [*(view.pointer for view in views), *(pointer for _, pointer in arrays)]
        owner = f"{name}: {inputs[0].name}"
        enqueue(lambda gpu: kernel(char, gpu, n), pointers, [*steps, n], n, stream, device, owner)
    results = tuple(library.ready(first, array, stream) for array, _ in arrays)
    return results[0] if len(results) == 1 else results


@dataclass(frozen=True)
class CudaKernel:
    """A kernel loaded on a GPU, and how it is launched."""

    kernel: LoadedKernel
    grid: CudaGrid


def load_kernel(text: bytes, name: str, gpu: int) -> CudaKernel:
    """Load a kernel on a GPU; its machine code is cached by `name` and GPU."""
    driver = driver_bindings.driver()
    built = kernel_cache.fetch_or_build(
        kernel_cache.key(name, json.dumps(driver.key(gpu))), lambda: driver.assemble(text, gpu)
    )
    return CudaKernel(
        driver.load(built, NAME, gpu), CudaGrid.of(text[: text.index(b"\n") + 1].decode())
    )


def small_batch(gpu: int) -> int:
    """Up to how many states a GPU is not busy: 32 for each multiprocessor."""
    return WARP * driver_bindings.driver().processors(gpu)


def enqueue(
    load: Callable[[int], CudaKernel],
    pointers: list[int],
    numbers: list[int],
    n: int,
    stream: int | LaunchRecord,
    device: int,
    owner: str,
) -> None:
    """Enqueue a kernel for n states on a stream; `load(gpu)` returns the kernel.

    `owner` names the array of the stream in errors.
    """
    if isinstance(stream, LaunchRecord):
        return stream.add_call(load, pointers, numbers, n)
    code = load(device)
    values = [*map(ctypes.c_void_p, pointers), *map(ctypes.c_int64, numbers)]
    parameters = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    blocks = math.ceil(n / code.grid.states)
    driver = driver_bindings.driver()
    try:
        driver.launch(code.kernel, blocks, code.grid.threads, parameters, stream, device)
    except driver_bindings.DriverError as error:
        if stream and driver.stream_context(stream) != driver.context(device):
            raise StateError(
                f"{owner} is on GPU {device}, and the current stream belongs to another GPU",
                f"use torch.cuda.device({device}) or cupy.cuda.Device({device})",
            ) from error
        raise


def allocate(
    name: str, library: ArrayLibrary[Any], like: AnyArray, shape: tuple[int, ...], char: str
) -> tuple[Any, int]:
    """A new array on the GPU of another, and its pointer; `name` describes it in errors."""
    try:
        return library.empty(like, shape, char)
    except Exception as error:  # each library has its own
        if "memory" not in f"{type(error).__name__} {error}".lower():
            raise
        size = math.prod(shape) * SIZE[char] / 1e9
        cause = f"{name}: {shape} numbers of {NAMES[char]} need {size:.3g} GB, more than is free"
        raise StateError(
            cause, "use a smaller batch, or free arrays (torch.cuda.empty_cache())"
        ) from error


def views_of(name: str, inputs: Arguments, values: Sequence[AnyArray]) -> list[ArrayView]:
    """The memory of every argument; an error names an argument that is not on the GPU."""
    first_name = next(arg.name for arg, value in zip(inputs, values, strict=True) if on_gpu(value))
    first = next(value for value in values if on_gpu(value))
    views = []
    for arg, value in zip(inputs, values, strict=True):
        if not on_gpu(value):
            kind = type(value).__name__
            cause = f"{name}: {arg.name} is a {kind} on the host, and {first_name} is on the GPU"
            raise StateError(cause, f"move {arg.name} to the GPU, or {first_name} to the host")
        library = library_of(f"{name}: {arg.name}", value)
        other = library_of(name, first).name
        if library.name != other:
            cause = f"{name}: {arg.name} is an array of {library.name}, {first_name} one of {other}"
            raise StateError(cause, "pass arrays of one library")
        view = library.view(value)
        _check(name, arg, view)
        views.append(view)
    return views


def _check(name: str, arg: Argument, view: ArrayView) -> None:
    check_array(name, arg, view.shape, NAMES.get(view.char, view.char))
    if not view.contiguous:
        raise StateError(
            f"{name}: {arg.name} is not contiguous",
            f"pass {arg.name}.contiguous() (torch) or ascontiguousarray({arg.name})",
        )
    if view.pointer % SIZE[view.char]:
        cause = f"{name}: {arg.name} is not aligned to {SIZE[view.char]} bytes"
        raise StateError(cause, "pass a copy")


def dtype_and_device(name: str, inputs: Arguments, values: Sequence[AnyArray]) -> tuple[str, int]:
    """The dtype ("d" or "f") and the GPU of arrays, for functions that pass them on to others.

    Gradients of torch are ignored here.
    """
    detached = [x if (f := getattr(x, "detach", None)) is None else f() for x in values]
    return common_dtype_and_device(name, inputs, views_of(name, inputs, detached), None)


def common_dtype_and_device(
    name: str, inputs: Arguments, views: list[ArrayView], dtype: DType
) -> tuple[str, int]:
    """The dtype and the GPU, which all arguments must have in common."""
    first = views[0]
    for arg, view in zip(inputs, views, strict=True):
        if view.char != first.char:
            kind, other = NAMES[view.char], NAMES[first.char]
            cause = f"{name}: {arg.name} is {kind}, and {inputs[0].name} is {other}"
            raise StateError(cause, "pass one dtype: GPU arrays are not converted automatically")
        if view.device != first.device:
            gpu, other = f"GPU {view.device}", f"GPU {first.device}"
            cause = f"{name}: {arg.name} is on {gpu}, and {inputs[0].name} is on {other}"
            raise StateError(cause, "move them to one GPU")
    if dtype is not None and np.dtype(dtype).char != first.char:
        cause = f"{name}: dtype is {np.dtype(dtype)}, and the arrays are {NAMES[first.char]}"
        raise StateError(cause, "convert the arrays: GPU arrays are not converted automatically")
    return first.char, first.device


def batch_and_strides(
    name: str, inputs: Arguments, views: list[ArrayView]
) -> tuple[tuple[int, ...], list[int]]:
    """The batch axes of the call, and the bytes from state to state of each argument.

    The stride is 0 if all states share one row.
    """
    leads = [
        view.shape[: len(view.shape) - len(arg.shape)]
        for arg, view in zip(inputs, views, strict=True)
    ]
    batch = batch_axes(name, {arg.name: lead for arg, lead in zip(inputs, leads, strict=True)})
    n, steps = math.prod(batch), []
    for arg, lead, view in zip(inputs, leads, views, strict=True):
        rows = math.prod(lead)
        if rows not in (1, n):
            raise StateError(
                f"{name}: {arg.name} has batch axes {lead}, the call has {batch}",
                f"on the GPU, pass {arg.name} with all batch axes (expand it, then make it "
                "contiguous) or with one row",
            )
        steps.append(arg.size * SIZE[view.char] if rows > 1 else 0)
    return batch, steps


def _check_no_overlap(
    name: str,
    inputs: Arguments,
    views: list[ArrayView],
    outputs: Arguments,
    pointers: list[int],
    bytes_per_number: int,
) -> None:
    """Reject results that overlap arguments: threads write results while others read arguments."""
    occupied = [
        (arg.name, view.pointer, math.prod(view.shape) * SIZE[view.char])
        for arg, view in zip(inputs, views, strict=True)
    ]
    for arg, start in zip(outputs, pointers, strict=True):
        for other, begin, size in occupied:
            if start < begin + size and begin < start + arg.size * bytes_per_number:
                raise StateError(
                    f"{name}: out shares memory with {other}",
                    "pass a separate array, or omit out=",
                )
        occupied.append(("another result", start, arg.size * bytes_per_number))


def _result_arrays(
    name: str,
    library: ArrayLibrary[Any],
    first: AnyArray,
    outputs: Arguments,
    batch: tuple[int, ...],
    char: str,
    device: int,
    out: GpuOut,
) -> list[tuple[Any, int]]:
    """New arrays, or those of `out`, with their pointers."""
    outs = out if isinstance(out, tuple) else (out,) + (None,) * (len(outputs) - 1)
    if len(outs) != len(outputs):
        raise StateError(
            f"{name}: out has {len(outs)} arrays, expected {len(outputs)}",
            "pass one for each result, or omit out=",
        )
    results = []
    for arg, array in zip(outputs, outs, strict=True):
        shape = batch + arg.shape
        if array is None:
            results.append(allocate(f"{name}: the result {arg.name}", library, first, shape, char))
            continue
        if not on_gpu(array) or library.name == "jax":
            raise StateError(
                f"{name}: out is a {type(array).__name__}",
                f"pass an array of {library.name} on the GPU, or omit out=",
            )
        view = library.view(array)
        if (view.shape, view.char, view.device, view.contiguous) != (shape, char, device, True):
            kind = NAMES.get(view.char, view.char)
            raise StateError(
                f"{name}: out is {kind} {view.shape} on GPU {view.device}",
                f"pass a contiguous array of {NAMES[char]} {shape} on GPU {device}, or omit out=",
            )
        results.append((array, view.pointer))
    return results
