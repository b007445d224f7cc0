"""Curves of joints whose q is no vector: quaternions, planar joints.

The numbers of q run along a spline x(s), and q = x / |x| where a joint has numbers of unit length. Along the curve v is that
with rate(q, v) = q', S0 (b.3); dv/ds follows from rate(q, dv/ds) = q'' - d rate(q, v), v held. All derivatives are exact: the
joints' own `unit` and `rate`, run on numbers with a rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.apps.path_timing.splines import Spline
from psiphi.model.manifold import Manifold, velocity_of
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.robot.robot import Robot

SHORTEST = 0.3  # |x| on the way: nearer to 0, x / |x| turns too fast to be meant


@dataclass(frozen=True, eq=False)
class QuaternionSpline:
    """A spline of the numbers of q, on the manifold of a robot's joints."""

    spline: Spline
    manifold: Manifold

    def __call__(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q (..., N, nq), and dq/ds and its derivative as velocities (..., N, nv)."""
        x, first, second = self.spline(s)
        (i, k), lead = self.manifold.flat, x.shape[:-1]
        q = np.array(x)
        v, a = np.zeros((*lead, self.manifold.nv)), np.zeros((*lead, self.manifold.nv))
        v[..., k], a[..., k] = first[..., i], second[..., i]
        for joint in self.manifold.curved:
            own = [
                [np.asarray(y[..., n]) for n in range(joint.q_slice.start, joint.q_slice.stop)]
                for y in (x, first, second)
            ]
            for out, rows in zip(
                (q[..., joint.q_slice], v[..., joint.v_slice], a[..., joint.v_slice]),
                _moved(joint, *own),
                strict=True,
            ):
                out[...] = np.stack([np.broadcast_to(y, lead) for y in rows], axis=-1)
        return q, v, a


def _moved(joint: Any, x: list, first: list, second: list) -> tuple[list, list, list]:
    """q, v and dv/ds of one joint from the numbers of its spline."""
    n, row = len(x), joint.row

    def dq(both: list) -> list:
        return rate_of_change(row.unit, both[:n], both[n:])

    q, rate, bend = (
        list(row.unit(x)),
        dq([*x, *first]),
        rate_of_change(dq, [*x, *first], [*first, *second]),
    )
    v = velocity_of(joint, q, rate)
    turned = rate_of_change(lambda there: row.rate(there, v), q, rate)
    return q, v, velocity_of(joint, q, [x - y for x, y in zip(bend, turned, strict=True)])


def on_one_side(robot: Robot, through: np.ndarray) -> np.ndarray:
    """Postures with the signs of their quaternions such that each is near to the one before: q and -q are the same."""
    out = np.array(through)
    for joint in robot.manifold.curved:
        where = _scaled(joint)
        own = out[..., joint.q_slice]
        for i in range(1, own.shape[-2] if where.any() else 0):
            away = (own[..., i, :] * own[..., i - 1, :] * where).sum(axis=-1, keepdims=True) < 0.0
            own[..., i, :] = np.where(away & where, -own[..., i, :], own[..., i, :])
    return out


def _scaled(joint: Any) -> np.ndarray:
    """Which numbers of q are of unit length and mean the same with the other sign."""
    q = np.array(joint.row.neutral, dtype=float) if joint.row.neutral else np.zeros(joint.row.nq)
    q = np.array(joint.row.unit(list(q + 0.25)), dtype=float)
    where = ~np.isclose(np.array(joint.row.unit(list(2.0 * q)), dtype=float), 2.0 * q)
    same = (
        np.abs(np.array(joint.row.log(list(q), list(np.where(where, -q, q))), dtype=float)).max(
            initial=0.0
        )
        < 1e-9
    )
    return where & same


def check_turns(robot: Robot, curve: QuaternionSpline, s: np.ndarray) -> None:
    """A curve that passes near to a quaternion of length 0 is refused."""
    x = curve.spline(s)[0]
    for joint in robot.manifold.curved:
        where = _scaled(joint)
        if where.any() and np.linalg.norm(x[..., joint.q_slice] * where, axis=-1).min() < SHORTEST:
            cause = f"path: joint {joint.name!r} turns too far from one posture to the next"
            raise StateError(cause, "give a posture between them: less than half a turn apart")
