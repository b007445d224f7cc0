"""What `pp.reach` answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Reached:
    """Configurations, and how well they do.

    q           (..., nq): the solution, or where there is none the nearest that was found
    converged   (...): whether every target is met to `tolerance`
    error       (...): the largest of what is missed, in rad and m
    errors      {what: (...)}: what each part of each target misses, as "tool rad", "tool m", "center_of_mass m"
    tries       (...): starts that were needed
    solutions   with `distinct=True` all that were found, (..., k, nq), k of the problem with most; NaN where there are fewer
    """

    q: np.ndarray
    converged: np.ndarray
    error: np.ndarray
    errors: dict[str, np.ndarray] = field(repr=False)
    tries: np.ndarray = field(repr=False)
    solutions: np.ndarray | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        count, solved = self.converged.size, int(np.count_nonzero(self.converged))
        if not self.converged.ndim:
            return f"Reached({'converged' if solved else 'not reached, the nearest'}, error {float(self.error):.2g})"
        return f"Reached({solved} of {count} converged, largest error {float(self.error.max(initial=0.0)):.2g})"
