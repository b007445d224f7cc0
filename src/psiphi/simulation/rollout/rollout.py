"""`pp.rollout(robot, q0, v0, tau, ...)`: many steps of a simulation as one compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from psiphi._util.array_types import AnyArray, Numbers
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
from psiphi.model.contact.ground import Ground
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_step import choose_method, ground_contact
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
from psiphi.simulation.control.torque_input import (
    fits_steps,
    is_per_step,
    read_effort,
    read_torque,
    with_torque_batch,
)
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.linearization.step_arguments import check_method
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.rollout.cuda_result import (
    NO_CONTACT_DERIVATIVE,
    ON_CPU,
    CudaRolloutResult,
)
from psiphi.simulation.rollout.rollout_arrays import Torque, lazy_rollout, rollout_of_arrays
from psiphi.simulation.rollout.rollout_result import RolloutResult, TorqueArgument
from psiphi.simulation.rollout_derivatives.rollout_adjoint import RolloutAdjoint
from psiphi.simulation.rollout_derivatives.step_derivatives import (
    NO_DERIVATIVE,
)
from psiphi.simulation.simulate import adaptive_step
from psiphi.simulation.simulation_errors import warn_of_dead_points
from psiphi.simulation.start_checks import (
    check_closed,
    check_size,
    initial_state,
    step_size,
    step_stride,
)

if TYPE_CHECKING:
    from psiphi.robot.free_robot import FreeRobot

Batch = tuple[int, ...]
Arrays = tuple[np.ndarray, np.ndarray]  # q and v


def rollout(
    robot: Robot | System,
    q0: Numbers | AnyArray,
    v0: Numbers | AnyArray | None = None,
    tau: Numbers | Torque = None,
    dt: float = 1e-3,
    steps: int = 1000,
    method: str | None = None,
    *,
    every: int = 1,
    hold: bool = False,
    damping: bool | Numbers = False,
    friction: bool | Numbers = False,
    friction_speed: float | None = None,
    springs: bool | Numbers = False,
    effort: bool | Numbers = False,
    actuated: str | Sequence[str] | None = None,
    passive: str | Sequence[str] | None = None,
    limits: str = "ignore",
    contacts: Ground | None = None,
    out: tuple[np.ndarray, np.ndarray] | None = None,
) -> RolloutResult:
    """q (..., n, nq) and v (..., n, nv): the states at the steps 0, every, 2 every, ...

    A rollout runs the kernel of `simulate`, without energies, events and other records. The
    arguments are those of `simulate`; tau is None, an array, a controller, or a pure function,
    which is traced with or without the mark `pp.law`. `out` are arrays for the results. The methods
    `vjp`, `jvp` and `hvp` of the result are the derivatives of the motion. Arrays of torch and JAX
    give a named tuple (q, v) of such arrays, with the derivatives of their library, in forward and
    reverse mode.

    With `contacts`, a `pp.Ground`, the shapes of `robot.with_contacts` touch it. The result has
    `contact_residual` (..., n) in m/s: by how much the steps since the sample before violate the
    laws of contact. Such motions have first derivatives, exact where each contact stays open,
    sticks or slips.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = rollout(robot, robot.random(seed=0, size=100), steps=50, every=10)
    >>> q.shape
    (100, 6, 6)
    """
    arguments = RolloutArguments(
        dt,
        steps,
        choose_method(method, contacts, "rollout"),
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
        contacts,
    )
    plant, tau = Plant(robot), unwrap_law(tau)
    plant.set_motors(actuated, passive)
    start = {"q": q0, "v": v0, "tau": tau}
    if any(map(is_lazy, start.values())):
        options = {**arguments._asdict(), "out": out}
        starts = {"q0": q0, "v0": v0, "tau": tau}
        counts = whole_number("steps", steps), step_stride(every)
        arrays: Any = lazy_rollout(rollout, plant, starts, *counts, options)
        return arrays
    if any(map(on_gpu, start.values())) and not any(map(is_tracer, start.values())):
        return _rollout_on_gpu(plant, start, arguments, out)
    start["q"] = with_torque_batch(q0, v0, tau, arguments.counts[0])
    parameters = filter(is_foreign, parameters_of(plant.robot))
    start |= dict(zip((PARAMETERS,), parameters, strict=False))
    if any(map(is_foreign, start.values())):
        return rollout_of_tensors(robot, plant, start, arguments, out)
    return _rollout_on_cpu(plant, start, arguments, out)


class RolloutArguments(NamedTuple):
    """The options of a rollout, as they were passed to `rollout`."""

    dt: float
    steps: int
    method: str
    every: int = 1
    hold: bool = False
    damping: bool | Numbers = False
    friction: bool | Numbers = False
    friction_speed: float | None = None
    springs: bool | Numbers = False
    effort: bool | Numbers = False
    actuated: str | Sequence[str] | None = None
    passive: str | Sequence[str] | None = None
    limits: str = "ignore"
    contacts: Ground | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """The number of steps, and of steps between two samples."""
        return whole_number("steps", self.steps), step_stride(self.every)

    @property
    def has_stops(self) -> bool:
        """Whether joints stop at their limits."""
        remedy = "pp.simulate records limits and stops at them"
        return one_of("limits", self.limits, ("ignore", "block"), remedy) == "block"

    @property
    def no_derivative(self) -> tuple[str, str] | None:
        """Why the motion has no derivative, and what to do; None if it has one."""
        if self.has_stops and self.contacts is None:
            return NO_DERIVATIVE, 'use limits="ignore", or tensors that do not require gradients'
        return None

    def check_differentiable(self) -> None:
        """Raise an error if the motion has no derivative."""
        if self.no_derivative is not None:
            cause, remedy = self.no_derivative
            raise StateError(f"rollout: {cause}", remedy)

    def rollout_input(
        self,
        plant: Plant,
        tau: object,
        batch: Batch,
        steps: int,
        dt: float,
        q: np.ndarray | None,
    ) -> RolloutInput:
        """The torque, the losses and the effort limits; an error if there is no kernel for them."""
        effort = read_effort(plant, self.effort)
        torque = read_torque(tau, plant, batch, steps).limit(effort)
        losses = read_losses(plant, self.damping, self.friction, self.friction_speed, self.springs)
        if self.contacts is None and self.method not in adaptive_step.METHODS:
            check_method(self.method, "rollout")  # `why_not_compiled` reports adaptive methods
        reason = why_not_compiled(plant.system, tau, self.method, self.has_stops)
        if reason:
            raise StateError(
                f"rollout: {reason}", "use pp.simulate, which takes any system, torque and method"
            )
        return RolloutInput(
            torque,
            losses.for_steps(plant, self.method, dt),
            tau if isinstance(tau, Controller) else None,
            effort,
            None
            if self.contacts is None
            else ground_contact(plant, self.contacts, self.limits, "rollout", q),
        )


def _rollout_on_cpu(
    plant: Plant,
    start: dict[str, Any],
    arguments: RolloutArguments,
    out: object,
    checks_ground: bool = True,
) -> RolloutResult:
    """The rollout of NumPy arrays: they are checked, and run on all threads."""
    q, v = initial_state(plant, start["q"], start["v"], any_norm=True)
    tau, batch = start["tau"], q.shape[:-1]
    check_closed(plant, q, v)
    if out is None:
        check_size(plant, batch, *arguments.counts, whole=False)
    rollout_input, options, dt, steps, every = _prepare(
        plant, tau, False, batch, arguments, q if checks_ground else None
    )
    runner = FallbackRunner(plant, rollout_input, options, dt, batch)
    q_out, v_out = _result_arrays(out, (*batch, 1 + steps // every), plant)
    samples = (
        q_out.reshape(runner.count, *q_out.shape[-2:]),
        v_out.reshape(runner.count, *v_out.shape[-2:]),
    )
    samples[0][:, 0] = q.reshape(-1, plant.nq)
    samples[1][:, 0] = v.reshape(-1, plant.nv)
    try:
        _run_pieces(runner, samples, every)
    except ConstraintSolveFailed:
        raise StateError(
            f"rollout: {SOLVE_FAILED}",
            "use pp.simulate, which runs such steps in Python and reports the cause",
        ) from None
    warn_of_dead_points(plant, q_out, every * dt * np.arange(q_out.shape[-2]))
    reference = runner.reference_samples(every * (samples[0].shape[1] - 1))
    make_adjoint, torque_argument = partial(RolloutAdjoint, runner, samples, every, reference), None
    if not callable(tau):
        shape = np.shape(tau) if tau is not None else (plant.nv,)
        torque_argument = TorqueArgument(
            rollout_input.torque, shape, tau is not None, rollout_input.effort
        )
    result = RolloutResult.of((q_out, v_out), make_adjoint, torque_argument)
    if options.contacts is not None:
        residual = runner.residuals.between(every * np.arange(q_out.shape[-2]))
        result.contact_residual = residual.max(axis=-1).reshape(*batch, -1)
    return result


def rollout_of_tensors(
    robot: Robot | System,
    plant: Plant,
    start: dict[str, Any],
    arguments: RolloutArguments,
    out: object = None,
    checks_ground: bool = True,
) -> Any:
    """The rollout of torch tensors or JAX arrays on the CPU, with the derivatives of their
    library. With `checks_ground`, a start inside the ground is an error."""
    foreign = [x for x in start.values() if is_foreign(x)]
    if out is not None:
        raise StateError("rollout: out= is for NumPy arrays, and these are not", "omit out=")
    if any(map(requires_grad, foreign)):
        arguments.check_differentiable()
    step_size(arguments.dt)  # an invalid dt is reported here, not inside a callback of the library
    law = _law_with_parameters(start)

    def run(q: np.ndarray, v: np.ndarray, tau: Torque, parameters: Any = None) -> RolloutResult:
        bound = robot if parameters is None else cast("FreeRobot | System", robot).at(parameters)
        own_tau = tau if law is None else _bind_law(law, bound)
        if not checks_ground:
            own_start = {"q": q, "v": v, "tau": own_tau}
            return _rollout_on_cpu(Plant(bound), own_start, arguments, None, checks_ground)
        return rollout(bound, q, v, own_tau, **arguments._asdict())

    counts, no_derivative = arguments.counts, arguments.no_derivative
    return rollout_of_arrays(run, plant, start, foreign[0], *counts, no_derivative)


def _law_with_parameters(start: dict[str, Any]) -> Controller | None:
    """The controller, if the robot's parameters are a tensor: it must be bound to them, so that the
    derivatives include the dependence of the controller on the parameters."""
    law = start["tau"]
    if PARAMETERS not in start or not is_law_controller(law):
        return None
    if not any(x is start[PARAMETERS] for x in parameters_of(robot_of(law.robot))):
        library = array_library(start[PARAMETERS])
        raise StateError(
            "rollout: the controller is made for another robot than the one with parameters of "
            f"{library}",
            "make it with robot.at(parameters) of the same array",
        )
    return law


def _bind_law(law: Controller, robot: Robot | System) -> Controller:
    """The controller for this robot, whose parameters are NumPy arrays."""
    bound = copy(law)
    bound.robot = robot
    return bound


def _rollout_on_gpu(
    plant: Plant, start: dict[str, Any], arguments: RolloutArguments, out: object
) -> Any:
    """The rollout of GPU arrays; that of torch tensors has their gradients."""
    if out is not None:
        raise StateError(
            "rollout: out= is not implemented on the GPU", "omit out=, or give NumPy arrays"
        )
    if not any(map(requires_grad, start.values())):
        return _run_on_gpu(plant, start, arguments)
    arguments.check_differentiable()
    if arguments.contacts is not None:
        raise StateError(f"rollout: {NO_CONTACT_DERIVATIVE}", ON_CPU)
    tau_on_gpu = on_gpu(start["tau"])

    def run(q: AnyArray, v: AnyArray, tau: AnyArray | None) -> CudaRolloutResult:
        own_tau = start["tau"] if tau is None and not tau_on_gpu else tau
        return _run_on_gpu(plant, {"q": q, "v": v, "tau": own_tau}, arguments)

    like = next(x for x in start.values() if on_gpu(x))
    values = {**start, "tau": start["tau"] if tau_on_gpu else None}
    counts, no_derivative = arguments.counts, arguments.no_derivative
    return rollout_of_arrays(run, plant, values, like, *counts, no_derivative)


def _run_on_gpu(
    plant: Plant, start: dict[str, Any], arguments: RolloutArguments
) -> CudaRolloutResult:
    """The rollout of GPU arrays; tau is a GPU array or any torque that NumPy rollouts take."""
    arrays = {
        name: x for name, x in start.items() if on_gpu(x) or (name != "tau" and x is not None)
    }
    leads = {f"{name}0": tuple(x.shape[:-1]) for name, x in arrays.items() if name != "tau"}
    batch = batch_axes("rollout", leads)
    tau_shape: Batch = ()
    if "tau" in arrays:
        tau_shape = tuple(arrays["tau"].shape)
        has_one_row = len(tau_shape) > 1 and tau_shape[-2] == 1
        if has_one_row and fits_steps(tau_shape, batch, arguments.counts[0]):
            arrays["tau"] = arrays["tau"].reshape(*tau_shape[:-2], *tau_shape[-1:])
    rollout_input, options, dt, steps, every = _prepare(
        plant, arrays.get("tau", start["tau"]), "tau" in arrays, batch, arguments
    )
    runner = CudaRunner(plant, rollout_input, options, dt, arrays, steps)
    return CudaRolloutResult.of(runner, every, tau_shape)


def _prepare(
    plant: Plant,
    tau: Any,
    tau_on_gpu: bool,
    batch: Batch,
    arguments: RolloutArguments,
    q: np.ndarray | None = None,
) -> tuple[RolloutInput, RolloutOptions, float, int, int]:
    """(inputs, options, dt, steps, every) of a kernel. For torques on the GPU the inputs have
    zeros, which the runner replaces."""
    if tau_on_gpu and arguments.effort is not False:
        raise StateError(
            "rollout: effort= is not implemented for tau on the GPU",
            "clip tau to the effort limits before the call",
        )
    (steps, every), dt = arguments.counts, step_size(arguments.dt)
    if not tau_on_gpu:
        host_tau = as_law(plant.system, tau)
    elif is_per_step(tuple(np.shape(tau)), batch, steps) and steps > 1:
        host_tau = np.zeros((steps, plant.nv))
    else:
        host_tau = None
    rollout_input = arguments.rollout_input(plant, host_tau, batch, steps, dt, q)
    stops = JointStops(plant) if arguments.has_stops else None
    if stops is not None and q is not None:
        stops.check_start(q)
    hold = flag("hold", arguments.hold)
    options = rollout_input.options(plant, arguments.method, hold, stops)
    return rollout_input, options, dt, steps, every


def _run_pieces(runner: FallbackRunner, samples: Arrays, every: int) -> None:
    """Fill in all samples after the first, piece by piece."""
    count, done = samples[0].shape[1], 0
    while runner.count and done < count - 1:
        more = min(count - 1 - done, runner.steps_per_piece(every) // every)
        out = tuple(x[:, done + 1 : done + 1 + more] for x in samples)
        q, v = (x[:, done] for x in samples)
        runner.advance(q, v, every * done, every * more, every, out)
        done += more


def _result_arrays(out: object, lead: tuple[int, ...], plant: Plant) -> Arrays:
    """New arrays, or those of `out`."""
    shapes = (*lead, plant.nq), (*lead, plant.nv)
    if out is None:
        return np.empty(shapes[0]), np.empty(shapes[1])
    arrays: tuple[Any, ...] = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(arrays) != 2 or not all(map(_is_writable, arrays, shapes)):
        raise StateError(
            f"out is {shown(out)}, expected two contiguous arrays of float64",
            f"give np.empty({shapes[0]}), np.empty({shapes[1]})",
        )
    return arrays[0], arrays[1]


def _is_writable(array: object, shape: tuple[int, ...]) -> bool:
    """Whether a kernel can write samples of this shape into an array."""
    if not isinstance(array, np.ndarray) or array.dtype != float or array.shape != shape:
        return False
    return array.flags.c_contiguous and array.flags.writeable
