"""Coordinates of the forces of contacts: the wrenches on the frames that they span.

    w = E* lambda,   V = Omega w,   u = c + E V,   Omega = Y Y*

lambda are impulses, c and u velocities of the contacts, three numbers each: normal, tangent,
tangent. A frame with one contact has its three impulses as coordinates, E = 1. A frame with
several has six: moment and force along the axes of the ground, at the origin of the frame; the row
of E for the axis a is [l x a, a], where l is the lever of the contact. The rules run on arrays
(..., n) and on tapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.model.contact.contact_points import ContactPoint, Vector
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import add, cross, dot

Scalars = list[Any]  # numbers, arrays or tape expressions
Matrix = list[Scalars]
UNITS = [[float(i == j) for j in range(3)] for i in range(3)]


class ContactSpace:
    """The contacts `points` on their frames; `axes`: normal, tangent, tangent of a ground."""

    def __init__(self, points: Sequence[ContactPoint], axes: Sequence[Vector]):
        self.points, self.axes = tuple(points), axes
        self.frames = tuple(dict.fromkeys(point.frame for point in points))
        self.owner = [self.frames.index(point.frame) for point in points]

    @cached_property
    def alone(self) -> tuple[bool, ...]:
        """For each frame whether it has one contact."""
        return tuple(self.owner.count(k) == 1 for k in range(len(self.frames)))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The coordinates of each frame."""
        sizes = [3 if is_alone else 6 for is_alone in self.alone]
        return tuple(slice(sum(sizes[:k]), sum(sizes[: k + 1])) for k in range(len(sizes)))

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.spans[-1].stop

    @property
    def has_patches(self) -> bool:
        """Whether several contacts share a frame."""
        return not all(self.alone)

    def levers(self, lever: np.ndarray | None) -> Matrix:
        """The lever of each contact in the axes of the ground, from those in world axes (3c)."""
        if lever is None:  # no frame has several contacts
            return [[0.0] * 3 for _ in self.points]
        l = entries(lever)
        return [[dot(axis, l[3 * i : 3 * i + 3]) for axis in self.axes] for i in range(len(l) // 3)]

    def rows(self, lever: np.ndarray | None) -> list[Matrix]:
        """The rows of E of each contact, by the coordinates of its frame."""
        return [
            UNITS if self.alone[k] else [[*cross(l, axis), *axis] for axis in UNITS]
            for k, l in zip(self.owner, self.levers(lever), strict=True)
        ]

    def wrench(self, rows: Sequence[Matrix], impulse: Scalars) -> Scalars:
        """w = E* lambda."""
        w: Scalars = [0.0] * self.size
        for i, (k, E) in enumerate(zip(self.owner, rows, strict=True)):
            w[self.spans[k]] = add(w[self.spans[k]], pull(E, impulse[3 * i : 3 * i + 3]))
        return w

    def delassus(self, rows: Sequence[Matrix], omega: Matrix) -> Matrix:
        """G = E Omega E*, the velocities of all contacts for each impulse."""
        places = [(self.spans[k], row) for k, E in zip(self.owner, rows, strict=True) for row in E]
        G: Matrix = [[None] * len(places) for _ in places]
        for j, (span, row) in enumerate(places):
            V = [dot(line[span], row) for line in omega]
            for i, (at, other) in enumerate(places[: j + 1]):
                G[i][j] = G[j][i] = dot(other, V[at])
        return G

    def velocities(self, rows: Sequence[Matrix], c: Scalars, V: Scalars) -> list[Scalars]:
        """u = c + E V, for each contact."""
        return [
            [x + dot(row, V[self.spans[k]]) for x, row in zip(c[3 * i : 3 * i + 3], E, strict=True)]
            for i, (k, E) in enumerate(zip(self.owner, rows, strict=True))
        ]

    def test_wrenches(self, lever: np.ndarray) -> Matrix:
        """The coordinates as wrenches in world axes, six numbers a frame."""
        l, out = entries(lever), []
        for k, is_alone in enumerate(self.alone):
            i = self.owner.index(k)
            arm = l[3 * i : 3 * i + 3]
            forces = [[*(cross(arm, axis) if is_alone else [0.0] * 3), *axis] for axis in self.axes]
            moments = [] if is_alone else [[*axis, 0.0, 0.0, 0.0] for axis in self.axes]
            for wrench in [*moments, *forces]:
                out.append([0.0] * (6 * k) + wrench + [0.0] * (6 * (len(self.alone) - k - 1)))
        return out


def pull(E: Matrix, x: Sequence[Any]) -> Scalars:
    """E* x."""
    return [dot(column, x) for column in zip(*E, strict=True)]


def gram(Y: Sequence[Sequence[Any]]) -> Matrix:
    """Y Y*."""
    out: Matrix = [[None] * len(Y) for _ in Y]
    for i in range(len(Y)):
        for j in range(i + 1):
            out[i][j] = out[j][i] = dot(Y[i], Y[j])
    return out


def lower(omega: Matrix) -> Scalars:
    """The entries on and below the diagonal of a symmetric matrix, row by row."""
    return [x for i, row in enumerate(omega) for x in row[: i + 1]]


def symmetric(numbers: Scalars, size: int) -> Matrix:
    """The symmetric matrix with the entries `lower`."""
    at = lambda i, j: numbers[i * (i + 1) // 2 + j]  # noqa: E731
    return [[at(max(i, j), min(i, j)) for j in range(size)] for i in range(size)]
