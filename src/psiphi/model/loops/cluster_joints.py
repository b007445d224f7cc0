"""Clusters as joints of the manifold: each cluster is one joint with its own joint-type row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from psiphi.model.flexible.modal_cluster import make_kinematics
from psiphi.model.loops.cluster_kinematics import ClusterKinematics, PublicMember
from psiphi.model.loops.clusters import Cluster
from psiphi.model.mode_shapes import MODAL
from psiphi.model.spatial.scalar_arrays import on_arrays

if TYPE_CHECKING:
    from psiphi.model.model import Joint, Model

COMPOUND = "compound"
CONTINUATION_STEPS = 12  # loop closures on the way to a distant configuration
MAX_HALVINGS = 6  # of that distance, if a loop does not close


class ClusterJointKind(NamedTuple):
    """The columns of the joint table that the manifold reads."""

    rate: Callable
    exp: Callable
    log: Callable
    unit: Callable
    nq: int
    nv: int
    is_flat: bool = False
    straight: Callable | None = None
    transport: Callable | None = None
    turning: Callable | None = None


class ClusterJoint(NamedTuple):
    """The joints of one cluster and the slices of their coordinates."""

    kinematics: ClusterKinematics
    q_slice: slice
    v_slice: slice
    name: str
    kind: str = COMPOUND

    @property
    def row(self) -> ClusterJointKind:
        kinematics = self.kinematics
        rate = lambda q, v: kinematics.rate(q, kinematics.rates(q, v))  # noqa: E731
        flat = bool(kinematics.cluster.modes)
        return ClusterJointKind(
            rate,
            kinematics.exp,
            kinematics.log,
            kinematics.close_loops,
            kinematics.nq,
            len(kinematics.cluster.free),
            flat,
        )


def public_kinematics(model: Model, cluster: Cluster) -> ClusterKinematics:
    """The kinematics of a cluster in public link axes."""
    members = [
        PublicMember(joint, joint.canonical) for joint in (model.joints[k] for k in cluster.bodies)
    ]
    return make_kinematics(cluster, members, [(tie.first, tie.second) for tie in cluster.ties])


def cluster_joint(model: Model, cluster: Cluster) -> ClusterJoint:
    """A cluster of a model as one joint."""
    joints = [model.joints[k] for k in cluster.bodies]
    q = slice(joints[0].q_slice.start, joints[-1].q_slice.stop)
    v = slice(joints[0].v_slice.start, joints[-1].v_slice.stop)
    if cluster.modes:
        return ClusterJoint(public_kinematics(model, cluster), q, v, joints[0].name, MODAL)
    return ClusterJoint(
        public_kinematics(model, cluster), q, v, " and ".join(joint.name for joint in joints)
    )


def free_coordinates(model: Model, joint: Joint) -> list[int]:
    """The free velocity coordinates of a joint: all, unless it is in an embedded loop or gear."""
    for cluster in model.clusters:
        if joint.index in cluster.bodies and not cluster.modes:
            start = sum(model.joints[k].row.nv for k in cluster.bodies if k < joint.index)
            return sorted(c - start for c in cluster.free if start <= c < start + joint.row.nv)
    return list(range(joint.row.nv))


def joints_with_clusters(model: Model) -> list[Joint | ClusterJoint]:
    """The joints of a model, base to tip; the joints of a cluster are one `ClusterJoint`."""
    inside = {k: cluster for cluster in model.clusters for k in cluster.bodies}
    found: list[Joint | ClusterJoint] = []
    for joint in model.joints:
        cluster = inside.get(joint.index)
        if cluster is None:
            found.append(joint)
        elif joint.index == cluster.first:
            found.append(cluster_joint(model, cluster))
    return found


def closed_configurations(model: Model, q: np.ndarray) -> np.ndarray:
    """Configurations (..., nq) with closed loops, near the free coordinates of q.

    Each cluster moves from its neutral configuration towards the free coordinates of q and stays
    on that branch. If a loop does not close there, it moves half of the way, then a quarter, and
    so on.
    """
    flat, neutral = np.array(q.reshape(-1, model.nq)), model.neutral()
    for joint in joints_with_clusters(model):
        if isinstance(joint, ClusterJoint) and joint.kind != MODAL:
            indices = joint.q_slice
            flat[:, indices] = _continue_from(joint, neutral[indices], flat[:, indices])
    return flat.reshape(q.shape)


def _continue_from(joint: ClusterJoint, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    kinematics = joint.kinematics
    velocity = on_arrays(kinematics.log, np.broadcast_to(start, target.shape), target)
    done, out = np.zeros(len(target), dtype=bool), np.broadcast_to(start, target.shape).copy()
    for _ in range(MAX_HALVINGS + 1):
        with np.errstate(all="ignore"):
            q = out.copy()
            q[~done] = start
            for _ in range(CONTINUATION_STEPS):
                q[~done] = on_arrays(kinematics.exp, q[~done], velocity[~done] / CONTINUATION_STEPS)
            gaps = (
                np.abs(on_arrays(kinematics.closure_errors, q)).max(axis=-1)
                if kinematics.cluster.ties or kinematics.cluster.gears
                else np.zeros(len(q))
            )
        closed = ~done & (gaps < 1e-9)
        out[closed], done = q[closed], done | closed
        if done.all():
            break
        velocity = velocity / 2.0
    return out


def passes_dead_point(joint: ClusterJoint, q: np.ndarray) -> np.ndarray:
    """Whether a motion q (..., n, nq) passes a dead point of a loop between samples, (..., n - 1).

    It does if det Y(k)* Y(k + 1) < 0 for the Jacobian Y of the bound coordinates.
    """
    kinematics, count = joint.kinematics, len(joint.kinematics.cluster.bound)
    if not count or q.shape[-2] < 2:
        return np.zeros((*q.shape[:-2], max(0, q.shape[-2] - 1)), dtype=bool)
    with np.errstate(all="ignore"):
        entries = on_arrays(
            lambda x: [y for row in kinematics.bound_jacobian(x) for y in row],
            q[..., joint.q_slice],
        )
        Y = entries.reshape(*q.shape[:-1], -1, count)
        return np.linalg.det(np.swapaxes(Y[..., :-1, :, :], -1, -2) @ Y[..., 1:, :, :]) < 0.0
