"""A rollout as the kernel of a graphics card: one thread a motion, its state in registers from the first step to the last.

    kernel(arrays..., strides..., n, steps, every)     strides: bytes from motion to motion and from row to row of each array

Arrays come in the order of the plan, as on the host: read once, read every step (row: the step), then the samples (row: the
sample; row 0 is where it began, where the rollout says so). All blocks of a step are one tape (`tape_fusion.py`); what the next
step reads of this one goes round in the loop. Blocks that not every step needs (`Repeat`) are tapes of
their own, which a thread runs as often as it has to; what stretches of a step hand on stands in cells of the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from psiphi.backends.cuda.constant_memory import banked
from psiphi.backends.cuda.cuda_kernel import REGISTERS, ROOM, KernelWrapper, arithmetic
from psiphi.backends.cuda.shared_memory import WARPS, Block, places
from psiphi.backends.llvm.angle_reduction import sincos_of_any
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import BASE, SpillEmitter
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout
from psiphi.compiler.ir.segments import Segment
from psiphi.compiler.ir.tape_fusion import TapeFusion
from psiphi.compiler.tape.ops import Op

Cell = tuple[str, int]  # a place, and which of its numbers
CELLS = "cells"  # the pointer to what stretches of a step hand on


@dataclass(frozen=True)
class _Detour:
    """A `Repeat`, and the tapes of its blocks before, again, after."""

    repeat: Repeat
    tapes: tuple[TapeFusion, TapeFusion, TapeFusion]


def device_rollout(rollout: Rollout, fp: str, shell: KernelWrapper) -> str:
    """The IR of one kernel."""
    w = Width(fp, 1)
    names = [*rollout.once, *rollout.each, *rollout.sample]
    inputs = len(rollout.once) + len(rollout.each)
    pointers = [f"in{i}" for i in range(inputs)] + [f"out{i}" for i in range(len(rollout.sample))]
    numbers = [f"{x}.{what}" for x in pointers for what in ("outer", "row")] + [
        "n",
        "steps",
        "every",
    ]
    loop = _StepLoop(rollout, w, dict(zip(names, pointers, strict=True)))
    block, trig = Block(WARPS, 0), [sincos_of_any(w)] if loop.has_trig else []
    text = shell.kernel(pointers, numbers, loop.body(), block)
    return banked("\n".join([f"; {block.text}", arithmetic(w), *trig, text]), w)


class _StepLoop:
    """The text of one kernel; `at` is the array of each place."""

    def __init__(self, rollout: Rollout, w: Width, at: dict[str, str]):
        self.rollout, self.w, self.at = rollout, w, at
        self.first = self._tape(rollout.first)
        self.parts = self._parts()
        tapes = [
            one
            for part in self.parts
            for one in (part.tapes if isinstance(part, _Detour) else (part,))
        ]
        self.tapes = [self.first, *tapes]
        changed = {place for one in tapes for place in one.values}
        self.carried = self._cells(
            sorted(self._read_first() & (changed | self.first.values.keys()))
        )
        self.cells = (
            {cell: i for i, cell in enumerate(self._cells(sorted(changed)))}
            if len(tapes) > 1
            else {}
        )
        self.count = self.room = 0  # registers that were named, numbers that wait at once

    def _tape(self, blocks: Iterable[str]) -> TapeFusion:
        one = TapeFusion(self.rollout.frame)
        for name in blocks:
            one.run(name)
        return one

    def _parts(self) -> list[TapeFusion | _Detour]:
        """A step in stretches: tapes, and detours between them."""
        detours, parts, blocks = {repeat.name: repeat for repeat in self.rollout.repeats}, [], []
        for name in self.rollout.order:
            detour = detours.get(name)
            blocks.append(detour.look if detour else name)
            if detour:
                rest = (
                    self._tape(detour.before),
                    self._tape([detour.again]),
                    self._tape([detour.after] * bool(detour.after)),
                )
                parts += [self._tape(blocks), _Detour(detour, rest)]
                blocks = []
        return [*parts, self._tape(blocks)] if blocks or not parts else parts

    def _read_first(self) -> set[str]:
        """Places that a step reads, or stores as samples, before it has written them; on a detour it may not write them."""
        found, written = set[str](), set[str]()
        for part in self.parts:
            inside = set(written)
            for one in part.tapes if isinstance(part, _Detour) else (part,):
                found |= {str(place) for op, place, _ in one.tape.nodes if op is Op.LEAF} - inside
                inside |= one.values.keys()
            written = written if isinstance(part, _Detour) else inside
        return found | (set(self.rollout.sample) - written)

    def _cells(self, group: Iterable[str]) -> list[Cell]:
        return [(place, j) for place in group for j in range(self.rollout.frame.sizes[place])]

    @property
    def has_trig(self) -> bool:
        return any(op in (Op.SIN, Op.COS) for one in self.tapes for op, *_ in one.tape.nodes)

    def body(self) -> list[str]:
        groups = self.rollout.once, self.rollout.each, self.rollout.sample
        once, each, out = ([self.at[place] for place in group] for group in groups)
        wanted, begun = [*self.carried, *self._cells(self.rollout.sample)], self.rollout.starts
        start, starts = self._emitted(self.first, wanted if begun else self.carried, {})
        names = {cell: f"%carry{i}" for i, cell in enumerate(self.carried)}
        step, ends = (
            self._stretches(wanted, names)
            if self.cells
            else self._emitted(self.parts[0], wanted, names)
        )
        before, samples = (iter(values[len(self.carried) :]) for values in (starts, ends))
        carry = zip(names.values(), starts, ends, strict=False)
        return [
            *(
                self._memory(name, count)
                for name, count in ((BASE, self.room), (CELLS, len(self.cells)))
                if count
            ),
            *places(),
            *(
                line
                for name in (*each, *out)
                for line in _moved(f"{name}.own", f"{name}.array", "%state", f"{name}.outer")
            ),
            *(
                line
                for name in once
                for line in _moved(name, f"{name}.array", "%state", f"{name}.outer")
            ),
            *start,
            *(line for name in out if begun for line in self._stored(f"{name}.own", before)),
            "br label %ready",
            "ready:",
            "br label %test",
            "test:",
            "%s = phi i64 [ 0, %ready ], [ %s.next, %next ]",
            "%due = phi i64 [ %every, %ready ], [ %due.next, %next ]",
            f"%sample = phi i64 [ {begun:d}, %ready ], [ %sample.next, %next ]",
            *(
                f"{name} = phi {self.w.fp} [ {first}, %ready ], [ {last}, %next ]"
                for name, first, last in carry
            ),
            "%running = icmp slt i64 %s, %steps",
            "br i1 %running, label %step, label %done",
            "step:",
            *(line for name in each for line in _moved(name, f"{name}.own", "%s", f"{name}.row")),
            *step,
            "%due.less = sub i64 %due, 1",
            "%now = icmp eq i64 %due.less, 0",
            "br i1 %now, label %store, label %after",
            "store:",
            *(
                line
                for name in out
                for line in _moved(name, f"{name}.own", "%sample", f"{name}.row")
            ),
            *(line for name in out for line in self._stored(name, samples)),
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

    def _memory(self, name: str, count: int) -> str:
        return f"%{name} = alloca [{count * self.w.bytes} x i8], align {self.w.bytes}"

    def _emitted(
        self, one: Any, cells: Iterable[Cell], names: dict[Cell, str]
    ) -> tuple[list[str], list[str]]:
        """The tape as lines, and the text that stands for cells of its places at the end."""
        ends = [one.value(*cell) for cell in cells]
        live = one.tape.live(ends)
        leaves = {i: (a, b) for i in live for op, a, b in [one.tape.nodes[i]] if op is Op.LEAF}
        known = {i: names[cell] for i, cell in leaves.items() if cell in names}
        given = {
            i: (CELLS, self.cells[cell])
            if cell in self.cells and one is not self.first
            else (self.at[cell[0]], cell[1])
            for i, cell in leaves.items()
            if i not in known
        }
        segment = Segment("step", one.tape, one.tape.computed(ends), [], given)
        for table in (ROOM, REGISTERS):
            parking = SpillEmitter(
                segment, self.w, table[self.w.fp], frozenset(one.fused), ends, known
            )
            parking.count = self.count
            parking.body()
            if not parking.places:
                break
        texts = [parking.value(node) for node in ends]
        self.count, self.room = parking.count, max(self.room, parking.places)
        return parking.lines, texts

    def _stretches(self, wanted: list[Cell], names: dict[Cell, str]) -> tuple[list[str], list[str]]:
        """The same of several tapes: what one changes, the next finds in its cell."""
        own = {cell: name for cell, name in names.items() if cell not in self.cells}
        lines = self._written({cell: name for cell, name in names.items() if cell in self.cells})

        def through(one: TapeFusion) -> list[str]:
            changed = self._cells(one.values)
            text, ends = self._emitted(one, changed, own)
            return [*text, *self._written(dict(zip(changed, ends, strict=True)))]

        for part in self.parts:
            lines += through(part) if isinstance(part, TapeFusion) else self._detour(part, through)
        text, ends = self._emitted(TapeFusion(self.rollout.frame), wanted, own)
        return [*lines, *text], ends

    def _detour(self, detour: _Detour, through: Callable[[TapeFusion], list[str]]) -> list[str]:
        """What a thread does where it has to, till it is done."""
        repeat, (before, again, after) = detour.repeat, detour.tapes
        name = repeat.name
        return [
            *self._asked(f"{name}.hit", (repeat.when, 0), "one", 0.0),
            f"br i1 %{name}.hit, label %{name}.begin, label %{name}.done",
            f"{name}.begin:",
            *through(before),
            f"br label %{name}.enter",
            f"{name}.enter:",
            f"br label %{name}.again",
            f"{name}.again:",
            f"%{name}.k = phi i64 [ 0, %{name}.enter ], [ %{name}.k.next, %{name}.again ]",
            *through(again),
            *self._asked(f"{name}.moving", (repeat.done, 0), "olt", 1.0),
            f"%{name}.k.next = add i64 %{name}.k, 1",
            f"%{name}.early = icmp slt i64 %{name}.k.next, {repeat.most}",
            f"%{name}.more = and i1 %{name}.moving, %{name}.early",
            f"br i1 %{name}.more, label %{name}.again, label %{name}.end",
            f"{name}.end:",
            *through(after),
            f"br label %{name}.done",
            f"{name}.done:",
        ]

    def _asked(self, name: str, cell: Cell, test: str, value: float) -> list[str]:
        """%<name>: whether a cell passes a test."""
        w = self.w
        return [
            f"%{name}.at = getelementptr {w.fp}, ptr %{CELLS}, i64 {self.cells[cell]}",
            f"%{name}.value = load {w.fp}, ptr %{name}.at, align {w.bytes}",
            f"%{name} = fcmp {test} {w.fp} %{name}.value, {w.constant(value)}",
        ]

    def _written(self, values: dict[Cell, str]) -> list[str]:
        """Numbers into their cells."""
        lines = []
        for cell, text in values.items():
            self.count += 1
            at = f"%t{self.count}"
            lines.append(f"{at} = getelementptr {self.w.fp}, ptr %{CELLS}, i64 {self.cells[cell]}")
            lines.append(f"store {self.w.fp} {text}, ptr {at}, align {self.w.bytes}")
        return lines

    def _stored(self, name: str, values: Iterator[str]) -> list[str]:
        place = next(place for place, own in self.at.items() if own == name.removesuffix(".own"))
        lines = []
        for j in range(self.rollout.frame.sizes[place]):
            lines.append(f"%{name}.cell{j} = getelementptr {self.w.fp}, ptr %{name}, i64 {j}")
            lines.append(
                f"store {self.w.fp} {next(values)}, ptr %{name}.cell{j}, align {self.w.bytes}"
            )
        return lines


def _moved(name: str, base: str, times: str, stride: str) -> list[str]:
    """%<name> = base + times stride bytes."""
    return [
        f"%{name}.way = mul i64 {times}, %{stride}",
        f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.way",
    ]
