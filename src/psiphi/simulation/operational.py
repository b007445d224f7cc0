"""Control of a frame: forces in the space of the task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from psiphi.errors import StateError
from psiphi.functions.operational import POLICIES, inverse
from psiphi.functions.robot import Robot
from psiphi.model.arguments import read, real
from psiphi.model.words import nearest, shown
from psiphi.simulation.controllers import gains
from psiphi.spatial import quaternion as quat


class OperationalSpace:
    """tau = J* (Lambda (x''_ref - dJ/dt v)) + C v + g + N* tau_0,    N = I - M^-1 J* Lambda J   (Khatib 1987)

    x''_ref = kp e + kd (x'_ref - x'), e = x_ref - x, for a frame's position (3 rows) or its pose (6 rows, the turn as a
    rotation vector); where kp |e| exceeds kd `speed` it is cut to that, so that far targets are approached at `speed` (m/s,
    rad/s). tau_0 = M (posture_kp (q_0 - q) - posture_kd v) holds a posture where the task leaves freedom.

    Lambda is that of the rows used. `policy` says what it is near singularities: "faded" lets go of a direction as it is lost,
    and leaves it to the posture (see `faded`); "pseudo", "damped" and "exact" are those of `operational_space_inertia`.
    `target`: a point (3,), a pose (4, 4), or a function of time that answers either, alone or with the frame's velocity
    ([v], or [w; v]).
    """

    def __init__(
        self,
        robot: Robot,
        frame: str,
        target: Any,
        kp: float = 100.0,
        kd: float = 20.0,
        posture: Any = None,
        posture_kp: Any = 10.0,
        posture_kd: Any = 6.0,
        policy: str = "faded",
        rcond: float = 1e-9,
        damping: float = 1e-3,
        fade: float = 0.03,
        speed: float = 1.0,
    ):
        if not isinstance(robot, Robot):
            raise StateError(
                f"OperationalSpace of {shown(robot)}, expected a robot", "pp.load, pp.Builder and pp.from_dh make one"
            )
        self.robot, self.frame = robot, robot.frame(frame).name
        self.target = target
        self.rows = slice(0, 6) if self._read(0.0)[0].shape[-2:] == (4, 4) else slice(3, 6)
        self.kp, self.kd, self.speed = _number("kp", kp), _number("kd", kd), _number("speed", speed)
        self.inverse = _policy(policy, _number("rcond", rcond), _number("damping", damping), _number("fade", fade))
        self.posture = real("posture", robot.neutral() if posture is None else posture, (robot.nq,), f"give {robot.nq} numbers")
        self.posture_kp, self.posture_kd = gains(robot, "posture_kp", posture_kp), gains(robot, "posture_kd", posture_kd)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        robot, rows = self.robot, self.rows
        J = robot.jacobian(q, self.frame)[..., rows, :]
        X = robot.operational_compliance(q, self.frame)[..., rows, rows]
        Lambda = self.inverse(X)
        drift = robot.frame_acceleration(q, v, np.zeros(robot.nv), self.frame)[..., rows]
        wrench = _apply(Lambda, self._wanted(t, q, v) - drift)
        rest = self.posture_kp * robot.difference(q, self.posture) - self.posture_kd * v
        # N* M u = M u - J* Lambda J u: the posture's torque, less what it would do to the frame
        task = wrench - _apply(Lambda, _apply(J, rest))
        return robot.inverse_dynamics(q, v, rest) + _apply(np.swapaxes(J, -1, -2), task)

    def _wanted(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x''_ref, the rows used."""
        place, rate = self._read(t)
        pose, velocity = self.robot.frame_pose(q, self.frame), self.robot.frame_velocity(q, v, self.frame)[..., self.rows]
        if self.rows.start == 3:
            error = place - pose[..., :3, 3]
        else:
            turn = quat.log(quat.from_matrix(place[..., :3, :3] @ np.swapaxes(pose[..., :3, :3], -1, -2)))
            error = np.concatenate(np.broadcast_arrays(turn, place[..., :3, 3] - pose[..., :3, 3]), axis=-1)
        pull = self.kp * error
        most = self.kd * self.speed
        if most:
            parts = pull.reshape(*pull.shape[:-1], -1, 3)
            size = np.linalg.norm(parts, axis=-1, keepdims=True)
            pull = (parts * (most / np.maximum(size, most))).reshape(pull.shape)
        return pull + self.kd * (rate - velocity)

    def _read(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        answer = self.target(t) if callable(self.target) else self.target
        place, *rest = answer if isinstance(answer, tuple) else (answer,)
        place, fault = read(place, None)
        if fault:
            raise StateError(f"the target {fault}", "give a point (3,) or a pose (4, 4)")
        if place.shape[-2:] != (4, 4) and place.shape[-1:] != (3,):
            raise StateError(f"the target has shape {place.shape}, expected a point (3,) or a pose (4, 4)", "give one of these")
        if not np.isfinite(place).all():
            raise StateError("the target holds numbers that are not finite", "look at where they came from")
        size = 6 if place.shape[-2:] == (4, 4) else 3
        return place, real("the target's velocity", rest[0], (size,), f"give {size} numbers") if rest else np.zeros(size)


def faded(X: np.ndarray, fade: float) -> np.ndarray:
    """Lambda = S Q diag(f(w) / w) Q* S of X = J M^-1 J*, with S X S = Q diag(w) Q* and f = 3 x^2 - 2 x^3, x = min(1, w / fade).

    S divides angular and linear rows by the root of their mean compliance: w has no unit, and does not depend on axes. Where
    no w is below `fade` this is X^-1; a direction with w -> 0 is let go of smoothly, and f / w stays below 1.2 / fade.

    >>> faded(np.diag([1.0, 1.0, 0.0]), 0.03).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    finite = np.isfinite(X).all(axis=(-2, -1), keepdims=True)
    X = np.where(finite, X, np.eye(X.shape[-1]))
    mean = np.diagonal(X, axis1=-2, axis2=-1).reshape(*X.shape[:-2], -1, 3).mean(axis=-1)
    scale = np.repeat(1.0 / np.sqrt(np.maximum(mean, np.finfo(float).tiny)), 3, axis=-1)
    S = scale[..., :, None] * scale[..., None, :]
    w, Q = np.linalg.eigh(S * X)
    x = np.clip(w / fade, 0.0, 1.0)
    share = x * x * (3.0 - 2.0 * x) / np.where(w > 0.0, w, 1.0)
    return np.where(finite, S * np.einsum("...ij,...j,...kj->...ik", Q, share, Q), np.nan)


def _policy(name: str, rcond: float, damping: float, fade: float) -> Callable[[np.ndarray], np.ndarray]:
    """X -> Lambda."""
    if name == "faded":
        if not 0.0 < fade < 1.0:
            raise StateError(f"fade is {fade:g}, expected a number between 0 and 1", "0.03 is the default")
        return partial(faded, fade=fade)
    if name not in POLICIES:
        known = ("faded", *POLICIES)
        raise StateError(f"policy is {shown(name)}, expected one of {', '.join(known)}", nearest(name, known))
    return partial(inverse, policy=name, rcond=rcond, damping=damping)


def _number(name: str, given: Any) -> float:
    number = real(name, given, (), "give one number")
    if number.ndim or not 0.0 <= number < np.inf:
        raise StateError(f"{name} is {shown(given)}, expected one finite number of at least 0", "give a number")
    return float(number)


def _apply(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", A, x)
