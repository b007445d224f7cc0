"""A body that bends, as a cluster: its places, lumps of mass and nodes where others hang, all move by the same coordinates.

    β_S = X η',  X = [I; I; ..]      H(S) = Σ Π_i      φ(p, S) = [φ(p, 1), φ(p, 2), ..]      M(S) = diag m_i

p is the rigid body that carries it, Π_i the shapes at place i (`mode_shapes.py`). D(S) = Σ Π_i* P_i Π_i is the modal mass and
what the nodes carry: the two stages of a flexible link, modes and joint, are two joints of the tree (docs/flexible.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psiphi.model.loops.cluster_kinematics import ClusterKinematics, Member
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame
from psiphi.model.spatial.screws import add


class ModalKinematics(ClusterKinematics):
    """The laws of places that share their coordinates."""

    def __init__(self, cluster: Cluster, members: Sequence[Member]):
        super().__init__(cluster, members, ())
        self.nq = cluster.modes

    def of_q(self, q: Sequence[Any]) -> list[list]:
        return [list(q) for _ in self.members]

    def X(self, q: list) -> list:
        n = self.nq
        return [[1.0 if i == j else 0.0 for j in range(n)] for _ in self.members for i in range(n)]

    def rates(self, q: list, v: list) -> list:
        return list(v) * len(self.members)

    def drift(self, q: list, beta: list) -> list:
        return [0.0] * self.nv

    def rate(self, q: list, beta: list) -> list:
        return list(beta[: self.nq])

    def gaps(self, q: list) -> list:
        return []

    def closed(self, q: list) -> list:
        return list(q)

    def exp(self, q: list, v: list) -> list:
        return add(list(q), list(v))

    def log(self, p: list, q: list) -> list:
        return [y - x for x, y in zip(p, q, strict=True)]


def laws_of(
    cluster: Cluster, members: Sequence[Member], spots: Sequence[tuple[ClusterFrame, ClusterFrame]]
) -> ClusterKinematics:
    """The laws of a cluster: of a body that bends, or of loops and gears."""
    return (
        ModalKinematics(cluster, members)
        if cluster.modes
        else ClusterKinematics(cluster, members, spots)
    )


def modal_cluster(first: int, places: int, parent: int, modes: int) -> Cluster:
    """Bodies first .. first + places - 1, all hung on body `parent`."""
    return Cluster(
        first,
        (OUTSIDE,) * places,
        parent,
        (),
        (),
        tuple(range(modes)),
        (),
        (0.0,) * (places * modes),
        modes=modes,
    )
