"""Large robots: one traced step per class of links, run in loops.

Links whose numbers have the same zeros and ones, whose parents kept and whose children sent values of the same form, are
one *class*: their step is traced once, with the link's numbers as parameters. The loop over the bodies, their records
and their numbers are tables. Compile time and code size then depend on the number of classes, not of bodies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi.compiler.sweeps.dead_values import INBOX, KEPT, drop_unread
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, BodyView, Program, Sweep
from psiphi.compiler.sweeps.value_template import Template
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Count, Scalar, Tape
from psiphi.model.model import WORLD

SPECIAL = (0.0, 1.0, -1.0)  # numbers worth knowing when the step is traced


@dataclass
class LinkClass:
    """One traced step: `stores` are (base, offset, node, accumulate); `kept`, `sent` the form of its values."""

    tape: Tape
    stores: list[tuple[str, int, int, bool]]
    kept: dict[str, Template]
    sent: dict[str, Template]
    trig: dict[tuple, int]  # sines and cosines already in the record, by what they are of
    given: dict[int, tuple[str, int]]
    slots: int  # record slots in use after this step,
    messages: int  # and slots of the parent's inbox, before those go that nobody reads
    bodies: int = 0

    @property
    def outputs(self) -> list[int]:
        return [node for _, _, node, _ in self.stores]

    @property
    def count(self) -> Count:
        extra = sum(accumulate for *_, accumulate in self.stores)
        return self.tape.count(self.outputs, self.given) + Count(add=extra)


@dataclass
class SweepLoop:
    """One sweep as a loop: bodies in order, the class of each."""

    order: list[int]
    classes: list[LinkClass] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


@dataclass
class LinkLoops:
    """A program as loops over tables."""

    program: Program
    tree: Any
    stages: list[SweepLoop]
    finish: LinkClass | None
    record: int
    inbox: int
    params: np.ndarray
    param_start: list[int]
    parents: list[int]  # the bodies that others hang on: the world, where these are not swept

    @property
    def count(self) -> Count:
        total = Count()
        for stage in self.stages:
            for c in stage.classes:
                total = total + c.count * c.bodies
        return total if self.finish is None else total + self.finish.count


def roll(program: Program, tree: Any, given: Mapping[str, list] | None = None) -> LinkLoops:
    """The program as loops; `program.local` must hold. `given` are numbers beside its inputs, the same in every state."""
    return _Roller(program, tree, given or {}).run()


def last_outputs(rolled: LinkLoops, count: int) -> LinkLoops:
    """The same loops with their last outputs alone."""
    first = len(rolled.program.outputs) - count
    place = {f"out{first + number}": f"out{number}" for number in range(count)}
    gone = {f"out{number}" for number in range(first)}
    for c in (c for stage in rolled.stages for c in stage.classes):
        c.stores = [
            (place.get(base, base), at, node, adds)
            for base, at, node, adds in c.stores
            if base not in gone
        ]
    return replace(rolled, program=replace(rolled.program, outputs=rolled.program.outputs[first:]))


class _Roller:
    def __init__(self, program: Program, tree: Any, given: Mapping[str, list]):
        self.program, self.tree, self.given = program, tree, given
        self.offsets = _argument_offsets(program)
        self.bodies = list(program.bodies if program.bodies is not None else range(len(tree.links)))
        swept = set(self.bodies)
        self.parents = [parent if parent in swept else WORLD for parent in tree.parent]
        self.numbers, self.pattern = self._numbers()
        self.state: dict[int, LinkClass] = {}  # each body's class so far
        self.world = self._world()

    def run(self) -> LinkLoops:
        # sweep by sweep: what the classes of one have kept is where the next begins
        stages, inboxes = [], {}
        for sweep in self.program.sweeps:
            stage, inboxes = self._stage(sweep)
            stages.append(stage)
        # last the world, on what the roots of the last sweep sent it
        finish = self._finish(inboxes.get(WORLD, {}))
        record, inbox = drop_unread(stages, finish, self.parents)
        # one table of numbers, body after body; a step finds its own from `param_start` on
        flat, starts = [], []
        for k in range(len(self.tree.links)):
            starts.append(len(flat))
            flat.extend(self.numbers.get(k, ()))
        return LinkLoops(
            self.program,
            self.tree,
            stages,
            finish,
            record,
            inbox,
            np.array(flat),
            starts,
            self.parents,
        )

    def _numbers(self):
        """Each link's numbers that are not special, and the pattern of those that are."""
        numbers, pattern = {}, {}
        for k in self.bodies:
            link = self.tree.links[k]
            values = link.numbers()
            # 0 and 1 fold code away and so belong to the class; other numbers are read from a table.
            numbers[k] = [x for x in values if x not in SPECIAL]
            pattern[k] = (link.kind, link.axes, tuple(x if x in SPECIAL else None for x in values))
        return numbers, pattern

    def _world(self) -> dict[str, Template]:
        """What the world keeps: constants and whole inputs, which have one place for all bodies."""
        tape = Tape()
        site = BodyView(None, self._whole_inputs(tape), nv=self.tree.nv)
        self.program.world(site)
        # what the world keeps of inputs is read from their places: roots see it as any child its parent
        place = lambda leaf: _absolute(tape, leaf) if isinstance(leaf, Scalar) else leaf  # noqa: E731
        return {name: Template.of(value, place) for name, value in site.kept.items()}

    def _whole_inputs(self, tape: Tape) -> dict[str, Any]:
        whole = {
            arg.name: [tape.leaf("frame", self.offsets[arg.name] + j) for j in range(arg.size)]
            for arg in self.program.inputs
            if not arg.per_joint
        }
        return {**whole, **self.given}

    def _stage(self, sweep: Sweep) -> tuple[SweepLoop, dict]:
        outward = sweep.direction is BASE_TO_TIP
        order = self.bodies if outward else self.bodies[::-1]
        stage, known, inboxes = SweepLoop(order), {}, {}
        siblings = Counter(self.parents[k] for k in self.bodies)
        for k in order:
            parent = self.parents[k]
            several = siblings[parent] > 1
            first = parent not in inboxes
            # What a step sees: outward what the parent has kept, inward what the children sent, and what was kept here before.
            up = {} if not outward else self.world if parent == WORLD else self.state[parent].kept
            before = self.state.get(k)
            inbox = inboxes.get(k, {})
            # Bodies that see values of the same form, in the same places, with the same zeros and ones, run the same code.
            key = (self.pattern[k], before and id(before), _form(up), _form(inbox), several, first)
            key += (self.program.marks.get(k),)
            if key not in known:
                known[key] = len(stage.classes)
                stage.classes.append(self._trace(sweep, k, before, up, inbox, several, first))
            c = stage.classes[known[key]]
            c.bodies += 1
            stage.ids.append(known[key])
            self.state[k] = c
            if c.sent:
                inboxes[parent] = c.sent
        return stage, inboxes

    def _trace(
        self, sweep: Sweep, k: int, before, up, inbox, several: bool, first: bool
    ) -> LinkClass:
        tape, link = Tape(), self.tree.links[k]
        spare = iter(range(1 << 30))
        # 0 and 1 stay what they are, and fold code away; the other numbers of the link are read from the table of its body
        numbers = [x if x in SPECIAL else tape.leaf("param", next(spare)) for x in link.numbers()]
        sizes = {place: part.stop - part.start for place, part in self.tree.slices(k).items()}
        inputs = self._whole_inputs(tape)
        for i, arg in enumerate(self.program.inputs):
            if arg.per_joint:
                inputs[arg.name] = [tape.leaf(f"in{i}", j) for j in range(sizes[arg.per_joint])]
        kept = {name: t.load(tape, KEPT) for name, t in (before.kept if before else {}).items()}
        site = _ClassSite(
            link.with_numbers(numbers),
            inputs,
            dict(kept),
            parent={name: t.load(tape, "parent") for name, t in up.items()},
            children={name: t.load(tape, INBOX) for name, t in inbox.items()},
            slices={name: slice(0, n) for name, n in sizes.items()},
            mark=self.program.marks.get(k, ()),
            nv=self.tree.nv,
        )
        sweep.step(site)
        return self._close(tape, site, kept, before, several, first)

    def _close(
        self, tape: Tape, site: _ClassSite, kept, before, several: bool, first: bool
    ) -> LinkClass:
        """Give places to what the step kept, sent and wrote."""
        slots = before.slots if before else 0
        stores: list[tuple[str, int, int, bool]] = []
        forms = dict(before.kept) if before else {}
        for name, value in site.kept.items():
            if name in kept and value is kept[name]:
                continue  # an earlier sweep kept it: it has its place in the record
            forms[name], slots = _place(tape, value, slots, KEPT, stores, constants=False)
        # The parent's inbox: one child writes into it; of several the first writes and the others add, constants included,
        # since the parent's step must not depend on who of them had a number there.
        sent, up = {}, 0
        for name, value in site.sent.items():
            sent[name], up = _place(
                tape, value, up, "up", stores, constants=several, accumulate=several and not first
            )
        for name, index, value, of_joint in site.results:
            # results of a joint stand where its body's slice begins, others where the program says
            number = [arg.name for arg in self.program.outputs].index(name)
            base, offset = (
                (f"out{number}", index) if of_joint else ("frame", self.offsets[name] + index)
            )
            stores.append((base, offset, tape.operand(value), False))
        trig, given, slots = _share_trig(tape, stores, dict(before.trig) if before else {}, slots)
        return LinkClass(tape, stores, forms, sent, trig, given, slots, up)

    def _finish(self, inbox) -> LinkClass | None:
        if self.program.finish is None:
            return None
        tape = Tape()
        children = {name: t.load(tape, INBOX) for name, t in inbox.items()}
        site = _ClassSite(None, self._whole_inputs(tape), children=children, nv=self.tree.nv)
        self.program.finish(site)  # at the world: it reads what the roots sent
        c = self._close(tape, site, {}, None, False, True)
        c.bodies = 1
        return c


