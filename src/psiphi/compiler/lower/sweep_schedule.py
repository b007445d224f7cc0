"""Which sweep computes which node: as early as its arguments allow, everything in one direction together.

A node that gathers from children belongs to a tip-to-base sweep, one that inherits from the parent to a base-to-tip sweep;
the rest is local and rides along. Starting either way, the schedule with fewer sweeps wins.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from psiphi.algebra.expressions.block_structure import STRICTLY_CAUSAL
from psiphi.algebra.expressions.letters import (
    A_LOCAL,
    ARTICULATED,
    B_LOCAL,
    BIAS,
    COUPLE,
    RATE,
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

LOCAL_BIAS = (A_LOCAL, B_LOCAL, COUPLE)


@dataclass(frozen=True)
class Schedule:
    """Directions of the sweeps, and the nodes of each in order; `articulate` is the sweep that makes P, `differentiate` the
    one that makes its derivative, `weigh` the one that finds the centre of mass, or None."""

    directions: tuple[Direction, ...]
    stages: tuple[tuple[Node, ...], ...]
    articulate: int | None
    differentiate: int | None = None
    weigh: int | None = None


def schedule(
    nodes: list[Node],
    placed: bool = False,
    motion: tuple[Node, ...] = (),
    whole: Collection[Node] = (),
    last: Collection[Node] = (),
) -> Schedule:
    """`placed`: world poses are needed, first thing, base to tip; `motion`: the nodes that make the velocities, where they are
    not given; `whole`: nodes whose argument is whole when its sweep has ended; `last`: nodes that end at the world, when all is
    done."""
    # Sweeps go in and out by turns, so a schedule is known by the way it begins.
    options = [
        _Beginning(start, nodes, placed, motion).schedule(whole, last)
        for start in (TIP_TO_BASE, BASE_TO_TIP)
    ]
    return min(options, key=lambda s: len(s.directions))


def needs_motion(node: Node) -> bool:
    """Whether a node's own letter is made of velocities."""
    if isinstance(node, Leaf):
        return node.letter in LOCAL_BIAS
    return isinstance(node, Apply) and node.letter.moves


def _rated(node: Node) -> bool:
    """Whether a node's own letter is made of the derivative of P."""
    return isinstance(node, Apply) and RATE in node.letter.made


def needs_articulation(node: Node) -> bool:
    """Whether a node's own letter is made of P."""
    if isinstance(node, (Apply, Leaf)):
        return bool(node.letter.made & {ARTICULATED, RATE})
    return isinstance(node, (Causal, Anticausal)) and (
        ARTICULATED in node.kind.made or (isinstance(node, Causal) and node.x is not None)
    )


def gathers(node: Node) -> bool:
    """K, E_phi, ...: reads what the children have."""
    return isinstance(node, Apply) and node.letter.row.structure == STRICTLY_CAUSAL


def inherits(node: Node) -> bool:
    """K*, E_phi*, ...: reads what the parent has."""
    return isinstance(node, Apply) and node.letter.row.structure == STRICTLY_CAUSAL.adjoint


def _wanted(node: Node) -> Direction | None:
    if isinstance(node, (Causal, Dot)) or world_body.gives(node) or gathers(node):
        return TIP_TO_BASE
    # phi*, psi* and Newton and Euler's kinematics: a body hears its parent
    outward = isinstance(node, (Anticausal, BodyForce, FrameMotion)) or inherits(node)
    outward = outward or (isinstance(node, Leaf) and node.letter in BIAS and node.letter != COUPLE)
    return BASE_TO_TIP if outward else None


