"""Tasks of inverse kinematics, as residuals and their Jacobians on any scalars.

    pose         [log(R_d R*); p_d - p]
    point        p_d - p
    direction    rotation from the frame's axis to the desired direction, two rows across the axis
    mass         c_d - c, c the centre of mass
    loop         error of a constraint between two frames (a row of `model/loops/closure_types.py`)
    follow       error of a joint that follows a leader
    embedded     distance of the joints of embedded loops beyond their limits, and closure errors

A task type is a row of `TASK_TYPES`. `goal` is the desired value of what `current` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from psiphi.model.loops.closure_types import KINDS as CLOSURE_TYPES
from psiphi.model.loops.closure_types import Constants, RelativeMotion, perpendicular_axes
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.rotations import logarithm, quaternion
from psiphi.model.spatial.screws import cross, dot, square_root
from psiphi.model.spatial.small_matrices import apply, product, transpose
from psiphi.robot.robot import Robot

OPPOSITE = 1e-12 - 1.0  # cosine below which directions are opposite: any axis across is as good
RADIAN, METRE = "rad", "m"
INSET = 2e-6  # rad or m: distance to a limit from which a joint in a loop counts as beyond it


class Residual(NamedTuple):
    """Rows of a task of one unit: the error e, and J with de/dt = -J v. Not weighted yet."""

    error: list
    J: list
    unit: str


@dataclass(frozen=True)
class Task:
    """A task of one type for one frame."""

    kind: str
    frame: str = ""
    axis: tuple[float, ...] = ()  # of a direction, in the frame
    rotation_weight: float = 1.0  # 1 / rad^2
    position_weight: float = 1.0  # 1 / m^2
    # loop: kind, both frames, constants; follow: joint, leader, multiplier, offset;
    # embedded: whether limits hold, units
    constraint: tuple = ()
    level: int = 0  # a level acts in the null space of the levels before it

    @property
    def size(self) -> int:
        """Length of the goal."""
        return TASK_TYPES[self.kind].size

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames it depends on; "" for the centre of mass."""
        special = {"loop": self.constraint[1:3], "follow": (), "embedded": ()}
        return special.get(self.kind, (self.frame,))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the residuals with positive weight."""
        return tuple(unit for unit in TASK_TYPES[self.kind].units if self.weight(unit) > 0.0)

    def weight(self, unit: str) -> float:
        return self.rotation_weight if unit == RADIAN else self.position_weight

    def current(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """The quantity that the goal prescribes, at q: (..., size)."""
        return TASK_TYPES[self.kind].current(self, robot, q)

    def residuals(self, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
        """The residuals with positive weight, at one q."""
        every = TASK_TYPES[self.kind].residuals(self, robot, q, goal)
        return [residual for residual in every if self.weight(residual.unit) > 0.0]

    @property
    def scale(self) -> np.ndarray:
        """(size,): the distance of two scaled goals is roughly the norm of the weighted error."""
        return TASK_TYPES[self.kind].scale(self)


class TaskType(NamedTuple):
    """How a kind of task is computed."""

    size: int
    units: tuple[str, ...]
    current: Callable[[Task, Robot, np.ndarray], np.ndarray]
    residuals: Callable[[Task, Robot, np.ndarray, list], list[Residual]]
    scale: Callable[[Task], np.ndarray]


def _frame_motion(task: Task, robot: Robot, q: np.ndarray) -> tuple[list, list, list, list]:
    """Rotation and position of the frame, and the Jacobians of both."""
    T, J = robot.frame_pose(q, task.frame), robot.jacobian(q, task.frame)
    return T[:3, :3].tolist(), T[:3, 3].tolist(), J[:3].tolist(), J[3:].tolist()


def _difference(p: list, q: list) -> list:
    """q - p."""
    return [b - a for a, b in zip(p, q, strict=True)]


def _pose(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    R, p, J_w, J_v = _frame_motion(task, robot, q)
    R_d = [goal[4 * r : 4 * r + 3] for r in range(3)]
    angle = logarithm(quaternion(product(R_d, transpose(R))))[0] if task.rotation_weight else []
    return [Residual(angle, J_w, RADIAN), Residual(_difference(p, goal[3::4]), J_v, METRE)]


def _point(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    _, p, _, J_v = _frame_motion(task, robot, q)
    return [Residual(_difference(p, goal), J_v, METRE)]


def _direction(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    R, _, J_w, _ = _frame_motion(task, robot, q)
    axes = (list(task.axis), *(x.tolist() for x in perpendicular_axes(task.axis)))
    d, *across = (apply(R, x) for x in axes)
    normal, cosine = cross(d, goal), dot(d, goal)
    opposite = less(cosine, OPPOSITE)
    axis = [x + opposite * y for x, y in zip(normal, across[0], strict=True)]
    angle = logarithm([*axis, 1.0 + cosine])[0]
    rows = [apply(transpose(J_w), u) for u in across]
    return [Residual([dot(u, angle) for u in across], rows, RADIAN)]


def _mass(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    A = robot.centroidal_momentum_matrix(q)[3:] / robot.mass
    return [Residual(_difference(robot.center_of_mass(q).tolist(), goal), A.tolist(), METRE)]


def _loop(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    """Errors of the rows of a constraint: frame 1 relative to frame 2, in the axes of frame 2."""
    kind, first, second, *shape = task.constraint
    (R1, p1, J_w1, J_v1), (R2, p2, J_w2, J_v2) = (
        _frame_motion(replace(task, frame=x), robot, q) for x in (first, second)
    )
    back, r = transpose(R2), _difference(p2, p1)
    motion = RelativeMotion(product(back, R1), apply(back, r), [0.0] * 3, [0.0] * 3)
    out = {RADIAN: Residual([], [], RADIAN), METRE: Residual([], [], METRE)}
    for row in CLOSURE_TYPES[kind].rows(Constants.of(*shape), motion):
        if row.error is None:  # a constraint of velocities alone
            continue
        turn, slide = apply(R2, row.turn), apply(R2, row.slide)
        moment = _difference([-x for x in turn], cross(r, slide))  # coefficient of -w2
        columns = zip(*(zip(*x, strict=True) for x in (J_w1, J_v1, J_w2, J_v2)), strict=True)
        J = [
            dot(turn, w1) + dot(slide, v1) - dot(moment, w2) - dot(slide, v2)
            for w1, v1, w2, v2 in columns
        ]
        unit = METRE if any(not isinstance(x, float) or x for x in row.slide) else RADIAN
        out[unit].error.append(-row.error)
        out[unit].J.append(J)
    # 2 tan(angle / 2) is infinite at half a turn, 2 sin(angle / 2) is not
    angle = out[RADIAN].error
    cosine = 1.0 / square_root(1.0 + 0.25 * dot(angle, angle)) if angle else 1.0
    return [out[RADIAN]._replace(error=[cosine * x for x in angle]), out[METRE]]


def _follow(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    name, leader_name, multiplier, offset = task.constraint
    joint, leader = robot.joint(name), robot.joint(leader_name)
    J = [0.0] * robot.nv
    J[joint.v_slice.start], J[leader.v_slice.start] = 1.0, -multiplier
    error = q[joint.q_slice.start] - multiplier * q[leader.q_slice.start] - offset
    return [Residual([-error], [J], METRE if joint.row.slides[0] else RADIAN)]


def _embedded(task: Task, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
    """How far coordinates are beyond their limits, J = X; and closure errors, J = 0."""
    limited, units = task.constraint
    e, J = [], []
    for joint in (robot.units[k] for k in units):
        cluster, q_joint = joint.kinematics, list(q[joint.q_slice])
        X, zeros = cluster.X(q_joint), [0.0] * robot.nv
        before, after = zeros[: joint.v_slice.start], zeros[joint.v_slice.stop :]
        for c in range(cluster.nv) if limited else ():
            i = cluster.q_index(c)
            lower, upper = (float(x[joint.q_slice.start + i]) for x in (robot.lower, robot.upper))
            if i < 0 or not (np.isfinite(lower) or np.isfinite(upper)):
                continue
            inset = min(INSET, (upper - lower) / 4.0)
            low, high = lower + inset, upper - inset
            for end, beyond in ((low, less(q_joint[i], low)), (high, less(high, q_joint[i]))):
                if np.isfinite(end):
                    e.append(beyond * (end - q_joint[i]))
                    J.append([*before, *(beyond * x for x in X[c]), *after])
        gaps = cluster.closure_errors(q_joint)
        e, J = [*e, *(-x for x in gaps)], [*J, *(zeros for _ in gaps)]
    return [Residual(e, J, RADIAN)]


def _zero_current(task: Task, robot: Robot, q: np.ndarray) -> np.ndarray:
    """Zeros (..., size): the goal of a constraint is the same for every configuration."""
    return np.zeros((*np.shape(q)[:-1], task.size))


def _zero_scale(task: Task) -> np.ndarray:
    return np.zeros(task.size)


def _pose_current(task: Task, robot: Robot, q: np.ndarray) -> np.ndarray:
    T = robot.frame_pose(q, task.frame)[..., :3, :]
    return T.reshape(*T.shape[:-2], 12)


def _pose_scale(task: Task) -> np.ndarray:
    # |R - R_d|^2 is twice the square of the angle
    R, p = np.sqrt(task.rotation_weight / 2.0), np.sqrt(task.position_weight)
    return np.tile([R, R, R, p], 3)


def _point_current(task: Task, robot: Robot, q: np.ndarray) -> np.ndarray:
    return robot.frame_pose(q, task.frame)[..., :3, 3]


def _direction_current(task: Task, robot: Robot, q: np.ndarray) -> np.ndarray:
    return robot.frame_pose(q, task.frame)[..., :3, :3] @ np.array(task.axis)


def _direction_scale(task: Task) -> np.ndarray:
    return np.full(3, np.sqrt(task.rotation_weight))


def _mass_current(task: Task, robot: Robot, q: np.ndarray) -> np.ndarray:
    return robot.center_of_mass(q)


def _position_scale(task: Task) -> np.ndarray:
    return np.full(3, np.sqrt(task.position_weight))


BOTH = (RADIAN, METRE)
TASK_TYPES = {
    "pose": TaskType(12, BOTH, _pose_current, _pose, _pose_scale),
    "point": TaskType(3, (METRE,), _point_current, _point, _position_scale),
    "direction": TaskType(3, (RADIAN,), _direction_current, _direction, _direction_scale),
    "mass": TaskType(3, (METRE,), _mass_current, _mass, _position_scale),
    "loop": TaskType(1, BOTH, _zero_current, _loop, _zero_scale),
    "follow": TaskType(1, BOTH, _zero_current, _follow, _zero_scale),
    "embedded": TaskType(0, (RADIAN,), _zero_current, _embedded, _zero_scale),
}
