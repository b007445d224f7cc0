"""A C function with CPython's calling convention that runs the gufunc loop on one element.

    quick(self, args, nargs, kwnames)      METH_FASTCALL | METH_KEYWORDS

NumPy's gufunc machinery takes longer than the dynamics of a small robot. If every argument is a
plain float64 array of the right shape, the loop runs directly on its memory; everything else goes
to `self`, the ordinary call. The addresses of Python and NumPy functions are in @quick.table, set
after loading: those named in TABLE, in that order. The offsets are those of
`PyArrayObject_fields`, part of NumPy's ABI; `scalar_call.py` checks them before the first use.
"""

from __future__ import annotations

from psiphi.compiler.sweeps.sweep_program import Argument

TYPE, DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTOR = 8, 16, 24, 32, 40, 56
DOUBLE, WORD = 12, 8  # NPY_DOUBLE; bytes of a float64
OBJECTS = ("ndarray", "float64")
NUMPY_FUNCTIONS = ("PyArray_New", "PyArray_Return")
FUNCTIONS = (*NUMPY_FUNCTIONS, "PyObject_Vectorcall", "PyTuple_New", "PyTuple_SetItem", "Py_DecRef")
TABLE = OBJECTS + FUNCTIONS


def is_supported(inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]) -> bool:
    """Whether arguments are non-empty vectors and matrices, and results too, or a single number."""
    arguments = (*inputs, *(() if _is_number(outputs) else outputs))
    return bool(inputs) and all(len(arg.shape) in (1, 2) and arg.size for arg in arguments)


def _is_number(outputs: tuple[Argument, ...]) -> bool:
    return [arg.shape for arg in outputs] == [()]


def fastcall_function(
    inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], loop: str
) -> str:
    """The text of @quick around @loop, for float64."""
    count = len(inputs) + len(outputs)
    core = sum(len(arg.shape) for arg in (*inputs, *outputs))
    dims = [
        f"@quick.dims{k} = private constant [{len(arg.shape)} x i64] "
        f"[{', '.join(f'i64 {x}' for x in arg.shape)}]"
        for k, arg in enumerate(outputs)
    ]
    checks = [
        line for i, arg in enumerate(inputs) for line in _check_input(i, arg.shape, f"next{i}")
    ]
    loads, place = [], count
    for i, arg in enumerate(inputs):
        loads += _load_input(i, place, len(arg.shape))
        place += len(arg.shape)
    newline = "\n  "
    return f"""@quick.table = global [{len(TABLE)} x ptr] zeroinitializer
{chr(10).join(dims)}

define ptr @quick(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) nounwind {{
entry:
  %pointers = alloca [{count} x ptr]
  %steps = alloca [{count + core} x i64]
  %one = alloca i64
  {newline.join(_load_pointer("ndarray") + _load_pointer("float64"))}
  %named = icmp ne ptr %kwnames, null
  %many = icmp ne i64 %nargs, {len(inputs)}
  %odd = or i1 %named, %many
  br i1 %odd, label %slow, label %next
next:
  {newline.join(checks)}
  {newline.join(_make_outputs(outputs, len(inputs), place))}
run:
  {newline.join(loads)}
  store i64 1, ptr %one
  call void @{loop}(ptr %pointers, ptr %one, ptr %steps, ptr null)
  {newline.join(_return_results(outputs))}
{newline.join(_drop_tuple(outputs))}
nothing:
  ret ptr null
slow:
  {newline.join(_load_pointer("PyObject_Vectorcall"))}
  %answer = call ptr %PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %answer
}}
"""


def _load_pointer(name: str) -> list[str]:
    """%<name>: the pointer `name` of the table."""
    return [
        f"%{name}.p = getelementptr ptr, ptr @quick.table, i64 {TABLE.index(name)}",
        f"%{name} = load ptr, ptr %{name}.p",
    ]


def _return_results(outputs: tuple[Argument, ...]) -> list[str]:
    """Return an array, the number in it, or a tuple of arrays."""
    if _is_number(outputs):
        return [
            *_load_pointer("PyArray_Return"),
            "%number = call ptr %PyArray_Return(ptr %out0)",
            "ret ptr %number",
        ]
    return [f"ret ptr %{'tuple' if len(outputs) > 1 else 'out0'}"]


def _make_outputs(outputs: tuple[Argument, ...], n: int, place: int) -> list[str]:
    """New C-contiguous arrays, with their pointers and strides for the loop.

    Several arrays are put into a tuple, which owns each as soon as it is made.
    """
    several = len(outputs) > 1
    lines = _load_pointer("PyArray_New")
    if several:
        lines += [
            *_load_pointer("PyTuple_New"),
            *_load_pointer("PyTuple_SetItem"),
            f"%tuple = call ptr %PyTuple_New(i64 {len(outputs)})",
        ]
        lines += [
            "%no.tuple = icmp eq ptr %tuple, null",
            "br i1 %no.tuple, label %nothing, label %make0",
            "make0:",
        ]
    for k, arg in enumerate(outputs):
        nd, next_label = len(arg.shape), "run" if k == len(outputs) - 1 else f"make{k + 1}"
        lines += [
            f"%out{k} = call ptr %PyArray_New(ptr %ndarray, i32 {nd}, ptr @quick.dims{k}, "
            f"i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)",
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
        lines.append(f"br label %{next_label}")
        if next_label != "run":
            lines.append(f"{next_label}:")
    return lines


def _drop_tuple(outputs: tuple[Argument, ...]) -> list[str]:
    """If one of several arrays cannot be allocated: release the tuple and its arrays."""
    return (
        ["lost:", *_load_pointer("Py_DecRef"), "call void %Py_DecRef(ptr %tuple)", "ret ptr null"]
        if len(outputs) > 1
        else []
    )


def _load_input(i: int, place: int, nd: int) -> list[str]:
    """The pointer and the strides of input i, for the loop."""
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


def _check_input(i: int, shape: tuple[int, ...], next_label: str) -> list[str]:
    """Check that argument i is exactly an ndarray of float64 of this shape; else go to %slow."""
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
        label = next_label if d == len(shape) - 1 else f"axis{i}.{d + 1}"
        lines += [
            f"%size.p{i}.{d} = getelementptr i64, ptr %dims{i}, i64 {d}",
            f"%size{i}.{d} = load i64, ptr %size.p{i}.{d}",
            f"%long{i}.{d} = icmp eq i64 %size{i}.{d}, {size}",
            f"br i1 %long{i}.{d}, label %{label}, label %slow",
            f"{label}:",
        ]
    return lines
