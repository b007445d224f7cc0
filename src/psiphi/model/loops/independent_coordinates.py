"""A closed configuration of a cluster, its independent constraint rows and its free coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from psiphi._util.errors import ModelError
from psiphi.model.loops.cluster_joints import public_kinematics
from psiphi.model.loops.cluster_kinematics import ClusterKinematics
from psiphi.model.loops.clusters import Cluster
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import entries

CLOSURE_TOLERANCE = 1e-12  # metres, radians: error of an assembled loop
RANK_TOLERANCE = 1e-8  # relative to the largest singular value
SAMPLES = 6  # closed configurations nearby at which the rank is computed
MAX_STEPS = 200


def assemble_loops(
    model: Model, cluster: Cluster, q: np.ndarray, fixed: Sequence[int], names: Sequence[str]
) -> np.ndarray:
    """q (of the cluster) with closed loops; a ModelError if they do not close.

    The coordinates `fixed` do not change, unless the loops do not close otherwise.
    """
    kinematics = public_kinematics(model, cluster)
    best, size = _levenberg_marquardt(kinematics, cluster, q, fixed)
    if size > CLOSURE_TOLERANCE and len(fixed):
        best, size = _levenberg_marquardt(kinematics, cluster, q, ())
    if size > 1e-9:
        raise ModelError(
            f"{', '.join(names)}: does not close from this configuration; "
            f"an error of {size:.2g} (metres, radians) remains",
            "give at=, a configuration near a closed one, or correct the frames; "
            "the loop may also be impossible to close",
        )
    return best


def _levenberg_marquardt(
    kinematics: ClusterKinematics, cluster: Cluster, q: np.ndarray, fixed: Sequence[int]
) -> tuple[np.ndarray, float]:
    """The result of the Levenberg-Marquardt method from q, and its largest error."""
    movable = [
        c
        for c in range(kinematics.nv)
        if c not in fixed and c not in {g.follower for g in cluster.gears}
    ]
    q, mu = _array(kinematics.apply_gears(entries(q))), 1e-3
    size = _largest_error(kinematics, q)
    for _ in range(MAX_STEPS):
        if size < CLOSURE_TOLERANCE:
            break
        J, e = (
            _leader_jacobian(kinematics, q)[:, movable],
            _array(kinematics.tie_errors(entries(q))),
        )
        step = np.zeros(kinematics.nv)
        step[movable] = -J.T @ np.linalg.solve(J @ J.T + mu * size * np.eye(len(e)), e)
        new = _array(kinematics.apply_gears(kinematics.integrate(entries(q), step.tolist())))
        if _largest_error(kinematics, new) < size:
            q, size, mu = new, _largest_error(kinematics, new), mu / 8.0
        else:
            mu *= 4.0
            if mu > 1e12:
                break
    return q, size


def choose_coordinates(
    model: Model, cluster: Cluster, q: np.ndarray, wanted: Sequence[int], names: Sequence[str]
) -> Cluster:
    """The cluster with the independent rows of its ties and its bound and free coordinates.

    The coordinates `wanted` become free.
    """
    followers = [gear.follower for gear in cluster.gears]
    leaders = [c for c in range(public_kinematics(model, cluster).nv) if c not in followers]
    if not cluster.ties:
        _check_wanted(wanted, leaders, names)
        return replace(cluster, free=tuple(leaders), bound=())
    kinematics = public_kinematics(model, cluster)
    samples = [q, *_nearby_configurations(kinematics, q, leaders)]
    Ys = [_leader_jacobian(kinematics, x)[:, leaders] for x in samples]
    ranks = [_rank(Y) for Y in Ys]
    if ranks[0] < max(ranks):
        raise ModelError(
            f"{', '.join(names)}: the loop is singular in its closed configuration "
            f"(rank {ranks[0]} of {max(ranks)})",
            "give at=, another configuration of the same loop",
        )
    if ranks[0] == len(leaders):
        raise ModelError(
            f"{', '.join(names)}: no joint can move when all loops are closed",
            "lock these joints (robot.lock), or give a loop more degrees of freedom",
        )
    rows = _independent_columns(Ys[0].T, ranks[0], np.ones(len(Ys[0])))
    weights = np.array([_binding_weight(model, cluster, c) for c in leaders])
    weights[[i for i, c in enumerate(leaders) if c in wanted]] = 0.0
    count = len(leaders) - ranks[0]
    if len(wanted) > count:
        raise ModelError(
            f"{', '.join(names)}: {len(wanted)} free coordinates requested, but only {count} exist",
            "name fewer joints",
        )
    bound = _independent_columns(Ys[0][rows] * weights, ranks[0], weights)
    chosen = Ys[0][np.ix_(rows, bound)] if len(bound) == ranks[0] else np.zeros((1, 1))
    if np.linalg.svd(chosen, compute_uv=False)[-1] < RANK_TOLERANCE:
        raise ModelError(
            f"{', '.join(names)}: the joints given as free do not determine the others "
            "in the closed configuration",
            "choose other joints",
        )
    ties, start = [], 0
    for tie in cluster.ties:
        size = len(tie.rows)
        ties.append(
            replace(tie, rows=tuple(k - start for k in sorted(rows) if start <= k < start + size))
        )
        start += size
    dependent = {leaders[i] for i in bound}
    return replace(
        cluster,
        ties=tuple(ties),
        free=tuple(c for c in leaders if c not in dependent),
        bound=tuple(sorted(dependent)),
    )


def _check_wanted(wanted: Sequence[int], leaders: Sequence[int], names: Sequence[str]) -> None:
    if set(wanted) - set(leaders):
        raise ModelError(
            f"{', '.join(names)}: a joint that follows others is given as free", "give its leaders"
        )


def _binding_weight(model: Model, cluster: Cluster, coordinate: int) -> float:
    """The weight for binding a coordinate: lower for joints with motors, so that they stay free."""
    for k in cluster.bodies:
        joint = model.joints[k]
        if coordinate < joint.row.nv:
            effort = joint.effort[coordinate] if len(joint.effort) == joint.row.nv else np.inf
            return 0.1 if np.isfinite(effort) and effort > 0.0 else 1.0
        coordinate -= joint.row.nv
    raise AssertionError("not a coordinate of the cluster")


def _nearby_configurations(
    kinematics: ClusterKinematics, q: np.ndarray, leaders: Sequence[int]
) -> list[np.ndarray]:
    """Closed configurations near q, by random steps in the null space of the ties."""
    rng, found = np.random.default_rng(0), []
    for _ in range(SAMPLES):
        Y = _leader_jacobian(kinematics, q)[:, leaders]
        _, s, rows = np.linalg.svd(Y)
        null = rows[(s > RANK_TOLERANCE * max(s.max(initial=0.0), 1e-300)).sum() :]
        step = np.zeros(kinematics.nv)
        step[leaders] = 0.05 * rng.standard_normal(len(null)) @ null
        x = _array(kinematics.apply_gears(kinematics.integrate(entries(q), step.tolist())))
        for _ in range(8):
            back = np.zeros(kinematics.nv)
            back[leaders] = -np.linalg.lstsq(
                _leader_jacobian(kinematics, x)[:, leaders],
                _array(kinematics.tie_errors(entries(x))),
                rcond=1e-10,
            )[0]
            x = _array(kinematics.apply_gears(kinematics.integrate(entries(x), back.tolist())))
        if _largest_error(kinematics, x) < 1e-9:
            found.append(x)
    return found


def _independent_columns(A: np.ndarray, count: int, weights: np.ndarray) -> list[int]:
    """`count` well-conditioned columns of A with positive weight (QR with column pivoting)."""
    A, found = A.copy(), []
    for _ in range(count):
        sizes = np.linalg.norm(A, axis=0)
        best = int(np.argmax(np.where(weights > 0.0, sizes, -1.0)))
        if not sizes[best] > 0.0:
            break
        found.append(best)
        u = A[:, best] / sizes[best]
        A = A - np.outer(u, u @ A)
        A[:, best] = 0.0
    return sorted(found)


def _rank(Y: np.ndarray) -> int:
    s = np.linalg.svd(Y, compute_uv=False)
    return int((s > RANK_TOLERANCE * max(s.max(initial=0.0), 1e-300)).sum())


def _leader_jacobian(kinematics: ClusterKinematics, q: np.ndarray) -> np.ndarray:
    x = entries(q)
    return np.array(kinematics.leader_jacobian(x, kinematics.Y(x)), dtype=float).reshape(
        -1, kinematics.nv
    )


def _largest_error(kinematics: ClusterKinematics, q: np.ndarray) -> float:
    gaps = np.abs(_array(kinematics.tie_errors(entries(q))))
    return float(gaps.max(initial=0.0)) if np.isfinite(gaps).all() else np.inf


def _array(values: Sequence) -> np.ndarray:
    return np.array(values, dtype=float)
