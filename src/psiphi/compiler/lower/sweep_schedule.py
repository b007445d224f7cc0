"""The sweep in which each node is computed: as early as its arguments allow, with as few sweeps as
possible.

A node that reads the children belongs to a tip-to-base sweep, one that reads the parent to a
base-to-tip sweep; other nodes are local and join any sweep. Of the two directions of the first
sweep, the one with fewer sweeps is chosen.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from psiphi.algebra.expressions.block_structure import STRICTLY_CAUSAL
from psiphi.algebra.expressions.letters import (
    A_LOCAL,
    ARTICULATED,
    B_LOCAL,
    COUPLE,
    RATE,
    STATE_VECTORS,
    FrameLetter,
)
from psiphi.compiler.lower import world_body
from psiphi.compiler.lower.horner_graph import (
    Anticausal,
    Apply,
    BodyForce,
    Causal,
    Dot,
    FrameMotion,
    Leaf,
    Node,
    arguments,
)
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, TIP_TO_BASE, Direction

VELOCITY_VECTORS = (A_LOCAL, B_LOCAL, COUPLE)


@dataclass(frozen=True)
class Schedule:
    """Directions of the sweeps, and the nodes of each in order.

    `articulate` is the number of the sweep that computes P, `differentiate` of the one for its
    derivative, `sum_masses` of the one for the centre of mass; None if there is no such sweep.
    """

    directions: tuple[Direction, ...]
    stages: tuple[tuple[Node, ...], ...]
    articulate: int | None
    differentiate: int | None = None
    sum_masses: int | None = None


def schedule(
    nodes: list[Node],
    needs_poses: bool = False,
    velocities: tuple[Node, ...] = (),
    after_sweep: Collection[Node] = (),
    final_sums: Collection[Node] = (),
) -> Schedule:
    """The schedule with the fewest sweeps.

    `needs_poses`: poses in the world are needed first, base to tip. `velocities`: the nodes that
    compute the velocities, if these are not inputs. `after_sweep`: nodes whose argument is complete
    when its sweep has ended. `final_sums`: nodes of the world that no node reads.
    """
    # directions alternate, so the first one determines the schedule
    options = [
        _ScheduleDraft(start, nodes, needs_poses, velocities).schedule(after_sweep, final_sums)
        for start in (TIP_TO_BASE, BASE_TO_TIP)
    ]
    return min(options, key=lambda s: len(s.directions))


def needs_motion(node: Node) -> bool:
    """Whether the node's own letter depends on velocities."""
    if isinstance(node, Leaf):
        return node.letter in VELOCITY_VECTORS
    return isinstance(node, Apply) and node.letter.needs_velocity


def _needs_rate(node: Node) -> bool:
    """Whether the node's own letter depends on the derivative of P."""
    return isinstance(node, Apply) and RATE in node.letter.depends_on


def needs_articulation(node: Node) -> bool:
    """Whether the node's own letter depends on P."""
    if isinstance(node, (Apply, Leaf)):
        return bool(node.letter.depends_on & {ARTICULATED, RATE})
    return isinstance(node, (Causal, Anticausal)) and (
        ARTICULATED in node.kind.depends_on or (isinstance(node, Causal) and node.x is not None)
    )


def reads_children(node: Node) -> bool:
    """Whether the node applies K, E_phi, ...: it reads values of the children."""
    return isinstance(node, Apply) and node.letter.row.structure == STRICTLY_CAUSAL


def reads_parent(node: Node) -> bool:
    """Whether the node applies K*, E_phi*, ...: it reads values of the parent."""
    return isinstance(node, Apply) and node.letter.row.structure == STRICTLY_CAUSAL.adjoint


def _direction_of(node: Node) -> Direction | None:
    """The direction of the sweeps that can compute the node; None for local nodes."""
    if isinstance(node, (Causal, Dot)) or world_body.is_world_sum(node) or reads_children(node):
        return TIP_TO_BASE
    # phi*, psi* and the Newton-Euler kinematics read the parent
    outward = isinstance(node, (Anticausal, BodyForce, FrameMotion)) or reads_parent(node)
    outward = outward or (
        isinstance(node, Leaf) and node.letter in STATE_VECTORS and node.letter != COUPLE
    )
    return BASE_TO_TIP if outward else None


