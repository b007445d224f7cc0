"""Rotations and placements as plain floats: faster than NumPy for the many 3x3 products of a build.

A rotation is nine floats, row by row. A placement is (rotation, translation):
x_outer = R x_inner + p.
"""

from __future__ import annotations

from math import cos, sin

from psiphi.model.spatial.screws import Turn

Vector = tuple[float, float, float]
Rotation = tuple[float, ...]
Placement = tuple[Rotation, Vector]


class ComputedRotation(tuple):
    """A rotation computed from angles or a quaternion: orthonormal, so it is not checked again."""


IDENTITY_ROTATION: Rotation = ComputedRotation((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
ORIGIN: Vector = (0.0, 0.0, 0.0)
IDENTITY_PLACEMENT: Placement = (IDENTITY_ROTATION, ORIGIN)


def from_rpy(roll: float, pitch: float, yaw: float) -> Rotation:
    """R = Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis angles of URDF."""
    if roll == pitch == yaw == 0.0:
        return IDENTITY_ROTATION
    return from_cosines_and_sines(*((cos(angle), sin(angle)) for angle in (roll, pitch, yaw)))


def from_cosines_and_sines(
    roll: tuple[float, float], pitch: tuple[float, float], yaw: tuple[float, float]
) -> Rotation:
    """R = Rz(yaw) Ry(pitch) Rx(roll), each angle given as (cosine, sine)."""
    (cr, sr), (cp, sp), (cy, sy) = roll, pitch, yaw
    return ComputedRotation(
        (
            cy * cp,
            cy * sp * sr - sy * cr,
            cy * sp * cr + sy * sr,
            sy * cp,
            sy * sp * sr + cy * cr,
            sy * sp * cr - cy * sr,
            -sp,
            cp * sr,
            cp * cr,
        )
    )


def from_quaternion(x: float, y: float, z: float, w: float) -> Rotation:
    """R of a quaternion (x, y, z, w) of any length but zero."""
    return ComputedRotation(entry for row in Turn.from_quaternion((x, y, z, w)).R for entry in row)


def rotate(R: Rotation, x: Vector) -> Vector:
    """R x."""
    if R is IDENTITY_ROTATION:
        return x
    a, b, c = x
    return (
        R[0] * a + R[1] * b + R[2] * c,
        R[3] * a + R[4] * b + R[5] * c,
        R[6] * a + R[7] * b + R[8] * c,
    )


def multiply(A: Rotation, B: Rotation) -> Rotation:
    """A B."""
    if A is IDENTITY_ROTATION:
        return B
    if B is IDENTITY_ROTATION:
        return A
    return tuple(
        A[r] * B[c] + A[r + 1] * B[c + 3] + A[r + 2] * B[c + 6]
        for r in (0, 3, 6)
        for c in (0, 1, 2)
    )


def compose(outer: Placement, inner: Placement) -> Placement:
    """(R, p)(R', p') = (R R', p + R p')."""
    if outer is IDENTITY_PLACEMENT:
        return inner
    (R, p), (S, q) = outer, inner
    x, y, z = rotate(R, q)
    return multiply(R, S), (p[0] + x, p[1] + y, p[2] + z)


def inverse(place: Placement) -> Placement:
    """(R, p)^-1 = (R*, -R* p)."""
    (a, b, c, d, e, f, g, h, i), p = place
    back = IDENTITY_ROTATION if place[0] is IDENTITY_ROTATION else (a, d, g, b, e, h, c, f, i)
    x, y, z = rotate(back, p)
    return back, (-x, -y, -z)
