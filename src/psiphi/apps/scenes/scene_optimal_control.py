"""The table [optimal_control] of a scene: a problem of `pp.OptimalControl` with its goals.

    [optimal_control]              dt, steps, torque, limits, speed, limit_weight, hessian: the
                                   arguments of the problem; iterations, tolerance: those of `solve`
    [[optimal_control.running]]    cost, weight, frame, at, rpy, axis: the costs of `pp.cost`
    [[optimal_control.final]]      the same for the last node
    [optimal_control.paths]        NAME = [{ t = 1.0, at = [...] }, ...]: goals that move;
                                   a cost follows one with path = "NAME"

`psiphi optimise` solves the problem from the scene's start; [controller] kind = "mpc" solves it at
every node of a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import Error, StateError
from psiphi.apps.optimal_control import cost as costs
from psiphi.apps.optimal_control.cost import Cost
from psiphi.apps.optimal_control.cost_terms import bind_cost
from psiphi.apps.optimal_control.optimal_control import HESSIANS, OptimalControl
from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
from psiphi.apps.optimal_control.problem_request import (
    LIMIT_WORDS,
    check_problem_robot,
    desired_value,
    motor_indices,
)
from psiphi.apps.optimal_control.receding_horizon import MPC, stacked
from psiphi.apps.scenes.scene_controllers import smooth_share
from psiphi.apps.scenes.scene_robots import joint_coordinates
from psiphi.apps.scenes.toml_table import Table, pose
from psiphi.robot.robot import Robot

FRAMED = ("point", "orientation", "pose", "direction")
KINDS = ("posture", "speed", "torque", *FRAMED, "center_of_mass", "momentum")
MOVING = ("posture", "point", "center_of_mass")  # costs whose goal may follow a path
ZERO = ("speed", "torque", "momentum")  # costs whose desired value is 0 by default
ITERATIONS = 100


class PathGoal:
    """A goal that moves through stops (t, value), at rest at each of them, with the profile of
    minimum jerk in between."""

    def __init__(self, start: np.ndarray, stops: Sequence[tuple[float, np.ndarray]]):
        self.stops = [(0.0, start), *stops]

    def __call__(self, t: float) -> np.ndarray:
        if t >= self.stops[-1][0]:
            return self.stops[-1][1]
        k = next(k for k, stop in enumerate(self.stops) if stop[0] > t) if t > 0.0 else 1
        (t0, begin), (t1, end) = self.stops[k - 1], self.stops[k]
        share, _, _ = smooth_share(min(max((t - t0) / (t1 - t0), 0.0), 1.0), t1 - t0)
        return begin + share * (end - begin)


@dataclass(frozen=True, eq=False)
class SceneProblem:
    """The problem of a scene, its goals that move, and the options of `solve`."""

    problem: OptimalControl
    goals: Mapping[str, Callable[[float], np.ndarray]]
    iterations: int
    tolerance: float

    def solve(self, q: Numbers, v: Numbers, **options: Any) -> OptimalMotion:
        """The motion of least cost from a start, or from a batch of them."""
        nodes = self.problem.dt * np.arange(self.problem.steps + 1)
        chosen: dict[str, Any] = {"iterations": self.iterations, "tolerance": self.tolerance}
        chosen |= options
        chosen |= {name: stacked(f"goal {name!r}", f, nodes, 1) for name, f in self.goals.items()}
        return self.problem.solve(q, v, **chosen)

    def mpc(self, row: Table) -> MPC:
        """The controller of a table [controller] with kind = "mpc"."""
        goals: dict[str, Any] = dict(self.goals)
        return MPC(
            self.problem,
            _count(row, "iterations", 1),
            first=_count(row, "first", self.iterations),
            tolerance=self.tolerance,
            **goals,
        )


def read_optimal_control(
    top: Table, system: object, q0: np.ndarray, motors: Mapping[str, Any]
) -> SceneProblem | None:
    """The problem of the table [optimal_control], if there is one."""
    if "optimal_control" not in top:
        return None
    row = top.table("optimal_control")
    try:
        robot = check_problem_robot(system)
    except Error as error:
        row.fail("", error.cause, error.remedy)
    try:
        count = len(motor_indices(robot, motors.get("actuated"), motors.get("passive")))
    except Error as error:
        top.fail(next(iter(motors), ""), error.cause, error.remedy)
    if "ground" in top:
        row.fail("", "is given, and so is [ground]", "leave [ground] out: contacts are not planned")
    given = _problem_options(row)
    reader = CostReader(robot, q0, count, _paths(row))
    given["running"] = [reader.read(x, "running") for x in row.tables("running")]
    given["final"] = [reader.read(x, "final") for x in row.tables("final")]
    unused = [name for name in reader.paths if name not in reader.used_paths]
    if unused:
        row.fail(f"paths.{unused[0]}", "is not used", f'write path = "{unused[0]}" in a cost')
    iterations = _count(row, "iterations", ITERATIONS)
    tolerance = row.number("tolerance", 1e-7, 0.0)
    row.reject_unknown()
    try:
        problem = OptimalControl(robot, **given, **motors)
    except Error as error:
        word = error.cause.replace("=", " ").replace(":", " ").split()[0]
        row.fail(word if word in row else "", error.cause, error.remedy)
    return SceneProblem(problem, reader.goals, iterations, tolerance)


def _problem_options(row: Table) -> dict[str, Any]:
    """dt, steps, bounds and limits."""
    found: dict[str, Any] = {"dt": row.number("dt", above=0.0), "steps": _count(row, "steps", None)}
    if "torque" in row:
        value = row.get("torque")
        if isinstance(value, dict):
            pair = row.table("torque")
            found["torque"] = tuple(_numbers(pair, key) for key in ("low", "high"))
            pair.reject_unknown()
        else:
            found["torque"] = value if isinstance(value, bool) else _numbers(row, "torque")
    if "limits" in row:
        found["limits"] = row.text("limits", among=LIMIT_WORDS)
    if "speed" in row:
        is_text = isinstance(row.get("speed"), str)
        found["speed"] = row.text("speed", among=LIMIT_WORDS) if is_text else _numbers(row, "speed")
    if "limit_weight" in row:
        found["limit_weight"] = row.number("limit_weight", above=0.0)
    if "hessian" in row:
        found["hessian"] = row.text("hessian", among=HESSIANS)
    return found


def _count(row: Table, key: str, default: int | None) -> int:
    """A positive whole number."""
    value = row.get(key) if default is None else row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        row.fail(key, f"is {value!r}, expected a positive whole number", f"write {key} = 50")
    return value


def _numbers(row: Table, key: str) -> float | list[float]:
    """One number, or a list of them."""
    return row.numbers(key, None) if isinstance(row.get(key), list) else row.number(key)


Stops = list[tuple[float, list[float], Table]]


def _paths(row: Table) -> dict[str, Stops]:
    """{name: stops (t, at)} of [optimal_control.paths]."""
    if "paths" not in row:
        return {}
    table, found = row.table("paths"), {}
    for name in table.values:
        stops: Stops = []
        for stop in table.tables(name):
            stops.append((stop.number("t", above=0.0), stop.numbers("at", None), stop))
            stop.reject_unknown()
        if not stops:
            table.fail(name, "has no stops", f"write {name} = [{{ t = 1.0, at = [...] }}]")
        if any(b[0] <= a[0] for a, b in pairwise(stops)):
            table.fail(name, "its times do not increase", "order the stops by t")
        found[name] = stops
    return found


class CostReader:
    """Reads the costs of a robot; collects the goals that move."""

    def __init__(self, robot: Robot, q0: np.ndarray, motors: int, paths: Mapping[str, Stops]):
        self.robot, self.q0, self.motors, self.paths = robot, q0, motors, paths
        self.goals: dict[str, PathGoal] = {}
        self.used_paths: set[str] = set()

    def read(self, row: Table, section: str) -> Cost:
        """The cost of one table."""
        kind, weight = row.text("cost", among=KINDS), _weight(row)
        options: dict[str, Any] = {}
        if kind in FRAMED:
            options["frame"] = row.text("frame", among=tuple(self.robot.frames))
        if kind == "direction":
            options["axis"] = row.numbers("axis", 3)
        if "path" in row:
            options |= {"name": self._path(row, kind), "along": True}
        elif (at := self._desired(row, kind)) is not None:
            options["at"] = at
        row.reject_unknown()
        try:
            made = getattr(costs, kind)(weight=weight, **options)
            term = bind_cost(made, self.robot, self.motors)
            if not term.has_goal and term.goal_size:
                desired_value(term)
        except Error as error:
            row.fail(_key_of(error, row), error.cause, error.remedy)
        return made

    def _desired(self, row: Table, kind: str) -> Any:
        """`at`, or None for the default of the cost."""
        robot = self.robot
        if kind in ("orientation", "pose"):
            for key in ("rpy",) if kind == "orientation" else ("at",):
                row.get(key)
            place = pose(row)
            return place.rotation if kind == "orientation" else place
        if kind in ZERO and "at" not in row:
            return None
        if kind in ("posture", "speed"):
            start = self.q0 if kind == "posture" else np.zeros(robot.nv)
            return joint_coordinates(row, "at", robot, start, "q" if kind == "posture" else "v")[0]
        sizes = {"torque": self.motors, "momentum": 6}
        return row.numbers("at", sizes.get(kind, 3))

    def _path(self, row: Table, kind: str) -> str:
        """The name of the goal that follows the path of the key `path`."""
        name = row.text("path", among=tuple(self.paths))
        if name not in self.paths:
            row.fail("path", f"is {name!r}, and there are no paths", "add [optimal_control.paths]")
        self.used_paths.add(name)
        if kind not in MOVING or (kind == "posture" and not self.robot.manifold.is_flat):
            among = ", ".join(MOVING)
            row.fail("path", f"is given for the cost {kind}", f"paths are for {among} of flat q")
        if "at" in row:
            row.fail("at", "is given beside path", "leave one of them out")
        frame = row.get("frame", "")
        start = {
            "posture": lambda: self.q0,
            "point": lambda: self.robot.frame_pose(self.q0, frame)[:3, 3],
            "center_of_mass": lambda: self.robot.center_of_mass(self.q0),
        }[kind]()
        for _, at, stop in self.paths[name]:
            if len(at) != len(start):
                cause = f"has {len(at)} numbers, and the cost {kind} expects {len(start)}"
                stop.fail("at", cause, "give one number for each coordinate")
        stops = [(t, np.array(at)) for t, at, _ in self.paths[name]]
        goal = f"{frame or kind} on {name}"
        self.goals[goal] = PathGoal(np.asarray(start, float), stops)
        return goal


def _weight(row: Table) -> float | list[float]:
    value = _numbers(row, "weight")
    if np.min(value) < 0.0 or np.max(value) <= 0.0:
        row.fail("weight", f"is {value}, expected positive weights", "write weight = 1.0")
    return value


def _key_of(error: Error, row: Table) -> str:
    """The key that an error is about."""
    named = (("weight", "weight"), ("axis", "axis"), ("at of", "at"))
    return next((key for word, key in named if word in error.cause and key in row), "")


def check_same_model(options: Mapping[str, Any]) -> None:
    """Raise an error for forces of the scene that the problem does not know."""
    acting = [name for name in ("damping", "friction", "springs") if options.get(name)]
    if acting:
        (name, *_) = acting
        raise StateError(
            f"the scene has {name} = true, and problems of optimal control have no {name}",
            'leave it out, or use [controller] kind = "mpc", which corrects the difference',
        )
