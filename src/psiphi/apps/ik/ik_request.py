"""Arguments of `pp.reach`, checked: tasks with goals and weights, and the joints that may move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_list, check_robot, finite_array, read_array, real_array
from psiphi.apps.ik.ik_tasks import METRE, RADIAN, Task
from psiphi.compiler.passes import UNROLL_LIMIT, is_large
from psiphi.model.builder.pose_values import read_pose
from psiphi.model.loops.cluster_joints import COMPOUND
from psiphi.model.model import Pose
from psiphi.model.state_checks import check_loops
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.task_space_controller import are_rotations

MASS = "center_of_mass"
FAR = 1e9  # m: the largest coordinate of a target
_finite = partial(finite_array, most=FAR)
ORDER_REMEDY = 'give names of targets, the most important first: order=["tool", "center_of_mass"]'
TARGET_REMEDY = (
    "give a pose (4, 4), a point (3,) or a rotation (3, 3), with any batch axes in front"
)
Goal = tuple[Task, np.ndarray]
Weights: TypeAlias = dict[str, tuple[float, float]]  # of rotation and position, by frame


def check_joints(robot: object) -> Robot:
    """`robot`, checked to be a robot with joints."""
    robot = check_robot("reach", robot, Robot)
    if not robot.joints:
        raise StateError(f"reach: {robot.name} has no joints", "give a robot that moves")
    return robot


def check_size(robot: Robot) -> None:
    """Raise for a robot whose code is too long to be unrolled."""
    if is_large(robot):
        cause = (
            f"reach: {robot.name} has {len(robot.bodies)} bodies, expected at most {UNROLL_LIMIT}"
        )
        raise StateError(cause, "take a part of it: robot.subtree(...)")


def loop_tasks(system: System) -> list[Goal]:
    """The tasks that close the loops of a system."""
    robot, tasks = system.robot, []
    for c in system.closure.constraints:
        size = max(length_scale(robot, name) for name in (c.first, c.second))
        constants = (tuple(c.shape.axis), tuple(c.shape.axis2), c.shape.length)
        weights = float(RADIAN in c.units), (METRE in c.units) * size**-2
        tasks.append(Task("loop", c.name, (), *weights, (c.kind, c.first, c.second, *constants)))
    for f in system.closure.mimics:
        slides = robot.joint(f.joint).row.slides[0]
        follower = (f.joint, f.leader, f.multiplier, f.offset)
        tasks.append(Task("follow", f.name, (), float(not slides), float(slides), follower))
    return [(task, np.zeros(1)) for task in tasks if task.units]


def with_levels(goals: list[Goal], order: Sequence[str] | None, loops: list[Goal]) -> list[Goal]:
    """The tasks with their levels: loops, then targets that `order` omits, then those it names."""
    names = [] if order is None else as_list("order", order, ORDER_REMEDY)
    known = {task.frame or MASS for task, _ in goals}
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise StateError(
                f"order: {shown(name)} is not a target",
                nearest(name, sorted(known)) if isinstance(name, str) else ORDER_REMEDY,
            )
    if len(set(names)) < len(names):
        raise StateError(f"order is {shown(order)}, expected each name once", ORDER_REMEDY)

    def level(task: Task) -> int:
        name = task.frame or MASS
        return bool(loops) + (names.index(name) + 1 if name in names else 0)

    ranked = [(replace(task, level=level(task)), goal) for task, goal in goals]
    levels = sorted({task.level for task, _ in (*loops, *ranked)})
    return [
        (replace(task, level=levels.index(task.level)), goal) for task, goal in (*loops, *ranked)
    ]


def read_goals(
    robot: Robot,
    targets: Mapping[str, Numbers | Pose] | None,
    directions: Mapping[str, tuple[Numbers, Numbers]] | None,
    center_of_mass: Numbers | None,
    weights: Mapping[str, Numbers] | None,
    required: bool = True,
) -> list[Goal]:
    """Every task with its goal (..., size); if `required`, at least one."""
    by_frame = _read_weights(weights)
    goals = [_pose_goal(robot, frame, x, by_frame) for frame, x in _items("targets", targets)]
    goals += [
        _direction_goal(robot, frame, x, by_frame) for frame, x in _items("directions", directions)
    ]
    if center_of_mass is not None:
        robot.require_mass("reach", "leave center_of_mass out")
        point = _finite("center_of_mass", center_of_mass, (3,), "give a point (3,)")
        weight = by_frame.get(MASS, (1.0, length_scale(robot) ** -2))
        goals.append((Task("mass", "", (), *weight), point))
    known = {task.frame or MASS for task, _ in goals}
    for name in by_frame:
        if name not in known:
            cause = f"weights: {shown(name)} is not a target"
            raise StateError(cause, nearest(name, sorted(known)))
    goals = [(task, goal) for task, goal in goals if task.units]
    if not goals and required:
        raise StateError(
            "reach: there is no target", 'give {"frame": pose}, directions=, or center_of_mass='
        )
    return goals


@lru_cache(maxsize=256)
def length_scale(robot: Robot, frame: str = "") -> float:
    """RMS distance in m, two digits, of a frame (or the centre of mass) from its mean position.

    By default a rotation of 1 rad weighs as much as a motion by this length.
    """
    q = robot.random(seed=0, size=256)
    points = robot.frame_pose(q, frame)[:, :3, 3] if frame else robot.center_of_mass(q)
    spread = float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=-1).mean()))
    return float(f"{spread:.1e}") if spread > 1e-9 else 1.0


def _pose_goal(robot: Robot, frame: str, value: object, weights: Weights) -> Goal:
    """The task of a frame that is to reach a pose or a point."""
    name = robot.frame(frame).name
    what = f"the target of {shown(name)}"
    if isinstance(value, Pose):
        value = read_pose(what, value).matrix
    array, fault = read_array(value, None)
    if fault:
        raise StateError(f"{what} {fault}", TARGET_REMEDY)
    weight = weights.get(name, (1.0, length_scale(robot, name) ** -2))
    if array.shape[-2:] == (4, 4):
        T = _finite(what, array, (4, 4), TARGET_REMEDY)
        if (
            not are_rotations(T[..., :3, :3])
            or not (np.abs(T[..., 3, :] - [0.0, 0.0, 0.0, 1.0]) < 1e-9).all()
        ):
            raise StateError(
                f"{what} is not a pose, expected a rotation, a position and a last row 0 0 0 1",
                "give a pose like robot.frame_pose(q, frame)",
            )
        return Task("pose", name, (), *weight), T[..., :3, :].reshape(*T.shape[:-2], 12)
    if array.shape[-2:] == (3, 3) and are_rotations(array):
        T = np.concatenate([array, np.zeros((*array.shape[:-1], 1))], axis=-1)
        return Task("pose", name, (), weight[0], 0.0), T.reshape(*T.shape[:-2], 12)
    if array.shape[-2:] == (3, 3) and _has_near_rotations(array):
        raise StateError(
            f"{what} is a 3 x 3 matrix that is almost a rotation, and not one to three digits",
            "make it orthonormal, with determinant 1; three points are given one at a time",
        )
    if array.shape[-1:] == (3,):
        return Task("point", name, (), *weight), _finite(what, array, (3,), TARGET_REMEDY)
    cause = f"{what} has shape {array.shape}, expected (..., 4, 4) or (..., 3)"
    raise StateError(cause, TARGET_REMEDY)


def _has_near_rotations(R: np.ndarray) -> bool:
    """Whether some of these matrices (..., 3, 3) are orthonormal up to a tenth: rotations with
    errors, or reflections."""
    gram = R @ np.swapaxes(R, -1, -2)
    return bool((np.abs(gram - np.eye(3)) < 0.1).all(axis=(-1, -2)).any())


def _direction_goal(robot: Robot, frame: str, value: object, weights: Weights) -> Goal:
    """The task of a frame whose axis is to point in a direction."""
    name = robot.frame(frame).name
    what = f"the direction of {shown(name)}"
    remedy = "give (axis in the frame, direction in the world)"
    pair = as_list(what, value, remedy)
    if len(pair) != 2:
        raise StateError(f"{what} is {shown(value)}, expected two vectors", remedy)
    axis, direction = (_finite(what, x, (3,), remedy) for x in pair)
    lengths = [np.linalg.norm(x, axis=-1, keepdims=True) for x in (axis, direction)]
    if axis.ndim != 1 or not all(((x > 1e-12) & (x < 1e150)).all() for x in lengths):
        cause = f"{what} is {shown(value)}, expected one axis, and no vector of length 0"
        raise StateError(cause, remedy)
    unit = tuple((axis / lengths[0]).tolist())
    return Task("direction", name, unit, weights.get(name, (1.0, 1.0))[0]), direction / lengths[1]


def _read_weights(weights: Mapping[str, Numbers] | None) -> Weights:
    remedy = 'give {"frame": weight} or {"frame": (rotation weight, position weight)}'
    by_frame = {}
    for name, value in _items("weights", weights):
        what = f"the weight of {shown(name)}"
        pair = real_array(what, value, (), remedy)
        if pair.shape not in ((), (2,)) or not ((pair >= 0.0) & (pair < 1e12)).all():
            raise StateError(f"{what} is {shown(value)}, expected numbers of at least 0", remedy)
        rotation, position = np.broadcast_to(pair, (2,)).tolist()
        by_frame[name] = rotation, position
    return by_frame


def _items(name: str, value: object) -> list[tuple[str, object]]:
    """The items of a dict; none for None."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        raise StateError(
            f"{name} is {shown(value)}, expected a dict by frames", f'give {name}={{"frame": ...}}'
        )
    return list(value.items())


