"""Closed systems of which nothing is wanted but that their loops close: `System.assemble`, as an answer of `pp.reach`."""

from __future__ import annotations

import numpy as np

from psiphi.closed import System
from psiphi.closed.closing import close
from psiphi.reaching.reached import Reached
from psiphi.reaching.tasks import SLIDE, TURN


def loops_alone(system: System, near: np.ndarray, moving: np.ndarray, tolerance: float, limits: bool, starts: int) -> Reached:
    """From near (..., nq); `moving` (nv,) says which coordinates may."""
    lead = system._batch(near.shape[:-1])
    one, guess = system._of(lead, np.ones(lead, dtype=bool)), np.broadcast_to(near, (*lead, system.nq)).reshape(-1, system.nq)
    q, e, tries = close(one, guess, moving.astype(float), tolerance, limits, starts)
    errors = {name: np.linalg.norm(e[:, rows], axis=-1).reshape(lead)[()] for name, rows in _parts(system).items()}
    error = np.max([*errors.values()], axis=0)
    return Reached(q.reshape(*lead, system.nq), error <= tolerance, error, errors, tries.reshape(lead))


def _parts(system: System) -> dict[str, list[int]]:
    """The rows of every constraint, turns and places by themselves: {"contact 1 rad": rows}."""
    closure, out = system.closure, {}
    joints = [(SLIDE if system.joint(f.joint).row.slides[0] else TURN,) for f in closure.follows]
    units = [*(c.units for c in closure.constraints), *joints]
    for tie, own, each in zip((*closure.constraints, *closure.follows), closure.slices, units, strict=True):
        for unit in (TURN, SLIDE):
            rows = [i for i, x in zip(range(own.start, own.stop), each, strict=True) if x == unit]
            out |= {f"{tie.name} {unit}": rows} if rows else {}
    return out
