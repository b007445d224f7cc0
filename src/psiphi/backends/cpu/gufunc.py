"""A true NumPy gufunc from the addresses of native loops, through NumPy's C API table.

NumPy keeps pointers, not copies, to the table of loops, the types, the name and the doc; everything lives in one `_Body`
that lives as long as its ufunc. A loop may be given as a function that compiles it: its place in the table is then taken by
`_first_call`, which compiles, writes the real address into the table (NumPy reads the table again at every call) and goes on
to the real loop, so later calls cost nothing extra.

An exception cannot cross NumPy's inner loop. When a compilation fails inside a call, the outputs become NaN, a
RuntimeWarning says why, and `pending_error(ufunc)` hands the exception over; `threads.run` raises it.
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
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from psiphi._util.errors import Error, StateError

try:
    from numpy._core import _multiarray_umath as _umath  # type: ignore[import]  # NumPy 2
except ImportError:
    from numpy.core import _multiarray_umath as _umath  # type: ignore[import]  # NumPy 1.26

# Places in the table _UFUNC_API, fixed by NumPy's ABI (numpy/__ufunc_api.h), the same in 1.26 and 2.x.
_CLEAR_FP_ERRORS = 27  # PyUFunc_clearfperr
_FROM_SIGNATURE = 31  # PyUFunc_FromFuncAndDataAndSignature
_NO_IDENTITY = -1  # PyUFunc_None

# void loop(char **args, npy_intp *dims, npy_intp *steps, void *data), and its pointers as plain integers
_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_INTPS = ctypes.POINTER(ctypes.c_ssize_t)

_serial = itertools.count(1)
_lazy: WeakValueDictionary[int, _Loop] = WeakValueDictionary()
_bodies: dict[
    int, _Body
] = {}  # NumPy < 2.2 only: by id(ufunc); a reused id means that the old ufunc is gone
failed: set[int] = set()  # serial numbers of loops with a pending error; empty in a healthy process


def gufunc(
    name: str,
    signature: str,
    loops: dict[str, int | Callable[[], int]],
    doc: bytes,
    nin: int,
    nout: int,
) -> np.ufunc:
    """A NumPy gufunc: `gufunc("mass_matrix", "(7)->(6,6)", {"d": address, "f": compile_float}, b"...", 1, 1)`.

    `loops` maps the dtype characters 'd' and 'f' to the address of a native loop or to a function that compiles it at the
    first call with that dtype. float32 arguments use 'f'; everything else that NumPy casts safely (whole numbers, lists,
    mixtures) uses 'd'. An address may be an int subclass that owns its code: it is kept.
    """
    operands = core_dims(signature)
    if len(operands) != nin + nout or not loops or not set(loops) <= {"d", "f"}:
        raise Error(
            f"internal: gufunc {name}{signature} with nin={nin}, nout={nout}, loops for {sorted(loops)}"
        )
    inputs = {dim for core in operands[:nin] for dim in core}
    if any(dim == "0" for core in operands[nin:] for dim in core) and "0" not in inputs:
        raise Error(
            f"{name}{signature}: an output is empty and no input is",
            "return an empty array without calling code",
        )
    body, shapes = _Body(name, operands, loops, doc, nin), _numpy_signature(operands, nin)
    ufunc = _make(
        *body.c_arguments(), nin, nout, _NO_IDENTITY, body.name, body.doc, 0, shapes.encode()
    )
    try:
        vars(ufunc)["_psiphi"] = body
    except TypeError:  # NumPy < 2.2: a ufunc has no __dict__
        _bodies[id(ufunc)] = body
    return ufunc


def prepare(ufunc: np.ufunc, char: str = "d") -> None:
    """Compile the loop of one dtype now, raising what its compilation raises."""
    for loop in _body(ufunc).loops:
        if loop.char == char:
            loop.resolve()


def pending_error(ufunc: np.ufunc) -> BaseException | None:
    """The exception of the last call that failed inside the loop, once; None when there is none."""
    for loop in _body(ufunc).loops:
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
    """The signature as NumPy wants it: sizes as numbers, except 0, which it refuses and which becomes the name `zero`."""
    texts = [
        "(" + ",".join("zero" if dim == "0" else dim for dim in core) + ")" for core in operands
    ]
    return ",".join(texts[:nin]) + "->" + ",".join(texts[nin:])


class _Body:
    """All memory that a ufunc points to."""

    def __init__(
        self,
        name: str,
        operands: tuple,
        loops: dict[str, int | Callable[[], int]],
        doc: bytes,
        nin: int,
    ):
        # 'd' first: NumPy takes the first loop its arguments cast to, unless one matches exactly (float32 finds 'f').
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
    """One dtype's place in the table: its address, or how to get it."""

    def __init__(self, body: _Body, index: int, char: str, source: Any, operands: tuple, nin: int):
        self.name, self.table, self.index, self.char = body.name.decode(), body.table, index, char
        self.source: Any = source if callable(source) else None
        self.address: Any = None if callable(source) else source
        self.operands, self.nin, self.serial, self.lock = (
            operands,
            nin,
            next(_serial),
            threading.Lock(),
        )
        self.names = list(dict.fromkeys(dim for core in operands for dim in core))
        self.error: BaseException | None = None  # of the last call
        self.failure: Exception | None = None  # of the compilation, which is not tried twice
        _lazy[self.serial] = self
        self.table[index] = ctypes.cast(_first_call, ctypes.c_void_p).value
        if self.address is not None:
            self.resolve()

    def __del__(self):
        if failed:  # empty in a healthy process, gone when the interpreter ends
            failed.discard(self.serial)

    def resolve(self) -> int:
        """The address of the native loop, compiled when it is first asked for."""
        with self.lock:
            if self.failure is not None:
                raise self.failure
            if self.address is None:
                try:
                    self.address = self.source()
                except Exception as failure:
                    self.failure = failure
                    raise
                self.source = None
            if "0" not in self.names:  # loops with empty operands stay behind `check`
                self.table[self.index] = int(self.address)
            return self.address

    def check(self, dims: Any) -> None:
        """NumPy takes any size for the name `zero`: only 0 is right."""
        if "0" in self.names and (size := dims[1 + self.names.index("0")]) != 0:
            raise StateError(
                f"{self.name}: an argument has {size} elements, expected 0",
                "pass an empty array there",
            )

    def fail(self, error: BaseException, args: int, dims: Any, steps: Any) -> None:
        """Make the failure of a call visible: NaN outputs, a warning, an exception to collect."""
        self.error = error
        failed.add(self.serial)
        for output in self._outputs(args, dims, steps):
            output[...] = np.nan
        with suppress(RuntimeWarning):  # where warnings are errors: it could not cross the loop
            warnings.warn(
                f"{self.name} returns NaN: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=3,
            )

    def _outputs(self, args: int, dims: Any, steps: Any) -> list[np.ndarray]:
        sizes = {name: dims[1 + i] for i, name in enumerate(self.names)}
        pointers = ctypes.cast(args, ctypes.POINTER(ctypes.c_void_p))
        core_steps, outputs = len(self.operands), []
        for i, core in enumerate(self.operands):
            strides = (steps[i], *(steps[core_steps + k] for k in range(len(core))))
            core_steps += len(core)
            if i >= self.nin:
                shape = (dims[0], *(sizes[dim] for dim in core))
                outputs.append(
                    np.asarray(_Memory(pointers[i], shape, strides, np.dtype(self.char).str))
                )
        return outputs


