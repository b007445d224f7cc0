"""Rotational inertias: rotate, combine, convert and project them.

A body's inertia about its centre of mass is a tuple (ixx, ixy, ixz, iyy, iyz, izz) or an array
(..., 3, 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psiphi.model.spatial.transforms import (
    IDENTITY_PLACEMENT,
    IDENTITY_ROTATION,
    Placement,
    Rotation,
    Vector,
    rotate,
)

InertiaTuple = tuple[float, float, float, float, float, float]
# Mass, centre of mass and inertia of a rigid part, and the placement of the frame they refer to.
RigidPart = tuple[float, Vector, InertiaTuple, Placement]

ZERO_INERTIA: InertiaTuple = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def rotate_inertia(R: Rotation, inertia: InertiaTuple) -> InertiaTuple:
    """R I R*: the inertia in the outer axes."""
    if R is IDENTITY_ROTATION or inertia == ZERO_INERTIA:
        return inertia
    xx, xy, xz, yy, yz, zz = inertia
    columns = (
        rotate(R, (xx, xy, xz)),
        rotate(R, (xy, yy, yz)),
        rotate(R, (xz, yz, zz)),
    )  # R I, column by column
    x, y, z = (rotate(R, row) for row in zip(*columns, strict=True))  # R (R I)* = R I R*
    return (x[0], x[1], x[2], y[1], y[2], z[2])


def parallel_axis(mass: float, d: Vector) -> InertiaTuple:
    """m (|d|^2 1 - d d*): the inertia of a point mass at d."""
    x, y, z = d
    return (
        mass * (y * y + z * z),
        -mass * x * y,
        -mass * x * z,
        mass * (x * x + z * z),
        -mass * y * z,
        mass * (x * x + y * y),
    )


def combine_bodies(parts: list[RigidPart]) -> tuple[float, Vector, InertiaTuple]:
    """(mass, centre of mass, inertia) of welded parts: m = sum m_i, c = sum m_i c_i / m.

    The inertia follows from the parallel axis theorem.
    """
    if len(parts) == 1 and parts[0][3] is IDENTITY_PLACEMENT:
        return parts[0][:3]
    mass = sum(part[0] for part in parts)
    centres = [_centre(part) for part in parts]
    com = parts[0][1]
    if mass > 0.0:
        x, y, z = (
            sum(part[0] * c[i] for part, c in zip(parts, centres, strict=True)) / mass
            for i in range(3)
        )
        com = (x, y, z)
    total = [0.0] * 6
    for (m, _, inertia, (R, _)), c in zip(parts, centres, strict=True):
        shift = parallel_axis(m, (c[0] - com[0], c[1] - com[1], c[2] - com[2]))
        total = [
            t + i + s for t, i, s in zip(total, rotate_inertia(R, inertia), shift, strict=True)
        ]
    xx, xy, xz, yy, yz, zz = total
    return mass, com, (xx, xy, xz, yy, yz, zz)


def _centre(part: RigidPart) -> Vector:
    _, com, _, (R, p) = part
    x, y, z = rotate(R, com)
    return (x + p[0], y + p[1], z + p[2])


def inertia_matrices(inertias: ArrayLike) -> np.ndarray:
    """(N, 6) -> (N, 3, 3)."""
    rows = np.asarray(inertias, dtype=float).reshape(-1, 6)
    return rows[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)


def point_mass_inertia(mass: ArrayLike, c: np.ndarray) -> np.ndarray:
    """m (|c|^2 1 - c c*): the inertia of point masses (...) at c (..., 3) about the origin.

    Add it to the inertia about the centre of mass to obtain the inertia about the origin.
    """
    squares = (c * c).sum(axis=-1)[..., None, None]
    return np.asarray(mass)[..., None, None] * (
        squares * np.eye(3) - c[..., :, None] * c[..., None, :]
    )


def inertia_from_second_moments(J: np.ndarray) -> np.ndarray:
    """I = tr(J) 1 - J, where J = int r r* dm are the second moments of mass."""
    return np.trace(J, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - J


def nearest_inertia(inertia: InertiaTuple) -> InertiaTuple:
    """The nearest inertia that a mass distribution can have, with the same principal axes.

    For principal moments J, the second moments of mass s_i = sum(J)/2 - J_i are clipped at 0.
    """
    J, axes = np.linalg.eigh(inertia_matrices(inertia)[0])
    s = np.maximum(J.sum() / 2.0 - J, 0.0)
    I = (axes * (s.sum() - s)) @ axes.T
    return (
        float(I[0, 0]),
        float(I[0, 1]),
        float(I[0, 2]),
        float(I[1, 1]),
        float(I[1, 2]),
        float(I[2, 2]),
    )
