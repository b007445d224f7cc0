"""The second door: `pp.rollout(robot, q0, v0, tau, ...)`, the compiled kernel and nothing else."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import (
    array_library,
    batch_axes,
    flag,
    is_foreign,
    is_lazy,
    on_gpu,
    one_of,
    requires_grad,
    robot_of,
    whole_number,
)
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions.arrays.array_dispatch import is_tracer
from psiphi.simulation.compiled_rollout.cuda_runner import CudaRunner
from psiphi.simulation.compiled_rollout.python_fallback import (
    SOLVE_FAILED,
    ConstraintSolveFailed,
    FallbackRunner,
)
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput, why_not_compiled
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions
from psiphi.simulation.control.control_law import Controller, is_law_controller
from psiphi.simulation.control.law_trace import as_law
from psiphi.simulation.control.marked_law import unwrap_law
from psiphi.simulation.control.torque_input import is_per_step, fits_steps, read_effort, read_torque
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.linearization.step_function import check_method
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.rollout.cuda_result import CudaRolloutResult
from psiphi.simulation.rollout.rollout_arrays import lazy_rollout, rollout_of_arrays
from psiphi.simulation.rollout.rollout_result import RolloutResult, TorqueArgument
from psiphi.simulation.rollout_derivatives.rollout_adjoint import RolloutAdjoint
from psiphi.simulation.rollout_derivatives.step_derivatives import NO_DERIVATIVE
from psiphi.simulation.simulate import adaptive_step
from psiphi.simulation.simulation_errors import warn_of_dead_points
from psiphi.simulation.start_checks import (
    check_closed,
    check_size,
    initial_state,
    step_size,
    step_stride,
)


def rollout(
    robot: Any,
    q0: Any,
    v0: Any = None,
    tau: Any = None,
    dt: float = 1e-3,
    steps: int = 1000,
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
    out: tuple[np.ndarray, np.ndarray] | None = None,
) -> RolloutResult:
    """q (..., n, nq), v (..., n, nv): the states at steps 0, every, 2 every, ...: `simulate`'s kernel, and nothing else.

    Arguments as in `simulate`; tau is nothing, an array, a controller, or a pure function of your
    own, which is traced with or without the mark `pp.law`. `out` takes the results. The answer's
    `vjp`, `jvp` and `hvp` are the motion's derivatives; arrays of torch and JAX have them in their
    own ways, forwards and backwards.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = rollout(robot, robot.random(seed=0, size=100), steps=50, every=10)
    >>> q.shape
    (100, 6, 6)
    """
    how = RolloutArguments(
        dt,
        steps,
        method,
        every,
        hold,
        damping,
        friction,
        friction_speed,
        springs,
        effort,
        actuated,
        passive,
        limits,
    )
    plant, tau = Plant(robot), unwrap_law(tau)
    plant.set_motors(actuated, passive)
    if any(map(is_lazy, (q0, v0, tau))):
        starts, rows = (
            {"q0": q0, "v0": v0, "tau": tau},
            (whole_number("steps", steps), step_stride(every)),
        )
        return lazy_rollout(rollout, plant, starts, *rows, {**how._asdict(), "out": out})
    if any(map(on_gpu, (q0, v0, tau))) and not any(map(is_tracer, (q0, v0, tau))):
        return _where_they_are(plant, {"q": q0, "v": v0, "tau": tau}, how, out)
    numbers = dict(zip((PARAMETERS,), filter(is_foreign, parameters_of(plant.robot)), strict=False))
    if numbers or any(map(is_foreign, (q0, v0, tau))):
        return _in_their_library(robot, plant, {"q": q0, "v": v0, "tau": tau} | numbers, how, out)
    return _on_host(plant, q0, v0, tau, how, out)


class RolloutArguments(NamedTuple):
    """The steps of a rollout and what acts on the way, as they were given to `rollout`."""

    dt: Any
    steps: Any
    method: str
    every: Any
    hold: Any
    damping: Any
    friction: Any
    friction_speed: Any
    springs: Any
    effort: Any
    actuated: Any
    passive: Any
    limits: Any

    @property
    def blocks(self) -> bool:
        """Whether joints end at their limits."""
        return (
            one_of(
                "limits",
                self.limits,
                ("ignore", "block"),
                "pp.simulate records limits and stops at them",
            )
            == "block"
        )

    def drive(
        self, plant: Plant, tau: Any, batch: tuple[int, ...], steps: int, dt: float
    ) -> RolloutInput:
        """What drives it, with its losses; refused where no kernel does."""
        cut = read_effort(plant, self.effort)
        torque = read_torque(tau, plant, batch, steps).limit(cut)
        losses = read_losses(plant, self.damping, self.friction, self.friction_speed, self.springs)
        if (
            not isinstance(self.method, str) or self.method not in adaptive_step.METHODS
        ):  # of those `why_not_compiled` tells
            check_method(self.method, "rollout")
        reason = why_not_compiled(plant.system, tau, self.method, self.blocks)
        if reason:
            raise StateError(
                f"rollout: {reason}", "pp.simulate takes every system, torque and method"
            )
        return RolloutInput(
            torque,
            losses.for_steps(plant, self.method, dt),
            tau if isinstance(tau, Controller) else None,
            cut,
        )


def _on_host(
    plant: Plant, q0: Any, v0: Any, tau: Any, how: RolloutArguments, out: Any
) -> RolloutResult:
    """NumPy's arrays: read, checked, run by threads."""
    q, v = initial_state(plant, q0, v0)
    check_closed(plant, q, v)
    if out is None:
        check_size(
            plant,
            q.shape[:-1],
            whole_number("steps", how.steps),
            step_stride(how.every),
            whole=False,
        )
    drive, plan, dt, steps, every = _planned(plant, tau, False, q.shape[:-1], how)
    runner = FallbackRunner(plant, drive, plan, dt, q.shape[:-1])
    q_out, v_out = _results(out, (*q.shape[:-1], 1 + steps // every), plant)
    flat = q.reshape(-1, plant.nq), v.reshape(-1, plant.nv)
    states = (
        q_out.reshape(runner.count, *q_out.shape[-2:]),
        v_out.reshape(runner.count, *v_out.shape[-2:]),
    )
    for state, first in zip(states, flat, strict=True):
        state[:, 0] = first
    try:
        _fill(runner, states, every)
    except ConstraintSolveFailed:
        raise StateError(
            f"rollout: {SOLVE_FAILED}",
            "pp.simulate takes such steps in Python, which says what is wrong",
        ) from None
    warn_of_dead_points(plant, q_out, every * dt * np.arange(q_out.shape[-2]))
    followed = runner.reference_samples(every * (states[0].shape[1] - 1))
    ways, given = partial(RolloutAdjoint, runner, states, every, followed), None
    if not callable(tau):
        given = TorqueArgument(
            drive.torque,
            np.shape(tau) if tau is not None else (plant.nv,),
            tau is not None,
            drive.effort,
        )
    return RolloutResult.of((q_out, v_out), ways, given)


def _in_their_library(
    robot: Any, plant: Plant, state: dict[str, Any], how: RolloutArguments, out: Any
) -> Any:
    """Tensors of torch, arrays of JAX: the same rollout, with their library's derivatives."""
    foreign = [x for x in state.values() if is_foreign(x)]
    if out is not None:
        raise StateError("rollout: out= is for NumPy arrays, and these are not", "leave it out")
    if how.blocks and any(map(requires_grad, foreign)):
        raise StateError(
            f"rollout: {NO_DERIVATIVE}", 'leave limits="ignore", or give tensors without gradients'
        )
    step_size(how.dt)  # what is no number is told before a library calls back

    law = _law_of(state)

    def run(q: np.ndarray, v: np.ndarray, tau: Any, parameters: Any = None) -> RolloutResult:
        here = robot if parameters is None else robot.at(parameters)
        return rollout(here, q, v, tau if law is None else _made_for(here, law), **how._asdict())

    return rollout_of_arrays(
        run,
        plant,
        state,
        foreign[0],
        whole_number("steps", how.steps),
        step_stride(how.every),
        how.blocks,
    )


def _law_of(state: dict[str, Any]) -> Any:
    """The controller of a robot whose parameters are a tensor: made with these, so that motions change with them by both."""
    law = state["tau"]
    if PARAMETERS not in state or not is_law_controller(law):
        return None
    if not any(x is state[PARAMETERS] for x in parameters_of(robot_of(law.robot))):
        cause = f"rollout: the controller is made for another robot than the one with parameters of {array_library(state[PARAMETERS])}"
        raise StateError(cause, "make it with robot.at(parameters) of the same array")
    return law


def _made_for(robot: Any, law: Any) -> Any:
    """A controller of this robot with the numbers of its parameters, which its own may have as a tensor's."""
    own = copy(law)
    own.robot = robot
    return own


def _where_they_are(plant: Plant, state: dict[str, Any], how: RolloutArguments, out: Any) -> Any:
    """Arrays of a graphics card: tensors of torch with their gradients."""
    if out is not None:
        raise StateError(
            "rollout: out= is not for graphics cards", "leave it out, or give arrays of the host"
        )
    if not any(map(requires_grad, state.values())):
        return _on_card(plant, state, how)
    if how.blocks:
        raise StateError(
            f"rollout: {NO_DERIVATIVE}", 'leave limits="ignore", or give tensors without gradients'
        )
    on_host = None if on_gpu(state["tau"]) else state["tau"]

    def run(q: Any, v: Any, tau: Any) -> CudaRolloutResult:
        return _on_card(plant, {"q": q, "v": v, "tau": on_host if tau is None else tau}, how)

    like = next(x for x in state.values() if on_gpu(x))
    given = {**state, "tau": None if not on_gpu(state["tau"]) else state["tau"]}
    return rollout_of_arrays(
        run,
        plant,
        given,
        like,
        whole_number("steps", how.steps),
        step_stride(how.every),
        how.blocks,
    )


def _on_card(plant: Plant, state: dict[str, Any], how: RolloutArguments) -> CudaRolloutResult:
    """The same on a graphics card; the torque is nothing, an array of the card, or what it may be on the host."""
    there = {name: x for name, x in state.items() if on_gpu(x) or (name != "tau" and x is not None)}
    batch = batch_axes(
        "rollout", {f"{name}0": tuple(x.shape[:-1]) for name, x in there.items() if name != "tau"}
    )
    shape = tuple(there["tau"].shape) if "tau" in there else ()
    if (
        len(shape) > 1
        and shape[-2] == 1
        and fits_steps(shape, batch, whole_number("steps", how.steps))
    ):  # a table of one row
        there["tau"] = there["tau"].reshape(*shape[:-2], shape[-1])
    drive, plan, dt, steps, every = _planned(
        plant, there.get("tau", state["tau"]), "tau" in there, batch, how
    )
    return CudaRolloutResult.of(CudaRunner(plant, drive, plan, dt, there, steps), every, shape)


def _planned(
    plant: Plant, tau: Any, is_there: bool, batch: tuple[int, ...], how: RolloutArguments
) -> tuple[RolloutInput, RolloutOptions, float, int, int]:
    """What a kernel does; torques that are there, on a card, take the place of zeros."""
    if is_there and how.effort is not False:
        raise StateError(
            "rollout: tau is on a graphics card, where it is not cut to effort limits",
            "cut it before",
        )
    steps, every, dt = whole_number("steps", how.steps), step_stride(how.every), step_size(how.dt)
    own: Any = None if is_there else as_law(plant.system, tau, len(batch) > 0)
    if is_there and is_per_step(tuple(np.shape(tau)), batch, steps) and steps > 1:
        own = np.zeros((steps, plant.nv))
    drive = how.drive(plant, own, batch, steps, dt)
    plan = drive.options(
        plant, how.method, flag("hold", how.hold), JointStops(plant) if how.blocks else None
    )
    return drive, plan, dt, steps, every


def _fill(runner: FallbackRunner, states: tuple[np.ndarray, ...], every: int) -> None:
    """All samples behind the first, piece by piece."""
    rows, done = states[0].shape[1], 0
    while runner.count and done < rows - 1:
        some = min(rows - 1 - done, runner.steps_per_piece(every) // every)
        out = tuple(x[:, done + 1 : done + 1 + some] for x in states)
        q, v = (x[:, done] for x in states)
        runner.advance(q, v, every * done, every * some, every, out)
        done += some


def _results(out: Any, lead: tuple[int, ...], plant: Plant) -> tuple[np.ndarray, np.ndarray]:
    """New arrays, or those given when they fit."""
    shapes = (*lead, plant.nq), (*lead, plant.nv)
    if out is None:
        return np.empty(shapes[0]), np.empty(shapes[1])
    arrays: tuple[Any, ...] = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(arrays) != 2 or not all(map(_takes, arrays, shapes)):
        raise StateError(
            f"out is {shown(out)}, expected two arrays",
            f"give np.empty({shapes[0]}), np.empty({shapes[1]})",
        )
    return arrays[0], arrays[1]


def _takes(array: Any, shape: tuple[int, ...]) -> bool:
    good = isinstance(array, np.ndarray) and array.dtype == float and array.shape == shape
    return good and array.flags.c_contiguous and array.flags.writeable
