"""What joints of embedded loops lose, and what their springs pull, at the coordinates that are free (docs/embedding.md).

    X* (B β + f(β) + s(x)),    β = X v        x and β: of all joints of a loop, X: what they do as the free ones move

Losses are of the joints that follow (those that are free have theirs in rows of nv, as joints of a tree), springs of all. In
steps that take them implicitly n diag(X* B X) stands for X* B X, of n free coordinates: it is never less, and the order of a
W-method does not depend on it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psiphi.model.loops.clusters import Cluster
from psiphi.model.spatial.branch_free import most
from psiphi.model.spatial.screws import root
from psiphi.simulation.forces.spring_law import NO_SPRING, firmness, numbers, pull, stored

SWITCHES = (
    "drag",
    "rub",
    "stretch",
)  # numbers, 1: damping, friction, springs of embedded loops act
SEEN = 16  # configurations at which X is looked at


def carried(
    m: Any,
    q: Any,
    v: Any,
    drag: Any = None,
    rub: Any = None,
    stretch: Any = None,
    floor: Any = None,
) -> Any:
    """The law of this page, of those that act; m is the manifold of the robot."""
    rubbed = lambda c, b: c * (b / root(b * b + floor[0]))  # noqa: E731
    return m.transmitted(
        q, v, partial(_each, (drag, rub, stretch), (lambda c, b: c * b, rubbed, pull))
    )


def steepness(
    m: Any,
    q: Any,
    v: Any,
    drag: Any = None,
    rub: Any = None,
    stretch: Any = None,
    floor: Any = None,
) -> Any:
    """A diagonal that is never less than the slopes of `carried`: by v, or by q where `stretch` comes alone."""
    rubbed = lambda c, b: c / root(b * b + floor[0])  # noqa: E731
    pulled = lambda x, **spring: most(firmness(x, **spring), 0.0)  # noqa: E731
    law = partial(_each, (drag, rub, stretch), (lambda c, b: c, rubbed, pulled))
    return m.transmitted(q, v, law, steepened=True)


def _each(switches: tuple, terms: tuple, cluster: Cluster, x: list, beta: list) -> list:
    """Of every joint the sum of what is switched on: terms of damping and of friction (number, beta), and of a spring (x)."""
    (drag, rub, stretch), (lost, rubbed, pulled) = switches, terms
    total: list = [0.0] * len(beta)
    for c in cluster.followers:
        if drag is not None and cluster.damping[c]:
            total[c] = total[c] + drag[0] * lost(cluster.damping[c], beta[c])
        if rub is not None and cluster.friction[c]:
            total[c] = total[c] + rub[0] * rubbed(cluster.friction[c], beta[c])
    for c, (k, rest, more) in enumerate(cluster.springs):
        if stretch is not None and (k or more):
            total[c] = total[c] + stretch[0] * pulled(x[c], **numbers(k, rest, more or NO_SPRING))
    return total


def energy(m: Any, q: Any) -> Any:
    """What springs of embedded loops store, (...)."""
    total: Any = 0.0
    for joint in m.compound:
        own = q[..., joint.q_slice]
        for c, (k, rest, more) in enumerate(joint.laws.cluster.springs):
            if k or more:
                at = joint.laws.coordinate(c)
                total = total + stored(own[..., at : at + 1], **numbers(k, rest, more or NO_SPRING))
    return total


def has(robot: Any, what: str) -> bool:
    """Whether joints that follow have damping or friction, or any joint of a loop a spring."""
    clusters = (
        () if robot.embedding is None else [c for c in robot.embedding.clusters if not c.modes]
    )
    if what == "springs":
        return any(k or more for cluster in clusters for k, _, more in cluster.springs)
    return any(getattr(cluster, what)[c] for cluster in clusters for c in cluster.followers)


def steepest(robot: Any, **acting: Any) -> np.ndarray:
    """(nv,): the largest `steepness` at rest in some configurations: what is stiff, and what is firm, is asked of it."""
    q = np.concatenate([robot.neutral()[None], robot.random(0, SEEN - 1)])
    with np.errstate(all="ignore"):
        found = steepness(robot.manifold, q, np.zeros((len(q), robot.nv)), **acting)
    return np.where(np.isfinite(found), found, 0.0).max(axis=0)
