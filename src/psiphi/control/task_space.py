"""Control of a frame: forces in the space of the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.arguments import read, real
from psiphi.control.controllers import asked, gains
from psiphi.control.law import Controller, Law, Step, Values
from psiphi.control.torques import UNBOUND
from psiphi.errors import StateError
from psiphi.functions.robot import Robot
from psiphi.spatial.choices import choose, less, most
from psiphi.spatial.entries import entries, stacked
from psiphi.spatial.policies import WITHOUT, regular, solve
from psiphi.spatial.rotations import logarithm, quaternion
from psiphi.spatial.screws import dot, root
from psiphi.spatial.small import product, transpose
from psiphi.wording import nearest, shown

LEVER = 1e-8  # m: a point nearer to all axes does not move


class OperationalSpace(Controller):
    """tau = J* (Lambda (x''_ref - dJ/dt v)) + C v + g + N* tau_0,    N = I - M^-1 J* Lambda J   (Khatib 1987)

    x''_ref = kp e + kd (x'_ref - x'), e = x_ref - x, for a frame's position (3 rows) or its pose (6 rows, the turn as a
    rotation vector); where kp |e| exceeds kd `speed` it is cut to that, so that far targets are approached at `speed` (m/s,
    rad/s). tau_0 = M (posture_kp (q_0 - q) - posture_kd v) holds a posture where the task leaves freedom.

    Lambda is that of the rows used. `policy` says what it is near singularities: "faded" lets go of a direction as it is lost,
    and leaves it to the posture; "pseudo", "damped" and "exact" are those of `operational_space_inertia`.
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
        *,
        actuated: Any = None,
        passive: Any = None,
    ):
        if not isinstance(robot, Robot):
            raise StateError(
                f"OperationalSpace of {shown(robot)}, expected a robot", "pp.load, pp.Builder and pp.from_dh make one"
            )
        super().__init__(robot, actuated, passive)
        if not self.drives_all:
            cause = f"OperationalSpace of {robot.name}: the law asks torques of every joint, and some have no motor"
            raise StateError(cause, 'say passive=() where all have one, or load the robot with base="fixed"')
        target, name = Aim(target), robot.frame(frame).name
        kp, kd, speed = _number("kp", kp), _number("kd", kd), _number("speed", speed)
        policy, own = _policy(policy, _number("rcond", rcond), _number("damping", damping), _number("fade", fade))
        posture = real("posture", robot.neutral() if posture is None else posture, (robot.nq,), f"give {robot.nq} numbers")
        if not np.isfinite(posture).all():
            raise StateError("posture holds numbers that are not finite", "look at where they came from")
        self.numbers = {
            "posture": posture,
            "posture_kp": gains(robot, "posture_kp", posture_kp),
            "posture_kd": gains(robot, "posture_kd", posture_kd),
            "gains": np.array([kp, kd, kd * speed or UNBOUND, own]),  # |kp e| is bound by kd speed, where there is one
        }
        task, lost = TaskForce(target.size, policy), LostDirections(target.size, policy)
        steps = (
            Step(posture_acceleration),
            Step("frame_pose", frame=name),
            Step("frame_velocity", {"V": "twist"}, name),
            Step("frame_acceleration", {"a": "u", "A": "drift"}, name),
            Step("operational_compliance", frame=name),
            Step(task, sizes=task.sizes),
            Step(lost, sizes=lost.sizes, only="lost"),
            Step("inverse_dynamics", {"a": "u"}, name),
        )
        self.law, self.reference = Law(steps, ("x_ref", "r_ref"), (name, target.size, policy)), target


def posture_acceleration(m, q, v, posture, posture_kp, posture_kd) -> Values:
    """What the posture asks for: N* M u = M u - J* Lambda J u."""
    return {"u": posture_kp * m.log(q, posture) - posture_kd * v}


@dataclass(frozen=True)
class TaskForce:
    """f_ext = -Lambda (x''_ref - x'') of the last `rows` (3 or 6) rows, on any scalars; x'' = `drift` is what u makes."""

    rows: int
    policy: str

    @property
    def sizes(self) -> dict[str, int]:
        """`gains`: kp, kd, the largest pull, and the policy's number."""
        place = 16 if self.rows == 6 else 3
        return {"T": 16, "twist": 6, "drift": 6, "X": 36, "x_ref": place, "r_ref": self.rows, "gains": 4}

    def __call__(self, m, T, twist, drift, X, x_ref, r_ref, gains) -> Values:
        first, (_, kd, _, number) = 6 - self.rows, entries(gains)
        rates = zip(entries(r_ref), entries(twist)[first:], entries(drift)[first:], strict=True)
        pulls = self.pulls(entries(T), entries(x_ref), entries(gains))
        missing = [pull + kd * (wanted - now) - drifting for pull, (wanted, now, drifting) in zip(pulls, rates, strict=True)]
        if self.policy in WITHOUT:
            force, sure = regular(self.policy, rows_used(X, first), missing, number)
        else:
            force, sure = missing, 0.0 * missing[0]
        return {"missing": stacked(missing), "f_ext": wrench(force, first), "lost": stacked([1.0 - sure])}

    def pulls(self, T: list, x_ref: list, gains: list) -> list:
        """kp e, angular and linear parts cut to what kd balances at the speed; the turn of a pose as a rotation vector."""
        (R, p), (kp, _, pull, _) = _split(T), gains
        if self.rows == 3:
            error = _apart(p, x_ref)
        else:
            wanted, place = _split(x_ref)
            error = logarithm(quaternion(product(wanted, transpose(R))))[0] + _apart(p, place)
        out = []
        for k in range(0, self.rows, 3):
            part = [kp * e for e in error[k : k + 3]]
            out += [pull / most(root(dot(part, part)), pull) * x for x in part]
        return out


