"""Many mechanisms around one: the hub is eliminated last, and what is solved densely is as large as the hub.

All but the hub fall apart into groups (the arms, each with what it shares bodies or loops with). With B the rows' columns of
the hub's coordinates, S_i = Jc_i M_i^-1 Jc_i* of group i alone, T' what pushes the hub besides, and d its acceleration:

    S_i lambda_i + B_i d = right_i      M_hub d = T' + sum B_i* lambda_i

    P = M_hub + sum B_i* S_i^-1 B_i     P d = T' + sum B_i* S_i^-1 right_i     lambda_i = S_i^-1 (right_i - B_i d)

For arms around a free body P = M(C) + sum A_i* Lambda_i A_i is the inertia one feels at the object: its own, and that of the
arms as the object feels them. The cost is O(n) + O(arms); Omega, with the hub eliminated first, costs O(arms^3).

Rows that a group cannot move (arms of few joints, arms at a singularity, a clamp) have no S_i^-1: in S = L diag(e) L* their
pivots e_j are zero, and what is left of them binds the hub, (L^-1 B)_j d = (L^-1 right)_j. Only Q = sum of their squares is
needed, as large as the hub however many they are (`hub_elimination.py`).

Arms that share moving bodies (two hands of one torso) hang on a second hub, their *trunk*: the bodies from the world to where
the arms part. With Y = (M^-1)_BB of its coordinates B, U_i = Jc_i (M^-1)_:B of the free tree and S_i of arm i on a trunk at
rest, Jc M^-1 Jc* = diag S_i + U Y^-1 U*; so the trunk is more columns of the same elimination, and nothing pushes it besides:

    S_i lambda_i + U_i y + B_i d = right_i        Y y = sum U_i* lambda_i
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psiphi.model.components import shared_way, way_to
from psiphi.model.loops.constraints import Closure
from psiphi.model.model import WORLD, Body
from psiphi.model.parameters.free_parameters import nominal

THIN = 1e-12  # of its largest moment of inertia: one below is none


@dataclass(frozen=True)
class Hub:
    """Which bodies and velocity coordinates are the hub's, and the rows of every group around it."""

    name: str
    bodies: tuple[int, ...]
    coordinates: tuple[int, ...]
    trunk: tuple[int, ...]  # the bodies that groups share
    shared: tuple[int, ...]  # the trunk's coordinates
    groups: tuple[tuple[int, ...], ...]
    held_by: int  # how many groups hold it; the others are rows of the hub alone
    thin: bool  # whether it is a body whose inertia is singular: a rod without thickness, a point mass
    short: tuple[bool, ...]  # whether fewer coordinates move a group's frames than it has rows

    @property
    def work(self) -> int:
        """About how many operations the dense part takes: to compare hubs. A trunk's columns cost sweeps of their own, too."""
        n = len(self.coordinates) + 2 * len(self.shared)
        return (
            sum(len(g) ** 3 // 3 + len(g) ** 2 * n + len(g) * n * n for g in self.groups)
            + n**3 // 3
        )


def find(closure: Closure, with_trunks: bool = True) -> Hub | None:
    """The mechanism, the trunk, or both, around which the dense part is least; None where no elimination of one leaves several
    groups. A thin body is a hub whoever holds it: it can be eliminated last only."""
    model = closure.model
    tree = list(range(len(model.bodies)))  # the root of every body: parents come first
    for k, parent in enumerate(model.parent):
        tree[k] = k if parent == WORLD else tree[parent]
    rows = _touched(closure)
    roots = sorted({tree[k] for touched in rows for k in touched})
    trunks = [
        _trunk(model.parent, [k for touched in rows for k in touched if tree[k] == root])
        for root in roots
    ]
    some = [trunk for trunk in (*trunks, frozenset().union(*trunks)) if trunk]
    some = (
        some if with_trunks and model.embedding is None else []
    )  # bodies that move together are not told apart
    hubs = []
    for root in (*roots, WORLD):
        own = frozenset(k for k, t in enumerate(tree) if t == root)
        hubs += [
            _around(closure, root, own, trunk - own, rows)
            for trunk in dict.fromkeys([frozenset(), *some])
            if own | trunk
        ]
    hubs = [hub for hub in hubs if hub.thin] or [hub for hub in hubs if hub.held_by > 1]
    return min(hubs, key=lambda hub: hub.work, default=None)


def _touched(closure: Closure) -> list[set[int]]:
    """The bodies each row touches."""
    model = closure.model
    child = {joint.name: k for k, joint in enumerate(model.joints)}
    found: list[set[int]] = []
    for c in closure.constraints:
        bodies = {model.frame(name).body for name in (c.first, c.second)} - {WORLD}
        found += [bodies] * c.row.size
    return found + [{child[name] for name in (f.joint, f.leader)} for f in closure.follows]


def _trunk(parents: Sequence[int], touched: Sequence[int]) -> frozenset[int]:
    """The bodies of one tree from the world to where the ways to the bodies touched part; none where they do not."""
    return frozenset(shared_way(parents, set(touched)) if len(set(touched)) > 1 else ())


def _around(
    closure: Closure, hub: int, bodies: frozenset[int], trunk: frozenset[int], rows: list[set[int]]
) -> Hub:
    """The groups that are left when a tree and a trunk are taken out: rows that share a piece of the others."""
    model, out = closure.model, bodies | trunk
    known = model if model.freed is None else nominal(model)
    piece = list(range(len(model.bodies)))
    for k, parent in enumerate(model.parent):
        piece[k] = k if parent == WORLD or parent in out else piece[parent]
    clusters: list[tuple[set[int], list[int]]] = []
    for i, touched in enumerate(rows):
        others = {piece[k] for k in touched - out}
        met = [c for c in clusters if c[0] & others] if others else []
        clusters = [c for c in clusters if not any(c is m for m in met)]
        clusters.append(
            (others.union(*(c[0] for c in met)), sorted([i, *(j for c in met for j in c[1])]))
        )
    coordinates, shared = (
        tuple(i for k in sorted(part) for i in model.joints[k].coordinates)
        for part in (bodies, trunk)
    )
    return Hub(
        model.bodies[hub if bodies else max(trunk)].name,
        tuple(sorted(bodies)),
        coordinates,
        tuple(sorted(trunk)),
        shared,
        tuple(tuple(group) for _, group in clusters),
        sum(bool(others) for others, _ in clusters),
        len(coordinates) == 6 and len(bodies) == 1 and is_thin(known.bodies[hub]),
        tuple(len(_movers(closure, out, set(group))) < len(group) for _, group in clusters),
    )


def is_thin(body: Body) -> bool:
    """Whether some motion of it needs no force."""
    least, *_, most = np.linalg.eigvalsh(body.inertia)
    return bool(body.mass <= 0.0 or least <= THIN * most)


def _movers(closure: Closure, out: frozenset[int], rows: set[int]) -> set[int]:
    """The coordinates, besides those of the hub and the trunk, that move what rows touch."""
    model, moved = closure.model, set()
    for c, own in zip(closure.constraints, closure.slices, strict=False):
        if own.start in rows:
            moved |= {model.frame(name).body for name in (c.first, c.second)} - {WORLD}
    path = {step for k in moved for step in way_to(model.parent, k)} - out
    together = () if model.embedding is None else model.embedding.clusters
    path = path.union(*(cluster.bodies for cluster in together if path & set(cluster.bodies)))
    found = {i for k in path for i in model.joints[k].coordinates}
    taken = {i for k in out for i in model.joints[k].coordinates}
    pairs = zip(closure.joints, closure.slices[len(closure.constraints) :], strict=True)
    return found | {
        i for joints, own in pairs if own.start in rows for i in joints if i not in taken
    }
