"""Displacements between frames, and the transforms of motions, forces, inertias and poses.

A displacement leads from an *outer* frame (on the parent's side) to an *inner* one (on the body's
side). Let l be the vector from the outer to the inner origin, R: inner axes -> outer axes and
A = diag(R, R). Then phi(outer, inner) = [[I, l~], [0, I]] A and

    motion   V_inner = phi* V_outer            force    f_outer = phi f_inner
    inertia  P_outer = phi P_inner phi*        pose     (R, p) -> (R R', p + R l)

Axial screws (a rotation about and a translation along one coordinate axis) need far fewer
operations than a general rotation, and their zeros and ones need none. This is where the low
operation counts of psiphi come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar

# axis -> (i, j, k): k is the axis, e_i x e_j = e_k
IN_PLANE = {"x": (1, 2, 0), "y": (2, 0, 1), "z": (0, 1, 2)}


def cosine(x):
    """cos x for a number, an array or a tape expression."""
    return x.cos() if hasattr(x, "cos") else np.cos(x)


def sine(x):
    """sin x for a number, an array or a tape expression."""
    return x.sin() if hasattr(x, "sin") else np.sin(x)


def square_root(x):
    """The square root of a number, an array or a tape expression."""
    return x.sqrt() if hasattr(x, "sqrt") else np.sqrt(x)


def is_zero_constant(x: object) -> bool:
    """Whether x is the float 0.0. An expression or array that is zero in some states is not."""
    return isinstance(x, float) and x == 0.0


def cross(a: Sequence, b: Sequence) -> list:
    """a x b for 3-vectors."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def add(a: Sequence, b: Sequence) -> list:
    """a + b, entry by entry."""
    return [x + y for x, y in zip(a, b, strict=True)]


def subtract(a: Sequence, b: Sequence) -> list:
    """a - b, entry by entry."""
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a: Sequence, b: Sequence):
    """sum_i a_i b_i."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


@dataclass(frozen=True)
class Inertia:
    """A symmetric 6x6 matrix [[I, H], [H*, M]], stored as its 3x3 blocks (lists of rows).

    I and M store both halves; the two entries of a pair are the same object.
    """

    I: list
    H: list
    M: list

    def __add__(self, other: Inertia) -> Inertia:
        return Inertia(
            *(
                symmetric_sum(a, b, k != 1)
                for k, (a, b) in enumerate(zip(self.blocks, other.blocks, strict=True))
            )
        )

    size = 6

    @staticmethod
    def from_entries(entry: Mapping[tuple[int, int], Any]) -> Inertia:
        """The inertia whose 6x6 matrix has `entry[r, c]` in row r, column c."""

        def block(i: int, j: int) -> list:
            return [[entry[i + r, j + c] for c in range(3)] for r in range(3)]

        return Inertia(block(0, 0), block(0, 3), block(3, 3))

    @property
    def blocks(self):
        return self.I, self.H, self.M

    def entry(self, r: int, c: int):
        """Entry (r, c) of the 6x6 matrix."""
        if r < 3:
            return self.I[r][c] if c < 3 else self.H[r][c - 3]
        return self.H[c][r - 3] if c < 3 else self.M[r - 3][c - 3]

    def column(self, c: int) -> list:
        return [self.entry(r, c) for r in range(6)]

    def __matmul__(self, x: Sequence) -> list:
        """P x for a spatial vector x."""
        return [dot(self.column(r), x) for r in range(6)]


def rigid_inertia(mass: AnyScalar, moment: Sequence, J: Sequence) -> Inertia:
    """[[I, m p~], [-m p~, m]] of a rigid body: its mass m, first moment m p, second moment J.

    I = tr(J) 1 - J.
    """
    return Inertia(
        inertia_from_second_moment(J),
        tilde(moment),
        [[mass, 0.0, 0.0], [0.0, mass, 0.0], [0.0, 0.0, mass]],
    )


def inertia_from_second_moment(J: Sequence) -> list:
    """tr(J) 1 - J: the rotational inertia of the second moment J, 3x3."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = J
    return [[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]]


def tilde(x: Sequence) -> list:
    """x~ with x~ y = x cross y, as a list of rows."""
    return [[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]]


def symmetric_sum(a: Sequence, b: Sequence, symmetric: bool) -> list:
    """a + b for 3x3 blocks; of symmetric blocks only one half is added."""
    out = [[None] * 3 for _ in range(3)]
    for r in range(3):
        for c in range(3):
            out[r][c] = out[c][r] if symmetric and c < r else a[r][c] + b[r][c]
    return out


