"""The door: `pp.simulate(system, q0, v0, tau, duration=...)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import GRADIENT_LOST, flag, one_of
from psiphi.functions.arrays.array_dispatch import is_differentiated
from psiphi.simulation.compiled_rollout.python_fallback import SOLVE_FAILED, ConstraintSolveFailed
from psiphi.simulation.contact.contact_events import ContactSystem, read_contacts
from psiphi.simulation.control.joint_controllers import PD
from psiphi.simulation.control.law_trace import as_law
from psiphi.simulation.control.marked_law import is_pure, unwrap_law
from psiphi.simulation.control.torque_input import read_effort, read_torque
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.integration.integrators import METHODS
from psiphi.simulation.integration.state_derivative import StateDerivative
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.simulate import adaptive_step, compiled_steps
from psiphi.simulation.simulate.events import (
    DEFAULT_STOP,
    DIVERGED,
    LIMITS,
    read_functions,
    read_stop,
)
from psiphi.simulation.simulate.fixed_step import FixedStepRun
from psiphi.simulation.simulate.progress_bar import ProgressBar
from psiphi.simulation.simulate.simulation_problem import SimulationProblem
from psiphi.simulation.simulation_errors import MotionWarning, warn_of_dead_points
from psiphi.simulation.start_checks import (
    check_closed,
    check_size,
    initial_state,
    step_count,
    step_size,
    step_stride,
)
from psiphi.simulation.trajectory.trajectory import Trajectory

DEFAULT_TOLERANCE = 1e-9  # of steps that SciPy chooses


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
    friction_speed: float | None = None,
    springs: Any = False,
    effort: Any = False,
    actuated: Any = None,
    passive: Any = None,
    limits: str = "ignore",
    contacts: str = "hold",
    events: Any = (),
    stop: Any = DEFAULT_STOP,
    projection: bool | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    compiled: bool | None = None,
    progress: bool | Callable[..., Any] | None = None,
) -> Trajectory:
    """The motion dq/dt = v, M dv/dt = tau - C v - g - losses - springs from (q0, v0), sampled every `every` steps of dt.

    system      a robot, or a closed-chain system
    q0, v0      (..., nq), (..., nv), any batch axes; v0 left out is rest
    tau         nothing, (..., nv), (..., steps, nv), a function tau(t, q, v) or a controller; `hold=True` asks it once a step
    method      "euler", "implicit", "midpoint", "rk4", "lie" with steps dt; "DOP853", "RK45", "LSODA", "Radau", ... with
                steps SciPy chooses for rtol and atol, sampled every dt
    damping, friction, springs, effort    True: the model's numbers act; or numbers of your own. See `simulation/forces/damping_and_friction.py` and
                `simulation/forces/joint_springs.py` for the laws; what is stiff for the step is taken implicitly
    actuated, passive    names of the joints with motors, or of those without: these get no torque, whatever asks for one. Where
                neither is given controllers do not drive free joints (floating bases); torques of your own act as they are
    limits      "ignore", "record", "stop", or "block": joints end there, without bouncing
    contacts    "hold": they hold, whatever force that takes. "open": those with friction are lost where they would have to
                pull, slide where they would leave their cones, and are made again where a point comes to its plane (one
                motion, steps in Python)
    events      {name: g(t, q, v)}: recorded when g becomes zero or less; `stop` names those that stop the motion, or is True
    projection  a closed chain goes back onto its constraints after each step
    progress    True shows a bar (in a log, ten lines); or a function of (t, q, v) of your own
    compiled    True: the motion runs as one compiled kernel, or an error says why it cannot; a
                function tau(t, q, v) has to be pure (see `pp.law`). False: every step runs in
                Python. Left out: the motion is compiled where that saves time; a function of your
                own is compiled only if it is marked with `pp.law`

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> motion = pp.simulate(robot, robot.neutral(), duration=0.2)
    >>> float(motion.drift) < 1e-9
    True
    """
    touching = read_contacts(system, contacts)
    start = read_start(touching, q0, v0, duration, dt, method, every, limits)
    plant, q, v, dt, steps, every, method, limits = start
    plant.set_motors(actuated, passive)
    if any(map(is_differentiated, parameters_of(plant.robot))):
        raise StateError(
            f"simulate: parameters {GRADIENT_LOST}", "pp.rollout has gradients by parameters"
        )
    if isinstance(touching, ContactSystem):
        touching.dt = dt
    check_options(plant, method, projection, rtol, atol)
    if projection is not None and not flag("projection", projection):
        plant.project = None
    kernel = None if compiled is None else flag("compiled", compiled)
    bar = ProgressBar(steps * dt, always=True)
    functions = read_functions(events)
    pure, tau = is_pure(tau), unwrap_law(tau)
    tau, field = _state_derivative(
        start, tau, kernel, effort, hold, damping, friction, friction_speed, springs
    )
    stops = read_stop(stop, limits, functions)
    with bar:
        report = _progress_callback(progress, bar)
        task = SimulationProblem(
            plant, field, q.shape[:-1], dt, steps, every, method, limits, functions, stops, report
        )
        law = tau
        if kernel is None and callable(tau) and method in METHODS:
            law, why = compiled_steps.compiled_law(task, tau, pure)
            task = replace(task, why=why)
        motion = _run(
            task, q, v, law, kernel, *(DEFAULT_TOLERANCE if x is None else x for x in (rtol, atol))
        )
    _warn_of_motion(plant, motion, dt, method, isinstance(tau, PD))
    return motion if touching is system else replace(motion, system=system)


def _state_derivative(
    start: Start, tau: Any, kernel: bool | None, effort: Any, hold: Any, *lost: Any
) -> tuple[Any, StateDerivative]:
    """The torque, traced where a kernel is insisted on, and the right side of the equations of motion: with what is `lost` on
    the way, to damping, friction and springs, implicitly where that is stiff."""
    plant, cut = start.plant, read_effort(start.plant, effort)
    tau = as_law(plant.system, tau, start.q.ndim > 1) if kernel else tau
    torque = read_torque(tau, plant, start.q.shape[:-1], start.steps).limit(cut)
    losses = read_losses(plant, *lost)
    plant.springs = losses.springs
    if start.method in METHODS:
        losses = losses.for_steps(plant, start.method, start.dt)
    return tau, StateDerivative(plant, torque, losses, cut, flag("hold", hold))


def check_options(plant: Plant, method: str, projection: Any, rtol: Any, atol: Any) -> None:
    """Options that would mean nothing here are refused: who gave them expects something of them."""
    for name, given in (("rtol", rtol), ("atol", atol)):
        if given is not None and method in METHODS:
            cause = f"{name} came, and {method} takes steps of dt, whatever their error"
            raise StateError(
                cause,
                f"give a smaller dt, or a method that chooses its steps: {', '.join(adaptive_step.METHODS)}",
            )
    if isinstance(plant.system, ContactSystem) and (method not in METHODS or projection is False):
        came = "steps that SciPy chooses" if method not in METHODS else "steps without projection"
        cause = f'contacts="open" came for {came}'
        raise StateError(
            cause, f"use {', '.join(METHODS)}, with projection: contacts are made after a step"
        )
    if projection is not None and plant.project is None:
        flag("projection", projection)
        raise StateError(
            f"projection came, and {plant.name} has no constraints to be projected onto",
            "leave it out",
        )


def _progress_callback(progress: Any, bar: ProgressBar) -> Callable | None:
    """What is called now and then: nothing, a bar, or a function of the user's."""
    if progress is None or callable(progress):
        return progress
    if not isinstance(progress, bool | np.bool_):
        cause = f"progress is {shown(progress)}, expected True or a function of (t, q, v)"
        raise StateError(cause, "True shows a bar; leave it out for none")
    return bar if progress else None


