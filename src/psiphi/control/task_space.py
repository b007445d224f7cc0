"""Control of a frame: forces in the space of the task."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.arguments import read, real
from psiphi.control.controllers import gains
from psiphi.errors import StateError
from psiphi.functions.operational import inverse
from psiphi.functions.robot import Robot
from psiphi.spatial.entries import along
from psiphi.spatial.rotations import logarithm, quaternions
from psiphi.wording import nearest, shown

UNBOUND = 1e300  # beyond every pull
LEVER = 1e-8  # m: a point nearer to all axes does not move


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
        self.reference = Target(target)
        self.size = self.reference.size
        self.kp, self.kd, self.speed = _number("kp", kp), _number("kd", kd), _number("speed", speed)
        self.policy, self.number = _policy(policy, _number("rcond", rcond), _number("damping", damping), _number("fade", fade))
        self.posture = real("posture", robot.neutral() if posture is None else posture, (robot.nq,), f"give {robot.nq} numbers")
        if not np.isfinite(self.posture).all():
            raise StateError("posture holds numbers that are not finite", "look at where they came from")
        self.posture_kp, self.posture_kd = gains(robot, "posture_kp", posture_kp), gains(robot, "posture_kd", posture_kd)

    @property
    def pull(self) -> float:
        """The most |kp e| may be; no bound where there is no speed."""
        return self.kd * self.speed or UNBOUND

    @property
    def gains(self) -> np.ndarray:
        """The task's numbers: kp, kd, the largest pull, and the policy's."""
        return np.array([self.kp, self.kd, self.pull, self.number])

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.law(q, v, *self.reference(t))

    def law(self, q: np.ndarray, v: np.ndarray, place: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """tau at a state and a target; u is what the posture asks for, N* M u = M u - J* Lambda J u."""
        robot, rows = self.robot, slice(6 - self.size, 6)
        u = self.posture_kp * robot.difference(q, self.posture) - self.posture_kd * v
        missing = self._wanted(q, v, place, rate) - robot.frame_acceleration(q, v, u, self.frame)[..., rows]
        X = felt(robot.operational_compliance(q, self.frame))[..., rows, rows]
        wrench = np.zeros((*np.broadcast_shapes(X.shape[:-2], missing.shape[:-1]), 6))
        wrench[..., rows] = np.einsum("...ij,...j->...i", self._inverse(X), missing)
        return robot.inverse_dynamics(q, v, u, f_ext={self.frame: -wrench})

    def _inverse(self, X: np.ndarray) -> np.ndarray:
        """Lambda."""
        if self.policy == "faded":
            return faded(X, self.number)
        return inverse(X, self.policy, rcond=self.number, damping=self.number)

    def _wanted(self, q: np.ndarray, v: np.ndarray, place: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """x''_ref, the rows used."""
        pose, velocity = self.robot.frame_pose(q, self.frame), self.robot.frame_velocity(q, v, self.frame)
        if self.size == 3:
            error = place - pose[..., :3, 3]
        else:
            wanted = place.reshape(*place.shape[:-1], 4, 4)
            turn = along(lambda p: logarithm(p)[0], quaternions(wanted[..., :3, :3] @ np.swapaxes(pose[..., :3, :3], -1, -2)))
            error = np.concatenate(np.broadcast_arrays(turn, wanted[..., :3, 3] - pose[..., :3, 3]), axis=-1)
        parts = (self.kp * error).reshape(*error.shape[:-1], self.size // 3, 3)
        size = np.linalg.norm(parts, axis=-1, keepdims=True)
        pull = (parts * (self.pull / np.maximum(size, self.pull))).reshape(error.shape)
        return pull + self.kd * (rate - velocity[..., 6 - self.size :])


class Target:
    """Where a frame should be: x_ref(t), a point (..., 3) or a pose (..., 16) row by row, and its velocity."""

    def __init__(self, given: Any):
        self.given = given
        self.constant = None if callable(given) else self._read(given)
        first = self.constant or self._read(given(0.0))
        self.size = first[1].shape[-1]

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        if self.constant is not None:
            return self.constant
        place, rate = self._read(self.given(t))
        if rate.shape[-1] != self.size:
            kinds = {3: "a point", 6: "a pose"}
            cause = f"the target is {kinds[rate.shape[-1]]} at t = {t:g}, and was {kinds[self.size]} at t = 0"
            raise StateError(cause, "give the same kind at all times")
        return place, rate

    @staticmethod
    def _read(answer: Any) -> tuple[np.ndarray, np.ndarray]:
        place, *rest = answer if isinstance(answer, tuple) else (answer,)
        place, fault = read(place, None)
        if fault:
            raise StateError(f"the target {fault}", "give a point (3,) or a pose (4, 4)")
        if place.shape[-2:] != (4, 4) and place.shape[-1:] != (3,):
            raise StateError(f"the target has shape {place.shape}, expected a point (3,) or a pose (4, 4)", "give one of these")
        if not np.isfinite(place).all():
            raise StateError("the target holds numbers that are not finite", "look at where they came from")
        size = 6 if place.shape[-2:] == (4, 4) else 3
        if size == 6 and not _turns(place[..., :3, :3]):
            raise StateError(
                "the target is no pose: its rotation is not orthonormal", "give one like robot.frame_pose(q, frame)"
            )
        place = place.astype(float).reshape(*place.shape[:-2], 16) if size == 6 else place.astype(float)
        return place, real("the target's velocity", rest[0], (size,), f"give {size} numbers") if rest else np.zeros(size)


def _turns(R: np.ndarray) -> bool:
    """Whether these are rotations, as far as typed digits go."""
    return bool((np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)) < 1e-3).all() and (np.linalg.det(R) > 0.0).all())


def felt(X: np.ndarray) -> np.ndarray:
    """X (..., 6, 6), its angular or linear part zero where it is rounding: of levers below LEVER, or above 1 / LEVER.

    >>> felt(np.diag([1.0, 1.0, 1.0, 1e-34, 0.0, 1e-33])).diagonal().tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    turn, slide = np.moveaxis(np.diagonal(X, axis1=-2, axis2=-1).reshape(*X.shape[:-2], 2, 3).sum(axis=-1), -1, 0)
    keep = np.repeat(np.stack([turn > LEVER**2 * slide, slide > LEVER**2 * turn], axis=-1), 3, axis=-1)
    return X * keep[..., :, None] * keep[..., None, :]


