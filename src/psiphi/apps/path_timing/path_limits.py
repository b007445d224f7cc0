"""Limits of speed, acceleration and torque as bounds on the motion along a curve q(s).

    v = q' s.      a = q' u + q'' x      tau = (M q') u + (M q'' + C(q, q') q') x + g
    x = s.^2,  u = s..

Torques are linear in (u, x) (Bobrow, Dubowsky, Gibson 1985). Three calls of inverse dynamics for
all points give the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi._util.errors import StateError
from psiphi.apps.path_timing.quaternion_splines import QuaternionSpline
from psiphi.apps.path_timing.splines import Spline
from psiphi.model.components import joint_of_entry
from psiphi.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of every coordinate (nv,); inf where there is none."""

    speed: np.ndarray
    acceleration: np.ndarray
    torque: np.ndarray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds at points s (..., N): x <= cap, and |alpha u + beta x + gamma| <= 1 in every row.

    alpha, beta, gamma are (..., N, rows). `speed` and `curvature` (..., N, nv) are q' and q'' in
    units of the speed limits: cap is the largest x with speed^2 x <= 1.
    """

    s: np.ndarray
    cap: np.ndarray
    speed: np.ndarray
    curvature: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray


def bounds(robot: Robot, curve: Spline | QuaternionSpline, s: np.ndarray, limits: Limits) -> Bounds:
    """The bounds of a robot's limits at points of a curve.

    Raises if the robot cannot stand still somewhere on the curve.
    """
    q, first, second = curve(s)
    parts = []  # rows of infinite limits are zero
    if np.isfinite(limits.acceleration).any():
        parts.append(((first, second, None), 1.0 / limits.acceleration))
    if np.isfinite(limits.torque).any():
        zero, gravity = np.zeros(robot.nv), robot.gravity(q)
        _check_static_torque(robot, gravity, limits.torque)
        of_u = robot.inverse_dynamics(q, zero, first) - gravity
        of_x = robot.inverse_dynamics(q, first, second) - gravity
        parts.append(((of_u, of_x, gravity), 1.0 / limits.torque))
    table = np.zeros((3, *s.shape, len(parts), robot.nv))
    for k, (rows, scale) in enumerate(parts):
        for out, row in zip(table[..., k, :], rows, strict=True):
            if row is not None:
                np.multiply(row, scale, out=out)
    speed, curvature = first / limits.speed, second / limits.speed
    with np.errstate(divide="ignore"):
        cap = 1.0 / np.square(speed).max(axis=-1)
    return Bounds(s, cap, speed, curvature, *table.reshape(3, *s.shape, -1))


def _check_static_torque(robot: Robot, gravity: np.ndarray, torque: np.ndarray) -> None:
    share = np.abs(gravity) / torque
    if share.size and not share.max() < 1.0:
        k = int(np.unravel_index(np.argmax(share), share.shape)[-1])
        joint = joint_of_entry(robot.joints, k)
        raise StateError(
            f"path: joint {joint.name!r} needs {share.max() * torque[k]:.3g} of {torque[k]:.3g} "
            "N m to stand still on the path",
            "give a larger torque=, or other postures",
        )
