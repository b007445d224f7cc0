"""What drives a system: nothing, numbers, or a function; and what brakes it.

Torques are given as

    tau = None                 no torque
    tau (..., nv)              constant
    tau (..., steps, nv)       constant within each step
    tau(t, q, v)               a function or a controller, asked at every stage; `hold=True`: once a step

and joints lose

    - damping v - friction v / sqrt(v^2 + speed^2)     viscous, and Coulomb friction smoothed below `speed`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi.arguments import read, real
from psiphi.control.plant import Plant
from psiphi.errors import StateError
from psiphi.model.model import Model
from psiphi.spatial.choices import least, most
from psiphi.spatial.screws import root
from psiphi.wording import shown

Batch = tuple[int, ...]
UNBOUND = 1e300  # stands for no bound: 0 times it is 0


@dataclass(frozen=True)
class Torque:
    """Torques by step (arrays) or by state (a function); exactly one of the two is there."""

    plant: Plant
    batch: Batch
    table: np.ndarray | None = None  # (..., 1 or steps, nv)
    function: Callable | None = None

    def __call__(self, step: int, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """tau (*batch, nv) within `step`."""
        if self.table is not None:
            return np.broadcast_to(self.table[..., min(step, self.table.shape[-2] - 1), :], (*self.batch, self.plant.nv))
        assert self.function is not None
        return self.checked(self.function(t, shielded(q), shielded(v)), self.batch)

    def cut(self, effort: np.ndarray | None) -> Torque:
        """Tables within the effort limits; what functions answer is cut when they are asked."""
        if effort is None or self.table is None:
            return self
        return replace(self, table=within(self.table, effort))

    def checked(self, answer: Any, lead: Batch) -> np.ndarray:
        """What a function answered, as tau (*lead, nv)."""
        nv = self.plant.nv
        tau, fault = read(answer, None)
        if not fault:
            try:
                return np.broadcast_to(self.plant.filled(tau.astype(float, copy=False)), (*lead, nv))
            except ValueError:
                fault = f"has shape {tau.shape}, expected {(*lead, nv)}"
        raise StateError(f"tau(t, q, v) {fault}", f"return {nv} numbers, with the batch axes of q in front")


def read_torque(tau: Any, system: Plant, batch: Batch, steps: int) -> Torque:
    """The torque as the user gave it, checked."""
    nv = system.nv
    if tau is None:
        return Torque(system, batch, np.zeros((1, nv)))
    if callable(tau):
        own = getattr(tau, "robot", None)
        if isinstance(own, Model) and (own.nq, own.nv) != (system.robot.nq, system.robot.nv):
            cause = f"the controller is made for {own.name} (nq={own.nq}, nv={own.nv}), not for {system.name}"
            raise StateError(cause, f"make it with the robot that is simulated (nq={system.nq}, nv={nv})")
        return Torque(system, batch, function=tau)
    array, fault = read(tau, None)
    full = tau if fault or not array.ndim else system.filled(array.astype(float))
    array = real("tau", full, (nv,), f"give nv = {nv} numbers, (steps, nv) of them, or a function of (t, q, v)")
    if not np.isfinite(array).all():
        raise StateError("tau holds numbers that are not finite", "look at where they came from")
    by_step, by_element = _fits(array, batch, steps), _broadcasts(array.shape[:-1], batch)
    if by_step and by_element and array.ndim > 1 and array.shape[-2] != 1:
        cause = f"tau of shape {array.shape} may be one row a step or one a batch element: there are {steps} of both"
        raise StateError(cause, "give (..., 1, nv) for constant torques or (1, steps, nv) for the same steps everywhere")
    if by_step:
        return Torque(system, batch, array)
    if by_element:
        return Torque(system, batch, array[..., None, :])
    want = f"(nv,) = {(nv,)}, {(steps, nv)} for {steps} steps" + (f", or one of these behind {batch}" if batch else "")
    raise StateError(f"tau has shape {array.shape}, expected {want}", "one row a step of dt, or one for all steps")


def _fits(array: np.ndarray, batch: Batch, steps: int) -> bool:
    return array.ndim > 1 and array.shape[-2] in (1, steps) and _broadcasts(array.shape[:-2], batch)


def _broadcasts(lead: Batch, batch: Batch) -> bool:
    try:
        return np.broadcast_shapes(lead, batch) == batch
    except ValueError:
        return False


def shielded(x: np.ndarray) -> np.ndarray:
    """The array as others may see it: they cannot change the state."""
    view = x.view()
    view.flags.writeable = False
    return view


def within(tau: Any, effort: Any) -> Any:
    """tau between -effort and effort, on arrays of numbers or of tape expressions."""
    return least(most(tau, -effort), effort)


def resisted(tau: Any, v: Any, damping: Any = None, friction: Any = None, floor: Any = 0.0) -> Any:
    """tau - damping v - friction v / sqrt(v^2 + floor), of the losses there are, on arrays of any scalars."""
    force = tau if damping is None else tau - damping * v
    return force if friction is None else force - friction * (v / root(v * v + floor))


@dataclass(frozen=True)
class Losses:
    """What joints lose, each a row of nv numbers; see `resisted`."""

    damping: np.ndarray
    friction: np.ndarray
    speed: float

    @property
    def floor(self) -> float:
        """speed^2, and not 0 where that is too small for a number: a joint at rest has no friction."""
        return max(self.speed**2, np.finfo(float).tiny)

    @property
    def none(self) -> bool:
        return not (self.damping.any() or self.friction.any())

    @property
    def acting(self) -> dict[str, np.ndarray]:
        """The numbers of those that act, as `resisted` takes them."""
        found = {name: getattr(self, name) for name in ("damping", "friction") if getattr(self, name).any()}
        return found | ({"floor": np.array([self.floor])} if "friction" in found else {})


def read_losses(system: Plant, damping: Any, friction: Any, speed: Any) -> Losses:
    """True takes the model's numbers, False none, an array is taken as it is."""
    smooth = real("friction_speed", speed, (), "give a speed")
    if smooth.ndim or not 0.0 < smooth < np.inf:
        raise StateError(f"friction_speed is {shown(speed)}, expected a positive number", "0.01 is the default")
    return Losses(_per_velocity(system, "damping", damping), _per_velocity(system, "friction", friction), float(smooth))


