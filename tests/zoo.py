"""Robots to test on, as lists: one new row here is tested everywhere.

ZOO                (name, thunk): each joint kind, arms, trees, forests, free bases, rotors, ...
random_tree(...)   a random tree; random_state(...) a state; trees() hypothesis strategies of both
example_robots()   the URDF files of the example-robot-data package, if it is installed
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from psiphi.model.builder.builder import Builder
from psiphi.model.joint_types import JOINTS, joint_sizes
from psiphi.model.model import Model

KINDS: tuple[str, ...] = tuple(JOINTS)
MUJOCO_KINDS: tuple[str, ...] = tuple(
    kind for kind in JOINTS if kind != "helical"
)  # MuJoCo has no screw joint


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Uniform over rotations."""
    Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.sign(np.linalg.det(Q))


def random_axis(rng: np.random.Generator) -> np.ndarray:
    """A unit vector: a coordinate axis one time in three, else anywhere."""
    if rng.random() < 1 / 3:
        return np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    x = rng.standard_normal(3)
    return x / np.linalg.norm(x)


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """tr(S) I - S with S positive definite: the inertia of some real body, about its centre of
    mass."""
    B = rng.uniform(-0.2, 0.2, (3, 3)) + 0.1 * np.eye(3)
    S = mass * B @ B.T
    return np.trace(S) * np.eye(3) - S


def random_body(builder: Builder, rng: np.random.Generator, name: str) -> None:
    mass = rng.uniform(0.5, 3.0)
    builder.body(name, mass=mass, com=rng.uniform(-0.3, 0.3, 3), inertia=random_inertia(rng, mass))


def random_joint(
    builder: Builder,
    rng: np.random.Generator,
    kind: str,
    parent: str,
    child: str,
    armature: bool = False,
) -> None:
    """A joint of the given kind with random pose, axes, pitch and, if asked for, one rotor inertia
    a coordinate."""
    axis, axis2 = random_axis(rng), random_axis(rng)
    while (
        abs(axis @ axis2) > 0.9
    ):  # universal axes need not be at right angles, but not parallel either
        axis2 = random_axis(rng)
    builder.joint(
        f"joint_{child}",
        kind,
        parent=parent,
        child=child,
        xyz=rng.uniform(-0.5, 0.5, 3),
        rotation=random_rotation(rng),
        axis=axis,
        axis2=axis2 if kind == "universal" else None,
        pitch=rng.uniform(-0.3, 0.3) if kind == "helical" else 0.0,
        armature=rng.uniform(0.05, 0.5, joint_sizes(kind)[1])
        if armature and kind != "fixed"
        else None,
    )


def random_tree(
    rng: np.random.Generator | int,
    n: int,
    kinds: Sequence[str] | None = None,
    branching: float = 0.4,
    armature: bool = False,
    forest: bool = False,
) -> Model:
    """n bodies on joints drawn from `kinds`, with frames "tool" and "elbow".

    `branching` is the chance that a body hangs on any earlier body rather than on the last one; in
    a forest it may also hang on the world.
    """
    rng = np.random.default_rng(rng)
    builder, names = Builder(f"tree_{n}"), [f"b{k}" for k in range(n)]
    for k, name in enumerate(names):
        parent = names[k - 1] if k else "world"
        if k and rng.random() < branching:
            parent = str(rng.choice(names[:k] + ["world"] * forest))
        random_body(builder, rng, name)
        random_joint(builder, rng, str(rng.choice(list(kinds or KINDS))), parent, name, armature)
    return with_frames(builder, rng, names).build()


