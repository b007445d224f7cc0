"""One body in its working axes: the numbers a local step may use."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi.model.joint_types import JointKind
from psiphi.model.mode_shapes import ModeShape, row_of
from psiphi.model.spatial.screw_paths import pose
from psiphi.model.spatial.screws import Inertia, Screw, rigid


@dataclass
class Link:
    """Body k: its joint's placement as screws, its inertia as (mass, first moment, second moment), in working axes.

    `fixed` holds (cos, sin, length) for each screw in `axes`; `offset` is the (angle, length) added to the joint's own
    screw; `shape` is (pitch, cos twist, sin twist). Every number may also be a tape scalar: a *class* of equal-shaped
    links shares one traced step (`link_loops.py`).
    """

    index: int
    parent: int
    kind: str
    axes: tuple[str, ...]
    fixed: list
    offset: list
    shape: list
    mass: Any
    moment: list
    pseudo: list
    armature: list
    modes: ModeShape | None = None

    size = 6  # numbers of a spatial vector

    @property
    def row(self) -> JointKind:
        return row_of(self.kind, self.modes)

    @property
    def pitch(self):
        return self.shape[0]

    @property
    def twist(self):
        return self.shape[1], self.shape[2]

    def H(self, q) -> list:
        """The joint map, one row a degree of freedom."""
        return self.row.H(q, self)

    def path(self, q) -> list:
        """The displacement parent -> body at the joint coordinates q."""
        steps = [_fixed(axis, *self.fixed[3 * i : 3 * i + 3]) for i, axis in enumerate(self.axes)]
        first, *rest = self.row.motion(q, self)
        if self.row.screw:
            first = _offset(first, *self.offset)
        return [*steps, first, *rest]

    def rest_pose(self):
        """Rotation and translation parent -> body with the joint at zero."""
        return pose(self.path(list(self.row.neutral or ())), np.eye(3).tolist(), [0.0, 0.0, 0.0])

    @property
    def inertia(self) -> Inertia:
        """[[I, m p~], [-m p~, m]] with I = tr(J) 1 - J, J the second moment."""
        return rigid(self.mass, self.moment, self.pseudo)

    def numbers(self) -> list:
        """All numbers as one flat list; `with_numbers` puts such a list back."""
        J = self.pseudo
        second = [J[0][0], J[0][1], J[0][2], J[1][1], J[1][2], J[2][2]]
        return [
            *self.fixed,
            *self.offset,
            *self.shape,
            self.mass,
            *self.moment,
            *second,
            *self.armature,
        ]

    def with_numbers(self, numbers: list) -> Link:
        parts = iter(numbers)
        take = lambda n: [next(parts) for _ in range(n)]  # noqa: E731
        fixed, offset, shape, (mass,), moment = (
            take(len(self.fixed)),
            take(2),
            take(3),
            take(1),
            take(3),
        )
        xx, xy, xz, yy, yz, zz = take(6)
        pseudo = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        armature = take(len(self.armature))
        return replace(
            self,
            fixed=fixed,
            offset=offset,
            shape=shape,
            mass=mass,
            moment=moment,
            pseudo=pseudo,
            armature=armature,
        )


def _fixed(axis: str, c, s, length) -> Screw:
    no_turn = isinstance(c, float) and isinstance(s, float) and (c, s) == (1.0, 0.0)
    return Screw(axis, None if no_turn else (c, s), length)


QUARTERS = {
    0.0: (1.0, 0.0),
    math.pi / 2: (0.0, 1.0),
    -math.pi / 2: (0.0, -1.0),
    math.pi: (-1.0, 0.0),
    -math.pi: (-1.0, 0.0),
}


def _offset(screw: Screw, angle, length) -> Screw:
    """The joint's screw with a constant one added: multiples of 90 degrees only swap (cos, sin)."""
    moved = screw.length + length
    turn = QUARTERS.get(angle) if isinstance(angle, float) else None
    if turn == (1.0, 0.0):
        return Screw("z", screw.angle, moved)
    if screw.angle is None:
        return Screw("z", turn or angle, moved)
    if turn is None:
        return Screw("z", screw.angle + angle, moved)
    (c, s), (cq, sq) = turn, screw.turn or (1.0, 0.0)
    return Screw("z", (c * cq - s * sq, s * cq + c * sq), moved)
