"""Coordinates of the forces of contacts: the wrenches on the frames that they span.

    w = E* lambda,   V = Omega w,   u = c + E V,   Omega = Y Y*

lambda are impulses, c and u velocities of the contacts, three numbers each: normal, tangent,
tangent. A contact is between a frame and the world, or between two frames. Its own three impulses
are coordinates, E = 1, if it shares its frames with few others. Else the frames have six
coordinates each: moment and force along the axes of the ground, at the origin of the frame; the row
of E for the axis a of a contact is [l x a, a], where l is its lever, and the opposite for the
second frame. A joint stop has one impulse; its coordinate is the torque of the joint, E = 1 at a
lower limit and -1 at an upper.

The impulses are those of the contacts, and then of the stops. The rules run on arrays (..., n) and
on tapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.contact.contact_points import Vector
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import cross, dot

Scalars = list[Any]  # numbers, arrays or tape expressions
Matrix = list[Scalars]
UNITS = [[float(i == j) for j in range(3)] for i in range(3)]
Sides = Sequence[tuple[str, float]]  # the frames of a contact, and the signs of its force on them


class ContactPlace(NamedTuple):
    """Where a contact acts, in world axes: the lever from the origin of each of its frames, and the
    axes of a pair: normal, tangent, tangent. Those of other contacts are the ground's."""

    levers: Sequence[Scalars]
    axes: Sequence[Scalars] | None = None


class StepPlaces(NamedTuple):
    """The places of all contacts, and for each joint stop its E, 1 or -1."""

    contacts: Sequence[ContactPlace]
    sides: Scalars


