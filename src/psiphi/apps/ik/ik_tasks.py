"""What is wanted of a robot, as residuals and their Jacobians on any scalars.

    pose         [log(R_d R*); p_d - p]        point       p_d - p
    direction    the turn from the frame's axis to the one that is wanted, in two rows across the axis
    mass         c_d - c, c the centre of mass
    loop         two frames as a constraint holds them (a row of `model/loops/closure_types.py`): it is wanted that nothing is open
    follow       a joint as its leader bids
    kept         joints of embedded loops within their limits, and the loops closed: no more is asked than that

A kind is a row of `KINDS`. `goal` are its numbers: what it wants, in the form in which `now` says what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.loops.closure_types import KINDS as LOOPS
from psiphi.model.loops.closure_types import Constants, RelativeMotion, perpendicular_axes
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.rotations import logarithm, quaternion
from psiphi.model.spatial.screws import cross, dot, square_root
from psiphi.model.spatial.small_matrices import apply, product, transpose
from psiphi.robot.robot import Robot

OPPOSITE = (
    1e-12 - 1.0
)  # the cosine from which on two directions are taken as opposite: any axis across turns one to the other
TURN, SLIDE = "rad", "m"
INSET = 2e-6  # rad or m: what counts as beyond a limit of a joint in a loop begins so far within


class Residual(NamedTuple):
    """Some rows of a task: what is missing, and how the robot's velocity makes it less; weighted when they are used."""

    residual: list
    J: list
    unit: str


