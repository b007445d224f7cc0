"""What limits say of the motion along a curve q(s).

    v = q' s.      a = q' u + q'' x      tau = (M q') u + (M q'' + C(q, q') q') x + g,      x = s.^2,  u = s..

Torques are linear in (u, x) (Bobrow, Dubowsky, Gibson 1985); three calls of inverse dynamics for all points give the factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.errors import StateError
from psiphi.following.bent import BentCurve
from psiphi.following.splines import Spline
from psiphi.functions.robot import Robot
from psiphi.model.skeleton import joint_at


@dataclass(frozen=True, eq=False)
class Limits:
    """Of every coordinate (nv,); inf where there is none."""

    speed: np.ndarray
    acceleration: np.ndarray
    torque: np.ndarray


@dataclass(frozen=True, eq=False)
class Bounds:
    """At points s (..., N) of curves: x <= cap, and |alpha u + beta x + gamma| <= 1 in every row (..., N, rows)."""

    s: np.ndarray
    cap: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray


def bounds(robot: Robot, curve: Spline | BentCurve, s: np.ndarray, limits: Limits) -> Bounds:
    """The rows of a robot's limits at points of a curve; a curve on which it cannot stand still is refused."""
    q, first, second = curve(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        cap = (limits.speed / np.abs(first)).min(axis=-1) ** 2
    alpha, beta, gamma = (np.zeros((*s.shape, 0)) for _ in range(3))
    rows = np.isfinite(limits.acceleration)
    if rows.any():
        own = limits.acceleration[rows]
        alpha, beta, gamma = first[..., rows] / own, second[..., rows] / own, 0.0 * first[..., rows]
    rows = np.isfinite(limits.torque)
    if rows.any():
        own, rest = limits.torque[rows], np.zeros(robot.nv)
        still = robot.gravity(q)
        push, turn = robot.inverse_dynamics(q, rest, first) - still, robot.inverse_dynamics(q, first, second) - still
        _standing(robot, still, limits.torque)
        parts = [(alpha, push), (beta, turn), (gamma, still)]
        alpha, beta, gamma = (np.concatenate([x, y[..., rows] / own], axis=-1) for x, y in parts)
    return Bounds(s, cap, alpha, beta, gamma)


def _standing(robot: Robot, still: np.ndarray, torque: np.ndarray) -> None:
    share = np.abs(still) / torque
    if share.size and not share.max() < 1.0:
        k = int(np.unravel_index(np.argmax(share), share.shape)[-1])
        joint = joint_at(robot.joints, k)
        cause = (
            f"path: on the way joint {joint.name!r} needs {share.max() * torque[k]:.3g} of {torque[k]:.3g} N m to stand still"
        )
        raise StateError(cause, "give torque= more, or other postures")
