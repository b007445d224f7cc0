"""What joint stops (`limits="block"`) do at the samples of a motion."""

from __future__ import annotations

import numpy as np

from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.plant import Plant


def stop_arrays(
    stops: JointStops, plant: Plant, rows: dict[str, np.ndarray], sums: np.ndarray
) -> dict[str, np.ndarray]:
    """The arrays of a trajectory that stops decide, at samples (..., n).

    a has the forces at the joints that rest at their limits; stop_forces is the mean over the time
    since the sample before, with impacts; stop_work is the work of these since the start.
    """
    t, q = rows["t"], rows["q"]
    ended = np.isnan(q).any(axis=-1)
    h = np.diff(t, prepend=t[:1])[:, None]
    impulses = np.diff(sums[..., :-1], axis=-2, prepend=sums[..., :1, :-1])
    forces = np.zeros((*q.shape[:-1], plant.nv))
    forces[..., stops.v] = np.divide(impulses, h, out=np.zeros_like(impulses), where=h > 0.0)
    forces[ended] = np.nan
    work = np.where(ended, np.nan, sums[..., -1])
    found = {"stop_forces": forces, "stop_work": work}
    if "a" in rows:  # not that of a step with contacts
        found["a"] = _rest_accelerations(stops, plant, rows)
    return found


def _rest_accelerations(stops: JointStops, plant: Plant, rows: dict[str, np.ndarray]) -> np.ndarray:
    """a, with the forces of the stops where joints rest at them."""
    q, v, a = rows["q"], rows["v"], rows["a"].copy()
    if stops:
        where = np.nonzero(stops.rests(q, v) & np.isfinite(a).all(axis=-1))
        if len(where[0]):
            robot = plant.with_sample_axis().element(q.shape[:-1], where)
            a[where] = stops.rest(robot, q[where], v[where], a[where])
    return a
