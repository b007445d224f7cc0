"""Arguments of `pp.OptimalControl` and `solve`, checked and brought to the form of the kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import listed, nearest, shown
from psiphi._util.validate import as_list, finite_array, real_array
from psiphi.apps.optimal_control.contact_sequence.held_contacts import HeldFrames
from psiphi.apps.optimal_control.control_blocks import STATE_LIMIT
from psiphi.apps.optimal_control.cost import Cost
from psiphi.apps.optimal_control.cost_terms import CostTerm, bind_cost
from psiphi.compiler.passes import is_large
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model import motors as model_motors
from psiphi.model.builder.pose_values import read_pose
from psiphi.model.model import Pose
from psiphi.model.state_checks import check_states, check_unit_quaternions
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.task_space_controller import are_rotations
from psiphi.simulation.control.torque_input import UNBOUND

MAX_SPEEDS = 20  # nv of the largest robot: the code of a node is unrolled
COST_REMEDY = "give costs of pp.cost: running=[pp.cost.torque(1e-4), pp.cost.speed(0.1)]"
TORQUE_REMEDY = "give True (robot.effort), a number, one for each motor, (low, high), or None"
LIMIT_WORDS = ("kept", "soft")
NUMBER_GOALS = ("speed", "torque", "momentum", "force", "ground")  # one number for all entries
FAR = 1e9  # the largest number of a goal
POSE_PARTS = {"pose": "matrix", "orientation": "rotation", "point": "translation"}


def check_problem_robot(robot: Any) -> Robot:
    """`robot`, checked to be one that the solver supports."""
    if isinstance(robot, System):
        cause = "OptimalControl of a closed chain is not implemented"
        raise StateError(cause, "embed its loops in the tree: pp.embed(robot, loops, at=q)")
    if not isinstance(robot, Robot):
        raise StateError(f"OptimalControl of {shown(robot)}, expected a robot", "pp.load makes one")
    if not robot.nv:
        raise StateError(f"OptimalControl: {robot.name} has no joints", "give a robot that moves")
    if any(joint.modes is not None for joint in robot.model.joints):
        cause = (
            f"OptimalControl: {robot.name} has flexible links, whose springs are not implemented"
        )
        raise StateError(cause, "give the robot with rigid links")
    for joint in robot.manifold.cluster_joints:
        kinematics = joint.kinematics
        if any(kinematics.q_index(c) < 0 for c in kinematics.cluster.free):
            cause = f"OptimalControl: a free joint of the embedded loops of {robot.name}"
            cause += f" ({joint.name}) has several coordinates"
            raise StateError(cause, 'choose other free joints: pp.embed(..., free="hinge")')
    if is_large(robot.model) or robot.nv > MAX_SPEEDS:
        cause = f"OptimalControl: {robot.name} has nv = {robot.nv}, expected at most {MAX_SPEEDS}"
        raise StateError(cause, "lock joints that do not matter: robot.lock(...)")
    return robot


def motor_indices(robot: Robot, actuated: Any, passive: Any) -> tuple[int, ...]:
    """The indices in v of the joints with motors."""
    without = model_motors.unactuated_joints(robot, actuated, passive)
    unactuated = model_motors.velocity_indices(robot, without)
    found = np.setdiff1d(np.arange(robot.nv), unactuated)
    if not len(found):
        raise StateError(f"{robot.name} has no motors", 'name some: actuated=["elbow"]')
    return tuple(int(i) for i in found)


def read_terms(
    robot: Robot, name: str, costs: Any, motor_count: int, contacts: HeldFrames = ()
) -> tuple[CostTerm, ...]:
    """The costs of `running` or `final`, bound to the robot."""
    each = as_list(name, costs, COST_REMEDY)
    for cost in each:
        if not isinstance(cost, Cost):
            raise StateError(f"{name} holds {shown(cost)}, expected a cost", COST_REMEDY)
    terms = tuple(bind_cost(cost, robot, motor_count, contacts) for cost in each)
    for term in terms if name == "final" else ():
        if term.cost.kind == "torque" or term.depends_on_contacts:
            what = "torques" if term.cost.kind == "torque" else "contacts"
            raise StateError(f"final has a cost of {what}, which end before it", "move it")
    for term in terms:
        if term.goal_size and not term.has_goal:
            desired_value(term)
    return terms


def check_terms(
    robot: Robot, running: Sequence[CostTerm], final: Sequence[CostTerm], motors: Any
) -> None:
    """Raise an error for problems that have no unique step, or goals that contradict each other."""
    weighted = np.zeros(len(motors), dtype=bool)
    for term in running:
        if term.cost.kind == "torque":
            weighted[term.kept] = True
        elif term.cost.kind == "of":
            weighted[:] = True
    if not weighted.all():
        names = [joint_name(robot, motors[i]) for i in np.flatnonzero(~weighted)]
        what = "the torques" if not weighted.any() else f"the torque of {', '.join(names)}"
        cause = f"OptimalControl: nothing limits {what}: Quu may be singular"
        raise StateError(cause, "add pp.cost.torque(1e-6) to running")
    known: dict[str, CostTerm] = {}
    for term in (*running, *final):
        if not term.has_goal:
            continue
        other = known.setdefault(term.name, term)
        if (other.cost.kind, other.cost.along) != (term.cost.kind, term.cost.along):
            cause = f"two costs share the goal {term.name!r}, and are not of the same kind"
            raise StateError(cause, 'give one of them another name: name="via"')


def joint_name(robot: Robot, index: int) -> str:
    """The name of the joint of a coordinate of v."""
    return next(joint.name for joint in robot.joints if index in joint.coordinates)


def read_bounds(
    robot: Robot, torque: Any, motors: Sequence[int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """(low, high) of the torques (nu,), or None."""
    if torque is None or torque is False:
        return None
    index, count = list(motors), len(motors)
    if torque is True:
        effort = np.minimum(robot.effort[index], UNBOUND)
        return (-effort, effort) if (effort < UNBOUND).any() else None
    pair = torque if isinstance(torque, tuple) and len(torque) == 2 else None
    arrays = []
    for value in pair if pair is not None else (torque,):
        row = real_array("torque", value, (), TORQUE_REMEDY)
        row = row[index] if row.shape == (robot.nv,) and count != robot.nv else row
        if row.shape not in ((), (count,)) or np.isnan(row).any():
            cause = f"torque is {shown(torque)}, expected one number or {count} of them"
            raise StateError(cause, TORQUE_REMEDY)
        arrays.append(np.clip(np.broadcast_to(row, (count,)), -UNBOUND, UNBOUND))
    low, high = arrays if pair is not None else (-arrays[0], arrays[0])
    if (low >= high).any():
        i = int(np.argmax(low >= high))
        where = joint_name(robot, motors[i])
        cause = f"torque: the bounds of {where} are {low[i]:g} and {high[i]:g}"
        raise StateError(cause, "give low < high; joints without a motor are passive=[...]")
    return low, high


def read_limits(robot: Robot, limits: Any, speed: Any) -> tuple[tuple[STATE_LIMIT, ...], str]:
    """The limits of the state, and "kept", "soft" or ""."""
    words = {_limit_word("limits", limits), _limit_word("speed", speed)} - {""}
    if len(words) > 1:
        raise StateError('limits and speed are "kept" and "soft"', "give the same word for both")
    found: list[STATE_LIMIT] = []
    if limits not in (None, False):
        for joint in robot.manifold.cluster_joints:
            bounds = np.concatenate([x[joint.q_slice] for x in (robot.lower, robot.upper)])
            if np.isfinite(bounds).any():
                cause = f"limits={shown(limits)}: the joints of the embedded loop {joint.name} have"
                raise StateError(
                    f"{cause} limits, which are not implemented",
                    "add a pp.cost.of that grows there",
                )
        for i, k in zip(*(x.tolist() for x in robot.manifold.flat), strict=True):
            found += _two_sides(k, float(robot.lower[i]), float(robot.upper[i]))
        if not found:
            cause = f"limits={shown(limits)}, and no joint of {robot.name} has a limit"
            raise StateError(cause, "leave it out, or give limits to the joints")
    if speed is not None and speed is not False:
        is_word = isinstance(speed, str) or speed is True
        most = robot.velocity_limit if is_word else real_array("speed", speed, (), "give rad/s")
        if most.shape not in ((), (robot.nv,)) or not (most > 0.0).all():
            cause = f"speed is {shown(speed)}, expected one or nv = {robot.nv} positive numbers"
            raise StateError(cause, 'give rad/s, or "kept" for the robot\'s velocity limits')
        for k, x in enumerate(np.broadcast_to(most, (robot.nv,)).tolist()):
            found += _two_sides(robot.nv + k, -x, x)
        if not found:
            cause = f"speed={shown(speed)}, and {robot.name} has no velocity limits"
            raise StateError(cause, "give them as numbers")
    return tuple(found), words.pop() if words else ""


def _limit_word(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    if isinstance(value, str) and value not in LIMIT_WORDS:
        raise StateError(
            f"{name} is {shown(value)}, expected one of None, kept, soft",
            nearest(value, LIMIT_WORDS),
        )
    if name == "limits" and not isinstance(value, str | bool):
        raise StateError(f"limits is {shown(value)}, expected kept or soft", "the limits are the "
                         "robot's: robot.lower, robot.upper")  # fmt: skip
    return value if isinstance(value, str) else "kept"


def _two_sides(k: int, lower: float, upper: float) -> list[STATE_LIMIT]:
    sides = ((k, -1.0, lower), (k, 1.0, upper))
    return [side for side in sides if np.isfinite(side[2])]


# -- goals


def read_goals(
    terms: Sequence[CostTerm], goals: Mapping[str, Any], steps: int
) -> dict[str, np.ndarray]:
    """{name: (..., rows, size)} of the goals that the terms ask for; rows is 1 or steps + 1."""
    check_goal_names(terms, goals)
    asked = {term.name: term for term in terms if term.has_goal}
    return {name: read_goal(term, goals[name], steps) for name, term in asked.items()}


def check_goal_names(terms: Sequence[CostTerm], names: Collection[str]) -> None:
    """Raise an error if a goal is unknown, or missing."""
    asked = {term.name: term for term in terms if term.has_goal}
    for name in names:
        if name not in asked:
            remedy = nearest(name, sorted(asked)) if asked else "give at=None to a cost"
            raise StateError(f"solve: no cost has the goal {name!r}", remedy)
    missing = [name for name in asked if name not in names]
    if missing:
        example = ", ".join(f"{name}=..." for name in asked)
        cause = f"solve: the goals of {listed(missing)} are missing"
        raise StateError(cause, f"give solve(q, {example}), or at= to the cost")


def desired_value(term: CostTerm) -> np.ndarray:
    """`at` of a cost, as (1, size)."""
    what = f"at of pp.cost.{term.cost.kind}"
    value = read_goal(term, term.cost.at, 0, what)
    if value.ndim > 2:
        cause = f"{what} has batch axes {value.shape[:-2]}, expected one desired value"
        raise StateError(cause, "leave at= out, and give the goals to solve()")
    return value


def read_goal(term: CostTerm, value: Any, steps: int, name: str = "") -> np.ndarray:
    """A goal as (..., rows, size); `name` is its name in errors."""
    cost, what = term.cost, name or f"the goal {term.name!r}"
    core = {"pose": (4, 4), "orientation": (3, 3)}.get(cost.kind, (term.goal_size,))
    rows = (steps + 1,) * cost.along
    remedy = f"give shape (..., {', '.join(map(str, (*rows, *core)))})"
    if isinstance(value, Pose) and cost.kind in POSE_PARTS:
        value = getattr(read_pose(what, value), POSE_PARTS[cost.kind])
    is_zero_cost = cost.kind in NUMBER_GOALS and not cost.along
    array = finite_array(what, value, () if is_zero_cost else (*rows, *core), remedy, FAR)
    if isinstance(value, bool | np.bool_):
        raise StateError(f"{what} is {value}, expected numbers", remedy)
    if is_zero_cost and not array.ndim:
        array = np.full(core, array)
    array = finite_array(what, array, (*rows, *core), remedy)
    if cost.kind in ("pose", "orientation"):
        R = array[..., :3, :3]
        last = array[..., 3:, :] - [0.0, 0.0, 0.0, 1.0] if cost.kind == "pose" else np.zeros(1)
        if not are_rotations(R) or not (np.abs(last) < 1e-9).all():
            raise StateError(
                f"{what} is not a {cost.kind}: its rotation is not orthonormal", remedy
            )
        p = array[..., :3, 3:] if cost.kind == "pose" else np.zeros((*R.shape[:-1], 1))
        array = np.concatenate([R, p], axis=-1)
        array = array.reshape(*array.shape[:-2], 12)
    if cost.kind == "direction":
        length = np.linalg.norm(array, axis=-1, keepdims=True)
        if not (length > 1e-12).all():
            raise StateError(f"{what} is a vector of length 0", "give a direction")
        array = array / length
    if cost.kind == "posture":
        check_unit_quaternions(term.robot, what, array)
        array = term.robot.normalize(array)
    return array if cost.along else array[..., None, :]


def joined_goals(
    terms: Sequence[CostTerm], goals: Mapping[str, np.ndarray], rows: slice
) -> np.ndarray | None:
    """(..., rows, n): the goals of all terms side by side; None if they have none."""
    parts = []
    for term in terms:
        if not term.goal_size:
            continue
        value = goals[term.name] if term.has_goal else desired_value(term)
        parts.append(value if value.shape[-2] == 1 else value[..., rows, :])
    if not parts:
        return None
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*lead, x.shape[-1])) for x in parts], axis=-1)


# -- states and torques


def read_start(robot: Robot, q: Numbers, v: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """The start (..., nq), (..., nv), finite, with unit quaternions."""
    q0 = real_array("q", q, (robot.nq,), f"give nq = {robot.nq} numbers")
    is_zero = isinstance(v, int | float) and not isinstance(v, bool) and v == 0
    rest = np.zeros(robot.nv) if is_zero else v
    v0 = real_array("v", rest, (robot.nv,), f"give nv = {robot.nv} numbers")
    inputs = Argument("q", (robot.nq,), "q"), Argument("v", (robot.nv,), "v")
    check_states(robot, "solve", inputs, (q0, v0))
    return robot.normalize(q0), v0


def check_start_within(
    robot: Robot, limits: Sequence[STATE_LIMIT], q: np.ndarray, v: np.ndarray
) -> None:
    """Raise an error if the start is outside kept limits."""
    state = np.concatenate(np.broadcast_arrays(robot.manifold.positions(q), v), axis=-1)
    for k, sign, bound in limits:
        beyond = sign * (state[..., k] - bound)
        if (beyond > 1e-9).any():
            what = "position" if k < robot.nv else "speed"
            name, most = joint_name(robot, k % robot.nv), float(beyond.max())
            cause = f"solve: the start is outside the limits: the {what} of {name} by {most:.3g}"
            raise StateError(cause, 'move the start inside, or use "soft" limits')


def read_table(name: str, value: Any, rows: int, sizes: Sequence[int], remedy: str) -> np.ndarray:
    """A table (..., rows, n), n one of `sizes`."""
    array = real_array(name, value, (), remedy)
    if array.ndim < 2 or array.shape[-2] != rows or array.shape[-1] not in sizes:
        expected = " or ".join(f"(..., {rows}, {n})" for n in dict.fromkeys(sizes))
        raise StateError(f"{name} has shape {array.shape}, expected {expected}", remedy)
    if not np.isfinite(array).all():
        raise StateError(f"{name} holds numbers that are not finite", "check where they come from")
    return array
