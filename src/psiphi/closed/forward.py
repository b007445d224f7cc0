"""Forward dynamics with loops: the compiled answer, and elements with a singular Omega again by eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.closed import dense
from psiphi.closed.methods import PAPER
from psiphi.closed.singular import STRAIN, direction, least_norm
from psiphi.errors import SingularError, StateError
from psiphi.functions import guard
from psiphi.model.words import nearest, shown


def details(system: Any, q, v, tau, f_ext, axes: str, method: str | None, check: bool) -> dict[str, Any]:
    """a, forces, multipliers; unique, rank and solvable per element."""
    guard.check_axes(axes)
    frames = tuple(system.robot.frame(name).name for name in guard.mapping(f_ext)) if f_ext else ()
    values = system._state(q=q, v=v, tau=tau)
    if frames:
        values = (*values, guard.stack_wrenches(guard.mapping(f_ext)))
    if method == "KKT":
        a, lam, wrenches, strain = dense.solve(system, values, frames, axes)
    else:
        a, lam, wrenches, strain = system._call(system._dynamics(method_name(method), frames, axes), values)
    lead = np.shape(strain)
    found = {"a": a, "forces": wrenches[..., : len(system.contacts), :], "multipliers": lam}
    found |= {"unique": np.ones(lead, bool), "rank": np.full(lead, system.nc), "solvable": np.ones(lead, bool)}
    bad = ~(strain < STRAIN)
    if np.any(bad):
        _mend(system, found, bad, values, frames, axes)
        _judge(system, found, check)
    return found


def method_name(method: Any) -> str:
    """The name of a paper's method; "" leaves the choice to the compiler."""
    if method is None:
        return ""
    if method in PAPER:
        return method
    raise StateError(f"no method {shown(method)} for closed chains", nearest(str(method), (*PAPER, "KKT")))


def _mend(system: Any, found: dict[str, Any], bad: np.ndarray, values, frames, axes) -> None:
    lead = np.shape(bad)
    picked = tuple(_picked(x, lead, bad, 2 if i == 3 else 1) for i, x in enumerate(values))
    free, Omega, gap = system._call(system._terms(frames, axes), picked)
    least = least_norm(Omega, -gap, np.abs(free).max(axis=-1, initial=0.0))
    extra, wrenches = system._corrected(picked[0], least.multipliers)
    lost = least.open[..., None]
    new = {
        "a": np.where(lost, np.nan, free + extra),
        "forces": np.where(lost[..., None], np.nan, wrenches),
        "multipliers": least.multipliers,
        "rank": least.rank,
        "unique": least.rank == system.nc,
        "solvable": ~least.open,
        "left": least.left,
    }
    for name, value in new.items():
        whole = np.array(found.get(name, np.zeros((*lead, system.nc))))
        whole[bad] = value
        found[name] = whole if lead else whole[()]


def _picked(array: np.ndarray, lead: tuple[int, ...], where: np.ndarray, core: int) -> np.ndarray:
    """The elements of a broadcast argument where `where` holds: (n, *core)."""
    return np.broadcast_to(array, (*lead, *array.shape[array.ndim - core :]))[where]


def _judge(system: Any, found: dict[str, Any], check: bool) -> None:
    """A single state without a solution, or any with check: an error that names contact and direction."""
    lost = ~np.asarray(found["solvable"])
    if not lost.any() or (lost.ndim and not check and not lost.all()):
        return
    place: Any = tuple(int(i) for i in np.argwhere(lost)[0])
    row = int(np.argmax(np.abs(found["left"][place])))
    where = f" (batch element {place if len(place) > 1 else place[0]})" if place else ""
    raise SingularError(
        f"no acceleration keeps {direction(system.closure, row)}{where}: the mechanism is at a singularity of that direction",
        "start from another configuration, slow down, or free that direction with another kind of contact",
    )
