"""The hub: the mechanism that others hold. It is eliminated last; the dense system has its size.

Without the hub the rows fall into independent groups (each arm, with the arms it shares bodies or
loops with). B: the columns of Jc of the hub coordinates; S_i = Jc_i M_i^-1 Jc_i* of group i alone;
T': the torques on the hub; d: the acceleration of the hub.

    S_i lambda_i + B_i d = right_i      M_hub d = T' + sum B_i* lambda_i

    P = M_hub + sum B_i* S_i^-1 B_i     P d = T' + sum B_i* S_i^-1 right_i
    lambda_i = S_i^-1 (right_i - B_i d)

For arms around a free body, P = M(C) + sum A_i* Lambda_i A_i is the effective inertia of the held
object. The cost is O(n) + O(arms); Omega, which eliminates the hub first, costs O(arms^3).

A group that cannot move all its rows (an arm with few joints or at a singularity, a clamp) has a
singular S_i: in S = L diag(e) L* some pivots e_j are zero, and these rows constrain the hub,
(L^-1 B)_j d = (L^-1 right)_j. Only Q, the sum of their squares, is needed; it has the size of the
hub (`hub_elimination.py`).

Arms that share moving bodies (two hands of one torso) have a second hub, their *trunk*: the bodies
from the world to where the arms branch. With Y = (M^-1)_BB of the trunk coordinates B,
U_i = Jc_i (M^-1)_:B of the free tree, and S_i of arm i with the trunk at rest,
Jc M^-1 Jc* = diag S_i + U Y^-1 U*. So the trunk adds columns to the same elimination, without
torques of its own:

    S_i lambda_i + U_i y + B_i d = right_i        Y y = sum U_i* lambda_i

A hub is *thin* if its inertia is singular (a rod without thickness, a point mass). It can only be
eliminated last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psiphi.model.components import path_to_body, shared_path
from psiphi.model.loops.constraints import Closure
from psiphi.model.model import WORLD, Body
from psiphi.model.parameters.free_parameters import nominal_model

THIN = 1e-12  # a moment of inertia below this fraction of the largest counts as zero


@dataclass(frozen=True)
class Hub:
    """The bodies and velocity coordinates of a hub and its trunk, and the rows of each group."""

    name: str
    bodies: tuple[int, ...]
    coordinates: tuple[int, ...]
    trunk: tuple[int, ...]  # the bodies that groups share
    trunk_coordinates: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    held_by: int  # number of groups that hold the hub; other groups have rows on the hub alone
    thin: bool  # a single free body with a singular inertia
    deficient: tuple[bool, ...]  # per group: fewer coordinates move its frames than it has rows

    @property
    def cost(self) -> int:
        """Approximate operations of the dense part, to compare hubs. Trunk columns count twice,
        since they need sweeps of their own."""
        n = len(self.coordinates) + 2 * len(self.trunk_coordinates)
        return (
            sum(len(g) ** 3 // 3 + len(g) ** 2 * n + len(g) * n * n for g in self.groups)
            + n**3 // 3
        )


def find_hub(closure: Closure, with_trunks: bool = True) -> Hub | None:
    """The mechanism, the trunk, or both, whose elimination has the smallest dense part.

    None if no elimination leaves several groups. A thin body always is the hub.
    """
    model = closure.model
    tree = list(range(len(model.bodies)))  # the root of every body; parents come first
    for k, parent in enumerate(model.parent):
        tree[k] = k if parent == WORLD else tree[parent]
    rows = _bodies_of_rows(closure)
    roots = sorted({tree[k] for touched in rows for k in touched})
    trunks = [
        _shared_trunk(model.parent, [k for touched in rows for k in touched if tree[k] == root])
        for root in roots
    ]
    candidates = [trunk for trunk in (*trunks, frozenset().union(*trunks)) if trunk]
    if not with_trunks or model.embedding is not None:  # bodies of a cluster move together
        candidates = []
    hubs = []
    for root in (*roots, WORLD):
        own = frozenset(k for k, t in enumerate(tree) if t == root)
        hubs += [
            _hub_at(closure, root, own, trunk - own, rows)
            for trunk in dict.fromkeys([frozenset(), *candidates])
            if own | trunk
        ]
    hubs = [hub for hub in hubs if hub.thin] or [hub for hub in hubs if hub.held_by > 1]
    return min(hubs, key=lambda hub: hub.cost, default=None)


def _bodies_of_rows(closure: Closure) -> list[set[int]]:
    """The bodies that each row constrains."""
    model = closure.model
    child = {joint.name: k for k, joint in enumerate(model.joints)}
    found: list[set[int]] = []
    for c in closure.constraints:
        bodies = {model.frame(name).body for name in (c.first, c.second)} - {WORLD}
        found += [bodies] * c.row.size
    return found + [{child[name] for name in (f.joint, f.leader)} for f in closure.mimics]


def _shared_trunk(parents: Sequence[int], touched: Sequence[int]) -> frozenset[int]:
    """The bodies of one tree from the world to where the paths to the bodies `touched` branch;
    empty if there is only one such body."""
    return frozenset(shared_path(parents, set(touched)) if len(set(touched)) > 1 else ())


def _hub_at(
    closure: Closure, hub: int, bodies: frozenset[int], trunk: frozenset[int], rows: list[set[int]]
) -> Hub:
    """The hub of a tree and a trunk. Without these bodies the others fall into pieces; rows that
    share a piece form a group."""
    model, out = closure.model, bodies | trunk
    known = nominal_model(model)
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
        tuple(
            len(_moving_coordinates(closure, out, set(group))) < len(group) for _, group in clusters
        ),
    )


def is_thin(body: Body) -> bool:
    """Whether the inertia of the body is singular: some motion needs no force."""
    least, *_, most = np.linalg.eigvalsh(body.inertia)
    return bool(body.mass <= 0.0 or least <= THIN * most)


def _moving_coordinates(closure: Closure, out: frozenset[int], rows: set[int]) -> set[int]:
    """The coordinates that move the bodies of `rows`, without those of the bodies `out`."""
    model, bodies = closure.model, set()
    for c, own in zip(closure.constraints, closure.slices, strict=False):
        if own.start in rows:
            bodies |= {model.frame(name).body for name in (c.first, c.second)} - {WORLD}
    path = {step for k in bodies for step in path_to_body(model.parent, k)} - out
    path = path.union(*(c.bodies for c in model.clusters if path & set(c.bodies)))
    found = {i for k in path for i in model.joints[k].coordinates}
    taken = {i for k in out for i in model.joints[k].coordinates}
    pairs = zip(closure.joints, closure.slices[len(closure.constraints) :], strict=True)
    return found | {
        i for joints, own in pairs if own.start in rows for i in joints if i not in taken
    }
