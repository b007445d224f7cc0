"""Where inputs lie, as blocks are told: cells behind the frame, each an address and a stride.

An input whose lanes lie side by side, number by number, needs no packing: a block reads it where it is (`Kernel.apart`). Else,
and where a block is not whole, it is packed to the frame, and the cell says so. Further cells, one an input, tell where the
elements of the next block lie, which blocks fetch while they compute.
"""

from __future__ import annotations

from collections.abc import Sequence

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.compiler.sweeps.sweep_program import Argument

CELL = 16  # bytes of an address and a stride


def next_cell(i: int, frame: int, w: Width) -> int:
    """The cell of the next block's elements of input i, behind the frame's numbers."""
    return frame * w.bytes + CELL * i


def apart_cell(inputs: Sequence[object], frame: int, w: Width) -> int:
    """The cell of the input that is read where it lies: behind those of all inputs."""
    return next_cell(len(inputs), frame, w)


def in_place(i: int, w: Width) -> str:
    """%place<i>: whether the lanes of argument i lie side by side."""
    return (
        f"%place{i} = icmp eq i64 %outer{i}, {w.scalar_bytes}"
        if w.lanes > 1
        else f"%place{i} = icmp eq i64 0, 0"
    )


def read_apart(i: int, width: int | str, offset: int, cell: int, w: Width) -> list[str]:
    """Where a block reads argument i; %packed<i>: how many of its `width` numbers are packed, to an offset in the frame."""
    return [
        f"%here{i} = and i1 %place{i}, %full",
        f"%packed{i} = select i1 %here{i}, i64 0, i64 {width}",
        f"%home{i} = getelementptr i8, ptr %frame, i64 {offset}",
        f"%from{i} = select i1 %here{i}, ptr %at{i}, ptr %home{i}",
        f"%pace{i} = select i1 %here{i}, i64 %column{i}, i64 {w.bytes}",
        *_told(f"apart{i}", cell, f"%from{i}", f"%pace{i}"),
    ]


def next_elements(i: int, arg: Argument, apart: bool, cell: int, w: Width) -> list[str]:
    """Where the next block's elements of argument i begin, and how far it is from one number to the next: behind the last lane,
    if lanes lie side by side; behind the last element, if elements do; else the frame, which is at hand."""
    place = f"%place{i}" if apart else "false"
    return [
        f"%side{i} = icmp eq i64 %outer{i}, {arg.size * w.scalar_bytes}",
        f"%after{i} = getelementptr i8, ptr %at{i}, i64 {arg.size * w.bytes}",
        f"%beside{i} = getelementptr i8, ptr %at{i}, i64 {w.bytes}",
        f"%follow{i} = select i1 %side{i}, ptr %after{i}, ptr %frame",
        f"%next{i} = select i1 {place}, ptr %beside{i}, ptr %follow{i}",
        f"%apace{i} = select i1 {place}, i64 %column{i}, i64 {w.bytes}",
        *_told(f"next{i}", cell, f"%next{i}", f"%apace{i}"),
    ]


def _told(name: str, cell: int, address: str, stride: str) -> list[str]:
    """An address and a stride, in a cell."""
    return [
        f"%{name}.a = getelementptr i8, ptr %frame, i64 {cell}",
        f"%{name}.s = getelementptr i8, ptr %frame, i64 {cell + 8}",
        f"store ptr {address}, ptr %{name}.a",
        f"store i64 {stride}, ptr %{name}.s",
    ]
