"""Small robots from a few words, so that a failing one can be written down: kinds, parents, which
joints have rotors.

Each has frames "tool" (on its last body), "elbow" (on the middle one), "mark" (on the world) and
"world".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import psiphi as pp
from tests.zoo import KINDS, random_axis, random_body, random_rotation


class Joint(NamedTuple):
    """kind, parent (-1: the world), rotor."""

    kind: str
    parent: int = -1
    rotor: bool = False


class Spec(NamedTuple):
    """A robot: its joints, and the seed of its numbers."""

    joints: tuple[Joint, ...]
    seed: int = 0

    def __str__(self) -> str:
        rows = ", ".join(repr(tuple(j)) for j in self.joints)
        return f"build([{rows}], seed={self.seed})"


def build(joints, seed: int = 0) -> pp.Robot:
    """The robot. Body k draws its numbers from (seed, k): leaving out others does not change it."""
    builder = pp.Builder("small")
    names = [f"b{k}" for k in range(len(joints))]
    for k, (kind, parent, rotor) in enumerate(joints):
        rng = np.random.default_rng([seed, k])
        random_body(builder, rng, names[k])
        axis, axis2 = random_axis(rng), random_axis(rng)
        while abs(axis @ axis2) > 0.9:
            axis2 = random_axis(rng)
        nv = {"cylindrical": 2, "universal": 2, "spherical": 3, "planar": 3, "free": 6}.get(kind, 1)
        builder.joint(
            f"joint_b{k}",
            kind,
            parent="world" if parent < 0 else names[parent],
            child=names[k],
            xyz=rng.uniform(-0.5, 0.5, 3),
            rotation=random_rotation(rng),
            axis=axis,
            axis2=axis2 if kind == "universal" else None,
            pitch=0.2 if kind == "helical" else 0.0,
            armature=rng.uniform(0.05, 0.5, nv) if rotor else None,
        )
    rng = np.random.default_rng([seed, 99])
    if not names:
        random_body(builder, rng, "base")
    for frame, body in (
        ("tool", names[-1] if names else "base"),
        ("elbow", names[len(names) // 2] if names else "base"),
    ):
        builder.frame(frame, body, xyz=rng.uniform(-0.3, 0.3, 3), rotation=random_rotation(rng))
    builder.frame("mark", "world", xyz=(0.3, -0.2, 0.5), rotation=random_rotation(rng))
    return builder.build()


def draw_spec(pick, bodies: int = 5) -> Spec:
    """`pick(sequence)` chooses: a robot of 0 to `bodies` bodies, small ones more often."""
    count = pick([1, 2, 3, 2, 3, 1, 4, 5, 0, 3][: 7 + 3 * (bodies > 4)])
    joints = []
    some = pick([KINDS, ("revolute",), ("revolute", "prismatic"), KINDS])
    for k in range(count):
        parent = pick([k - 1, k - 1, k - 1, *range(-1, k)])
        joints.append(Joint(pick(some), parent, pick([False, False, True])))
    return Spec(tuple(joints), pick(range(1000)))


def state(robot, seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """q (size, nq) with unit quaternions, v (size, nv)."""
    rng = np.random.default_rng([seed, 7])
    q = rng.uniform(-2.0, 2.0, (size, robot.nq))
    for j in robot.joints:
        at = {"spherical": 0, "free": 3}.get(j.kind)
        if at is not None:
            part = rng.standard_normal((size, 4))
            q[:, j.q_slice.start + at : j.q_slice.stop] = part / np.linalg.norm(
                part, axis=1, keepdims=True
            )
    return q, rng.standard_normal((size, robot.nv))
