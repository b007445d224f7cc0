"""What the contacts with the ground do at the samples of a motion, and their events."""

from __future__ import annotations

import numpy as np

from psiphi.model.contact.contact_state import OPEN, SLIP
from psiphi.simulation.compiled_rollout.contact_step import ContactStep
from psiphi.simulation.simulate.events import HOLDS, LOST, MADE, NOT_SOLVED, SLIDES
from psiphi.simulation.trajectory.trajectory import Event


def contact_arrays(
    step: ContactStep, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float
) -> dict[str, np.ndarray]:
    """The arrays of a trajectory that the contacts decide, at samples (..., n): those of the step
    that follows each sample. a is the change of v in that step by its duration."""
    with np.errstate(all="ignore"):
        solved = step(q, v, tau, np.array(dt), samples=True)
        a, state = (solved.v - v) / dt, solved.contacts
    return {"a": a, "forces": state.forces, "gaps": state.gaps, "modes": state.modes}


def contact_events(
    step: ContactStep, rows: dict[str, np.ndarray], residual: np.ndarray
) -> list[Event]:
    """Contacts that are made or lost, begin to slide or to hold, and those that were not solved.

    The time is that of the first sample in the new mode; `value` is the normal force in N, or of
    contacts and joint stops that were not solved the residual in m/s (..., n, c). `rows` has the
    samples.
    """
    contacts, t = step.contacts, rows["t"]
    modes, names = rows["modes"].astype(int), contacts.residual_names
    with np.errstate(invalid="ignore"):
        normal = (rows["forces"] * step.axes(rows["q"], samples=True)[..., 0, :]).sum(axis=-1)
    old, new = modes[..., :-1, :], modes[..., 1:, :]
    changes = {
        MADE: (old == OPEN) & (new != OPEN),
        LOST: (old != OPEN) & (new == OPEN),
        SLIDES: (old != OPEN) & (old != SLIP) & (new == SLIP),
        HOLDS: (old == SLIP) & (new != SLIP) & (new != OPEN),
    }
    with np.errstate(invalid="ignore"):
        failed = residual > contacts.ground.tolerance
    changes[NOT_SOLVED] = failed[..., 1:, :] & ~failed[..., :-1, :]
    events = []
    for name, happened in changes.items():
        values = residual if name == NOT_SOLVED else normal
        for *where, k, c in np.argwhere(happened).tolist():
            value = float(values[(*where, k + 1, c)])
            events.append(Event(name, float(t[k + 1]), names[c], tuple(where), value))
    return sorted(events, key=lambda event: event.t)
