"""`pp.path`: postures in, a motion out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import listed
from psiphi._util.validate import broadcast_row, check_robot, one_of, real_array, whole_number
from psiphi.apps.path_timing.path_limits import Bounds, Limits, bounds
from psiphi.apps.path_timing.pose_waypoints import through_poses
from psiphi.apps.path_timing.quaternion_splines import QuaternionSpline, check_turns, on_one_side
from psiphi.apps.path_timing.splines import cubic, quintic
from psiphi.apps.path_timing.time_optimal import fastest
from psiphi.apps.path_timing.timed_path import TimedPath
from psiphi.robot.free_robot import check_single_robot
from psiphi.robot.robot import Robot

KINDS = ("fastest", "smooth")
DENSE = 100  # postures through which a quintic spline is laid
MOST = 100_000  # points
FINE = 4  # steps between two postures, at least


def path(
    robot: Robot,
    postures: Any,
    *,
    kind: str = "fastest",
    speed: Any = None,
    acceleration: Any = None,
    torque: Any = None,
    points: int = 200,
    near: Any = None,
) -> TimedPath:
    """q(t) through postures (..., K, nq), from rest to rest, within limits of speed, acceleration, torque (nv numbers, or one).

    "fastest"   a natural cubic spline, in the least time (two passes over `points` steps of it; compiled, a path a SIMD lane)
    "smooth"    minimum jerk, int |q'''|^2 dt, as fast as the limits let the whole of it be

    `speed` and `torque` are the robot's own (`velocity_limit`, `effort`) unless given, `acceleration` has no limit; `np.inf`
    takes one away. Torques are those of the robot's dynamics, M a + C v + g. In the place of postures may stand {frame: poses
    (..., K, 4, 4) or points (..., K, 3)}: `pp.reach` finds the first near to `near`, each other near to the one before.
    Quaternions run along the spline of their four numbers, made of unit length. The answer is a function of time, (q, v, a),
    and so a reference for `pp.ComputedTorque` and the others.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> way = pp.path(robot, [[0, -1, 1, 0, 1, 0], [1, -1.5, 1, 0, 1, 0], [1, -1, 0.5, 0.5, 1, 0]], acceleration=10.0)
    >>> q, v, a = way(0.5 * way.duration)
    >>> bool(np.abs(v).max() <= robot.velocity_limit.max()), way(way.duration)[0].round(6).tolist()
    (True, [1.0, -1.0, 0.5, 0.5, 1.0, 0.0])
    """
    check_robot("path", robot, Robot)
    check_single_robot("path", robot)
    if not robot.nv:
        raise StateError(f"path: {robot.name} has no joints", "give a robot that moves")
    if robot.embedding is not None and not robot.manifold.is_flat:
        cause = f"path: {robot.name} has embedded loops or flexible links, and joints whose q is no vector"
        raise StateError(
            cause, "lay it for the robot as it was before pp.embed, or with its modes locked"
        )
    one_of("path: kind", kind, KINDS)
    if isinstance(postures, Mapping):
        postures = through_poses(robot, postures, near)
    elif near is not None:
        raise StateError(
            "path: near is where the first pose is sought, and postures are given", "leave it out"
        )
    through = on_one_side(robot, _postures(robot, postures, kind))
    limits = _limits(robot, speed, acceleration, torque)
    number = whole_number("points", points)
    if not 10 <= number <= MOST:
        raise StateError(f"path: points is {number}, expected 10 to {MOST}", "200 is the default")
    knots = _knots(robot, through, limits)
    curve = (cubic if kind == "fastest" else quintic)(knots, through)
    s = _grid(knots, number)
    if not robot.manifold.is_flat:
        curve = QuaternionSpline(curve, robot.manifold)
        check_turns(robot, curve, s)
    found = bounds(robot, curve, s, limits)
    rates = _fast(found) if kind == "fastest" else _even(found)
    return TimedPath(curve, s, rates)


def _postures(robot: Robot, given: Any, kind: str) -> np.ndarray:
    through = real_array("postures", given, (robot.nq,), f"give at least two of {robot.nq} numbers")
    if through.ndim < 2 or through.shape[-2] < 2:
        raise StateError(
            f"postures has shape {through.shape}, expected (..., K, {robot.nq}), K of at least 2",
            "give more",
        )
    if not through.size or not (np.abs(through) < 1e6).all():
        raise StateError(
            "postures holds numbers that are not finite, or none", "look at where they came from"
        )
    with np.errstate(all="ignore"):
        through = robot.normalize(through)
    if not np.isfinite(through).all():
        raise StateError(
            "postures holds a quaternion of zeros", "give quaternions x, y, z, w of unit length"
        )
    if kind == "smooth" and through.shape[-2] > DENSE:
        raise StateError(
            f"path: {through.shape[-2]} postures, expected at most {DENSE} for kind='smooth'",
            "give fewer",
        )
    if not (
        np.abs(robot.manifold.log(through[..., :-1, :], through[..., 1:, :])).max(axis=-1) > 1e-9
    ).all():
        raise StateError(
            "path: one posture is the same as the one before it", "leave it out, or make two paths"
        )
    return through


def _limits(robot: Robot, speed: Any, acceleration: Any, torque: Any) -> Limits:
    own = {"speed": (speed, robot.velocity_limit), "torque": (torque, robot.effort)}
    for name, (given, standard) in own.items():
        still = [robot.velocity_names[i] for i in np.flatnonzero(standard <= 1e-12)]
        if given is None and still:
            cause = f"path: {robot.name} itself limits the {name} of {listed(still)} to 0"
            raise StateError(cause, f"give {name}=; np.inf is no limit")
    found = {
        name: _each(robot, name, x if x is not None else standard)
        for name, (x, standard) in own.items()
    }
    found["acceleration"] = _each(
        robot, "acceleration", np.inf if acceleration is None else acceleration
    )
    if not any(np.isfinite(x).any() for x in found.values()):
        raise StateError(
            f"path: nothing limits {robot.name}", "give speed=, acceleration= or torque="
        )
    if not (np.isfinite(found["acceleration"]) | np.isfinite(found["torque"])).any():
        raise StateError(
            f"path: nothing limits how {robot.name} accelerates", "give acceleration= or torque="
        )
    return Limits(**found)


def _each(robot: Robot, name: str, given: Any) -> np.ndarray:
    out = broadcast_row(
        name,
        given,
        robot.nv,
        (1e-12, np.inf),
        f"one or nv = {robot.nv} numbers above 0",
        "np.inf is no limit",
    )
    out[out > 1e12] = np.inf
    return out


def _knots(robot: Robot, through: np.ndarray, limits: Limits) -> np.ndarray:
    """(..., K) from 0 to 1: as far apart as the slowest joint needs by its speed, or as the postures are."""
    steps = np.abs(robot.manifold.log(through[..., :-1, :], through[..., 1:, :]))
    pace = np.where(np.isfinite(limits.speed), limits.speed, 1.0)
    spans = (steps / pace).max(axis=-1)
    knots = np.concatenate([np.zeros((*spans.shape[:-1], 1)), np.cumsum(spans, axis=-1)], axis=-1)
    return knots / knots[..., -1:]


def _grid(knots: np.ndarray, number: int) -> np.ndarray:
    """(..., N): the knots, and as many points between any two, at least `number` steps in all: q'' bends at knots."""
    count = max(FINE, -(-number // (knots.shape[-1] - 1)))
    inner = knots[..., :-1, None] + np.diff(knots)[..., None] * (np.arange(count) / count)
    return np.concatenate([inner.reshape(*knots.shape[:-1], -1), knots[..., -1:]], axis=-1)


def _fast(b: Bounds) -> np.ndarray:
    """ds/dt of the fastest motions."""
    lead, points = b.s.shape[:-1], b.s.shape[-1]
    x, sound = fastest(Bounds(*(x.reshape(-1, *x.shape[len(lead) :]) for x in vars(b).values())))
    if not sound.all():
        cause = f"path: {np.count_nonzero(~sound)} of {len(sound)} paths cannot be run within the limits"
        raise StateError(cause, "give more torque or acceleration, or more points")
    return np.sqrt(x).reshape(*lead, points)


def _even(b: Bounds) -> np.ndarray:
    """ds/dt of motions at constant ds/dt: the largest whose square w keeps |beta w + gamma| <= 1 and w <= cap."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(
            b.beta > 0.0,
            (1.0 - b.gamma) / b.beta,
            np.where(b.beta < 0.0, (-1.0 - b.gamma) / b.beta, np.inf),
        )
    w = np.minimum(room.min(axis=(-2, -1), initial=np.inf), b.cap.min(axis=-1))
    return np.broadcast_to(np.sqrt(w)[..., None], b.s.shape)
