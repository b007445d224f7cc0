"""Calls for one element without NumPy's overhead: a Python callable made from compiled code.

The code is that of `fastcall_kernel.py`; CPython, a 64-bit platform and the GIL are required.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from psiphi._util.validate import is_foreign
from psiphi.backends.cpu import fastcall_kernel
from psiphi.backends.cpu.gufunc import numpy_umath  # pyright: ignore[reportAttributeAccessIssue]
from psiphi.backends.llvm.jit import Library

# indices in NumPy's table _ARRAY_API, the same in 1.26 and 2.x
_NUMPY_API = {"PyArray_New": 93, "PyArray_Return": 76}
_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Fallback:
    """The `self` of a fast call: handles the arguments that the fast call does not support.

    It also keeps the memory of the function alive: CPython releases a function's `self` last.
    """

    def __init__(self, fallback: Callable, method: _Method, library: Library):
        self.fallback, self.method, self.library = fallback, method, library

    def __call__(self, *args, **options):
        return self.fallback(*args, **options)


def reject_foreign(ufunc: np.ufunc) -> Callable:
    """The gufunc, but a TypeError for arrays of torch or JAX, which would lose their gradients."""

    def call(*args, **options):
        if any(map(is_foreign, args)):
            raise TypeError("an array of torch or JAX, or an array on a GPU")
        return ufunc(*args, **options)

    return call


def fast_call(library: Library, fallback: Callable, name: str) -> Callable | None:
    """A callable that runs the library's @quick; None if the platform does not support it.

    It calls `fallback` for arguments that @quick does not support.
    """
    table = _function_table()
    if table is None:
        return None
    slots = (ctypes.c_void_p * len(table)).from_address(library.address("quick.table"))
    slots[:] = table
    method = _Method(name.encode(), int(library.address("quick")), _FASTCALL_WITH_KEYWORDS, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p],
    )
    return make(ctypes.addressof(method), _Fallback(fallback, method, library), None)


@lru_cache(maxsize=1)
def _function_table() -> tuple[int, ...] | None:
    """The addresses that @quick needs of this process; None if its assumptions do not hold."""
    supported = sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
    if (
        not supported
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or sysconfig.get_config_var("Py_TRACE_REFS")
    ):
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    numpy = ctypes.cast(get(numpy_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    python = [
        getattr(ctypes.pythonapi, name, None)
        for name in fastcall_kernel.FUNCTIONS[len(fastcall_kernel.NUMPY_FUNCTIONS) :]
    ]
    functions = [numpy[_NUMPY_API[name]] for name in fastcall_kernel.NUMPY_FUNCTIONS]
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
    """Whether the fields of an array are at the offsets that `fastcall_kernel.py` uses."""
    x = np.arange(12.0)[1:11:3]
    address, word = id(x), ctypes.c_int64
    read = lambda offset: word.from_address(address + offset).value  # noqa: E731
    if read(fastcall_kernel.TYPE) != id(np.ndarray) or read(fastcall_kernel.DATA) != x.ctypes.data:
        return False
    if ctypes.c_int32.from_address(address + fastcall_kernel.NDIM).value != 1 or read(
        fastcall_kernel.DESCRIPTOR
    ) != id(x.dtype):
        return False
    return (
        word.from_address(read(fastcall_kernel.DIMENSIONS)).value == 4
        and word.from_address(read(fastcall_kernel.STRIDES)).value == 24
    )


def _makes_arrays(address: int) -> bool:
    """Whether the function at this address is PyArray_New."""
    obj, number, pointer = ctypes.py_object, ctypes.c_int, ctypes.c_void_p
    make = ctypes.PYFUNCTYPE(
        obj, obj, number, pointer, number, pointer, pointer, number, number, pointer
    )(address)
    result = make(
        np.ndarray, 2, (ctypes.c_ssize_t * 2)(3, 5), fastcall_kernel.DOUBLE, None, None, 0, 0, None
    )
    return (
        type(result) is np.ndarray
        and result.shape == (3, 5)
        and result.strides == (40, 8)
        and result.dtype == np.float64
    )


def _makes_numbers(address: int) -> bool:
    """Whether the function at this address is PyArray_Return.

    It takes ownership of an array of no axes and returns the number in it.
    """
    obj, array = ctypes.py_object, np.array(2.5)
    ctypes.pythonapi.Py_IncRef(obj(array))
    result = ctypes.PYFUNCTYPE(obj, obj)(address)(array)
    return type(result) is np.float64 and result == 2.5
