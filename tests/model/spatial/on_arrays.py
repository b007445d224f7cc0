"""The functions of `model/spatial/rotations.py` on arrays (..., 4) and (..., 3)."""

from functools import partial

import numpy as np

from psiphi.model.spatial import rotations
from psiphi.model.spatial.scalar_arrays import on_arrays
from psiphi.model.spatial.screws import Turn

multiply, conjugate, normalize, exp = (
    partial(on_arrays, rule)
    for rule in (rotations.multiply, rotations.conjugate, rotations.unit, rotations.exponential)
)
log = partial(on_arrays, lambda p: rotations.logarithm(p)[0])
rotate = partial(on_arrays, lambda p, x: Turn.from_quaternion(p).rotate(x))


def left_jacobian(w: np.ndarray) -> np.ndarray:
    """V(w) of SE(3)'s exponential, column by column: exp([w; v]) = (exp(w), V(w) v)."""
    return np.stack([on_arrays(rotations.left_jacobian_product, w, e) for e in np.eye(3)], axis=-1)


def random(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return normalize(rng.standard_normal((*size, 4)))