@dataclass
class _ClassSite(BodyView):
    """A site whose own slices start at zero; results remember whether they are relative to the body."""

    results: list[tuple[str, int, Any, bool]] = field(default_factory=list)

    def write(self, name: str, start: int, values) -> None:
        self.results.extend((name, start + i, value, False) for i, value in enumerate(values))

    def write_joint(self, name: str, values, offset: int = 0) -> None:
        self.results.extend((name, offset + i, value, True) for i, value in enumerate(values))

    def write_part(self, name: str, place: str, values) -> None:
        self.results.extend((name, i, value, True) for i, value in enumerate(values))

    def unwritten(self) -> _ClassSite:
        return replace(self, results=[])

    @property
    def found(self) -> dict[tuple[str, int], Any]:
        # where a joint's own part stands, only the body knows that runs the step: a rule cannot read it
        assert not any(of_joint for *_, of_joint in self.results), (
            "results of joints are read where links are written out"
        )
        return {(name, index): value for name, index, value, _ in self.results}


def _argument_offsets(program: Program) -> dict[str, int]:
    # the frame: whole inputs and outputs, one behind the other
    offsets, total = {}, 0
    for arg in (*program.inputs, *program.outputs):
        offsets[arg.name] = total
        total += arg.size
    return offsets


def _form(templates: dict[str, Template]) -> tuple:
    return tuple((name, t.key) for name, t in templates.items())


