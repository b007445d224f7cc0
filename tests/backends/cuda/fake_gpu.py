"""A stand-in for a machine with graphics cards: arrays that say they are on one, and a driver that
runs kernels on this processor (`emulated_gpu.py`), parameter by parameter as the real one takes
them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from psiphi.backends.cuda import cuda_target, device_arrays, driver_bindings
from psiphi.backends.cuda.cuda_kernel import NAME
from psiphi.backends.cuda.cuda_target import CudaTarget
from psiphi.backends.cuda.device_arrays import ArrayView
from psiphi.backends.cuda.shared_memory import WARP
from tests.backends.cuda.emulated_gpu import Emulated, Emulation


class CardArray:
    """A NumPy array that claims to be on a card."""

    __module__ = "standin.arrays"

    def __init__(self, array: Any, device: int = 0):
        self.array, self.device = np.asarray(array), device

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    def __getitem__(self, key: Any) -> CardArray:
        return CardArray(self.array[key], self.device)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("numbers of a card were copied to the host")


def there(function: Any) -> Any:
    """A function of NumPy as one of this library."""

    def call(*values: Any, **options: Any) -> Any:
        result = function(*map(_array, values), **options)
        if result is NotImplemented:
            return result
        every = [y for x in values for y in (x if isinstance(x, list) else [x])]
        device = next((x.device for x in every if isinstance(x, CardArray)), 0)
        if isinstance(result, tuple):
            return tuple(CardArray(x, device) for x in result)
        return CardArray(result, device)

    return call


def _array(x: Any) -> Any:
    return (
        x.array
        if isinstance(x, CardArray)
        else [_array(y) for y in x]
        if isinstance(x, list)
        else x
    )


for word in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "neg",
    "lt",
    "gt",
    "le",
    "or",
    "and",
    "pow",
    "matmul",
):
    setattr(CardArray, f"__{word}__", there(getattr(np.ndarray, f"__{word}__")))
for word in ("sum", "all", "reshape", "astype"):
    setattr(CardArray, word, there(getattr(np.ndarray, word)))


class StandinModule:
    """Its functions, by NumPy's names."""

    nan = np.nan

    def __init__(self, of: Any = np):
        self.of = of

    @property
    def linalg(self) -> StandinModule:
        return StandinModule(np.linalg)

    def __getattr__(self, name: str) -> Any:
        return there(getattr(self.of, name))


class Standin:
    """The row of this library."""

    name = "standin"

    def view(self, x: CardArray) -> ArrayView:
        a = x.array
        char = a.dtype.char if a.dtype.char in "df" else str(a.dtype)
        return ArrayView(a.ctypes.data, a.shape, char, a.flags.c_contiguous, x.device)

    def stream(self, x: CardArray) -> int:
        return 7000 + x.device

    def empty(self, x: CardArray, shape: tuple[int, ...], char: str) -> tuple[CardArray, int]:
        made = np.full(shape, np.nan, char)
        return CardArray(made, x.device), made.ctypes.data

    def put(self, x: CardArray, array: np.ndarray) -> CardArray:
        return CardArray(array.copy(), x.device)

    def full(self, x: CardArray, size: int, value: float) -> CardArray:
        return CardArray(np.full(size, value, x.array.dtype), x.device)

    def stack(self, arrays: Sequence[CardArray]) -> CardArray:
        return CardArray(
            np.stack(np.broadcast_arrays(*(x.array for x in arrays)), axis=-2), arrays[0].device
        )

    def ready(self, x: CardArray, made: CardArray, stream: int) -> CardArray:
        return made


class EmulatedCuda(CudaTarget):
    """The target with the other shell: its text is the IR."""

    wrapper = Emulated()

    def emit(self, code: Any, char: str = "d", name: str = "", about: str = "") -> str:
        return self.ir(code, char)

    def key(self, char: str) -> list[Any]:
        return ["emulated", char, self.small_batch]


class StandinDriver:
    """Two cards; `log` is what was asked of it."""

    count, version = 2, 13000

    def __init__(self) -> None:
        self.log: list[tuple] = []
        self.small_batch = 0  # warps that do not keep it busy
        self.memory: dict[int, np.ndarray] = {}  # what was allocated and not given back

    def gpu_info(self, number: int) -> driver_bindings.GpuInfo:
        return driver_bindings.GpuInfo(number, "Stand-in", (9, 0), 4, 1 << 34)

    def processors(self, number: int) -> int:
        return self.small_batch

    def key(self, number: int) -> list[Any]:
        return ["standin", number]

    def assemble(self, text: bytes, number: int) -> bytes:
        self.log.append(("assemble", number))
        return text

    def load(self, code: bytes, name: str, number: int) -> Emulation:
        assert name == NAME
        self.log.append(("load", number))
        text = code.rstrip(b"\0").decode()
        return Emulation(text)

    def allocate(self, size: int, number: int) -> int:
        block = np.full(max(1, size), 0xFF, np.uint8)
        self.memory[block.ctypes.data] = block
        return block.ctypes.data

    def release(self, pointer: int, number: int) -> None:
        del self.memory[pointer]

    def write(self, pointer: int, array: np.ndarray, number: int) -> None:
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def read(self, pointer: int, array: np.ndarray, number: int) -> None:
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    def stream_context(self, stream: int) -> int:
        return 0xC0 + stream - 7000

    def context(self, number: int) -> int:
        return 0xC0 + number

    def launch(
        self,
        kernel: Emulation,
        blocks: int,
        threads: int,
        parameters: ctypes.Array,
        stream: int,
        number: int,
    ) -> None:
        if stream and stream != 7000 + number:
            raise driver_bindings.DriverError("cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE")
        self.log.append(("launch", blocks, threads, stream, number))
        kernel.launch(parameters, blocks * threads // WARP // kernel.team)


@pytest.fixture
def cards(monkeypatch) -> StandinDriver:
    """A machine with two cards, as far as psiphi can tell."""
    here = StandinDriver()
    monkeypatch.setattr(cuda_target, "CUDA", EmulatedCuda())
    monkeypatch.setattr(driver_bindings, "driver", lambda: here)
    monkeypatch.setitem(device_arrays.BY_MODULE, "standin", Standin())
    monkeypatch.setitem(sys.modules, "standin", StandinModule())
    return here
