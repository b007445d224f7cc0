"""Which bodies make one cluster, and the order in which bodies stand then.

A tie between frames on bodies i and j: the bodies on both paths below their nearest common ancestor. Joints that follow
others: the paths below the nearest common ancestor of their parents. While two sets meet they are united, and closed again.
The sets that result hang on one body outside each, and with every set as one body the robot is a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from psiphi.model.components import shared_way, way_to
from psiphi.model.model import WORLD


@dataclass
class ClusterGroup:
    """Bodies that move together, and what ties them: numbers of ties and of gears."""

    bodies: set[int]
    parent: int
    ties: list[int] = field(default_factory=list)
    gears: list[int] = field(default_factory=list)


def _common(parent: Sequence[int], bodies: Iterable[int]) -> int:
    """The nearest body on the ways to all of these, or the world."""
    return [WORLD, *shared_way(parent, bodies)][-1]


def _below(parent: Sequence[int], top: int, bodies: Iterable[int]) -> set[int]:
    """The bodies on the ways from `top` to these, `top` not among them."""
    return {k for body in bodies for k in way_to(parent, body)} - set(way_to(parent, top))


def gather(
    parent: Sequence[int], ties: Sequence[tuple[int, int]], gears: Sequence[Sequence[int]]
) -> list[ClusterGroup]:
    """`ties` are pairs of bodies (the world among them), `gears` the bodies of joints that are geared together."""
    sets = []
    for i, pair in enumerate(ties):
        top = WORLD if WORLD in pair else _common(parent, pair)
        sets.append(
            ClusterGroup(_below(parent, top, [k for k in pair if k != WORLD]), top, ties=[i])
        )
    for i, bodies in enumerate(gears):
        top = _above(parent, bodies)
        sets.append(ClusterGroup(_below(parent, top, bodies), top, gears=[i]))
    while (meeting := _meeting(sets)) is not None:
        one, two = meeting
        together = one.bodies | two.bodies
        top = _above(parent, together)
        united = ClusterGroup(
            _below(parent, top, together), top, [*one.ties, *two.ties], [*one.gears, *two.gears]
        )
        sets = [s for s in sets if s is not one and s is not two] + [united]
    return sets


def _above(parent: Sequence[int], bodies: Iterable[int]) -> int:
    """The nearest common ancestor of the bodies' parents."""
    parents = {parent[k] for k in bodies}
    return WORLD if WORLD in parents else _common(parent, parents)


def _meeting(sets: list[ClusterGroup]) -> tuple[ClusterGroup, ClusterGroup] | None:
    for i, one in enumerate(sets):
        for two in sets[i + 1 :]:
            if one.bodies & two.bodies:
                return one, two
    return None


def order(parent: Sequence[int], sets: Sequence[ClusterGroup]) -> list[int]:
    """The bodies, parents first, those of one cluster next to each other."""
    inside = {k: s for s in sets for k in s.bodies}
    found: list[int] = []
    for k in range(len(parent)):
        if k not in inside:
            found.append(k)
        elif k == min(inside[k].bodies):
            found += sorted(inside[k].bodies)
    return _parents_first(found, parent, inside)


def _parents_first(
    found: list[int], parent: Sequence[int], inside: dict[int, ClusterGroup]
) -> list[int]:
    """Clusters stand where their first body does: a body that hangs on a later one of its cluster may stand too early."""
    waiting, done, out = found, {WORLD}, []
    while waiting:
        later = []
        for k in waiting:
            own = inside.get(k)
            ready = parent[k] in done if own is None else own.parent in done
            if ready:
                out.append(k)
                done.add(k)
            else:
                later.append(k)
        assert len(later) < len(waiting), "the clusters of a tree make a tree"
        waiting = later
    return out
