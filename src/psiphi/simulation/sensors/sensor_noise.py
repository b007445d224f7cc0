"""The errors of a sensor: white noise, a constant bias and a bias that drifts.

    y = exact + bias + b(t) + noise n,      b(t + h) = b(t) + drift sqrt(h) n',      b(0) = 0

n and n' are independent and normal, of variance 1. They depend on the seed, the name of the sensor,
the number of the motion, the sample and the channel only: not on the size of a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psiphi._util.errors import StateError
from psiphi.simulation.sensors.philox import normal

MOST_NUMBERS = 1 << 40  # of one motion
MOST_MOTIONS = 1 << 24  # with one name


@dataclass(frozen=True)
class SensorNoise:
    """`noise`, `bias` and `drift` of a sensor: one number, or one for each channel."""

    noise: np.ndarray
    bias: np.ndarray
    drift: np.ndarray

    def disturb(
        self,
        exact: np.ndarray,
        step: float,
        seed: int,
        name: str,
        motions: np.ndarray | None = None,
    ) -> np.ndarray:
        """The measured values of exact ones (batch, samples, channels), `step` seconds apart;
        `motions` are the numbers of the motions, by default 0, 1, ..."""
        motions = np.arange(len(exact)) if motions is None else motions
        values = exact + self._rows("bias", exact)
        noise, drift = self._rows("noise", exact), self._rows("drift", exact)
        if noise.any():
            values = values + noise * _normal(exact.shape, seed, f"{name} noise", motions)
        if drift.any():
            steps = math.sqrt(step) * _normal(exact.shape, seed, f"{name} drift", motions)
            steps[:, :1] = 0.0
            values = values + drift * np.cumsum(steps, axis=-2)
        return values

    def _rows(self, name: str, exact: np.ndarray) -> np.ndarray:
        row = getattr(self, name)
        if row.ndim and row.shape != exact.shape[-1:]:
            raise StateError(
                f"{name} has {row.size} numbers, and the sensor has {exact.shape[-1]} channels",
                "give one number, or one for each channel",
            )
        return row


def _normal(shape: tuple[int, ...], seed: int, name: str, motions: np.ndarray) -> np.ndarray:
    """Normal numbers (batch, samples, channels) of the motions with these numbers."""
    size = math.prod(shape[1:])
    if size >= MOST_NUMBERS:
        raise StateError(f"a measurement has {size} numbers", "give a lower rate")
    out = np.empty((len(motions), size))
    blocks = np.asarray(motions, dtype=np.int64) // MOST_MOTIONS
    for block in np.unique(blocks).tolist():  # counters have 64 bits
        own = blocks == block
        first = (motions[own] % MOST_MOTIONS).astype(np.uint64)[:, None] * np.uint64(MOST_NUMBERS)
        numbers = first + np.arange(size, dtype=np.uint64)
        of_block = f"{name} {block}" if block else name
        out[own] = normal(seed, of_block, numbers.ravel()).reshape(numbers.shape)
    return out.reshape(shape)
