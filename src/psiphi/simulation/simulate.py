"""The door: `pp.simulate(system, q0, v0, tau, duration=...)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi.control.plant import Plant
from psiphi.control.torques import read_effort, read_losses, read_torque
from psiphi.errors import StateError
from psiphi.motion.trajectory import Trajectory
from psiphi.rollouts.integrators import METHODS
from psiphi.simulation import adaptive, fast
from psiphi.simulation.events import DIVERGED, STOP, check_limits_word, read_functions, read_stop
from psiphi.simulation.failure import STRAINED, MotionWarning, Strained
from psiphi.simulation.field import Field
from psiphi.simulation.march import March
from psiphi.simulation.running import Task
from psiphi.simulation.start import check_closed, check_size, flag, initial_state, step_count, step_size, step_stride
from psiphi.wording import nearest, shown


def simulate(
    system: Any,
    q0: Any,
    v0: Any = None,
    tau: Any = None,
    duration: float = 1.0,
    dt: float = 1e-3,
    method: str = "rk4",
    *,
    every: int = 1,
    hold: bool = False,
    damping: Any = False,
    friction: Any = False,
    friction_speed: float = 0.01,
    effort: Any = False,
    limits: str = "ignore",
    events: Any = (),
    stop: Any = STOP,
    projection: bool = True,
    rtol: float = 1e-9,
    atol: float = 1e-9,
    compiled: bool | None = None,
    progress: Callable[..., Any] | None = None,
) -> Trajectory:
    """The motion dq/dt = v, M dv/dt = tau - C v - g - losses from (q0, v0), sampled every `every` steps of dt.

    system      a robot, or a closed-chain system
    q0, v0      (..., nq), (..., nv), any batch axes; v0 left out is rest
    tau         nothing, (..., nv), (..., steps, nv), a function tau(t, q, v) or a controller; `hold=True` asks it once a step
    method      "euler" (semi-implicit), "rk4", "lie" with steps dt; "DOP853", "RK45", "LSODA", "Radau", ... with steps SciPy
                chooses for rtol and atol, sampled every dt
    damping, friction, effort    True: the model's numbers act; or numbers of your own. See `control/torques.py` for the laws
    limits      "ignore", "record", "stop", or "block": joints end there, without bouncing
    events      {name: g(t, q, v)}: recorded when g becomes zero or less; `stop` names those that stop the motion, or is True
    projection  a closed chain goes back onto its constraints after each step
    compiled    rollouts run as one compiled kernel where they can and it saves time; True insists, False never

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> motion = pp.simulate(robot, robot.neutral(), duration=0.2)
    >>> float(motion.drift) < 1e-9
    True
    """
    plant, q, v, dt, steps, every, method, limits = read_start(system, q0, v0, duration, dt, method, every, limits)
    if not flag("projection", projection):
        plant.project = None
    batch, functions, cut = q.shape[:-1], read_functions(events), read_effort(plant, effort)
    torque, losses = read_torque(tau, plant, batch, steps).cut(cut), read_losses(plant, damping, friction, friction_speed)
    field = Field(plant, torque, losses, cut, flag("hold", hold))
    stops = read_stop(stop, limits, functions)
    if progress is not None and not callable(progress):
        raise StateError(f"progress is {shown(progress)}, expected a function of (t, q, v)", "leave it out for none")
    task = Task(plant, field, batch, dt, steps, every, method, limits, functions, stops, progress)
    motion = _run(task, q, v, tau, None if compiled is None else flag("compiled", compiled), rtol, atol)
    _warn(motion, dt, method)
    return motion


def _warn(motion: Trajectory, dt: float, method: str) -> None:
    """Say that a motion diverged: where, since when, and what would help."""
    wild = [event for event in motion.events if event.name == DIVERGED]
    if not wild:
        return
    first = min(wild, key=lambda event: event.t)
    of = f", at joint {shown(first.what)}" if first.what else ""
    many = f" ({len(wild)} of {motion.q[..., 0, 0].size} motions)" if len(wild) > 1 else ""
    smaller = f"a smaller step (dt={dt / 10:g})" if method in METHODS else "smaller rtol and atol"
    others = "method='Radau', whose steps suit stiff joints" if method != "Radau" else "softer gains, or less damping"
    warnings.warn(
        f"the motion diverged at t = {first.t:.6g} s{of}{many}: its numbers from there on are no motion. "
        f"What helps: {smaller}, or {others}",
        MotionWarning,
        stacklevel=3,
    )


class Start(NamedTuple):
    """What a simulation starts from, and its steps."""

    plant: Plant
    q: np.ndarray
    v: np.ndarray
    dt: float
    steps: int
    every: int
    method: str
    limits: str


def read_start(
    system: Any,
    q0: Any,
    v0: Any = None,
    duration: Any = 1.0,
    dt: Any = 1e-3,
    method: Any = "rk4",
    every: Any = 1,
    limits: Any = "ignore",
) -> Start:
    """The arguments of `simulate` that say where it starts and how far it goes, read and checked: nothing is computed yet."""
    plant = Plant(system)
    q, v = initial_state(plant, q0, v0)
    check_closed(plant, q, v)
    dt = step_size(dt)
    steps, every = step_count(duration, dt), step_stride(every)
    check_size(plant, q.shape[:-1], steps // every + 2)
    limits, method = check_limits_word(limits), _method(method)
    if limits == "block" and method not in METHODS:
        raise StateError(f'limits="block" has no place in {method}', 'use "euler", "rk4" or "lie", or limits="stop"')
    return Start(plant, q, v, dt, steps, every, method, limits)


def _run(task: Task, q: Any, v: Any, tau: Any, compiled: bool | None, rtol: float, atol: float) -> Trajectory:
    """By adaptive steps, by a compiled kernel, or step by step in Python."""
    kernel = fast.wanted(task, tau, compiled)
    if task.method not in METHODS:
        return adaptive.Solve(task, rtol, atol).run(q, v)
    if kernel:
        try:
            return fast.Fast(task, tau if callable(tau) else None).run(q, v)
        except Strained:
            if compiled:
                cause = f"compiled=True, and {STRAINED}"
                raise StateError(cause, "leave it out: such steps run in Python, which says what is wrong") from None
    return March(task).run(q, v)


def _method(method: Any) -> str:
    known = (*METHODS, *adaptive.METHODS)
    if not isinstance(method, str) or method not in known:
        raise StateError(f"method is {shown(method)}, expected one of {', '.join(known)}", _nearest(method, known))
    return method


def _nearest(method: Any, known: tuple[str, ...]) -> str:
    same = [name for name in known if name.lower() == str(method).lower()]
    return f"write {same[0]!r}" if same else nearest(method, known)
