"""ctypes bindings of NVIDIA's driver: one method per group of its functions, and its errors.

`kernel_launch.py` decides what is launched, and with which arguments.

No toolkit and no package is needed, only the library that comes with the driver. Each GPU is used
in its primary context, as torch, CuPy and JAX do, so that their arrays and streams are valid.
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
    NO_DEVICE: "run nvidia-smi to list the GPUs; CUDA_VISIBLE_DEVICES may hide some",
}


class DriverError(Error):
    """A call of the GPU driver failed, or there is no driver."""


@dataclass(frozen=True)
class GpuInfo:
    """One GPU, as `psiphi info --gpu` shows it; `memory` is in bytes."""

    number: int
    name: str
    capability: tuple[int, int]
    processors: int
    memory: int


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel loaded on a GPU; `registers` and `local` (bytes of local memory) are per thread."""

    function: Any
    registers: int
    local: int

    @property
    def handle(self) -> int:
        return self.function.value


class Driver:
    """The driver's functions that psiphi calls."""

    def __init__(self, library: ctypes.CDLL):
        self.library = library
        self.call("cuInit", 0)
        self.contexts: dict[int, Any] = {}
        self.sizes: dict[int, int] = {}

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver; an error code becomes a DriverError."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise DriverError(
                f"{name}: {self.error_text(status)}",
                HINTS.get(status, "run psiphi info --gpu to see the driver and the GPUs"),
            )

    def error_text(self, status: int) -> str:
        """The name and the description of an error code."""
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

    def _number(self, name: str, *arguments: object) -> int:
        number = ctypes.c_int()
        self.call(name, ctypes.byref(number), *arguments)
        return number.value

    def gpu_info(self, number: int) -> GpuInfo:
        """Name, compute capability, multiprocessors and memory of a GPU."""
        device = self._number("cuDeviceGet", number)
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self.call("cuDeviceGetName", name, 256, device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        major, minor, processors = (
            self._number("cuDeviceGetAttribute", x, device) for x in (MAJOR, MINOR, PROCESSORS)
        )
        return GpuInfo(number, name.value.decode(), (major, minor), processors, memory.value)

    def processors(self, number: int) -> int:
        """How many multiprocessors a GPU has."""
        if number not in self.sizes:
            self.sizes[number] = self.gpu_info(number).processors
        return self.sizes[number]

    def key(self, number: int) -> list[Any]:
        """What machine code depends on besides its PTX."""
        gpu = self.gpu_info(number)
        return [self.version, gpu.name, gpu.capability]

    def address(self, name: str) -> int:
        """The address of a function of the driver, for machine code that calls it."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def context(self, number: int) -> int:
        """The primary context of a GPU."""
        if number not in self.contexts:
            context = ctypes.c_void_p()
            self.call(
                "cuDevicePrimaryCtxRetain",
                ctypes.byref(context),
                self._number("cuDeviceGet", number),
            )
            self.contexts[number] = context
        return self.contexts[number].value

    def stream_context(self, stream: int) -> int:
        """The context that a stream belongs to."""
        context = ctypes.c_void_p()
        self.call("cuStreamGetCtx", ctypes.c_void_p(stream), ctypes.byref(context))
        return context.value or 0

    @contextmanager
    def current_context(self, number: int):
        """Make the primary context of a GPU current within the block."""
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context(number)))
        try:
            yield
        finally:
            self.library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def assemble(self, text: bytes, number: int) -> bytes:
        """PTX -> machine code of one GPU."""
        with self.current_context(number):
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
        """Load machine code and return its function; it is never unloaded."""
        with self.current_context(number):
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
        parameters: ctypes.Array,
        stream: int,
        number: int,
    ) -> None:
        """Enqueue the kernel on a stream, asynchronously."""
        with self.current_context(number):
            shape = (blocks, 1, 1, threads, 1, 1, 0)
            self.call(
                "cuLaunchKernel", kernel.function, *shape, ctypes.c_void_p(stream), parameters, None
            )

    def allocate(self, size: int, number: int) -> int:
        """Allocate GPU memory."""
        with self.current_context(number):
            pointer = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
            return pointer.value

    def release(self, pointer: int, number: int) -> None:
        """Free GPU memory."""
        with self.current_context(number):
            self.library.cuMemFree_v2(ctypes.c_uint64(pointer))

    def write(self, pointer: int, array: np.ndarray, number: int) -> None:
        """Copy an array from the host to the GPU."""
        with self.current_context(number):
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), *_memory(array))

    def read(self, pointer: int, array: np.ndarray, number: int) -> None:
        """Copy from the GPU to an array on the host, after all work enqueued before."""
        with self.current_context(number):
            where, size = _memory(array)
            self.call("cuMemcpyDtoH_v2", where, ctypes.c_uint64(pointer), size)

    def finish(self, stream: int, number: int) -> None:
        """Wait until all work on a stream is done."""
        with self.current_context(number):
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))


def _memory(array: np.ndarray) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    return ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)


def count_gpus() -> int:
    """How many GPUs there are; 0 without a driver."""
    try:
        return driver().count
    except DriverError:
        return 0


@lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver, opened at the first use."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library)
    cause = f"no GPU driver was found ({' or '.join(LIBRARIES)})"
    raise DriverError(cause, "install NVIDIA's driver, or pass arrays on the host")
