"""`TimedPath`: a curve and its timing, as a function of time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import real_array
from psiphi.apps.path_timing.quaternion_splines import QuaternionSpline
from psiphi.apps.path_timing.splines import Spline, interval_index


@dataclass(frozen=True, eq=False)
class TimedPath:
    """A function of time, `path(t)` = (q, v, a), that can be the reference of a controller.

    At rest before time 0 and after `duration` (...), in seconds. `s` and `speeds` (..., N) are
    points of the curve and ds/dt there; between them ds/dt is linear in time.
    """

    curve: Spline | QuaternionSpline
    s: np.ndarray
    speeds: np.ndarray

    @cached_property
    def times(self) -> np.ndarray:
        """(..., N): the time of each point."""
        steps = 2.0 * np.diff(self.s) / (self.speeds[..., 1:] + self.speeds[..., :-1])
        return np.concatenate(
            [np.zeros((*steps.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1
        )

    @property
    def duration(self) -> Array:
        """(...), in seconds; a number for one path."""
        return self.times[..., -1][()]

    def __call__(self, t: Numbers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v, a), each (..., nq) or (..., nv): the axes of t, then the batch of the path."""
        times = real_array("t", t, (), "give seconds")
        axes = times.shape + self.s.shape[:-1]
        q, v, a = (
            np.moveaxis(x, -2, 0).reshape(*axes, x.shape[-1]) for x in self._sample(times.ravel())
        )
        return q, v, a

    def along(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """(q, v, a) at times (n,), each (..., n, nq) or (..., n, nv); compiled rollouts use it."""
        times = np.atleast_1d(real_array("times", times, (), "give seconds"))
        if times.ndim > 1:
            raise StateError(
                f"times has shape {times.shape}, expected (n,)",
                "call the path itself, which accepts any axes",
            )
        return self._sample(times)

    def _sample(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        t, end = np.broadcast_to(times, (*self.s.shape[:-1], len(times))), self.times[..., -1:]
        moving, clock = (t >= 0.0) & (t <= end), np.clip(t, 0.0, end)
        i = interval_index(self.times, clock)

        def take(x: np.ndarray, k: np.ndarray) -> np.ndarray:
            return np.take_along_axis(x, k, axis=-1)

        before, after = take(self.speeds, i), take(self.speeds, i + 1)
        since = clock - take(self.times, i)
        u = (after - before) / (take(self.times, i + 1) - take(self.times, i))
        q, first, second = self.curve(take(self.s, i) + since * (before + 0.5 * since * u))
        rate = np.where(moving, before + since * u, 0.0)[..., None]
        u = np.where(moving, u, 0.0)[..., None]
        return q, first * rate, second * rate**2 + first * u

    def __repr__(self) -> str:
        if self.s.ndim == 1:
            return f"<path of {float(self.duration):.3g} s>"
        shortest, longest = float(np.min(self.duration)), float(np.max(self.duration))
        return f"<paths of {shortest:.3g} to {longest:.3g} s>"
