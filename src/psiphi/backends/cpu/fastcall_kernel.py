"""A loop's door for one element: a C function of CPython's calling convention around the gufunc loop.

    quick(self, args, nargs, kwnames)      METH_FASTCALL | METH_KEYWORDS

NumPy's gufunc machinery costs more than a small robot's dynamics. Where every argument is a plain float64 array of the right
shape, the loop runs at once on its memory; everything else is handed to `self`, the ordinary door.
What it needs of Python and NumPy comes through the table @quick.table, set after loading: what TABLE names, in that order.
Offsets are those of `PyArrayObject_fields`, which is part of NumPy's ABI; `backends/cpu/scalar_call.py` checks them before any use.
"""

from __future__ import annotations

from psiphi.compiler.sweeps.sweep_program import Argument

TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTOR = 8, 16, 24, 32, 40, 56
DOUBLE, WORD = 12, 8  # NPY_DOUBLE; bytes of a float64
OBJECTS = ("ndarray", "float64")
OF_NUMPY = ("PyArray_New", "PyArray_Return")
FUNCTIONS = (*OF_NUMPY, "PyObject_Vectorcall", "PyTuple_New", "PyTuple_SetItem", "Py_DecRef")
TABLE = OBJECTS + FUNCTIONS


def fits(inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]) -> bool:
    """Vectors and matrices in and out, or one number out; none of them empty."""
    every = (*inputs, *(() if _is_number(outputs) else outputs))
    return bool(inputs) and all(len(arg.shape) in (1, 2) and arg.size for arg in every)


def _is_number(outputs: tuple[Argument, ...]) -> bool:
    return [arg.shape for arg in outputs] == [()]


def quick(inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], loop: str) -> str:
    """The text of @quick around @loop, for float64."""
    every = len(inputs) + len(outputs)
    core = sum(len(arg.shape) for arg in (*inputs, *outputs))
    dims = [
        f"@quick.dims{k} = private constant [{len(arg.shape)} x i64] [{', '.join(f'i64 {x}' for x in arg.shape)}]"
        for k, arg in enumerate(outputs)
    ]
    checks = [line for i, arg in enumerate(inputs) for line in _checks(i, arg.shape, f"next{i}")]
    loads, place = [], every
    for i, arg in enumerate(inputs):
        loads += _load(i, place, len(arg.shape))
        place += len(arg.shape)
    newline = "\n  "
    return f"""@quick.table = global [{len(TABLE)} x ptr] zeroinitializer
{chr(10).join(dims)}

define ptr @quick(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind {{
entry:
  %pointers = alloca [{every} x ptr]
  %steps = alloca [{every + core} x i64]
  %one = alloca i64
  {newline.join(_entry("ndarray") + _entry("float64"))}
  %named = icmp ne ptr %kwnames, null
  %many = icmp ne i64 %nargs, {len(inputs)}
  %odd = or i1 %named, %many
  br i1 %odd, label %slow, label %next
next:
  {newline.join(checks)}
  {newline.join(_outputs(outputs, len(inputs), place))}
run:
  {newline.join(loads)}
  store i64 1, ptr %one
  call void @{loop}(ptr %pointers, ptr %one, ptr %steps, ptr null)
  {newline.join(_answer(outputs))}
{newline.join(_lost(outputs))}
nothing:
  ret ptr null
slow:
  {newline.join(_entry("PyObject_Vectorcall"))}
  %answer = call ptr %PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}}
"""


def _entry(name: str) -> list[str]:
    """%name from the table."""
    return [
        f"%{name}.p = getelementptr ptr, ptr @quick.table, i64 {TABLE.index(name)}",
        f"%{name} = load ptr, ptr %{name}.p",
    ]


def _answer(outputs: tuple[Argument, ...]) -> list[str]:
    """An array, the number in it, or a tuple of arrays."""
    if _is_number(outputs):
        return [
            *_entry("PyArray_Return"),
            "%number = call ptr %PyArray_Return(ptr %out0)",
            "ret ptr %number",
        ]
    return [f"ret ptr %{'tuple' if len(outputs) > 1 else 'out0'}"]


