"""What drives a system: nothing, numbers, or a function; and how much its motors can do.

Torques are given as

    tau = None                 no torque
    tau (..., nv)              constant
    tau (..., steps, nv)       constant within each step
    tau(t, q, v)               a function or a controller, asked at every stage; `hold=True`: once a step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import coefficients, finite_array, read_array
from psiphi.model.model import Model
from psiphi.model.spatial.branch_free import maximum, minimum
from psiphi.simulation.plant import Plant

Batch = tuple[int, ...]
UNBOUND = 1e300  # stands for no bound: 0 times it is 0


@dataclass(frozen=True)
class TorqueInput:
    """Torques by step (arrays) or by state (a function); exactly one of the two is there."""

    plant: Plant
    batch: Batch
    table: np.ndarray | None = None  # (..., 1 or steps, nv)
    function: Callable | None = None

    def __call__(self, step: int, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """tau (*batch, nv) within `step`."""
        if self.table is not None:
            return np.broadcast_to(
                self.table[..., min(step, self.table.shape[-2] - 1), :],
                (*self.batch, self.plant.nv),
            )
        assert self.function is not None
        return self.checked(self.function(t, read_only(q), read_only(v)), self.batch)

    def limit(self, effort: np.ndarray | None) -> TorqueInput:
        """Tables within the effort limits; what functions answer is cut when they are asked."""
        if effort is None or self.table is None:
            return self
        return replace(self, table=limit_torque(self.table, effort))

    def checked(self, answer: Any, lead: Batch) -> np.ndarray:
        """What a function answered, as tau (*lead, nv)."""
        nv = self.plant.nv
        tau, fault = read_array(answer, None)
        if not fault:
            filled = self.plant.expand_law_torque(tau.astype(float, copy=False))
            if filled.shape[-1:] == (nv,) and _broadcasts(filled.shape[:-1], lead):
                return np.broadcast_to(filled, (*lead, nv))
            fault = f"has shape {tau.shape}, expected {(*lead, nv)}"
        remedy = f"return nv = {nv} numbers, with the batch axes of q in front; passive= names joints without a motor"
        raise StateError(f"tau(t, q, v) {fault}", remedy)


def read_torque(tau: Any, system: Plant, batch: Batch, steps: int) -> TorqueInput:
    """The torque as the user gave it, checked."""
    nv = system.nv
    if tau is None:
        return TorqueInput(system, batch, np.zeros((1, nv)))
    if callable(tau):
        own = getattr(tau, "robot", None)
        if isinstance(own, Model) and (own.nq, own.nv) != (system.robot.nq, system.robot.nv):
            cause = f"the controller is made for {own.name} (nq={own.nq}, nv={own.nv}), not for {system.name}"
            raise StateError(
                cause, f"make it with the robot that is simulated (nq={system.nq}, nv={nv})"
            )
        return TorqueInput(system, batch, function=tau)
    array, fault = read_array(tau, None)
    full = tau if fault or not array.ndim else system.expand_torque(array.astype(float))
    array = finite_array(
        "tau",
        full,
        (nv,),
        f"give nv = {nv} numbers, (steps, nv) of them, or a function of (t, q, v)",
    )
    undriven = system.unactuated_indices if system.motors_given else []
    if len(undriven) and array[..., undriven].any():
        cause = f"tau acts on {', '.join(system.unactuated_joints)}, which have no motor"
        raise StateError(
            cause, f"give 0 there, or {nv - len(undriven)} numbers for the motors alone"
        )
    return TorqueInput(
        system, batch, array if is_per_step(array.shape, batch, steps) else array[..., None, :]
    )


def is_per_step(shape: Batch, batch: Batch, steps: int) -> bool:
    """Whether torques of this shape are a row a step (or one for all), not one a motion; a StateError where they are neither,
    or may be both."""
    of_steps, of_motions, nv = (
        fits_steps(shape, batch, steps),
        _broadcasts(shape[:-1], batch),
        shape[-1],
    )
    if of_steps and of_motions and len(shape) > 1 and shape[-2] != 1:
        cause = f"tau of shape {shape} may be one row a step or one a batch element: there are {steps} of both"
        raise StateError(
            cause,
            "give (..., 1, nv) for constant torques or (1, steps, nv) for the same steps everywhere",
        )
    if not (of_steps or of_motions):
        want = f"(nv,) = {(nv,)}, {(steps, nv)} for {steps} steps" + (
            f", or one of these behind {batch}" if batch else ""
        )
        raise StateError(
            f"tau has shape {shape}, expected {want}", "one row a step of dt, or one for all steps"
        )
    return of_steps


def fits_steps(shape: Batch, batch: Batch, steps: int) -> bool:
    """Whether an array of this shape is a row a step, or one for all steps."""
    return len(shape) > 1 and shape[-2] in (1, steps) and _broadcasts(shape[:-2], batch)


def _broadcasts(lead: Batch, batch: Batch) -> bool:
    try:
        return np.broadcast_shapes(lead, batch) == batch
    except ValueError:
        return False


def read_only(x: np.ndarray) -> np.ndarray:
    """The array as others may see it: they cannot change the state."""
    view = x.view()
    view.flags.writeable = False
    return view


def limit_torque(tau: Any, effort: Any) -> Any:
    """tau between -effort and effort, on arrays of numbers or of tape expressions."""
    return minimum(maximum(tau, -effort), effort)


def read_effort(system: Plant, given: Any) -> np.ndarray | None:
    """Torques are cut to +- this; None: they are not. Joints that are said to have no motor have no effort."""
    limits = _effort(system, given)
    if not system.motors_given or not len(system.unactuated_indices):
        return limits
    limits = np.full(system.nv, UNBOUND) if limits is None else limits.copy()
    limits[system.unactuated_indices] = 0.0
    return limits


def _effort(system: Plant, given: Any) -> np.ndarray | None:
    chosen = isinstance(given, bool | np.bool_)
    if chosen and not given:
        return None
    limits = system.robot.effort if chosen else coefficients("effort", given, system.nv, np.inf)
    if limits.shape != (system.nv,):
        raise StateError(
            "effort=True: the system's velocities are not the joints'", "give effort as an array"
        )
    return np.minimum(limits, UNBOUND) if np.isfinite(limits).any() else None