@dataclass(frozen=True, eq=False)
class Screw:
    """Rotation by `angle` about a coordinate axis and translation by `length` along it.

    The two commute. `angle` is a scalar, a (cosine, sine) pair, or None for no rotation.
    """

    axis: str
    angle: Any
    length: Any

    @cached_property
    def turn(self):
        """(cosine, sine) of the angle, or None."""
        if self.angle is None or isinstance(self.angle, tuple):
            return self.angle
        return cosine(self.angle), sine(self.angle)

    def rotate(self, x: Sequence) -> list:
        """Inner axes -> outer axes."""
        return self._rotate(x, 1)

    def unrotate(self, x: Sequence) -> list:
        """Outer axes -> inner axes."""
        return self._rotate(x, -1)

    def _rotate(self, x: Sequence, sign: int) -> list:
        if self.turn is None:
            return list(x)
        (i, j, k), (c, s) = IN_PLANE[self.axis], self.turn
        y: list = [None] * 3
        if sign > 0:
            y[i], y[j], y[k] = c * x[i] - s * x[j], s * x[i] + c * x[j], x[k]
        else:
            y[i], y[j], y[k] = c * x[i] + s * x[j], c * x[j] - s * x[i], x[k]
        return y

    def motion(self, V: Sequence) -> list:
        (i, j, _), length = IN_PLANE[self.axis], self.length
        w, v = list(V[:3]), list(V[3:])
        v[i], v[j] = v[i] + length * w[j], v[j] - length * w[i]  # v + w x l
        return self.unrotate(w) + self.unrotate(v)

    def force(self, f: Sequence) -> list:
        (i, j, _), length = IN_PLANE[self.axis], self.length
        n, F = self.rotate(f[:3]), self.rotate(f[3:])
        n[i], n[j] = n[i] - length * F[j], n[j] + length * F[i]  # n + l x F
        return n + F

    def inertia(self, P: Inertia) -> Inertia:
        return self._shift_inertia(self._rotate_inertia(P))

    def pose(self, R, p):
        """The pose of the inner frame from that of the outer frame."""
        i, j, k = IN_PLANE[self.axis]
        p = [p[r] + R[r][k] * self.length for r in range(3)]
        if self.turn is None:
            return R, p
        c, s = self.turn
        out: list = [list(row) for row in R]
        for r in range(3):
            out[r][i], out[r][j] = R[r][i] * c + R[r][j] * s, R[r][j] * c - R[r][i] * s
        return out, p

    def inverse(self) -> list:
        """The path of displacements that inverts this one; the translation is first."""
        shift = [Screw(self.axis, None, -self.length)]
        return (
            shift
            if self.turn is None
            else [*shift, Screw(self.axis, (self.turn[0], -self.turn[1]), 0.0)]
        )

    def rotate_tensor(self, A: list) -> list:
        """R A R* for a symmetric 3x3 block."""
        return (
            A
            if self.turn is None
            else _turn_symmetric(A, self.turn[0], self.turn[1], IN_PLANE[self.axis])
        )

    def _rotate_inertia(self, P: Inertia) -> Inertia:
        if self.turn is None:
            return P
        plane, (c, s) = IN_PLANE[self.axis], self.turn
        return Inertia(
            _turn_symmetric(P.I, c, s, plane),
            _turn_general(P.H, c, s, plane),
            _turn_symmetric(P.M, c, s, plane),
        )

    def _shift_inertia(self, P: Inertia) -> Inertia:
        # H' = H + l~ M,  I' = I + l~ H* - H' l~  with l along axis k
        (i, j, k), h = IN_PLANE[self.axis], self.length
        A = [list(row) for row in P.H]
        for c in range(3):
            A[i][c], A[j][c] = P.H[i][c] - h * P.M[j][c], P.H[j][c] + h * P.M[i][c]
        J: list = [[None] * 3 for _ in range(3)]
        J[i][i] = P.I[i][i] - h * (P.H[i][j] + A[i][j])
        J[j][j] = P.I[j][j] + h * (P.H[j][i] + A[j][i])
        J[k][k] = P.I[k][k]
        J[i][j] = J[j][i] = P.I[i][j] + h * (A[i][i] - P.H[j][j])
        J[i][k] = J[k][i] = P.I[i][k] - h * P.H[k][j]
        J[j][k] = J[k][j] = P.I[j][k] + h * P.H[k][i]
        return Inertia(J, A, P.M)


