"""The torque that drives a system, and the effort limits of its motors.

Torques are given as

    tau = None                 no torque
    tau (..., nv)              constant
    tau (..., steps, nv)       constant within each step
    tau(t, q, v)               a function or a controller, called at every stage; with `hold=True`
                               once per step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import coefficients, finite_array, read_array
from psiphi.functions.arrays.array_dispatch import array_module
from psiphi.model.model import Model
from psiphi.model.spatial.branch_free import maximum, minimum
from psiphi.simulation.control.marked_law import unwrap_law
from psiphi.simulation.control.user_function import UserFunction
from psiphi.simulation.plant import Plant

Batch = tuple[int, ...]
UNBOUND = 1e300  # stands for no bound: unlike infinity, 0 times it is 0


@dataclass(frozen=True)
class TorqueInput:
    """A table of torques by step, or a function of the state; the other one is None."""

    plant: Plant
    batch: Batch
    table: np.ndarray | None = None  # (..., 1 or steps, nv)
    function: Callable | None = None
    not_numbers: list[float] = field(default_factory=list)  # when the function first gave NaN

    def __call__(self, step: int, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """tau (*batch, nv) within `step`."""
        if self.table is not None:
            row = self.table[..., min(step, self.table.shape[-2] - 1), :]
            return np.broadcast_to(row, (*self.batch, self.plant.nv))
        assert self.function is not None
        tau = self.check_result(self.function(t, q, v), self.batch)
        if not self.not_numbers and np.isnan(tau).any():
            is_state = np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)
            if (is_state & np.isnan(tau).any(axis=-1)).any():
                self.not_numbers.append(t)
        return tau

    def limit(self, effort: np.ndarray | None) -> TorqueInput:
        """The same input with its table within the effort limits; results of functions are limited
        at each call."""
        if effort is None or self.table is None:
            return self
        return replace(self, table=limit_torque(self.table, effort))

    def check_result(self, result: object, lead: Batch) -> np.ndarray:
        """The result of the function as tau (*lead, nv)."""
        nv = self.plant.nv
        tau, fault = read_array(result, None)
        if not fault:
            full = self.plant.expand_law_torque(tau.astype(float, copy=False))
            if full.shape[-1:] == (nv,) and _broadcasts(full.shape[:-1], lead):
                return np.broadcast_to(full, (*lead, nv))
            fault = f"has shape {tau.shape}, expected {(*lead, nv)}"
        raise StateError(
            f"tau(t, q, v) {fault}",
            f"return nv = {nv} numbers for one motion, q (nq,); pp.law(batched=True) marks a "
            "function of the whole batch; passive= names joints without a motor",
        )


def read_torque(tau: Any, system: Plant, batch: Batch, steps: int) -> TorqueInput:
    """The torque in one of its four forms, checked."""
    nv = system.nv
    if tau is None:
        return TorqueInput(system, batch, np.zeros((1, nv)))
    if callable(tau):
        robot = getattr(unwrap_law(tau), "robot", None)
        if isinstance(robot, Model) and (robot.nq, robot.nv) != (system.robot.nq, system.robot.nv):
            raise StateError(
                f"the controller is made for {robot.name} (nq={robot.nq}, nv={robot.nv}), "
                f"not for {system.name}",
                f"make it with the robot that is simulated (nq={system.nq}, nv={nv})",
            )
        function = UserFunction(tau, batch, "the torque", (nv,), system.expand_law_torque)
        return TorqueInput(system, batch, function=function)
    array, fault = read_array(tau, None)
    full = tau if fault or not array.ndim else system.expand_torque(array.astype(float))
    remedy = f"give nv = {nv} numbers, (steps, nv) of them, or a function of (t, q, v)"
    array = finite_array("tau", full, (nv,), remedy)
    unactuated = system.unactuated_indices if system.motors_given else []
    if len(unactuated) and array[..., unactuated].any():
        cause = f"tau acts on {', '.join(system.unactuated_joints)}, which have no motor"
        raise StateError(
            cause, f"give 0 there, or {nv - len(unactuated)} numbers for the motors alone"
        )
    table = array if is_per_step(array.shape, batch, steps) else array[..., None, :]
    return TorqueInput(system, batch, table)


def is_per_step(shape: Batch, batch: Batch, steps: int) -> bool:
    """Whether torques of this shape have one row per step (or one for all), not one per motion.

    It is an error if they have neither, or if they may have either.
    """
    per_step, per_motion = fits_steps(shape, batch, steps), _broadcasts(shape[:-1], batch)
    nv = shape[-1]
    if per_step and per_motion and len(shape) > 1 and shape[-2] != 1:
        raise StateError(
            f"tau of shape {shape} may be one row a step or one a batch element: "
            f"there are {steps} of both",
            "give (..., 1, nv) for constant torques, "
            "or (1, steps, nv) for the same table in every motion",
        )
    if not (per_step or per_motion):
        expected = f"(nv,) = {(nv,)}, {(steps, nv)} for {steps} steps"
        expected += f", or one of these behind {batch}" if batch else ""
        raise StateError(
            f"tau has shape {shape}, expected {expected}",
            "give one row per step of dt, or one for all steps; (motions, 1, nv) is one constant "
            "torque for each of many motions",
        )
    return per_step


def fits_steps(shape: Batch, batch: Batch, steps: int) -> bool:
    """Whether an array of this shape can have one row per step, or one for all steps."""
    return len(shape) > 1 and shape[-2] in (1, steps) and _broadcasts(shape[:-2], batch)


def with_torque_batch(q0: Any, v0: Any, tau: Any, steps: int) -> Any:
    """q0 with the batch axes of tables of torques, tau (..., steps or 1, nv), if these have more
    than the initial states: one state, and a table for each of many motions."""
    if tau is None or callable(tau) or isinstance(q0, str):
        return q0
    try:
        shape, states = np.shape(tau), [np.shape(x) for x in (q0, v0) if x is not None]
        batch = np.broadcast_shapes(*(state[:-1] for state in states))
        wide = np.broadcast_shapes(shape[:-2], batch)
    except (ValueError, TypeError):  # ragged lists, or axes that do not fit: reported later
        return q0
    fits = fits_steps(shape, batch, steps) or _broadcasts(shape[:-1], batch)
    if fits or len(shape) < 3 or shape[-2] not in (1, steps) or not states[0]:
        return q0
    return array_module(q0).broadcast_to(
        q0 if hasattr(q0, "shape") else np.asarray(q0), (*wide, states[0][-1])
    )


def _broadcasts(lead: Batch, batch: Batch) -> bool:
    try:
        return np.broadcast_shapes(lead, batch) == batch
    except ValueError:
        return False


def limit_torque(tau: AnyScalar, effort: AnyScalar) -> Any:
    """tau between -effort and effort, on arrays of numbers or of tape expressions."""
    return minimum(maximum(tau, -effort), effort)


def read_effort(system: Plant, option: bool | Numbers) -> np.ndarray | None:
    """The effort limits (nv,), or None without limits; 0 for joints named as having no motor."""
    limits = _effort(system, option)
    if not system.motors_given or not len(system.unactuated_indices):
        return limits
    limits = np.full(system.nv, UNBOUND) if limits is None else limits.copy()
    limits[system.unactuated_indices] = 0.0
    return limits


def _effort(system: Plant, option: bool | Numbers) -> np.ndarray | None:
    """True means the model's limits, False none, else the numbers."""
    is_flag = isinstance(option, bool | np.bool_)
    if is_flag and not option:
        return None
    limits = system.robot.effort if is_flag else coefficients("effort", option, system.nv, np.inf)
    if limits.shape != (system.nv,):
        raise StateError(
            "effort=True: the system's velocities are not the joints'", "give effort as an array"
        )
    return np.minimum(limits, UNBOUND) if np.isfinite(limits).any() else None
