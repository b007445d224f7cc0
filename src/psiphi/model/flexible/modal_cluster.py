"""A flexible body as a cluster: all its nodes move by the same coordinates, the mode amplitudes η.

    β_S = X η',  X = [I; I; ...]     H(S) = Σ Π_i
    φ(p, S) = [φ(p, 1), φ(p, 2), ...]     M(S) = diag m_i

p is the rigid body to which it is clamped, Π_i are the shapes at node i (`mode_shapes.py`).
D(S) = Σ Π_i* P_i Π_i is the modal mass including the bodies attached to the nodes. So a flexible
link is two joints of the tree: the modes and the joint of the link (docs/flexible.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psiphi.model.loops.cluster_kinematics import ClusterKinematics, Member
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame
from psiphi.model.spatial.screws import add


class ModalKinematics(ClusterKinematics):
    """The kinematics of nodes that share their coordinates."""

    def __init__(self, cluster: Cluster, members: Sequence[Member]):
        super().__init__(cluster, members, ())
        self.nq = cluster.modes

    def split_q(self, q: Sequence[Any]) -> list[list]:
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

    def closure_errors(self, q: list) -> list:
        return []

    def close_loops(self, q: list) -> list:
        return list(q)

    def exp(self, q: list, v: list) -> list:
        return add(list(q), list(v))

    def log(self, p: list, q: list) -> list:
        return [y - x for x, y in zip(p, q, strict=True)]


def make_kinematics(
    cluster: Cluster,
    members: Sequence[Member],
    tie_frames: Sequence[tuple[ClusterFrame, ClusterFrame]],
) -> ClusterKinematics:
    """The kinematics of a cluster: of a flexible body, or of loops and gears."""
    return (
        ModalKinematics(cluster, members)
        if cluster.modes
        else ClusterKinematics(cluster, members, tie_frames)
    )


def modal_cluster(first: int, nodes: int, parent: int, modes: int) -> Cluster:
    """The cluster of bodies first .. first + nodes - 1, all with the parent `parent`."""
    return Cluster(
        first,
        (OUTSIDE,) * nodes,
        parent,
        (),
        (),
        tuple(range(modes)),
        (),
        (0.0,) * (nodes * modes),
        modes=modes,
    )
