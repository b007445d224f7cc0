"""A state of a large robot done by several warps of a graphics card: a limb each, since one thread has too few registers.

    inwards     what follows from one limb's inputs alone (and the trunk's): by its warp, all of them side by side
    meeting     what needs several limbs and serves several: the trunk, by one warp
    outwards    what is of use to one limb alone: by its warp again

Between them all wait for each other; numbers that one makes and another reads stand in memory that the block shares, a cell for
each of the 32 states. What follows from the trunk's inputs alone is little: who needs it computes it. On a tree this is the
whole story of a sweep to the base and back; the tape tells it by itself, by what follows from what.

Every operation is done once and rounded as ever: same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import SpillEmitter
from psiphi.compiler.ir.segments import Segment, Store, operands

CELLS = "cells"  # the pointer to this state's cell of each number that is handed over
LANES = 32  # states, side by side
ROLES = 4  # warps of a team at most: as many as a multiprocessor has schedulers
MEETING = 0.3  # of all instructions: more of them in the trunk, and a team waits for one warp
CELL_BYTES = 40 * 1024  # of shared memory for what is handed over
INWARDS, TRUNK, OUTWARDS = range(3)  # the phases
NOWHERE = 1 << 62  # of use to a result that is no limb's


@dataclass(frozen=True)
class WarpTask:
    """What one warp does: nodes in order, with the phase of each, and what it hands over or brings out."""

    nodes: list[int]
    phase: dict[int, int]
    stores: list[Store]
    given: dict[int, tuple[str, int]]


@dataclass(frozen=True)
class WarpTeam:
    """The roles, and how many numbers are handed over."""

    roles: list[WarpTask]
    cells: int


@dataclass
class WarpPartition:
    """One segment on its way to a team. `follows`: the limbs of a leaf, a bit each; `serves`: the limb of a store, as a bit."""

    segment: Segment
    width: Width
    follows: Mapping[int, int]
    serves: Mapping[Store, int]
    fused: frozenset[int]
    owner: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # node: (limb, or -1 in the trunk; phase)

    def team(self) -> WarpTeam | None:
        """None where one thread does as well."""
        self._own()
        work = Counter(limb for limb, _ in self.owner.values())
        common = [node for node in self.segment.nodes if node not in self.owner]
        limbs = [limb for limb in work if limb >= 0]
        if len(limbs) < 2 or work[-1] + len(common) > MEETING * len(self.segment.nodes):
            return None
        role = _packed({limb: work[limb] for limb in limbs})
        count = 1 + max(role.values())
        load = Counter(
            {r: sum(work[limb] for limb in limbs if role[limb] == r) for r in range(count)}
        )
        trunk = min(load, key=lambda r: (load[r], r))
        does = {
            node: (trunk if limb < 0 else role[limb], phase)
            for node, (limb, phase) in self.owner.items()
        }
        roles = [self._role(r, trunk, does) for r in range(count)]
        cells = self._hand_over(roles, does)
        return WarpTeam(roles, cells) if cells * LANES * self.width.bytes <= CELL_BYTES else None

    def _own(self) -> None:
        """Whose each instruction is: by the limbs it follows from, and the limbs that it serves."""
        tape, nodes = self.segment.tape, self.segment.nodes
        follows = dict(self.follows)
        for node in nodes:
            follows[node] = 0
            for x in operands(tape, node):
                follows[node] |= follows.get(x, 0)
        use: Counter[int] = Counter()
        for store in self.segment.stores:
            use[store.node] |= self.serves.get(store, NOWHERE)
        for node in reversed(nodes):
            for x in operands(tape, node):
                use[x] |= use[node]
        for node in nodes:
            if _single(follows[node]):
                self.owner[node] = follows[node].bit_length() - 1, INWARDS
            elif follows[node]:
                mine = _single(use[node]) and use[node] != NOWHERE
                self.owner[node] = (use[node].bit_length() - 1, OUTWARDS) if mine else (-1, TRUNK)
        sums = {
            x: node
            for node in reversed(nodes)
            if node not in self.fused
            for x in operands(tape, node)
            if x in self.fused
        }
        for product, its in sums.items():  # is done within its sum
            if its in self.owner:
                self.owner[product] = self.owner[its]

    def _role(self, r: int, trunk: int, does: dict[int, tuple[int, int]]) -> WarpTask:
        """One warp's own nodes, and those that all may compute and this one needs."""
        phase = {node: p for node, (who, p) in does.items() if who == r}
        stores = [s for s in self.segment.stores if does.get(s.node, (trunk, 0))[0] == r]
        for store in stores:
            phase.setdefault(store.node, INWARDS)
        for node in reversed(self.segment.nodes):
            if node in phase:
                for x in operands(self.segment.tape, node):
                    if x not in does:
                        phase[x] = min(phase.get(x, OUTWARDS), phase[node])
        nodes = sorted(
            (node for node in self.segment.nodes if node in phase), key=lambda node: phase[node]
        )
        return WarpTask(nodes, phase, stores, dict(self.segment.given))

    def _hand_over(self, roles: list[WarpTask], does: dict[int, tuple[int, int]]) -> int:
        """A cell for each number that one role makes and another reads; how many."""
        cells: dict[int, int] = {}
        for r, role in enumerate(roles):
            for node in role.nodes:
                for x in operands(self.segment.tape, node):
                    if x in does and does[x][0] != r:
                        role.given[x] = CELLS, LANES * cells.setdefault(x, len(cells))
        for x, cell in cells.items():
            roles[does[x][0]].stores.append(Store(CELLS, LANES * cell, x))
        return len(cells)


class TeamSpills(SpillEmitter):
    """One role's lines, with the two places where it waits for the others."""

    def __init__(
        self,
        segment: Segment,
        width: Width,
        role: WarpTask,
        sync: str,
        registers: int,
        fused: frozenset[int],
        known: Mapping[int, str],
    ):
        own = Segment(segment.name, segment.tape, role.nodes, role.stores, role.given)
        super().__init__(own, width, registers, fused, known=known)
        self.sync, self.phase, self.now = sync, role.phase, INWARDS

    def body(self) -> list[str]:
        super().body()
        self._wait(OUTWARDS)
        return self.lines

    def _emit(self, node: int) -> str:
        self._wait(self.phase[node])
        return super()._emit(node)

    def _wait(self, phase: int) -> None:
        self.lines += [self.sync] * (phase - self.now)
        self.now = phase


def _single(bits: int) -> bool:
    return bits > 0 and bits & (bits - 1) == 0


def _packed(work: dict[int, int]) -> dict[int, int]:
    """{limb: role}: the largest first, each to the role that has least."""
    load, role = [0] * min(ROLES, len(work)), {}
    for limb in sorted(work, key=lambda limb: -work[limb]):
        role[limb] = load.index(min(load))
        load[role[limb]] += work[limb]
    return role
