"""Kernels of straight-line code: the pieces of one tape, each a function, called in order.

If an input has many numbers per element (parameters), a block is limited by memory. It therefore
prefetches the elements of the next block while it computes, one number every few operations.
Parameters with the same number of all elements side by side are read where they are: they need no
transposition and no copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import copysign
from typing import Any

from psiphi.backends.cpu.gufunc_kernel import Kernel, contiguous_arguments
from psiphi.backends.cpu.input_strides import next_cell, separate_cell
from psiphi.backends.llvm.llvm_emitter import EmitterOptions, Width, internal_function
from psiphi.backends.llvm.register_spills import segment_function
from psiphi.compiler.ir.segments import SegmentedCode, split_segments
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op

PREFETCH_SIZE = 32  # numbers per element; of fewer the CPU prefetches the next by itself


def straight_kernel(straight: StraightCode, fma: bool = True, size: int = 0) -> Kernel:
    """The kernel of straight-line code, cut into pieces of at most `size` nodes (0: a default)."""
    # stacks of matrices are contiguous in the frame
    shared = all(len(arg.shape) <= 2 for arg in straight.program.outputs)
    inputs = straight.program.inputs
    separate = next((i for i, arg in enumerate(inputs) if arg.name == PARAMETERS), None)
    pieces = split_segments(straight, size, shared, separate)
    outputs = tuple(
        (arg, tuple(places))
        for arg, places in zip(straight.program.outputs, pieces.places, strict=True)
    )
    if not shared:
        outputs = contiguous_arguments(straight.program.outputs, pieces.layout.outputs)
    zeros = {
        pieces.places[i][index]
        for i, index, node in straight.stores
        if _is_zero(*straight.tape.nodes[node])
    }
    return Kernel(
        contiguous_arguments(inputs, pieces.layout.inputs),
        outputs,
        pieces.frame,
        lambda width: _block_text(pieces, width, fma, inputs, separate),
        zeros=frozenset(zeros),
        preserves_inputs=True,
        prefetches=any(arg.size >= PREFETCH_SIZE for arg in inputs),
        separate=separate,
    )


def _is_zero(op: Op, value: Any, _: Any) -> bool:
    """Whether a node is the constant +0."""
    return op is Op.CONST and value == 0.0 and copysign(1.0, value) > 0.0


def _block_text(
    pieces: SegmentedCode,
    width: Width,
    fma: bool,
    inputs: tuple[Argument, ...],
    separate: int | None,
) -> str:
    suffix = width.suffix
    segments = [pieces.prologue, *pieces.segments]
    numbers = list(_prefetches(pieces, width, inputs))
    prefetches = iter(numbers)
    period = sum(len(s.nodes) for s in segments) // max(1, len(numbers))
    cell = 0 if separate is None else separate_cell(inputs, pieces.frame, width)
    options = EmitterOptions(
        fma=fma, prefetches=prefetches, prefetch_period=period, separate_cell=cell
    )
    text = [
        segment_function(f"{s.name}.{suffix}", ["frame"], s, width, **options) for s in segments
    ]
    call = lambda s: f"call void @{s.name}.{suffix}(ptr %frame)"  # noqa: E731
    calls = [call(pieces.prologue), *angle_loop(pieces, width, "first")]
    for n, s in enumerate(pieces.segments):
        calls += [*(angle_loop(s, width, f"first{n}") if s.angles else ()), call(s)]
    return "\n".join([*text, internal_function(f"block.{suffix}", ["frame", "data"], calls)])


def _prefetches(
    pieces: SegmentedCode, width: Width, inputs: tuple[Argument, ...]
) -> Iterator[tuple[int, int]]:
    """(cell of the next block's elements, number) for every number to prefetch."""
    for i, arg in enumerate(inputs if width.lanes > 1 else ()):
        if arg.size >= PREFETCH_SIZE:
            yield from ((next_cell(i, pieces.frame, width), n) for n in range(arg.size))


def angle_loop(block: Any, width: Width, name: str) -> list[str]:
    """Sines and cosines of the angles in the frame, in a loop."""
    first = f"%{name} = getelementptr i8, ptr %frame, i64 {block.angle_base * width.bytes}"
    return [first, f"call void @psiphi.angles.{width.suffix}(ptr %{name}, i64 {block.angles})"]
