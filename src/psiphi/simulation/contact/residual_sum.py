"""By how much the steps of a motion violate the laws of contact, piece by piece."""

from __future__ import annotations

import numpy as np


class ResidualSum:
    """Sums of the squares of residuals (m/s) since the start of a motion, at known steps.

    Each piece of a motion starts its own sum; a piece that is run again gives the same sums.
    """

    def __init__(self, motions: int, contacts: int):
        self.steps = [np.zeros(1, dtype=int)]
        self.sums = [np.zeros((motions, 1, contacts))]

    def add(self, start: int, every: int, sums: np.ndarray) -> None:
        """The sums (B, m, c) of a piece that begins at a known step, after every `every` steps."""
        for steps, known in zip(reversed(self.steps), reversed(self.sums), strict=True):
            k = int(np.searchsorted(steps, start))
            if k < len(steps) and steps[k] == start:
                self.sums.append(known[:, k : k + 1, :] + sums)
                self.steps.append(start + every * np.arange(1, sums.shape[1] + 1))
                return
        raise ValueError(f"internal error in psiphi: step {start} is not known")

    def between(self, steps: np.ndarray) -> np.ndarray:
        """(B, n, c): the root of the sum of squares between known steps; 0 at the first of them."""
        known, first = np.unique(np.concatenate(self.steps), return_index=True)
        sums = np.concatenate(self.sums, axis=1)[:, first][:, np.searchsorted(known, steps)]
        return np.sqrt(np.maximum(np.diff(sums, axis=1, prepend=sums[:, :1]), 0.0))
