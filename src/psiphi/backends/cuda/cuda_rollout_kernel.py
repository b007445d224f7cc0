"""A rollout as a CUDA kernel: one thread per motion, its state in registers for all steps.

    kernel(arrays..., strides..., n, steps, every)

`strides` are the bytes from motion to motion and from row to row of each array. The arrays are in
the order of the `Rollout`, as on the CPU: those read once, those read every step (one row per
step), then the samples (one row per sample; row 0 is the start if `samples_start`). All blocks of a
step are one tape (`tape_fusion.py`); what the next step reads of this step is carried by the loop.
Blocks that not every step needs (`Repeat`) are separate tapes, which a thread runs as often as it
needs to, and those of them that have a condition only where it is not 0; the parts of a step then
exchange numbers in local memory, in cells. So do random numbers, selections and lookups
(`lane_blocks.py`), which are functions on the cells; a lookup reads a table where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from psiphi.backends.cuda.constant_memory import with_constant_memory
from psiphi.backends.cuda.cuda_kernel import (
    CAPACITY,
    SPILL_CAPACITY,
    KernelWrapper,
    arithmetic_declarations,
)
from psiphi.backends.cuda.shared_memory import MAX_WARPS, Block, state_indices
from psiphi.backends.llvm.angle_reduction import sincos_any_angle
from psiphi.backends.llvm.lane_functions import lane_function, lookup_function
from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import SPILL_BASE, SpillEmitter
from psiphi.compiler.ir.block_frame import LaneBlock
from psiphi.compiler.ir.lane_blocks import (
    GRID_POINTS,
    TABLE,
    GridLookup,
    LaneCode,
    RandomNumbers,
    Selection,
)
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout
from psiphi.compiler.ir.segments import Segment, Store
from psiphi.compiler.ir.tape_fusion import TapeFusion
from psiphi.compiler.tape.ops import Op

Cell = tuple[str, int]  # (name of a place in the frame, index of one of its numbers)
CELLS = "cells"  # the pointer to the numbers that parts of a step exchange


@dataclass(frozen=True)
class _Section:
    """Blocks as one tape, which runs if the value `condition` is not 0; always if it is ""."""

    tape: TapeFusion
    condition: str = ""

    @property
    def sections(self) -> list[_Section | _LaneSection]:
        return [self]

    @property
    def reads(self) -> set[str]:
        return {str(place) for op, place, _ in self.tape.tape.nodes if op is Op.LEAF}

    @property
    def writes(self) -> set[str]:
        return set(self.tape.values)


@dataclass(frozen=True)
class _LaneSection:
    """Random numbers or a selection: a function on the cells. `places` are those of arguments."""

    name: str
    code: LaneCode
    places: dict[str, str]
    condition: str = ""

    @property
    def sections(self) -> list[_Section | _LaneSection]:
        return [self]

    @property
    def reads(self) -> set[str]:
        return {self.places[arg.name] for arg in self.code.program.inputs}

    @property
    def writes(self) -> set[str]:
        return {self.places[arg.name] for arg in self.code.program.outputs}


@dataclass(frozen=True)
class _RepeatSections:
    """A `Repeat` and the sections of its blocks: before, body, after."""

    repeat: Repeat
    before: list[_Section]
    body: list[_Section]
    after: list[_Section]

    @property
    def sections(self) -> list[_Section | _LaneSection]:
        return [*self.before, *self.body, *self.after]


@dataclass(frozen=True)
class _LookupPart:
    """A lookup in a table, the block `name`."""

    name: str

    @property
    def sections(self) -> list[_Section]:
        return []


class _TapeEmitter(SpillEmitter):
    """A tape of a step, whose arrays have the type `stored`. With `volatile_cells`, LLVM leaves the
    cells in memory: a thread has too few registers for all of them."""

    stored: Width

    def set_memory(self, stored: Width, volatile_cells: bool) -> None:
        self.stored = stored
        self.volatile_bases = (SPILL_BASE, *[CELLS] * volatile_cells)

    def _load(self, base: str, offset: int) -> str:
        if base in (SPILL_BASE, CELLS) or self.stored == self.width:
            return super()._load(base, offset)
        address, short, name = (self.new_register() for _ in range(3))
        fp, size = self.stored.fp, self.stored.bytes
        self.lines += [
            f"{address} = getelementptr i8, ptr %{base}, i64 {offset * size}",
            f"{short} = load {fp}, ptr {address}, align {size}",
            f"{name} = fpext {fp} {short} to {self.width.fp}",
        ]
        return name


def rollout_kernel_module(rollout: Rollout, fp: str, wrapper: KernelWrapper) -> str:
    """The IR of one kernel; its first line describes the block."""
    stored = Width(fp, 1)
    w = Width("double", 1) if rollout.in_float64 else stored
    input_count = len(rollout.packed_once) + len(rollout.packed_per_step)
    pointers = [f"in{i}" for i in range(input_count)] + [
        f"out{i}" for i in range(len(rollout.sampled))
    ]
    numbers = [f"{x}.{what}" for x in pointers for what in ("outer", "row")] + [
        "n",
        "steps",
        "every",
    ]
    loop = _StepLoop(rollout, w, stored, pointers)
    block, trig = Block(MAX_WARPS, 0), [sincos_any_angle(w)] if loop.has_trig else []
    text = wrapper.kernel(pointers, numbers, loop.body(), block)
    functions = [*loop.functions(), *loop.lookup_functions()]
    parts = [f"; {block.header}", arithmetic_declarations(w), *trig, *functions, text]
    return with_constant_memory("\n".join(parts), w)


class _StepLoop:
    """The text of one kernel; `arrays` are the names of its arrays in the order of the rollout."""

    def __init__(self, rollout: Rollout, w: Width, stored: Width, arrays: list[str]):
        self.rollout, self.w, self.stored = rollout, w, stored
        inputs = *rollout.packed_once, *rollout.packed_per_step
        self.array_names = dict(zip(inputs, arrays, strict=False))  # of inputs, by place
        self.sample_names = arrays[len(inputs) :]
        self.first = self._fuse(name for name in rollout.prologue if not self._is_lookup(name))
        self.parts = self._parts()
        sections = [section for part in self.parts for section in part.sections]
        self.lanes = [section for section in sections if isinstance(section, _LaneSection)]
        tapes = [section.tape for section in sections if isinstance(section, _Section)]
        self.tapes = [self.first, *tapes]
        changed = {place for section in sections for place in section.writes}
        changed |= {place for section in self.lanes for place in section.reads}
        changed |= {section.condition for section in sections if section.condition}
        self.looked_up = {
            self._lookup(part.name)[2] for part in self.parts if isinstance(part, _LookupPart)
        }
        self.carried = self._cells(
            sorted(self._places_read_first() & (changed | self.first.values.keys()))
        )
        self.cells = (
            {cell: i for i, cell in enumerate(self._cells(sorted(changed | self.looked_up)))}
            if len(sections) > 1 or self.lanes or self.looked_up
            else {}
        )
        self.volatile = len(self.cells) > CAPACITY[w.fp]
        self.count = self.slot_count = 0  # registers named so far, spill slots

    def _fuse(self, blocks: Iterable[str]) -> TapeFusion:
        fusion = TapeFusion(self.rollout.frame)
        for name in blocks:
            fusion.run(name)
        return fusion

    def _sections(self, blocks: Iterable[str]) -> list[_Section]:
        """The blocks of a repeat; one with a condition is a section of its own."""
        conditions = self.rollout.conditions
        groups = groupby(blocks, key=lambda name: name if name in conditions else "")
        return [_Section(self._fuse(names), conditions.get(key, "")) for key, names in groups]

    def _is_lookup(self, name: str) -> bool:
        return isinstance(self.rollout.frame.named[name][0], GridLookup)

    def _lookup(self, name: str) -> tuple[GridLookup, str, str, str]:
        """A lookup, and the places of its points, results and table."""
        code, at = self.rollout.frame.named[name]
        assert isinstance(code, GridLookup)
        points, cells, table = (at.get(x, x) for x in (GRID_POINTS, "cells", TABLE))
        return code, points, cells, table

    def _lane_section(self, name: str) -> _LaneSection | None:
        """The section of random numbers or of a selection; None for other blocks."""
        code, at = self.rollout.frame.named[name]
        if not isinstance(code, RandomNumbers | Selection):
            return None
        arguments = (*code.program.inputs, *code.program.outputs)
        places = {arg.name: at.get(arg.name, arg.name) for arg in arguments}
        return _LaneSection(name, code, places, self.rollout.conditions.get(name, ""))

    def functions(self) -> list[str]:
        """The texts of random numbers and selections, on the cells of a thread."""
        texts = {}
        for section in self.lanes:
            places = {name: self.cells[place, 0] for name, place in section.places.items()}
            texts[section.name] = lane_function(
                LaneBlock(section.name, section.code, places), self.w
            )
        return list(texts.values())

    def _parts(self) -> list[_Section | _LaneSection | _RepeatSections | _LookupPart]:
        """The parts of a step: tapes, with repeats, random numbers, selections and lookups between
        them."""
        repeats, parts, blocks = {repeat.name: repeat for repeat in self.rollout.repeats}, [], []
        for name in self.rollout.order:
            repeat = repeats.get(name)
            lane = None if repeat else self._lane_section(name)
            if repeat is None and lane is None and self._is_lookup(name):
                lane = _LookupPart(name)
            if lane is not None:
                parts += [*([_Section(self._fuse(blocks))] if blocks else []), lane]
                blocks = []
                continue
            blocks.append(repeat.test if repeat else name)
            if repeat:
                groups = repeat.before, repeat.body, [repeat.after] * bool(repeat.after)
                sections = map(self._sections, groups)
                parts += [_Section(self._fuse(blocks)), _RepeatSections(repeat, *sections)]
                blocks = []
        return [*parts, _Section(self._fuse(blocks))] if blocks or not parts else parts

    def _places_read_first(self) -> set[str]:
        """Places that a step reads or samples before it writes them; a repeat, or a section with a
        condition, may write nothing."""
        read, written = set[str](), set[str]()
        for part in self.parts:
            written_here = set(written)
            for section in part.sections:
                read |= (section.reads | {section.condition} - {""}) - written_here
                written_here |= set() if section.condition else section.writes
            written = written if isinstance(part, _RepeatSections) else written_here
        return read | (set(self.rollout.sampled) - written)

    def _cells(self, group: Iterable[str]) -> list[Cell]:
        return [(place, j) for place in group for j in range(self.rollout.frame.sizes[place])]

    @property
    def has_trig(self) -> bool:
        return any(op in (Op.SIN, Op.COS) for fusion in self.tapes for op, *_ in fusion.tape.nodes)

    def body(self) -> list[str]:
        groups = self.rollout.packed_once, self.rollout.packed_per_step
        once, each = ([self.array_names[place] for place in group] for group in groups)
        sampled = self.sample_names
        carried_and_sampled, samples_start = (
            [*self.carried, *self._cells(self.rollout.sampled)],
            self.rollout.samples_start,
        )
        lookups = self._first_lookups()
        start, starts = self._emit(
            self.first,
            carried_and_sampled if samples_start else self.carried,
            {},
            before_steps=True,
        )
        names = {cell: f"%carry{i}" for i, cell in enumerate(self.carried)}
        step, ends = (
            self._emit_parts(carried_and_sampled, names)
            if self.cells
            else self._emit(self.tapes[1], carried_and_sampled, names)
        )
        before, samples = (iter(values[len(self.carried) :]) for values in (starts, ends))
        sums = {name for (place, _), name in names.items() if place in self.rollout.sample_sums}
        carry = [
            (name, first, f"{name}.next" if name in sums else last, last)
            for name, first, last in zip(names.values(), starts, ends, strict=False)
        ]
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
            *lookups,
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
                for name, first, last, _ in carry
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
            *(
                f"{name}.next = phi {self.w.fp} [ {last}, %after ], "
                f"[ {self.w.constant(0.0)}, %store ]"
                for name, _, _, last in carry
                if name in sums
            ),
            "%s.next = add i64 %s, 1",
            "br label %test",
            "done:",
        ]

    def _allocate(self, name: str, count: int) -> str:
        return f"%{name} = alloca [{count * self.w.bytes} x i8], align {self.w.bytes}"

    def _emit(
        self,
        fusion: TapeFusion,
        cells: Iterable[Cell],
        names: dict[Cell, str],
        stored: Iterable[Cell] = (),
        before_steps: bool = False,
    ) -> tuple[list[str], list[str]]:
        """The lines of a tape, and the operand texts of `cells` after them.

        `names` are cells that are in registers before; `stored` those that are stored as soon as
        they are computed, which the tape may not read.
        """
        ends = [fusion.value(*cell) for cell in cells]
        stores = [Store(CELLS, self.cells[cell], fusion.value(*cell)) for cell in stored]
        needed = [*ends, *(store.node for store in stores)]
        live = fusion.tape.live(needed)
        leaves = {i: (a, b) for i in live for op, a, b in [fusion.tape.nodes[i]] if op is Op.LEAF}
        known = {i: names[cell] for i, cell in leaves.items() if cell in names}
        loads = {
            i: (CELLS, self.cells[cell])
            if cell in self.cells and (not before_steps or cell[0] in self.looked_up)
            else (self.array_names[cell[0]], cell[1])
            for i, cell in leaves.items()
            if i not in known
        }
        segment = Segment("step", fusion.tape, fusion.tape.operations(needed), stores, loads)
        for table in (CAPACITY, SPILL_CAPACITY):
            spills = _TapeEmitter(
                segment, self.w, table[self.w.fp], frozenset(fusion.fused), ends, known
            )
            spills.set_memory(self.stored, self.volatile)
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
            read = _Section(fusion).reads
            late = self._cells(place for place in fusion.values if place in read)
            early = self._cells(place for place in fusion.values if place not in read)
            text, ends = self._emit(fusion, late, registers, early)
            return [*text, *self._store_cells(dict(zip(late, ends, strict=True)))]

        for part in self.parts:
            if isinstance(part, _LookupPart):
                lines += self._emit_lookup(part.name, "step")
            elif isinstance(part, _RepeatSections):
                lines += self._emit_repeat(part, emit)
            else:
                lines += self._emit_section(part, f"part{len(lines)}", emit)
        text, ends = self._emit(TapeFusion(self.rollout.frame), carried_and_sampled, registers)
        return [*lines, *text], ends

    def _emit_lookup(self, name: str, label: str) -> list[str]:
        """The lines of a lookup: from cells and a table to cells."""
        code, points, cells, table = self._lookup(name)
        lines, first = [], self.cells[cells, 0]
        for k, (m, size) in enumerate(zip(code.cells, code.sizes, strict=True)):
            source, target = (f"%{label}.{name}.{way}{k}" for way in ("from", "to"))
            where = self.cells[points, 2 * k]
            lines += [
                f"{source} = getelementptr {self.w.fp}, ptr %{CELLS}, i64 {where}",
                f"{target} = getelementptr {self.w.fp}, ptr %{CELLS}, i64 {first}",
                f"call void @{name}.cell{m}(ptr {source}, ptr {target}, "
                f"ptr %{self.array_names[table]})",
            ]
            first += size
        return lines

    def lookup_functions(self) -> list[str]:
        """The functions that read tables."""
        found: dict[str, str] = {}
        for part in self.parts:
            if isinstance(part, _LookupPart):
                code, *_ = self._lookup(part.name)
                for m in code.cells:
                    name, (fp, size) = f"{part.name}.cell{m}", (self.w.fp, self.w.bytes)
                    found[name] = lookup_function(name, m, code.shape, fp, size, self.stored.fp)
        return list(found.values())

    def _first_lookups(self) -> list[str]:
        """The lines of the lookups before the first step, which the blocks after them read."""
        lines: list[str] = []
        names = list(self.rollout.prologue)
        for i, name in enumerate(names):
            if self._is_lookup(name):
                _, points, *_ = self._lookup(name)
                before = self._fuse(x for x in names[:i] if not self._is_lookup(x))
                cells = self._cells([points])
                text, values = self._emit(before, cells, {}, before_steps=True)
                lines += [*text, *self._store_cells(dict(zip(cells, values, strict=True)))]
                lines += self._emit_lookup(name, "first")
        return lines

    def _emit_repeat(
        self, part: _RepeatSections, emit: Callable[[TapeFusion], list[str]]
    ) -> list[str]:
        """The loop of a repeat, which a thread runs if it needs to, until it is done."""
        repeat, name = part.repeat, part.repeat.name

        def lines(sections: list[_Section], label: str) -> list[str]:
            texts = [
                self._emit_section(section, f"{name}.{label}{i}", emit)
                for i, section in enumerate(sections)
            ]
            return [line for text in texts for line in text]

        return [
            *self._test_cell(f"{name}.hit", (repeat.when, 0), "one", 0.0),
            f"br i1 %{name}.hit, label %{name}.begin, label %{name}.done",
            f"{name}.begin:",
            *lines(part.before, "before"),
            f"br label %{name}.enter",
            f"{name}.enter:",
            f"br label %{name}.again",
            f"{name}.again:",
            f"%{name}.k = phi i64 [ 0, %{name}.enter ], [ %{name}.k.next, %{name}.turn ]",
            *lines(part.body, "body"),
            f"br label %{name}.turn",
            f"{name}.turn:",
            *self._test_cell(f"{name}.moving", (repeat.done, 0), "olt", 1.0),
            f"%{name}.k.next = add i64 %{name}.k, 1",
            f"%{name}.early = icmp slt i64 %{name}.k.next, {repeat.limit}",
            f"%{name}.more = and i1 %{name}.moving, %{name}.early",
            f"br i1 %{name}.more, label %{name}.again, label %{name}.end",
            f"{name}.end:",
            *lines(part.after, "after"),
            f"br label %{name}.done",
            f"{name}.done:",
        ]

    def _emit_section(
        self, section: _Section | _LaneSection, name: str, emit: Callable[[TapeFusion], list[str]]
    ) -> list[str]:
        """A section; a thread for which its condition is 0 branches around it."""
        text = (
            emit(section.tape)
            if isinstance(section, _Section)
            else [f"call void @{section.name}.{self.w.suffix}(ptr %{CELLS})"]
        )
        if not section.condition:
            return text
        return [
            *self._test_cell(f"{name}.need", (section.condition, 0), "une", 0.0),
            f"br i1 %{name}.need, label %{name}.do, label %{name}.skip",
            f"{name}.do:",
            *text,
            f"br label %{name}.skip",
            f"{name}.skip:",
        ]

    def _test_cell(self, name: str, cell: Cell, test: str, value: float) -> list[str]:
        """%<name>: whether a cell passes a test."""
        w = self.w
        return [
            f"%{name}.at = getelementptr {w.fp}, ptr %{CELLS}, i64 {self.cells[cell]}",
            f"%{name}.value = load {self._volatile}{w.fp}, ptr %{name}.at, align {w.bytes}",
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
            store = f"store {self._volatile}{self.w.fp}"
            lines.append(f"{store} {text}, ptr {address}, align {self.w.bytes}")
        return lines

    @property
    def _volatile(self) -> str:
        return "volatile " if self.volatile else ""

    def _store_values(self, name: str, values: Iterator[str]) -> list[str]:
        """Store the next values to the row %<name> of a sampled array."""
        place = self.rollout.sampled[self.sample_names.index(name.removesuffix(".own"))]
        lines, fp = [], self.stored.fp
        for j in range(self.rollout.frame.sizes[place]):
            cell, value = f"%{name}.cell{j}", next(values)
            lines.append(f"{cell} = getelementptr {fp}, ptr %{name}, i64 {j}")
            if self.stored != self.w:
                lines.append(f"{cell}.short = fptrunc {self.w.fp} {value} to {fp}")
                value = f"{cell}.short"
            lines.append(f"store {fp} {value}, ptr {cell}, align {self.stored.bytes}")
        return lines


def _offset_pointer(name: str, base: str, index: str, stride: str) -> list[str]:
    """%<name> = base + index stride."""
    return [
        f"%{name}.way = mul i64 {index}, %{stride}",
        f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.way",
    ]
