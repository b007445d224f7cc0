"""Register spills by Belady's rule: the number whose next use is farthest away goes to memory.

The rule is optimal for straight-line code. A spilled number is written once, since it does not
change, and read again before its next use. PTX's assembler, left to itself, writes and reads four
times as much for a humanoid in float64 on a GPU. On a CPU, LLVM's own allocation makes derivatives
10 % slower and compiles half as long again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Unpack

from psiphi.backends.llvm.llvm_emitter import Emitter, EmitterOptions, Width, internal_function
from psiphi.compiler.ir.segments import SEPARATE, Segment, Store
from psiphi.compiler.tape.ops import CONST
from psiphi.compiler.tape.tape import operands

SPILL_BASE = "park"  # the pointer to the spill slots of a thread
FRAME = "frame"
LINE_BYTES = 64  # bytes of the widest vector registers (AVX-512)
# AVX-512 encodes an offset from a pointer in one byte, not four, within this many registers
POINTER_REACH = 128
MAX_POINTERS = 5  # pointers besides %frame that are passed in registers


class SpillEmitter(Emitter):
    """Keeps at most `registers` numbers in registers, the others in `slot_count` slots at %park.

    A number that was loaded from memory is not spilled but loaded again. Results are stored as soon
    as they are computed, which frees their registers. `fused`: the products to fuse into their
    sums, if already decided; `ends`: nodes whose values are needed after the last line; `known`:
    nodes whose values are in registers before the first line.
    """

    volatile_bases = (SPILL_BASE,)

    def __init__(
        self,
        segment: Segment,
        width: Width,
        registers: int,
        fused: frozenset[int] | None = None,
        ends: Iterable[int] = (),
        known: Mapping[int, str] | None = None,
        **options: Unpack[EmitterOptions],
    ):
        # a copy, since spilled numbers are added to its loads
        segment = replace(segment, loads=dict(segment.loads))
        super().__init__(segment, width, stores_early=True, **options)
        self.registers, self.slot_count = registers, 0
        self.peak = 0  # most numbers in registers at a time
        self.free_slots: list[int] = []
        self.names.update(known or {})
        self.in_registers: set[int] = set(self.names)
        self.given_fused, self.ends = fused, dict.fromkeys(ends)
        self.readers: dict[int, list[int]] = {}  # {node: positions of its readers, last first}
        self.operands_of: dict[int, list[int]] = {}  # {node: nodes that its instruction reads}

    def fused_products(self) -> set[int]:
        return super().fused_products() if self.given_fused is None else set(self.given_fused)

    def _before_nodes(self, order: list[int]) -> None:
        self.operands_of = {node: self._operands(node) for node in order}
        for node in self.ends:
            self.readers[node] = [len(order)]
        for position in reversed(range(len(order))):
            for operand in self.operands_of[order[position]]:
                self.readers.setdefault(operand, []).append(position)

    def _after_node(self, node: int) -> None:
        read_nodes = self.operands_of.pop(node)
        for read in read_nodes:
            self.readers[read].pop()
            self._keep_or_drop(read)
        self._keep_or_drop(node)
        self.peak = max(self.peak, min(len(self.in_registers), self.registers))
        while len(self.in_registers) > self.registers:
            self._spill(max(self.in_registers, key=lambda number: self.readers[number][-1]))

    def _operands(self, node: int) -> list[int]:
        """The nodes that the instruction of a node reads, through fused products; no constants."""
        tape, read = self.tape, []
        for operand in operands(tape, node):
            for x in operands(tape, operand) if operand in self.fused else (operand,):
                if tape.nodes[x][0] is not CONST and x not in read:
                    read.append(x)
        return read

    def _keep_or_drop(self, node: int) -> None:
        """Keep a node that has readers left in a register; free the register or slot of others."""
        if self.readers.get(node):
            self.in_registers.add(node)
            return
        self.in_registers.discard(node)
        self.names.pop(node, None)
        base, slot = self.segment.loads.get(node, ("", 0))
        if base == SPILL_BASE:
            self.free_slots.append(slot)

    def _spill(self, node: int) -> None:
        self.in_registers.remove(node)
        if node not in self.segment.loads:
            if not self.free_slots:
                self.free_slots.append(self.slot_count)
                self.slot_count += 1
            slot = self.free_slots.pop()
            self._store(Store(SPILL_BASE, slot, node))
            self.segment.loads[node] = SPILL_BASE, slot
        self.names.pop(node)


class FrameSpills(SpillEmitter):
    """Spills on a CPU: a result stored in the frame needs no slot, since it can be reloaded."""

    volatile_bases = (SPILL_BASE, FRAME, SEPARATE)

    def __init__(self, segment: Segment, width: Width, **options: Unpack[EmitterOptions]):
        super().__init__(segment, width, width.registers, **options)
        self.address_lines: dict[int, int] = {}  # {line number: place in the frame it addresses}

    def _store(self, store: Store) -> None:
        super()._store(store)
        if store.base == FRAME and not store.accumulate:
            self.segment.loads.setdefault(store.node, (FRAME, store.offset))

    def address(self, base: str, offset: int) -> str:
        if base == FRAME:
            self.address_lines[len(self.lines)] = offset
        return super().address(base, offset)

    def use_pointers(self) -> list[int]:
        """Address the frame from pointers %near0 ... instead of %frame; returns their places.

        Lines near such a place then have a short offset.
        """
        targets = pointer_targets(Counter(self.address_lines.values()))
        for line, place in self.address_lines.items():
            n = next(
                (
                    n
                    for n, target in enumerate(targets)
                    if -POINTER_REACH <= place - target < POINTER_REACH
                ),
                None,
            )
            if n is not None:
                offset = f"i64 {(place - targets[n]) * self.width.bytes}"
                self.lines[line] = (
                    f"{self.lines[line].split(' = ')[0]} = getelementptr i8, ptr %near{n}, {offset}"
                )
        return targets


def pointer_targets(uses: Counter[int]) -> list[int]:
    """Up to MAX_POINTERS places, each within reach of as many uses as possible.

    Uses within reach of %frame need no other pointer.
    """
    remaining, targets = sorted(place for place in uses if place >= POINTER_REACH), []
    while remaining and len(targets) < MAX_POINTERS:
        total = [0, *accumulate(uses[place] for place in remaining)]
        windows = [
            (bisect_left(remaining, first + 2 * POINTER_REACH), i)
            for i, first in enumerate(remaining)
        ]
        end, start = max(windows, key=lambda window: total[window[0]] - total[window[1]])
        targets.append(remaining[start] + POINTER_REACH)
        del remaining[start:end]
    return targets


def segment_function(
    name: str, bases: list[str], segment: Segment, width: Width, **options: Unpack[EmitterOptions]
) -> str:
    """A segment as a function of pointers, with its own spill slots.

    If results overwrite what the segment reads, they are stored at the end and LLVM spills.
    """
    if not (width.registers and segment.may_store_early):
        return internal_function(name, bases, Emitter(segment, width, **options).body())
    spills = FrameSpills(segment, width, **options)
    spills.body()
    stack = (
        [f"%{SPILL_BASE} = alloca [{spills.slot_count * width.bytes} x i8], align {width.bytes}"]
        if spills.slot_count
        else []
    )
    targets = spills.use_pointers() if width.bytes == LINE_BYTES else []
    inner = internal_function(
        f"{name}.near" if targets else name,
        [*bases, *(f"near{n}" for n in range(len(targets)))],
        [*stack, *spills.lines],
    )
    if not targets:
        return inner
    lines = [
        f"%near{n} = getelementptr i8, ptr %{FRAME}, i64 {place * width.bytes}"
        for n, place in enumerate(targets)
    ]
    passed = ", ".join(
        f"ptr %{base}" for base in (*bases, *(f"near{n}" for n in range(len(targets))))
    )
    return inner + internal_function(name, bases, [*lines, f"call void @{name}.near({passed})"])
