"""Straight kernels: the pieces of one tape, each a function, called in order.

Where elements have many numbers each (parameters), memory is what a block waits for: while it computes, it fetches the elements
of the next block, a number after every run of operations. Parameters whose elements lie side by side, number by number, are
read where they are: nothing has to be turned and stored for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign
from typing import Any

from psiphi.backends.cpu.gufunc_kernel import Kernel, side_by_side
from psiphi.backends.cpu.input_strides import apart_cell, next_cell
from psiphi.backends.llvm.llvm_emitter import Width, function
from psiphi.backends.llvm.register_spills import segment_function
from psiphi.compiler.ir.segments import Pieces, cut
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op

LONG_ROW = 32  # numbers an element: of fewer the processor fetches the next by itself


def straight_kernel(straight: StraightCode, fma: bool = True, size: int = 0) -> Kernel:
    """The kernel of a whole unrolled program."""
    shared = all(
        len(arg.shape) <= 2 for arg in straight.program.outputs
    )  # stacks of matrices stand side by side
    inputs = straight.program.inputs
    apart = next((i for i, arg in enumerate(inputs) if arg.name == PARAMETERS), None)
    pieces = cut(straight, size, shared, apart)
    outputs = tuple(
        (arg, tuple(places))
        for arg, places in zip(straight.program.outputs, pieces.places, strict=True)
    )
    if not shared:
        outputs = side_by_side(straight.program.outputs, pieces.layout.outputs)
    zeros = {
        pieces.places[i][at]
        for i, at, node in straight.stores
        if _is_zero(*straight.tape.nodes[node])
    }
    return Kernel(
        side_by_side(inputs, pieces.layout.inputs),
        outputs,
        pieces.frame,
        lambda width: _block(pieces, width, fma, inputs, apart),
        zeros=frozenset(zeros),
        keeps_inputs=True,
        fetches=any(arg.size >= LONG_ROW for arg in inputs),
        apart=apart,
    )


def _is_zero(op: Op, value: Any, _: Any) -> bool:
    """Whether a node is the number 0, not -0."""
    return op is Op.CONST and value == 0.0 and copysign(1.0, value) > 0.0


def _block(
    pieces: Pieces, width: Width, fma: bool, inputs: tuple[Argument, ...], apart: int | None
) -> str:
    suffix = width.suffix
    segments = [pieces.prologue, *pieces.segments]
    ahead = iter(_ahead(pieces, width, inputs))
    every = sum(len(s.nodes) for s in segments) // max(
        1, sum(1 for _ in _ahead(pieces, width, inputs))
    )
    cell = 0 if apart is None else apart_cell(inputs, pieces.frame, width)
    how = dict(fma=fma, ahead=ahead, every=every, apart=cell)
    text = [segment_function(f"{s.name}.{suffix}", ["frame"], s, width, **how) for s in segments]
    call = lambda s: f"call void @{s.name}.{suffix}(ptr %frame)"  # noqa: E731
    calls = [call(pieces.prologue), *angles(pieces, width, "first")]
    for n, s in enumerate(pieces.segments):
        calls += [*(angles(s, width, f"first{n}") if s.angles else ()), call(s)]
    return "\n".join([*text, function(f"block.{suffix}", ["frame", "data"], calls)])


def _ahead(pieces: Pieces, width: Width, inputs: tuple[Argument, ...]) -> Iterator[tuple[int, int]]:
    """The numbers of the next block's elements, all lanes of each: (the cell that tells where they lie, number)."""
    for i, arg in enumerate(inputs if width.lanes > 1 else ()):
        if arg.size >= LONG_ROW:
            yield from ((next_cell(i, pieces.frame, width), n) for n in range(arg.size))


def angles(of: Any, width: Width, name: str) -> list[str]:
    """Sines and cosines of the angles that stand in the frame, in a loop."""
    first = f"%{name} = getelementptr i8, ptr %frame, i64 {of.angle_base * width.bytes}"
    return [first, f"call void @psiphi.angles.{width.suffix}(ptr %{name}, i64 {of.angles})"]
