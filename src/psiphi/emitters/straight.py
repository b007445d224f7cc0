"""Straight kernels: the pieces of one tape, each a function, called in order.

Where elements have many numbers each (parameters), memory is what a block waits for: while it computes, it fetches the elements
of the next block, some lines of memory after every run of operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign
from typing import Any

from psiphi.emitters.kernel import Kernel, behind, side_by_side
from psiphi.emitters.llvm import Emitter, Width, function
from psiphi.emitters.segments import Pieces, cut
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import Argument
from psiphi.tape.ops import Op

LINE = 64  # bytes that memory gives at a time
LONG_ROW = 32  # numbers an element: of fewer the processor fetches the next by itself


def straight_kernel(straight: Straight, fma: bool = True, size: int = 0) -> Kernel:
    """The kernel of a whole unrolled program."""
    shared = all(len(arg.shape) <= 2 for arg in straight.program.outputs)  # stacks of matrices stand side by side
    pieces, inputs = cut(straight, size, shared), straight.program.inputs
    outputs = tuple((arg, tuple(places)) for arg, places in zip(straight.program.outputs, pieces.places, strict=True))
    if not shared:
        outputs = side_by_side(straight.program.outputs, pieces.layout.outputs)
    zeros = {pieces.places[i][at] for i, at, node in straight.stores if _is_zero(*straight.tape.nodes[node])}
    return Kernel(
        side_by_side(inputs, pieces.layout.inputs),
        outputs,
        pieces.frame,
        lambda width: _block(pieces, width, fma, inputs),
        zeros=frozenset(zeros),
        keeps_inputs=True,
        fetches=any(arg.size >= LONG_ROW for arg in inputs),
    )


def _is_zero(op: Op, value: Any, _: Any) -> bool:
    """Whether a node is the number 0, not -0."""
    return op is Op.CONST and value == 0.0 and copysign(1.0, value) > 0.0


def _block(pieces: Pieces, width: Width, fma: bool, inputs: tuple[Argument, ...]) -> str:
    suffix = width.suffix
    segments = [pieces.prologue, *pieces.segments]
    ahead = iter(_ahead(pieces, width, inputs))
    every = sum(len(s.nodes) for s in segments) // max(1, sum(1 for _ in _ahead(pieces, width, inputs)))
    text = [function(f"{s.name}.{suffix}", ["frame"], Emitter(s, width, fma, ahead, every).body()) for s in segments]
    call = lambda s: f"call void @{s.name}.{suffix}(ptr %frame)"  # noqa: E731
    calls = [call(pieces.prologue), *angles(pieces, width, "first")]
    for n, s in enumerate(pieces.segments):
        calls += [*(angles(s, width, f"first{n}") if s.angles else ()), call(s)]
    return "\n".join([*text, function(f"block.{suffix}", ["frame", "data"], calls)])


def _ahead(pieces: Pieces, width: Width, inputs: tuple[Argument, ...]) -> Iterator[tuple[int, int]]:
    """The lines of the next block's elements: (where their address stands in the frame, bytes behind it)."""
    for i, arg in enumerate(inputs if width.lanes > 1 else ()):
        if arg.size >= LONG_ROW:
            yield from ((behind(pieces.frame, width) + 8 * i, at) for at in range(0, arg.size * width.bytes, LINE))


def angles(of: Any, width: Width, name: str) -> list[str]:
    """Sines and cosines of the angles that stand in the frame, in a loop."""
    first = f"%{name} = getelementptr i8, ptr %frame, i64 {of.angle_base * width.bytes}"
    return [first, f"call void @psiphi.angles.{width.suffix}(ptr %{name}, i64 {of.angles})"]
