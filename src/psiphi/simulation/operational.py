"""Control of a frame: forces in the space of the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.errors import StateError
from psiphi.functions.operational import inverse
from psiphi.functions.robot import Robot
from psiphi.model.arguments import real
from psiphi.simulation.controllers import gains
from psiphi.spatial import quaternion as quat


class OperationalSpace:
    """tau = J* (Lambda (x''_ref - dJ/dt v)) + C v + g + N* tau_0,    N = I - M^-1 J* Lambda J   (Khatib 1987)

    x''_ref = kp (x_ref - x) + kd (x'_ref - x'), for a frame's position (3 rows) or its pose (6 rows, the turn as a rotation
    vector); tau_0 = M (posture_kp (q_0 - q) - posture_kd v) holds a posture where the task leaves freedom. Lambda is that of
    the rows used; `policy`, `rcond` and `damping` say what it is at singularities, as in `operational_space_inertia`.
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
        posture_kp: float = 10.0,
        posture_kd: float = 6.0,
        policy: str = "pseudo",
        rcond: float = 1e-9,
        damping: float = 1e-3,
    ):
        self.robot, self.frame = robot, robot.frame(frame).name
        self.target: Callable = target if callable(target) else (lambda t: target)
        self.rows = slice(0, 6) if self._read(0.0)[0].shape[-2:] == (4, 4) else slice(3, 6)
        self.kp, self.kd = float(kp), float(kd)
        self.policy = policy, float(rcond), float(damping)
        inverse(np.eye(1), *self.policy)  # refuses what is no policy
        self.posture = real("posture", robot.neutral() if posture is None else posture, (robot.nq,), f"give {robot.nq} numbers")
        self.posture_kp, self.posture_kd = gains(robot, "posture_kp", posture_kp), gains(robot, "posture_kd", posture_kd)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        robot, rows = self.robot, self.rows
        J = robot.jacobian(q, self.frame)[..., rows, :]
        X = robot.operational_compliance(q, self.frame)[..., rows, rows]
        Lambda = inverse(X, *self.policy)
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
        return self.kp * error + self.kd * (rate - velocity)

    def _read(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        answer = self.target(t)
        place, *rest = answer if isinstance(answer, tuple) else (answer,)
        place = np.asarray(place, dtype=float)
        if place.shape[-2:] != (4, 4) and place.shape[-1:] != (3,):
            raise StateError(f"the target has shape {place.shape}, expected a point (3,) or a pose (4, 4)", "give one of these")
        size = 6 if place.shape[-2:] == (4, 4) else 3
        return place, real("the target's velocity", rest[0], (size,), f"give {size} numbers") if rest else np.zeros(size)


def _apply(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", A, x)
