"""A curve with its times: where a robot should be at any time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import real_array
from psiphi.apps.path_timing.quaternion_splines import QuaternionSpline
from psiphi.apps.path_timing.splines import Spline, steps_of


@dataclass(frozen=True, eq=False)
class TimedPath:
    """q, v, a of time: `path(t)`, a reference for controllers. It stands before 0 and after `duration` (...), in seconds.

    `s` and `speeds` (..., N) are points of the curve and ds/dt there; between them ds/dt changes linearly with time.
    """

    curve: Spline | QuaternionSpline
    s: np.ndarray
    speeds: np.ndarray

    @cached_property
    def times(self) -> np.ndarray:
        """(..., N): when the points are passed."""
        steps = 2.0 * np.diff(self.s) / (self.speeds[..., 1:] + self.speeds[..., :-1])
        return np.concatenate(
            [np.zeros((*steps.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1
        )

    @property
    def duration(self) -> Any:
        """(...), in seconds."""
        return self.times[..., -1][()]

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v, a), each (..., nq): the axes of t, then those of the path's own batch."""
        when = real_array("t", t, (), "give seconds")
        lead = when.shape + self.s.shape[:-1]
        q, v, a = (
            np.moveaxis(x, -2, 0).reshape(*lead, x.shape[-1]) for x in self._at(when.ravel())
        )
        return q, v, a

    def along(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """(q, v, a) at times (n,), each (..., n, nq): what compiled rollouts ask a reference for at once."""
        when = np.atleast_1d(real_array("times", times, (), "give seconds"))
        if when.ndim > 1:
            raise StateError(
                f"times has shape {when.shape}, expected (n,)",
                "call the path itself: it takes any axes",
            )
        return self._at(when)

    def _at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        at, end = np.broadcast_to(times, (*self.s.shape[:-1], len(times))), self.times[..., -1:]
        moving, clock = (at >= 0.0) & (at <= end), np.clip(at, 0.0, end)
        i = steps_of(self.times, clock)

        def of(x: np.ndarray, k: np.ndarray) -> np.ndarray:
            return np.take_along_axis(x, k, axis=-1)

        before, after, since = of(self.speeds, i), of(self.speeds, i + 1), clock - of(self.times, i)
        u = (after - before) / (of(self.times, i + 1) - of(self.times, i))
        q, first, second = self.curve(of(self.s, i) + since * (before + 0.5 * since * u))
        rate, u = (
            np.where(moving, before + since * u, 0.0)[..., None],
            np.where(moving, u, 0.0)[..., None],
        )
        return q, first * rate, second * rate**2 + first * u

    def __repr__(self) -> str:
        shortest, longest = float(np.min(self.duration)), float(np.max(self.duration))
        return (
            f"<path of {shortest:.3g} s>"
            if self.s.ndim == 1
            else f"<paths of {shortest:.3g} to {longest:.3g} s>"
        )
