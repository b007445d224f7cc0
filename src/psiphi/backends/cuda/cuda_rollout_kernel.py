"""A rollout as a CUDA kernel: one thread per motion, its state in registers for all steps.

    kernel(arrays..., strides..., n, steps, every)

`strides` are the bytes from motion to motion and from row to row of each array. The arrays are in
the order of the `Rollout`, as on the CPU: those read once, those read every step (one row per
step), then the samples (one row per sample; row 0 is the start if `samples_start`). All blocks of a
step are one tape (`tape_fusion.py`); what the next step reads of this step is carried by the loop.
Blocks that not every step needs (`Repeat`) are separate tapes, which a thread runs as often as it
needs to; the parts of a step then exchange numbers in local memory, in cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from psiphi.backends.cuda.constant_memory import with_constant_memory
from psiphi.backends.cuda.cuda_kernel import (
    CAPACITY,
    SPILL_CAPACITY,
    KernelWrapper,
    arithmetic_declarations,
)
from psiphi.backends.cuda.shared_memory import MAX_WARPS, Block, state_indices
from psiphi.backends.llvm.angle_reduction import sincos_any_angle
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import SPILL_BASE, SpillEmitter
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout
from psiphi.compiler.ir.segments import Segment
from psiphi.compiler.ir.tape_fusion import TapeFusion
from psiphi.compiler.tape.ops import Op

Cell = tuple[str, int]  # (name of a place in the frame, index of one of its numbers)
CELLS = "cells"  # the pointer to the numbers that parts of a step exchange


@dataclass(frozen=True)
class _RepeatTapes:
    """A `Repeat` and the tapes of its blocks: before, body, after."""

    repeat: Repeat
    tapes: tuple[TapeFusion, TapeFusion, TapeFusion]


def rollout_kernel_module(rollout: Rollout, fp: str, wrapper: KernelWrapper) -> str:
    """The IR of one kernel; its first line describes the block."""
    w = Width(fp, 1)
    names = [*rollout.packed_once, *rollout.packed_per_step, *rollout.sampled]
    input_count = len(rollout.packed_once) + len(rollout.packed_per_step)
    pointers = [f"in{i}" for i in range(input_count)] + [
        f"out{i}" for i in range(len(rollout.sampled))
    ]
    numbers = [f"{x}.{what}" for x in pointers for what in ("outer", "row")] + [
        "n",
        "steps",
        "every",
    ]
    loop = _StepLoop(rollout, w, dict(zip(names, pointers, strict=True)))
    block, trig = Block(MAX_WARPS, 0), [sincos_any_angle(w)] if loop.has_trig else []
    text = wrapper.kernel(pointers, numbers, loop.body(), block)
    return with_constant_memory(
        "\n".join([f"; {block.header}", arithmetic_declarations(w), *trig, text]), w
    )


class _StepLoop:
    """The text of one kernel; `array_names` is {place: name of its array}."""

    def __init__(self, rollout: Rollout, w: Width, array_names: dict[str, str]):
        self.rollout, self.w, self.array_names = rollout, w, array_names
        self.first = self._fuse(rollout.prologue)
        self.parts = self._parts()
        tapes = [
            fusion
            for part in self.parts
            for fusion in (part.tapes if isinstance(part, _RepeatTapes) else (part,))
        ]
        self.tapes = [self.first, *tapes]
        changed = {place for fusion in tapes for place in fusion.values}
        self.carried = self._cells(
            sorted(self._places_read_first() & (changed | self.first.values.keys()))
        )
        self.cells = (
            {cell: i for i, cell in enumerate(self._cells(sorted(changed)))}
            if len(tapes) > 1
            else {}
        )
        self.count = self.slot_count = 0  # registers named so far, spill slots

    def _fuse(self, blocks: Iterable[str]) -> TapeFusion:
        fusion = TapeFusion(self.rollout.frame)
        for name in blocks:
            fusion.run(name)
        return fusion

    def _parts(self) -> list[TapeFusion | _RepeatTapes]:
        """The parts of a step: tapes, with repeats between them."""
        repeats, parts, blocks = {repeat.name: repeat for repeat in self.rollout.repeats}, [], []
        for name in self.rollout.order:
            repeat = repeats.get(name)
            blocks.append(repeat.test if repeat else name)
            if repeat:
                tapes = (
                    self._fuse(repeat.before),
                    self._fuse(repeat.body),
                    self._fuse([repeat.after] * bool(repeat.after)),
                )
                parts += [self._fuse(blocks), _RepeatTapes(repeat, tapes)]
                blocks = []
        return [*parts, self._fuse(blocks)] if blocks or not parts else parts

    def _places_read_first(self) -> set[str]:
        """Places that a step reads or samples before it writes them; a repeat may write nothing."""
        read, written = set[str](), set[str]()
        for part in self.parts:
            written_here = set(written)
            for fusion in part.tapes if isinstance(part, _RepeatTapes) else (part,):
                read |= {
                    str(place) for op, place, _ in fusion.tape.nodes if op is Op.LEAF
                } - written_here
                written_here |= fusion.values.keys()
            written = written if isinstance(part, _RepeatTapes) else written_here
        return read | (set(self.rollout.sampled) - written)

    def _cells(self, group: Iterable[str]) -> list[Cell]:
        return [(place, j) for place in group for j in range(self.rollout.frame.sizes[place])]

    @property
    def has_trig(self) -> bool:
        return any(op in (Op.SIN, Op.COS) for fusion in self.tapes for op, *_ in fusion.tape.nodes)

    def body(self) -> list[str]:
        groups = self.rollout.packed_once, self.rollout.packed_per_step, self.rollout.sampled
        once, each, sampled = ([self.array_names[place] for place in group] for group in groups)
        carried_and_sampled, samples_start = (
            [*self.carried, *self._cells(self.rollout.sampled)],
            self.rollout.samples_start,
        )
        start, starts = self._emit(
            self.first, carried_and_sampled if samples_start else self.carried, {}
        )
        names = {cell: f"%carry{i}" for i, cell in enumerate(self.carried)}
        step, ends = (
            self._emit_parts(carried_and_sampled, names)
            if self.cells
            else self._emit(self.tapes[1], carried_and_sampled, names)
        )
        before, samples = (iter(values[len(self.carried) :]) for values in (starts, ends))
        carry = zip(names.values(), starts, ends, strict=False)
        return [
            *(
                self._allocate(name, count)
                for name, count in ((SPILL_BASE, self.slot_count), (CELLS, len(self.cells)))
                if count
            ),
            *state_indices(),
            *(
                line
                for name in (*each, *sampled)
                for line in _offset_pointer(
                    f"{name}.own", f"{name}.array", "%state", f"{name}.outer"
                )
            ),
            *(
                line
                for name in once
                for line in _offset_pointer(name, f"{name}.array", "%state", f"{name}.outer")
            ),
            *start,
            *(
                line
                for name in sampled
                if samples_start
                for line in self._store_values(f"{name}.own", before)
            ),
            "br label %ready",
            "ready:",
            "br label %test",
            "test:",
            "%s = phi i64 [ 0, %ready ], [ %s.next, %next ]",
            "%due = phi i64 [ %every, %ready ], [ %due.next, %next ]",
            f"%sample = phi i64 [ {samples_start:d}, %ready ], [ %sample.next, %next ]",
            *(
                f"{name} = phi {self.w.fp} [ {first}, %ready ], [ {last}, %next ]"
                for name, first, last in carry
            ),
            "%running = icmp slt i64 %s, %steps",
            "br i1 %running, label %step, label %done",
            "step:",
            *(
                line
                for name in each
                for line in _offset_pointer(name, f"{name}.own", "%s", f"{name}.row")
            ),
            *step,
            "%due.less = sub i64 %due, 1",
            "%now = icmp eq i64 %due.less, 0",
            "br i1 %now, label %store, label %after",
            "store:",
            *(
                line
                for name in sampled
                for line in _offset_pointer(name, f"{name}.own", "%sample", f"{name}.row")
            ),
            *(line for name in sampled for line in self._store_values(name, samples)),
            "%sample.up = add i64 %sample, 1",
            "br label %next",
            "after:",
            "br label %next",
            "next:",
            "%due.next = phi i64 [ %due.less, %after ], [ %every, %store ]",
            "%sample.next = phi i64 [ %sample, %after ], [ %sample.up, %store ]",
            "%s.next = add i64 %s, 1",
            "br label %test",
            "done:",
        ]

    def _allocate(self, name: str, count: int) -> str:
        return f"%{name} = alloca [{count * self.w.bytes} x i8], align {self.w.bytes}"

    def _emit(
        self, fusion: TapeFusion, cells: Iterable[Cell], names: dict[Cell, str]
    ) -> tuple[list[str], list[str]]:
        """The lines of a tape, and the operand texts of `cells` after them.

        `names` are cells that are in registers before.
        """
        ends = [fusion.value(*cell) for cell in cells]
        live = fusion.tape.live(ends)
        leaves = {i: (a, b) for i in live for op, a, b in [fusion.tape.nodes[i]] if op is Op.LEAF}
        known = {i: names[cell] for i, cell in leaves.items() if cell in names}
        loads = {
            i: (CELLS, self.cells[cell])
            if cell in self.cells and fusion is not self.first
            else (self.array_names[cell[0]], cell[1])
            for i, cell in leaves.items()
            if i not in known
        }
        segment = Segment("step", fusion.tape, fusion.tape.operations(ends), [], loads)
        for table in (CAPACITY, SPILL_CAPACITY):
            spills = SpillEmitter(
                segment, self.w, table[self.w.fp], frozenset(fusion.fused), ends, known
            )
            spills.count = self.count
            spills.body()
            if not spills.slot_count:
                break
        values = [spills.value(node) for node in ends]
        self.count, self.slot_count = spills.count, max(self.slot_count, spills.slot_count)
        return spills.lines, values

    def _emit_parts(
        self, carried_and_sampled: list[Cell], names: dict[Cell, str]
    ) -> tuple[list[str], list[str]]:
        """The same for several tapes: what one changes, the next reads from its cell."""
        registers = {cell: name for cell, name in names.items() if cell not in self.cells}
        lines = self._store_cells(
            {cell: name for cell, name in names.items() if cell in self.cells}
        )

        def emit(fusion: TapeFusion) -> list[str]:
            changed = self._cells(fusion.values)
            text, ends = self._emit(fusion, changed, registers)
            return [*text, *self._store_cells(dict(zip(changed, ends, strict=True)))]

        for part in self.parts:
            lines += emit(part) if isinstance(part, TapeFusion) else self._emit_repeat(part, emit)
        text, ends = self._emit(TapeFusion(self.rollout.frame), carried_and_sampled, registers)
        return [*lines, *text], ends

    def _emit_repeat(
        self, tapes_of_repeat: _RepeatTapes, emit: Callable[[TapeFusion], list[str]]
    ) -> list[str]:
        """The loop of a repeat, which a thread runs if it needs to, until it is done."""
        repeat, (before, again, after) = tapes_of_repeat.repeat, tapes_of_repeat.tapes
        name = repeat.name
        return [
            *self._test_cell(f"{name}.hit", (repeat.when, 0), "one", 0.0),
            f"br i1 %{name}.hit, label %{name}.begin, label %{name}.done",
            f"{name}.begin:",
            *emit(before),
            f"br label %{name}.enter",
            f"{name}.enter:",
            f"br label %{name}.again",
            f"{name}.again:",
            f"%{name}.k = phi i64 [ 0, %{name}.enter ], [ %{name}.k.next, %{name}.again ]",
            *emit(again),
            *self._test_cell(f"{name}.moving", (repeat.done, 0), "olt", 1.0),
            f"%{name}.k.next = add i64 %{name}.k, 1",
            f"%{name}.early = icmp slt i64 %{name}.k.next, {repeat.limit}",
            f"%{name}.more = and i1 %{name}.moving, %{name}.early",
            f"br i1 %{name}.more, label %{name}.again, label %{name}.end",
            f"{name}.end:",
            *emit(after),
            f"br label %{name}.done",
            f"{name}.done:",
        ]

    def _test_cell(self, name: str, cell: Cell, test: str, value: float) -> list[str]:
        """%<name>: whether a cell passes a test."""
        w = self.w
        return [
            f"%{name}.at = getelementptr {w.fp}, ptr %{CELLS}, i64 {self.cells[cell]}",
            f"%{name}.value = load {w.fp}, ptr %{name}.at, align {w.bytes}",
            f"%{name} = fcmp {test} {w.fp} %{name}.value, {w.constant(value)}",
        ]

    def _store_cells(self, values: dict[Cell, str]) -> list[str]:
        """Store numbers in their cells."""
        lines = []
        for cell, text in values.items():
            self.count += 1
            address = f"%t{self.count}"
            lines.append(
                f"{address} = getelementptr {self.w.fp}, ptr %{CELLS}, i64 {self.cells[cell]}"
            )
            lines.append(f"store {self.w.fp} {text}, ptr {address}, align {self.w.bytes}")
        return lines

    def _store_values(self, name: str, values: Iterator[str]) -> list[str]:
        """Store the next values to the row %<name> of a sampled array."""
        array = name.removesuffix(".own")
        place = next(place for place, name in self.array_names.items() if name == array)
        lines = []
        for j in range(self.rollout.frame.sizes[place]):
            lines.append(f"%{name}.cell{j} = getelementptr {self.w.fp}, ptr %{name}, i64 {j}")
            lines.append(
                f"store {self.w.fp} {next(values)}, ptr %{name}.cell{j}, align {self.w.bytes}"
            )
        return lines


def _offset_pointer(name: str, base: str, index: str, stride: str) -> list[str]:
    """%<name> = base + index stride."""
    return [
        f"%{name}.way = mul i64 {index}, %{stride}",
        f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.way",
    ]
