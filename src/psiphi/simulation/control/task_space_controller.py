"""Operational-space control of one frame, or of several frames in order of priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import (
    as_list,
    check_robot,
    finite_array,
    frozen,
    nonnegative_number,
    one_of,
    real_array,
    robot_of,
)
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.pseudo_inverse import INVERSE_POLICIES
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.closed_chains.feasible_motion import TaskMotion
from psiphi.simulation.control.closed_chains.independent_joints import (
    ChainCoordinates,
    check_driven,
)
from psiphi.simulation.control.closed_chains.torque_shares import inverse_dynamics_step, read_share
from psiphi.simulation.control.control_law import Controller, JointNames, Law, Step, Values
from psiphi.simulation.control.joint_controllers import (
    Source,
    read_gains,
    read_posture,
    value_at,
)
from psiphi.simulation.control.task_forces import TaskForces
from psiphi.simulation.control.torque_input import UNBOUND


class OperationalSpace(Controller):
    """tau = J* (Lambda (x''_ref - dJ/dt v)) + C v + g + N* tau_0,    N = I - M^-1 J* Lambda J

    (Khatib 1987). x''_ref = kp e + kd (x'_ref - x') with e = x_ref - x, for the position of a frame
    (3 rows) or its pose (6 rows, the rotation error as a rotation vector). kp |e| is limited to
    kd `speed`, so that distant targets are approached at `speed` (m/s, rad/s).
    tau_0 = M (posture_kp (q_0 - q) - posture_kd v) controls the posture in the directions that the
    task leaves free.

    Several frames, in order of priority, have several targets: a task is fulfilled as far as it
    does not disturb those before it (the block factors L D L* of J M^-1 J*).

    Lambda is the inverse of J M^-1 J* in the rows of the task. `policy` says how it behaves near
    singularities: "faded" gradually gives up a direction that becomes singular, and leaves it to
    the posture; "pseudo", "damped" and "exact" are those of `operational_space_inertia`.
    `target` is a point (3,), a pose (4, 4), or a function of time that returns either, alone or
    with the velocity of the frame ([v], or [w; v]).

    A closed chain moves one frame in this way: its acceleration is the one nearest, by the mass
    matrix, to the posture's u = posture_kp (q_0 - q) - posture_kd v that satisfies the constraints
    and x'' = x''_ref. Lambda then is the inertia at the frame with all loops closed, and its
    inverse exact: there are no torques where the frame cannot move as desired. The contact forces
    minimize sum |f_i|^2 / share_i.
    """

    def __init__(
        self,
        robot: Robot | System,
        frame: str | Sequence[str],
        target: Source | Sequence[Source],
        kp: float = 100.0,
        kd: float = 20.0,
        posture: Numbers | None = None,
        posture_kp: Numbers = 10.0,
        posture_kd: Numbers = 6.0,
        policy: str = "faded",
        rcond: float = 1e-9,
        damping: float = 1e-3,
        fade: float = 0.03,
        speed: float = 1.0,
        *,
        share: Numbers | None = None,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        is_closed = isinstance(robot, System)
        if not is_closed:
            check_robot("OperationalSpace", robot, Robot)
        super().__init__(robot, actuated, passive)
        if not is_closed:
            self.check_motors('load the robot with base="fixed"')
        names, references = _read_tasks(robot_of(robot), frame, target)
        kp = nonnegative_number("kp", kp)
        kd = nonnegative_number("kd", kd)
        speed = nonnegative_number("speed", speed)
        policy, number = _read_policy(
            policy,
            nonnegative_number("rcond", rcond),
            nonnegative_number("damping", damping),
            nonnegative_number("fade", fade),
        )
        limit = kd * speed or UNBOUND  # of kp |e|
        self.numbers = {
            "posture": read_posture(robot, posture),
            "posture_kp": read_gains(robot, "posture_kp", posture_kp),
            "posture_kd": read_gains(robot, "posture_kd", posture_kd),
            "gains": np.array([kp, kd, limit, number]),
            **read_share(robot, share),
        }
        if isinstance(robot, System):
            if len(names) > 1 or policy != "faded":
                raise StateError(
                    f"OperationalSpace of {robot.name}: a closed chain has one task, without a "
                    "policy",
                    "give one frame and one target, and leave policy= out",
                )
            q = self.numbers["posture"]
            check_driven("OperationalSpace", robot, q)
            at = ChainCoordinates((), tuple(robot.idle.tolist()), robot.nv, robot.nc)
            motion = TaskMotion(at, references[0].size)
            steps = _chain_steps(names[0], motion, share is not None)
            places = ("x_ref_0", "r_ref_0")
            self.law = Law(steps, places, (names[0], astuple(motion), share is not None))
            self.reference = TaskReferences(references)
            return
        frames = tuple(dict.fromkeys(names))
        tasks = tuple(
            (frames.index(name), reference.size)
            for name, reference in zip(names, references, strict=True)
        )
        forces = TaskForces(tasks, len(frames), policy)
        key = (frames, tasks, policy)
        self.law = Law(_law_steps(frames, forces), forces.reference_places, key)
        self.reference = TaskReferences(references)


def _law_steps(frames: tuple[str, ...], forces: TaskForces) -> tuple[Step, ...]:
    """The acceleration of the posture, the motion of the frames, the task forces, the torques."""
    frame_steps = [
        step
        for i, name in enumerate(frames)
        for step in (
            Step("frame_pose", {"T": f"T_{i}"}, name),
            Step("frame_velocity", {"V": f"twist_{i}"}, name),
            Step("frame_acceleration", {"a": "u", "A": f"drift_{i}"}, name),
        )
    ]
    force_steps = (Step(forces, sizes=forces.sizes),)
    if forces.policy in INVERSE_POLICIES:  # compute eigenvalues only where they are needed
        first, fallback = replace(forces, definite_only=True), replace(forces, fallback=True)
        force_steps = (
            Step(first, sizes=first.sizes),
            Step(fallback, sizes=fallback.sizes, condition="indefinite"),
        )
    return (
        Step(posture_acceleration),
        *frame_steps,
        Step("operational_compliance", frame=frames),
        *force_steps,
        Step("inverse_dynamics", {"a": "u"}, frames),
    )


def _chain_steps(frame: str, motion: TaskMotion, is_shared: bool) -> tuple[Step, ...]:
    """The acceleration of the posture, the motion of the frame, that of the chain, the torques."""
    return (
        Step(posture_acceleration),
        Step("frame_pose", {"T": "T_0"}, frame),
        Step("frame_velocity", {"V": "twist_0"}, frame),
        Step("frame_acceleration", {"a": "u", "A": "drift_0"}, frame),
        Step("jacobian", frame=frame),
        Step("constraint_rates", {"dq": "v"}),
        Step("mass_matrix"),
        Step(motion, sizes=motion.sizes),
        inverse_dynamics_step(is_shared),
    )


def _read_tasks(
    robot: Robot, frame: object, target: object
) -> tuple[list[str], list[TaskReference]]:
    """The frames and references, in order of priority."""
    if isinstance(frame, str):
        return [robot.frame(frame).name], [TaskReference(target)]
    names = as_list("frame", frame, "give a name, or a list of names")
    remedy = "give one target for each frame, in the same order"
    targets = as_list("target", target, remedy) if not callable(target) else [target]
    if not names or len(names) != len(targets):
        raise StateError(f"{len(names)} frames and {len(targets)} targets are given", remedy)
    return [robot.frame(name).name for name in names], [TaskReference(x) for x in targets]


def posture_acceleration(m: Manifold, q, v, posture, posture_kp, posture_kd) -> Values:
    """u, of which the tasks leave N* M u = M u - J* Lambda J u."""
    return {"u": posture_kp * m.log(q, posture) - posture_kd * v}


class TaskReference:
    """The reference of a frame: t -> its point (..., 3) or pose (..., 16), row by row, and its
    velocity."""

    def __init__(self, source: object):
        self.source = source
        self.constant: tuple[np.ndarray, ...] | None = None
        if callable(source):
            first = self._read(value_at("target", source))
        else:
            first = self.constant = tuple(map(frozen, self._read(source)))
        self.size = first[1].shape[-1]

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        if self.constant is not None:
            return self.constant
        assert callable(self.source)
        place, velocity = self._read(self.source(t))
        if velocity.shape[-1] != self.size:
            kinds = {3: "a point", 6: "a pose"}
            raise StateError(
                f"the target is {kinds[velocity.shape[-1]]} at t = {t:g}, "
                f"but was {kinds[self.size]} at t = 0",
                "give the same kind at all times",
            )
        return place, velocity

    @staticmethod
    def _read(value: object) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(value, tuple) and not 1 <= len(value) <= 2:
            raise StateError(
                f"the target gave {len(value)} arrays, expected a point or pose, or one with its "
                "velocity",
                "give one or two",
            )
        place, *rest = value if isinstance(value, tuple) else (value,)
        remedy = "give a point (3,) or a pose (4, 4)"
        place = finite_array("the target", place, (), remedy)
        is_pose = place.shape[-2:] == (4, 4)
        if not is_pose and place.shape[-1:] != (3,):
            raise StateError(
                f"the target has shape {place.shape}, expected a point (3,) or a pose (4, 4)",
                "give one of these",
            )
        size = 6 if is_pose else 3
        if is_pose:
            check_target(place)
            place = place.reshape(*place.shape[:-2], 16)
        if not rest:
            return place, np.zeros(size)
        remedy = f"give {size} numbers"
        return place, real_array("the target's velocity", rest[0], (size,), remedy)


class TaskReferences:
    """The references of all tasks, one after the other."""

    def __init__(self, references: list[TaskReference]):
        self.references = references
        constant = [x.constant for x in references if x.constant is not None]
        all_constant = len(constant) == len(references)
        self.constant = tuple(x for pair in constant for x in pair) if all_constant else None

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        return self.constant or tuple(x for reference in self.references for x in reference(t))


def are_rotations(R: np.ndarray) -> bool:
    """Whether these matrices (..., 3, 3) are rotations, up to three digits."""
    return bool(
        (np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)) < 1e-3).all()
        and (np.linalg.det(R) > 0.0).all()
    )


def check_target(T: np.ndarray) -> None:
    """Raise an error unless all of these (..., 4, 4) are poses."""
    if not are_rotations(T[..., :3, :3]):
        raise StateError(
            "the target is not a pose: its rotation is not orthonormal",
            "give one like robot.frame_pose(q, frame)",
        )


def _read_policy(name: str, rcond: float, damping: float, fade: float) -> tuple[str, float]:
    """The policy and its number."""
    numbers = {"faded": fade, "pseudo": rcond, "exact": rcond, "damped": damping}
    if one_of("policy", name, numbers) == "faded" and not 0.0 < fade < 1.0:
        raise StateError(
            f"fade is {fade:g}, expected a number between 0 and 1", "0.03 is the default"
        )
    return name, numbers[name]