def _outputs(outputs: tuple[Argument, ...], n: int, place: int) -> list[str]:
    """New arrays in the order of C, their memory and strides in place; several stand in a tuple, which owns them at once."""
    several = len(outputs) > 1
    lines = _entry("PyArray_New")
    if several:
        lines += [
            *_entry("PyTuple_New"),
            *_entry("PyTuple_SetItem"),
            f"%tuple = call ptr %PyTuple_New(i64 {len(outputs)})",
        ]
        lines += [
            "%no.tuple = icmp eq ptr %tuple, null",
            "br i1 %no.tuple, label %nothing, label %make0",
            "make0:",
        ]
    for k, arg in enumerate(outputs):
        nd, after = len(arg.shape), "run" if k == len(outputs) - 1 else f"make{k + 1}"
        lines += [
            f"%out{k} = call ptr %PyArray_New(ptr %ndarray, i32 {nd}, ptr @quick.dims{k}, i32 {DOUBLE}, ptr null, ptr null, "
            "i32 0, i32 0, ptr null)",
            f"%failed{k} = icmp eq ptr %out{k}, null",
            f"br i1 %failed{k}, label %{'lost' if several else 'nothing'}, label %made{k}",
            f"made{k}:",
        ]
        if several:
            lines.append(f"%set{k} = call i32 %PyTuple_SetItem(ptr %tuple, i64 {k}, ptr %out{k})")
        lines += [
            f"%out.data.p{k} = getelementptr i8, ptr %out{k}, i64 {DATA}",
            f"%out.data{k} = load ptr, ptr %out.data.p{k}",
            f"%out.slot{k} = getelementptr ptr, ptr %pointers, i64 {n + k}",
            f"store ptr %out.data{k}, ptr %out.slot{k}",
        ]
        for d in range(nd):
            stride = WORD if d == nd - 1 else WORD * arg.shape[-1]
            lines += [
                f"%out.core{k}.{d} = getelementptr i64, ptr %steps, i64 {place}",
                f"store i64 {stride}, ptr %out.core{k}.{d}",
            ]
            place += 1
        lines.append(f"br label %{after}")
        if after != "run":
            lines.append(f"{after}:")
    return lines


def _lost(outputs: tuple[Argument, ...]) -> list[str]:
    """No memory for one of several arrays: the tuple goes, with those it has."""
    return (
        ["lost:", *_entry("Py_DecRef"), "call void %Py_DecRef(ptr %tuple)", "ret ptr null"]
        if len(outputs) > 1
        else []
    )


def _load(i: int, place: int, nd: int) -> list[str]:
    """The memory of input i, and its strides."""
    lines = [
        f"%data.p{i} = getelementptr i8, ptr %x{i}, i64 {DATA}",
        f"%data{i} = load ptr, ptr %data.p{i}",
        f"%slot{i} = getelementptr ptr, ptr %pointers, i64 {i}",
        f"store ptr %data{i}, ptr %slot{i}",
        f"%strides.p{i} = getelementptr i8, ptr %x{i}, i64 {STRIDES}",
        f"%strides{i} = load ptr, ptr %strides.p{i}",
    ]
    for d in range(nd):
        lines += [
            f"%stride.p{i}.{d} = getelementptr i64, ptr %strides{i}, i64 {d}",
            f"%stride{i}.{d} = load i64, ptr %stride.p{i}.{d}",
            f"%core{i}.{d} = getelementptr i64, ptr %steps, i64 {place + d}",
            f"store i64 %stride{i}.{d}, ptr %core{i}.{d}",
        ]
    return lines


def _checks(i: int, shape: tuple[int, ...], after: str) -> list[str]:
    """Argument i is exactly an ndarray, of float64, of this shape; else the slow way."""
    lines = [
        f"%arg{i} = getelementptr ptr, ptr %args, i64 {i}",
        f"%x{i} = load ptr, ptr %arg{i}",
        f"%type.p{i} = getelementptr i8, ptr %x{i}, i64 {TYPE}",
        f"%type{i} = load ptr, ptr %type.p{i}",
        f"%plain{i} = icmp eq ptr %type{i}, %ndarray",
        f"br i1 %plain{i}, label %array{i}, label %slow",
        f"array{i}:",
        f"%nd.p{i} = getelementptr i8, ptr %x{i}, i64 {NDIM}",
        f"%nd{i} = load i32, ptr %nd.p{i}",
        f"%flat{i} = icmp eq i32 %nd{i}, {len(shape)}",
        f"%descr.p{i} = getelementptr i8, ptr %x{i}, i64 {DESCRIPTOR}",
        f"%descr{i} = load ptr, ptr %descr.p{i}",
        f"%real{i} = icmp eq ptr %descr{i}, %float64",
        f"%good{i} = and i1 %flat{i}, %real{i}",
        f"br i1 %good{i}, label %axis{i}.0, label %slow",
        f"axis{i}.0:",
        f"%dims.p{i} = getelementptr i8, ptr %x{i}, i64 {DIMENSIONS}",
        f"%dims{i} = load ptr, ptr %dims.p{i}",
    ]
    for d, size in enumerate(shape):
        fits = after if d == len(shape) - 1 else f"axis{i}.{d + 1}"
        lines += [
            f"%size.p{i}.{d} = getelementptr i64, ptr %dims{i}, i64 {d}",
            f"%size{i}.{d} = load i64, ptr %size.p{i}.{d}",
            f"%long{i}.{d} = icmp eq i64 %size{i}.{d}, {size}",
            f"br i1 %long{i}.{d}, label %{fits}, label %slow",
            f"{fits}:",
        ]
    return lines
