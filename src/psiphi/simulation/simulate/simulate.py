"""`pp.simulate(system, q0, v0, tau, duration=...)`: reads the arguments, then runs the steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import GRADIENT_LOST, flag, one_of
from psiphi.functions.arrays.array_dispatch import is_differentiated
from psiphi.model.contact.ground import Ground
from psiphi.model.model import Model
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout.contact_step import choose_method, ground_contact
from psiphi.simulation.compiled_rollout.python_fallback import SOLVE_FAILED, ConstraintSolveFailed
from psiphi.simulation.contact.contact_events import ContactSystem, read_contacts
from psiphi.simulation.control.joint_controllers import PD
from psiphi.simulation.control.law_trace import as_law
from psiphi.simulation.control.marked_law import is_pure
from psiphi.simulation.control.torque_input import read_effort, read_torque, with_torque_batch
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.forces.external_forces import ExternalForces, Push
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import CONTACT_METHOD, METHODS
from psiphi.simulation.integration.state_derivative import StateDerivative
from psiphi.simulation.plant import Plant, SimulatedSystem, parameters_of
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

FIXED_STEP_METHODS = (*METHODS, CONTACT_METHOD)
DEFAULT_TOLERANCE = 1e-9  # rtol and atol of SciPy's methods


def simulate(
    system: Model | SimulatedSystem,
    q0: Numbers,
    v0: Numbers | None = None,
    tau: Numbers | Callable[..., Any] | None = None,
    duration: float = 1.0,
    dt: float = 1e-3,
    method: str | None = None,
    *,
    every: int = 1,
    hold: bool = False,
    damping: bool | Numbers = False,
    friction: bool | Numbers = False,
    friction_speed: float | None = None,
    springs: bool | Numbers = False,
    effort: bool | Numbers = False,
    f_ext: Push | None = None,
    actuated: str | Sequence[str] | None = None,
    passive: str | Sequence[str] | None = None,
    limits: str = "ignore",
    contacts: str | Ground = "hold",
    events: Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]] = (),
    stop: bool | str | Iterable[str] = DEFAULT_STOP,
    projection: bool | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    compiled: bool | None = None,
    progress: bool | Callable[..., Any] | None = None,
) -> Trajectory:
    """The motion dq/dt = v, M dv/dt = tau - C v - g - losses - springs from (q0, v0).

    system      a robot, or a closed-chain system
    q0, v0      (..., nq), (..., nv), with any batch axes; v0 is zero by default
    tau         None, (..., nv), (..., steps, nv), a function tau(t, q, v) or a controller; with
                `hold=True` it is evaluated once a step
    duration    seconds, a whole number of steps dt
    every       the motion is sampled every `every` steps
    method      "euler", "implicit", "midpoint", "rk4" (the default) or "lie", with steps of dt;
                "DOP853", "RK45", "LSODA", "Radau", ... with steps that SciPy chooses for rtol and
                atol, sampled every dt. Contacts with a ground imply "moreau", of order 1
    damping, friction, springs, effort
                True: use the model's numbers; or give numbers: damping times v, friction of
                Coulomb, springs of the joints, bounds of the torques. Terms that are stiff for
                the step are integrated implicitly
    f_ext       {frame: wrench}: a push, [moment; force] at the frame's origin in world axes. A
                wrench is (6,), (..., 6) or a function of t; steps then run in Python
    actuated, passive
                names of the joints with motors, or of those without, which get no torque. By
                default controllers do not drive free joints (floating bases), and torques given as
                numbers act as they are
    limits      "ignore", "record", "stop", or "block": joints stop at their limits, without
                bouncing
    contacts    a `pp.Ground`: the shapes of `robot.with_contacts` touch it. Of closed chains,
                "hold": contacts hold, whatever force that takes. "open": contacts with friction
                open where they would have to pull, slide where they would leave their friction
                cones, and close where a point reaches its plane (one motion, steps in Python)
    events      {name: g(t, q, v)}: an event is recorded when g becomes zero or less
    stop        names of the events that stop the motion, or True for all
    projection  whether a closed chain is projected onto its constraints after each step
    progress    True: show a bar (in a log, ten lines); or a function of (t, q, v), which gets
                all motions of a batch at once
    compiled    True: run the motion as one compiled kernel; an error says why if that is not
                possible. A function tau(t, q, v) must then be pure (see `pp.law`). False: run every
                step in Python. By default the motion is compiled if that saves time, and a user's
                function only if it is marked with `pp.law`

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> motion = pp.simulate(robot, robot.neutral(), duration=0.2)
    >>> float(motion.drift) < 1e-9
    True
    """
    ground = contacts if isinstance(contacts, Ground) else None
    simulated = system if isinstance(contacts, Ground) else read_contacts(system, contacts)
    method = choose_method(method, ground)
    if tau is not None and not callable(tau):
        q0 = with_torque_batch(q0, v0, tau, step_count(duration, step_size(dt)))
    start = read_start(simulated, q0, v0, duration, dt, method, every, limits)
    plant, q, v, dt, steps, every, method, limits = start
    plant.set_motors(actuated, passive)
    if limits == "block":
        JointStops(plant).check_start(q)
    contact = None if ground is None else ground_contact(plant, ground, limits, "simulate", q)
    if any(map(is_differentiated, parameters_of(plant.robot))):
        raise StateError(
            f"simulate: parameters {GRADIENT_LOST}",
            "use pp.rollout, which has gradients with respect to parameters",
        )
    if isinstance(simulated, ContactSystem):
        simulated.dt = dt
    check_options(plant, method, projection, rtol, atol, compiled)
    if projection is not None and not flag("projection", projection):
        plant.project = None
    kernel = None if compiled is None else flag("compiled", compiled)
    functions = read_functions(events)
    pure = is_pure(tau)
    tau, field = _state_derivative(
        start, tau, kernel, effort, hold, damping, friction, friction_speed, springs, f_ext
    )
    stops = read_stop(stop, limits, functions, ground is not None)
    report = _progress_callback(progress, steps * dt)
    with report if isinstance(report, ProgressBar) else nullcontext():
        problem = SimulationProblem(
            plant,
            field,
            q.shape[:-1],
            dt,
            steps,
            every,
            method,
            limits,
            functions,
            stops,
            report,
            contact,
        )
        law = tau
        if kernel is None and callable(tau) and method in FIXED_STEP_METHODS:
            law, why = compiled_steps.compiled_law(problem, tau, pure)
            problem = replace(problem, why_in_python=why)
        tolerances = (DEFAULT_TOLERANCE if x is None else x for x in (rtol, atol))
        motion = _run(problem, q, v, law, kernel, *tolerances)
    not_numbers = field.torque.not_numbers
    _warn_of_motion(plant, motion, dt, method, isinstance(tau, PD), not_numbers)
    return motion if simulated is system else replace(motion, system=system)


def _state_derivative(
    start: Start,
    tau: Numbers | Callable[..., Any] | None,
    kernel: bool | None,
    effort: bool | Numbers,
    hold: bool,
    damping: bool | Numbers,
    friction: bool | Numbers,
    friction_speed: float | None,
    springs: bool | Numbers,
    f_ext: Push | None,
) -> tuple[Any, StateDerivative]:
    """The torque, and the right-hand side of the equations of motion with losses and springs.

    A function is traced here if a kernel is required. Stiff losses and springs become implicit.
    """
    plant, limits = start.plant, read_effort(start.plant, effort)
    tau = as_law(plant.system, tau) if kernel else tau
    torque = read_torque(tau, plant, start.q.shape[:-1], start.steps).limit(limits)
    losses = read_losses(plant, damping, friction, friction_speed, springs)
    plant.springs = losses.springs
    if start.method in FIXED_STEP_METHODS:
        losses = losses.for_steps(plant, start.method, start.dt)
    push = None if f_ext is None else ExternalForces(plant, start.q.shape[:-1], f_ext) or None
    return tau, StateDerivative(plant, torque, losses, limits, flag("hold", hold), push)


def check_options(
    plant: Plant,
    method: str,
    projection: object,
    rtol: float | None,
    atol: float | None,
    compiled: object = None,
) -> None:
    """Raise an error for options that would have no effect with this system and method."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and method in FIXED_STEP_METHODS:
            adaptive = ", ".join(adaptive_step.METHODS)
            raise StateError(
                f"{name} is given, but {method} takes fixed steps of dt",
                f"give a smaller dt, or a method with adaptive steps: {adaptive}",
            )
    if isinstance(plant.system, ContactSystem) and (method not in METHODS or projection is False):
        conflict = f"the method {method}" if method not in METHODS else "projection=False"
        raise StateError(
            f'contacts="open" does not work with {conflict}: contacts close after a step',
            f"use one of {', '.join(METHODS)}, with projection",
        )
    if isinstance(plant.system, ContactSystem) and compiled is True:
        raise StateError(
            'compiled=True is given, but contacts="open" finds the times at which contacts open '
            "and close, in steps of Python",
            "leave compiled out",
        )
    if projection is not None and plant.project is None:
        flag("projection", projection)
        raise StateError(
            f"projection is given, but {plant.name} has no constraints", "leave it out"
        )


