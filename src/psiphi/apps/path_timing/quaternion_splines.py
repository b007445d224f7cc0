"""Splines of joints whose q is not a vector space: spherical, planar and free joints.

The numbers of q are those of a spline x(s); quaternions are normalized, q = x / |x|. Along the
curve, v is the velocity with rate(q, v) = q', S0 (b.3); dv/ds follows from
rate(q, dv/ds) = q'' - d rate(q, v) with v constant. All derivatives are exact: the `unit` and
`rate` of the joint table are evaluated on dual numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi._util.errors import StateError
from psiphi.apps.path_timing.splines import Spline
from psiphi.model.manifold import Manifold, ManifoldJoint, velocity_of
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.robot.robot import Robot

SHORTEST = 0.3  # least |x| along a curve: closer to 0, x / |x| turns too fast


@dataclass(frozen=True, eq=False)
class QuaternionSpline:
    """A spline of the numbers of q, projected to the manifold of a robot's joints."""

    spline: Spline
    manifold: Manifold

    def __call__(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q (..., N, nq); dq/ds and its derivative, as velocities (..., N, nv)."""
        x, first, second = self.spline(s)
        (i, k), batch = self.manifold.flat, x.shape[:-1]
        q = np.array(x)
        v, a = np.zeros((*batch, self.manifold.nv)), np.zeros((*batch, self.manifold.nv))
        v[..., k], a[..., k] = first[..., i], second[..., i]
        for joint in self.manifold.curved:
            index = range(joint.q_slice.start, joint.q_slice.stop)
            numbers = ([np.asarray(y[..., n]) for n in index] for y in (x, first, second))
            motion = _joint_motion(joint, *numbers)
            parts = (q[..., joint.q_slice], v[..., joint.v_slice], a[..., joint.v_slice])
            for out, rows in zip(parts, motion, strict=True):
                out[...] = np.stack([np.broadcast_to(y, batch) for y in rows], axis=-1)
        return q, v, a


def _joint_motion(
    joint: ManifoldJoint, x: list, first: list, second: list
) -> tuple[list, list, list]:
    """q, v and dv/ds of one joint, from the numbers of its spline and their derivatives."""
    n, row = len(x), joint.row

    def dq(x_and_first: list) -> list:
        return rate_of_change(row.unit, x_and_first[:n], x_and_first[n:])

    q, q1 = list(row.unit(x)), dq([*x, *first])
    q2 = rate_of_change(dq, [*x, *first], [*first, *second])
    v = velocity_of(joint, q, q1)
    d_rate = rate_of_change(lambda q: row.rate(q, v), q, q1)
    return q, v, velocity_of(joint, q, [a - b for a, b in zip(q2, d_rate, strict=True)])


def nearest_signs(robot: Robot, through: np.ndarray) -> np.ndarray:
    """Postures with each quaternion q or -q, whichever is nearer to the one before."""
    out = np.array(through)
    for joint in robot.manifold.curved:
        mask = _quaternion_entries(robot, joint)
        x = out[..., joint.q_slice]
        for i in range(1, x.shape[-2] if mask.any() else 0):
            flip = (x[..., i, :] * x[..., i - 1, :] * mask).sum(axis=-1, keepdims=True) < 0.0
            x[..., i, :] = np.where(flip & mask, -x[..., i, :], x[..., i, :])
    return out


def _quaternion_entries(robot: Robot, joint: ManifoldJoint) -> np.ndarray:
    """(nq,): which numbers of q have unit length together and mean the same with opposite sign."""
    q = np.array(joint.row.unit(list(robot.neutral()[joint.q_slice] + 0.25)), dtype=float)
    mask = ~np.isclose(np.array(joint.row.unit(list(2.0 * q)), dtype=float), 2.0 * q)
    difference = joint.row.log(list(q), list(np.where(mask, -q, q)))
    return mask & (np.abs(np.array(difference, dtype=float)).max(initial=0.0) < 1e-9)


def check_turns(robot: Robot, curve: QuaternionSpline, s: np.ndarray) -> None:
    """Raise if the curve passes close to a quaternion of length 0."""
    x = curve.spline(s)[0]
    for joint in robot.manifold.curved:
        mask = _quaternion_entries(robot, joint)
        if mask.any() and np.linalg.norm(x[..., joint.q_slice] * mask, axis=-1).min() < SHORTEST:
            raise StateError(
                f"path: joint {joint.name!r} turns too far from one posture to the next",
                "give a posture between them: less than half a turn apart",
            )
