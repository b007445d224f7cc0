"""Straight-line code in pieces: what an emitter gets to see.

A `Segment` is a tape whose leaves are loads `(base, offset)` and whose results are stores. A kernel runs its segments in
order over one *frame* of values: inputs, outputs, then slots for what crosses from one segment to the next. Cutting
keeps compile time linear: the cost of one basic block grows faster than its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

from psiphi.compiler.ir.instruction_order import ordered
from psiphi.compiler.ir.latency_order import interleaved
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands

Places = dict[int, tuple[str, int]]  # {node: (base, offset)}
APART = "apart"  # the base of an input that is no part of the frame, and that no segment writes
CUT = 1000  # nodes a segment
COPIES = 100  # stores of a segment that computes nothing: LLVM's time for stores side by side grows with their square


@dataclass(frozen=True)
class Store:
    """Put node into (base, offset); `accumulate` adds to what is there."""

    base: str
    offset: int
    node: int
    accumulate: bool = False


@dataclass(frozen=True)
class Segment:
    """A run of nodes of one tape. `given`: nodes computed elsewhere, by their place. Before it runs, the sines and cosines of
    `angles` angles are made, that stand from `angle_base` on: those that follow from other sines and cosines."""

    name: str
    tape: Tape
    nodes: list[int]
    stores: list[Store]
    given: dict[int, tuple[str, int]] = field(default_factory=dict)
    angles: int = 0
    angle_base: int = 0

    def stores_by_node(self) -> dict[int, list[Store]]:
        found: dict[int, list[Store]] = {}
        for store in self.stores:
            found.setdefault(store.node, []).append(store)
        return found

    @property
    def keeps_what_it_reads(self) -> bool:
        """Whether no store goes where the segment reads: then a number may be stored as soon as it is known."""
        wanted = {o for node in self.nodes for o in operands(self.tape, node)} | {
            store.node for store in self.stores
        }
        read = {self.given[node] for node in wanted.difference(self.nodes) if node in self.given}
        written = {(store.base, store.offset) for store in self.stores}
        bases = {base for base, _ in read if base != APART} | {base for base, _ in written}
        return bases <= {"frame"} and not read & written  # other bases may be the same place


@dataclass(frozen=True)
class FrameLayout:
    """Offsets of the arguments in the frame, and where free slots begin."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    size: int

    @staticmethod
    def of(inputs: Iterable[Argument], outputs: Iterable[Argument]) -> FrameLayout:
        groups, total = [], 0
        for group in (inputs, outputs):
            offsets = []
            for arg in group:
                offsets.append(total)
                total += arg.size
            groups.append(tuple(offsets))
        return FrameLayout(groups[0], groups[1], total)


@dataclass(frozen=True)
class Pieces:
    """A straight kernel, cut: first the arguments of all sines and cosines, then the rest."""

    layout: FrameLayout
    prologue: Segment
    angles: (
        int  # how many; angle i stands at slot `angle_base + 3 i`, its sine and cosine behind it
    )
    angle_base: int
    segments: list[Segment]
    frame: int
    places: list[list[int]]  # where the numbers of each output stand


