"""Clusters: bodies whose joints move together because of a loop, a gear or a mimic joint.

The algebra treats a cluster as one body with one joint (docs/embedding.md). A cluster is a set of
bodies of the spanning tree, base to tip, with one parent body outside. The velocities β_S of all
its joints follow from the free ones:

    β_S = X β      dβ_S/dt = X dβ/dt + (dX/dt) β

X comes from the gears (`GearRow`: coordinates that are functions of others) and the ties
(`ClusterConstraint`: joints between two frames, see `closure_types.py`). q contains the coordinates
of every joint and moves on the configurations in which all loops are closed, as a quaternion has
four numbers for three velocities. So q also determines the branch of a loop.
`cluster_kinematics.py` computes X.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.loops.closure_types import KINDS, ClosureType, Constants

OUTSIDE = -1  # the index, within a cluster, of its parent body


class ClusterFrame(NamedTuple):
    """A frame on a body of a cluster, or on the body OUTSIDE: rotation and origin in link axes."""

    body: int
    rotation: np.ndarray
    origin: np.ndarray


@dataclass(frozen=True)
class ClusterConstraint:
    """A joint of type `kind` between two frames; `rows` are its independent constraint rows."""

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
    """A gear: q(follower) = offset + Σ (c₁ x + c₂ x² + ...), x = q(leader) - x₀.

    `terms` are (leader, x₀, (c₁, c₂, ...)). The follower and the leaders are velocity coordinates
    of the cluster whose joints have one coordinate.
    """

    name: str
    follower: int
    offset: float
    terms: tuple[tuple[int, float, tuple[float, ...]], ...]


@dataclass(frozen=True, eq=False)
class Cluster:
    """Bodies first .. first + n - 1 of the spanning tree.

    `parent` is the body outside, `parents` the parent of each body, within the cluster or OUTSIDE.
    `free` are the independent velocity coordinates, numbered within the cluster; the ties
    determine the `bound` ones, gears the rest. `armature`, `damping`, `friction` and `springs`
    (stiffness, rest position, nonlinear spring) are those of all coordinates. `modes` is the
    number of modes if the cluster is a flexible body (`modal_cluster.py`), else 0.
    """

    first: int
    parents: tuple[int, ...]
    parent: int
    gears: tuple[GearRow, ...]
    ties: tuple[ClusterConstraint, ...]
    free: tuple[int, ...]
    bound: tuple[int, ...]
    armature: tuple[float, ...]
    damping: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    springs: tuple[tuple[float, float, Spring | None], ...] = ()
    modes: int = 0

    @property
    def followers(self) -> tuple[int, ...]:
        """The coordinates that are not free; none for a flexible body."""
        return (
            () if self.modes else tuple(c for c in range(len(self.armature)) if c not in self.free)
        )

    @property
    def bodies(self) -> range:
        return range(self.first, self.first + len(self.parents))

    @property
    def varying_rotors(self) -> tuple[int, ...]:
        """Coordinates with a rotor whose velocity is not a constant multiple of the free ones."""
        varying = set(self.bound)
        for gear in self.gears:
            if any(len(cs) > 1 or leader in varying for leader, _, cs in gear.terms):
                varying.add(gear.follower)
        return tuple(c for c in sorted(varying) if self.armature[c] != 0.0)

    @property
    def key(self) -> str:
        """Everything that compiled code depends on."""
        frame = lambda f: [f.body, f.rotation.tolist(), f.origin.tolist()]  # noqa: E731
        ties = [
            [
                t.kind,
                t.shape.axis,
                t.shape.axis2,
                t.shape.length,
                frame(t.first),
                frame(t.second),
                t.rows,
            ]
            for t in self.ties
        ]
        gears = [[g.follower, g.offset, g.terms] for g in self.gears]
        values = [self.armature, self.damping, self.friction, self.springs, self.modes]
        return json.dumps(
            [self.first, self.parents, self.parent, self.free, self.bound, gears, ties, *values]
        )


@dataclass(frozen=True, eq=False)
class Embedding:
    """The clusters of a model, base to tip, and the neutral configuration, in which all are closed.

    `origin` is what `pp.embed` was given (`robot/embedding/embedding_origin.py`); edits start from
    it.
    """

    clusters: tuple[Cluster, ...]
    neutral: np.ndarray
    origin: Any = None

    @property
    def has_loops(self) -> bool:
        """Whether a cluster has loops or gears; False if all are flexible bodies."""
        return not all(cluster.modes for cluster in self.clusters)

    def describe(self, name: str) -> str:
        """The cause of an error: the robot `name` has embedded loops or flexible links."""
        return (
            f"the loops of {name} are embedded"
            if self.has_loops
            else f"links of {name} are flexible"
        )

    @property
    def remedy(self) -> str:
        """The remedy for that error: which robot to use."""
        return (
            "the robot as it was before pp.embed"
            if self.has_loops
            else "the robot with its modes locked (robot.lock)"
        )

    @property
    def key(self) -> str:
        return json.dumps([cluster.key for cluster in self.clusters])


def paths_from_outside(parents: Sequence[int]) -> list[tuple[int, ...]]:
    """For each body of a cluster, the bodies from OUTSIDE to it, itself last."""
    found: list[tuple[int, ...]] = []
    for k, parent in enumerate(parents):
        found.append((*(found[parent] if parent != OUTSIDE else ()), k))
    return found
