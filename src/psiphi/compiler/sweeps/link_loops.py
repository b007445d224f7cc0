"""Large robots: one traced step per class of links, run in loops.

Links form a *class* if their numbers have the same zeros and ones, and if the values that their
parents stored and their children sent have the same templates. The step of a class is traced once,
with the numbers of the link as parameters. The order of the bodies, their records and their numbers
are tables. Compile time and code size depend on the number of classes, not of bodies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi.compiler.sweeps.dead_values import INBOX, RECORD, drop_dead_stores
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    BodyView,
    Program,
    Sweep,
    SweepTree,
)
from psiphi.compiler.sweeps.value_template import Template
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Count, Scalar, Tape
from psiphi.model.model import WORLD

FOLDED_NUMBERS = (0.0, 1.0, -1.0)  # numbers that are constants of the traced step

Templates = dict[str, Template]
LoopStore = tuple[str, int, int, bool]  # base, offset, node, accumulate


@dataclass
class LinkClass:
    """One traced step: what it loads and stores, and the templates of the values it leaves: its
    record, and `sent`, the inbox of its parent."""

    tape: Tape
    stores: list[LoopStore]
    record: Templates
    sent: Templates
    trig: dict[tuple, int]  # slots of the record with sines and cosines, by their argument
    loads: dict[int, tuple[str, int]]  # {node: (base, offset)}
    # slots in use after this step, before dead stores are dropped: of the record, of the inbox
    record_slots: int
    inbox_slots: int
    body_count: int = 0

    @property
    def outputs(self) -> list[int]:
        return [node for _, _, node, _ in self.stores]

    @property
    def count(self) -> Count:
        extra = sum(accumulate for *_, accumulate in self.stores)
        return self.tape.count(self.outputs, self.loads) + Count(add=extra)


@dataclass
class SweepLoop:
    """One sweep as a loop: the bodies in order, and the class of each."""

    order: list[int]
    classes: list[LinkClass] = field(default_factory=list)
    class_ids: list[int] = field(default_factory=list)


@dataclass
class LinkLoops:
    """A program as loops over tables."""

    program: Program
    tree: SweepTree
    sweeps: list[SweepLoop]
    finish: LinkClass | None
    record_size: int
    inbox_size: int
    params: np.ndarray
    param_start: list[int]
    parents: list[int]  # the world for bodies whose parent is not swept

    @property
    def count(self) -> Count:
        total = Count()
        for sweep in self.sweeps:
            for c in sweep.classes:
                total = total + c.count * c.body_count
        return total if self.finish is None else total + self.finish.count


def trace_loops(
    program: Program, tree: SweepTree, constants: Mapping[str, list] | None = None
) -> LinkLoops:
    """The program as loops; `program.can_loop` must be true.

    `constants` are further inputs with fixed values.
    """
    return _LoopTracer(program, tree, constants or {}).run()


def last_outputs(loops: LinkLoops, count: int) -> LinkLoops:
    """The same loops with only the last `count` outputs."""
    first = len(loops.program.outputs) - count
    renamed = {f"out{first + number}": f"out{number}" for number in range(count)}
    dropped = {f"out{number}" for number in range(first)}
    for c in (c for sweep in loops.sweeps for c in sweep.classes):
        c.stores = [
            (renamed.get(base, base), offset, node, accumulate)
            for base, offset, node, accumulate in c.stores
            if base not in dropped
        ]
    return replace(loops, program=replace(loops.program, outputs=loops.program.outputs[first:]))


class _LoopTracer:
    def __init__(self, program: Program, tree: SweepTree, constants: Mapping[str, list]):
        self.program, self.tree, self.constants = program, tree, constants
        self.offsets = _argument_offsets(program)
        self.bodies = list(program.bodies if program.bodies is not None else range(len(tree.links)))
        swept = set(self.bodies)
        self.parents = [parent if parent in swept else WORLD for parent in tree.parent]
        self.numbers, self.pattern = self._numbers()
        self.state: dict[int, LinkClass] = {}  # the class of each body in the latest sweep
        self.world = self._world()

    def run(self) -> LinkLoops:
        # each sweep starts from the records that the previous one left
        sweeps, inboxes = [], {}
        for sweep in self.program.sweeps:
            loop, inboxes = self._loop(sweep)
            sweeps.append(loop)
        # last the world, on the messages of the roots
        finish = self._finish(inboxes.get(WORLD, {}))
        record_size, inbox_size = drop_dead_stores(sweeps, finish, self.parents)
        # one table of numbers for all bodies; those of body k begin at param_start[k]
        params, param_start = [], []
        for k in range(len(self.tree.links)):
            param_start.append(len(params))
            params.extend(self.numbers.get(k, ()))
        return LinkLoops(
            self.program,
            self.tree,
            sweeps,
            finish,
            record_size,
            inbox_size,
            np.array(params),
            param_start,
            self.parents,
        )

    def _numbers(self) -> tuple[dict[int, list], dict[int, tuple]]:
        """The numbers of each link that are read from the table, and the pattern of the others."""
        numbers, pattern = {}, {}
        for k in self.bodies:
            link = self.tree.links[k]
            values = link.numbers()
            # 0 and 1 fold code away, so they define the class; the table has the other numbers
            numbers[k] = [x for x in values if x not in FOLDED_NUMBERS]
            pattern[k] = (
                link.kind,
                link.axes,
                tuple(x if x in FOLDED_NUMBERS else None for x in values),
            )
        return numbers, pattern

    def _world(self) -> Templates:
        """The record of the world: constants and entries of inputs, the same for all bodies."""
        tape = Tape()
        body = BodyView(None, self._whole_inputs(tape), nv=self.tree.nv)
        self.program.world(body)
        # roots read the record of the world like that of a parent; its inputs have fixed slots

        def place(leaf: float | Scalar) -> object:
            return _frame_slot(tape, leaf) if isinstance(leaf, Scalar) else leaf

        return {name: Template.of(value, place) for name, value in body.record.items()}

    def _whole_inputs(self, tape: Tape) -> dict[str, Any]:
        whole = {
            arg.name: [tape.leaf("frame", self.offsets[arg.name] + j) for j in range(arg.size)]
            for arg in self.program.inputs
            if not arg.per_joint
        }
        return {**whole, **self.constants}

    def _loop(self, sweep: Sweep) -> tuple[SweepLoop, dict[int, Templates]]:
        """One sweep as a loop, and the templates of all inboxes."""
        outward = sweep.direction is BASE_TO_TIP
        order = self.bodies if outward else self.bodies[::-1]
        loop, known, inboxes = SweepLoop(order), {}, {}
        siblings = Counter(self.parents[k] for k in self.bodies)
        for k in order:
            parent = self.parents[k]
            several = siblings[parent] > 1
            # what the siblings before this body have put into the inbox of their parent
            shared = inboxes.get(parent, {})
            # what a step reads: outward the parent's record, inward the inbox, and its own record
            above = (
                {} if not outward else self.world if parent == WORLD else self.state[parent].record
            )
            before = self.state.get(k)
            inbox = inboxes.get(k, {})
            # bodies run the same code if all these values have the same templates
            key = (
                self.pattern[k],
                before and id(before),
                _template_keys(above),
                _template_keys(inbox),
                several,
                _template_keys(shared),
            )
            key += (self.program.body_data.get(k),)
            if key not in known:
                known[key] = len(loop.classes)
                loop.classes.append(self._trace(sweep, k, before, above, inbox, several, shared))
            c = loop.classes[known[key]]
            c.body_count += 1
            loop.class_ids.append(known[key])
            self.state[k] = c
            inboxes[parent] = c.sent
        return loop, inboxes

    def _trace(
        self,
        sweep: Sweep,
        k: int,
        before: LinkClass | None,
        above: Templates,
        inbox: Templates,
        several: bool,
        shared: Templates,
    ) -> LinkClass:
        """The class of body k: its step, run once on tape scalars."""
        tape, link = Tape(), self.tree.links[k]
        spare = iter(range(1 << 30))
        # 0 and 1 are constants and fold code away; other numbers are leaves
        numbers = [
            x if x in FOLDED_NUMBERS else tape.leaf("param", next(spare)) for x in link.numbers()
        ]
        sizes = {place: part.stop - part.start for place, part in self.tree.slices(k).items()}
        inputs = self._whole_inputs(tape)
        for i, arg in enumerate(self.program.inputs):
            if arg.per_joint:
                inputs[arg.name] = [tape.leaf(f"in{i}", j) for j in range(sizes[arg.per_joint])]
        record = {
            name: t.load(tape, RECORD) for name, t in (before.record if before else {}).items()
        }
        body = _ClassView(
            link.with_numbers(numbers),
            inputs,
            dict(record),
            parent={name: t.load(tape, "parent") for name, t in above.items()},
            children={name: t.load(tape, INBOX) for name, t in inbox.items()},
            slices={name: slice(0, n) for name, n in sizes.items()},
            data=self.program.body_data.get(k, ()),
            nv=self.tree.nv,
        )
        sweep.step(body)
        return self._close(tape, body, record, before, several, shared)

    def _close(
        self,
        tape: Tape,
        body: _ClassView,
        loaded: Mapping[str, object],
        before: LinkClass | None,
        several: bool,
        shared: Templates,
    ) -> LinkClass:
        """Assign slots to what the step stored, sent and wrote."""
        slots = before.record_slots if before else 0
        stores: list[LoopStore] = []
        record = dict(before.record) if before else {}
        for name, value in body.record.items():
            if name in loaded and value is loaded[name]:
                continue  # stored by an earlier sweep: it has slots in the record
            record[name], slots = _assign_slots(tape, value, slots, RECORD, stores, constants=False)
        # An only child writes to the inbox of its parent. Of several children, the first one that
        # sends a value writes it and the others add. They write constants too, because the parent's
        # step must not depend on which of them sends a constant.
        sent = dict(shared)
        for name, value in body.sent.items():
            sent[name] = _assign_message(tape, value, shared.get(name), sent, stores, several)
        up = _free_slot(sent)
        for name, index, value, of_joint in body.results:
            # outputs of a joint are relative to the body's slice, others to the frame
            number = [arg.name for arg in self.program.outputs].index(name)
            base, offset = (
                (f"out{number}", index) if of_joint else ("frame", self.offsets[name] + index)
            )
            stores.append((base, offset, tape.operand(value), False))
        trig, loads, slots = _share_trig(tape, stores, dict(before.trig) if before else {}, slots)
        return LinkClass(tape, stores, record, sent, trig, loads, slots, up)

    def _finish(self, inbox: Templates) -> LinkClass | None:
        """The step of the world after the last sweep: it reads the messages of the roots."""
        if self.program.finish is None:
            return None
        tape = Tape()
        children = {name: t.load(tape, INBOX) for name, t in inbox.items()}
        body = _ClassView(None, self._whole_inputs(tape), children=children, nv=self.tree.nv)
        self.program.finish(body)
        c = self._close(tape, body, {}, None, False, {})
        c.body_count = 1
        return c


@dataclass
class _ClassView(BodyView):
    """A view whose slices start at zero; results know whether they are relative to the body."""

    results: list[tuple[str, int, Any, bool]] = field(default_factory=list)

    def write(self, name: str, start: int, values: Sequence[object]) -> None:
        self.results.extend((name, start + i, value, False) for i, value in enumerate(values))

    def write_joint(self, name: str, values: Sequence[object], offset: int = 0) -> None:
        self.results.extend((name, offset + i, value, True) for i, value in enumerate(values))

    def write_part(self, name: str, place: str, values: Sequence[object]) -> None:
        self.results.extend((name, i, value, True) for i, value in enumerate(values))

    def without_outputs(self) -> _ClassView:
        return replace(self, results=[])

    @property
    def outputs(self) -> dict[tuple[str, int], Any]:
        # the index of a joint's entry is known at run time only
        assert not any(of_joint for *_, of_joint in self.results), (
            "in loops, map_outputs cannot read results of joints"
        )
        return {(name, index): value for name, index, value, _ in self.results}


def _argument_offsets(program: Program) -> dict[str, int]:
    # the frame: all inputs and outputs, one after the other
    offsets, total = {}, 0
    for arg in (*program.inputs, *program.outputs):
        offsets[arg.name] = total
        total += arg.size
    return offsets


def _template_keys(templates: Templates) -> tuple:
    return tuple((name, t.key) for name, t in templates.items())


def _free_slot(templates: Templates) -> int:
    """The first slot of an inbox after those of these values."""
    return max((slot + 1 for t in templates.values() for slot in t.slots(INBOX)), default=0)


def _assign_message(
    tape: Tape,
    value: object,
    before: Template | None,
    inbox: Templates,
    stores: list[LoopStore],
    several: bool,
) -> Template:
    """Put a message into the inbox of the parent: added to that of the siblings before, or for
    columns and poses, of which children send different ones, beside it."""
    free = _free_slot(inbox)
    if before is None or isinstance(value, dict):
        own, _ = _assign_slots(tape, value, free, "up", stores, constants=several)
        return own if before is None else before.beside(own)
    start = min(before.slots(INBOX), default=free)
    return _assign_slots(tape, value, start, "up", stores, constants=several, accumulate=True)[0]


def _frame_slot(tape: Tape, leaf: Scalar) -> tuple:
    op, space, index = tape.nodes[leaf.index]
    assert op is Op.LEAF and space == "frame" and not leaf.negative
    return ("frame", index)


def _assign_slots(
    tape: Tape,
    value: object,
    slot: int,
    base: str,
    stores: list[LoopStore],
    constants: bool,
    accumulate: bool = False,
) -> tuple[Template, int]:
    """Put the scalars of a value into slots, from `slot` on; with `constants`, its floats as well.

    Returns the template of the value and the next free slot; appends to `stores`.
    """
    places: dict[object, int] = {}

    def place(leaf: float | Scalar) -> object:
        nonlocal slot
        if not isinstance(leaf, Scalar) and not constants:
            return leaf
        # equal scalars share a slot
        key = (
            (leaf.index, leaf.negative) if isinstance(leaf, Scalar) and not constants else object()
        )
        if key not in places:
            places[key] = slot
            stores.append((base, slot, tape.operand(leaf), accumulate))
            slot += 1
        return (INBOX if base == "up" else base, places[key])

    return Template.of(value, place), slot


def _share_trig(
    tape: Tape, stores: list[LoopStore], known: dict[tuple, int], slots: int
) -> tuple[dict[tuple, int], dict[int, tuple[str, int]], int]:
    """Store sines and cosines in the record, and load those that an earlier sweep stored."""
    loads, fresh = {}, {}
    for node in tape.live(n for _, _, n, _ in stores):
        op, a, _ = tape.nodes[node]
        if op not in (Op.SIN, Op.COS):
            continue
        name = (op, _leaf_tree(tape, a))
        if name in known:
            loads[node] = (RECORD, known[name])
        else:
            fresh[name] = slots
            stores.append((RECORD, slots, node, False))
            slots += 1
    return known | fresh, loads, slots


def _leaf_tree(tape: Tape, node: int) -> tuple:
    """A node as a tree of its leaves; equal trees on two tapes are equal values at one body."""
    # leaves are named by their slots, because tapes number their nodes differently
    op, a, b = tape.nodes[node]
    if op in (Op.LEAF, Op.CONST):
        return op, a, b
    return (
        (op, _leaf_tree(tape, a), _leaf_tree(tape, b))
        if op in BINARY
        else (op, _leaf_tree(tape, a))
    )
