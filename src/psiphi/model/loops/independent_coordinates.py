"""A cluster made whole: a configuration in which it is closed, the constraints that count, the coordinates that are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError
from psiphi.model.loops.cluster_joints import public_laws
from psiphi.model.loops.cluster_kinematics import ClusterKinematics
from psiphi.model.loops.clusters import Cluster
from psiphi.model.spatial.scalar_arrays import entries

CLOSED = 1e-12  # metres, radians: how far loops may gape when they are assembled
RANK = 1e-8  # singular values below this share of the greatest are none
TRIES = 6  # configurations near the closed one at which ranks are looked at
STEPS = 200


def assembled(
    model: Any, cluster: Cluster, q: np.ndarray, hold: Sequence[int], names: Sequence[str]
) -> np.ndarray:
    """q (of the cluster) with its loops closed, the coordinates `hold` kept if that can be; a ModelError where none closes."""
    laws = public_laws(model, cluster)
    best, size = _descended(laws, cluster, q, hold)
    if size > CLOSED and len(hold):
        best, size = _descended(laws, cluster, q, ())
    if size > 1e-9:
        raise ModelError(
            f"{', '.join(names)}: does not close from this configuration; {size:.2g} (metres, radians) stay open",
            "give at=, a configuration near the closed one, or correct the frames; a loop may also be impossible",
        )
    return best


def _descended(
    laws: ClusterKinematics, cluster: Cluster, q: np.ndarray, hold: Sequence[int]
) -> tuple[np.ndarray, float]:
    """Levenberg and Marquardt's way down, and how far open it ends."""
    bare = [
        c for c in range(laws.nv) if c not in hold and c not in {g.follower for g in cluster.gears}
    ]
    q, mu = _array(laws.geared(entries(q))), 1e-3
    size = _size(laws, q)
    for _ in range(STEPS):
        if size < CLOSED:
            break
        J, e = _by_leaders(laws, q)[:, bare], _array(laws.errors(entries(q)))
        step = np.zeros(laws.nv)
        step[bare] = -J.T @ np.linalg.solve(J @ J.T + mu * size * np.eye(len(e)), e)
        new = _array(laws.geared(laws.moved(entries(q), step.tolist())))
        if _size(laws, new) < size:
            q, size, mu = new, _size(laws, new), mu / 8.0
        else:
            mu *= 4.0
            if mu > 1e12:
                break
    return q, size


def settled(
    model: Any, cluster: Cluster, q: np.ndarray, wanted: Sequence[int], names: Sequence[str]
) -> Cluster:
    """The cluster with the rows of its ties that count, its bound and its free coordinates; `wanted` are to be free."""
    followers = [gear.follower for gear in cluster.gears]
    leaders = [c for c in range(public_laws(model, cluster).nv) if c not in followers]
    if not cluster.ties:
        _check_wanted(wanted, leaders, names)
        return replace(cluster, free=tuple(leaders), bound=())
    laws = public_laws(model, cluster)
    samples = [q, *_nearby(laws, q, leaders)]
    Ys = [_by_leaders(laws, x)[:, leaders] for x in samples]
    ranks = [_rank(Y) for Y in Ys]
    if ranks[0] < max(ranks):
        raise ModelError(
            f"{', '.join(names)}: singular in the configuration in which it is closed (rank {ranks[0]} of {max(ranks)})",
            "give at=, another configuration of the same loop",
        )
    if ranks[0] == len(leaders):
        raise ModelError(
            f"{', '.join(names)}: no joint can move where all is closed",
            "lock these joints (robot.lock), or loosen a loop",
        )
    rows = _picked(Ys[0].T, ranks[0], np.ones(len(Ys[0])))
    weights = np.array([_ease(model, cluster, c) for c in leaders])
    weights[[i for i, c in enumerate(leaders) if c in wanted]] = 0.0
    count = len(leaders) - ranks[0]
    if len(wanted) > count:
        raise ModelError(
            f"{', '.join(names)}: {len(wanted)} coordinates are to be free, {count} can be",
            "name fewer joints",
        )
    bound = _picked(Ys[0][rows] * weights, ranks[0], weights)
    chosen = Ys[0][np.ix_(rows, bound)] if len(bound) == ranks[0] else np.zeros((1, 1))
    if np.linalg.svd(chosen, compute_uv=False)[-1] < RANK:
        raise ModelError(
            f"{', '.join(names)}: the joints named free do not decide the others where it is closed",
            "name other joints",
        )
    ties, start = [], 0
    for tie in cluster.ties:
        size = len(tie.rows)
        ties.append(
            replace(tie, rows=tuple(k - start for k in sorted(rows) if start <= k < start + size))
        )
        start += size
    kept = {leaders[i] for i in bound}
    return replace(
        cluster,
        ties=tuple(ties),
        free=tuple(c for c in leaders if c not in kept),
        bound=tuple(sorted(kept)),
    )


def _check_wanted(wanted: Sequence[int], leaders: Sequence[int], names: Sequence[str]) -> None:
    if set(wanted) - set(leaders):
        raise ModelError(
            f"{', '.join(names)}: a joint that follows others is named free", "name its leaders"
        )


def _ease(model: Any, cluster: Cluster, coordinate: int) -> float:
    """How gladly a coordinate is bound: joints with motors less."""
    for k in cluster.bodies:
        joint = model.joints[k]
        if coordinate < joint.row.nv:
            effort = joint.effort[coordinate] if len(joint.effort) == joint.row.nv else np.inf
            return 0.1 if np.isfinite(effort) and effort > 0.0 else 1.0
        coordinate -= joint.row.nv
    raise AssertionError("a coordinate of the cluster")


def _nearby(laws: ClusterKinematics, q: np.ndarray, leaders: Sequence[int]) -> list[np.ndarray]:
    """Closed configurations not far off, by steps along what the ties leave free."""
    rng, found = np.random.default_rng(0), []
    for _ in range(TRIES):
        Y = _by_leaders(laws, q)[:, leaders]
        _, s, rows = np.linalg.svd(Y)
        null = rows[(s > RANK * max(s.max(initial=0.0), 1e-300)).sum() :]
        step = np.zeros(laws.nv)
        step[leaders] = 0.05 * rng.standard_normal(len(null)) @ null
        x = _array(laws.geared(laws.moved(entries(q), step.tolist())))
        for _ in range(8):
            back = np.zeros(laws.nv)
            back[leaders] = -np.linalg.lstsq(
                _by_leaders(laws, x)[:, leaders], _array(laws.errors(entries(x))), rcond=1e-10
            )[0]
            x = _array(laws.geared(laws.moved(entries(x), back.tolist())))
        if _size(laws, x) < 1e-9:
            found.append(x)
    return found


def _picked(A: np.ndarray, count: int, weights: np.ndarray) -> list[int]:
    """`count` columns of A that are far from dependent: the longest, then the longest across it, and so on."""
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
    return int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())


def _by_leaders(laws: ClusterKinematics, q: np.ndarray) -> np.ndarray:
    x = entries(q)
    return np.array(laws._by_leaders(x, laws.Y(x)), dtype=float).reshape(-1, laws.nv)


def _size(laws: ClusterKinematics, q: np.ndarray) -> float:
    gaps = np.abs(_array(laws.errors(entries(q))))
    return float(gaps.max(initial=0.0)) if np.isfinite(gaps).all() else np.inf


def _array(values: Sequence[Any]) -> np.ndarray:
    return np.array(values, dtype=float)
