"""One element at once: a Python callable straight from compiled code (`backends/cpu/fastcall_kernel.py`), where the platform allows it."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi._util.validate import is_foreign
from psiphi.backends.cpu import fastcall_kernel
from psiphi.backends.cpu.gufunc import _umath  # pyright: ignore[reportAttributeAccessIssue]

_NUMPY = {
    "PyArray_New": 93,
    "PyArray_Return": 76,
}  # in NumPy's table _ARRAY_API, the same in 1.26 and 2.x
_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Door:
    """The `self` of a quick function: answers what it does not take, and keeps alive what it points to (CPython drops a
    function's self last, for this very purpose)."""

    def __init__(self, otherwise: Callable, method: _Method, library: Any):
        self.otherwise, self.method, self.library = otherwise, method, library

    def __call__(self, *args, **options):
        return self.otherwise(*args, **options)


def on_the_host(ufunc: np.ufunc) -> Callable:
    """The gufunc, for what it reads by itself: arrays of other libraries let themselves be read, and lose what they know."""

    def call(*args, **options):
        if any(map(is_foreign, args)):
            raise TypeError("an array of torch or JAX, or of a graphics card")
        return ufunc(*args, **options)

    return call


def quickcall(library: Any, otherwise: Callable, name: str) -> Any:
    """A callable that runs the library's @quick, and `otherwise` for whatever @quick does not take; None if it cannot be."""
    table = _table()
    if table is None:
        return None
    place = (ctypes.c_void_p * len(table)).from_address(library.address("quick.table"))
    place[:] = table
    method = _Method(name.encode(), int(library.address("quick")), _FASTCALL_WITH_KEYWORDS, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p],
    )
    return make(ctypes.addressof(method), _Door(otherwise, method, library), None)


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...] | None:
    """What @quick needs of this process; None where its assumptions do not hold."""
    plain = sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
    if (
        not plain
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or sysconfig.get_config_var("Py_TRACE_REFS")
    ):
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    numpy = ctypes.cast(get(_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    python = [
        getattr(ctypes.pythonapi, name, None)
        for name in fastcall_kernel.FUNCTIONS[len(fastcall_kernel.OF_NUMPY) :]
    ]
    functions = [numpy[_NUMPY[name]] for name in fastcall_kernel.OF_NUMPY]
    functions += [
        ctypes.cast(function, ctypes.c_void_p).value if function else None for function in python
    ]
    if (
        not all(functions)
        or not _layout_is_known()
        or not _makes_arrays(functions[0])
        or not _makes_numbers(functions[1])
    ):
        return None
    return id(np.ndarray), id(np.dtype(np.float64)), *functions


def _layout_is_known() -> bool:
    """Do arrays lie in memory as `backends/cpu/fastcall_kernel.py` says?"""
    x = np.arange(12.0)[1:11:3]
    at, word = id(x), ctypes.c_int64
    read = lambda offset: word.from_address(at + offset).value  # noqa: E731
    if read(fastcall_kernel.TYPE) != id(np.ndarray) or read(fastcall_kernel.DATA) != x.ctypes.data:
        return False
    if ctypes.c_int32.from_address(at + fastcall_kernel.NDIM).value != 1 or read(
        fastcall_kernel.DESCRIPTOR
    ) != id(x.dtype):
        return False
    return (
        word.from_address(read(fastcall_kernel.DIMENSIONS)).value == 4
        and word.from_address(read(fastcall_kernel.STRIDES)).value == 24
    )


def _makes_arrays(address: int) -> bool:
    """Is the function at this address PyArray_New?"""
    obj, number, pointer = ctypes.py_object, ctypes.c_int, ctypes.c_void_p
    make = ctypes.PYFUNCTYPE(
        obj, obj, number, pointer, number, pointer, pointer, number, number, pointer
    )(address)
    made = make(
        np.ndarray, 2, (ctypes.c_ssize_t * 2)(3, 5), fastcall_kernel.DOUBLE, None, None, 0, 0, None
    )
    return (
        type(made) is np.ndarray
        and made.shape == (3, 5)
        and made.strides == (40, 8)
        and made.dtype == np.float64
    )


def _makes_numbers(address: int) -> bool:
    """Is the function at this address PyArray_Return? It takes an array as its own, and answers the number in it."""
    obj, array = ctypes.py_object, np.array(2.5)
    ctypes.pythonapi.Py_IncRef(obj(array))
    made = ctypes.PYFUNCTYPE(obj, obj)(address)(array)
    return type(made) is np.float64 and made == 2.5
