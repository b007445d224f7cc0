"""A whole kernel as LLVM IR: the NumPy gufunc loop around the segments.

loop(args, dims, steps, data)     one element: plain scalars; more: blocks of lanes, the last one padded
pack / unpack, deliver            any strides in, lanes side by side; padding lanes repeat the last element
block                             the segments of one block, over a frame of inputs, outputs and slots
tables                            where a rolled kernel's tables are; set after loading
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from numpy import ndindex

from psiphi.backends.cpu import fastcall_kernel
from psiphi.backends.cpu.input_pack import behind_tiles, pack, unpack
from psiphi.backends.cpu.input_strides import (
    CELL,
    apart_cell,
    in_place,
    next_cell,
    next_elements,
    read_apart,
)
from psiphi.backends.cpu.output_transpose import deliver, place_tables
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.sincos import sincos, sincos_loop
from psiphi.compiler.sweeps.sweep_program import Argument

ON_STACK = 1 << 17  # frames up to this many bytes live on the stack
CACHE = (
    6 << 20
)  # outputs of more bytes than this are written past the caches, where they would push out what is still needed


Placed = tuple[tuple[Argument, Sequence[int]], ...]


def side_by_side(arguments: Iterable[Argument], offsets: Iterable[int]) -> Placed:
    """Arguments whose numbers follow each other from an offset on."""
    return tuple(
        (arg, range(at, at + arg.size)) for arg, at in zip(arguments, offsets, strict=True)
    )


@dataclass(frozen=True)
class Kernel:
    """What the loop needs to know: the arguments, where their numbers stand in the frame, its size, and the block's text.

    Numbers stand side by side (a `range`), or an output's anywhere.
    """

    inputs: Placed
    outputs: Placed
    frame: int
    block: Callable[[Width], str]  # text that defines @block.<suffix>(ptr frame, ptr data)
    zeros: frozenset[int] = frozenset()  # places that hold 0, whatever comes in
    keeps_inputs: bool = False  # whether no block writes where its inputs stand
    fetches: bool = False  # whether blocks fetch the next one's elements: cells behind the frame tell where each input's lie
    apart: int | None = (
        None  # the input that is read where it lies, if its lanes lie side by side; a cell tells where
    )


def module(
    kernel: Kernel, name: str, fp: str, lanes: int, streams: bool = False, registers: int = 0
) -> str:
    """The IR of one gufunc loop called `name`, for single elements and for `lanes` at a time; `streams`: large outputs go past
    the caches, on processors that have AVX-512; `registers`: how many numbers are held in them (0: LLVM finds out)."""
    widths = [Width(fp, count, registers) for count in sorted({1, lanes})]
    parts = ["@tables = global ptr null", declarations(widths)]
    parts += ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"] if kernel.fetches else []
    for i, (_, places) in enumerate(kernel.outputs):
        parts += [] if _is_run(places) else [place_tables(i, places, kernel.zeros, lanes)]
    for width in widths:
        parts += [
            sincos(width),
            sincos_loop(width),
            kernel.block(width),
            _range(kernel, width, streams),
        ]
        parts += [pack(width, {_rows(arg) * _columns(arg) for arg, _ in kernel.inputs})]
        beside, anywhere = (
            {_rows(a) * _columns(a) for a, at in kernel.outputs if _is_run(at) is run}
            for run in (True, False)
        )
        parts += [unpack(width, beside)] if beside else []
        parts += [deliver(width, anywhere, streams)] if anywhere else []
    parts.append(_loop(name, widths))
    if is_quick(kernel, fp):
        parts.append(fastcall_kernel.quick(*_plain(kernel), name))
    return "\n".join(parts)


def is_quick(kernel: Kernel, fp: str) -> bool:
    """Whether the module has the door for single elements (`fastcall_kernel.py`)."""
    return fp == "double" and fastcall_kernel.fits(*_plain(kernel))


def _plain(kernel: Kernel) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    """Inputs and outputs, without their offsets."""
    return tuple(arg for arg, _ in kernel.inputs), tuple(arg for arg, _ in kernel.outputs)


def declarations(widths: list[Width]) -> str:
    """What blocks of these widths call."""
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


def _loop(name: str, widths: list[Width]) -> str:
    scalar, wide = widths[0].suffix, widths[-1].suffix
    return f"""define void @{name}(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {{
  %n = load i64, ptr %dims
  %tables = load ptr, ptr @tables
  %single = icmp eq i64 %n, 1
  br i1 %single, label %one, label %many
one:
  call void @range.{scalar}(ptr %args, ptr %steps, i64 %n, ptr %tables)
  ret void
many:
  call void @range.{wide}(ptr %args, ptr %steps, i64 %n, ptr %tables)
  ret void
}}
"""


def _is_run(places: Sequence[int]) -> bool:
    return isinstance(places, range)


def _rows(arg: Argument) -> int:
    return arg.shape[-2] if len(arg.shape) >= 2 else 1


def _columns(arg: Argument) -> int:
    return arg.shape[-1] if arg.shape else 1


def _range(kernel: Kernel, w: Width, streams: bool) -> str:
    """All n elements, in blocks of lanes; `%count` is how many of the block's lanes are real."""
    arguments = kernel.inputs + kernel.outputs
    core = len(arguments)
    moves = _Moves(kernel, w)
    for i, (arg, _) in enumerate(arguments):
        moves.add(i, [core + d for d in range(len(arg.shape))])
        core += len(arg.shape)
    cells = kernel.fetches or kernel.apart is not None
    size = apart_cell(kernel.inputs, kernel.frame, w) + CELL if cells else kernel.frame * w.bytes
    take, give = frame_memory(size)
    newline = "\n  "
    return f"""define internal void @range.{w.suffix}(ptr %args, ptr %steps, i64 %n, ptr %data) nounwind {{
entry:
  {newline.join(moves.load + take)}
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
  {newline.join([*(["fence seq_cst"] if streams and w.lanes > 1 else []), *give])}
  ret void
}}
"""


class _Moves:
    """What is read of NumPy's arrays once (`load`), and what moves the arguments before and after a block."""

    def __init__(self, kernel: Kernel, w: Width):
        self.kernel, self.w = kernel, w
        self.load: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []

    def add(self, i: int, strides: list[int]) -> None:
        """Argument i, whose axes have their strides at these positions of %steps."""
        kernel, w, inward = self.kernel, self.w, i < len(self.kernel.inputs)
        arg, places = (kernel.inputs + kernel.outputs)[i]
        row, column = (
            (strides if len(strides) >= 2 else [None, *strides])[-2:] if strides else (None, None)
        )
        self.load += _load_argument(i, row, column)
        self.before += [
            f"%jump{i} = mul i64 %i, %outer{i}",
            f"%at{i} = getelementptr i8, ptr %base{i}, i64 %jump{i}",
        ]
        if kernel.fetches and w.lanes > 1 and inward:
            self.before += next_elements(
                i, arg, i == kernel.apart, next_cell(i, kernel.frame, w), w
            )
        rows = _rows(arg)
        width = self._width(i, arg, places, inward and rows == 1)
        verb = "pack" if inward else "unpack" if _is_run(places) else "deliver"
        given = f"ptr %at{i}, ptr %frame{i}, i64 {rows}, i64 {width}, i64 %outer{i}, i64 %row{i}, i64 %column{i}, i64 %count"
        given += f", {behind_tiles(verb, w, rows * _columns(arg))}"
        if _is_run(places):
            self._side_by_side(i, arg, places, verb, given, strides)
        else:
            self._deliver(i, arg, given)

    def _width(self, i: int, arg: Argument, places: Sequence[int], is_row: bool) -> int | str:
        """How many numbers of a row are moved: fewer where they are there already (an input that `is_row`), or are read where
        they lie."""
        kernel, w = self.kernel, self.w
        width: int | str = _columns(arg)
        if kernel.keeps_inputs and is_row and w.lanes > 1:
            self.load.append(f"%still{i} = icmp eq i64 %outer{i}, 0")
            self.before += _once(i, _columns(arg))
            width = f"%width{i}"
        if i == kernel.apart and _is_run(places):
            self.load.append(in_place(i, w))
            self.before += read_apart(
                i, width, places[0] * w.bytes, apart_cell(kernel.inputs, kernel.frame, w), w
            )
            width = f"%packed{i}"
        return width

    def _side_by_side(
        self,
        i: int,
        arg: Argument,
        places: Sequence[int],
        verb: str,
        given: str,
        strides: list[int],
    ) -> None:
        """Numbers that follow each other in the frame; of a stack, matrix after matrix."""
        w = self.w
        self.before.append(
            f"%frame{i} = getelementptr i8, ptr %frame, i64 {places[0] * w.bytes if places else 0}"
        )
        lines = self.before if verb == "pack" else self.after
        lines.append(f"call void @{verb}.{w.suffix}({given})")
        for axis in range(len(arg.shape) - 2):
            self.load += _stride(f"lead{i}.{axis}", strides[axis])
        for k, at in enumerate(ndindex(arg.shape[:-2])):
            if k:  # the first was above
                lines += _matrix_at(i, k, at, arg.shape[-2] * arg.shape[-1] * w.bytes)
                own = given.replace(f"%at{i},", f"%at{i}.{k},").replace(
                    f"%frame{i},", f"%frame{i}.{k},"
                )
                lines.append(f"call void @{verb}.{w.suffix}({own})")

    def _deliver(self, i: int, arg: Argument, given: str) -> None:
        """Results that stand anywhere; those of a large batch go past the caches."""
        number, w = i - len(self.kernel.inputs), self.w
        self.load += [
            f"%whole{i} = mul i64 %n, {arg.size * w.scalar_bytes}",
            f"%large{i} = icmp ugt i64 %whole{i}, {CACHE}",
        ]
        where = f"{given.replace(f'%frame{i}', '%frame')}, ptr @places{number}, ptr @blank{number}, i1 %large{i}"
        self.after.append(f"call void @deliver.{w.suffix}({where})")


def _matrix_at(i: int, k: int, at: tuple[int, ...], size: int) -> list[str]:
    """Where the matrix `at` of a stack, the k-th one, stands in NumPy's array, and in the frame."""
    lines, here = [], f"%at{i}"
    for axis, index in enumerate(at):
        lines.append(f"%way{i}.{k}.{axis} = mul i64 %lead{i}.{axis}, {index}")
        there = f"%at{i}.{k}" if axis == len(at) - 1 else f"%by{i}.{k}.{axis}"
        lines.append(f"{there} = getelementptr i8, ptr {here}, i64 %way{i}.{k}.{axis}")
        here = there
    return [*lines, f"%frame{i}.{k} = getelementptr i8, ptr %frame{i}, i64 {k * size}"]


def _once(i: int, columns: int) -> list[str]:
    """How many numbers of argument i are brought to the frame: of one that is the same for all elements, none behind the first
    block."""
    return [
        f"%later{i} = icmp ne i64 %i, 0",
        f"%there{i} = and i1 %still{i}, %later{i}",
        f"%width{i} = select i1 %there{i}, i64 0, i64 {columns}",
    ]


def _load_argument(i: int, row: int | None, column: int | None) -> list[str]:
    """Base pointer and strides of argument i, from NumPy's arrays."""
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
            lines += _stride(f"{what}{i}", position)
    return lines


def _stride(name: str, position: int) -> list[str]:
    return [
        f"%{name}.p = getelementptr i64, ptr %steps, i64 {position}",
        f"%{name} = load i64, ptr %{name}.p",
    ]


def frame_memory(size: int) -> tuple[list[str], list[str]]:
    """Lines that take %frame, on the stack or, a large one, on the heap; and lines that give it back."""
    if size <= ON_STACK:
        return [f"%frame = alloca [{size} x i8], align 64"], []
    take = [
        f"%raw = call ptr @malloc(i64 {size + 64})",
        "%whole = ptrtoint ptr %raw to i64",
        "%up = add i64 %whole, 63",
        "%aligned = and i64 %up, -64",
        "%frame = inttoptr i64 %aligned to ptr",
    ]
    return take, ["call void @free(ptr %raw)"]
