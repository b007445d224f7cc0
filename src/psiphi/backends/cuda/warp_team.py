"""A state of a large robot on several warps, one limb each, since one thread has too few registers.

    INWARDS     what depends on the inputs of one limb (and of the trunk): each limb on its warp
    TRUNK       what depends on several limbs and is used by several: one warp
    OUTWARDS    what is used by one limb only: each limb on its warp again

The warps synchronise between these phases. Numbers that one warp computes and another reads are in
shared memory, in one cell for each of the 32 states. What depends on the trunk's inputs alone is
little, and each warp that needs it computes it. A sweep to the base and back has this structure;
it is found from the dependencies on the tape.

Each operation is computed once and rounded as in one thread, so the results have the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.backends.llvm.register_spills import SpillEmitter
from psiphi.compiler.ir.segments import Segment, Store, operands

CELLS = "cells"  # the pointer to this state's cells of exchanged numbers
LANES = 32  # states of a warp
TEAM_WARPS = 4  # of a team, at most: as many as a multiprocessor has schedulers
MAX_TRUNK_SHARE = 0.3  # of all instructions; with more, most warps of a team would be idle
CELL_BYTES = 40 * 1024  # of shared memory for exchanged numbers
INWARDS, TRUNK, OUTWARDS = range(3)  # the phases
NO_LIMB = 1 << 62  # the bit of results that belong to no limb


@dataclass(frozen=True)
class WarpTask:
    """The work of one warp: its nodes in order, their phases, its stores, and what it loads."""

    nodes: list[int]
    phase: dict[int, int]
    stores: list[Store]
    loads: dict[int, tuple[str, int]]


@dataclass(frozen=True)
class WarpTeam:
    """The tasks of all warps, and how many numbers they exchange."""

    tasks: list[WarpTask]
    cells: int


@dataclass
class WarpPartition:
    """Divides a segment among the warps of a team.

    `leaf_limbs`: the limbs of a leaf, one bit each; `store_limbs`: the limb of a store, as a bit.
    """

    segment: Segment
    width: Width
    leaf_limbs: Mapping[int, int]
    store_limbs: Mapping[Store, int]
    fused: frozenset[int]
    # {node: (limb, or -1 in the trunk; phase)}
    owner: dict[int, tuple[int, int]] = field(default_factory=dict)

    def team(self) -> WarpTeam | None:
        """The team; None if it would not be faster than one thread."""
        self._assign_owners()
        work = Counter(limb for limb, _ in self.owner.values())
        common = [node for node in self.segment.nodes if node not in self.owner]
        limbs = [limb for limb in work if limb >= 0]
        if len(limbs) < 2 or work[-1] + len(common) > MAX_TRUNK_SHARE * len(self.segment.nodes):
            return None
        task_of_limb = _balance({limb: work[limb] for limb in limbs})
        count = 1 + max(task_of_limb.values())
        load = Counter(
            {
                index: sum(work[limb] for limb in limbs if task_of_limb[limb] == index)
                for index in range(count)
            }
        )
        trunk = min(load, key=lambda index: (load[index], index))
        assignment = {
            node: (trunk if limb < 0 else task_of_limb[limb], phase)
            for node, (limb, phase) in self.owner.items()
        }
        tasks = [self._task(index, trunk, assignment) for index in range(count)]
        cells = self._exchange(tasks, assignment)
        return WarpTeam(tasks, cells) if cells * LANES * self.width.bytes <= CELL_BYTES else None

    def _assign_owners(self) -> None:
        """Find the owner of each node, by the limbs it depends on and the limbs that use it."""
        tape, nodes = self.segment.tape, self.segment.nodes
        limbs = dict(self.leaf_limbs)
        for node in nodes:
            limbs[node] = 0
            for x in operands(tape, node):
                limbs[node] |= limbs.get(x, 0)
        served: Counter[int] = Counter()
        for store in self.segment.stores:
            served[store.node] |= self.store_limbs.get(store, NO_LIMB)
        for node in reversed(nodes):
            for x in operands(tape, node):
                served[x] |= served[node]
        for node in nodes:
            if _is_one_limb(limbs[node]):
                self.owner[node] = limbs[node].bit_length() - 1, INWARDS
            elif limbs[node]:
                serves_one = _is_one_limb(served[node]) and served[node] != NO_LIMB
                self.owner[node] = (
                    (served[node].bit_length() - 1, OUTWARDS) if serves_one else (-1, TRUNK)
                )
        sums = {
            x: node
            for node in reversed(nodes)
            if node not in self.fused
            for x in operands(tape, node)
            if x in self.fused
        }
        for product, total in sums.items():  # a product is computed within its sum
            if total in self.owner:
                self.owner[product] = self.owner[total]

    def _task(self, index: int, trunk: int, assignment: dict[int, tuple[int, int]]) -> WarpTask:
        """The nodes that one warp owns, and the nodes without owner that it needs."""
        phase = {node: p for node, (task, p) in assignment.items() if task == index}
        stores = [s for s in self.segment.stores if assignment.get(s.node, (trunk, 0))[0] == index]
        for store in stores:
            phase.setdefault(store.node, INWARDS)
        for node in reversed(self.segment.nodes):
            if node in phase:
                for x in operands(self.segment.tape, node):
                    if x not in assignment:
                        phase[x] = min(phase.get(x, OUTWARDS), phase[node])
        nodes = sorted(
            (node for node in self.segment.nodes if node in phase), key=lambda node: phase[node]
        )
        return WarpTask(nodes, phase, stores, dict(self.segment.loads))

    def _exchange(self, tasks: list[WarpTask], assignment: dict[int, tuple[int, int]]) -> int:
        """Assign a cell to each number that one warp computes and another reads; their count."""
        cells: dict[int, int] = {}
        for index, task in enumerate(tasks):
            for node in task.nodes:
                for x in operands(self.segment.tape, node):
                    if x in assignment and assignment[x][0] != index:
                        task.loads[x] = CELLS, LANES * cells.setdefault(x, len(cells))
        for x, cell in cells.items():
            tasks[assignment[x][0]].stores.append(Store(CELLS, LANES * cell, x))
        return len(cells)


class TeamSpills(SpillEmitter):
    """The lines of one warp of a team, synchronised with the others between the phases."""

    def __init__(
        self,
        segment: Segment,
        width: Width,
        task: WarpTask,
        sync: str,
        registers: int,
        fused: frozenset[int],
        known: Mapping[int, str],
    ):
        task_segment = Segment(segment.name, segment.tape, task.nodes, task.stores, task.loads)
        super().__init__(task_segment, width, registers, fused, known=known)
        self.sync, self.phase, self.current_phase = sync, task.phase, INWARDS

    def body(self) -> list[str]:
        super().body()
        self._wait_for_phase(OUTWARDS)
        return self.lines

    def _emit(self, node: int) -> str:
        self._wait_for_phase(self.phase[node])
        return super()._emit(node)

    def _wait_for_phase(self, phase: int) -> None:
        self.lines += [self.sync] * (phase - self.current_phase)
        self.current_phase = phase


def _is_one_limb(bits: int) -> bool:
    return bits > 0 and bits & (bits - 1) == 0


def _balance(work: dict[int, int]) -> dict[int, int]:
    """{limb: warp}: limbs in order of decreasing work, each to the warp with the least work."""
    load, task_of_limb = [0] * min(TEAM_WARPS, len(work)), {}
    for limb in sorted(work, key=lambda limb: -work[limb]):
        task_of_limb[limb] = load.index(min(load))
        load[task_of_limb[limb]] += work[limb]
    return task_of_limb