def _progress_callback(
    progress: bool | Callable[..., Any] | None, duration: float
) -> Callable[..., Any] | None:
    """The function that is called during the run, if any: the bar, or the user's."""
    if progress is None or callable(progress):
        return progress
    if not isinstance(progress, bool | np.bool_):
        cause = f"progress is {shown(progress)}, expected True or a function of (t, q, v)"
        raise StateError(cause, "give True for a bar; leave it out for none")
    return ProgressBar(duration, always=True) if progress else None


SUITABLE_GAINS = (
    "gains that fit the inertia at each joint: one number per joint, or pp.ComputedTorque, "
    "which multiplies them by the mass matrix"
)

AWAY_FROM_SINGULAR = (
    "a motion that keeps away from singular postures (stretched arms, dead points), where the "
    "joints of closed chains become this fast"
)


def _warn_of_motion(
    plant: Plant,
    motion: Trajectory,
    dt: float,
    method: str,
    is_pd: bool,
    not_numbers: list[float],
) -> None:
    """Warn if the motion diverged or passed a dead point: where, when, and what helps."""
    warn_of_dead_points(plant, motion.q, motion.t)
    diverged = [event for event in motion.events if event.name == DIVERGED]
    if not diverged:
        return
    first = min(diverged, key=lambda event: event.t)
    joint = f", at joint {shown(first.what)}" if first.what else ""
    count = f"{len(diverged)} of {motion.q[..., 0, 0].size} motions"
    count = f" ({count})" if len(diverged) > 1 else ""
    smaller = (
        f"a smaller step (dt={dt / 10:g})"
        if method in FIXED_STEP_METHODS
        else "smaller rtol and atol"
    )
    others = (
        "method='Radau', which suits stiff joints"
        if method != "Radau"
        else "softer gains, or less damping"
    )
    gains = f", or {SUITABLE_GAINS}" if is_pd else ""
    gains += f", or {AWAY_FROM_SINGULAR}" if isinstance(plant.system, System) else ""
    if not_numbers:
        gains += f". The law gave NaN at t = {not_numbers[0]:.6g} s: correct it first"
    warnings.warn(
        f"the motion diverged at t = {first.t:.6g} s{joint}{count}: its values from then on are "
        f"not valid. What helps: {smaller}, or {others}{gains}",
        MotionWarning,
        stacklevel=3,
    )


