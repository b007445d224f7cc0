"""What a simulation starts from: states, steps and times, read and checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.free_memory import free_memory
from psiphi._util.validate import batch_axes, not_negative, positive, real, whole
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.state_checks import check_order, check_states
from psiphi.simulation.plant import Plant, parameters_of

CLOSED = (
    1e-6  # how far open the constraints may be at the start: metres, radians, and the same a second
)
SMALL = 1 << 22  # bytes that nobody asks the system for: to ask takes a millisecond
LARGEST = 1 << 39  # bytes of a trajectory, where it is not known how many are free: 512 GiB
SIZES = {"EB": 1e18, "PB": 1e15, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}
ROUNDING = 1e-9  # how far duration / dt may be from a whole number


def initial_state(plant: Plant, q0: Any, v0: Any) -> tuple[np.ndarray, np.ndarray]:
    """Copies (*batch, nq), (*batch, nv) of the initial state: finite, with unit quaternions."""
    named = isinstance(q0, str) and q0 in plant.robot.postures
    remedy = (
        f"give robot.postures[{q0!r}]"
        if named
        else f"give nq = {plant.nq} numbers; robot.neutral() shows a q"
    )
    q = real("q0", q0, (plant.nq,), remedy)
    v = (
        np.zeros(plant.nv)
        if v0 is None
        else real("v0", v0, (plant.nv,), f"give nv = {plant.nv} numbers")
    )
    check_order(plant.robot, "q0", q0, "q")
    check_order(plant.robot, "v0", v0, "v")
    given = zip(("q0", "v0", "the parameters"), (q, v, *parameters_of(plant.robot)), strict=False)
    batch = batch_axes("", {name: x.shape[:-1] for name, x in given})
    arguments = (Argument("q0", (plant.nq,), "q"), Argument("v0", (plant.nv,), "v"))
    check_states(plant.robot, "the initial state", arguments, (q, v))
    q, v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v))
    return plant.manifold.unit(q), v


def step_size(dt: Any) -> float:
    """Seconds, above zero."""
    return positive("dt", dt, "give seconds, 1e-3 for instance")


def step_count(duration: Any, dt: float) -> int:
    """duration / dt, a whole number."""
    number = not_negative("duration", duration, "give seconds")
    ratio = float(number / np.float64(dt)) if number < 1e300 * min(1.0, dt) else np.inf
    if not ratio < np.inf:
        raise StateError(
            f"duration {number:g} is {ratio:.3g} steps of dt {dt:g}, more than can be counted",
            "give a larger dt",
        )
    steps = round(ratio)
    if abs(ratio - steps) > ROUNDING * max(1.0, ratio):
        cause = (
            f"duration {float(number):g} is {ratio:.6g} steps of dt {dt:g}, expected a whole number"
        )
        raise StateError(
            cause, f"give duration={max(1, steps) * dt:g} or dt={float(number) / max(1, steps):g}"
        )
    return steps


def step_stride(every: Any) -> int:
    """How many steps lie between two samples, at least 1."""
    number = whole("every", every)
    if not number:
        raise StateError("every is 0, expected a whole number of at least 1", "1 keeps all steps")
    return number


def check_size(
    plant: Plant, batch: tuple[int, ...], steps: int, every: int, whole: bool = True
) -> None:
    """Refuse what will not fit into the memory that is free, before anything is computed: q and v, and of a `whole` trajectory
    a, tau, forces, energies and residuals, with what is needed to compute these at the end."""
    samples, forces = steps // every + 2, 6 * len(plant.contacts)
    a_sample = plant.nq + plant.nv + (3 * plant.nv + 2 * forces + 4 if whole else 0)
    need = 8 * samples * math.prod(batch) * a_sample
    if need <= SMALL or need <= (free := min(free_memory(), LARGEST)):
        return
    size = f"{samples:.4g} samples" + (f" of {math.prod(batch)} motions" if batch else "")
    cause = f"this would take {words(need)} of memory for {size}, and {words(free)} are free"
    enough = math.ceil(every * need / (0.8 * free)) if free else 0
    remedy = (
        f"keep fewer samples: every={enough}"
        if 0 < enough <= min(steps, 1_000_000)
        else "a shorter duration or a larger dt"
    )
    raise StateError(cause, remedy + (", or run fewer motions at a time" if batch else ""))


def words(number: float) -> str:
    """Bytes as a person says them.

    >>> words(8.2e9), words(1500)
    ('8.2 GB', '1.5 kB')
    """
    size = next((name for name in SIZES if number >= SIZES[name]), "B")
    return f"{number / SIZES.get(size, 1):.3g} {size}"


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
