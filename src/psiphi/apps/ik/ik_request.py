"""What `pp.reach` was given, read: tasks, their goals, weights, and which joints may move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_list, check_robot, finite_array, read_array, real_array
from psiphi.apps.ik.ik_tasks import SLIDE, TURN, Task
from psiphi.compiler.passes import UNROLL_LIMIT, is_large
from psiphi.model.builder.pose_values import read_pose
from psiphi.model.loops.cluster_joints import COMPOUND
from psiphi.model.model import Pose
from psiphi.model.state_checks import check_loops
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.task_space_controller import are_rotations

MASS = "center_of_mass"
FAR = 1e9  # m: nothing is wanted beyond
_finite = partial(finite_array, most=FAR)
ORDER = 'give names of targets, the most important first: order=["tool", "center_of_mass"]'
FORM = "give a pose (4, 4) or a point (3,), with any batch axes in front"
Goal = tuple[Task, np.ndarray]


def robot_of(given: Any) -> Robot:
    """A robot with joints."""
    check_robot("reach", given, Robot)
    if not given.joints:
        raise StateError(f"reach: {given.name} has no joints", "give a robot that moves")
    return given


def check_size(robot: Robot) -> None:
    """Small enough to be written out."""
    if is_large(robot):
        cause = (
            f"reach: {robot.name} has {len(robot.bodies)} bodies, expected at most {UNROLL_LIMIT}"
        )
        raise StateError(cause, "take a part of it: robot.subtree(...)")


def ties(system: System) -> list[Goal]:
    """The loops of a closed system: that nothing is open."""
    robot, out = system.robot, []
    for c in system.closure.constraints:
        size = max(size_of(robot, name) for name in (c.first, c.second))
        tie = (c.kind, c.first, c.second, tuple(c.shape.axis), tuple(c.shape.axis2), c.shape.length)
        out.append(
            Task("loop", c.name, (), float(TURN in c.units), (SLIDE in c.units) * size**-2, tie)
        )
    for f in system.closure.mimics:
        slides = robot.joint(f.joint).row.slides[0]
        out.append(
            Task(
                "follow",
                f.name,
                (),
                float(not slides),
                float(slides),
                (f.joint, f.leader, f.multiplier, f.offset),
            )
        )
    return [(task, np.zeros(1)) for task in out if task.units]


def ordered(asked: list[Goal], order: Any, tied: list[Goal]) -> list[Goal]:
    """The tasks with their levels: loops first, then what `order` does not name, then what it names, one after the other."""
    names = [] if order is None else as_list("order", order, ORDER)
    known = {task.frame or MASS for task, _ in asked}
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise StateError(
                f"order: {shown(name)} is no target",
                nearest(name, sorted(known)) if isinstance(name, str) else ORDER,
            )
    if len(set(names)) < len(names):
        raise StateError(f"order is {shown(order)}: a name twice", ORDER)
    found = [
        (
            replace(
                task,
                level=bool(tied)
                + (names.index(x) + 1 if (x := task.frame or MASS) in names else 0),
            ),
            goal,
        )
        for task, goal in asked
    ]
    levels = sorted({task.level for task, _ in (*tied, *found)})
    return [(replace(task, level=levels.index(task.level)), goal) for task, goal in (*tied, *found)]


def goals(
    robot: Robot,
    targets: Any,
    directions: Any,
    center_of_mass: Any,
    weights: Any,
    needed: bool = True,
) -> list[Goal]:
    """Every task with its goal (..., size)."""
    weigh = _weights(weights)
    out = [_placed(robot, frame, value, weigh) for frame, value in _pairs("targets", targets)]
    out += [
        _directed(robot, frame, value, weigh) for frame, value in _pairs("directions", directions)
    ]
    if center_of_mass is not None:
        robot.require_mass("reach", "leave center_of_mass out")
        place = _finite("center_of_mass", center_of_mass, (3,), "give a point (3,)")
        out.append((Task("mass", "", (), *weigh.get(MASS, (1.0, size_of(robot) ** -2))), place))
    known = {task.frame or MASS for task, _ in out}
    for name in weigh:
        if name not in known:
            raise StateError(f"weights: {shown(name)} is no target", nearest(name, sorted(known)))
    out = [(task, goal) for task, goal in out if task.units]
    if not out and needed:
        raise StateError(
            "reach: nothing is wanted", 'give {"frame": pose}, directions=, or center_of_mass='
        )
    return out


@lru_cache(maxsize=256)
def size_of(robot: Robot, frame: str = "") -> float:
    """How far a frame (or the centre of mass) gets, in m, two digits: a turn by 1 rad weighs as much as moving that far."""
    q = robot.random(seed=0, size=256)
    places = robot.frame_pose(q, frame)[:, :3, 3] if frame else robot.center_of_mass(q)
    spread = float(np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=-1).mean()))
    return float(f"{spread:.1e}") if spread > 1e-9 else 1.0


def _placed(robot: Robot, frame: Any, value: Any, weigh: dict) -> Goal:
    name = robot.frame(frame).name
    what = f"the target of {shown(name)}"
    if isinstance(value, Pose):
        value = read_pose(what, value).matrix
    array, fault = read_array(value, None)
    if fault:
        raise StateError(f"{what} {fault}", FORM)
    weights = weigh.get(name, (1.0, size_of(robot, name) ** -2))
    if array.shape[-2:] == (4, 4):
        T = _finite(what, array, (4, 4), FORM)
        if (
            not are_rotations(T[..., :3, :3])
            or not (np.abs(T[..., 3, :] - [0.0, 0.0, 0.0, 1.0]) < 1e-9).all()
        ):
            raise StateError(
                f"{what} is no pose: a rotation and 0 0 0 1 below",
                "give one like robot.frame_pose(q, frame)",
            )
        return Task("pose", name, (), *weights), T[..., :3, :].reshape(*T.shape[:-2], 12)
    if array.shape[-1:] == (3,):
        return Task("point", name, (), *weights), _finite(what, array, (3,), FORM)
    raise StateError(f"{what} has shape {array.shape}, expected (..., 4, 4) or (..., 3)", FORM)


def _directed(robot: Robot, frame: Any, value: Any, weigh: dict) -> Goal:
    name = robot.frame(frame).name
    what, form = (
        f"the direction of {shown(name)}",
        "give (axis in the frame, direction in the world)",
    )
    pair = as_list(what, value, form)
    if len(pair) != 2:
        raise StateError(f"{what} is {shown(value)}, expected two vectors", form)
    axis, to = _finite(what, pair[0], (3,), form), _finite(what, pair[1], (3,), form)
    lengths = [np.linalg.norm(x, axis=-1, keepdims=True) for x in (axis, to)]
    if axis.ndim != 1 or not all(((x > 1e-12) & (x < 1e150)).all() for x in lengths):
        raise StateError(
            f"{what} is {shown(value)}, expected one axis, and no vector of length 0", form
        )
    unit = tuple((axis / lengths[0]).tolist())
    return Task("direction", name, unit, weigh.get(name, (1.0, 1.0))[0]), to / lengths[1]


def _weights(given: Any) -> dict[str, tuple[float, float]]:
    form = 'give {"frame": weight} or {"frame": (of the rotation, of the position)}'
    out = {}
    for name, value in _pairs("weights", given):
        pair = real_array(f"the weight of {shown(name)}", value, (), form)
        if pair.shape not in ((), (2,)) or not ((pair >= 0.0) & (pair < 1e12)).all():
            raise StateError(
                f"the weight of {shown(name)} is {shown(value)}, expected numbers of at least 0",
                form,
            )
        turn, slide = np.broadcast_to(pair, (2,)).tolist()
        out[name] = turn, slide
    return out


def _pairs(name: str, given: Any) -> list[tuple[Any, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise StateError(
            f"{name} is {shown(given)}, expected a dict by frames", f'give {name}={{"frame": ...}}'
        )
    return list(given.items())


def moving_joints(robot: Robot, moving: Any) -> np.ndarray:
    """(nv,): whether a coordinate may move; shapes of links that bend do, where they are named."""
    out = np.ones(robot.nv, dtype=bool)
    for joint in robot.joints:
        out[joint.v_slice] = joint.modes is None
    if moving is not None:
        out[:] = False
        out[robot.select(moving)] = True
    return out


def check_limits(robot: Robot, moving: np.ndarray) -> None:
    """Refuse limits that no step keeps: of the places of a joint whose rates are not those of its q, planar or free."""
    ends = np.isfinite(robot.lower) | np.isfinite(robot.upper)
    for joint in robot.manifold.curved:
        if joint.kind != COMPOUND and ends[joint.q_slice].any() and moving[joint.v_slice].any():
            raise StateError(
                f"reach: limits of the {joint.kind} joint {joint.name!r} are not kept",
                "give limits=False, leave it out of moving=, or make it of slides and hinges",
            )


def configuration(robot: Robot, name: str, given: Any) -> np.ndarray:
    """Finite configurations (..., nq), quaternions of unit length."""
    q = _finite(name, given, (robot.nq,), f"give {robot.nq} numbers, with any batch axes in front")
    q = robot.normalize(q)
    check_loops(robot, f"reach: {name}", q)
    return q


def slides(robot: Robot) -> np.ndarray:
    """(nv,): whether a coordinate is a length."""
    inside = {
        k: cluster
        for cluster in (robot.embedding.clusters if robot.embedding else ())
        for k in cluster.bodies
    }
    out: list[bool] = []
    for joint in robot.joints:
        own, cluster = list(joint.row.slides), inside.get(joint.index)
        if cluster is not None and not cluster.modes:
            start = sum(robot.joints[k].row.nv for k in cluster.bodies if k < joint.index)
            own = [x for c, x in enumerate(own, start) if c in cluster.free]
        out += own[: joint.v_slice.stop - joint.v_slice.start]
    return np.array(out, dtype=bool)