SUITABLE_GAINS = "gains that fit what each joint moves: a number a joint, or pp.ComputedTorque, which multiplies them by the mass matrix"


def _warn_of_motion(plant: Plant, motion: Trajectory, dt: float, method: str, gains: bool) -> None:
    """Say that a motion diverged, or passed a dead point: where, since when, and what would help."""
    warn_of_dead_points(plant, motion.q, motion.t)
    wild = [event for event in motion.events if event.name == DIVERGED]
    if not wild:
        return
    first = min(wild, key=lambda event: event.t)
    of = f", at joint {shown(first.what)}" if first.what else ""
    many = f" ({len(wild)} of {motion.q[..., 0, 0].size} motions)" if len(wild) > 1 else ""
    smaller = f"a smaller step (dt={dt / 10:g})" if method in METHODS else "smaller rtol and atol"
    others = (
        "method='Radau', whose steps suit stiff joints"
        if method != "Radau"
        else "softer gains, or less damping"
    )
    warnings.warn(
        f"the motion diverged at t = {first.t:.6g} s{of}{many}: its numbers from there on are no motion. "
        f"What helps: {smaller}, or {others}" + (f", or {SUITABLE_GAINS}" if gains else ""),
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
    check_size(plant, q.shape[:-1], steps, every)
    one_of("limits", limits, LIMITS, '"ignore" is the default')
    one_of("method", method, (*METHODS, *adaptive_step.METHODS))
    if limits == "block" and method not in METHODS:
        raise StateError(
            f'limits="block" has no place in {method}',
            f'use {", ".join(METHODS)}, or limits="stop"',
        )
    return Start(plant, q, v, dt, steps, every, method, limits)


def _run(
    task: SimulationProblem,
    q: Any,
    v: Any,
    tau: Any,
    compiled: bool | None,
    rtol: float,
    atol: float,
) -> Trajectory:
    """By adaptive steps, by a compiled kernel, or step by step in Python."""
    kernel = compiled_steps.use_kernel(task, tau, compiled)
    if task.method not in METHODS:
        return adaptive_step.AdaptiveRun(task, rtol, atol).run(q, v)
    if kernel:
        try:
            return compiled_steps.CompiledRun(task, tau).run(q, v)
        except ConstraintSolveFailed:
            if compiled:
                cause = f"compiled=True, and {SOLVE_FAILED}"
                raise StateError(
                    cause, "leave it out: such steps run in Python, which says what is wrong"
                ) from None
    return FixedStepRun(task).run(q, v)