def moving_joints(robot: Robot, moving: str | Sequence[str] | None) -> np.ndarray:
    """(nv,): whether a coordinate may move; modes of flexible links only if `moving` names them."""
    mask = np.ones(robot.nv, dtype=bool)
    for joint in robot.joints:
        mask[joint.v_slice] = joint.modes is None
    if moving is not None:
        mask[:] = False
        mask[robot.select(moving)] = True
    return mask


def check_limits(robot: Robot, moving: np.ndarray) -> None:
    """Raise for limits that cannot be enforced: of planar and free joints, where q' is not v."""
    limited = np.isfinite(robot.lower) | np.isfinite(robot.upper)
    for joint in robot.manifold.curved:
        if joint.kind != COMPOUND and limited[joint.q_slice].any() and moving[joint.v_slice].any():
            raise StateError(
                f"reach: limits of the {joint.kind} joint {joint.name!r} cannot be enforced",
                "give limits=False, leave it out of moving=, or build it from prismatic and "
                "revolute joints",
            )


def configuration(robot: Robot, name: str, value: Numbers) -> np.ndarray:
    """Finite configurations (..., nq), quaternions of unit length."""
    remedy = f"give {robot.nq} numbers, with any batch axes in front"
    q = robot.normalize(_finite(name, value, (robot.nq,), remedy))
    check_loops(robot, f"reach: {name}", q)
    return q


def translational(robot: Robot) -> np.ndarray:
    """(nv,): whether a coordinate is a length."""
    cluster_of = {k: cluster for cluster in robot.clusters for k in cluster.bodies}
    mask: list[bool] = []
    for joint in robot.joints:
        slides, cluster = list(joint.row.slides), cluster_of.get(joint.index)
        if cluster is not None and not cluster.modes:
            start = sum(robot.joints[k].row.nv for k in cluster.bodies if k < joint.index)
            slides = [x for c, x in enumerate(slides, start) if c in cluster.free]
        mask += slides[: joint.v_slice.stop - joint.v_slice.start]
    return np.array(mask, dtype=bool)
