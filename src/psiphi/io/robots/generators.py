"""Models made to measure: chains of any length and random trees, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag, generator, real, several
from psiphi.model.builder.builder import Builder
from psiphi.model.inertias import of_second_moments
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import Model

MOST = 1_000_000  # links


def chain(n: int, planar: bool = False, seed: int = 0, equal: bool = False) -> Model:
    """A chain of n links on revolute joints, with a frame "tool" at the last link's.

    General: modified Denavit-Hartenberg frames with random alpha, a and d, random centres of mass and full inertias.
    Planar: all axes parallel and horizontal, each link frame a step along x of the one before, the centre of mass on that
    line, diagonal inertia: the chain swings in the vertical plane of x and z. `equal` repeats one link n times.

    >>> chain(3).nv
    3
    """
    _at_least_one(n)
    rng, planar, equal = generator(seed), flag("planar", planar), flag("equal", equal)
    count = 1 if equal else n
    alpha, a, d = rng.uniform((-pi, 0.2, -0.3), (pi, 0.6, 0.3), (count, 3)).T
    mass, com, inertia = _matter(rng, count)
    if planar:
        alpha, d = np.zeros(count), np.zeros(count)
        com[:, 1:] = 0.0
        inertia[:, [1, 2, 4]] = 0.0
    (cosine, sine), rpy = (
        (np.cos(alpha), np.sin(alpha)),
        np.stack([alpha, alpha * 0, alpha * 0], axis=1),
    )
    links = [
        x.tolist()
        for x in (mass, com, inertia, np.stack([a, 0.0 - sine * d, cosine * d], axis=1), rpy)
    ]
    if equal:
        links = [x * n for x in links]
    return _chained(n, planar, *links)


def _chained(
    n: int, planar: bool, mass: list, com: list, inertia: list, xyz: list, rpy: list
) -> Model:
    builder = Builder(f"{'planar_' if planar else ''}chain{n}")
    parent = "world"
    for k in range(n):
        child = f"link{k + 1}"
        builder.body(child, mass[k], com[k], tuple(inertia[k]))
        if planar and k == 0:
            builder.joint("joint1", "revolute", parent, child, rotation=_UPRIGHT)
        else:
            builder.joint(f"joint{k + 1}", "revolute", parent, child, xyz[k], rpy[k])
        parent = child
    builder.frame("tool", parent)
    return builder.build()


def random_tree(
    n: int,
    seed: int = 0,
    kinds: Sequence[str] | str | None = None,
    branching: float = 0.3,
    base: str = "fixed",
) -> Model:
    """A tree of n bodies with random joints, axes, poses and full inertias: what tests and benchmarks feed on.

    `kinds` are drawn from at random (every kind of the joint table but "free" unless given); with the chance `branching` a
    body hangs on any earlier one, else on the one before. base="free" puts the first body on a free joint.

    >>> random_tree(5, seed=1) == random_tree(5, seed=1)
    True
    """
    _at_least_one(n)
    kinds, rng = _kinds(kinds), generator(seed)
    if (
        chance := real("branching", branching, (), "give a number from 0 to 1")
    ).ndim or not 0.0 <= chance <= 1.0:
        raise StateError(
            f"branching is {shown(branching)}, expected a chance", "give a number from 0 to 1"
        )
    if not isinstance(base, str):
        raise StateError(
            f"base is {shown(base)}, expected 'fixed' or 'free'", "give one of the two"
        )
    matter = zip(*(x.tolist() for x in _matter(rng, n)), strict=True)
    kind = rng.integers(len(kinds), size=n)
    parent = np.where(
        rng.random(n) < branching, rng.integers(np.maximum(np.arange(n), 1)), np.arange(n) - 1
    )
    spin, axis, axis2 = (_directions(rng, n, size).tolist() for size in (4, 3, 3))
    xyz, pitch = rng.uniform(-0.5, 0.5, (n, 3)).tolist(), rng.uniform(0.05, 0.3, n).tolist()

    builder = Builder(f"tree{n}")
    for k, (mass, com, inertia) in enumerate(matter):
        child, below = f"link{k + 1}", f"link{parent[k] + 1}" if k else "world"
        builder.body(child, mass, com, tuple(inertia))
        if k or base == "fixed":
            row = JOINTS[kinds[kind[k]]]
            more = (
                {"axis2": axis2[k]}
                if row.axes == 2
                else {"pitch": pitch[k]}
                if kinds[kind[k]] == "helical"
                else {}
            )
            builder.joint(
                f"joint{k + 1}",
                kinds[kind[k]],
                below,
                child,
                xyz[k],
                rotation=spin[k],
                axis=axis[k],
                **more,
            )
    return builder.build(base=base)


_UPRIGHT = [
    [1.0, 0.0, 0.0],
    [0.0, 0.0, -1.0],
    [0.0, 1.0, 0.0],
]  # Rot(x, 90 degrees): axes to the horizontal


def _matter(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n masses, centres of mass, and inertias (ixx, ixy, ixz, iyy, iyz, izz) that bodies can have.

    I = tr(S) 1 - S with the second moments of mass S = m A A* > 0: every such I is possible, and every possible I is such.
    """
    mass = rng.uniform(0.5, 2.0, n)
    com = rng.uniform(-0.2, 0.2, (n, 3))
    A = 0.1 * rng.standard_normal((n, 3, 3))
    S = mass[:, None, None] * (A @ A.transpose(0, 2, 1) + 1e-3 * np.eye(3))
    return mass, com, of_second_moments(S)[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def _directions(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """n unit vectors, uniform on the sphere."""
    x = rng.standard_normal((n, size))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _at_least_one(n) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= MOST:
        raise ModelError(f"n is {shown(n)}, expected a whole number of links", f"give 1 to {MOST}")


def _kinds(kinds) -> tuple[str, ...]:
    if kinds is None:
        return tuple(kind for kind in JOINTS if kind != "free")
    kinds = (kinds,) if isinstance(kinds, str) else tuple(several("kinds", kinds))
    for kind in kinds or (None,):
        if not isinstance(kind, str) or kind not in JOINTS:
            raise ModelError(f"no joint kind {shown(kind)}", nearest(kind, JOINTS), element="kinds")
    return kinds