def with_frames(builder: Builder, rng: np.random.Generator, names: Sequence[str]) -> Builder:
    """Frames at random poses on the last and the middle body."""
    for frame, body in (("tool", names[-1]), ("elbow", names[len(names) // 2])):
        builder.frame(frame, body, xyz=rng.uniform(-0.3, 0.3, 3), rotation=random_rotation(rng))
    return builder


def chain(name: str, kinds: Sequence[str], seed: int, armature: bool = False) -> Model:
    """A serial chain of the given joint kinds."""
    rng, builder, names = (
        np.random.default_rng(seed),
        Builder(name),
        [f"b{k}" for k in range(len(kinds))],
    )
    for parent, child, kind in zip(["world", *names], names, kinds, strict=False):
        random_body(builder, rng, child)
        random_joint(builder, rng, kind, parent, child, armature)
    return with_frames(builder, rng, names).build()


def free_tree(n: int, seed: int) -> Model:
    """A floating base with limbs."""
    rng, builder, names = (
        np.random.default_rng(seed),
        Builder("floating"),
        [f"b{k}" for k in range(n)],
    )
    for k, name in enumerate(names):
        random_body(builder, rng, name)
        parent = "world" if k == 0 else names[rng.integers(k)]
        random_joint(builder, rng, "revolute" if k else "free", parent, name)
    return with_frames(builder, rng, names).build()


def planar_arm(n: int) -> Model:
    """Parallel hinges: the arm of the textbooks, swinging in the x-z plane."""
    builder = Builder("planar_arm")
    for k in range(n):
        parent = f"rod{k - 1}" if k else "world"
        builder.body(f"rod{k}", mass=1.0, com=(0.5, 0, 0), inertia=np.diag([0.001, 1 / 12, 1 / 12]))
        builder.joint(
            f"hinge{k}",
            "revolute",
            parent=parent,
            child=f"rod{k}",
            xyz=(1.0 if k else 0.0, 0, 0),
            axis=(0, 1, 0),
        )
    return with_frames(builder, np.random.default_rng(n), [f"rod{k}" for k in range(n)]).build()


def massless_gimbal() -> Model:
    """A massless ring between two hinges: legal, since each D(k) stays positive."""
    rng, builder = np.random.default_rng(5), Builder("massless_gimbal")
    builder.body("ring", mass=0.0)
    builder.joint("yaw", "revolute", parent="world", child="ring", axis=(0, 0, 1))
    random_body(builder, rng, "head")
    builder.joint(
        "pitch", "revolute", parent="ring", child="head", xyz=(0.1, 0, 0.2), axis=(0, 1, 0)
    )
    return with_frames(builder, rng, ["ring", "head"]).build()


def welded_arm() -> Model:
    """An arm on a fixed base, with fixed joints in the middle and at the tip: their links are
    merged, their frames stay."""
    rng, builder, names = (
        np.random.default_rng(12),
        Builder("welded_arm"),
        ["base", "upper", "cover", "lower", "hand"],
    )
    for name in names:
        random_body(builder, rng, name)
    for parent, child, kind in zip(
        names, names[1:], ["revolute", "fixed", "prismatic", "fixed"], strict=False
    ):
        builder.joint(
            f"joint_{child}",
            kind,
            parent,
            child,
            xyz=rng.uniform(-0.5, 0.5, 3),
            rotation=random_rotation(rng),
        )
    return with_frames(builder, rng, names).build()


def _alone(kind: str) -> Callable[[], Model]:
    return lambda: chain(kind, [kind], seed=sum(map(ord, kind)))


ZOO: list[tuple[str, Callable[[], Model]]] = [
    *((kind, _alone(kind)) for kind in KINDS),
    ("serial_arm", lambda: chain("serial_arm", ["revolute"] * 6, seed=1)),
    (
        "mixed_arm",
        lambda: chain(
            "mixed_arm", ["revolute", "prismatic", "helical", "continuous", "cylindrical"], seed=2
        ),
    ),
    ("every_kind", lambda: chain("every_kind", KINDS, seed=3)),
    ("planar_arm", lambda: planar_arm(4)),
    ("planar_chain", lambda: chain("planar_chain", ["planar"] * 3, seed=4)),
    ("tree", lambda: random_tree(6, 9)),
    ("bushy_tree", lambda: random_tree(7, 10, branching=1.0)),
    ("forest", lambda: random_tree(5, 9, branching=0.7, forest=True)),
    ("screwless_tree", lambda: random_tree(13, 9, kinds=MUJOCO_KINDS)),
    ("floating", lambda: free_tree(8, seed=9)),
    ("floating_pair", lambda: chain("floating_pair", ["free", "free"], seed=10)),
    ("rotors", lambda: random_tree(11, 7, armature=True)),
    ("massless_gimbal", massless_gimbal),
    ("welded_arm", welded_arm),
]


def mujoco_zoo() -> list[tuple[str, Callable[[], Model]]]:
    """The rows MuJoCo can hold: no screw joint, no massless link."""

    def fits(model: Model) -> bool:
        return all(j.kind in MUJOCO_KINDS for j in model.joints) and all(
            b.mass > 0.0 for b in model.bodies
        )

    return [(name, thunk) for name, thunk in ZOO if fits(thunk())]


def random_state(
    model: Model, rng: np.random.Generator | int, size: tuple[int, ...] = ()
) -> tuple[np.ndarray, ...]:
    """q, v, a, tau, each (*size, n)."""
    rng = np.random.default_rng(rng)
    return model.random(rng, size), *(rng.standard_normal((*size, model.nv)) for _ in range(3))


@st.composite
def trees(
    draw, max_bodies: int = 8, kinds: Sequence[str] | None = None, armature: bool | None = None
) -> Model:
    """A hypothesis strategy: random trees and forests of every joint kind."""
    return random_tree(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, max_bodies)),
        kinds=kinds,
        branching=draw(st.sampled_from([0.0, 0.4, 1.0])),
        armature=draw(st.booleans()) if armature is None else armature,
        forest=draw(st.booleans()),
    )


def example_robots() -> list[Path]:
    """The URDF files of example-robot-data, sorted; empty where the package is not installed."""
    roots = (
        Path(entry) / "cmeel.prefix/share/example-robot-data/robots" for entry in sys.path if entry
    )
    return sorted({path for root in roots if root.is_dir() for path in root.rglob("*.urdf")})
