"""Bodies whose joints move together: a loop, a gear, a joint that follows another is a cluster, which the algebra takes for one
body with one joint (docs/embedding.md).

A cluster is bodies of the spanning tree, base to tip, that hang on one body outside. The rates of all its joints follow from
those of a few, the free ones:

    β_S = X β      dβ_S/dt = X dβ/dt + (dX/dt) β

by `GearRow`s (gears: coordinates that are functions of others) and by `ClusterConstraint`s (frames that stay together, see `closure_types.py`).
q keeps the coordinates of every joint, as quaternions keep four numbers for three velocities: q moves on the configurations in
which all loops are closed, and the branch of a loop is in q. `cluster_kinematics.py` has X and what else the laws need.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.loops.closure_types import KINDS, ClosureType, Constants

OUTSIDE = -1  # the place, within a cluster, of the body it hangs on


class ClusterFrame(NamedTuple):
    """A frame on a body of a cluster, by its number within, or on the body OUTSIDE: rotation and origin in link axes."""

    body: int
    rotation: np.ndarray
    origin: np.ndarray


@dataclass(frozen=True)
class ClusterConstraint:
    """Frame `first` held to frame `second` by a kind; `rows` are those of its constraints that no others imply."""

    name: str
    kind: str
    shape: Constants
    first: ClusterFrame
    second: ClusterFrame
    rows: tuple[int, ...] = ()

    @property
    def row(self) -> ClosureType:
        return KINDS[self.kind]


@dataclass(frozen=True)
class GearRow:
    """A gear: q(follower) = offset + Σ c₁ x + c₂ x² + .., x = q(leader) - at; `terms` are (leader, at, (c₁, c₂, ..)).

    Followers and leaders are numbers of velocity coordinates within the cluster, of joints with one coordinate.
    """

    name: str
    follower: int
    offset: float
    terms: tuple[tuple[int, float, tuple[float, ...]], ...]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Bodies first .. first + n - 1 of the spanning tree; `hangs` says on which of them each hangs, or OUTSIDE.

    `free` are the velocity coordinates that stay, numbered within the cluster; `bound` those that the ties decide; gears
    decide the rest. `armature` are the rotors of all coordinates, `damping`, `friction` and `springs` what else they have.
    """

    first: int
    hangs: tuple[int, ...]
    parent: int
    gears: tuple[GearRow, ...]
    ties: tuple[ClusterConstraint, ...]
    free: tuple[int, ...]
    bound: tuple[int, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    springs: tuple[
        tuple[float, float, Spring | None], ...
    ] = ()  # stiffness, rest, and what is not linear
    modes: int = (
        0  # of a body that bends: its places all move by these coordinates (`modal_cluster.py`)
    )

    @property
    def followers(self) -> tuple[int, ...]:
        """The coordinates that are not free; places on a body that bends have no other."""
        return (
            () if self.modes else tuple(c for c in range(len(self.armature)) if c not in self.free)
        )

    @property
    def bodies(self) -> range:
        return range(self.first, self.first + len(self.hangs))

    @property
    def varying_rotors(self) -> tuple[int, ...]:
        """The coordinates with rotors whose rates are no constant multiples of the free ones."""
        varying = set(self.bound)
        for gear in self.gears:
            if any(len(cs) > 1 or leader in varying for leader, _, cs in gear.terms):
                varying.add(gear.follower)
        return tuple(c for c in sorted(varying) if self.armature[c] != 0.0)

    @property
    def key(self) -> str:
        """Everything that decides what it does."""
        spot = lambda s: [s.body, s.rotation.tolist(), s.origin.tolist()]  # noqa: E731
        ties = [
            [
                t.kind,
                t.shape.axis,
                t.shape.axis2,
                t.shape.length,
                spot(t.first),
                spot(t.second),
                t.rows,
            ]
            for t in self.ties
        ]
        gears = [[g.follower, g.offset, g.terms] for g in self.gears]
        own = [self.armature, self.damping, self.friction, self.springs, self.modes]
        return json.dumps(
            [self.first, self.hangs, self.parent, self.free, self.bound, gears, ties, *own]
        )


@dataclass(frozen=True, eq=False)
class Embedding:
    """The clusters of a model, in order, and a configuration in which all are closed: the model's neutral one."""

    clusters: tuple[Cluster, ...]
    neutral: np.ndarray
    origin: Any = (
        None  # what `pp.embed` was given (`robot/embedding/embedding_origin.py`): edits start there
    )

    @property
    def loops(self) -> bool:
        """Whether loops or gears are among them: not bodies that bend alone."""
        return not all(cluster.modes for cluster in self.clusters)

    def words(self, name: str) -> str:
        """What a robot of that name has, for those who cannot take it."""
        return (
            f"the loops of {name} are embedded" if self.loops else f"links of {name} are flexible"
        )

    @property
    def instead(self) -> str:
        """What to give them."""
        return (
            "the robot as it was before pp.embed"
            if self.loops
            else "the robot with its modes locked (robot.lock)"
        )

    @property
    def key(self) -> str:
        return json.dumps([cluster.key for cluster in self.clusters])


def paths(hangs: Sequence[int]) -> list[tuple[int, ...]]:
    """For each body of a cluster the bodies from OUTSIDE to it, itself last."""
    found: list[tuple[int, ...]] = []
    for k, on in enumerate(hangs):
        found.append((*(found[on] if on != OUTSIDE else ()), k))
    return found