def _per_velocity(system: Plant, name: str, given: Any) -> np.ndarray:
    if isinstance(given, bool | np.bool_):
        own = [getattr(joint, name) for joint in system.robot.joints] if given else []
        row = np.concatenate(own) if own else np.zeros(system.nv)
        if row.shape != (system.nv,):
            raise StateError(f"{name}=True: the system's velocities are not the joints'", f"give {name} as an array")
        return row
    return coefficients(name, given, system.nv)


def coefficients(name: str, given: Any, nv: int, most: float = np.finfo(float).max) -> np.ndarray:
    """One number of at least 0, or nv of them, as a row (nv,)."""
    row = real(name, given, (), "give a number or nv numbers")
    if row.shape not in ((), (nv,)) or not ((row >= 0.0) & (row <= most)).all():
        raise StateError(
            f"{name} is {shown(given)}, expected one or nv = {nv} numbers of at least 0", "give a number or an array"
        )
    return np.broadcast_to(row, (nv,)).copy()


def read_effort(system: Plant, given: Any) -> np.ndarray | None:
    """Torques are cut to +- this; None: they are not."""
    chosen = isinstance(given, bool | np.bool_)
    if chosen and not given:
        return None
    if chosen:
        limits = np.concatenate([joint.effort for joint in system.robot.joints] or [np.zeros(0)])
    else:
        limits = coefficients("effort", given, system.nv, np.inf)
    if limits.shape != (system.nv,):
        raise StateError("effort=True: the system's velocities are not the joints'", "give effort as an array")
    return np.minimum(limits, UNBOUND) if np.isfinite(limits).any() else None
