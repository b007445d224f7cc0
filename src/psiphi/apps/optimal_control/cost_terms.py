"""Costs bound to a robot: their rows r on any scalars, and their slopes on a tape.

    l = sum w r^2 / 2      l_x = sum w r r_x      l_xx = sum w r_x* r_x  (Gauss-Newton)

x = (delta, dv) is a change of the state in the tangent space, q exp(delta). The rows of frames are
those of `pp.reach` (`apps/ik/ik_tasks.py`), with the sign of "desired minus current". Slopes are
exact: derivatives of the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import shown
from psiphi.apps.ik.ik_tasks import Task
from psiphi.apps.optimal_control.contact_sequence.held_contacts import ROWS as ROWS_OF_CONTACT
from psiphi.apps.optimal_control.contact_sequence.held_contacts import HeldFrames
from psiphi.apps.optimal_control.cost import Cost
from psiphi.compiler.autodiff.tape_derivatives import push_forward
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.loops.closure_types import perpendicular_axes
from psiphi.model.spatial.branch_free import maximum
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import dot
from psiphi.robot.robot import Robot
from psiphi.simulation.control.law_arrays import LawArray, flat_entries

FRAME_TASKS = {"pose": "pose", "orientation": "pose", "point": "point", "direction": "direction"}
GOAL_SIZES = {"pose": 12, "orientation": 12, "point": 3, "direction": 3, "center_of_mass": 3}
ROWS = {"pose": 6, "orientation": 3, "point": 3, "direction": 2, "center_of_mass": 3, "momentum": 6}
CONTACT_ROWS = {"force": 3, "friction": 4, "ground": 1}  # of each contact
CONTACT_GOALS = {"force": 3, "ground": 1}
REMEDY = "use arithmetic, NumPy's elementary functions and functions of the robot: help(pp.law)"


class Variables(NamedTuple):
    """What costs depend on: arrays of floats or of tape expressions."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray  # the torques of the motors
    f: np.ndarray = np.zeros(0)  # the forces on held contacts, row by row
    hold: np.ndarray = np.zeros(0)  # 1 for each contact that holds, else 0


class Slopes(NamedTuple):
    """A cost and its derivatives, as lists."""

    value: Any
    x: list  # (2 nv,)
    u: list  # (nu,)
    xx: list  # (2 nv, 2 nv), both halves
    ux: list  # (nu, 2 nv)
    uu: list  # (nu, nu), both halves


