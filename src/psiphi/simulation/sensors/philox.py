"""Counter-based random numbers: Philox 4x64-10 of Salmon et al. (2011), on arrays.

    uniform(seed, name, i)     in [0, 1), for motion i in the stream `name`
    normal(seed, name, i)      mean 0, standard deviation 1 (Box-Muller)

A number depends on the seed, the name of the stream and the motion number only. It does not depend
on other draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
WEYL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def high_product(a: np.ndarray, b: np.uint64) -> np.ndarray:
    """The upper 64 bits of a b, from products of 32-bit halves."""
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    middle = a1 * b0 + (a0 * b0 >> HALF)
    return a1 * b1 + (middle >> HALF) + ((middle & LOW) + a0 * b1 >> HALF)


def philox(counter: Sequence[np.ndarray], key: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Four words for each counter of four words and key of two words; uint64 arrays, broadcast."""
    c0, c1, c2, c3 = np.broadcast_arrays(*counter)
    k0, k1 = key
    with np.errstate(over="ignore"):
        for _ in range(ROUNDS):
            c0, c1, c2, c3 = (
                high_product(c2, MULTIPLIERS[1]) ^ c1 ^ k0,
                c2 * MULTIPLIERS[1],
                high_product(c0, MULTIPLIERS[0]) ^ c3 ^ k1,
                c0 * MULTIPLIERS[0],
            )
            k0, k1 = k0 + WEYL[0], k1 + WEYL[1]
    return c0, c1, c2, c3


def random_words(seed: int, name: str, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two random words for each motion number, from the stream `name`."""
    stream = np.frombuffer(hashlib.sha256(name.encode()).digest()[:8], dtype="<u8").astype(
        np.uint64
    )
    counter = np.ascontiguousarray(numbers, dtype=np.uint64)
    zero = np.zeros(1, dtype=np.uint64)
    first, second, *_ = philox(
        (counter, zero, zero, zero), (np.array([seed], dtype=np.uint64), stream)
    )
    return first, second


def uniform(seed: int, name: str, numbers: np.ndarray) -> np.ndarray:
    """Uniform numbers in [0, 1), multiples of 2^-53.

    >>> round(float(uniform(1, "mass", np.arange(1000)).mean()), 1)
    0.5
    """
    return (random_words(seed, name, numbers)[0] >> np.uint64(11)) * 2.0**-53


def normal(seed: int, name: str, numbers: np.ndarray) -> np.ndarray:
    """sqrt(-2 log u) cos(2 pi w), with independent uniform u and w."""
    first, second = random_words(seed, name, numbers)
    u, w = ((x >> np.uint64(11)) * 2.0**-53 for x in (first, second))
    return np.sqrt(-2.0 * np.log1p(-u)) * np.cos(2.0 * np.pi * w)
