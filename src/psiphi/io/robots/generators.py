"""Chains of any length and random trees, reproducible by seed."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_list, flag, generator, real_array
from psiphi.model.builder.builder import Builder
from psiphi.model.inertias import inertia_from_second_moments
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import Model

MAX_LINKS = 1_000_000


def chain(n: int, planar: bool = False, seed: int = 0, equal: bool = False) -> Model:
    """A chain of n links with revolute joints; the frame "tool" is the frame of the last link.

    A general chain has modified Denavit-Hartenberg frames with random alpha, a and d, random
    centers of mass and full inertias. In a `planar` chain all axes are parallel and horizontal,
    link frames and centers of mass are on the x axis of the previous frame, and inertias are
    diagonal, so that it moves in the vertical xz plane. `equal` repeats one link n times.

    >>> chain(3).nv
    3
    """
    _check_count(n)
    rng, planar, equal = generator(seed), flag("planar", planar), flag("equal", equal)
    count = 1 if equal else n
    alpha, a, d = rng.uniform((-pi, 0.2, -0.3), (pi, 0.6, 0.3), (count, 3)).T
    mass, com, inertia = _random_inertias(rng, count)
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
    return _build_chain(n, planar, *links)


def _build_chain(
    n: int, planar: bool, mass: list, com: list, inertia: list, xyz: list, rpy: list
) -> Model:
    builder = Builder(f"{'planar_' if planar else ''}chain{n}")
    parent = "world"
    for k in range(n):
        child = f"link{k + 1}"
        builder.body(child, mass[k], com[k], tuple(inertia[k]))
        if planar and k == 0:
            builder.joint("joint1", "revolute", parent, child, rotation=_Z_TO_HORIZONTAL)
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
    """A tree of n bodies with random joints, axes, poses and inertias, for tests and benchmarks.

    Joint types are drawn from `kinds` (default: all of the joint table except "free"). With
    probability `branching` the parent is any earlier body, else the previous one. base="free"
    gives the first body a free joint.

    >>> random_tree(5, seed=1) == random_tree(5, seed=1)
    True
    """
    _check_count(n)
    kinds, rng = _kinds(kinds), generator(seed)
    if (
        chance := real_array("branching", branching, (), "give a number from 0 to 1")
    ).ndim or not 0.0 <= chance <= 1.0:
        raise StateError(
            f"branching is {shown(branching)}, expected a probability", "give a number from 0 to 1"
        )
    if not isinstance(base, str):
        raise StateError(f"base is {shown(base)}, expected 'fixed' or 'free'", "give one of these")
    inertias = zip(*(x.tolist() for x in _random_inertias(rng, n)), strict=True)
    kind = rng.integers(len(kinds), size=n)
    parent = np.where(
        rng.random(n) < branching, rng.integers(np.maximum(np.arange(n), 1)), np.arange(n) - 1
    )
    rotation, axis, axis2 = (_directions(rng, n, size).tolist() for size in (4, 3, 3))
    xyz, pitch = rng.uniform(-0.5, 0.5, (n, 3)).tolist(), rng.uniform(0.05, 0.3, n).tolist()

    builder = Builder(f"tree{n}")
    for k, (mass, com, inertia) in enumerate(inertias):
        child, parent_link = f"link{k + 1}", f"link{parent[k] + 1}" if k else "world"
        builder.body(child, mass, com, tuple(inertia))
        if k or base == "fixed":
            row = JOINTS[kinds[kind[k]]]
            options = (
                {"axis2": axis2[k]}
                if row.axes == 2
                else {"pitch": pitch[k]}
                if kinds[kind[k]] == "helical"
                else {}
            )
            builder.joint(
                f"joint{k + 1}",
                kinds[kind[k]],
                parent_link,
                child,
                xyz[k],
                rotation=rotation[k],
                axis=axis[k],
                **options,
            )
    return builder.build(base=base)


_Z_TO_HORIZONTAL = [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]  # Rot(x, 90 degrees)


def _random_inertias(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n masses, centers of mass and physically consistent inertias (ixx, ixy, ixz, iyy, iyz, izz).

    I = tr(S) 1 - S with the second moment of mass S = m A A* > 0; an inertia is physical if and
    only if it has this form.
    """
    mass = rng.uniform(0.5, 2.0, n)
    com = rng.uniform(-0.2, 0.2, (n, 3))
    A = 0.1 * rng.standard_normal((n, 3, 3))
    S = mass[:, None, None] * (A @ A.transpose(0, 2, 1) + 1e-3 * np.eye(3))
    return mass, com, inertia_from_second_moments(S)[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def _directions(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """n unit vectors, uniform on the sphere."""
    x = rng.standard_normal((n, size))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _check_count(n: object) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= MAX_LINKS:
        raise ModelError(
            f"n is {shown(n)}, expected a whole number of links", f"give 1 to {MAX_LINKS}"
        )


def _kinds(kinds: Sequence[str] | str | None) -> tuple[str, ...]:
    """The checked joint types."""
    if kinds is None:
        return tuple(kind for kind in JOINTS if kind != "free")
    kinds = (kinds,) if isinstance(kinds, str) else tuple(as_list("kinds", kinds))
    for kind in kinds or (None,):
        if not isinstance(kind, str) or kind not in JOINTS:
            raise ModelError(f"no joint kind {shown(kind)}", nearest(kind, JOINTS), element="kinds")
    return kinds