def faded(X: np.ndarray, fade: float) -> np.ndarray:
    """Lambda = S Q diag(f(w) / w) Q* S of X = J M^-1 J*, with S X S = Q diag(w) Q* and f = 3 x^2 - 2 x^3, x = min(1, w / fade).

    S divides angular and linear rows by the root of their mean compliance: w has no unit, and does not depend on axes. Where
    no w is below `fade` this is X^-1; a direction with w -> 0 is let go of smoothly, and f / w stays below 1.2 / fade.

    >>> faded(np.diag([1.0, 1.0, 0.0]), 0.03).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    finite = np.isfinite(X).all(axis=(-2, -1), keepdims=True)
    X = np.where(finite, X, np.eye(X.shape[-1]))
    mean = np.diagonal(X, axis1=-2, axis2=-1).reshape(*X.shape[:-2], X.shape[-1] // 3, 3).mean(axis=-1)
    scale = np.repeat(1.0 / np.sqrt(np.maximum(mean, np.finfo(float).tiny)), 3, axis=-1)
    S = scale[..., :, None] * scale[..., None, :]
    w, Q = np.linalg.eigh(S * X)
    x = np.clip(w / fade, 0.0, 1.0)
    share = x * x * (3.0 - 2.0 * x) / np.where(w > 0.0, w, 1.0)
    return np.where(finite, S * np.einsum("...ij,...j,...kj->...ik", Q, share, Q), np.nan)


def _policy(name: str, rcond: float, damping: float, fade: float) -> tuple[str, float]:
    """The policy, and its number."""
    numbers = {"faded": fade, "pseudo": rcond, "exact": rcond, "damped": damping}
    if name not in numbers:
        raise StateError(f"policy is {shown(name)}, expected one of {', '.join(numbers)}", nearest(name, tuple(numbers)))
    if name == "faded" and not 0.0 < fade < 1.0:
        raise StateError(f"fade is {fade:g}, expected a number between 0 and 1", "0.03 is the default")
    return name, numbers[name]


def _number(name: str, given: Any) -> float:
    number = real(name, given, (), "give one number")
    if number.ndim or not 0.0 <= number < np.inf:
        raise StateError(f"{name} is {shown(given)}, expected one finite number of at least 0", "give a number")
    return float(number)
