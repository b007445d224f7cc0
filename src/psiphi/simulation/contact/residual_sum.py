"""Sums over the steps of a motion, piece by piece: by how much the steps violate the laws of
contact, and what joint stops did."""

from __future__ import annotations

import numpy as np


class StepSum:
    """Sums since the start of a motion, at known steps.

    Each piece of a motion starts its own sum; a piece that is run again gives the same sums.
    """

    def __init__(self, motions: int, size: int):
        self.steps = [np.zeros(1, dtype=int)]
        self.sums = [np.zeros((motions, 1, size))]

    def add(self, start: int, every: int, sums: np.ndarray) -> None:
        """The sums (B, m, size), after every `every` steps, of a piece that begins at a known
        step."""
        for steps, known in zip(reversed(self.steps), reversed(self.sums), strict=True):
            k = int(np.searchsorted(steps, start))
            if k < len(steps) and steps[k] == start:
                self.sums.append(known[:, k : k + 1, :] + sums)
                self.steps.append(start + every * np.arange(1, sums.shape[1] + 1))
                return
        raise ValueError(f"internal error in psiphi: step {start} is not known")

    def at(self, steps: np.ndarray) -> np.ndarray:
        """(B, n, size): the sums at known steps."""
        known, first = np.unique(np.concatenate(self.steps), return_index=True)
        return np.concatenate(self.sums, axis=1)[:, first][:, np.searchsorted(known, steps)]


class ResidualSum(StepSum):
    """Sums of the squares of residuals (m/s)."""

    def between(self, steps: np.ndarray) -> np.ndarray:
        """(B, n, c): the root of the sum of squares between known steps; 0 at the first of them."""
        sums = self.at(steps)
        return np.sqrt(np.maximum(np.diff(sums, axis=1, prepend=sums[:, :1]), 0.0))
