"""The constraints of a system: joints between pairs of frames, and mimic joints."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property

from psiphi.model.loops.closure_types import (
    AXES,
    KINDS,
    ZERO,
    ClosureType,
    Constants,
    RelativeMotion,
)
from psiphi.model.model import WORLD, Model

# A motion at which `Constraint.units` evaluates the rows.
SAMPLE_MOTION = list(AXES), [0.1, 0.2, 0.3], ZERO, ZERO


@dataclass(frozen=True)
class Friction:
    """A one-sided contact with Coulomb friction: |tangential force| <= mu times the normal force.

    The contact pushes along `normal` (frame 2 axes, into body 2). `torsion` (metres) bounds the
    moment about the normal by torsion times the normal force; None means no bound. `restitution`
    is the ratio of normal speeds after and before an impact.
    """

    mu: float
    normal: tuple[float, ...]
    torsion: float | None = None
    restitution: float = 0.0


@dataclass(frozen=True)
class Constraint:
    """A joint of type `kind` between two frames; its force is the one on the body of `second`."""

    name: str
    kind: str
    first: str
    second: str
    shape: Constants = field(default_factory=Constants.of)
    friction: Friction | None = None

    @property
    def row(self) -> ClosureType:
        return KINDS[self.kind]

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each row's error: "rad", "m", or "" for a nonholonomic row."""
        rows = self.row.rows(self.shape, RelativeMotion(*SAMPLE_MOTION))
        return tuple("" if row.error is None else "m" if any(row.slide) else "rad" for row in rows)


@dataclass(frozen=True)
class MimicConstraint:
    """q(joint) = multiplier * q(leader) + offset: a URDF mimic joint as a constraint."""

    name: str
    joint: str
    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Closure:
    """All constraints of one model, and the slices of their rows."""

    model: Model
    constraints: tuple[Constraint, ...]
    mimics: tuple[MimicConstraint, ...] = ()

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """The frames of constraints that are on moving bodies, without repetition."""
        names = dict.fromkeys(name for c in self.constraints for name in (c.first, c.second))
        return tuple(name for name in names if self.model.frame(name).body != WORLD)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The rows of each constraint; those of mimic joints come last."""
        stops, total = [], 0
        for size in (*(c.row.size for c in self.constraints), *(1 for _ in self.mimics)):
            stops.append(slice(total, total + size))
            total += size
        return tuple(stops)

    @property
    def size(self) -> int:
        """m, the number of constraint rows."""
        return self.slices[-1].stop if self.slices else 0

    @property
    def joints(self) -> tuple[tuple[int, int], ...]:
        """(follower, leader) velocity coordinates of each mimic joint."""
        index = lambda name: self.model.joint(name).v_slice.start  # noqa: E731
        return tuple((index(f.joint), index(f.leader)) for f in self.mimics)

    @cached_property
    def key(self) -> str:
        """What compiled code depends on, in addition to the model."""
        rows = [
            [c.kind, c.first, c.second, c.shape.axis, c.shape.axis2, c.shape.length]
            for c in self.constraints
        ]
        return json.dumps(
            [rows, [[f.joint, f.leader, f.multiplier, f.offset] for f in self.mimics]]
        )
