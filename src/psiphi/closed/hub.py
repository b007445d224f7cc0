"""Many mechanisms around one: the hub is eliminated last, and what is solved densely is as large as the hub.

All but the hub fall apart into groups (the arms, each with what it shares bodies or loops with). With B the rows' columns of
the hub's coordinates, S_i = Jc_i M_i^-1 Jc_i* of group i alone, T' what pushes the hub besides, and d its acceleration:

    S_i lambda_i + B_i d = right_i      M_hub d = T' + sum B_i* lambda_i

    P = M_hub + sum B_i* S_i^-1 B_i     P d = T' + sum B_i* S_i^-1 right_i     lambda_i = S_i^-1 (right_i - B_i d)

For arms around a free body P = M(C) + sum A_i* Lambda_i A_i is the inertia one feels at the object: its own, and that of the
arms as the object feels them. The cost is O(n) + O(arms); Omega, with the hub eliminated first, costs O(arms^3).

Rows that a group cannot move (arms of few joints, arms at a singularity, a clamp) have no S_i^-1: in S = L diag(e) L* their
pivots e_j are zero, and what is left of them binds the hub, (L^-1 B)_j d = (L^-1 right)_j. Only Q = sum of their squares is
needed, as large as the hub however many they are (`elimination.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.closed.constraints import Closure
from psiphi.model.freed import nominal
from psiphi.model.model import WORLD, Body

THIN = 1e-12  # of its largest moment of inertia: one below is none


@dataclass(frozen=True)
class Hub:
    """Which bodies and velocity coordinates are the hub's, and the rows of every group around it."""

    name: str
    bodies: tuple[int, ...]
    coordinates: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    held_by: int  # how many groups hold it; the others are rows of the hub alone
    thin: bool  # whether it is a body whose inertia is singular: a rod without thickness, a point mass
    short: tuple[bool, ...]  # whether fewer coordinates move a group's frames than it has rows

    @property
    def work(self) -> int:
        """About how many operations the dense part takes: to compare hubs."""
        n = len(self.coordinates)
        return sum(len(g) ** 3 // 3 + len(g) ** 2 * n + len(g) * n * n for g in self.groups) + n**3 // 3


def find(closure: Closure) -> Hub | None:
    """The mechanism around which the dense part is least; None where no elimination of one leaves several groups. A thin body
    is a hub whoever holds it: it can be eliminated last only."""
    model = closure.model
    tree = list(range(len(model.bodies)))  # the root of every body: parents come first
    for k, parent in enumerate(model.parent):
        tree[k] = k if parent == WORLD else tree[parent]
    rows = _trees(closure, tree)
    hubs = [_around(closure, hub, tree, rows) for hub in sorted({t for touched in rows for t in touched})]
    hubs = [hub for hub in hubs if hub.thin] or [hub for hub in hubs if hub.held_by > 1]
    return min(hubs, key=lambda hub: hub.work, default=None)


def _trees(closure: Closure, tree: Sequence[int]) -> list[set[int]]:
    """The trees each row touches."""
    model = closure.model
    child = {joint.name: k for k, joint in enumerate(model.joints)}
    found: list[set[int]] = []
    for c in closure.constraints:
        bodies = {model.frame(name).body for name in (c.first, c.second)} - {WORLD}
        found += [{tree[k] for k in bodies}] * c.row.size
    return found + [{tree[child[name]] for name in (f.joint, f.leader)} for f in closure.follows]


def _around(closure: Closure, hub: int, tree: Sequence[int], rows: list[set[int]]) -> Hub:
    """The groups that are left when a tree is taken out: rows that share another."""
    model = closure.model
    known = model if model.freed is None else nominal(model)
    clusters: list[tuple[set[int], list[int]]] = []
    for i, touched in enumerate(rows):
        others = touched - {hub}
        met = [c for c in clusters if c[0] & others] if others else []
        clusters = [c for c in clusters if not any(c is m for m in met)]
        clusters.append((others.union(*(c[0] for c in met)), sorted([i, *(j for c in met for j in c[1])])))
    coordinates = [i for k, t in enumerate(tree) if t == hub for i in model.joints[k].coordinates]
    return Hub(
        model.bodies[hub].name,
        tuple(k for k, t in enumerate(tree) if t == hub),
        tuple(coordinates),
        tuple(tuple(group) for _, group in clusters),
        sum(bool(others) for others, _ in clusters),
        len(coordinates) == 6 and tree.count(hub) == 1 and is_thin(known.bodies[hub]),
        tuple(len(_movers(closure, hub, tree, set(group))) < len(group) for _, group in clusters),
    )


def is_thin(body: Body) -> bool:
    """Whether some motion of it needs no force."""
    least, *_, most = np.linalg.eigvalsh(body.inertia)
    return bool(body.mass <= 0.0 or least <= THIN * most)


def _movers(closure: Closure, hub: int, tree: Sequence[int], rows: set[int]) -> set[int]:
    """The coordinates, besides the hub's, that move what rows touch."""
    model, moved = closure.model, set()
    for c, own in zip(closure.constraints, closure.slices, strict=False):
        if own.start in rows:
            moved |= {model.frame(name).body for name in (c.first, c.second)} - {WORLD}
    path: set[int] = set()
    for k in moved:
        while k != WORLD and tree[k] != hub:
            path.add(k)
            k = model.parent[k]
    found = {i for k in path for i in model.joints[k].coordinates}
    pairs = zip(closure.joints, closure.slices[len(closure.constraints) :], strict=True)
    return found | {i for joints, own in pairs if own.start in rows for i in joints if not _is_hubs(model, i, hub, tree)}


def _is_hubs(model: Any, coordinate: int, hub: int, tree: Sequence[int]) -> bool:
    return any(coordinate in joint.coordinates for k, joint in enumerate(model.joints) if tree[k] == hub)