class ContactSpace:
    """Contacts between these frames; `axes`: normal, tangent, tangent of a ground. From number
    `ground_count` on, contacts have axes of their own. After them there are joint
    stops; `locked` says which of them hold their joints, with impulses of any sign."""

    def __init__(
        self,
        sides: Sequence[Sides],
        axes: Sequence[Vector],
        ground_count: int,
        locked: Sequence[bool] = (),
    ):
        self.sides, self.axes, self.ground_count = tuple(sides), axes, ground_count
        self.locked = tuple(locked)
        self.count, self.stop_count = len(self.sides), len(self.locked)
        names = (name for contact in sides for name, _ in contact)
        self.frames = tuple(dict.fromkeys(names))

    @cached_property
    def members(self) -> list[list[int]]:
        """For each contact the numbers of its frames."""
        return [[self.frames.index(name) for name, _ in contact] for contact in self.sides]

    @cached_property
    def is_own(self) -> tuple[bool, ...]:
        """For each contact whether its own impulses are coordinates: if there are fewer of them
        than coordinates of the frames, among all contacts that share frames."""
        group = list(range(len(self.frames)))
        for frames in self.members:
            joined = {group[k] for k in frames}
            group = [min(joined) if g in joined else g for g in group]
        of_contact = [group[frames[0]] for frames in self.members]
        return tuple(3 * of_contact.count(g) < 6 * group.count(g) for g in of_contact)

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """The coordinates of each contact, and of each stop."""
        stops = ((self.contact_size + k,) for k in range(self.stop_count))
        return (*self._coordinates[0], *stops)

    def is_locked(self, i: int) -> bool:
        """Whether number i, of the contacts and stops, is a stop that holds its joint."""
        return i >= self.count and self.locked[i - self.count]

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """Where the impulses of each contact are, and those of each stop."""
        contacts = (slice(3 * i, 3 * i + 3) for i in range(self.count))
        first = 3 * self.count
        return (*contacts, *(slice(first + k, first + k + 1) for k in range(self.stop_count)))

    @property
    def impulse_size(self) -> int:
        """The number of impulses."""
        return 3 * self.count + self.stop_count

    @property
    def contact_size(self) -> int:
        """The number of coordinates of the contacts, which come first."""
        return self._coordinates[1]

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.contact_size + self.stop_count

    @cached_property
    def _coordinates(self) -> tuple[tuple[tuple[int, ...], ...], int]:
        start: dict[int, int] = {}  # of the frames
        size, found = 0, []
        for frames, is_own in zip(self.members, self.is_own, strict=True):
            if is_own:
                found.append((size, size + 1, size + 2))
                size += 3
                continue
            for k in frames:
                if k not in start:
                    start[k] = size
                    size += 6
            found.append(tuple(start[k] + j for k in frames for j in range(6)))
        return tuple(found), size

    @cached_property
    def groups(self) -> dict[tuple[int, ...], list[int]]:
        """{coordinates: the contacts that have them}."""
        found: dict[tuple[int, ...], list[int]] = {}
        for i, columns in enumerate(self._coordinates[0]):
            found.setdefault(columns, []).append(i)
        return found

    @property
    def has_places(self) -> bool:
        """Whether E depends on places."""
        return self.stop_count > 0 or not all(self.is_own)

    @cached_property
    def has_patches(self) -> bool:
        """Whether several contacts share a frame."""
        all_frames = [k for frames in self.members for k in frames]
        return len(set(all_frames)) < len(all_frames)

    # -- places ------------------------------------------------------------------------------------

    @property
    def place_size(self) -> int:
        """How many numbers `pack` returns."""
        levers = sum(len(frames) for frames in self.members)
        return 3 * levers + 9 * (self.count - self.ground_count) + self.stop_count

    def pack(self, places: StepPlaces) -> Scalars:
        """The numbers of the places."""
        rows = [row for place in places.contacts for row in (*place.levers, *(place.axes or ()))]
        return [*(x for row in rows for x in row), *places.sides]

    def unpack(self, numbers: np.ndarray) -> StepPlaces:
        """The places, from their numbers."""
        values = entries(numbers)
        last = len(values) - self.stop_count
        rows = iter([values[i : i + 3] for i in range(0, last, 3)])
        contacts = [
            ContactPlace(
                [next(rows) for _ in frames],
                None if i < self.ground_count else [next(rows) for _ in range(3)],
            )
            for i, frames in enumerate(self.members)
        ]
        return StepPlaces(contacts, values[last:])

    # -- the matrix E ------------------------------------------------------------------------------

    def rows(self, numbers: np.ndarray | None) -> list[Matrix]:
        """The rows of E of each contact and stop, by its coordinates; `numbers` are those of the
        places."""
        if numbers is None:  # each contact has its own coordinates
            return [UNITS for _ in self.sides]
        places = self.unpack(numbers)
        contacts = [
            UNITS if is_own else self._rows(sides, place)
            for sides, place, is_own in zip(self.sides, places.contacts, self.is_own, strict=True)
        ]
        return [*contacts, *([[side]] for side in places.sides)]

    def _rows(self, sides: Sides, place: ContactPlace) -> Matrix:
        axes = UNITS if place.axes is None else [self._turned(axis) for axis in place.axes]
        rows: Matrix = [[] for _ in axes]
        for (_, sign), lever in zip(sides, place.levers, strict=True):
            l = self._turned(lever)
            for row, axis in zip(rows, axes, strict=True):
                row += [sign * x for x in (*cross(l, axis), *axis)]
        return rows

    def _turned(self, vector: Scalars) -> Scalars:
        """A vector in the axes of the ground."""
        return [dot(axis, vector) for axis in self.axes]

    def wrench(self, rows: Sequence[Matrix], impulse: Scalars) -> Scalars:
        """w = E* lambda."""
        w: Scalars = [0.0] * self.size
        for i, (E, part) in enumerate(zip(rows, self.parts, strict=True)):
            self.add_wrench(w, i, pull(E, impulse[part]))
        return w

    def add_wrench(self, w: Scalars, i: int, push: Scalars) -> None:
        """Add to w its part of contact or stop i."""
        for k, x in zip(self.columns[i], push, strict=True):
            w[k] = w[k] + x

    def delassus(self, rows: Sequence[Matrix], omega: Matrix) -> Matrix:
        """G = E Omega E*, the velocities of all contacts for each impulse."""
        places = [(at, row) for at, E in zip(self.columns, rows, strict=True) for row in E]
        G: Matrix = [[None] * len(places) for _ in places]
        for j, (columns, row) in enumerate(places):
            V = [dot(take(line, columns), row) for line in omega]
            for i, (at, other) in enumerate(places[: j + 1]):
                G[i][j] = G[j][i] = dot(other, take(V, at))
        return G

    def velocities(self, rows: Sequence[Matrix], c: Scalars, V: Scalars) -> list[Scalars]:
        """u = c + E V, for each contact and stop."""
        return [
            [x + dot(row, take(V, at)) for x, row in zip(c[part], E, strict=True)]
            for at, part, E in zip(self.columns, self.parts, rows, strict=True)
        ]

    def test_wrenches(self, numbers: np.ndarray) -> Matrix:
        """The coordinates of contacts as wrenches in world axes, six numbers a frame."""
        out: Matrix = [[] for _ in range(self.contact_size)]
        places = self.unpack(numbers).contacts
        for i, (place, sides) in enumerate(zip(places, self.sides, strict=True)):
            frames, columns = self.members[i], self.columns[i]
            if self.is_own[i]:
                for k, axis in zip(columns, place.axes or self.axes, strict=True):
                    wrench: Scalars = [0.0] * (6 * len(self.frames))
                    for frame, (_, sign), lever in zip(frames, sides, place.levers, strict=True):
                        own = [sign * x for x in (*cross(lever, axis), *axis)]
                        wrench[6 * frame : 6 * frame + 6] = own
                    out[k] = wrench
                continue
            zero = [0.0] * 3
            units = [*([*axis, *zero] for axis in self.axes), *([*zero, *x] for x in self.axes)]
            for j, k in enumerate(columns):
                before = 6 * frames[j // 6]
                after = 6 * len(self.frames) - before - 6
                out[k] = [0.0] * before + units[j % 6] + [0.0] * after
        return out


def take(x: Sequence[Any], columns: Sequence[int]) -> Scalars:
    """The entries of x at `columns`."""
    return [x[k] for k in columns]


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
