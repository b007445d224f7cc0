"""Collects the samples of a run, and makes a trajectory of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.simulation.plant import Plant
from psiphi.simulation.trajectory.trajectory import Event, Trajectory


class Recorder:
    """Arrays of samples along the time axis; their capacity doubles when they are full."""

    def __init__(self, system: Plant, batch: tuple[int, ...], samples: int, info: dict[str, Any]):
        self.system, self.batch, self.count, self.info = system, batch, 0, info
        sizes = {"q": system.nq, "v": system.nv, "a": system.nv, "tau": system.nv}
        self.rows: dict[str, np.ndarray] = {
            name: np.empty((*batch, samples, size)) for name, size in sizes.items()
        }
        self.rows["t"] = np.empty(samples)
        if system.contacts:
            self.rows["forces"] = np.empty((*batch, samples, len(system.contacts), 6))

    def add(self, alive: np.ndarray, **values: np.ndarray | float | None) -> None:
        """Add one sample; NaN in elements that are not `alive`."""
        if self.count == len(self.rows["t"]):
            self._grow()
        for name, value in values.items():
            if name == "t":
                self.rows["t"][self.count] = value
            elif value is not None:
                row = np.asarray(value)
                mask = alive.reshape(alive.shape + (1,) * (row.ndim - alive.ndim))
                row = row if alive.all() else np.where(mask, row, np.nan)
                self.rows[name][self._index(self.count)] = row
        self.count += 1

    def samples(self) -> dict[str, np.ndarray]:
        """The arrays of the samples so far."""
        return {
            name: x[: self.count] if name == "t" else x[self._index(slice(self.count))]
            for name, x in self.rows.items()
        }

    def trajectory(self, events: list[Event]) -> Trajectory:
        """The trajectory of the samples so far."""
        return make_trajectory(self.system, self.samples(), events, self.info)

    def _index(self, where: int | slice) -> tuple:
        return (*(slice(None),) * len(self.batch), where)

    def _grow(self) -> None:
        for name, x in self.rows.items():
            axis = 0 if name == "t" else len(self.batch)
            self.rows[name] = np.concatenate([x, np.empty_like(x)], axis=axis)


def make_trajectory(
    system: Plant, rows: dict[str, np.ndarray], events: list[Event], info: dict[str, Any]
) -> Trajectory:
    """A trajectory of these arrays, with energies and residuals of all samples."""
    q, v, sampled = rows["q"], rows["v"], system.with_sample_axis()
    with np.errstate(all="ignore"):
        energy = none_on_error(lambda: sampled.energy(q, v))
        residual = none_on_error(lambda: sampled.residual(q, v))
    events = sorted(events, key=lambda event: event.t)
    return Trajectory(
        **rows,
        energy=energy,
        residual=residual,
        events=tuple(events),
        system=system.system,
        info=info,
    )


def none_on_error(compute: Callable[[], np.ndarray | None]) -> np.ndarray | None:
    """The result, or None if it fails: a failing energy must not lose the motion."""
    try:
        return compute()
    except Exception:
        return None
