"""`pp.path`: a timed path through postures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import listed
from psiphi._util.validate import broadcast_row, check_robot, one_of, real_array, whole_number
from psiphi.apps.path_timing.path_limits import Bounds, Limits, bounds
from psiphi.apps.path_timing.pose_waypoints import postures_from_poses
from psiphi.apps.path_timing.quaternion_splines import QuaternionSpline, check_turns, nearest_signs
from psiphi.apps.path_timing.splines import cubic, quintic
from psiphi.apps.path_timing.time_optimal import fastest
from psiphi.apps.path_timing.timed_path import TimedPath
from psiphi.model.model import Pose
from psiphi.robot.free_robot import check_single_robot
from psiphi.robot.robot import Robot

KINDS = ("fastest", "smooth")
MAX_SMOOTH = 100  # postures of a quintic spline: its equations are one dense matrix
MAX_POINTS = 100_000
LEAST_STEPS = 4  # between two postures


def path(
    robot: Robot,
    postures: Numbers | Mapping[str, Numbers | Sequence[Pose]],
    *,
    kind: str = "fastest",
    speed: Numbers | None = None,
    acceleration: Numbers | None = None,
    torque: Numbers | None = None,
    points: int = 200,
    near: Numbers | None = None,
) -> TimedPath:
    """q(t) through postures (..., K, nq), from rest to rest, within limits.

    "fastest"   natural cubic spline in the least time (two passes over `points` steps of it,
                compiled, one path per SIMD lane)
    "smooth"    minimum jerk, int |q'''|^2 dt, scaled uniformly to be as fast as the limits allow

    `speed`, `acceleration` and `torque` are one number or nv numbers. `speed` and `torque` default
    to `velocity_limit` and `effort` of the robot, `acceleration` is unlimited; `np.inf` removes a
    limit. Torques are M a + C v + g.

    Instead of postures, {frame: poses (..., K, 4, 4) or points (..., K, 3)} may be given:
    `pp.reach` finds the first posture near to `near`, and each other near to the one before.
    Quaternions are splines of their four numbers, normalized. The result is a function of time,
    (q, v, a), and can be the reference of `pp.ComputedTorque` and other controllers.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> postures = [[0, -1, 1, 0, 1, 0], [1, -1.5, 1, 0, 1, 0], [1, -1, 0.5, 0.5, 1, 0]]
    >>> path = pp.path(robot, postures, acceleration=10.0)
    >>> q, v, a = path(0.5 * path.duration)
    >>> bool(np.abs(v).max() <= robot.velocity_limit.max())
    True
    >>> path(path.duration)[0].round(6).tolist()
    [1.0, -1.0, 0.5, 0.5, 1.0, 0.0]
    """
    check_robot("path", robot, Robot)
    check_single_robot("path", robot)
    if not robot.nv:
        raise StateError(f"path: {robot.name} has no joints", "give a robot that moves")
    if robot.embedding is not None and not robot.manifold.is_flat:
        raise StateError(
            f"path: {robot.name} has embedded loops or flexible links, and also joints with "
            "quaternions",
            "use the robot before pp.embed, or lock its modes",
        )
    one_of("path: kind", kind, KINDS)
    if isinstance(postures, Mapping):
        postures = postures_from_poses(robot, postures, near)
    elif near is not None:
        raise StateError(
            "path: near is for poses of frames, but postures are given", "leave near out"
        )
    through = nearest_signs(robot, _read_postures(robot, postures, kind))
    limits = _read_limits(robot, speed, acceleration, torque)
    count = whole_number("points", points)
    if not 10 <= count <= MAX_POINTS:
        cause = f"path: points is {count}, expected 10 to {MAX_POINTS}"
        raise StateError(cause, "200 is the default")
    knots = _knots(robot, through, limits)
    curve = (cubic if kind == "fastest" else quintic)(knots, through)
    s = _grid(knots, count)
    if not robot.manifold.is_flat:
        curve = QuaternionSpline(curve, robot.manifold)
        check_turns(robot, curve, s)
    found = bounds(robot, curve, s, limits)
    return TimedPath(curve, s, _fastest_speeds(found) if kind == "fastest" else _even_speeds(found))


def _read_postures(robot: Robot, postures: Numbers, kind: str) -> np.ndarray:
    remedy = f"give at least two of {robot.nq} numbers"
    through = real_array("postures", postures, (robot.nq,), remedy)
    if through.ndim < 2 or through.shape[-2] < 2:
        raise StateError(
            f"postures has shape {through.shape}, expected (..., K, {robot.nq}), K of at least 2",
            "give more",
        )
    if not through.size or not (np.abs(through) < 1e6).all():
        raise StateError(
            "postures is empty or holds numbers that are not finite", "check where they come from"
        )
    with np.errstate(all="ignore"):
        through = robot.normalize(through)
    if not np.isfinite(through).all():
        raise StateError(
            "postures holds a quaternion of zeros", "give quaternions x, y, z, w of unit length"
        )
    if kind == "smooth" and through.shape[-2] > MAX_SMOOTH:
        raise StateError(
            f"path: {through.shape[-2]} postures, expected at most {MAX_SMOOTH} for kind='smooth'",
            "give fewer",
        )
    steps = np.abs(robot.manifold.log(through[..., :-1, :], through[..., 1:, :]))
    if not (steps.max(axis=-1) > 1e-9).all():
        raise StateError(
            "path: one posture is the same as the one before it", "leave it out, or make two paths"
        )
    return through


def _read_limits(
    robot: Robot, speed: Numbers | None, acceleration: Numbers | None, torque: Numbers | None
) -> Limits:
    defaults = {"speed": (speed, robot.velocity_limit), "torque": (torque, robot.effort)}
    limits = {}
    for name, (value, default) in defaults.items():
        zero = [robot.velocity_names[i] for i in np.flatnonzero(default <= 1e-12)]
        if value is None and zero:
            raise StateError(
                f"path: the model {robot.name} limits the {name} of {listed(zero)} to 0",
                f"give {name}=; np.inf is no limit",
            )
        limits[name] = _read_limit(robot, name, default if value is None else value)
    limits["acceleration"] = _read_limit(
        robot, "acceleration", np.inf if acceleration is None else acceleration
    )
    if not any(np.isfinite(x).any() for x in limits.values()):
        raise StateError(
            f"path: nothing limits {robot.name}", "give speed=, acceleration= or torque="
        )
    if not (np.isfinite(limits["acceleration"]) | np.isfinite(limits["torque"])).any():
        raise StateError(
            f"path: nothing limits how {robot.name} accelerates", "give acceleration= or torque="
        )
    return Limits(**limits)


def _read_limit(robot: Robot, name: str, value: Numbers) -> np.ndarray:
    expected = f"one or nv = {robot.nv} numbers above 0"
    limit = broadcast_row(name, value, robot.nv, (1e-12, np.inf), expected, "np.inf is no limit")
    limit[limit > 1e12] = np.inf
    return limit


def _knots(robot: Robot, through: np.ndarray, limits: Limits) -> np.ndarray:
    """(..., K) from 0 to 1, spaced by the time of the slowest joint between postures."""
    steps = np.abs(robot.manifold.log(through[..., :-1, :], through[..., 1:, :]))
    speed = np.where(np.isfinite(limits.speed), limits.speed, 1.0)
    spans = (steps / speed).max(axis=-1)
    knots = np.concatenate([np.zeros((*spans.shape[:-1], 1)), np.cumsum(spans, axis=-1)], axis=-1)
    return knots / knots[..., -1:]


def _grid(knots: np.ndarray, count: int) -> np.ndarray:
    """(..., N): the knots, and equally many points between any two; at least `count` steps.

    Knots are points of the grid because q'' has kinks there.
    """
    steps = max(LEAST_STEPS, -(-count // (knots.shape[-1] - 1)))
    inner = knots[..., :-1, None] + np.diff(knots)[..., None] * (np.arange(steps) / steps)
    return np.concatenate([inner.reshape(*knots.shape[:-1], -1), knots[..., -1:]], axis=-1)


def _fastest_speeds(b: Bounds) -> np.ndarray:
    """ds/dt (..., N) of the motions of least time."""
    batch, points = b.s.shape[:-1], b.s.shape[-1]
    flat = Bounds(*(x.reshape(-1, *x.shape[len(batch) :]) for x in vars(b).values()))
    x, feasible = fastest(flat)
    if not feasible.all():
        bad = np.count_nonzero(~feasible)
        raise StateError(
            f"path: {bad} of {len(feasible)} paths cannot be timed within the limits",
            "give more torque or acceleration, or more points",
        )
    return np.sqrt(x).reshape(*batch, points)


def _even_speeds(b: Bounds) -> np.ndarray:
    """ds/dt (..., N), constant: the root of the largest x with |beta x + gamma| <= 1, x <= cap."""
    with np.errstate(divide="ignore", invalid="ignore"):
        largest = np.where(
            b.beta > 0.0,
            (1.0 - b.gamma) / b.beta,
            np.where(b.beta < 0.0, (-1.0 - b.gamma) / b.beta, np.inf),
        )
    x = np.minimum(largest.min(axis=(-2, -1), initial=np.inf), b.cap.min(axis=-1))
    return np.broadcast_to(np.sqrt(x)[..., None], b.s.shape)
