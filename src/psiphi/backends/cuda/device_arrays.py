"""GPU arrays of each array library: their memory and stream, and how to make new ones.

A library is a row of `BY_MODULE`. No library is imported here: a user who has such an array has
imported its library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import on_gpu
from psiphi.backends.cuda.dlpack import DeviceArray, DLPackExport

if TYPE_CHECKING:  # optional packages
    from jax import Array as JaxArray
    from torch import Tensor

A = TypeVar("A")
CHARS = {"<f8": "d", "<f4": "f"}
NAMES = {"d": "float64", "f": "float32"}


@dataclass(frozen=True)
class ArrayView:
    """Where the numbers of an array are; `char` is "d", "f", or the name of another type."""

    pointer: int
    shape: tuple[int, ...]
    char: str
    contiguous: bool
    device: int


class ArrayLibrary(Protocol[A]):
    """What psiphi needs of an array library with GPU arrays of type A."""

    name: str

    def view(self, x: A) -> ArrayView: ...

    def stream(self, x: A) -> int:
        """The current stream of the library on x's GPU."""
        ...

    def empty(self, x: A, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        """A new array on x's GPU, and its pointer."""
        ...

    def put(self, x: A, array: np.ndarray) -> A:
        """An array of the host, copied to x's GPU."""
        ...

    def full(self, x: A, size: int, value: float) -> A:
        """`size` equal numbers on x's GPU, in its dtype; nothing is copied from the host."""
        ...

    def stack(self, arrays: Sequence[A]) -> A:
        """Arrays (..., 6), broadcast, as one array (..., len, 6)."""
        ...

    def ready(self, x: A, made: Any, stream: int) -> A:
        """What `empty` returned as an array for the user, after the kernel was enqueued."""
        ...


class TorchArrays:
    """Tensors of torch, on its current stream; launches can be captured in a CUDA graph."""

    name = "torch"

    def view(self, x: Tensor) -> ArrayView:
        if x.requires_grad and sys.modules["torch"].is_grad_enabled():
            raise StateError(
                "a tensor requires a gradient, which torch cannot track through this function",
                "pass x.detach(), or use torch.no_grad(); function.vjp(...) computes the gradients",
            )
        char = {"torch.float64": "d", "torch.float32": "f"}.get(str(x.dtype), str(x.dtype))
        number: int = x.device.index
        return ArrayView(x.data_ptr(), tuple(x.shape), char, x.is_contiguous(), number)

    def stream(self, x: Tensor) -> int:
        return sys.modules["torch"].cuda.current_stream(x.device).cuda_stream

    def empty(self, x: Tensor, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        torch = sys.modules["torch"]
        made = torch.empty(shape, dtype=getattr(torch, NAMES[char]), device=x.device)
        return made, made.data_ptr()

    def put(self, x: Tensor, array: np.ndarray) -> Tensor:
        return sys.modules["torch"].tensor(array, device=x.device)

    def full(self, x: Tensor, size: int, value: float) -> Tensor:
        return x.new_full((size,), value)

    def stack(self, arrays: Sequence[Tensor]) -> Tensor:
        torch = sys.modules["torch"]
        return torch.stack(torch.broadcast_tensors(*arrays), dim=-2)

    def ready(self, x: Tensor, made: Tensor, stream: int) -> Tensor:
        return made


class CuPyArray(Protocol):
    """What psiphi needs of a `cupy.ndarray`."""

    data: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    flags: Any
    device: Any


class CuPyArrays:
    """Arrays of CuPy, on its current stream."""

    name = "cupy"

    def view(self, x: CuPyArray) -> ArrayView:
        return ArrayView(
            x.data.ptr,
            x.shape,
            CHARS.get(x.dtype.str, str(x.dtype)),
            x.flags.c_contiguous,
            x.device.id,
        )

    def stream(self, x: CuPyArray) -> int:
        return sys.modules["cupy"].cuda.get_current_stream().ptr

    def empty(self, x: CuPyArray, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            made = cupy.empty(shape, dtype=char)
        return made, made.data.ptr

    def put(self, x: CuPyArray, array: np.ndarray) -> CuPyArray:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            return cupy.asarray(array)

    def full(self, x: CuPyArray, size: int, value: float) -> CuPyArray:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            return cupy.full(size, value, x.dtype)

    def stack(self, arrays: Sequence[CuPyArray]) -> CuPyArray:
        cupy = sys.modules["cupy"]
        return cupy.stack(cupy.broadcast_arrays(*arrays), axis=-2)

    def ready(self, x: CuPyArray, made: CuPyArray, stream: int) -> CuPyArray:
        return made


class JaxArrays:
    """Arrays of JAX outside of `jit`. JAX hides its streams, so psiphi waits before and after."""

    name = "jax"

    def view(self, x: JaxArray) -> ArrayView:
        interface = getattr(x.block_until_ready(), "__cuda_array_interface__", None) or {
            "data": (x.unsafe_buffer_pointer(), True)
        }
        char = CHARS.get(x.dtype.str, str(x.dtype))
        return ArrayView(
            interface["data"][0],
            tuple(x.shape),
            char,
            interface.get("strides") is None,
            _gpu_number(x),
        )

    def stream(self, x: JaxArray) -> int:
        return 0

    def empty(self, x: JaxArray, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        made = DLPackExport(shape, char, _gpu_number(x))
        return made, made.pointer

    def put(self, x: JaxArray, array: np.ndarray) -> JaxArray:
        # a tracer has no device
        return sys.modules["jax"].device_put(array, x.device if on_gpu(x) else None)

    def full(self, x: JaxArray, size: int, value: float) -> JaxArray:
        options = {"device": x.device} if on_gpu(x) else {}  # a tracer has no device
        return sys.modules["jax"].numpy.full(size, value, x.dtype, **options)

    def stack(self, arrays: Sequence[JaxArray]) -> JaxArray:
        jnp = sys.modules["jax"].numpy
        return jnp.stack(jnp.broadcast_arrays(*arrays), axis=-2)

    def ready(self, x: JaxArray, made: DLPackExport, stream: int) -> JaxArray:
        made.finish(stream)
        return sys.modules["jax"].numpy.from_dlpack(made)


def _gpu_number(x: JaxArray) -> int:
    return x.__dlpack_device__()[1]  # type: ignore[attr-defined]


class PlainDeviceArrays:
    """`DeviceArray`s of psiphi, for computations that start and end on the host."""

    name = "psiphi"

    def view(self, x: DeviceArray) -> ArrayView:
        return ArrayView(x.pointer, x.shape, x.char, True, x.device)

    def stream(self, x: DeviceArray) -> int:
        return 0

    def empty(self, x: DeviceArray, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        made = DeviceArray(shape, char, x.device)
        return made, made.pointer

    def put(self, x: DeviceArray, array: np.ndarray) -> DeviceArray:
        return DeviceArray.of(array, x.device)

    def full(self, x: DeviceArray, size: int, value: float) -> DeviceArray:
        return self.put(x, np.full(size, value, x.char))

    def stack(self, arrays: Sequence[DeviceArray]) -> DeviceArray:
        return self.put(
            arrays[0], np.stack(np.broadcast_arrays(*(x.host() for x in arrays)), axis=-2)
        )

    def ready(self, x: DeviceArray, made: DeviceArray, stream: int) -> DeviceArray:
        return made


BY_MODULE: dict[str, ArrayLibrary[Any]] = {
    "torch": TorchArrays(),
    "cupy": CuPyArrays(),
    "jaxlib": JaxArrays(),
    "jax": JaxArrays(),
    "psiphi": PlainDeviceArrays(),
}


def library_of(name: str, x: object) -> ArrayLibrary[Any]:
    """The library of a GPU array; `name` describes the array in the error."""
    deferred = getattr(x, "gpu_library", None)
    if deferred is not None:
        return deferred
    modules = (kind.__module__.partition(".")[0] for kind in type(x).__mro__)
    found = next((BY_MODULE[module] for module in modules if module in BY_MODULE), None)
    if found is None:
        known = ", ".join(dict.fromkeys(library.name for library in BY_MODULE.values()))
        raise StateError(
            f"{name} is a {type(x).__name__} on the GPU, expected an array of {known}",
            "convert it to one of them",
        )
    return found
