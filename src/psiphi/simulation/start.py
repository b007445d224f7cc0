"""What a simulation starts from: states, steps and times, read and checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psiphi.arguments import real, whole
from psiphi.control.plant import Plant
from psiphi.errors import StateError
from psiphi.functions.check import before
from psiphi.sweeps.program import Argument
from psiphi.wording import shown

CLOSED = 1e-6  # how far open the constraints may be at the start: metres, radians, and the same a second
LARGEST = 1 << 36  # numbers of a trajectory: 512 GiB
ROUNDING = 1e-9  # how far duration / dt may be from a whole number


def initial_state(plant: Plant, q0: Any, v0: Any) -> tuple[np.ndarray, np.ndarray]:
    """Copies (*batch, nq), (*batch, nv) of the initial state: finite, with unit quaternions."""
    q = real("q0", q0, (plant.nq,), f"give nq = {plant.nq} numbers; robot.neutral() shows a q")
    v = np.zeros(plant.nv) if v0 is None else real("v0", v0, (plant.nv,), f"give nv = {plant.nv} numbers")
    try:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        cause = f"the batch axes of q0 {q.shape[:-1]} and v0 {v.shape[:-1]} do not fit together"
        raise StateError(cause, "make them equal, 1, or absent") from None
    arguments = (Argument("q0", (plant.nq,), "q"), Argument("v0", (plant.nv,), "v"))
    before(plant.robot, "the initial state", arguments, (q, v))
    q, v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v))
    return plant.manifold.unit(q), v


def step_size(dt: Any) -> float:
    """Seconds, above zero."""
    number = real("dt", dt, (), "give a number of seconds")
    if number.ndim or not 0.0 < number < np.inf:
        raise StateError(f"dt is {shown(dt)}, expected one finite number above 0", "give seconds, 1e-3 for instance")
    return float(number)


def step_count(duration: Any, dt: float) -> int:
    """duration / dt, a whole number."""
    number = real("duration", duration, (), "give a number of seconds")
    if number.ndim or not 0.0 <= number < np.inf:
        raise StateError(f"duration is {shown(duration)}, expected one finite number of at least 0", "give seconds")
    ratio = float(number) / dt
    steps = round(ratio)
    if abs(ratio - steps) > ROUNDING * max(1.0, ratio):
        cause = f"duration {float(number):g} is {ratio:.6g} steps of dt {dt:g}, expected a whole number"
        raise StateError(cause, f"give duration={max(1, steps) * dt:g} or dt={float(number) / max(1, steps):g}")
    return steps


def step_stride(every: Any) -> int:
    """How many steps lie between two samples, at least 1."""
    number = whole("every", every)
    if not number:
        raise StateError("every is 0, expected a whole number of at least 1", "1 keeps all steps")
    return number


def check_size(plant: Plant, batch: tuple[int, ...], samples: int) -> None:
    """Refuse a trajectory that no computer could hold, before anything is computed."""
    numbers = samples * math.prod(batch) * (plant.nq + 3 * plant.nv)
    if numbers > LARGEST:
        cause = f"the trajectory would have {samples:.3g} samples and {8e-9 * numbers:.3g} GB"
        raise StateError(cause, "keep fewer samples (every=...), or give a shorter duration or a larger dt")


def check_closed(plant: Plant, q: np.ndarray, v: np.ndarray) -> None:
    """The start must lie on the constraints, in place and in speed."""
    residual = plant.residual(q, v)
    if residual is None or not residual.size:
        return
    for i, (name, what) in enumerate((("q0", "open by"), ("v0", "opening at"))):
        worst = float(np.max(residual[..., i]))
        if not worst <= CLOSED:
            cause = f"{name} is not on the constraints: they are {what} {worst:.3g}, expected {CLOSED:g} or less"
            raise StateError(cause, "q0, v0 = system.project(system.assemble(q0), v0)")
