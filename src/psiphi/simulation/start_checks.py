"""Read and check the arguments that start a simulation: states, steps and times."""

from __future__ import annotations

import math

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.free_memory import free_memory
from psiphi._util.validate import (
    batch_axes,
    nonnegative_number,
    positive_number,
    real_array,
    whole_number,
)
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.model import Model
from psiphi.model.state_checks import ROUNDING, check_column_order, check_states
from psiphi.simulation.plant import Plant, parameters_of

CLOSURE_TOLERANCE = 1e-6  # of constraints at the start: m and rad, m/s and rad/s
UNCHECKED_BYTES = 1 << 22  # below this, free memory is not queried, which takes a millisecond
MAX_BYTES = 1 << 39  # of a trajectory, if free memory is unknown: 512 GiB
BYTE_UNITS = {"EB": 1e18, "PB": 1e15, "TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}
STEP_COUNT_TOLERANCE = 1e-9  # relative distance of duration / dt from a whole number


def initial_state(
    plant: Plant, q0: Numbers | str, v0: Numbers | None, any_norm: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Copies (*batch, nq), (*batch, nv) of the initial state: finite, with unit quaternions.

    With `any_norm`, quaternions of any other length are scaled; without, they are errors.
    """
    if isinstance(q0, str) and q0 in plant.robot.postures:
        remedy = f"give robot.postures[{q0!r}]"
    else:
        remedy = f"give nq = {plant.nq} numbers; robot.neutral() shows a q"
    q = real_array("q0", q0, (plant.nq,), remedy)
    v = (
        np.zeros(plant.nv)
        if v0 is None
        else real_array("v0", v0, (plant.nv,), f"give nv = {plant.nv} numbers")
    )
    q = _scale_quaternions(plant.robot, q) if any_norm else q
    check_column_order(plant.robot, "q0", q0, "q")
    check_column_order(plant.robot, "v0", v0, "v")
    named = zip(("q0", "v0", "the parameters"), (q, v, *parameters_of(plant.robot)), strict=False)
    batch = batch_axes("", {name: x.shape[:-1] for name, x in named})
    arguments = (Argument("q0", (plant.nq,), "q"), Argument("v0", (plant.nv,), "v"))
    check_states(plant.robot, "the initial state", arguments, (q, v))
    q, v = (np.array(np.broadcast_to(x, (*batch, x.shape[-1]))) for x in (q, v))
    return plant.manifold.unit(q), v


def _scale_quaternions(model: Model, q: np.ndarray) -> np.ndarray:
    """q with quaternions scaled to unit length, where they are finite, not zero, and not of unit
    length to rounding."""
    q = np.array(q, dtype=float)
    for last in model.quaternions:
        p = q[..., last - 3 : last + 1]
        with np.errstate(all="ignore"):
            size = np.abs(p).max(axis=-1, keepdims=True)  # squares of large numbers overflow
            scaled = p / size
            norm = np.linalg.norm(scaled, axis=-1, keepdims=True)
            differs = np.isfinite(scaled / norm).all(axis=-1, keepdims=True)
            differs &= ~(np.abs(size * norm - 1.0) <= ROUNDING)
        np.copyto(p, scaled / norm, where=differs)
    return q


def step_size(dt: object) -> float:
    """dt in seconds, above zero."""
    return positive_number("dt", dt, "give seconds, 1e-3 for instance")


def step_count(duration: object, dt: float) -> int:
    """duration / dt, a whole number."""
    number = nonnegative_number("duration", duration, "give seconds")
    ratio = float(number / np.float64(dt)) if number < 1e300 * min(1.0, dt) else np.inf
    if not ratio < np.inf:
        raise StateError(
            f"duration {number:g} is {ratio:.3g} steps of dt {dt:g}, too many", "give a larger dt"
        )
    steps = round(ratio)
    if abs(ratio - steps) > STEP_COUNT_TOLERANCE * max(1.0, ratio):
        count = f"{ratio:.6g} steps of dt {dt:g}"
        raise StateError(
            f"duration {float(number):g} is {count}, expected a whole number",
            f"give duration={max(1, steps) * dt:g} or dt={float(number) / max(1, steps):g}",
        )
    return steps


def step_stride(every: object) -> int:
    """The number of steps between two samples, at least 1."""
    number = whole_number("every", every)
    if not number:
        raise StateError("every is 0, expected a whole number of at least 1", "1 keeps all steps")
    return number


def check_size(
    plant: Plant, batch: tuple[int, ...], steps: int, every: int, whole: bool = True
) -> None:
    """Raise an error, before anything is computed, if the result does not fit into free memory.

    The result is q and v; of a `whole` trajectory also a, tau, forces, energies and residuals, with
    the memory to compute these at the end.
    """
    samples, forces = steps // every + 2, 6 * len(plant.contacts)
    numbers = plant.nq + plant.nv + (3 * plant.nv + 2 * forces + 4 if whole else 0)
    need = 8 * samples * math.prod(batch) * numbers
    if need <= UNCHECKED_BYTES or need <= (free := min(free_memory(), MAX_BYTES)):
        return
    size = f"{samples:.4g} samples" + (f" of {math.prod(batch)} motions" if batch else "")
    cause = f"{size} need {format_bytes(need)} of memory, and {format_bytes(free)} are free"
    enough = math.ceil(every * need / (0.8 * free)) if free else 0
    remedy = (
        f"keep fewer samples: every={enough}"
        if 0 < enough <= min(steps, 1_000_000)
        else "give a shorter duration or a larger dt"
    )
    raise StateError(cause, remedy + (", or run fewer motions at a time" if batch else ""))


def format_bytes(number: float) -> str:
    """A number of bytes with its unit.

    >>> format_bytes(8.2e9), format_bytes(1500)
    ('8.2 GB', '1.5 kB')
    """
    size = next((name for name in BYTE_UNITS if number >= BYTE_UNITS[name]), "B")
    return f"{number / BYTE_UNITS.get(size, 1):.3g} {size}"


def check_closed(plant: Plant, q: np.ndarray, v: np.ndarray) -> None:
    """Raise an error unless the initial state satisfies the constraints and their time
    derivative."""
    residual = plant.residual(q, v)
    if residual is None or not residual.size:
        return
    for i, (name, what) in enumerate((("q0", "open by"), ("v0", "opening at"))):
        worst = float(np.max(residual[..., i]))
        if not worst <= CLOSURE_TOLERANCE:
            raise StateError(
                f"{name} is not on the constraints: they are {what} {worst:.3g}, "
                f"expected {CLOSURE_TOLERANCE:g} or less",
                "q0, v0 = system.project(system.assemble(q0), v0)",
            )
