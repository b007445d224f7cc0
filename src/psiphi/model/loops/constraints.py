"""The constraints of a system: frames held together by a kind, and joints that follow others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property

from psiphi.model.loops.closure_types import AXES, KINDS, ZERO, ClosureType, Constants, Relative
from psiphi.model.model import WORLD, Model

SOMEWHERE = list(AXES), [0.1, 0.2, 0.3], ZERO, ZERO  # where rows are looked at for what they bind


@dataclass(frozen=True)
class Friction:
    """A one-sided contact: it pushes along `normal` (frame 2 axes, into body 2), and holds sideways up to mu times that.

    `torsion` (metres) bounds the moment about the normal by torsion times the normal force; None: it does not bind.
    `restitution` is the part of its speed with which a point that comes to the plane leaves it.
    """

    mu: float
    normal: tuple[float, ...]
    torsion: float | None = None
    restitution: float = 0.0


@dataclass(frozen=True)
class Constraint:
    """Frame `first` held to frame `second` by a kind; its force is the one imparted to the body of `second`."""

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
        """In what each row may be open: "rad", "m", or "" where it binds velocities alone."""
        rows = self.row.rows(self.shape, Relative(*SOMEWHERE))
        return tuple("" if row.error is None else "m" if any(row.slide) else "rad" for row in rows)


@dataclass(frozen=True)
class Follow:
    """q(joint) = multiplier * q(leader) + offset: a URDF mimic joint that acts."""

    name: str
    joint: str
    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Closure:
    """All constraints of one model, and where their rows stand."""

    model: Model
    constraints: tuple[Constraint, ...]
    follows: tuple[Follow, ...] = ()

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """The frames on moving bodies that constraints touch, each once."""
        names = dict.fromkeys(name for c in self.constraints for name in (c.first, c.second))
        return tuple(name for name in names if self.model.frame(name).body != WORLD)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The rows of each constraint, joints that follow behind."""
        stops, total = [], 0
        for size in (*(c.row.size for c in self.constraints), *(1 for _ in self.follows)):
            stops.append(slice(total, total + size))
            total += size
        return tuple(stops)

    @property
    def size(self) -> int:
        """m: how many constraint rows."""
        return self.slices[-1].stop if self.slices else 0

    @property
    def joints(self) -> tuple[tuple[int, int], ...]:
        """(follower's, leader's) velocity coordinate of every joint that follows."""
        at = lambda name: self.model.joint(name).v_slice.start  # noqa: E731
        return tuple((at(f.joint), at(f.leader)) for f in self.follows)

    @cached_property
    def key(self) -> str:
        """What code depends on, besides the model."""
        rows = [
            [c.kind, c.first, c.second, c.shape.axis, c.shape.axis2, c.shape.length]
            for c in self.constraints
        ]
        return json.dumps(
            [rows, [[f.joint, f.leader, f.multiplier, f.offset] for f in self.follows]]
        )
