"""A loop's door for one element: a C function of CPython's calling convention around the gufunc loop.

    quick(self, args, nargs, kwnames)      METH_FASTCALL | METH_KEYWORDS

NumPy's gufunc machinery costs more than a small robot's dynamics. Where every argument is a plain one-dimensional float64
array of the right length, the loop runs at once on its memory; everything else is handed to `self`, the ordinary door.
What it needs of Python and NumPy comes through the table @quick.table, set after loading: the type ndarray, the float64
descriptor, and the functions PyArray_NewLikeArray and PyObject_Vectorcall. Offsets are those of `PyArrayObject_fields`,
which is part of NumPy's ABI; `runtime/quickcall.py` checks them before any use.
"""

from __future__ import annotations

from psiphi.sweeps.program import Argument

TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTOR = 8, 16, 24, 32, 40, 56
KEEP_ORDER = 2


def fits(inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]) -> bool:
    """Vectors in, one vector out that looks like the last input."""
    vectors = all(len(arg.shape) == 1 and arg.shape[0] > 0 for arg in (*inputs, *outputs))
    return vectors and len(outputs) == 1 and bool(inputs) and inputs[-1].shape == outputs[0].shape


def quick(inputs: tuple[Argument, ...], loop: str) -> str:
    """The text of @quick around @loop, for float64."""
    n = len(inputs)
    checks, loads = [], []
    for i, arg in enumerate(inputs):
        checks += _checks(i, arg.shape[0], f"next{i}")
        loads += [
            f"%data.p{i} = getelementptr i8, ptr %x{i}, i64 {DATA}",
            f"%data{i} = load ptr, ptr %data.p{i}",
            f"%slot{i} = getelementptr ptr, ptr %pointers, i64 {i}",
            f"store ptr %data{i}, ptr %slot{i}",
            f"%stride{i} = load i64, ptr %strides{i}",
            f"%core{i} = getelementptr i64, ptr %steps, i64 {n + 1 + i}",
            f"store i64 %stride{i}, ptr %core{i}",
        ]
    newline = "\n  "
    return f"""@quick.table = global [4 x ptr] zeroinitializer

define ptr @quick(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind {{
entry:
  %pointers = alloca [{n + 1} x ptr]
  %steps = alloca [{2 * (n + 1)} x i64]
  %one = alloca i64
  %ndarray = load ptr, ptr @quick.table
  %double.p = getelementptr ptr, ptr @quick.table, i64 1
  %double = load ptr, ptr %double.p
  %named = icmp ne ptr %kwnames, null
  %many = icmp ne i64 %nargs, {n}
  %odd = or i1 %named, %many
  br i1 %odd, label %slow, label %next
next:
  {newline.join(checks)}
  %new.p = getelementptr ptr, ptr @quick.table, i64 2
  %new = load ptr, ptr %new.p
  %out = call ptr %new(ptr %x{n - 1}, i32 {KEEP_ORDER}, ptr null, i32 0)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %nothing, label %run
run:
  {newline.join(loads)}
  %out.data.p = getelementptr i8, ptr %out, i64 {DATA}
  %out.data = load ptr, ptr %out.data.p
  %out.slot = getelementptr ptr, ptr %pointers, i64 {n}
  store ptr %out.data, ptr %out.slot
  %out.strides.p = getelementptr i8, ptr %out, i64 {STRIDES}
  %out.strides = load ptr, ptr %out.strides.p
  %out.stride = load i64, ptr %out.strides
  %out.core = getelementptr i64, ptr %steps, i64 {2 * n + 1}
  store i64 %out.stride, ptr %out.core
  store i64 1, ptr %one
  call void @{loop}(ptr %pointers, ptr %one, ptr %steps, ptr null)
  ret ptr %out
nothing:
  ret ptr null
slow:
  %call.p = getelementptr ptr, ptr @quick.table, i64 3
  %call = load ptr, ptr %call.p
  %answer = call ptr %call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}}
"""


def _checks(i: int, size: int, after: str) -> list[str]:
    """Argument i is exactly an ndarray, one-dimensional, of float64, of this length; else the slow way."""
    return [
        f"%arg{i} = getelementptr ptr, ptr %args, i64 {i}",
        f"%x{i} = load ptr, ptr %arg{i}",
        f"%type.p{i} = getelementptr i8, ptr %x{i}, i64 {TYPE}",
        f"%type{i} = load ptr, ptr %type.p{i}",
        f"%plain{i} = icmp eq ptr %type{i}, %ndarray",
        f"br i1 %plain{i}, label %array{i}, label %slow",
        f"array{i}:",
        f"%nd.p{i} = getelementptr i8, ptr %x{i}, i64 {NDIM}",
        f"%nd{i} = load i32, ptr %nd.p{i}",
        f"%flat{i} = icmp eq i32 %nd{i}, 1",
        f"%descr.p{i} = getelementptr i8, ptr %x{i}, i64 {DESCRIPTOR}",
        f"%descr{i} = load ptr, ptr %descr.p{i}",
        f"%real{i} = icmp eq ptr %descr{i}, %double",
        f"%good{i} = and i1 %flat{i}, %real{i}",
        f"br i1 %good{i}, label %vector{i}, label %slow",
        f"vector{i}:",
        f"%dims.p{i} = getelementptr i8, ptr %x{i}, i64 {DIMENSIONS}",
        f"%dims{i} = load ptr, ptr %dims.p{i}",
        f"%size{i} = load i64, ptr %dims{i}",
        f"%strides.p{i} = getelementptr i8, ptr %x{i}, i64 {STRIDES}",
        f"%strides{i} = load ptr, ptr %strides.p{i}",
        f"%long{i} = icmp eq i64 %size{i}, {size}",
        f"br i1 %long{i}, label %{after}, label %slow",
        f"{after}:",
    ]