class _ScheduleDraft:
    """A schedule whose first sweep has a given direction. `stage` is the number of each node's
    sweep."""

    def __init__(
        self,
        start: Direction,
        nodes: list[Node],
        needs_poses: bool,
        velocities: tuple[Node, ...],
    ):
        self.start, self.nodes, self.velocities = start, nodes, velocities
        self.stage: dict[int, int] = {}
        self.pose_sweep = self.next_in(BASE_TO_TIP, 0) if needs_poses else None
        self.articulated = any(map(needs_articulation, nodes))
        bodies = [self.next_in(BASE_TO_TIP, 0) for n in nodes if isinstance(n, BodyForce)]
        self.articulation_sweep = self.next_in(TIP_TO_BASE, 0)
        # P shares the tip-to-base sweep of the body forces, as in the articulated-body algorithm
        if self.articulated and bodies and self.articulation_sweep < min(bodies):
            self.articulation_sweep = self.next_in(TIP_TO_BASE, min(bodies))

    def next_in(self, direction: Direction, earliest: int) -> int:
        """The first sweep at or after `earliest` with this direction; directions alternate."""
        # even numbers have the direction of the first sweep
        offset = 0 if self.start is direction else 1
        return earliest if (earliest - offset) % 2 == 0 else earliest + 1

    @property
    def velocity_sweep(self) -> int:
        """The sweep in which the velocities are known."""
        return max(
            (self.stage[n.number] for n in self.velocities), default=self.next_in(BASE_TO_TIP, 0)
        )

    @property
    def rate_sweep(self) -> int:
        """The sweep that computes dP/dt: it needs P, and the joint velocities stored base
        to tip."""
        return self.next_in(TIP_TO_BASE, max(self.articulation_sweep, self.velocity_sweep))

    def earliest(self, node: Node, later: bool) -> int:
        """The first sweep in which all arguments of a node are known. `later`: the argument is
        complete when its sweep has ended."""
        # a sweep reads its own values at the same body, and those of earlier sweeps at any body
        needed = [max([self.stage[a.number] for a in arguments(node)], default=0) + later]
        if needs_articulation(node):
            needed.append(self.articulation_sweep)
        if needs_motion(node):
            needed.append(self.velocity_sweep)
        if _needs_rate(node):
            needed.append(self.rate_sweep)
        if (
            self.pose_sweep is not None
            and isinstance(node, Apply)
            and isinstance(node.letter, FrameLetter)
        ):
            needed.append(self.pose_sweep)
        # E_c* needs the centre of mass, from the first tip-to-base sweep
        if world_body.needs_center_of_mass(node) and world_body.reads_world(node):
            needed.append(self.next_in(TIP_TO_BASE, 0) + 1)
        return max(needed)

    def schedule(self, after_sweep: Collection[Node], final_sums: Collection[Node]) -> Schedule:
        # nodes come after their arguments, so one pass over them is enough
        for node in self.nodes:
            stage, direction = self.earliest(node, node in after_sweep), _direction_of(node)
            self.stage[node.number] = stage if direction is None else self.next_in(direction, stage)
        # final sums are computed in the last tip-to-base sweep
        end = self.next_in(TIP_TO_BASE, max(self.stage.values(), default=0))
        self.stage |= {n.number: end for n in final_sums}
        # the centre of mass is computed in the same sweep if only final sums need it, else in the
        # first tip-to-base sweep
        users = [n for n in self.nodes if world_body.needs_center_of_mass(n)]
        sum_masses = None
        if users:
            final = all(n in final_sums for n in users)
            sum_masses = end if final else self.next_in(TIP_TO_BASE, 0)
        articulate = self.articulation_sweep if self.articulated else None
        count = 1 + max([*self.stage.values(), articulate or 0, self.pose_sweep or 0])
        directions = tuple(self.start if i % 2 == 0 else _other(self.start) for i in range(count))
        stages = tuple(
            tuple(n for n in self.nodes if self.stage[n.number] == i) for i in range(count)
        )
        rates = self.rate_sweep if any(map(_needs_rate, self.nodes)) else None
        return _trim(Schedule(directions, stages, articulate, rates, sum_masses), self.pose_sweep)


def _trim(full: Schedule, poses: int | None) -> Schedule:
    """Drop a first sweep without work."""
    directions, stages, articulate = full.directions, full.stages, full.articulate
    idle = all(isinstance(n, Leaf) and _direction_of(n) is None for n in stages[0]) and 0 not in (
        articulate,
        poses,
        full.sum_masses,
    )
    moves = directions[0] is BASE_TO_TIP and any(needs_motion(n) for stage in stages for n in stage)
    # the first base-to-tip sweep computes the velocities
    idle = idle and not moves
    # given vectors are read in the next sweep
    if idle and len(stages) > 1:
        moved = ((*stages[0], *stages[1]), *stages[2:])
        later = [
            None if stage is None else stage - 1
            for stage in (articulate, full.differentiate, full.sum_masses)
        ]
        return Schedule(directions[1:], moved, *later)
    return full


def _other(direction: Direction) -> Direction:
    return TIP_TO_BASE if direction is BASE_TO_TIP else BASE_TO_TIP