class _Beginning:
    """A schedule whose first sweep runs one way: `stage` is the number of the sweep that each node is made in."""

    def __init__(self, start: Direction, nodes: list[Node], placed: bool, motion: tuple[Node, ...]):
        self.start, self.nodes, self.motion = start, nodes, motion
        self.stage: dict[int, int] = {}
        self.poses = self.next_in(BASE_TO_TIP, 0) if placed else None
        self.articulated = any(map(needs_articulation, nodes))
        bodies = [self.next_in(BASE_TO_TIP, 0) for n in nodes if isinstance(n, BodyForce)]
        self.inward = self.next_in(TIP_TO_BASE, 0)
        # P rides inward with the forces of the bodies, as in the articulated-body algorithm, not in a sweep of its own before.
        if self.articulated and bodies and self.inward < min(bodies):
            self.inward = self.next_in(TIP_TO_BASE, min(bodies))

    def next_in(self, direction: Direction, earliest: int) -> int:
        """The first sweep at or after `earliest` that runs this way: numbers alternate in direction."""
        # even numbers run as the schedule begins, odd ones the other way
        offset = 0 if self.start is direction else 1
        return earliest if (earliest - offset) % 2 == 0 else earliest + 1

    @property
    def moving(self) -> int:
        """The sweep in which the velocities are known."""
        return max(
            (self.stage[n.number] for n in self.motion), default=self.next_in(BASE_TO_TIP, 0)
        )

    @property
    def rates(self) -> int:
        """The sweep that makes dP/dt: it needs P, made inward, and the joint velocities, kept on the way out."""
        return self.next_in(TIP_TO_BASE, max(self.inward, self.moving))

    def earliest(self, node: Node, later: bool) -> int:
        """The first sweep in which all is known that a node is made of; `later`: what it reads is whole when its sweep ends."""
        # a sweep reads what it makes itself at the same body, or what an earlier one made anywhere
        needed = [max([self.stage[a.number] for a in arguments(node)], default=0) + later]
        if needs_articulation(node):
            needed.append(self.inward)
        if needs_motion(node):
            needed.append(self.moving)
        if _rated(node):
            needed.append(self.rates)
        if (
            self.poses is not None
            and isinstance(node, Apply)
            and isinstance(node.letter, FrameLetter)
        ):
            needed.append(self.poses)
        # E_c* hands out what the first sweep inward has weighed
        if world_body.weighed(node) and world_body.takes(node):
            needed.append(self.next_in(TIP_TO_BASE, 0) + 1)
        return max(needed)

    def schedule(self, whole: Collection[Node], last: Collection[Node]) -> Schedule:
        # nodes stand behind their arguments: one pass settles the sweep of each, as early as may be
        for node in self.nodes:
            at, direction = self.earliest(node, node in whole), _wanted(node)
            self.stage[node.number] = at if direction is None else self.next_in(direction, at)
        # sums that end at the world can wait for the last sweep inward, whatever else is in it
        end = self.next_in(TIP_TO_BASE, max(self.stage.values(), default=0))
        self.stage |= {n.number: end for n in last}
        # the centre of mass rides with the last sums where only these ask for it, else with the first sweep inward
        weighed = [n for n in self.nodes if world_body.weighed(n)]
        weigh = (
            (end if all(n in last for n in weighed) else self.next_in(TIP_TO_BASE, 0))
            if weighed
            else None
        )
        articulate = self.inward if self.articulated else None
        count = 1 + max([*self.stage.values(), articulate or 0, self.poses or 0])
        directions = tuple(self.start if i % 2 == 0 else _other(self.start) for i in range(count))
        stages = tuple(
            tuple(n for n in self.nodes if self.stage[n.number] == i) for i in range(count)
        )
        rates = self.rates if any(map(_rated, self.nodes)) else None
        return _trim(Schedule(directions, stages, articulate, rates, weigh), self.poses)


def _trim(full: Schedule, poses: int | None) -> Schedule:
    """Drop a first sweep that has nothing to do."""
    directions, stages, articulate = full.directions, full.stages, full.articulate
    idle = all(isinstance(n, Leaf) and _wanted(n) is None for n in stages[0]) and 0 not in (
        articulate,
        poses,
        full.weigh,
    )
    moves = directions[0] is BASE_TO_TIP and any(needs_motion(n) for stage in stages for n in stage)
    idle = idle and not moves  # the first sweep outward makes the velocities
    # given vectors alone are no work: they are read in the next sweep as well
    if idle and len(stages) > 1:
        moved = ((*stages[0], *stages[1]), *stages[2:])
        later = [
            None if stage is None else stage - 1
            for stage in (articulate, full.differentiate, full.weigh)
        ]
        return Schedule(directions[1:], moved, *later)
    return full


def _other(direction: Direction) -> Direction:
    return TIP_TO_BASE if direction is BASE_TO_TIP else BASE_TO_TIP