def _absolute(tape: Tape, leaf: Scalar) -> tuple:
    op, space, index = tape.nodes[leaf.index]
    assert op is Op.LEAF and space == "frame" and not leaf.negative
    return ("frame", index)


def _place(
    tape: Tape, value, slot: int, base: str, stores, constants: bool, accumulate: bool = False
):
    """A template of the value with its dynamic leaves in slots; `constants` puts constants into slots too."""
    places: dict[Any, int] = {}

    def place(leaf):
        nonlocal slot
        if not isinstance(leaf, Scalar) and not constants:
            return leaf
        # a value that is kept twice has one slot
        key = (
            (leaf.index, leaf.negative) if isinstance(leaf, Scalar) and not constants else object()
        )
        if key not in places:
            places[key] = slot
            stores.append((base, slot, tape.operand(leaf), accumulate))
            slot += 1
        return (INBOX if base == "up" else base, places[key])

    return Template.of(value, place), slot


def _share_trig(tape: Tape, stores, known: dict[tuple, int], slots: int):
    """Sines and cosines are kept in the record: a later sweep over the same body reads them."""
    # q of a body is the same in every sweep: its sine was taken when the first of them came by
    given, fresh = {}, {}
    for node in tape.live(n for _, _, n, _ in stores):
        op, a, _ = tape.nodes[node]
        if op not in (Op.SIN, Op.COS):
            continue
        name = (op, _spell(tape, a))
        if name in known:
            given[node] = (KEPT, known[name])
        else:
            fresh[name] = slots
            stores.append((KEPT, slots, node, False))
            slots += 1
    return known | fresh, given, slots


def _spell(tape: Tape, node: int) -> tuple:
    """A node as a tree of its leaves: equal spellings in two tapes are equal values at one body."""
    # a leaf is known by its place and not by its node, which other tapes number otherwise
    op, a, b = tape.nodes[node]
    if op in (Op.LEAF, Op.CONST):
        return op, a, b
    return (op, _spell(tape, a), _spell(tape, b)) if op in BINARY else (op, _spell(tape, a))
