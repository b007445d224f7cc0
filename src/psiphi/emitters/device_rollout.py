"""A rollout as the kernel of a graphics card: one thread a motion, its state in registers from the first step to the last.

    kernel(arrays..., strides..., n, steps, every)     strides: bytes from motion to motion and from row to row of each array

Arrays come in the order of the plan, as on the host: read once, read every step (row: the step), then the samples (row: the
sample, row 0 where it began). All blocks of a step are one tape (`one_tape.py`); what the next step reads of this one goes
round in the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from psiphi.emitters.device import REGISTERS, ROOM, Shell, arithmetic
from psiphi.emitters.llvm import Width
from psiphi.emitters.one_tape import OneTape
from psiphi.emitters.parking import BASE, Parking
from psiphi.emitters.reduction import sincos_of_any
from psiphi.emitters.rollout import Rollout
from psiphi.emitters.segments import Segment
from psiphi.emitters.staging import WARPS, Block, places
from psiphi.errors import StateError
from psiphi.tape.ops import Op

Cell = tuple[str, int]  # a place, and which of its numbers


def device_rollout(rollout: Rollout, fp: str, shell: Shell) -> str:
    """The IR of one kernel."""
    if rollout.repeats:
        raise StateError('limits="block" has no kernel for graphics cards', "leave limits out, or pass arrays of the host")
    w = Width(fp, 1)
    names = [*rollout.once, *rollout.each, *rollout.sample]
    inputs = len(rollout.once) + len(rollout.each)
    pointers = [f"in{i}" for i in range(inputs)] + [f"out{i}" for i in range(len(rollout.sample))]
    numbers = [f"{x}.{what}" for x in pointers for what in ("outer", "row")] + ["n", "steps", "every"]
    loop = _StepLoop(rollout, w, dict(zip(names, pointers, strict=True)))
    block, trig = Block(WARPS, 0), [sincos_of_any(w)] if loop.has_trig else []
    return "\n".join([f"; {block.text}", arithmetic(w), *trig, shell.kernel(pointers, numbers, loop.body(), block)])


class _StepLoop:
    """The text of one kernel; `at` is the array of each place."""

    def __init__(self, rollout: Rollout, w: Width, at: dict[str, str]):
        self.rollout, self.w, self.at = rollout, w, at
        self.first, self.step = OneTape(rollout.frame), OneTape(rollout.frame)
        self.first.run("start")
        for name in rollout.order:
            self.step.run(name)
        read = {place for op, place, _ in self.step.tape.nodes if op is Op.LEAF}
        changed = self.step.values.keys() | self.first.values.keys()
        self.carried = [(place, j) for place in sorted(read & changed) for j in range(rollout.frame.sizes[place])]

    @property
    def has_trig(self) -> bool:
        return any(op in (Op.SIN, Op.COS) for one in (self.first, self.step) for op, *_ in one.tape.nodes)

    def body(self) -> list[str]:
        groups = self.rollout.once, self.rollout.each, self.rollout.sample
        once, each, out = ([self.at[place] for place in group] for group in groups)
        kept = [(p, j) for p in self.rollout.sample for j in range(self.rollout.frame.sizes[p])]
        start, starts = self._emitted(self.first, [*self.carried, *kept], {}, 0)
        names = {cell: f"%carry{i}" for i, cell in enumerate(self.carried)}
        step, ends = self._emitted(self.step, [*self.carried, *kept], names, start.count)
        begun, samples = (iter(values[len(self.carried) :]) for values in (starts, ends))
        carry = zip(names.values(), starts, ends, strict=False)
        room = max(start.places, step.places) * self.w.bytes
        return [
            *([f"%{BASE} = alloca [{room} x i8], align {self.w.bytes}"] if room else []),
            *places(),
            *(line for name in (*each, *out) for line in _moved(f"{name}.own", f"{name}.array", "%state", f"{name}.outer")),
            *(line for name in once for line in _moved(name, f"{name}.array", "%state", f"{name}.outer")),
            *start.lines,
            *(line for name in out for line in self._stored(f"{name}.own", begun)),
            "br label %ready",
            "ready:",
            "br label %test",
            "test:",
            "%s = phi i64 [ 0, %ready ], [ %s.next, %next ]",
            "%due = phi i64 [ %every, %ready ], [ %due.next, %next ]",
            "%sample = phi i64 [ 1, %ready ], [ %sample.next, %next ]",
            *(f"{name} = phi {self.w.fp} [ {first}, %ready ], [ {last}, %next ]" for name, first, last in carry),
            "%running = icmp slt i64 %s, %steps",
            "br i1 %running, label %step, label %done",
            "step:",
            *(line for name in each for line in _moved(name, f"{name}.own", "%s", f"{name}.row")),
            *step.lines,
            "%due.less = sub i64 %due, 1",
            "%now = icmp eq i64 %due.less, 0",
            "br i1 %now, label %store, label %after",
            "store:",
            *(line for name in out for line in _moved(name, f"{name}.own", "%sample", f"{name}.row")),
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

    def _emitted(self, one: OneTape, cells: list[Cell], names: dict[Cell, str], count: int) -> tuple[Parking, list[str]]:
        """The tape as lines, and the text that stands for cells of its places at the end."""
        ends = [one.value(*cell) for cell in cells]
        live = one.tape.live(ends)
        leaves = {i: (a, b) for i in live for op, a, b in [one.tape.nodes[i]] if op is Op.LEAF}
        known = {i: names[cell] for i, cell in leaves.items() if cell in names}
        given = {i: (self.at[place], j) for i, (place, j) in leaves.items() if i not in known}
        nodes = [i for i in live if one.tape.nodes[i][0] not in (Op.LEAF, Op.CONST)]
        segment = Segment("step", one.tape, nodes, [], given)
        for table in (ROOM, REGISTERS):
            parking = Parking(segment, self.w, table[self.w.fp], frozenset(one.fused), ends, known)
            parking.count = count
            parking.body()
            if not parking.places:
                break
        return parking, [parking.value(node) for node in ends]

    def _stored(self, name: str, values: Iterator[str]) -> list[str]:
        place = next(place for place, own in self.at.items() if own == name.removesuffix(".own"))
        lines = []
        for j in range(self.rollout.frame.sizes[place]):
            lines.append(f"%{name}.cell{j} = getelementptr {self.w.fp}, ptr %{name}, i64 {j}")
            lines.append(f"store {self.w.fp} {next(values)}, ptr %{name}.cell{j}, align {self.w.bytes}")
        return lines


def _moved(name: str, base: str, times: str, stride: str) -> list[str]:
    """%<name> = base + times stride bytes."""
    return [f"%{name}.way = mul i64 {times}, %{stride}", f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.way"]
