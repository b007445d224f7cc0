"""The joints of a model whose loops are embedded, as a manifold sees them: each cluster one joint, with a row of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.flexible.modal_cluster import laws_of
from psiphi.model.loops.cluster_kinematics import ClusterKinematics, PublicMember
from psiphi.model.loops.clusters import Cluster
from psiphi.model.mode_shapes import MODAL
from psiphi.model.spatial.scalar_arrays import along

COMPOUND = "compound"
STAGES = 12  # on the way to a configuration far off, loops are closed so many times
HALVES = 6  # and where they do not close, the way is halved so often


class ClusterJointKind(NamedTuple):
    """The columns of the joint table that a manifold reads."""

    rate: Callable
    exp: Callable
    log: Callable
    unit: Callable
    nq: int
    nv: int
    is_flat: bool = False


class ClusterJoint(NamedTuple):
    """The joints of one cluster, where their coordinates stand."""

    laws: ClusterKinematics
    q_slice: slice
    v_slice: slice
    name: str
    kind: str = COMPOUND

    @property
    def row(self) -> ClusterJointKind:
        laws = self.laws
        rate = lambda q, v: laws.rate(q, laws.rates(q, v))  # noqa: E731
        flat = bool(laws.cluster.modes)
        return ClusterJointKind(
            rate, laws.exp, laws.log, laws.closed, laws.nq, len(laws.cluster.free), flat
        )


def public_laws(model: Any, cluster: Cluster) -> ClusterKinematics:
    """The laws of a cluster in public link axes."""
    members = [
        PublicMember(joint, joint.canonical) for joint in (model.joints[k] for k in cluster.bodies)
    ]
    return laws_of(cluster, members, [(tie.first, tie.second) for tie in cluster.ties])


def compound_joint(model: Any, cluster: Cluster) -> ClusterJoint:
    own = [model.joints[k] for k in cluster.bodies]
    q = slice(own[0].q_slice.start, own[-1].q_slice.stop)
    v = slice(own[0].v_slice.start, own[-1].v_slice.stop)
    if cluster.modes:
        return ClusterJoint(public_laws(model, cluster), q, v, own[0].name, MODAL)
    return ClusterJoint(
        public_laws(model, cluster), q, v, " and ".join(joint.name for joint in own)
    )


def free_coordinates(model: Any, joint: Any) -> list[int]:
    """Which velocities of a joint are free: all, but for a joint of an embedded loop or gear."""
    for cluster in () if model.embedding is None else model.embedding.clusters:
        if joint.index in cluster.bodies and not cluster.modes:
            start = sum(model.joints[k].row.nv for k in cluster.bodies if k < joint.index)
            return sorted(c - start for c in cluster.free if start <= c < start + joint.row.nv)
    return list(range(joint.row.nv))


def compound_joints(model: Any) -> list[Any]:
    """Joints base to tip, those of a cluster together."""
    inside = {k: cluster for cluster in model.embedding.clusters for k in cluster.bodies}
    found: list[Any] = []
    for joint in model.joints:
        cluster = inside.get(joint.index)
        if cluster is None:
            found.append(joint)
        elif joint.index == cluster.first:
            found.append(compound_joint(model, cluster))
    return found


def scattered(model: Any, q: np.ndarray) -> np.ndarray:
    """Configurations (..., nq) with their loops closed: each cluster is led from the neutral one towards its free coordinates,
    and stays on that branch; where a loop does not close so far off, half way, and half of that."""
    flat = np.array(q.reshape(-1, model.nq))
    for joint in compound_joints(model):
        if isinstance(joint, ClusterJoint) and joint.kind != MODAL:
            flat[:, joint.q_slice] = _led(
                joint, model.embedding.neutral[joint.q_slice], flat[:, joint.q_slice]
            )
    return flat.reshape(q.shape)


def _led(joint: ClusterJoint, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    laws = joint.laws
    way = along(laws.log, np.broadcast_to(start, target.shape), target)
    done, out = np.zeros(len(target), dtype=bool), np.broadcast_to(start, target.shape).copy()
    for _ in range(HALVES + 1):
        with np.errstate(all="ignore"):
            q = out.copy()
            q[~done] = start
            for _ in range(STAGES):
                q[~done] = along(laws.exp, q[~done], way[~done] / STAGES)
            gaps = (
                np.abs(along(laws.gaps, q)).max(axis=-1)
                if laws.cluster.ties or laws.cluster.gears
                else np.zeros(len(q))
            )
        fine = ~done & (gaps < 1e-9)
        out[fine], done = q[fine], done | fine
        if done.all():
            break
        way = way / 2.0
    return out


def dead_points(joint: ClusterJoint, q: np.ndarray) -> np.ndarray:
    """Whether a motion q (..., n, nq) passes a dead point of a loop between two samples, (..., n - 1): det Y(k)* Y(k + 1) < 0
    for what its bound coordinates open."""
    laws, count = joint.laws, len(joint.laws.cluster.bound)
    if not count or q.shape[-2] < 2:
        return np.zeros((*q.shape[:-2], max(0, q.shape[-2] - 1)), dtype=bool)
    with np.errstate(all="ignore"):
        entries = along(lambda x: [y for row in laws.hold(x) for y in row], q[..., joint.q_slice])
        Y = entries.reshape(*q.shape[:-1], -1, count)
        return np.linalg.det(np.swapaxes(Y[..., :-1, :, :], -1, -2) @ Y[..., 1:, :, :]) < 0.0
