"""Damping, friction and springs of joints in embedded loops, at the free coordinates.

    X* (B beta + f(beta) + s(x)),    beta = X v

x and beta are positions and velocities of all joints of a loop; X maps the free velocities to beta
(docs/embedding.md). Damping and friction are those of the dependent joints: the free ones have
theirs in rows of nv, as joints of a tree do. Springs are those of all joints. Implicit steps
replace X* B X by n diag(X* B X), for n free coordinates: it is an upper bound, and the order of a
W-method does not depend on it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi.model.loops.clusters import Cluster
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import maximum
from psiphi.model.spatial.screws import square_root
from psiphi.robot.robot import Robot
from psiphi.simulation.forces.spring_law import (
    NO_SPRING,
    spring_energy,
    spring_force,
    spring_slope,
    spring_values,
)

# Inputs of kernels: 1 (1,) if damping, friction or springs of embedded loops act.
LOOP_SWITCHES = ("loop_damping", "loop_friction", "loop_springs")
CONFIGURATIONS = 16  # at which `max_slope_bound` evaluates X


def loop_forces(
    m: Manifold,
    q: np.ndarray,
    v: np.ndarray,
    loop_damping: AnyArray | None = None,
    loop_friction: AnyArray | None = None,
    loop_springs: AnyArray | None = None,
    floor: Any = None,
) -> np.ndarray:
    """X* (B beta + f(beta) + s(x)), (..., nv), of the terms whose switch is given."""
    friction = lambda c, b: c * (b / square_root(b * b + floor[0]))  # noqa: E731
    terms = (lambda c, b: c * b, friction, spring_force)
    law = partial(_sum_terms, (loop_damping, loop_friction, loop_springs), terms)
    return m.cluster_forces(q, v, law)


def slope_bound(
    m: Manifold,
    q: np.ndarray,
    v: np.ndarray,
    loop_damping: AnyArray | None = None,
    loop_friction: AnyArray | None = None,
    loop_springs: AnyArray | None = None,
    floor: Any = None,
) -> np.ndarray:
    """(..., nv): a diagonal that bounds the slopes of `loop_forces` by v; of springs alone, by
    q."""
    friction = lambda c, b: c / square_root(b * b + floor[0])  # noqa: E731
    spring = lambda x, **values: maximum(spring_slope(x, **values), 0.0)  # noqa: E731
    terms = (lambda c, b: c, friction, spring)
    law = partial(_sum_terms, (loop_damping, loop_friction, loop_springs), terms)
    return m.cluster_forces(q, v, law, slope_bound=True)


def _sum_terms(switches: tuple, terms: tuple, cluster: Cluster, x: list, beta: list) -> list:
    """The sum of the active terms at each joint: damping(c, beta), friction(c, beta), spring(x)."""
    (use_damping, use_friction, use_springs), (damping, friction, spring) = switches, terms
    total: list = [0.0] * len(beta)
    for c in cluster.followers:
        if use_damping is not None and cluster.damping[c]:
            total[c] = total[c] + use_damping[0] * damping(cluster.damping[c], beta[c])
        if use_friction is not None and cluster.friction[c]:
            total[c] = total[c] + use_friction[0] * friction(cluster.friction[c], beta[c])
    for c, (k, rest, nonlinear) in enumerate(cluster.springs):
        if use_springs is not None and (k or nonlinear):
            values = spring_values(k, rest, nonlinear or NO_SPRING)
            total[c] = total[c] + use_springs[0] * spring(x[c], **values)
    return total


def energy(m: Manifold, q: np.ndarray) -> Any:
    """The energy stored in springs of embedded loops, (...)."""
    total: Any = 0.0
    for joint in m.cluster_joints:
        x = q[..., joint.q_slice]
        for c, (k, rest, nonlinear) in enumerate(joint.kinematics.cluster.springs):
            if k or nonlinear:
                i, values = (
                    joint.kinematics.q_index(c),
                    spring_values(k, rest, nonlinear or NO_SPRING),
                )
                total = total + spring_energy(x[..., i : i + 1], **values)
    return total


def has_loop_forces(robot: Robot, what: str) -> bool:
    """Whether dependent joints have "damping" or "friction", or any joint of a loop "springs"."""
    clusters = [c for c in robot.clusters if not c.modes]
    if what == "springs":
        return any(k or nonlinear for cluster in clusters for k, _, nonlinear in cluster.springs)
    return any(getattr(cluster, what)[c] for cluster in clusters for c in cluster.followers)


def max_slope_bound(robot: Robot, **active: Any) -> np.ndarray:
    """(nv,): the largest `slope_bound` at rest in some configurations."""
    q = np.concatenate([robot.neutral()[None], robot.random(0, CONFIGURATIONS - 1)])
    with np.errstate(all="ignore"):
        found = slope_bound(robot.manifold, q, np.zeros((len(q), robot.nv)), **active)
    return np.where(np.isfinite(found), found, 0.0).max(axis=0)
