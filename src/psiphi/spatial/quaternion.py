"""Unit quaternions x, y, z, w as NumPy arrays (..., 4): the configuration space of spherical and free joints."""

from __future__ import annotations

import numpy as np


def multiply(a, b):
    """The product a b: the rotation b first, then a."""
    ax, ay, az, aw = np.moveaxis(a, -1, 0)
    bx, by, bz, bw = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def conjugate(a):
    """The inverse of a unit quaternion."""
    return np.concatenate([-a[..., :3], a[..., 3:]], axis=-1)


def normalize(a):
    """a / |a|."""
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def rotate(a, x):
    """R(a) x."""
    u, w = a[..., :3], a[..., 3:]
    t = 2.0 * np.cross(u, x)
    return x + w * t + np.cross(u, t)


def exp(w):
    """The rotation by |w| about w."""
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    return np.concatenate([w * (0.5 * np.sinc(angle / (2.0 * np.pi))), np.cos(angle / 2.0)], axis=-1)


def log(a):
    """The rotation vector w with exp(w) = a, |w| <= pi."""
    a = np.where(a[..., 3:] < 0.0, -a, a)
    size = np.linalg.norm(a[..., :3], axis=-1, keepdims=True)
    small = size < 1e-9
    scale = np.where(small, 2.0, 2.0 * np.arctan2(size, a[..., 3:]) / np.where(small, 1.0, size))
    return scale * a[..., :3]


def random(rng, size):
    """Uniform on the unit sphere of R4, that is, uniform over rotations."""
    return normalize(rng.standard_normal((*size, 4)))


def skew(x):
    """x~ with x~ y = x cross y."""
    x0, x1, x2 = np.moveaxis(np.asarray(x, dtype=float), -1, 0)
    zero = np.zeros_like(x0)
    return np.stack([np.stack([zero, -x2, x1], -1), np.stack([x2, zero, -x0], -1), np.stack([-x1, x0, zero], -1)], -2)


def left_jacobian(w):
    """V(w) of SE(3)'s exponential: exp([w; v]) = (exp(w), V(w) v)."""
    w = np.asarray(w, dtype=float)
    t = np.linalg.norm(w, axis=-1)[..., None, None]
    a = 0.5 * np.sinc(t / (2.0 * np.pi)) ** 2  # (1 - cos t) / t^2
    small = t < 0.1
    s = np.where(small, 1.0, t)
    series = 1.0 / 6.0 - t**2 / 120.0 + t**4 / 5040.0 - t**6 / 362880.0 + t**8 / 39916800.0
    b = np.where(small, series, (s - np.sin(s)) / s**3)
    W = skew(w)
    return np.eye(3) + a * W + b * (W @ W)


def from_matrix(R):
    """The unit quaternion x y z w of rotations (..., 3, 3): the largest of the four components is taken by its root.

    >>> from_matrix(np.eye(3)).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    R = np.asarray(R, dtype=float)
    d = np.diagonal(R, axis1=-2, axis2=-1)
    t = d.sum(axis=-1)
    squares = np.stack([1.0 + 2.0 * d[..., i] - t for i in range(3)] + [1.0 + t], axis=-1)  # 4 times each square
    off = np.empty((*R.shape[:-2], 4, 4))  # 4 times each product of two components
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        off[..., i, j] = off[..., j, i] = R[..., i, j] + R[..., j, i]
        off[..., i, 3] = off[..., 3, i] = R[..., k, j] - R[..., j, k]
        off[..., i, i] = squares[..., i]
    off[..., 3, 3] = squares[..., 3]
    best = np.argmax(squares, axis=-1)
    return normalize(np.take_along_axis(off, best[..., None, None], axis=-2)[..., 0, :])
