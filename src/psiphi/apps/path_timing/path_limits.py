"""What limits say of the motion along a curve q(s).

    v = q' s.      a = q' u + q'' x      tau = (M q') u + (M q'' + C(q, q') q') x + g,      x = s.^2,  u = s..

Torques are linear in (u, x) (Bobrow, Dubowsky, Gibson 1985); three calls of inverse dynamics for all points give the factors.
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
    """Of every coordinate (nv,); inf where there is none."""

    speed: np.ndarray
    acceleration: np.ndarray
    torque: np.ndarray


@dataclass(frozen=True, eq=False)
class Bounds:
    """At points s (..., N) of curves: x <= cap, and |alpha u + beta x + gamma| <= 1 in every row (..., N, rows). `pace` and
    `bend` (..., N, nv) are q' and q'' in units of the speeds' limits: pace^2 x <= 1 is the cap, and more (`time_optimal.py`)."""

    s: np.ndarray
    cap: np.ndarray
    pace: np.ndarray
    bend: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray


def bounds(robot: Robot, curve: Spline | QuaternionSpline, s: np.ndarray, limits: Limits) -> Bounds:
    """The rows of a robot's limits at points of a curve; a curve on which it cannot stand still is refused."""
    q, first, second = curve(s)
    parts = []  # where a limit is infinite, a row of zeros
    if np.isfinite(limits.acceleration).any():
        parts.append(((first, second, None), 1.0 / limits.acceleration))
    if np.isfinite(limits.torque).any():
        rest, still = np.zeros(robot.nv), robot.gravity(q)
        _standing(robot, still, limits.torque)
        push, turn = (
            robot.inverse_dynamics(q, rest, first) - still,
            robot.inverse_dynamics(q, first, second) - still,
        )
        parts.append(((push, turn, still), 1.0 / limits.torque))
    table = np.zeros((3, *s.shape, len(parts), robot.nv))
    for k, (rows, share) in enumerate(parts):
        for out, row in zip(table[..., k, :], rows, strict=True):
            if row is not None:
                np.multiply(row, share, out=out)
    pace, bend = first / limits.speed, second / limits.speed
    with np.errstate(divide="ignore"):
        cap = 1.0 / np.square(pace).max(axis=-1)
    return Bounds(s, cap, pace, bend, *table.reshape(3, *s.shape, -1))


def _standing(robot: Robot, still: np.ndarray, torque: np.ndarray) -> None:
    share = np.abs(still) / torque
    if share.size and not share.max() < 1.0:
        k = int(np.unravel_index(np.argmax(share), share.shape)[-1])
        joint = joint_of_entry(robot.joints, k)
        cause = f"path: on the way joint {joint.name!r} needs {share.max() * torque[k]:.3g} of {torque[k]:.3g} N m to stand still"
        raise StateError(cause, "give torque= more, or other postures")