def cut(
    straight: StraightCode, size: int = 0, shared: bool = False, apart: int | None = None
) -> Pieces:
    """Segments of about `size` nodes (0: CUT); sines and cosines of simple arguments go to a loop in front.

    Outputs stand in the frame one after the other; `shared`: each number once, wherever it is. `apart`: the input of this
    number is read at the base APART, wherever it lies.
    """
    program, tape = straight.program, straight.tape
    layout = FrameLayout.of(program.inputs, () if shared else program.outputs)
    live = tape.live(node for *_, node in straight.stores)
    leaves = (
        (i, int(tape.nodes[i][1]), tape.nodes[i][2]) for i in live if tape.nodes[i][0] is Op.LEAF
    )
    place = {i: (APART, b) if a == apart else ("frame", layout.inputs[a] + b) for i, a, b in leaves}
    base = layout.size
    levels = _levels(tape, live)
    rounds = [
        {i: level for i, level in levels.items() if level == n}
        for n in range(1, max(levels.values(), default=1) + 1)
    ]
    prologue, given = angles_first(tape, rounds[0], place, "frame", base)
    angles = len(prologue.stores)
    outputs: dict[int, list[int]] = {}
    free = base + 3 * angles
    if shared:
        places, free = _shared(straight, given, outputs, free)
    else:
        places = [
            [at + i for i in range(arg.size)]
            for arg, at in zip(program.outputs, layout.outputs, strict=True)
        ]
        for number, index, node in straight.stores:
            outputs.setdefault(node, []).append(places[number][index])
    # what sines and cosines of sines and cosines are of: results, too, that the next round reads
    loops = []
    for later in rounds[1:]:
        arguments = dict.fromkeys(tape.nodes[i][1] for i in later)
        cells = {a: free + 3 * n for n, a in enumerate(arguments)}
        known = [
            Store("frame", cell, a) for a, cell in cells.items() if a in given
        ]  # a sine itself
        for a, cell in cells.items():
            if a not in given:
                outputs.setdefault(a, []).append(cell)
        given |= {
            i: ("frame", cells[tape.nodes[i][1]] + (1 if tape.nodes[i][0] is Op.SIN else 2))
            for i in later
        }
        loops.append((len(cells), free, known))
        free += 3 * len(cells)
    body = [
        i for i in tape.live(outputs, given) if i not in given and tape.nodes[i][0] is not Op.CONST
    ]
    body = ordered(straight, body, [a for a in outputs if a not in given])
    body = interleaved(tape, body, riders(tape, body, outputs))
    segments, frame = _chop(
        tape, _by_round(tape, body, levels, len(rounds)), outputs, given, free, size or CUT, loops
    )
    return Pieces(layout, prologue, angles, base, segments, frame, places)


def _shared(
    straight: StraightCode, given: Places, outputs: dict[int, list[int]], free: int
) -> tuple[list[list[int]], int]:
    """A place for every number that is a result: zeros, entries of symmetric matrices and inputs are stored once, or not at
    all. And the next free place."""
    places = [[0] * arg.size for arg in straight.program.outputs]
    for number, index, node in straight.stores:
        if node in given and given[node][0] != APART:
            places[number][index] = given[node][1]
            continue
        if node not in outputs:
            outputs[node] = [free]
            free += 1
        places[number][index] = outputs[node][0]
    return places, free


def _levels(tape: Tape, live: Iterable[int]) -> dict[int, int]:
    """{sine or cosine: 1 where it is of none itself, one more than those it follows from}."""
    depth: dict[int, int] = {}
    found = {}
    for i in live:
        depth[i] = max((depth.get(a, 0) for a in operands(tape, i)), default=0)
        if tape.nodes[i][0] in (Op.SIN, Op.COS):
            depth[i] = found[i] = depth[i] + 1
    return found


def _by_round(tape: Tape, body: list[int], levels: dict[int, int], rounds: int) -> list[list[int]]:
    """The nodes by the last round of sines and cosines that they need, each round in order."""
    if rounds == 1:
        return [body]
    need: dict[int, int] = dict(levels)
    for i in body:
        need[i] = max((need.get(a, 1) for a in operands(tape, i)), default=1)
    return [[i for i in body if need[i] == n] for n in range(1, rounds + 1)]


def angles_first(
    tape: Tape, live: Iterable[int], place: Places, base: str, first: int
) -> tuple[Segment, Places]:
    """The arguments of all sines and cosines, which are of none themselves: angle i goes to cell `first + 3 i` of `base`, where
    a loop puts its sine and cosine behind it. And where numbers stand then: leaves, sines and cosines."""
    trig = {i: tape.nodes[i] for i in live if tape.nodes[i][0] in (Op.SIN, Op.COS)}
    angles = {a: first + 3 * n for n, a in enumerate(dict.fromkeys(a for _, a, _ in trig.values()))}
    return _prologue(tape, angles, base, place), place | {
        i: (base, angles[a] + (1 if op is Op.SIN else 2)) for i, (op, a, _) in trig.items()
    }


