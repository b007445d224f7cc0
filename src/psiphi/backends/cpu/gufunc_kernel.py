"""A whole kernel as LLVM IR: the NumPy gufunc loop around the code of a block of elements.

loop(args, dims, steps, data)   one element: plain scalars; more: blocks of `lanes` elements.
                                A module with blocks of one width takes them for all; @other, if
                                set after loading, is the loop for the other counts
pack, unpack, deliver           arrays of any strides to the lanes of the frame, and back; in
                                the last block, idle lanes repeat the last element
block                           the code of one block, on a frame of inputs, outputs and slots
tables                          the address of a loop kernel's tables; set after loading
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from numpy import ndindex

from psiphi.backends.cpu import fastcall_kernel
from psiphi.backends.cpu.input_pack import pack, tail_argument, unpack
from psiphi.backends.cpu.input_strides import (
    CELL,
    next_block_cell,
    next_cell,
    read_separate,
    separate_cell,
    test_side_by_side,
)
from psiphi.backends.cpu.output_transpose import place_tables, scattered_stores
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.sincos import sincos, sincos_loop
from psiphi.compiler.sweeps.sweep_program import Argument

MAX_STACK_FRAME = 1 << 17  # bytes; larger frames are on the heap
STREAM_BYTES = 6 << 20  # outputs of more bytes bypass the caches, to leave them to other data


PlacedArguments = tuple[tuple[Argument, Sequence[int]], ...]


def contiguous_arguments(arguments: Iterable[Argument], offsets: Iterable[int]) -> PlacedArguments:
    """Arguments whose numbers are contiguous from an offset."""
    return tuple(
        (arg, range(offset, offset + arg.size))
        for arg, offset in zip(arguments, offsets, strict=True)
    )


@dataclass(frozen=True)
class Kernel:
    """The arguments with the places of their numbers in the frame, its size, and the block's text.

    The numbers of an argument are contiguous (a `range`); those of an output may be anywhere.
    """

    inputs: PlacedArguments
    outputs: PlacedArguments
    frame_size: int
    block: Callable[[Width], str]  # text that defines @block.<suffix>(ptr frame, ptr data)
    shared: Callable[[str], list[str]] = lambda fp: []  # what blocks of all widths read
    zeros: frozenset[int] = frozenset()  # places that are always 0
    preserves_inputs: bool = False  # whether no block overwrites its inputs in the frame
    prefetches: bool = False  # whether blocks prefetch the next elements (`input_strides.py`)
    separate: int | None = None  # the input to read where it is, if possible (`input_strides.py`)


def gufunc_module(
    kernel: Kernel,
    name: str,
    fp: str,
    lanes: Sequence[int],
    streams: bool = False,
    registers: int = 0,
) -> str:
    """The IR of a gufunc loop `name`, for each of `lanes` elements at a time.

    `streams`: large outputs bypass the caches (needs AVX-512); `registers`: how many numbers to
    keep in registers (0: LLVM decides).
    """
    widths = [Width(fp, count, registers) for count in lanes]
    parts = ["@tables = global ptr null", declarations(widths)]
    parts += ["@other = global ptr null"] if len(widths) == 1 else []
    blocks = [[sincos(width), sincos_loop(width), kernel.block(width)] for width in widths]
    parts += ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"] if kernel.prefetches else []
    for i, (_, places) in enumerate(kernel.outputs):
        parts += (
            [] if _is_contiguous(places) else [place_tables(i, places, kernel.zeros, lanes[-1])]
        )
    parts += kernel.shared(fp)
    for width, block in zip(widths, blocks, strict=True):
        parts += [*block, _range_function(kernel, width, streams)]
        parts += [pack(width, {_rows(arg) * _columns(arg) for arg, _ in kernel.inputs})]
        contiguous, scattered = (
            {
                _rows(a) * _columns(a)
                for a, at in kernel.outputs
                if _is_contiguous(at) is is_contiguous
            }
            for is_contiguous in (True, False)
        )
        parts += [unpack(width, contiguous)] if contiguous else []
        parts += [scattered_stores(width, scattered, streams)] if scattered else []
    parts.append(_loop_function(name, widths))
    if lanes[0] == 1 and has_fastcall(kernel, fp):
        parts.append(fastcall_kernel.fastcall_function(*_arguments(kernel), name))
    return "\n".join(parts)


def has_fastcall(kernel: Kernel, fp: str) -> bool:
    """Whether the module has the C function for one element (`fastcall_kernel.py`)."""
    return fp == "double" and fastcall_kernel.is_supported(*_arguments(kernel))


def _arguments(kernel: Kernel) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    """Inputs and outputs, without their places."""
    return tuple(arg for arg, _ in kernel.inputs), tuple(arg for arg, _ in kernel.outputs)


def declarations(widths: list[Width]) -> str:
    """Declarations of what blocks of these widths call."""
    lines = [
        "declare ptr @malloc(i64)",
        "declare void @free(ptr)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ]
    fp = widths[0].fp
    lines += [f"declare {fp} @{f}{'' if fp == 'double' else 'f'}({fp})" for f in ("sin", "cos")]
    for w in widths:
        T = w.type
        lines.append(f"declare {T} @llvm.fma.{w.suffix}({T}, {T}, {T})")
        lines.append(f"declare {T} @llvm.sqrt.{w.suffix}({T})")
    return "\n".join(lines) + "\n"


def _loop_function(name: str, widths: list[Width]) -> str:
    single, several = (f"@range.{w.suffix}" for w in (widths[0], widths[-1]))
    arguments = "ptr %args, ptr %steps, i64 %n, ptr %tables"
    if len(widths) == 1:
        own = "sle" if widths[0].lanes == 1 else "ne"
        return f"""define void @{name}(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {{
  %n = load i64, ptr %dims
  %tables = load ptr, ptr @tables
  %other = load ptr, ptr @other
  %mine = icmp {own} i64 %n, 1
  %alone = icmp eq ptr %other, null
  %here = or i1 %mine, %alone
  br i1 %here, label %run, label %pass
run:
  call void {single}({arguments})
  ret void
pass:
  call void %other(ptr %args, ptr %dims, ptr %steps, ptr %data)
  ret void
}}
"""
    return f"""define void @{name}(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {{
  %n = load i64, ptr %dims
  %tables = load ptr, ptr @tables
  %single = icmp eq i64 %n, 1
  br i1 %single, label %one, label %many
one:
  call void {single}({arguments})
  ret void
many:
  call void {several}({arguments})
  ret void
}}
"""


def _is_contiguous(places: Sequence[int]) -> bool:
    return isinstance(places, range)


def _rows(arg: Argument) -> int:
    return arg.shape[-2] if len(arg.shape) >= 2 else 1


def _columns(arg: Argument) -> int:
    return arg.shape[-1] if arg.shape else 1


def _range_function(kernel: Kernel, w: Width, streams: bool) -> str:
    """@range.<suffix>: all n elements, in blocks of `lanes`; the block has %count elements."""
    arguments = kernel.inputs + kernel.outputs
    core = len(arguments)
    moves = _ArgumentMoves(kernel, w)
    for i, (arg, _) in enumerate(arguments):
        moves.add(i, [core + d for d in range(len(arg.shape))])
        core += len(arg.shape)
    cells = kernel.prefetches or kernel.separate is not None
    size = (
        separate_cell(kernel.inputs, kernel.frame_size, w) + CELL
        if cells
        else kernel.frame_size * w.bytes
    )
    allocate, free = frame_memory(size)
    newline = "\n  "
    parameters = "ptr %args, ptr %steps, i64 %n, ptr %data"
    return f"""define internal void @range.{w.suffix}({parameters}) nounwind {{
entry:
  {newline.join(moves.load + allocate)}
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %left = sub i64 %n, %i
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %done
body:
  %full = icmp sge i64 %left, {w.lanes}
  %count = select i1 %full, i64 {w.lanes}, i64 %left
  {newline.join(moves.before)}
  call void @block.{w.suffix}(ptr %frame, ptr %data)
  {newline.join(moves.after)}
  %next = add i64 %i, {w.lanes}
  br label %test
done:
  {newline.join([*(["fence seq_cst"] if streams and w.lanes > 1 else []), *free])}
  ret void
}}
"""


class _ArgumentMoves:
    """Lines that read NumPy's pointers (`load`) and move arguments before and after a block."""

    def __init__(self, kernel: Kernel, w: Width):
        self.kernel, self.w = kernel, w
        self.load: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []

    def add(self, i: int, strides: list[int]) -> None:
        """Argument i; `strides` are the positions of the strides of its axes in %steps."""
        kernel, w, is_input = self.kernel, self.w, i < len(self.kernel.inputs)
        arg, places = (kernel.inputs + kernel.outputs)[i]
        row, column = (
            (strides if len(strides) >= 2 else [None, *strides])[-2:] if strides else (None, None)
        )
        self.load += _load_argument(i, row, column)
        self.before += [
            f"%jump{i} = mul i64 %i, %outer{i}",
            f"%at{i} = getelementptr i8, ptr %base{i}, i64 %jump{i}",
        ]
        if kernel.prefetches and w.lanes > 1 and is_input:
            self.before += next_block_cell(
                i, arg, i == kernel.separate, next_cell(i, kernel.frame_size, w), w
            )
        rows = _rows(arg)
        width = self._row_width(i, arg, places, is_input and rows == 1)
        verb = "pack" if is_input else "unpack" if _is_contiguous(places) else "deliver"
        arguments = (
            f"ptr %at{i}, ptr %frame{i}, i64 {rows}, i64 {width}, i64 %outer{i}, i64 %row{i}, "
            f"i64 %column{i}, i64 %count, {tail_argument(verb, w, rows * _columns(arg))}"
        )
        if _is_contiguous(places):
            self._move_contiguous(i, arg, places, verb, arguments, strides)
        else:
            self._store_scattered(i, arg, arguments)

    def _row_width(self, i: int, arg: Argument, places: Sequence[int], is_row: bool) -> int | str:
        """How many numbers of a row to move: 0 if it is in the frame, or is read where it is."""
        kernel, w = self.kernel, self.w
        width: int | str = _columns(arg)
        if kernel.preserves_inputs and is_row and w.lanes > 1:
            self.load.append(f"%still{i} = icmp eq i64 %outer{i}, 0")
            self.before += _skip_if_repeated(i, _columns(arg))
            width = f"%width{i}"
        if i == kernel.separate and _is_contiguous(places):
            self.load.append(test_side_by_side(i, w))
            self.before += read_separate(
                i, width, places[0] * w.bytes, separate_cell(kernel.inputs, kernel.frame_size, w), w
            )
            width = f"%packed{i}"
        return width

    def _move_contiguous(
        self,
        i: int,
        arg: Argument,
        places: Sequence[int],
        verb: str,
        arguments: str,
        strides: list[int],
    ) -> None:
        """Numbers that are contiguous in the frame; a stack is moved matrix by matrix."""
        w = self.w
        self.before.append(
            f"%frame{i} = getelementptr i8, ptr %frame, i64 {places[0] * w.bytes if places else 0}"
        )
        lines = self.before if verb == "pack" else self.after
        lines.append(f"call void @{verb}.{w.suffix}({arguments})")
        for axis in range(len(arg.shape) - 2):
            self.load += _load_stride(f"lead{i}.{axis}", strides[axis])
        for k, index in enumerate(ndindex(arg.shape[:-2])):
            if k:  # the first one is done above
                lines += _matrix_address(i, k, index, arg.shape[-2] * arg.shape[-1] * w.bytes)
                shifted = arguments.replace(f"%at{i},", f"%at{i}.{k},").replace(
                    f"%frame{i},", f"%frame{i}.{k},"
                )
                lines.append(f"call void @{verb}.{w.suffix}({shifted})")

    def _store_scattered(self, i: int, arg: Argument, arguments: str) -> None:
        """Results at any places of the frame; those of a large batch bypass the caches."""
        number, w = i - len(self.kernel.inputs), self.w
        self.load += [
            f"%whole{i} = mul i64 %n, {arg.size * w.scalar_bytes}",
            f"%large{i} = icmp ugt i64 %whole{i}, {STREAM_BYTES}",
        ]
        arguments = arguments.replace(f"%frame{i}", "%frame")
        arguments += f", ptr @places{number}, ptr @blank{number}, i1 %large{i}"
        self.after.append(f"call void @deliver.{w.suffix}({arguments})")


def _matrix_address(i: int, k: int, place: tuple[int, ...], size: int) -> list[str]:
    """Addresses of matrix `place` of a stack, the k-th one, in NumPy's array and in the frame."""
    lines, address = [], f"%at{i}"
    for axis, index in enumerate(place):
        lines.append(f"%way{i}.{k}.{axis} = mul i64 %lead{i}.{axis}, {index}")
        next_address = f"%at{i}.{k}" if axis == len(place) - 1 else f"%by{i}.{k}.{axis}"
        lines.append(f"{next_address} = getelementptr i8, ptr {address}, i64 %way{i}.{k}.{axis}")
        address = next_address
    return [*lines, f"%frame{i}.{k} = getelementptr i8, ptr %frame{i}, i64 {k * size}"]


def _skip_if_repeated(i: int, columns: int) -> list[str]:
    """%width<i>: numbers to pack; 0 after the first block if all elements share the argument."""
    return [
        f"%later{i} = icmp ne i64 %i, 0",
        f"%there{i} = and i1 %still{i}, %later{i}",
        f"%width{i} = select i1 %there{i}, i64 0, i64 {columns}",
    ]


def _load_argument(i: int, row: int | None, column: int | None) -> list[str]:
    """Base pointer and strides of argument i, as NumPy passes them."""
    lines = [
        f"%argp{i} = getelementptr ptr, ptr %args, i64 {i}",
        f"%base{i} = load ptr, ptr %argp{i}",
        f"%outerp{i} = getelementptr i64, ptr %steps, i64 {i}",
        f"%outer{i} = load i64, ptr %outerp{i}",
    ]
    for what, position in (("row", row), ("column", column)):
        if position is None:
            lines.append(f"%{what}{i} = add i64 0, 0")
        else:
            lines += _load_stride(f"{what}{i}", position)
    return lines


def _load_stride(name: str, position: int) -> list[str]:
    return [
        f"%{name}.p = getelementptr i64, ptr %steps, i64 {position}",
        f"%{name} = load i64, ptr %{name}.p",
    ]


def frame_memory(size: int) -> tuple[list[str], list[str]]:
    """Lines that allocate %frame, on the stack or (a large one) on the heap; lines that free it."""
    if size <= MAX_STACK_FRAME:
        return [f"%frame = alloca [{size} x i8], align 64"], []
    allocate = [
        f"%raw = call ptr @malloc(i64 {size + 64})",
        "%whole = ptrtoint ptr %raw to i64",
        "%up = add i64 %whole, 63",
        "%aligned = and i64 %up, -64",
        "%frame = inttoptr i64 %aligned to ptr",
    ]
    return allocate, ["call void @free(ptr %raw)"]
