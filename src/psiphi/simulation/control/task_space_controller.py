"""Control of frames: forces in the space of the task, or of several tasks in order of priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import (
    as_list,
    check_robot,
    finite_array,
    frozen,
    nonnegative_number,
    one_of,
    real_array,
)
from psiphi.model.spatial.pseudo_inverse import INVERSE_POLICIES
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Controller, Law, Step, Values
from psiphi.simulation.control.joint_controllers import read_gains, read_posture, value_at_start
from psiphi.simulation.control.task_forces import TaskForces
from psiphi.simulation.control.torque_input import UNBOUND


class OperationalSpace(Controller):
    """tau = J* (Lambda (x''_ref - dJ/dt v)) + C v + g + N* tau_0,    N = I - M^-1 J* Lambda J   (Khatib 1987)

    x''_ref = kp e + kd (x'_ref - x'), e = x_ref - x, for a frame's position (3 rows) or its pose (6 rows, the turn as a
    rotation vector); where kp |e| exceeds kd `speed` it is cut to that, so that far targets are approached at `speed` (m/s,
    rad/s). tau_0 = M (posture_kp (q_0 - q) - posture_kd v) holds a posture where the task leaves freedom.

    Several frames, in order of priority, have several targets: what a later one asks for is done as far as those before it do
    not feel it (the block factors L D L* of J M^-1 J*, `task_forces.py`).

    Lambda is that of the rows used. `policy` says what it is near singularities: "faded" lets go of a direction as it is lost,
    and leaves it to the posture; "pseudo", "damped" and "exact" are those of `operational_space_inertia`.
    `target`: a point (3,), a pose (4, 4), or a function of time that answers either, alone or with the frame's velocity
    ([v], or [w; v]).
    """

    def __init__(
        self,
        robot: Robot,
        frame: str | Sequence[str],
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
        check_robot("OperationalSpace", robot, Robot)
        super().__init__(robot, actuated, passive)
        self.check_motors('load the robot with base="fixed"')
        names, aims = _tasks(robot, frame, target)
        kp, kd, speed = (
            nonnegative_number("kp", kp),
            nonnegative_number("kd", kd),
            nonnegative_number("speed", speed),
        )
        policy, own = _policy(
            policy,
            nonnegative_number("rcond", rcond),
            nonnegative_number("damping", damping),
            nonnegative_number("fade", fade),
        )
        self.numbers = {
            "posture": read_posture(robot, posture),
            "posture_kp": read_gains(robot, "posture_kp", posture_kp),
            "posture_kd": read_gains(robot, "posture_kd", posture_kd),
            "gains": np.array(
                [kp, kd, kd * speed or UNBOUND, own]
            ),  # |kp e| is bound by kd speed, where there is one
        }
        frames = tuple(dict.fromkeys(names))
        task = TaskForces(
            tuple((frames.index(name), aim.size) for name, aim in zip(names, aims, strict=True)),
            len(frames),
            policy,
        )
        self.law, self.reference = (
            Law(_steps(frames, task), task.reference_places, (frames, task.tasks, policy)),
            TaskReferences(aims),
        )


def _steps(frames: tuple[str, ...], task: TaskForces) -> tuple[Step, ...]:
    """What the posture asks for, what the frames do, the forces of the tasks, and the torques of it all."""
    seen = [
        step
        for i, name in enumerate(frames)
        for step in (
            Step("frame_pose", {"T": f"T_{i}"}, name),
            Step("frame_velocity", {"V": f"twist_{i}"}, name),
            Step("frame_acceleration", {"a": "u", "A": f"drift_{i}"}, name),
        )
    ]
    forces = (Step(task, sizes=task.sizes),)
    if task.policy in INVERSE_POLICIES:  # eigenvalues where they are needed
        quick, rare = replace(task, quick=True), replace(task, after=True)
        forces = Step(quick, sizes=quick.sizes), Step(rare, sizes=rare.sizes, condition="lost")
    forces = Step("operational_compliance", frame=frames), *forces
    return Step(posture_acceleration), *seen, *forces, Step("inverse_dynamics", {"a": "u"}, frames)


def _tasks(robot: Robot, frame: Any, target: Any) -> tuple[list[str], list[TaskReference]]:
    """The frames and targets, in order of priority."""
    if isinstance(frame, str):
        return [robot.frame(frame).name], [TaskReference(target)]
    names, remedy = (
        as_list("frame", frame, "give a name, or a list of names"),
        "give one target a frame, in the same order",
    )
    targets = as_list("target", target, remedy) if not callable(target) else [target]
    if not names or len(names) != len(targets):
        raise StateError(f"{len(names)} frames and {len(targets)} targets came", remedy)
    return [robot.frame(name).name for name in names], [TaskReference(given) for given in targets]


def posture_acceleration(m, q, v, posture, posture_kp, posture_kd) -> Values:
    """What the posture asks for: N* M u = M u - J* Lambda J u."""
    return {"u": posture_kp * m.log(q, posture) - posture_kd * v}


class TaskReference:
    """Where a frame should be: x_ref(t), a point (..., 3) or a pose (..., 16) row by row, and its velocity."""

    def __init__(self, given: Any):
        self.given = given
        self.constant: Any = None if callable(given) else tuple(map(frozen, self._read(given)))
        first = self.constant or self._read(value_at_start("target", given))
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
                f"the target gave {len(answer)} arrays, expected a place, or a place and its velocity",
                "give these",
            )
        place, *rest = answer if isinstance(answer, tuple) else (answer,)
        place = finite_array("the target", place, (), "give a point (3,) or a pose (4, 4)")
        if place.shape[-2:] != (4, 4) and place.shape[-1:] != (3,):
            raise StateError(
                f"the target has shape {place.shape}, expected a point (3,) or a pose (4, 4)",
                "give one of these",
            )
        size = 6 if place.shape[-2:] == (4, 4) else 3
        if size == 6:
            check_target(place)
        place = place.reshape(*place.shape[:-2], 16) if size == 6 else place
        return place, real_array(
            "the target's velocity", rest[0], (size,), f"give {size} numbers"
        ) if rest else np.zeros(size)


class TaskReferences:
    """The references of all tasks, one after the other."""

    def __init__(self, aims: list[TaskReference]):
        self.aims = aims
        fixed = [aim.constant for aim in aims if aim.constant is not None]
        self.constant = tuple(x for one in fixed for x in one) if len(fixed) == len(aims) else None

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        return self.constant or tuple(x for aim in self.aims for x in aim(t))


def are_rotations(R: np.ndarray) -> bool:
    """Whether these are rotations, as far as typed digits go."""
    return bool(
        (np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)) < 1e-3).all()
        and (np.linalg.det(R) > 0.0).all()
    )


def check_target(T: np.ndarray) -> None:
    """A StateError where one of these (..., 4, 4) is no pose."""
    if not are_rotations(T[..., :3, :3]):
        raise StateError(
            "the target is no pose: its rotation is not orthonormal",
            "give one like robot.frame_pose(q, frame)",
        )


def _policy(name: str, rcond: float, damping: float, fade: float) -> tuple[str, float]:
    """The policy, and its number."""
    numbers = {"faded": fade, "pseudo": rcond, "exact": rcond, "damped": damping}
    if one_of("policy", name, numbers) == "faded" and not 0.0 < fade < 1.0:
        raise StateError(
            f"fade is {fade:g}, expected a number between 0 and 1", "0.03 is the default"
        )
    return name, numbers[name]
