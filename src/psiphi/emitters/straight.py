"""Straight kernels: the pieces of one tape, each a function, called in order."""

from __future__ import annotations

from typing import Any

from psiphi.emitters.kernel import Kernel, side_by_side
from psiphi.emitters.llvm import Emitter, Width, function
from psiphi.emitters.segments import Pieces, cut
from psiphi.sweeps.drive import Straight


def straight_kernel(straight: Straight, fma: bool = True, size: int = 0) -> Kernel:
    """The kernel of a whole unrolled program."""
    pieces = cut(straight, size, shared=True)
    outputs = tuple((arg, tuple(places)) for arg, places in zip(straight.program.outputs, pieces.places, strict=True))
    return Kernel(
        side_by_side(straight.program.inputs, pieces.layout.inputs),
        outputs,
        pieces.frame,
        lambda width: _block(pieces, width, fma),
    )


def _block(pieces: Pieces, width: Width, fma: bool) -> str:
    suffix = width.suffix
    segments = [pieces.prologue, *pieces.segments]
    text = [function(f"{s.name}.{suffix}", ["frame"], Emitter(s, width, fma).body()) for s in segments]
    call = lambda s: f"call void @{s.name}.{suffix}(ptr %frame)"  # noqa: E731
    calls = [call(pieces.prologue), *angles(pieces, width, "first")]
    for n, s in enumerate(pieces.segments):
        calls += [*(angles(s, width, f"first{n}") if s.angles else ()), call(s)]
    return "\n".join([*text, function(f"block.{suffix}", ["frame", "data"], calls)])


def angles(of: Any, width: Width, name: str) -> list[str]:
    """Sines and cosines of the angles that stand in the frame, in a loop."""
    first = f"%{name} = getelementptr i8, ptr %frame, i64 {of.angle_base * width.bytes}"
    return [first, f"call void @psiphi.angles.{width.suffix}(ptr %{name}, i64 {of.angles})"]
