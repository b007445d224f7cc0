"""Cells behind the frame, which tell a block where inputs are: each an address and a stride.

An input in which the same number of all elements is contiguous needs no packing: a block reads it
where it is (`Kernel.separate`). Otherwise, or if the block has fewer elements than lanes, the input
is packed into the frame and the cell points there. One more cell per input points to the elements
of the next block, which a block prefetches while it computes.
"""

from __future__ import annotations

from collections.abc import Sequence

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.compiler.sweeps.sweep_program import Argument

CELL = 16  # bytes: an address and a stride


def next_cell(i: int, frame: int, w: Width) -> int:
    """The cell for the next block's elements of input i, after the numbers of the frame."""
    return frame * w.bytes + CELL * i


def separate_cell(inputs: Sequence[object], frame: int, w: Width) -> int:
    """The cell of the input that is read where it is, after the cells of `next_cell`."""
    return next_cell(len(inputs), frame, w)


def test_side_by_side(i: int, w: Width) -> str:
    """%place<i>: whether the elements of argument i are one number apart, so as lanes need them."""
    return (
        f"%place{i} = icmp eq i64 %outer{i}, {w.scalar_bytes}"
        if w.lanes > 1
        else f"%place{i} = icmp eq i64 0, 0"
    )


def read_separate(i: int, width: int | str, offset: int, cell: int, w: Width) -> list[str]:
    """The cell from which a block reads argument i.

    %packed<i> is how many of its `width` numbers are packed into the frame, at `offset`: 0 if it
    is read where it is.
    """
    return [
        f"%here{i} = and i1 %place{i}, %full",
        f"%packed{i} = select i1 %here{i}, i64 0, i64 {width}",
        f"%home{i} = getelementptr i8, ptr %frame, i64 {offset}",
        f"%from{i} = select i1 %here{i}, ptr %at{i}, ptr %home{i}",
        f"%pace{i} = select i1 %here{i}, i64 %column{i}, i64 {w.bytes}",
        *_store_cell(f"apart{i}", cell, f"%from{i}", f"%pace{i}"),
    ]


def next_block_cell(i: int, arg: Argument, is_separate: bool, cell: int, w: Width) -> list[str]:
    """The cell for the next block's elements of argument i.

    They follow the last lane if elements are one number apart, or the last element if elements are
    contiguous. Otherwise the cell points to the frame, where a prefetch has no effect.
    """
    side_by_side = f"%place{i}" if is_separate else "false"
    return [
        f"%side{i} = icmp eq i64 %outer{i}, {arg.size * w.scalar_bytes}",
        f"%after{i} = getelementptr i8, ptr %at{i}, i64 {arg.size * w.bytes}",
        f"%beside{i} = getelementptr i8, ptr %at{i}, i64 {w.bytes}",
        f"%follow{i} = select i1 %side{i}, ptr %after{i}, ptr %frame",
        f"%next{i} = select i1 {side_by_side}, ptr %beside{i}, ptr %follow{i}",
        f"%apace{i} = select i1 {side_by_side}, i64 %column{i}, i64 {w.bytes}",
        *_store_cell(f"next{i}", cell, f"%next{i}", f"%apace{i}"),
    ]


def _store_cell(name: str, cell: int, address: str, stride: str) -> list[str]:
    """Store an address and a stride in a cell."""
    return [
        f"%{name}.a = getelementptr i8, ptr %frame, i64 {cell}",
        f"%{name}.s = getelementptr i8, ptr %frame, i64 {cell + 8}",
        f"store ptr {address}, ptr %{name}.a",
        f"store i64 {stride}, ptr %{name}.s",
    ]
