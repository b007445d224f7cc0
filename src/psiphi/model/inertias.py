"""Rotational inertias about the centre of mass as six floats (ixx, ixy, ixz, iyy, iyz, izz): rotate, combine, project.

As arrays (..., 3, 3): what a mass off the origin adds, and the second moments of mass J that an inertia I is made of.
"""

from __future__ import annotations

import numpy as np

from psiphi.model.spatial.transforms import HERE, UPRIGHT, Place, Rotation, Vector, rotate

Six = tuple[float, float, float, float, float, float]
RigidPart = tuple[
    float, Vector, Six, Place
]  # mass, centre of mass, inertia, and the place of their frame

NONE: Six = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def rotated(R: Rotation, inertia: Six) -> Six:
    """R I R*: the same inertia seen from the outer axes."""
    if R is UPRIGHT or inertia == NONE:
        return inertia
    xx, xy, xz, yy, yz, zz = inertia
    columns = (
        rotate(R, (xx, xy, xz)),
        rotate(R, (xy, yy, yz)),
        rotate(R, (xz, yz, zz)),
    )  # R I, column by column
    x, y, z = (rotate(R, row) for row in zip(*columns, strict=True))  # R (R I)* = R I R*
    return (x[0], x[1], x[2], y[1], y[2], z[2])


def parallel_axis(mass: float, d: Vector) -> Six:
    """m (|d|^2 - d d*): what a mass at the distance d adds."""
    x, y, z = d
    return (
        mass * (y * y + z * z),
        -mass * x * y,
        -mass * x * z,
        mass * (x * x + z * z),
        -mass * y * z,
        mass * (x * x + y * y),
    )


def combine(parts: list[RigidPart]) -> tuple[float, Vector, Six]:
    """One rigid body out of parts welded together: m = sum m_i, c = sum m_i c_i / m, I by the parallel axis theorem."""
    if len(parts) == 1 and parts[0][3] is HERE:
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
        apart = parallel_axis(m, (c[0] - com[0], c[1] - com[1], c[2] - com[2]))
        total = [t + i + a for t, i, a in zip(total, rotated(R, inertia), apart, strict=True)]
    xx, xy, xz, yy, yz, zz = total
    return mass, com, (xx, xy, xz, yy, yz, zz)


def _centre(part: RigidPart) -> Vector:
    _, com, _, (R, p) = part
    x, y, z = rotate(R, com)
    return (x + p[0], y + p[1], z + p[2])


def matrices(sixes) -> np.ndarray:
    """(N, 6) -> (N, 3, 3)."""
    return (
        np.asarray(sixes, dtype=float)
        .reshape(-1, 6)[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]]
        .reshape(-1, 3, 3)
    )


def off_origin(mass, c: np.ndarray) -> np.ndarray:
    """m (|c|^2 1 - c c*) of masses (...) at c (..., 3): I about the origin is I about the centre of mass, and this."""
    squares = (c * c).sum(axis=-1)[..., None, None]
    return np.asarray(mass)[..., None, None] * (
        squares * np.eye(3) - c[..., :, None] * c[..., None, :]
    )


def of_second_moments(J: np.ndarray) -> np.ndarray:
    """I = tr(J) 1 - J."""
    return np.trace(J, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - J


def project(inertia: Six) -> Six:
    """The nearest inertia that a mass distribution can have, on the same principal axes.

    With principal moments J, the second moments of mass s_i = sum(J)/2 - J_i must be >= 0: clip them.
    """
    J, axes = np.linalg.eigh(matrices(inertia)[0])
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