@dataclass(frozen=True, eq=False)
class CostTerm:
    """A cost of one robot."""

    cost: Cost
    robot: Robot
    motor_count: int
    row_count: int  # of the cost, before rows of weight 0 are dropped
    goal_size: int
    contacts: HeldFrames = ()  # of the problem: frames, and "point" or "pose"

    @property
    def name(self) -> str:
        return self.cost.name

    @cached_property
    def _full_weights(self) -> np.ndarray:
        """(row_count,)."""
        weights, count = self.cost.weight, self.row_count
        if self.cost.kind == "pose" and weights.shape == (2,):
            weights = np.repeat(weights, 3)
        if weights.shape not in ((), (count,)):
            either = "(w_R, w_p), or 6" if self.cost.kind == "pose" else f"one, or {count}"
            raise StateError(
                f"pp.cost.{self.cost.kind} has {len(weights)} weights, expected {either}",
                "give one number, or one for each row",
            )
        return np.broadcast_to(weights, (count,))

    @property
    def kept(self) -> np.ndarray:
        """The rows with a positive weight."""
        return np.flatnonzero(self._full_weights > 0.0)

    @property
    def weights(self) -> np.ndarray:
        """The weights of these rows."""
        return self._full_weights[self.kept]

    @property
    def has_goal(self) -> bool:
        """Whether `solve` gives the desired value."""
        return self.cost.at is None

    @property
    def depends_on_torques(self) -> bool:
        return self.cost.kind in ("torque", "of")

    @property
    def depends_on_contacts(self) -> bool:
        """Whether it reads the forces of contacts, or which of them hold."""
        return self.cost.kind in CONTACT_ROWS

    def rows(self, x: Variables, goal: list) -> list:
        """The rows with positive weights."""
        every = self._every_row(x, goal)
        return [every[i] for i in self.kept]

    def _every_row(self, x: Variables, goal: list) -> list:
        cost, robot, d = self.cost, self.robot, np.array(goal)
        if cost.kind in FRAME_TASKS or cost.kind == "center_of_mass":
            kind = FRAME_TASKS.get(cost.kind, "mass")
            task = Task(kind, cost.frame, cost.axis, 1.0, float(cost.kind != "orientation"))
            residuals = task.residuals(robot, x.q, goal)
            return [e for residual in residuals for e in residual.error]
        if cost.kind == "posture":
            return entries(robot.manifold.log(d, x.q))
        if cost.kind == "speed":
            return entries(x.v - d)
        if cost.kind == "torque":
            return entries(x.u - d)
        if cost.kind == "momentum":
            return entries(robot.centroidal_momentum_matrix(x.q) @ x.v - d)
        if cost.kind in CONTACT_ROWS:
            return self._contact_rows(x, goal)
        assert cost.function is not None
        return function_rows(cost.function, x)

    def _contact_rows(self, x: Variables, goal: list) -> list:
        """The rows of each contact, one contact after the other."""
        rows, place, up = [], 0, up_direction(self.robot)
        for i, (frame, kind) in enumerate(self.contacts):
            place += len(ROWS_OF_CONTACT[kind])
            if self.cost.kind == "ground":
                height = dot(entries(self.robot.frame_pose(x.q, frame)[:3, 3]), up)
                height, lowest = height - goal[0], self.cost.number - (height - goal[0])
                rows.append(x.hold[i] * height + (1.0 - x.hold[i]) * maximum(lowest, 0.0))
                continue
            f = [x.f[k] for k in range(place - 3, place)]
            if self.cost.kind == "force":
                rows += [a - b for a, b in zip(f, goal, strict=True)]
                continue
            most = (self.cost.number * 0.5**0.5) * dot(f, up)
            across = [dot(f, axis.tolist()) for axis in perpendicular_axes(up)]
            rows += [maximum(sign * x - most, 0.0) for x in across for sign in (1.0, -1.0)]
        return rows

    @property
    def key(self) -> list:
        """The part of the cache key: everything that the code depends on."""
        cost = self.cost
        code: Any = ""
        if cost.function is not None:
            traced = _traced_function(self.robot, cost.function, self.motor_count)
            code = f"{traced.tape.nodes} {traced.stores}"
        more = [cost.number, self.contacts] * self.depends_on_contacts
        return [cost.kind, cost.frame, cost.axis, self.kept.tolist(), code, *more]


def function_rows(function: Callable[..., Any], x: Variables) -> list:
    """The rows that a user's function returns, at one state."""
    traced = x.q.dtype == object
    values = [LawArray.of(part) if traced else part for part in (x.q, x.v, x.u)]
    try:
        rows = flat_entries(function(*values)).reshape(-1)
    except Exception as error:
        cause, remedy = str(error).partition("\n")[0], REMEDY
        if isinstance(error, Error):
            cause, remedy = error.cause, error.remedy or REMEDY
        what = f"the function of pp.cost.of: {type(error).__name__}: {cause}"
        raise StateError(what, remedy) from error
    if not len(rows) or not all(isinstance(r, Scalar | int | float | np.number) for r in rows):
        cause = f"the function of pp.cost.of returns {shown(rows)}, expected a list of numbers"
        raise StateError(cause, REMEDY)
    return rows.tolist()