class _Memory:
    """Strided memory that NumPy handed to a loop, for np.asarray to wrap."""

    def __init__(self, address: int | None, shape: tuple, strides: tuple, typestr: str):
        self.__array_interface__ = {
            "version": 3, "data": (address or 0, False), "shape": shape, "strides": strides, "typestr": typestr
        }  # fmt: skip


def _body(ufunc: np.ufunc) -> _Body:
    body = getattr(ufunc, "__dict__", {}).get("_psiphi") or _bodies.get(id(ufunc))
    if body is None:
        raise Error(f"{ufunc!r} was not made by psiphi")
    return body


@_LOOP
def _first_call(args, dims, steps, serial):
    """The loop of a dtype that is not compiled yet. One callback serves all ufuncs: `data` says which loop it is."""
    loop = _lazy[serial]
    sizes, strides = ctypes.cast(dims, _INTPS), ctypes.cast(steps, _INTPS)
    try:
        loop.check(sizes)
        native = _LOOP(loop.resolve())
    except BaseException as error:
        loop.fail(error, args, sizes, strides)
    else:
        _clear_fp_errors()  # whatever the compilation did is not the user's arithmetic
        native(args, dims, steps, serial)


def _api() -> Any:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get_pointer(_umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))


def _make_prototype() -> Any:
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    counts = [number] * 4  # ntypes, nin, nout, identity
    return ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, pointer, *counts, text, text, number, text
    )


def _forget_locks() -> None:
    """A forked child has none of its parent's threads, and a lock that one of them held is never released: it gets new ones.

    What they were compiling, it compiles itself when it needs it. (A fork waits for LLVM, `jit.py`; the rest is Python, which
    a fork meets between two steps.) Before Python 3.12 a cached property has a lock as well.
    """
    for loop in list(_lazy.values()):
        loop.lock = threading.Lock()
    if sys.version_info < (3, 12):
        for name, module in list(sys.modules.items()):
            if name.startswith("psiphi."):
                _forget_property_locks(module)


def _forget_property_locks(module: Any) -> None:
    for kind in list(vars(module).values()):
        if isinstance(kind, type):
            for attribute in vars(kind).values():
                if isinstance(attribute, cached_property):
                    attribute.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)

_clear_fp_errors = ctypes.CFUNCTYPE(None)(_api()[_CLEAR_FP_ERRORS])
_make = _make_prototype()(_api()[_FROM_SIGNATURE])
