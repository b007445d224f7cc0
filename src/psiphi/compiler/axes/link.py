"""One body in its working axes: the numbers that a local step reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.model.joint_types import JointKind
from psiphi.model.mode_shapes import ModeShape, row_of
from psiphi.model.spatial.screw_paths import pose
from psiphi.model.spatial.screws import Inertia, Screw, rigid_inertia


@dataclass
class Link:
    """Body k in working axes: the placement of its joint, and its inertia.

    axes, fixed            the placement as screws: their axes, and (cos, sin, length) of each
    offset                 (angle, length), added to the joint's own screw
    shape                  (pitch, cos twist, sin twist)
    mass, moment, pseudo   mass, first moment, second moment

    Every number may also be a tape scalar: links of equal structure form a *class* and share one
    traced step (`link_loops.py`).
    """

    index: int
    parent: int
    kind: str
    axes: tuple[str, ...]
    fixed: list
    offset: list
    shape: list
    mass: Any  # scalar
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

    def H(self, q: list) -> list:
        """The joint map, one row per degree of freedom."""
        return self.row.H(q, self)

    def path(self, q: list) -> list:
        """The displacement parent -> body at the joint coordinates q."""
        steps = [_fixed(axis, *self.fixed[3 * i : 3 * i + 3]) for i, axis in enumerate(self.axes)]
        first, *rest = self.row.motion(q, self)
        if self.row.is_screw:
            first = _offset(first, *self.offset)
        return [*steps, first, *rest]

    def rest_pose(self) -> tuple[list, list]:
        """Rotation and translation parent -> body with the joint at zero."""
        return pose(self.path(list(self.row.neutral or ())), np.eye(3).tolist(), [0.0, 0.0, 0.0])

    @property
    def inertia(self) -> Inertia:
        """[[I, m p~], [-m p~, m]] with I = tr(J) 1 - J, J the second moment."""
        return rigid_inertia(self.mass, self.moment, self.pseudo)

    def numbers(self) -> list:
        """All numbers as one flat list, in the order that `with_numbers` reads."""
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
        """The same link with other numbers."""
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


def _fixed(axis: str, c: AnyScalar, s: AnyScalar, length: AnyScalar) -> Screw:
    no_turn = isinstance(c, float) and isinstance(s, float) and (c, s) == (1.0, 0.0)
    return Screw(axis, None if no_turn else (c, s), length)


QUARTER_TURNS = {
    0.0: (1.0, 0.0),
    math.pi / 2: (0.0, 1.0),
    -math.pi / 2: (0.0, -1.0),
    math.pi: (-1.0, 0.0),
    -math.pi: (-1.0, 0.0),
}


def _offset(screw: Screw, angle: AnyScalar, length: AnyScalar) -> Screw:
    """The joint's screw plus a constant one. Multiples of 90 degrees only swap (cos, sin)."""
    moved = screw.length + length
    turn = QUARTER_TURNS.get(angle) if isinstance(angle, float) else None
    if turn == (1.0, 0.0):
        return Screw("z", screw.angle, moved)
    if screw.angle is None:
        return Screw("z", turn or angle, moved)
    if turn is None:
        return Screw("z", screw.angle + angle, moved)
    (c, s), (cq, sq) = turn, screw.turn or (1.0, 0.0)
    return Screw("z", (c * cq - s * sq, s * cq + c * sq), moved)