def _traced_function(robot: Robot, function: Callable[..., Any], motor_count: int) -> Any:
    sizes = {"q": robot.nq, "v": robot.nv, "u": motor_count}

    def rule(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> dict[str, list]:
        return {"r": function_rows(function, Variables(q, v, u))}

    return trace_rule("rows", [Argument(name, (n,)) for name, n in sizes.items()], rule)


def bind_cost(cost: Cost, robot: Robot, motor_count: int, contacts: HeldFrames = ()) -> CostTerm:
    """The cost of this robot, checked."""
    kind = cost.kind
    sizes = {"posture": robot.nq, "speed": robot.nv, "torque": motor_count, "momentum": 6}
    rows = {"posture": robot.nv, "speed": robot.nv, "torque": motor_count}
    if kind in FRAME_TASKS:
        robot.frame(cost.frame)
    if kind in ("center_of_mass", "momentum"):
        robot.require_mass(f"pp.cost.{kind}", "leave this cost out")
    if kind == "torque" and not motor_count:
        raise StateError(f"{robot.name} has no motors", "leave pp.cost.torque out")
    if kind in CONTACT_ROWS:
        if not contacts:
            cause = f"pp.cost.{kind}, and the problem has no contacts"
            raise StateError(cause, 'give contacts=["left_foot", ...]')
        count = len(contacts) * CONTACT_ROWS[kind]
        goal = CONTACT_GOALS.get(kind, 0)
        term = CostTerm(cost, robot, motor_count, count, goal, contacts)
    elif kind == "of":
        assert cost.function is not None
        count = _check_function(robot, cost.function, motor_count)
        term = CostTerm(cost, robot, motor_count, count, 0)
    else:
        count = rows.get(kind) or ROWS[kind]
        term = CostTerm(cost, robot, motor_count, count, sizes.get(kind) or GOAL_SIZES[kind])
    assert len(term.weights)  # reads the weights
    return term


def _check_function(robot: Robot, function: Callable[..., Any], motor_count: int) -> int:
    """The number of rows; the trace must agree with the function at two states."""
    traced = _traced_function(robot, function, motor_count)
    count, rng = len(traced.stores), np.random.default_rng(0)
    states = [Variables(robot.neutral(), np.zeros(robot.nv), np.zeros(motor_count))]
    sizes = robot.nv, motor_count
    states.append(Variables(robot.random(rng), *(rng.standard_normal(n) for n in sizes)))
    for x in states:
        rows = np.array(function_rows(function, x), dtype=float)
        again = _evaluate(traced, x)
        if rows.shape != again.shape or not np.allclose(rows, again, atol=1e-9, equal_nan=True):
            cause = "the function of pp.cost.of and its trace differ: it branches on a number"
            raise StateError(cause, REMEDY)
    return count


def _evaluate(traced: Any, x: Variables) -> np.ndarray:
    nodes = [node for *_, node in traced.stores]
    values = evaluate(traced.tape, nodes, lambda place, i: float(x[int(place)][i]))
    return np.array(values, dtype=float)


# -- sums over terms


def weighted_sum(terms: Sequence[CostTerm], x: Variables, goals: list, weights: list) -> Any:
    """sum w r^2 / 2."""
    total: Any = 0.0
    for row, w in zip(_all_rows(terms, x, goals), weights, strict=True):
        total = total + w * (row * row)
    return 0.5 * total


def term_values(terms: Sequence[CostTerm], x: Variables, goals: list, weights: list) -> list:
    """sum w r^2 / 2 of each term."""
    values, at, place = [], 0, 0
    for term in terms:
        goal, w = goals[place : place + term.goal_size], weights[at : at + len(term.kept)]
        values.append(weighted_sum([term], x, goal, w))
        at, place = at + len(term.kept), place + term.goal_size
    return values


def slopes(
    robot: Robot,
    terms: Sequence[CostTerm],
    x: Variables,
    goals: list,
    weights: list,
    force_slopes: Sequence[list] = (),
) -> Slopes:
    """The sum and its slopes; q, v and u are arrays of leaves of a tape, and `force_slopes` the
    derivatives of the forces by (delta, dv, du)."""
    n, m = robot.nv, len(x.u)
    rows = _all_rows(terms, x, goals)
    seeds = tangent_seeds(robot, x)
    if any(term.depends_on_contacts for term in terms):  # the tape stops at the forces
        for f, row in zip(x.f, force_slopes, strict=True):
            if isinstance(f, Scalar) and not is_constant(f):
                for seed, y in zip(seeds, row, strict=True):
                    seed[f.index] = -y if f.negative else y
    tape: Tape = x.v[0].tape
    nodes = [tape.operand(row) for row in rows]
    columns = [push_forward(tape, nodes, seed) for seed in seeds]
    size = 2 * n + m
    gradient: list[Any] = [0.0] * size
    H: list[list[Any]] = [[0.0] * size for _ in range(size)]
    value: Any = 0.0
    for k, (row, w) in enumerate(zip(rows, weights, strict=True)):
        value = value + w * (row * row)
        J = [column[k] for column in columns]
        weighted = [w * y if _is_nonzero(y) else 0.0 for y in J]
        for i, y in enumerate(weighted):
            if not _is_nonzero(y):
                continue
            gradient[i] = gradient[i] + y * row
            for j in range(i, size):
                if _is_nonzero(J[j]):
                    H[i][j] = H[j][i] = H[i][j] + y * J[j]
    X = 2 * n
    xx, ux, uu = [r[:X] for r in H[:X]], [r[:X] for r in H[X:]], [r[X:] for r in H[X:]]
    return Slopes(0.5 * value, gradient[:X], gradient[X:], xx, ux, uu)


def cost_curvature(
    robot: Robot,
    terms: Sequence[CostTerm],
    x: Variables,
    goals: list,
    weights: list,
    others: list,
) -> dict[str, list]:
    """The gradient of the sum by (delta, dv, du), its exact Hessian, and its derivative by leaves
    `others` of the tape, by rows: for flat joints, whose tangent space is that of q."""
    found = slopes(robot, terms, x, goals, weights)
    gradient, tape = [*found.x, *found.u], x.v[0].tape
    nodes = [tape.operand(y) for y in gradient]
    seeds = tangent_seeds(robot, x)
    seeds += [{leaf.index: 1.0} for leaf in others]
    columns = [push_forward(tape, nodes, seed) for seed in seeds]
    rows = [[column[i] for column in columns] for i in range(len(nodes))]
    size = len(nodes)
    return {
        "gradient": gradient,
        "hessian": [y for row in rows for y in row[:size]],
        "mixed": [y for row in rows for y in row[size:]],
    }


def tangent_seeds(robot: Robot, x: Variables) -> list[dict[int, Any]]:
    """The changes of the leaves for unit changes delta, dv and du."""
    q, n, found = x.q, robot.nv, []
    for unit in np.eye(n):
        change = robot.manifold.rate(q, unit.astype(object))
        pairs = zip(q, change, strict=True)
        found.append({leaf.index: dq for leaf, dq in pairs if _is_nonzero(dq)})
    return [*found, *({leaf.index: 1.0} for leaf in (*x.v, *x.u))]


def up_direction(robot: Robot) -> list[float]:
    """The unit vector against gravity: the normal of the ground; z without gravity."""
    g = np.array(robot.model.gravity_vector, dtype=float)
    length = float(np.linalg.norm(g))
    return (-g / length).tolist() if length > 0.0 else [0.0, 0.0, 1.0]


def excess_rows(kept: Sequence[tuple[int, float, float]], x: list, shifts: list) -> list:
    """max(0, s + c) of each bound, c = -(x_i - bound) or x_i - bound: the rows of an augmented
    Lagrangian of limits; `kept`: (index, sign, bound)."""
    beyond = [sign * (x[i] - bound) for i, sign, bound in kept]
    return [maximum(s + c, 0.0) for s, c in zip(shifts, beyond, strict=True)]


def _all_rows(terms: Sequence[CostTerm], x: Variables, goals: list) -> list:
    rows, place = [], 0
    for term in terms:
        rows += term.rows(x, goals[place : place + term.goal_size])
        place += term.goal_size
    return rows


def is_constant(x: Scalar) -> bool:
    """Whether a tape expression is a number."""
    return x.tape.nodes[x.index][0] is Op.CONST


def _is_nonzero(x: object) -> bool:
    return isinstance(x, Scalar) or x != 0