class Start(NamedTuple):
    """The initial state of a simulation, and its steps."""

    plant: Plant
    q: np.ndarray
    v: np.ndarray
    dt: float
    steps: int
    every: int
    method: str
    limits: str


def read_start(
    system: Model | SimulatedSystem,
    q0: Numbers,
    v0: Numbers | None = None,
    duration: float = 1.0,
    dt: float = 1e-3,
    method: str = "rk4",
    every: int = 1,
    limits: str = "ignore",
) -> Start:
    """Read and check the arguments of `simulate` for the initial state and the steps."""
    plant = Plant(system)
    q, v = initial_state(plant, q0, v0)
    check_closed(plant, q, v)
    dt = step_size(dt)
    steps, every = step_count(duration, dt), step_stride(every)
    check_size(plant, q.shape[:-1], steps, every)
    one_of("limits", limits, LIMITS, '"ignore" is the default')
    if method != CONTACT_METHOD:
        one_of("method", method, (*METHODS, *adaptive_step.METHODS))
    if limits == "block" and method not in FIXED_STEP_METHODS:
        raise StateError(
            f'limits="block" does not work with {method}',
            f'use {", ".join(METHODS)}, or limits="stop"',
        )
    return Start(plant, q, v, dt, steps, every, method, limits)


def _run(
    problem: SimulationProblem,
    q: np.ndarray,
    v: np.ndarray,
    tau: Numbers | Callable[..., Any] | None,
    compiled: bool | None,
    rtol: float,
    atol: float,
) -> Trajectory:
    """Run with adaptive steps, as a compiled kernel, or with fixed steps in Python."""
    kernel = compiled_steps.use_kernel(problem, tau, compiled)
    if problem.method not in FIXED_STEP_METHODS:
        return adaptive_step.AdaptiveRun(problem, rtol, atol).run(q, v)
    if kernel:
        try:
            return compiled_steps.CompiledRun(problem, tau).run(q, v)
        except ConstraintSolveFailed:
            if compiled:
                raise StateError(
                    f"compiled=True, but {SOLVE_FAILED}",
                    "leave it out: the steps then run in Python, which names the cause",
                ) from None
    return FixedStepRun(problem).run(q, v)
