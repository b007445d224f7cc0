"""GPU memory owned by psiphi: copies from and to the host, and export by DLPack."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from psiphi.backends.cuda import driver_bindings

CUDA = 2  # kDLCUDA
FLOAT = 2  # kDLFloat
SIZE = {"d": 8, "f": 4}


class _Tensor(ctypes.Structure):
    """DLManagedTensor."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Tensor))
_Tensor._fields_ = (
    ("data", ctypes.c_void_p),
    ("device_type", ctypes.c_int32),
    ("device_id", ctypes.c_int32),
    ("ndim", ctypes.c_int32),
    ("code", ctypes.c_uint8),
    ("bits", ctypes.c_uint8),
    ("lanes", ctypes.c_uint16),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", _Deleter),
)
_exported: dict[int, DLPackExport] = {}  # {address of the DLManagedTensor: its array}


def capsule(address: int, name: bytes | None = None) -> Any:
    """An address as a PyCapsule."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(address, name, None)


class DeviceArray:
    """An array on a GPU, which owns its memory."""

    def __init__(self, shape: tuple[int, ...], char: str, device: int):
        self.shape, self.char, self.device = shape, char, device
        self.pointer = driver_bindings.driver().allocate(math.prod(shape) * SIZE[char], device)

    @classmethod
    def of(cls, array: np.ndarray, device: int) -> DeviceArray:
        """A copy of an array of the host."""
        array = np.ascontiguousarray(array)
        made = cls(array.shape, array.dtype.char, device)
        driver_bindings.driver().write(made.pointer, array, device)
        return made

    def host(self) -> np.ndarray:
        """A copy on the host, after all enqueued work is done."""
        array = np.empty(self.shape, self.char)
        driver_bindings.driver().read(self.pointer, array, self.device)
        return array

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __del__(self):
        if hasattr(self, "pointer"):
            driver_bindings.driver().release(self.pointer, self.device)


class DLPackExport(DeviceArray):
    """An array for one `from_dlpack`; it exists until its consumer deletes it."""

    def __init__(self, shape: tuple[int, ...], char: str, device: int):
        super().__init__(shape, char, device)
        self._shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        sizes = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        kind = FLOAT, 8 * SIZE[char], 1
        self._tensor = _Tensor(
            self.pointer, CUDA, device, len(shape), *kind, sizes, None, 0, None, _delete_export
        )

    def finish(self, stream: int) -> None:
        """Wait until all work on the stream is done."""
        driver_bindings.driver().finish(stream, self.device)

    def __dlpack__(self, *, stream: object = None, **options: object) -> Any:
        """The capsule; `finish` was called before, so any stream may read the memory."""
        address = ctypes.addressof(self._tensor)
        _exported[address] = self
        return capsule(address, b"dltensor")


@_Deleter
def _delete_export(tensor: ctypes._Pointer) -> None:
    _exported.pop(ctypes.addressof(tensor.contents), None)
