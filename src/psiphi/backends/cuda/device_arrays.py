"""Arrays on graphics cards, by library: how each shows its memory and its stream, and makes a new array.

A library is a row of `BY_MODULE`. Nothing is imported: who holds such an array has imported its library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import on_card
from psiphi.backends.cuda.dlpack import DeviceArray, DLPackExport

CHARS = {"<f8": "d", "<f4": "f"}
NAMES = {"d": "float64", "f": "float32"}


@dataclass(frozen=True)
class ArrayView:
    """Where an array's numbers are: `char` is "d" or "f", or the name of a type that is neither."""

    pointer: int
    shape: tuple[int, ...]
    char: str
    contiguous: bool
    device: int


class ArrayLibrary(Protocol):
    """What psiphi asks of a library of arrays on cards."""

    name: str

    def view(self, x: Any) -> ArrayView: ...

    def stream(self, x: Any) -> int:
        """The stream that work on this array's card goes to now."""
        ...

    def empty(self, x: Any, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        """A new array beside x, and its pointer."""
        ...

    def put(self, x: Any, array: np.ndarray) -> Any:
        """Numbers of the host, copied to x's card."""
        ...

    def full(self, x: Any, size: int, value: float) -> Any:
        """So many equal numbers beside x, in its type: nothing is copied from the host."""
        ...

    def stack(self, arrays: Sequence[Any]) -> Any:
        """Arrays (..., 6), broadcast, as one (..., len, 6)."""
        ...

    def ready(self, x: Any, made: Any, stream: int) -> Any:
        """What `empty` made, as the user gets it, once the kernel is on the stream."""
        ...


class TorchArrays:
    """Tensors of torch, on its current stream; what is captured in a graph is."""

    name = "torch"

    def view(self, x: Any) -> ArrayView:
        if x.requires_grad and sys.modules["torch"].is_grad_enabled():
            cause = "a tensor that requires a gradient came, and torch cannot see what psiphi does with it"
            raise StateError(
                cause,
                "give x.detach(), or call it under torch.no_grad(); function.vjp(...) has the gradients",
            )
        char = {"torch.float64": "d", "torch.float32": "f"}.get(str(x.dtype), str(x.dtype))
        return ArrayView(x.data_ptr(), tuple(x.shape), char, x.is_contiguous(), x.device.index)

    def stream(self, x: Any) -> int:
        return sys.modules["torch"].cuda.current_stream(x.device).cuda_stream

    def empty(self, x: Any, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        torch = sys.modules["torch"]
        made = torch.empty(shape, dtype=getattr(torch, NAMES[char]), device=x.device)
        return made, made.data_ptr()

    def put(self, x: Any, array: np.ndarray) -> Any:
        return sys.modules["torch"].tensor(array, device=x.device)

    def full(self, x: Any, size: int, value: float) -> Any:
        return x.new_full((size,), value)

    def stack(self, arrays: Sequence[Any]) -> Any:
        torch = sys.modules["torch"]
        return torch.stack(torch.broadcast_tensors(*arrays), dim=-2)

    def ready(self, x: Any, made: Any, stream: int) -> Any:
        return made


class CuPyArrays:
    """Arrays of CuPy, on its current stream."""

    name = "cupy"

    def view(self, x: Any) -> ArrayView:
        return ArrayView(
            x.data.ptr,
            x.shape,
            CHARS.get(x.dtype.str, str(x.dtype)),
            x.flags.c_contiguous,
            x.device.id,
        )

    def stream(self, x: Any) -> int:
        return sys.modules["cupy"].cuda.get_current_stream().ptr

    def empty(self, x: Any, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            made = cupy.empty(shape, dtype=char)
        return made, made.data.ptr

    def put(self, x: Any, array: np.ndarray) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            return cupy.asarray(array)

    def full(self, x: Any, size: int, value: float) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            return cupy.full(size, value, x.dtype)

    def stack(self, arrays: Sequence[Any]) -> Any:
        cupy = sys.modules["cupy"]
        return cupy.stack(cupy.broadcast_arrays(*arrays), axis=-2)

    def ready(self, x: Any, made: Any, stream: int) -> Any:
        return made


class JaxArrays:
    """Arrays of JAX, outside of `jit`: its streams are its own, so it is waited for, before and after."""

    name = "jax"

    def view(self, x: Any) -> ArrayView:
        shown = getattr(x.block_until_ready(), "__cuda_array_interface__", None) or {
            "data": (x.unsafe_buffer_pointer(), True)
        }
        char = CHARS.get(x.dtype.str, str(x.dtype))
        return ArrayView(
            shown["data"][0],
            tuple(x.shape),
            char,
            shown.get("strides") is None,
            x.__dlpack_device__()[1],
        )

    def stream(self, x: Any) -> int:
        return 0

    def empty(self, x: Any, shape: tuple[int, ...], char: str) -> tuple[Any, int]:
        made = DLPackExport(shape, char, x.__dlpack_device__()[1])
        return made, made.pointer

    def put(self, x: Any, array: np.ndarray) -> Any:
        return sys.modules["jax"].device_put(
            array, x.device if on_card(x) else None
        )  # a tracer lies nowhere

    def full(self, x: Any, size: int, value: float) -> Any:
        where = {"device": x.device} if on_card(x) else {}  # a tracer lies nowhere
        return sys.modules["jax"].numpy.full(size, value, x.dtype, **where)

    def stack(self, arrays: Sequence[Any]) -> Any:
        jnp = sys.modules["jax"].numpy
        return jnp.stack(jnp.broadcast_arrays(*arrays), axis=-2)

    def ready(self, x: Any, made: Any, stream: int) -> Any:
        made.finish(stream)
        return sys.modules["jax"].numpy.from_dlpack(made)


class PlainDeviceArrays:
    """`DeviceArray`s, of no library: for work that begins and ends on the host."""

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


BY_MODULE: dict[str, ArrayLibrary] = {
    "torch": TorchArrays(),
    "cupy": CuPyArrays(),
    "jaxlib": JaxArrays(),
    "jax": JaxArrays(),
    "psiphi": PlainDeviceArrays(),
}


def library_of(name: str, x: Any) -> ArrayLibrary:
    """The library an array on a card belongs to; one that is promised (`deferred_arrays.py`) says it itself."""
    if hasattr(x, "card_library"):
        return x.card_library
    modules = (
        kind.__module__.partition(".")[0] for kind in type(x).__mro__
    )  # or one it is made from
    found = next((BY_MODULE[module] for module in modules if module in BY_MODULE), None)
    if found is None:
        known = ", ".join(dict.fromkeys(library.name for library in BY_MODULE.values()))
        raise StateError(
            f"{name} is a {type(x).__name__} on a graphics card, expected an array of {known}",
            "convert it",
        )
    return found
