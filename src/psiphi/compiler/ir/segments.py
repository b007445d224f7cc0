"""Straight-line code as segments: what an emitter reads.

A `Segment` is a run of nodes of one tape, with loads `(base, offset)` in place of leaves, and
stores. A kernel runs its segments in order over one *frame* of values: inputs, outputs, then slots
for values that pass from one segment to a later one. Segments keep compile time linear: that of one
basic block grows faster than its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from psiphi.compiler.ir.instruction_order import choose_order
from psiphi.compiler.ir.latency_order import hide_latency
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import ADD, CONST, COS, LEAF, MUL, SIN, SUB
from psiphi.compiler.tape.tape import Tape, operands

Places = dict[int, tuple[str, int]]  # {node: (base, offset)}
SEPARATE = "separate"  # the base of an input outside of the frame, which no segment writes
SEGMENT_SIZE = 1000  # nodes per segment
UNSPLIT = 1 << 60  # segment size of code that is one segment
COPY_SIZE = 100  # stores of a segment without nodes: LLVM's time for them grows quadratically


@dataclass(frozen=True)
class Store:
    """Store a node at (base, offset), or add it to the value there (`accumulate`)."""

    base: str
    offset: int
    node: int
    accumulate: bool = False


@dataclass(frozen=True)
class Segment:
    """A run of nodes of one tape. `loads`: the places of nodes that are computed elsewhere.

    Before it runs, a loop computes the sines and cosines of the `angles` angles stored from
    `angle_base` on: those that depend on other sines and cosines.
    """

    name: str
    tape: Tape
    nodes: list[int]
    stores: list[Store]
    loads: dict[int, tuple[str, int]] = field(default_factory=dict)
    angles: int = 0
    angle_base: int = 0

    def stores_by_node(self) -> dict[int, list[Store]]:
        found: dict[int, list[Store]] = {}
        for store in self.stores:
            found.setdefault(store.node, []).append(store)
        return found

    @property
    def may_store_early(self) -> bool:
        """Whether a value may be stored as soon as it is computed: no store overwrites a load."""
        needed = {o for node in self.nodes for o in operands(self.tape, node)} | {
            store.node for store in self.stores
        }
        read = {self.loads[node] for node in needed.difference(self.nodes) if node in self.loads}
        written = {(store.base, store.offset) for store in self.stores}
        bases = {base for base, _ in read if base != SEPARATE} | {base for base, _ in written}
        return bases <= {"frame"} and not read & written  # other bases may alias


@dataclass(frozen=True)
class FrameLayout:
    """The offsets of the arguments in the frame, and their total size: the first free slot."""

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
class SegmentedCode:
    """A straight kernel as segments: first the arguments of sines and cosines, then the rest.

    The prologue stores angle i, of `angles`, at slot `angle_base + 3 i`. A loop then stores its
    sine and cosine behind it. `frame` is the size of the frame, `places` the slots of each output.
    """

    layout: FrameLayout
    prologue: Segment
    angles: int
    angle_base: int
    segments: list[Segment]
    frame: int
    places: list[list[int]]


def split_segments(
    straight: StraightCode, size: int = 0, shared: bool = False, separate: int | None = None
) -> SegmentedCode:
    """Segments of about `size` nodes (0: SEGMENT_SIZE), with the loop over angles in front.

    Outputs are stored one after the other; if `shared`, equal values share one slot. The input
    number `separate` is read at the base SEPARATE.
    """
    program, tape = straight.program, straight.tape
    layout = FrameLayout.of(program.inputs, () if shared else program.outputs)
    live = tape.live(node for *_, node in straight.stores)
    leaves = (
        (i, int(tape.nodes[i][1]), tape.nodes[i][2]) for i in live if tape.nodes[i][0] is LEAF
    )
    place = {
        i: (SEPARATE, b) if a == separate else ("frame", layout.inputs[a] + b) for i, a, b in leaves
    }
    base = layout.size
    levels = _trig_levels(tape, live)
    rounds = [
        {i: level for i, level in levels.items() if level == n}
        for n in range(1, max(levels.values(), default=1) + 1)
    ]
    prologue, loads = angle_prologue(tape, rounds[0], place, "frame", base)
    angles = len(prologue.stores)
    outputs: dict[int, list[int]] = {}
    free = base + 3 * angles
    if shared:
        places, free = _shared_slots(straight, loads, outputs, free)
    else:
        places = [
            [offset + i for i in range(arg.size)]
            for arg, offset in zip(program.outputs, layout.outputs, strict=True)
        ]
        for number, index, node in straight.stores:
            outputs.setdefault(node, []).append(places[number][index])
    # arguments of nested sines and cosines are results, which the loop of the next round reads
    loops = []
    for later in rounds[1:]:
        arguments = dict.fromkeys(tape.nodes[i][1] for i in later)
        cells = {a: free + 3 * n for n, a in enumerate(arguments)}
        # an argument that is itself a sine or cosine is copied
        copies = [Store("frame", cell, a) for a, cell in cells.items() if a in loads]
        for a, cell in cells.items():
            if a not in loads:
                outputs.setdefault(a, []).append(cell)
        loads |= {
            i: ("frame", cells[tape.nodes[i][1]] + (1 if tape.nodes[i][0] is SIN else 2))
            for i in later
        }
        loops.append((len(cells), free, copies))
        free += 3 * len(cells)
    body = [
        i for i in tape.live(outputs, loads) if i not in loads and tape.nodes[i][0] is not CONST
    ]
    body = choose_order(straight, body, [a for a in outputs if a not in loads])
    body = hide_latency(tape, body, fused_products(tape, body, outputs))
    segments, frame = _make_segments(
        tape,
        _split_rounds(tape, body, levels, len(rounds)),
        outputs,
        loads,
        free,
        size or SEGMENT_SIZE,
        loops,
    )
    return SegmentedCode(layout, prologue, angles, base, segments, frame, places)


def _shared_slots(
    straight: StraightCode, loads: Places, outputs: dict[int, list[int]], free: int
) -> tuple[list[list[int]], int]:
    """The slot of each result, and the next free slot. Equal values (zeros, entries of symmetric
    matrices) share a slot; inputs need none."""
    places = [[0] * arg.size for arg in straight.program.outputs]
    for number, index, node in straight.stores:
        if node in loads and loads[node][0] != SEPARATE:
            places[number][index] = loads[node][1]
            continue
        if node not in outputs:
            outputs[node] = [free]
            free += 1
        places[number][index] = outputs[node][0]
    return places, free


def _trig_levels(tape: Tape, live: Iterable[int]) -> dict[int, int]:
    """{sine or cosine: its level}, one more than the highest level that its argument depends on."""
    depth: dict[int, int] = {}  # of nodes that depend on a sine or cosine
    levels = {}
    for i in live:
        level = max([depth.get(a, 0) for a in operands(tape, i)], default=0)
        if tape.nodes[i][0] in (SIN, COS):
            level = levels[i] = level + 1
        if level:
            depth[i] = level
    return levels


def _split_rounds(
    tape: Tape, body: list[int], levels: dict[int, int], rounds: int
) -> list[list[int]]:
    """The nodes by the highest level of sines and cosines on which they depend, each in order."""
    if rounds == 1:
        return [body]
    need: dict[int, int] = dict(levels)
    for i in body:
        need[i] = max((need.get(a, 1) for a in operands(tape, i)), default=1)
    return [[i for i in body if need[i] == n] for n in range(1, rounds + 1)]


def angle_prologue(
    tape: Tape, live: Iterable[int], place: Places, base: str, first: int
) -> tuple[Segment, Places]:
    """A segment that stores the arguments of sines and cosines, and the places of leaves, sines and
    cosines after the loop over these angles.

    Angle i is stored at cell `first + 3 i` of `base`; the loop stores its sine and cosine behind
    it. No argument may depend on another sine or cosine.
    """
    trig = {i: tape.nodes[i] for i in live if tape.nodes[i][0] in (SIN, COS)}
    angles = {a: first + 3 * n for n, a in enumerate(dict.fromkeys(a for _, a, _ in trig.values()))}
    return _prologue(tape, angles, base, place), place | {
        i: (base, angles[a] + (1 if op is SIN else 2)) for i, (op, a, _) in trig.items()
    }


def _prologue(tape: Tape, angles: dict[int, int], base: str, place: Places) -> Segment:
    nodes = (
        [i for i in tape.live(angles) if i not in place and tape.nodes[i][0] is not CONST]
        if angles
        else []
    )
    if any(tape.nodes[i][0] in (SIN, COS) for i in nodes):
        raise NotImplementedError("a sine or cosine of a sine or cosine")
    stores = [Store(base, cell, node) for node, cell in angles.items()]
    return Segment("angles", tape, nodes, stores, place)


def _make_segments(
    tape: Tape,
    rounds: list[list[int]],
    outputs: dict[int, list[int]],
    loads: Places,
    free: int,
    size: int,
    loops: list[tuple[int, int, list[Store]]],
) -> tuple[list[Segment], int]:
    """The segments of all rounds, and the size of the frame; `loops`: (number of angles, first
    cell, copies) before the second round and each later one."""
    runs: list[list[int]] = []
    before: dict[int, tuple[int, int]] = {}  # {run: the loop over angles in front of it}
    at_end: dict[int, list[Store]] = {}  # {run: the copies that the loop behind it reads}
    for body, loop in zip(rounds, [None, *loops], strict=True):
        if loop is not None:
            before[len(runs)], at_end[len(runs) - 1] = loop[:2], loop[2]
        runs += _split_runs(tape, body, outputs, size)
    run_of = {node: r for r, run in enumerate(runs) for node in run}
    last: dict[int, int] = {}  # {node: the last of the other runs that read it}
    for r, run in enumerate(runs):
        for node in run:
            for operand in operands(tape, node):
                if run_of.get(operand, r) != r:
                    last[operand] = r
    slots, frame = _assign_slots(runs, {n: r for n, r in last.items() if n not in outputs}, free)
    known = loads | {n: ("frame", slots[n] if n in slots else outputs[n][0]) for n in last}
    segments = []
    for r, run in enumerate(runs):
        stores = [Store("frame", slots[n], n) for n in run if n in slots]
        stores += [Store("frame", place, n) for n in run for place in outputs.get(n, ())]
        stores += at_end.get(r, [])
        segments.append(Segment(f"part{r}", tape, run, stores, known, *before.get(r, ())))
    # results that are inputs, constants or angles
    stores = [
        Store("frame", place, n)
        for n, places in outputs.items()
        if n not in run_of
        for place in places
    ]
    if size >= UNSPLIT and segments:  # a result may overwrite an input that is copied
        segments[-1] = replace(segments[-1], stores=[*segments[-1].stores, *stores])
        return segments, frame
    for n, start in enumerate(range(0, len(stores), COPY_SIZE)):
        segments.append(
            Segment(f"copies{n or ''}", tape, [], stores[start : start + COPY_SIZE], loads)
        )
    return segments, frame


def _split_runs(tape: Tape, body: list[int], outputs: Iterable[int], size: int) -> list[list[int]]:
    """Runs of `size` nodes, or one more. A fused product is in the run of its sum, so that the size
    does not change the results, to the last bit."""
    fused = fused_products(tape, body, outputs)
    products = set(fused.values())
    runs: list[list[int]] = [[]]
    for node in body:
        if node in products:
            continue
        if len(runs[-1]) >= size:
            runs.append([])
        runs[-1] += [fused[node], node] if node in fused else [node]
    return runs


def fused_products(tape: Tape, nodes: list[int], stored: Iterable[int]) -> dict[int, int]:
    """{sum: product}: the products that are fused into sums or differences (FMA).

    Such a product has no other reader, and is not stored.
    """
    uses = Counter(chain(stored, chain.from_iterable(operands(tape, n) for n in nodes)))
    products = {n for n in nodes if tape.nodes[n][0] is MUL and uses[n] == 1}
    fused = {}
    for n in nodes:
        op, a, b = tape.nodes[n]
        if op in (ADD, SUB) and (a in products or b in products):
            fused[n] = b if b in products else a
    return fused


def _assign_slots(
    runs: list[list[int]], last: dict[int, int], free: int
) -> tuple[dict[int, int], int]:
    """{node: slot} and the size of the frame, by linear scan: a slot is free again after the last
    segment that reads it."""
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
