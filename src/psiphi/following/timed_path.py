"""A curve with its times: where a robot should be at any time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.arguments import real
from psiphi.following.bent import BentCurve
from psiphi.following.splines import Spline


@dataclass(frozen=True, eq=False)
class TimedPath:
    """q, v, a of time: `path(t)`, a reference for controllers. It stands before 0 and after `duration` (...), in seconds.

    `s` and `speeds` (..., N) are points of the curve and ds/dt there; between them ds/dt changes linearly with time.
    """

    curve: Spline | BentCurve
    s: np.ndarray
    speeds: np.ndarray

    @cached_property
    def times(self) -> np.ndarray:
        """(..., N): when the points are passed."""
        steps = 2.0 * np.diff(self.s) / (self.speeds[..., 1:] + self.speeds[..., :-1])
        return np.concatenate([np.zeros((*steps.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1)

    @property
    def duration(self) -> Any:
        """(...), in seconds."""
        return self.times[..., -1][()]

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v, a), each (..., nq): the axes of t, then those of the path's own batch."""
        when = real("t", t, (), "give seconds")
        batch = self.s.shape[:-1]
        at = np.broadcast_to(when.reshape(when.shape + (1,) * len(batch)), (*when.shape, *batch))
        moving = (at >= 0.0) & (at <= self.times[..., -1])
        clock = np.clip(at, 0.0, self.times[..., -1])
        i = self._steps(clock)

        def of(x: np.ndarray, k: np.ndarray) -> np.ndarray:
            return np.take_along_axis(np.broadcast_to(x, (*clock.shape, x.shape[-1])), k[..., None], axis=-1)[..., 0]

        begin, end, since = of(self.speeds, i), of(self.speeds, i + 1), clock - of(self.times, i)
        u = (end - begin) / (of(self.times, i + 1) - of(self.times, i))
        q, first, second = self.curve.at(of(self.s, i) + since * (begin + 0.5 * since * u))
        rate, u = np.where(moving, begin + since * u, 0.0)[..., None], np.where(moving, u, 0.0)[..., None]
        return q, first * rate, second * rate**2 + first * u

    def along(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """(q, v, a) at times (n,), each (..., n, nq): what compiled rollouts ask a reference for at once."""
        return tuple(np.moveaxis(x, 0, -2) for x in self(np.atleast_1d(real("times", times, (), "give seconds"))))

    def _steps(self, clock: np.ndarray) -> np.ndarray:
        """Which step of the path each time is in."""
        found = np.empty(clock.shape, dtype=np.intp)
        for own in np.ndindex(self.s.shape[:-1]):
            found[(..., *own)] = np.searchsorted(self.times[own], clock[(..., *own)], side="right") - 1
        return np.clip(found, 0, self.s.shape[-1] - 2)

    def __repr__(self) -> str:
        shortest, longest = float(np.min(self.duration)), float(np.max(self.duration))
        return f"<path of {shortest:.3g} s>" if self.s.ndim == 1 else f"<paths of {shortest:.3g} to {longest:.3g} s>"