def _turn_symmetric(A, c, s, plane) -> list:
    """R A R* for symmetric A: a - t, d + t, u c - b with u = s (a - d) + 2 c b, t = s u."""
    i, j, k = plane
    a, b, d = A[i][i], A[i][j], A[j][j]
    u = s * (a - d) + (c + c) * b
    t = s * u
    B: list = [[None] * 3 for _ in range(3)]
    B[i][i], B[j][j], B[k][k] = a - t, d + t, A[k][k]
    B[i][j] = B[j][i] = c * u - b
    B[i][k] = B[k][i] = c * A[i][k] - s * A[j][k]
    B[j][k] = B[k][j] = s * A[i][k] + c * A[j][k]
    return B


def _turn_general(A, c, s, plane) -> list:
    """R A R* for any A: its in-plane block turns by u = s (a - e) + c (b + d)."""
    i, j, k = plane
    u = s * (A[i][i] - A[j][j]) + c * (A[i][j] + A[j][i])
    t, w = s * u, c * u
    B: list = [[None] * 3 for _ in range(3)]
    B[i][i], B[j][j], B[k][k] = A[i][i] - t, A[j][j] + t, A[k][k]
    B[i][j], B[j][i] = w - A[j][i], w - A[i][j]
    B[i][k], B[j][k] = c * A[i][k] - s * A[j][k], s * A[i][k] + c * A[j][k]
    B[k][i], B[k][j] = c * A[k][i] - s * A[k][j], s * A[k][i] + c * A[k][j]
    return B


@dataclass(frozen=True, eq=False)
class Turn:
    """A general rotation R (list of rows): inner axes -> outer axes; no translation."""

    R: list

    @staticmethod
    def from_quaternion(q) -> Turn:
        """R = I + 2 (w u~ + u~ u~) / |q|^2, q = (u, w), for q of any length but zero."""
        x, y, z, w = q
        k = 2.0 / (x * x + y * y + z * z + w * w)
        kx, ky, kz = k * x, k * y, k * z
        # k * (x * x), not (k * x) * x: if |q|^2 overflows, 0 * inf gives NaN, not a wrong rotation.
        xx, yy, zz = k * (x * x), k * (y * y), k * (z * z)
        xy, xz, yz = kx * y, kx * z, ky * z
        wx, wy, wz = kx * w, ky * w, kz * w
        return Turn(
            [
                [1.0 - (yy + zz), xy - wz, xz + wy],
                [xy + wz, 1.0 - (xx + zz), yz - wx],
                [xz - wy, yz + wx, 1.0 - (xx + yy)],
            ]
        )

    def rotate(self, x: Sequence) -> list:
        return [dot(row, x) for row in self.R]

    def unrotate(self, x: Sequence) -> list:
        return [dot(column, x) for column in zip(*self.R, strict=True)]

    def motion(self, V: Sequence) -> list:
        return self.unrotate(V[:3]) + self.unrotate(V[3:])

    def force(self, f: Sequence) -> list:
        return self.rotate(f[:3]) + self.rotate(f[3:])

    def inertia(self, P: Inertia) -> Inertia:
        return Inertia(
            self._conjugate(P.I, True), self._conjugate(P.H, False), self._conjugate(P.M, True)
        )

    def inverse(self) -> list:
        return [Turn([list(column) for column in zip(*self.R, strict=True)])]

    def rotate_tensor(self, A: list) -> list:
        return self._conjugate(A, True)

    def _conjugate(self, A, symmetric: bool) -> list:
        B = [[dot(row, column) for column in zip(*A, strict=True)] for row in self.R]
        out: list = [[None] * 3 for _ in range(3)]
        for r in range(3):
            for c in range(3):
                out[r][c] = out[c][r] if symmetric and c < r else dot(B[r], self.R[c])
        return out

    def pose(self, R, p):
        return [[dot(row, column) for column in zip(*self.R, strict=True)] for row in R], p


@dataclass(frozen=True, eq=False)
class Shift:
    """A translation by l; no rotation."""

    l: list

    def motion(self, V: Sequence) -> list:
        return list(V[:3]) + add(V[3:], cross(V[:3], self.l))

    def force(self, f: Sequence) -> list:
        return add(f[:3], cross(self.l, f[3:])) + list(f[3:])

    def inertia(self, P: Inertia) -> Inertia:
        for axis, length in zip("xyz", self.l, strict=True):
            P = Screw(axis, None, length).inertia(P)
        return P

    def rotate(self, x: Sequence) -> list:
        return list(x)

    unrotate = rotate

    def rotate_tensor(self, A: list) -> list:
        return A

    def inverse(self) -> list:
        return [Shift([-x for x in self.l])]

    def pose(self, R, p):
        return R, add(p, [dot(row, self.l) for row in R])