def _prologue(tape: Tape, angles: dict[int, int], base: str, place: Places) -> Segment:
    nodes = (
        [i for i in tape.live(angles) if i not in place and tape.nodes[i][0] is not Op.CONST]
        if angles
        else []
    )
    if any(tape.nodes[i][0] in (Op.SIN, Op.COS) for i in nodes):
        raise NotImplementedError("a sine or cosine of a sine or cosine")
    stores = [Store(base, cell, node) for node, cell in angles.items()]
    return Segment("angles", tape, nodes, stores, place)


def _chop(
    tape: Tape,
    rounds: list[list[int]],
    outputs: dict[int, list[int]],
    given: dict,
    free: int,
    size: int,
    loops: list[tuple[int, int, list[Store]]],
):
    runs: list[list[int]] = []
    before: dict[int, tuple[int, int]] = {}  # the loop of sines and cosines in front of a run,
    at_end: dict[int, list[Store]] = {}  # and what the run before it hands it
    for body, loop in zip(rounds, [None, *loops], strict=True):
        if loop is not None:
            before[len(runs)], at_end[len(runs) - 1] = loop[:2], loop[2]
        runs += _runs(tape, body, outputs, size)
    home = {node: r for r, run in enumerate(runs) for node in run}
    last: dict[int, int] = {}
    for r, run in enumerate(runs):
        for node in run:
            for operand in operands(tape, node):
                if home.get(operand, r) != r:
                    last[operand] = r
    slots, frame = _slots(runs, {n: r for n, r in last.items() if n not in outputs}, free)
    segments, known = (
        [],
        given | {n: ("frame", slots[n] if n in slots else outputs[n][0]) for n in last},
    )
    for r, run in enumerate(runs):
        stores = [Store("frame", slots[n], n) for n in run if n in slots]
        stores += [Store("frame", place, n) for n in run for place in outputs.get(n, ())]
        stores += at_end.get(r, [])
        segments.append(Segment(f"part{r}", tape, run, stores, known, *before.get(r, ())))
    # results that are inputs, constants or angles themselves
    stores = [
        Store("frame", place, n)
        for n, places in outputs.items()
        if n not in home
        for place in places
    ]
    for n, start in enumerate(range(0, len(stores), COPIES)):
        segments.append(
            Segment(f"copies{n or ''}", tape, [], stores[start : start + COPIES], given)
        )
    return segments, frame


def _runs(tape: Tape, body: list[int], outputs: Iterable[int], size: int) -> list[list[int]]:
    """The nodes in runs of `size` or one more: no cut parts a sum from the product that rides in it, so that every size of
    cut gives the same bits."""
    riding = riders(tape, body, outputs)
    passengers = set(riding.values())
    runs: list[list[int]] = [[]]
    for node in body:
        if node in passengers:
            continue
        if len(runs[-1]) >= size:
            runs.append([])
        runs[-1] += [riding[node], node] if node in riding else [node]
    return runs


def riders(tape: Tape, nodes: list[int], stored: Iterable[int]) -> dict[int, int]:
    """{sum: product}: products with one reader, a sum or difference among the nodes, and no store, ride in its FMA."""
    uses = Counter(chain(stored, (o for n in nodes for o in operands(tape, n))))
    products = {n for n in nodes if tape.nodes[n][0] is Op.MUL and uses[n] == 1}
    riding = {}
    for n in nodes:
        op, a, b = tape.nodes[n]
        if op in (Op.ADD, Op.SUB) and (a in products or b in products):
            riding[n] = b if b in products else a
    return riding


def _slots(runs, last: dict[int, int], free: int):
    """Linear scan: a slot is free again after the last segment that reads it."""
    slots: dict[int, int] = {}
    idle: list[int] = []
    ends: dict[int, list[int]] = {}
    for r, run in enumerate(runs):
        for node in run:
            if node in last:
                if idle:
                    slots[node] = idle.pop()
                else:
                    slots[node] = free
                    free += 1
                ends.setdefault(last[node], []).append(slots[node])
        idle.extend(ends.pop(r, ()))
    return slots, free