@dataclass(frozen=True)
class Task:
    """A task of one kind, of a frame; `axis` is a direction's, in the frame; weights by unit, 1 / rad^2 and 1 / m^2."""

    kind: str
    frame: str = ""
    axis: tuple[float, ...] = ()
    turn: float = 1.0
    slide: float = 1.0
    tie: tuple = ()  # of loops: kind, both frames, constants; of joints that follow: joint, leader, multiplier, offset
    level: int = (
        0  # of importance: what a level asks for is done as far as those before it do not feel it
    )

    @property
    def size(self) -> int:
        """Numbers of its goal."""
        return KINDS[self.kind].size

    @property
    def frames(self) -> tuple[str, ...]:
        """Those it is of; "" for the centre of mass."""
        return {"loop": self.tie[1:3], "follow": (), "kept": ()}.get(self.kind, (self.frame,))

    @property
    def units(self) -> tuple[str, ...]:
        """Of its parts that count."""
        return tuple(unit for unit in KINDS[self.kind].units if self.weight(unit) > 0.0)

    def weight(self, unit: str) -> float:
        return self.turn if unit == TURN else self.slide

    def now(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """What there is, (..., size)."""
        return KINDS[self.kind].now(self, robot, q)

    def parts(self, robot: Robot, q: np.ndarray, goal: list) -> list[Residual]:
        """What is missing at one q, of the parts that count."""
        return [
            part
            for part in KINDS[self.kind].parts(self, robot, q, goal)
            if self.weight(part.unit) > 0.0
        ]

    @property
    def scale(self) -> np.ndarray:
        """(size,): with it, the distance of two goals is roughly the square root of the weighted residual."""
        return KINDS[self.kind].scale(self)


class TaskType(NamedTuple):
    """How a kind of task is computed."""

    size: int
    units: tuple[str, ...]
    now: Callable[[Task, Robot, Any], np.ndarray]
    parts: Callable[[Task, Robot, Any, list], list[Residual]]
    scale: Callable[[Task], np.ndarray]


def _place(task: Task, robot: Robot, q: Any) -> tuple[list, list, list, list]:
    """Rotation and position of the frame, and the Jacobians of both."""
    T, J = robot.frame_pose(q, task.frame), robot.jacobian(q, task.frame)
    return T[:3, :3].tolist(), T[:3, 3].tolist(), J[:3].tolist(), J[3:].tolist()


def _apart(p: list, q: list) -> list:
    return [b - a for a, b in zip(p, q, strict=True)]


def _pose(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    R, p, turning, moving = _place(task, robot, q)
    wanted = [goal[4 * r : 4 * r + 3] for r in range(3)]
    turn = logarithm(quaternion(product(wanted, transpose(R))))[0] if task.turn else []
    return [Residual(turn, turning, TURN), Residual(_apart(p, goal[3::4]), moving, SLIDE)]


def _point(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    _, p, _, moving = _place(task, robot, q)
    return [Residual(_apart(p, goal), moving, SLIDE)]


def _direction(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    R, _, turning, _ = _place(task, robot, q)
    d, *sides = (
        apply(R, x) for x in (list(task.axis), *(x.tolist() for x in perpendicular_axes(task.axis)))
    )
    towards, cosine = cross(d, goal), dot(d, goal)
    stuck = less(cosine, OPPOSITE)
    turn = logarithm(
        [*(x + stuck * y for x, y in zip(towards, sides[0], strict=True)), 1.0 + cosine]
    )[0]
    return [
        Residual([dot(u, turn) for u in sides], [apply(transpose(turning), u) for u in sides], TURN)
    ]


def _mass(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    A = robot.centroidal_momentum_matrix(q)[3:] / robot.mass
    return [Residual(_apart(robot.center_of_mass(q).tolist(), goal), A.tolist(), SLIDE)]


def _loop(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    """How far the rows of a constraint are open: frame 1 seen from frame 2, in its axes."""
    kind, first, second, *shape = task.tie
    (R1, p1, turning1, moving1), (R2, p2, turning2, moving2) = (
        _place(replace(task, frame=x), robot, q) for x in (first, second)
    )
    back, far = transpose(R2), _apart(p2, p1)
    at = RelativeMotion(product(back, R1), apply(back, far), [0.0] * 3, [0.0] * 3)
    out = {TURN: Residual([], [], TURN), SLIDE: Residual([], [], SLIDE)}
    for row in LOOPS[kind].rows(Constants.of(*shape), at):
        if row.error is None:  # it binds velocities alone
            continue
        turn, slide = apply(R2, row.turn), apply(R2, row.slide)
        felt = _apart([-x for x in turn], cross(far, slide))  # w2 feels - turn - far x slide
        columns = zip(
            *(zip(*x, strict=True) for x in (turning1, moving1, turning2, moving2)), strict=True
        )
        J = [
            dot(turn, w1) + dot(slide, v1) - dot(felt, w2) - dot(slide, v2)
            for w1, v1, w2, v2 in columns
        ]
        part = out[SLIDE if any(not isinstance(x, float) or x for x in row.slide) else TURN]
        part.residual.append(-row.error)
        part.J.append(J)
    turned = out[
        TURN
    ].residual  # 2 tan of half the angle is endless at half a turn: 2 sin of it is not
    shrunk = 1.0 / square_root(1.0 + 0.25 * dot(turned, turned)) if turned else 1.0
    return [out[TURN]._replace(residual=[shrunk * x for x in turned]), out[SLIDE]]


def _follow(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    joint, leader, multiplier, offset = task.tie
    one, other = robot.joint(joint), robot.joint(leader)
    J = [0.0] * robot.nv
    J[one.v_slice.start], J[other.v_slice.start] = 1.0, -multiplier
    open_by = q[one.q_slice.start] - multiplier * q[other.q_slice.start] - offset
    return [Residual([-open_by], [J], SLIDE if one.row.slides[0] else TURN)]


def _kept(task: Task, robot: Robot, q: Any, goal: list) -> list[Residual]:
    """How far coordinates are beyond their limits, d/dv of which is X; and gaps, which steps in v leave as they are."""
    limited, units = task.tie
    e, J = [], []
    for joint in (robot.units[k] for k in units):
        laws, own = joint.kinematics, list(q[joint.q_slice])
        X, none = laws.X(own), [0.0] * robot.nv
        for c in range(laws.nv) if limited else ():
            i = laws.q_index(c)
            lower, upper = (float(x[joint.q_slice.start + i]) for x in (robot.lower, robot.upper))
            if i < 0 or not (np.isfinite(lower) or np.isfinite(upper)):
                continue
            inset = min(INSET, (upper - lower) / 4.0)
            low, high = lower + inset, upper - inset
            for end, beyond in ((low, less(own[i], low)), (high, less(high, own[i]))):
                if np.isfinite(end):
                    e.append(beyond * (end - own[i]))
                    J.append(
                        [
                            *none[: joint.v_slice.start],
                            *(beyond * x for x in X[c]),
                            *none[joint.v_slice.stop :],
                        ]
                    )
        gaps = laws.closure_errors(own)
        e, J = [*e, *(-x for x in gaps)], [*J, *(none for _ in gaps)]
    return [Residual(e, J, TURN)]


def _closed(task: Task, robot: Robot, q: Any) -> np.ndarray:
    """A number that says nothing: every configuration wants its loops closed."""
    return np.zeros((*np.shape(q)[:-1], 1))


def _pose_now(task: Task, robot: Robot, q: Any) -> np.ndarray:
    T = robot.frame_pose(q, task.frame)[..., :3, :]
    return T.reshape(*T.shape[:-2], 12)


def _pose_scale(task: Task) -> np.ndarray:
    turn, slide = (
        np.sqrt(task.turn / 2.0),
        np.sqrt(task.slide),
    )  # |R - R_d|^2 is twice the angle's square
    return np.tile([turn, turn, turn, slide], 3)


KINDS = {
    "pose": TaskType(12, (TURN, SLIDE), _pose_now, _pose, _pose_scale),
    "point": TaskType(
        3,
        (SLIDE,),
        lambda task, robot, q: robot.frame_pose(q, task.frame)[..., :3, 3],
        _point,
        lambda task: np.full(3, np.sqrt(task.slide)),
    ),
    "direction": TaskType(
        3,
        (TURN,),
        lambda task, robot, q: robot.frame_pose(q, task.frame)[..., :3, :3] @ np.array(task.axis),
        _direction,
        lambda task: np.full(3, np.sqrt(task.turn)),
    ),
    "loop": TaskType(1, (TURN, SLIDE), _closed, _loop, lambda task: np.zeros(1)),
    "kept": TaskType(
        0,
        (TURN,),
        lambda task, robot, q: np.zeros((*np.shape(q)[:-1], 0)),
        _kept,
        lambda task: np.zeros(0),
    ),
    "follow": TaskType(1, (TURN, SLIDE), _closed, _follow, lambda task: np.zeros(1)),
    "mass": TaskType(
        3,
        (SLIDE,),
        lambda task, robot, q: robot.center_of_mass(q),
        _mass,
        lambda task: np.full(3, np.sqrt(task.slide)),
    ),
}
