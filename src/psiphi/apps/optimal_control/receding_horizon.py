"""`pp.MPC`: model predictive control, which solves an optimal control problem at every node.

at t_k: roll the last motion out from the measured state with its gains, one node later;
a few iterations; apply u_0 until t_k + dt
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import (
    batch_axes,
    finite_array,
    positive_count,
    positive_number,
    real_array,
)
from psiphi.apps.optimal_control.export.mpc_source import mpc_files
from psiphi.apps.optimal_control.optimal_control import OptimalControl
from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
from psiphi.simulation.control.joint_controllers import value_at
from psiphi.simulation.control.marked_law import law

ON_TIME = 1e-6  # share of dt by which a call may be early
MAX_ITERATIONS = 1_000_000
MAX_TIME = 1e9  # in seconds; nodes are counted from 0


class MPC:
    """A controller tau(t, q, v) that solves `problem` from the measured state every `dt` seconds.

    The first call solves with `first` iterations, each later one with `iterations`, from the last
    motion, one node later: with one iteration, every step takes the same time. The torque is
    constant between two nodes.

    Goals are constants, or functions of time: of the time at the end of the horizon, or with
    `along=True` of the times of all nodes, one after the other. So is the `schedule` of contacts:
    a function gives the contacts that hold in the step that starts at its time.

    `plan` is the last motion. A controller that is called at an earlier time starts again.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("pelican")
    >>> problem = pp.OptimalControl(
    ...     robot, dt=0.02, steps=15, torque=10.0,
    ...     running=[pp.cost.torque(1e-3), pp.cost.posture(10.0)], final=[pp.cost.posture(10.0)])
    >>> control = pp.MPC(problem, iterations=1, posture=[0.3, 0.2])
    >>> motion = pp.simulate(robot, [0.0, 0.0], tau=control, dt=0.01, duration=1.0)
    >>> bool(np.abs(motion.final.q - [0.3, 0.2]).max() < 0.02)
    True
    """

    def __init__(
        self,
        problem: OptimalControl,
        iterations: int = 1,
        *,
        first: int = 100,
        tolerance: float = 1e-7,
        torques: Numbers | None = None,
        parameters: Numbers | None = None,
        schedule: Numbers | Mapping[str, Numbers] | Callable[[float], Numbers] | None = None,
        **goals: Any,
    ):
        if not isinstance(problem, OptimalControl):
            cause = f"MPC of {shown(problem)}, expected a problem"
            raise StateError(cause, "give a pp.OptimalControl")
        self.problem = problem
        self.robot = problem.robot
        self.iterations = positive_count("iterations", iterations, MAX_ITERATIONS)
        self.first = positive_count("first", first, MAX_ITERATIONS)
        self.tolerance = positive_number("tolerance", tolerance, "give a number", most=1.0)
        unknown = [name for name in goals if name not in problem.goal_names]
        missing = [name for name in problem.goal_names if name not in goals]
        if unknown or missing:
            named = ", ".join(f"{name}=" for name in problem.goal_names) or "none"
            cause = f"MPC: the goals are {named}, and {', '.join(goals) or 'none'} were given"
            raise StateError(cause, "give each goal once: an array, or a function of time")
        self.goals, self.torques, self.parameters = goals, torques, parameters
        self.schedule = schedule
        self.plan: OptimalMotion | None = None
        self._start = 0.0

    def c_files(self, name: str, q: Numbers, v: Numbers = 0.0) -> dict[str, str]:
        """{file name: text}: this controller as C99, NAME.h and NAME.c, with a test program.

        `NAME_start` solves first, `NAME_step` at every later node; goals are arguments. The number
        of iterations is fixed and nothing is allocated, so that every step takes the same time. The
        torques agree with those of this controller to rounding; the test program NAME_test.c checks
        it in a simulation that starts at q, v. For problems with hessian="gauss", whose limits of
        positions and speeds are "soft".

        >>> import psiphi as pp
        >>> robot = pp.load("pelican")
        >>> problem = pp.OptimalControl(
        ...     robot, dt=0.02, steps=15, torque=10.0, hessian="gauss",
        ...     running=[pp.cost.torque(1e-3), pp.cost.posture(10.0)])
        >>> files = pp.MPC(problem, posture=[0.3, 0.2]).c_files("look", q=[0.0, 0.0])
        >>> list(files)
        ['look.h', 'look.c', 'look_test.c']
        """
        return mpc_files(self, name, q, v)

    def copy(self) -> MPC:
        """(Internal use only) The same controller, before its first step."""
        return MPC(
            self.problem, self.iterations, first=self.first, tolerance=self.tolerance,
            torques=self.torques, parameters=self.parameters, schedule=self.schedule,
            **self.goals,
        )  # fmt: skip

    def reset(self) -> None:
        """Forget the last motion."""
        self.plan = None

    @law(batched=True, pure=False)
    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """tau (..., nv) at time t, for one motion or a batch of them."""
        t, dt = _time(t), self.problem.dt
        real_array("q", q, (self.robot.nq,), f"give nq = {self.robot.nq} numbers")
        real_array("v", v, (self.robot.nv,), f"give nv = {self.robot.nv} numbers")
        passed = int(np.floor((t - self._start) / dt + ON_TIME))
        if self.plan is None or passed < 0 or self.plan.batch != np.shape(q)[:-1]:
            goals = self._goals_at(t)
            self.plan = self.problem.solve(
                q, v, torques=self.torques, parameters=self.parameters, iterations=self.first,
                tolerance=self.tolerance, schedule=self._schedule_at(t), **goals,
            )  # fmt: skip
            self._start = t
        elif passed > 0:
            self._start += passed * dt
            self.plan = self.problem.solve(
                q, v, near=self.plan, shift=passed, parameters=self.parameters,
                iterations=self.iterations, tolerance=self.tolerance,
                schedule=self._schedule_at(t), **self._goals_at(t),
            )  # fmt: skip
        return self.plan.tau[..., 0, :]

    def _goals_at(self, t: float) -> dict[str, Any]:
        """The goals of the horizon that starts at t."""
        nodes = t + self.problem.dt * np.arange(self.problem.steps + 1)
        return {name: self._goal(name, value, nodes) for name, value in self.goals.items()}

    def _schedule_at(self, t: float) -> Any:
        """The schedule of the contacts for the horizon that starts at t."""
        if not callable(self.schedule):
            return self.schedule
        nodes = t + self.problem.dt * (np.arange(self.problem.steps) + ON_TIME)
        return stacked("schedule", self.schedule, nodes, 1)

    def _goal(self, name: str, value: Any, nodes: np.ndarray) -> Any:
        if not callable(value):
            return value
        terms = (*self.problem.running, *self.problem.final)
        term = next(term for term in terms if term.has_goal and term.name == name)
        what = f"goal {name!r}"
        if not term.cost.along:
            return value_at(what, value, float(nodes[-1]))
        core = 2 if term.cost.kind in ("pose", "orientation") else 1
        return stacked(what, value, nodes, core)

    def goals_at(self, t: float) -> dict[str, Any]:
        """(Internal use only) The goals of the horizon that starts at t."""
        return self._goals_at(t)

    def __repr__(self) -> str:
        return f"<MPC of {self.problem!r}, {self.iterations} iterations a step>"


def stacked(
    what: str, function: Callable[[float], Any], times: np.ndarray, core: int
) -> np.ndarray:
    """function(t) at all times: (..., times, *core); `what` is its name in errors."""
    values = [value_at(what, function, float(t)) for t in times]
    rows = [real_array(f"the {what}", x, (), "return an array of numbers") for x in values]
    shape = batch_axes(
        f"the {what}", {f"at t = {t:g}": x.shape for t, x in zip(times, rows, strict=True)}
    )
    if len(shape) < core:
        cause = f"the {what} has shape {shape}, expected {core} axes or more"
        raise StateError(cause, "return the goal at one time")
    return np.stack([np.broadcast_to(x, shape) for x in rows], axis=len(shape) - core)


def _time(t: object) -> float:
    """A time in seconds."""
    time = finite_array("t", t, (), "give seconds", MAX_TIME)
    if time.ndim or isinstance(t, bool | np.bool_):
        raise StateError(f"t is {shown(t)}, expected one time", "give seconds")
    return float(time)
