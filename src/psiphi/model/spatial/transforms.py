"""Rotations and places as plain floats, for the thousands of small products made while a model is built.

A rotation is nine floats, row by row; a place is (rotation, translation): x_outer = R x_inner + p.
"""

from __future__ import annotations

from math import cos, sin

from psiphi.model.spatial.screws import Turn

Vector = tuple[float, float, float]
Rotation = tuple[float, ...]
Place = tuple[Rotation, Vector]


class Computed(tuple):
    """A rotation computed from angles or a quaternion: orthonormal, no need to check it again."""


UPRIGHT: Rotation = Computed((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
ORIGIN: Vector = (0.0, 0.0, 0.0)
HERE: Place = (UPRIGHT, ORIGIN)


def from_rpy(roll: float, pitch: float, yaw: float) -> Rotation:
    """R = Rz(yaw) Ry(pitch) Rx(roll): URDF's fixed-axis angles."""
    if roll == pitch == yaw == 0.0:
        return UPRIGHT
    return of_turns(*((cos(angle), sin(angle)) for angle in (roll, pitch, yaw)))


def of_turns(
    roll: tuple[float, float], pitch: tuple[float, float], yaw: tuple[float, float]
) -> Rotation:
    """The same of cosines and sines."""
    (cr, sr), (cp, sp), (cy, sy) = roll, pitch, yaw
    return Computed(
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
    """R of a quaternion x, y, z, w of any length but zero."""
    return Computed(entry for row in Turn.from_quaternion((x, y, z, w)).R for entry in row)


def rotate(R: Rotation, x: Vector) -> Vector:
    """R x."""
    if R is UPRIGHT:
        return x
    a, b, c = x
    return (
        R[0] * a + R[1] * b + R[2] * c,
        R[3] * a + R[4] * b + R[5] * c,
        R[6] * a + R[7] * b + R[8] * c,
    )


def multiply(A: Rotation, B: Rotation) -> Rotation:
    """A B."""
    if A is UPRIGHT:
        return B
    if B is UPRIGHT:
        return A
    return tuple(
        A[r] * B[c] + A[r + 1] * B[c + 3] + A[r + 2] * B[c + 6]
        for r in (0, 3, 6)
        for c in (0, 1, 2)
    )


def compose(outer: Place, inner: Place) -> Place:
    """(R, p)(R', p') = (R R', p + R p')."""
    if outer is HERE:
        return inner
    (R, p), (S, q) = outer, inner
    x, y, z = rotate(R, q)
    return multiply(R, S), (p[0] + x, p[1] + y, p[2] + z)


def inverse(place: Place) -> Place:
    """The outer frame, seen from the inner one."""
    (a, b, c, d, e, f, g, h, i), p = place
    back = UPRIGHT if place[0] is UPRIGHT else (a, d, g, b, e, h, c, f, i)
    x, y, z = rotate(back, p)
    return back, (-x, -y, -z)
