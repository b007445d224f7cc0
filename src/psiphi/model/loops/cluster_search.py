"""Which bodies form a cluster, and the order of the bodies of a robot with clusters.

A tie between frames on bodies i and j joins the bodies on the two paths below their nearest common
ancestor. A gear joins the bodies on the paths below the nearest common ancestor of the parents of
its bodies. Sets that overlap are united, and the paths below the new common ancestor are added,
until no two overlap. Then each set has one parent body outside, and the robot is a tree if each set
counts as one body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from psiphi.model.components import path_to_body, shared_path
from psiphi.model.model import WORLD


@dataclass
class ClusterGroup:
    """Bodies that move together; indices of their ties and gears."""

    bodies: set[int]
    parent: int
    ties: list[int] = field(default_factory=list)
    gears: list[int] = field(default_factory=list)


def _common_ancestor(parent: Sequence[int], bodies: Iterable[int]) -> int:
    """The nearest common ancestor of these bodies, or WORLD."""
    return [WORLD, *shared_path(parent, bodies)][-1]


def _below(parent: Sequence[int], top: int, bodies: Iterable[int]) -> set[int]:
    """The bodies on the paths from `top` to these bodies, without `top`."""
    return {k for body in bodies for k in path_to_body(parent, body)} - set(
        path_to_body(parent, top)
    )


def find_clusters(
    parent: Sequence[int], ties: Sequence[tuple[int, int]], gears: Sequence[Sequence[int]]
) -> list[ClusterGroup]:
    """The sets of bodies that form clusters.

    `ties` are pairs of bodies, one of which may be WORLD; `gears` are the bodies of geared joints.
    """
    sets = []
    for i, pair in enumerate(ties):
        top = WORLD if WORLD in pair else _common_ancestor(parent, pair)
        sets.append(
            ClusterGroup(_below(parent, top, [k for k in pair if k != WORLD]), top, ties=[i])
        )
    for i, bodies in enumerate(gears):
        top = _common_parent(parent, bodies)
        sets.append(ClusterGroup(_below(parent, top, bodies), top, gears=[i]))
    while (pair := _overlapping_pair(sets)) is not None:
        one, two = pair
        bodies = one.bodies | two.bodies
        top = _common_parent(parent, bodies)
        united = ClusterGroup(
            _below(parent, top, bodies), top, [*one.ties, *two.ties], [*one.gears, *two.gears]
        )
        sets = [s for s in sets if s is not one and s is not two] + [united]
    return sets


def _common_parent(parent: Sequence[int], bodies: Iterable[int]) -> int:
    """The nearest common ancestor of the parents of these bodies."""
    parents = {parent[k] for k in bodies}
    return WORLD if WORLD in parents else _common_ancestor(parent, parents)


def _overlapping_pair(sets: list[ClusterGroup]) -> tuple[ClusterGroup, ClusterGroup] | None:
    for i, one in enumerate(sets):
        for two in sets[i + 1 :]:
            if one.bodies & two.bodies:
                return one, two
    return None


def body_order(parent: Sequence[int], sets: Sequence[ClusterGroup]) -> list[int]:
    """The bodies, parents first; the bodies of one cluster are consecutive."""
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
    """Move each body behind its parent.

    A cluster comes at its first body, so a child of a later body of the cluster may come too early.
    """
    waiting, done, out = found, {WORLD}, []
    while waiting:
        later = []
        for k in waiting:
            group = inside.get(k)
            ready = parent[k] in done if group is None else group.parent in done
            if ready:
                out.append(k)
                done.add(k)
            else:
                later.append(k)
        assert len(later) < len(waiting), "the clusters do not form a tree"
        waiting = later
    return out