@dataclass(frozen=True)
class LostDirections:
    """The same force by the eigenvalues of X, where a direction may be `lost`: elsewhere it is known already."""

    rows: int
    policy: str

    @property
    def sizes(self) -> dict[str, int]:
        return {"X": 36, "missing": self.rows, "gains": 4, "lost": 1, "f_ext": 6}

    def __call__(self, m, X, missing, gains, lost, f_ext) -> Values:
        first, number, (gone,) = 6 - self.rows, entries(gains)[3], entries(lost)
        force = entries(wrench(solve(self.policy, rows_used(X, first), entries(missing), number), first))
        return {"f_ext": stacked([choose(gone, x, y) for x, y in zip(force, entries(f_ext), strict=True)])}


def rows_used(X: Any, first: int) -> list:
    """The last rows and columns of the compliance, what is not felt left out."""
    X = entries(X)
    keep = felt([X[7 * r] for r in range(6)])
    return [[keep[r] * keep[c] * X[6 * min(r, c) + max(r, c)] for c in range(first, 6)] for r in range(first, 6)]


def wrench(force: list, first: int) -> Any:
    """What pulls the frame back: -force in the last rows."""
    return stacked([0.0] * first + [-x for x in force])


def _split(T: list) -> tuple[list, list]:
    """Rotation and position of a pose, given row by row."""
    return [T[4 * r : 4 * r + 3] for r in range(3)], [T[4 * r + 3] for r in range(3)]


def _apart(p: list, q: list) -> list:
    return [b - a for a, b in zip(p, q, strict=True)]


def felt(diagonal: list) -> list:
    """1 for the rows of X that are more than rounding, 0 for others: of levers below LEVER, or above 1 / LEVER.

    >>> [float(x) for x in felt([1.0, 1.0, 1.0, 1e-34, 0.0, 1e-33])]
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    turn, slide = (a + b + c for a, b, c in (diagonal[:3], diagonal[3:]))
    return [less(LEVER**2 * slide, turn)] * 3 + [less(LEVER**2 * turn, slide)] * 3


class Aim:
    """Where a frame should be: x_ref(t), a point (..., 3) or a pose (..., 16) row by row, and its velocity."""

    def __init__(self, given: Any):
        self.given = given
        self.constant = None if callable(given) else self._read(given)
        first = self.constant or self._read(asked("target", given))
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
        if isinstance(answer, tuple) and not 1 <= len(answer) <= 2:
            raise StateError(
                f"the target gave {len(answer)} arrays, expected a place, or a place and its velocity", "give these"
            )
        place, *rest = answer if isinstance(answer, tuple) else (answer,)
        place, fault = read(place, None)
        if fault:
            raise StateError(f"the target {fault}", "give a point (3,) or a pose (4, 4)")
        if place.shape[-2:] != (4, 4) and place.shape[-1:] != (3,):
            raise StateError(f"the target has shape {place.shape}, expected a point (3,) or a pose (4, 4)", "give one of these")
        if not np.isfinite(place).all():
            raise StateError("the target holds numbers that are not finite", "look at where they came from")
        size = 6 if place.shape[-2:] == (4, 4) else 3
        if size == 6 and not are_rotations(place[..., :3, :3]):
            raise StateError(
                "the target is no pose: its rotation is not orthonormal", "give one like robot.frame_pose(q, frame)"
            )
        place = place.astype(float).reshape(*place.shape[:-2], 16) if size == 6 else place.astype(float)
        return place, real("the target's velocity", rest[0], (size,), f"give {size} numbers") if rest else np.zeros(size)


def are_rotations(R: np.ndarray) -> bool:
    """Whether these are rotations, as far as typed digits go."""
    return bool((np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)) < 1e-3).all() and (np.linalg.det(R) > 0.0).all())


def _policy(name: str, rcond: float, damping: float, fade: float) -> tuple[str, float]:
    """The policy, and its number."""
    numbers = {"faded": fade, "pseudo": rcond, "exact": rcond, "damped": damping}
    if not isinstance(name, str) or name not in numbers:
        raise StateError(f"policy is {shown(name)}, expected one of {', '.join(numbers)}", nearest(name, tuple(numbers)))
    if name == "faded" and not 0.0 < fade < 1.0:
        raise StateError(f"fade is {fade:g}, expected a number between 0 and 1", "0.03 is the default")
    return name, numbers[name]


def _number(name: str, given: Any) -> float:
    number = real(name, given, (), "give one number")
    if number.ndim or not 0.0 <= number < np.inf:
        raise StateError(f"{name} is {shown(given)}, expected one finite number of at least 0", "give a number")
    return float(number)
