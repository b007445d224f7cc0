"""A NumPy gufunc from the addresses of native loops, through NumPy's C API table.

NumPy stores pointers to the table of loops, the types, the name and the doc, and does not copy
them. All of these are in a `_GufuncMemory`, which exists as long as its ufunc. A loop may be given
as a function that compiles it. `_compile_and_call` is then in the table in its place: it compiles
the loop, writes its address into the table, which NumPy reads at every call, and calls it. Later
calls have no overhead.

An exception cannot pass through NumPy's inner loop. If a compilation fails inside a call, the
outputs are NaN, a RuntimeWarning gives the reason, and `pending_error(ufunc)` returns the
exception; `threads.run` raises it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np

from psiphi._util.errors import Error, StateError

try:
    from numpy._core import _multiarray_umath as numpy_umath  # type: ignore[import]  # NumPy 2
except ImportError:
    from numpy.core import _multiarray_umath as numpy_umath  # type: ignore[import]  # NumPy 1.26

# Indices in the table _UFUNC_API: part of NumPy's ABI (numpy/__ufunc_api.h), same in 1.26 and 2.x.
_CLEAR_FP_ERRORS = 27  # PyUFunc_clearfperr
_FROM_SIGNATURE = 31  # PyUFunc_FromFuncAndDataAndSignature
_NO_IDENTITY = -1  # PyUFunc_None

# void loop(char **args, npy_intp *dims, npy_intp *steps, void *data), with pointers as integers
_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_INTPS = ctypes.POINTER(ctypes.c_ssize_t)

_serial = itertools.count(1)
_loops: WeakValueDictionary[int, _Loop] = WeakValueDictionary()
# {id(ufunc): memory}, with NumPy < 2.2 only; an id is used again only after its ufunc was deleted
_memory_by_id: dict[int, _GufuncMemory] = {}
failed: set[int] = set()  # serial numbers of loops with a pending error


def gufunc(
    name: str,
    signature: str,
    loops: dict[str, int | Callable[[], int]],
    doc: bytes,
    nin: int,
    nout: int,
) -> np.ufunc:
    """A NumPy gufunc, such as

        gufunc("mass_matrix", "(7)->(6,6)", {"d": address, "f": compile_float}, b"...", 1, 1)

    `loops` maps the dtype characters 'd' and 'f' to the address of a native loop, or to a function
    that compiles it at the first call with that dtype. float32 arguments use 'f'; everything else
    that NumPy casts safely (integers, lists, mixed types) uses 'd'. An address may be an int
    subclass that owns its code; the gufunc keeps a reference to it.
    """
    operands = core_dims(signature)
    if len(operands) != nin + nout or not loops or not set(loops) <= {"d", "f"}:
        counts = f"nin={nin}, nout={nout}, loops for {sorted(loops)}"
        raise Error(f"internal error: gufunc {name}{signature} with {counts}")
    inputs = {dim for core in operands[:nin] for dim in core}
    if any(dim == "0" for core in operands[nin:] for dim in core) and "0" not in inputs:
        raise Error(
            f"{name}{signature}: an output is empty and no input is",
            "return an empty array without a call",
        )
    memory, numpy_signature = (
        _GufuncMemory(name, operands, loops, doc, nin),
        _numpy_signature(operands, nin),
    )
    ufunc = _make(
        *memory.c_arguments(),
        nin,
        nout,
        _NO_IDENTITY,
        memory.name,
        memory.doc,
        0,
        numpy_signature.encode(),
    )
    try:
        vars(ufunc)["_psiphi"] = memory
    except TypeError:  # with NumPy < 2.2 a ufunc has no __dict__
        _memory_by_id[id(ufunc)] = memory
    return ufunc


def prepare(ufunc: np.ufunc, char: str = "d") -> None:
    """Compile the loop of one dtype now; raises what the compilation raises."""
    for loop in gufunc_memory(ufunc).loops:
        if loop.char == char:
            loop.resolve()


def pending_error(ufunc: np.ufunc) -> BaseException | None:
    """The exception of the last call that failed inside the loop, returned once; else None."""
    for loop in gufunc_memory(ufunc).loops:
        error, loop.error = loop.error, None
        failed.discard(loop.serial)
        if error is not None:
            return error
    return None


@lru_cache(maxsize=1024)
def core_dims(signature: str) -> tuple[tuple[str, ...], ...]:
    """The core dimensions of each operand: "(7),(6)->(6,6)" gives (("7",), ("6",), ("6", "6"))."""
    groups = re.findall(r"\(([^()]*)\)", signature)
    return tuple(tuple(dim.strip() for dim in group.split(",") if dim.strip()) for group in groups)


def _numpy_signature(operands: tuple[tuple[str, ...], ...], nin: int) -> str:
    """The signature for NumPy: NumPy rejects a size of 0, which becomes the name `zero`."""
    texts = [
        "(" + ",".join("zero" if dim == "0" else dim for dim in core) + ")" for core in operands
    ]
    return ",".join(texts[:nin]) + "->" + ",".join(texts[nin:])


class _Integers(Protocol):
    """A C array of integers."""

    def __getitem__(self, index: int, /) -> int: ...


class _GufuncMemory:
    """All memory that a ufunc has pointers to."""

    def __init__(
        self,
        name: str,
        operands: tuple,
        loops: dict[str, int | Callable[[], int]],
        doc: bytes,
        nin: int,
    ):
        # 'd' first: NumPy takes the first loop to which its arguments cast, unless one matches
        # exactly (float32 uses 'f').
        chars = sorted(loops)
        self.name, self.doc = name.encode(), doc
        self.table = (ctypes.c_void_p * len(chars))()
        self.loops = [
            _Loop(self, i, char, loops[char], operands, nin) for i, char in enumerate(chars)
        ]
        self.data = (ctypes.c_void_p * len(chars))(*(loop.serial for loop in self.loops))
        types = bytes(np.dtype(char).num for char in chars for _ in operands)
        self.types = ctypes.create_string_buffer(types, len(types))

    def c_arguments(self) -> tuple[int, int, int, int]:
        return (
            ctypes.addressof(self.table),
            ctypes.addressof(self.data),
            ctypes.addressof(self.types),
            len(self.loops),
        )


class _Loop:
    """The loop of one dtype: its address, or the function that compiles it."""

    def __init__(
        self,
        memory: _GufuncMemory,
        index: int,
        char: str,
        source: int | Callable[[], int],
        operands: tuple,
        nin: int,
    ):
        self.name, self.table, self.index, self.char = (
            memory.name.decode(),
            memory.table,
            index,
            char,
        )
        self.source: Callable[[], int] | None = source if callable(source) else None
        self.address: int | None = None if callable(source) else source
        self.operands, self.nin, self.serial, self.lock = (
            operands,
            nin,
            next(_serial),
            threading.Lock(),
        )
        self.names = list(dict.fromkeys(dim for core in operands for dim in core))
        self.error: BaseException | None = None  # of the last call
        self.failure: Exception | None = None  # of the compilation, which is not repeated
        _loops[self.serial] = self
        self.table[index] = ctypes.cast(_compile_and_call, ctypes.c_void_p).value
        if self.address is not None:
            self.resolve()

    def __del__(self):
        if failed:  # None when the interpreter exits
            failed.discard(self.serial)

    def resolve(self) -> int:
        """The address of the native loop; compiles it at the first use."""
        with self.lock:
            if self.failure is not None:
                raise self.failure
            if self.address is None:
                assert self.source is not None
                try:
                    self.address = self.source()
                except Exception as failure:
                    self.failure = failure
                    raise
                self.source = None
            if "0" not in self.names:  # loops with empty operands always go through `check`
                self.table[self.index] = int(self.address)
            return self.address

    def check(self, dims: _Integers) -> None:
        """Check operands of size 0: NumPy accepts any size for the name `zero`."""
        if "0" in self.names and (size := dims[1 + self.names.index("0")]) != 0:
            raise StateError(
                f"{self.name}: an argument has {size} elements, expected 0",
                "pass an empty array",
            )

    def fail(self, error: BaseException, args: int, dims: _Integers, steps: _Integers) -> None:
        """Report the failure of a call: NaN outputs, a warning, and a pending exception."""
        self.error = error
        failed.add(self.serial)
        for output in self._outputs(args, dims, steps):
            output[...] = np.nan
        with suppress(RuntimeWarning):  # a warning turned into an error cannot leave the loop
            warnings.warn(
                f"{self.name} returns NaN: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=3,
            )

    def _outputs(self, args: int, dims: _Integers, steps: _Integers) -> list[np.ndarray]:
        sizes = {name: dims[1 + i] for i, name in enumerate(self.names)}
        pointers = ctypes.cast(args, ctypes.POINTER(ctypes.c_void_p))
        core_steps, outputs = len(self.operands), []
        for i, core in enumerate(self.operands):
            strides = (steps[i], *(steps[core_steps + k] for k in range(len(core))))
            core_steps += len(core)
            if i >= self.nin:
                shape = (dims[0], *(sizes[dim] for dim in core))
                outputs.append(
                    np.asarray(_StridedMemory(pointers[i], shape, strides, np.dtype(self.char).str))
                )
        return outputs


class _StridedMemory:
    """Strided memory that NumPy passed to a loop, to be wrapped by np.asarray."""

    def __init__(self, address: int | None, shape: tuple, strides: tuple, typestr: str):
        self.__array_interface__ = {
            "version": 3,
            "data": (address or 0, False),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
        }


def gufunc_memory(ufunc: np.ufunc) -> _GufuncMemory:
    memory = getattr(ufunc, "__dict__", {}).get("_psiphi") or _memory_by_id.get(id(ufunc))
    if memory is None:
        raise Error(f"{ufunc!r} was not made by psiphi")
    return memory


@_LOOP
def _compile_and_call(args, dims, steps, serial):
    """The loop of a dtype that is not compiled yet; `serial` tells which of all ufuncs it is."""
    loop = _loops[serial]
    sizes, strides = ctypes.cast(dims, _INTPS), ctypes.cast(steps, _INTPS)
    try:
        loop.check(sizes)
        native = _LOOP(loop.resolve())
    except BaseException as error:
        loop.fail(error, args, sizes, strides)
    else:
        _clear_fp_errors()  # flags of the compilation are not those of the user's arithmetic
        native(args, dims, steps, serial)


def _ufunc_api() -> Any:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(numpy_umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))


def _make_prototype() -> Any:
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    counts = [number] * 4  # ntypes, nin, nout, identity
    return ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, pointer, *counts, text, text, number, text
    )


def _renew_locks() -> None:
    """Replace all locks in a forked child: a lock held by a thread of the parent is never released.

    The child compiles again what such a thread was compiling. (A fork waits for LLVM, see `jit.py`;
    the rest is Python code.) Before Python 3.12, cached properties have locks as well.
    """
    for loop in list(_loops.values()):
        loop.lock = threading.Lock()
    if sys.version_info < (3, 12):
        for name, module in list(sys.modules.items()):
            if name.startswith("psiphi."):
                _renew_property_locks(module)


def _renew_property_locks(module: ModuleType) -> None:
    for class_ in list(vars(module).values()):
        if isinstance(class_, type):
            for attribute in vars(class_).values():
                if isinstance(attribute, cached_property):
                    attribute.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)

_clear_fp_errors = ctypes.CFUNCTYPE(None)(_ufunc_api()[_CLEAR_FP_ERRORS])
_make = _make_prototype()(_ufunc_api()[_FROM_SIGNATURE])
