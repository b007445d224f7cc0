"""The driver of NVIDIA's graphics cards, by ctypes: contexts, modules, launches; and what it says when it refuses.

No toolkit and no package is needed, only the library that comes with the card's driver. Each card is used in its primary
context, which torch, CuPy and JAX use as well: their arrays and streams are valid there.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi._util.errors import Error

LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
CUBIN, PTX = 0, 1  # CUjitInputType
MAJOR, MINOR, PROCESSORS = 75, 76, 16  # CUdevice_attribute
REGISTERS, LOCAL = 4, 3  # CUfunction_attribute
OUT_OF_MEMORY, NO_DEVICE = 2, 100
HINTS = {
    OUT_OF_MEMORY: "use a smaller batch, or free arrays (torch.cuda.empty_cache())",
    NO_DEVICE: "nvidia-smi lists what the driver sees; CUDA_VISIBLE_DEVICES may hide cards",
}


class DriverError(Error):
    """The driver of the graphics card refused, or is not there."""


@dataclass(frozen=True)
class CardFacts:
    """One graphics card, as `psiphi info --gpu` tells it."""

    number: int
    name: str
    capability: tuple[int, int]
    processors: int
    memory: int


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel in the memory of one card; `registers` and `local` (bytes of spilled numbers) are those of a thread."""

    function: Any
    registers: int
    local: int

    @property
    def handle(self) -> int:
        return self.function.value


class Driver:
    """The driver's functions that psiphi calls."""

    def __init__(self, library: Any):
        self.library = library
        self.call("cuInit", 0)
        self.contexts: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """One function of the driver; its error codes become words."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise DriverError(
                f"{name}: {self.words(status)}",
                HINTS.get(status, "psiphi info --gpu shows what is there"),
            )

    def words(self, status: int) -> str:
        texts = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if getattr(self.library, function)(status, ctypes.byref(text)) == 0 and text.value:
                texts.append(text.value.decode())
        return ": ".join(texts) or f"error {status}"

    @property
    def version(self) -> int:
        """13000 for CUDA 13.0."""
        return self._number("cuDriverGetVersion")

    @property
    def count(self) -> int:
        return self._number("cuDeviceGetCount")

    def _number(self, name: str, *arguments: Any) -> int:
        number = ctypes.c_int()
        self.call(name, ctypes.byref(number), *arguments)
        return number.value

    def card(self, number: int) -> CardFacts:
        """What card it is."""
        device = self._number("cuDeviceGet", number)
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self.call("cuDeviceGetName", name, 256, device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        major, minor, processors = (
            self._number("cuDeviceGetAttribute", x, device) for x in (MAJOR, MINOR, PROCESSORS)
        )
        return CardFacts(number, name.value.decode(), (major, minor), processors, memory.value)

    def processors(self, number: int) -> int:
        """How many multiprocessors it has."""
        if number not in self.sizes:
            self.sizes[number] = self.card(number).processors
        return self.sizes[number]

    def key(self, number: int) -> list[Any]:
        """What machine code depends on, besides its PTX."""
        card = self.card(number)
        return [self.version, card.name, card.capability]

    def address(self, name: str) -> int:
        """Where a function of the driver is: for machine code that calls it."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def context(self, number: int) -> int:
        """The card's primary context."""
        if number not in self.contexts:
            context = ctypes.c_void_p()
            self.call(
                "cuDevicePrimaryCtxRetain",
                ctypes.byref(context),
                self._number("cuDeviceGet", number),
            )
            self.contexts[number] = context
        return self.contexts[number].value

    def owner(self, stream: int) -> int:
        """The context that a stream belongs to."""
        context = ctypes.c_void_p()
        self.call("cuStreamGetCtx", ctypes.c_void_p(stream), ctypes.byref(context))
        return context.value or 0

    @contextmanager
    def on(self, number: int):
        """The card's primary context, as long as the block lasts."""
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context(number)))
        try:
            yield
        finally:
            self.library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def assemble(self, text: bytes, number: int) -> bytes:
        """PTX as the machine code of one card."""
        with self.on(number):
            state, cubin, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
            self.call("cuLinkCreate_v2", 0, None, None, ctypes.byref(state))
            try:
                self.call(
                    "cuLinkAddData_v2",
                    state,
                    PTX,
                    text,
                    ctypes.c_size_t(len(text)),
                    b"psiphi",
                    0,
                    None,
                    None,
                )
                self.call("cuLinkComplete", state, ctypes.byref(cubin), ctypes.byref(size))
                return ctypes.string_at(cubin, size.value)
            finally:
                self.library.cuLinkDestroy(state)

    def load(self, code: bytes, name: str, number: int) -> LoadedKernel:
        """A function of machine code, loaded for good."""
        with self.on(number):
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), code)
            self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            registers, local = (
                self._number("cuFuncGetAttribute", x, function) for x in (REGISTERS, LOCAL)
            )
            return LoadedKernel(function, registers, local)

    def launch(
        self,
        kernel: LoadedKernel,
        blocks: int,
        threads: int,
        parameters: Any,
        stream: int,
        number: int,
    ) -> None:
        """Put the kernel on a stream; nothing waits for it."""
        with self.on(number):
            shape = (blocks, 1, 1, threads, 1, 1, 0)
            self.call(
                "cuLaunchKernel", kernel.function, *shape, ctypes.c_void_p(stream), parameters, None
            )

    def allocate(self, size: int, number: int) -> int:
        """New memory of the card."""
        with self.on(number):
            pointer = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
            return pointer.value

    def release(self, pointer: int, number: int) -> None:
        with self.on(number):
            self.library.cuMemFree_v2(ctypes.c_uint64(pointer))

    def write(self, pointer: int, array: np.ndarray, number: int) -> None:
        """Numbers of the host, copied to the card."""
        with self.on(number):
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), *_memory(array))

    def read(self, pointer: int, array: np.ndarray, number: int) -> None:
        """Numbers of the card, copied to the host when what was sent before is done."""
        with self.on(number):
            where, size = _memory(array)
            self.call("cuMemcpyDtoH_v2", where, ctypes.c_uint64(pointer), size)

    def finish(self, stream: int, number: int) -> None:
        """Wait until a stream is done."""
        with self.on(number):
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))


def _memory(array: np.ndarray) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    return ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)


def count_cards() -> int:
    """How many cards there are; none where there is no driver."""
    try:
        return driver().count
    except DriverError:
        return 0


@lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver, opened when it is first asked for."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library)
    cause = f"no driver of a graphics card was found ({' or '.join(LIBRARIES)})"
    raise DriverError(cause, "install NVIDIA's driver, or pass arrays of the host")
