"""`limits="block"`: joints that end at their limits, without bouncing.

After a step, q is put back into its range, and the coordinates at a limit get the impulses lambda >= 0 that leave none of
them moving outward (an inelastic impact, Moreau 1988):

    v+ = v + M^-1 S* lambda,    0 <= lambda  _|_  S v+ >= 0,    S the inward directions of the coordinates at a limit

A coordinate whose limits are one number stands still: S v+ = 0, and lambda has any sign.
"""

from __future__ import annotations

import numpy as np

from psiphi.control.plant import Plant
from psiphi.errors import StateError

SWEEPS = 100  # of Gauss-Seidel; a few joints at a time are at their limits
CLOSE = 1e-12


class Stops:
    """The joints of a robot that have limits."""

    def __init__(self, system: Plant):
        lower, upper = system.limits
        if not system.is_plain:
            raise StateError('limits="block" is for robots alone', 'use limits="stop" or "record" with closed chains')
        q, v = system.manifold.flat
        finite = np.isfinite(lower[q]) | np.isfinite(upper[q])
        self.robot, self.q, self.v = system.robot, q[finite], v[finite]
        self.lower, self.upper = lower[self.q], upper[self.q]
        self.locked = self.lower == self.upper

    def __bool__(self) -> bool:
        """Whether any joint has a limit."""
        return bool(len(self.q))

    def __call__(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state after the impact."""
        own, speed = q[..., self.q], v[..., self.v]
        low, high = own <= self.lower, own >= self.upper
        if not ((low & (speed < 0.0)) | (high & (speed > 0.0)) | (own < self.lower) | (own > self.upper)).any():
            return q, v
        q = q.copy()
        q[..., self.q] = np.clip(own, self.lower, self.upper)
        inward = np.where(self.locked, 1.0, low.astype(float) - high)
        columns = self.robot.mass_matrix_inverse(q)[..., :, self.v]
        A = inward[..., :, None] * columns[..., self.v, :] * inward[..., None, :]
        impulse = _impulses(A, inward * speed, inward != 0.0, self.locked)
        v = v + np.einsum("...ij,...j->...i", columns, inward * impulse)
        own = v[..., self.v]
        v[..., self.v] = np.where((inward * own < 0.0) | self.locked, 0.0, own)  # what rounding left over
        return q, v


def _impulses(A: np.ndarray, speed: np.ndarray, on: np.ndarray, locked: np.ndarray) -> np.ndarray:
    """lambda >= 0 with speed + A lambda >= 0 where `on`, and one of the two zero (the latter, where locked): projected
    Gauss-Seidel."""
    out, least = np.zeros_like(speed), np.where(locked, -np.inf, 0.0)
    for _ in range(SWEEPS):
        last = out.copy()
        for k in range(speed.shape[-1]):
            after = speed[..., k] + np.einsum("...j,...j->...", A[..., k, :], out)
            scale = np.where(on[..., k], A[..., k, k], 1.0)
            out[..., k] = np.where(on[..., k], np.maximum(least[k], out[..., k] - after / scale), 0.0)
        if np.abs(out - last).max(initial=0.0) <= CLOSE * np.abs(out).max(initial=0.0):
            break
    return out
