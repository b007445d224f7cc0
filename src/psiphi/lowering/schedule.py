"""Which sweep computes which node: as early as its arguments allow, everything in one direction together.

A node that gathers from children belongs to a tip-to-base sweep, one that inherits from the parent to a base-to-tip sweep;
the rest is local and rides along. Starting either way, the schedule with fewer sweeps wins.
"""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.lowering.graph import Anticausal, Apply, BodyForce, Causal, Leaf, Node, arguments
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE, Direction

ARTICULATED = {
    "psi",
    "psi*",
    "P",
    "D",
    "D_inv",
    "D_half",
    "D_half*",
    "D_half_inv",
    "D_half_inv*",
    "G",
    "G*",
    "K",
    "K*",
    "E_psi",
    "E_psi*",
    "tau_bar",
    "tau_bar*",
    "L",
    "L*",
}
VELOCITY = {"spin", "gyro", "H_dot*"}  # made of the links' velocities
GATHER = {"K", "E_phi", "E_psi", "S"}
ABOVE = {"K*", "E_phi*", "E_psi*", "S*"}  # read the parent's value


@dataclass(frozen=True)
class Schedule:
    """Directions of the sweeps, and the nodes of each in order; `articulate` is the sweep that makes P, or None."""

    directions: tuple[Direction, ...]
    stages: tuple[tuple[Node, ...], ...]
    articulate: int | None


def schedule(nodes: list[Node], articulated: bool = False, placed: bool = False, fused: bool = True) -> Schedule:
    """`articulated`: P is needed by itself; `placed`: world poses are needed, first thing, base to tip."""
    options = [_schedule(nodes, start, articulated, placed, fused) for start in (TIP_TO_BASE, BASE_TO_TIP)]
    return min(options, key=lambda s: len(s.directions))


def needs_articulation(node: Node) -> bool:
    """Whether a node's own letter is made of P."""
    if isinstance(node, Apply):
        return node.letter in ARTICULATED
    return isinstance(node, (Causal, Anticausal)) and (
        node.kind in ARTICULATED or (isinstance(node, Causal) and node.x is not None)
    )


def _wanted(node: Node) -> Direction | None:
    if isinstance(node, Causal) or (isinstance(node, Apply) and node.letter in GATHER):
        return TIP_TO_BASE
    outward = isinstance(node, (Anticausal, BodyForce)) or (
        isinstance(node, Leaf) and node.letter in ("vec:a@link", "vec:b@link")
    )
    return BASE_TO_TIP if outward else None


def _schedule(nodes: list[Node], start: Direction, articulated: bool, placed: bool, fused: bool) -> Schedule:
    def next_in(direction: Direction, earliest: int) -> int:
        offset = 0 if start is direction else 1
        return earliest if (earliest - offset) % 2 == 0 else earliest + 1

    poses = next_in(BASE_TO_TIP, 0) if placed else 0
    articulated = articulated or any(needs_articulation(n) for n in nodes)
    bodies = [next_in(BASE_TO_TIP, 0) for n in nodes if isinstance(n, BodyForce)]
    inward = next_in(TIP_TO_BASE, 0)
    if articulated and bodies and inward < min(bodies):
        inward = next_in(TIP_TO_BASE, min(bodies))
    stage: dict[int, int] = {}
    for node in nodes:
        earliest = max([stage[a.number] for a in arguments(node)], default=0)
        if needs_articulation(node):
            earliest = max(earliest, inward)
        if isinstance(node, Apply) and node.letter in VELOCITY:
            earliest = max(earliest, next_in(BASE_TO_TIP, 0))
        if isinstance(node, Apply) and node.letter.startswith("B["):
            earliest = max(earliest, poses)
        if isinstance(node, Apply) and node.letter in ABOVE and stage[node.argument.number] == earliest:
            earliest = next_in(BASE_TO_TIP, earliest)  # the parent's value must be there already
        direction = _wanted(node)
        stage[node.number] = earliest if direction is None else next_in(direction, earliest)
    count = 1 + max([*stage.values(), inward if articulated else 0, poses if placed else 0], default=0)
    directions = [start if i % 2 == 0 else _other(start) for i in range(count)]
    stages = [tuple(n for n in nodes if stage[n.number] == i) for i in range(count)]
    return Schedule(*_trim(directions, stages, inward if articulated else None, poses if placed else None))


def _trim(directions, stages, articulate, poses):
    """Drop a first sweep that has nothing to do."""
    idle = all(isinstance(n, Leaf) and _wanted(n) is None for n in stages[0]) and articulate != 0 and poses != 0
    if idle and len(stages) > 1:
        moved = [(*stages[0], *stages[1]), *stages[2:]]
        return tuple(directions[1:]), tuple(moved), None if articulate is None else articulate - 1
    return tuple(directions), tuple(stages), articulate


def _other(direction: Direction) -> Direction:
    return TIP_TO_BASE if direction is BASE_TO_TIP else BASE_TO_TIP
