"""Robots with flexible links, and what `lagrange.py` needs to know of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import psiphi as pp
from tests.model.flexible.lagrange import Node, Part


def random_body(
    seed: int, n: int, count: int, *, quadratic: bool, rotary: bool
) -> tuple[pp.FlexibleBody, list[Node]]:
    """Random nodes, shapes, stiffness; the last two are "a" and "b", where others hang."""
    rng = np.random.default_rng(seed)
    r, m = rng.uniform([0.0, -0.4, -0.4], [0.8, 0.4, 0.4], (count, 3)), rng.uniform(0.2, 0.8, count)
    U, T = rng.standard_normal((count, 3, n)), rng.standard_normal((count, 3, n))
    A = 0.1 * rng.standard_normal((count, 3, 3))
    AA = A @ np.swapaxes(A, 1, 2)
    J = (
        np.trace(AA, axis1=1, axis2=2)[:, None, None] * np.eye(3) - AA
        if rotary
        else np.zeros((count, 3, 3))
    )
    Q = 0.3 * rng.standard_normal((count, 3, n, n)) if quadratic else None
    Q = None if Q is None else Q + np.swapaxes(Q, 2, 3)
    B = rng.standard_normal((n, n))
    body = pp.FlexibleBody(
        r,
        m,
        U,
        B @ B.T + n * np.eye(n),
        interface={"a": count - 2, "b": count - 1},
        turns=T,
        rotary=J,
        shortening=Q,
        damping=0.02,
    )
    b = body.basis
    nodes = [
        Node(
            r[k],
            float(m[k]),
            J[k],
            U[k] @ b,
            T[k] @ b,
            None if Q is None else np.einsum("cij,ia,jb->cab", Q[k], b, b),
        )
        for k in range(count)
    ]
    return body, nodes


def lump(seed: int, mass: float) -> tuple[dict[str, Any], Node]:
    rng = np.random.default_rng(seed)
    A = 0.15 * rng.standard_normal((3, 3))
    com, J = 0.1 * rng.standard_normal(3), np.trace(A @ A.T) * np.eye(3) - A @ A.T
    return dict(mass=mass, com=com, inertia=J), Node(com, mass, J)


def tree(quadratic: bool = False) -> tuple[pp.Robot, list[Part]]:
    """A hub with a flexible link on it; on one node of that a slide, on the other a hinge with a
    second flexible link."""
    long, nodes = random_body(1, 2, 4, quadratic=quadratic, rotary=True)
    short, others = random_body(2, 2, 3, quadratic=False, rotary=False)
    many, points = random_body(
        3, 1, 30, quadratic=False, rotary=False
    )  # lumped again: few points in place of thirty
    hub, hub_node = lump(4, 2.0)
    load, load_node = lump(5, 1.0)
    b = pp.Builder("flexible tree")
    b.body("hub", **hub)
    b.joint("base", "revolute", "world", "hub", axis=(0.2, 0.3, 1.0))
    b.flexible("hub", long)
    b.body("load", **load)
    b.joint("slide", "prismatic", "hub_a", "load", xyz=(0.1, 0, 0.05), axis=(0.3, 1.0, 0.2))
    b.body("hand")
    b.joint("hinge", "revolute", "hub_b", "hand", xyz=(0, 0.1, 0), axis=(0, 1.0, 0.1))
    b.flexible("hand", short)
    b.body("flag")
    b.joint("wave", "revolute", "hand_b", "flag", axis=(1.0, 0.2, 0))
    b.flexible("flag", many)
    b.frame("tool", "hand_a")
    b.frame("elbow", "load", xyz=(0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3))
    hinge = Part(0, 4, (0, 0.1, 0), "revolute", (0, 1.0, 0.1), others, 2)
    parts = [
        Part(None, 0, (0, 0, 0), "revolute", (0.2, 0.3, 1.0), [hub_node, *nodes], 2),
        Part(0, 3, (0.1, 0, 0.05), "prismatic", (0.3, 1.0, 0.2), [load_node]),
        hinge,
        Part(2, 2, (0, 0, 0), "revolute", (1.0, 0.2, 0), points, 1),
    ]
    return pp.Robot.of(b.build()), parts


@cache
def arm() -> pp.Robot:
    """A body of two masses that bends in two ways and draws in as it does, and a hand at its
    tip."""
    b = pp.Builder("flexible arm")
    b.body("boom", mass=1.0, inertia=0.01 * np.eye(3))
    b.joint("shoulder", "revolute", "world", "boom", axis=(0.1, 1, 0), xyz=(0, 0, 1))
    beam = pp.FlexibleBody(
        nodes=[[0.4, 0, 0], [1.0, 0, 0]],
        mass=[0.9, 0.8],
        shapes=[[[0.0, 0.0], [0.0, 0.2], [0.3, 0.1]], [[0.0, 0.0], [0.3, 1.0], [1.0, 0.0]]],
        stiffness=[[900.0, 50.0], [50.0, 4000.0]],
        interface={"tip": 1},
        turns=[[[0.0, 0.1], [-1.2, 0.0], [0.3, 1.0]], [[0.0, 0.2], [-1.4, 0.1], [0.4, 1.5]]],
        shortening=-np.tile([[0.4, 0.1], [0.1, 0.6]], (2, 3, 1, 1))
        * [[[[0.3]], [[0]], [[0]]], [[[1.0]], [[0]], [[0]]]],
        drawn=[],
    )
    b.flexible("boom", beam, xyz=(0.1, 0, 0), rpy=(0.1, 0.2, 0.3))
    b.body("hand", **lump(1, 1.0)[0])
    b.joint("wrist", "revolute", "boom_tip", "hand", axis=(0.1, 1, 0.3))
    b.frame("tool", "hand", xyz=(0.1, 0.2, 0.3))
    b.frame("elbow", "boom_tip", xyz=(0.01, 0.02, 0.03))
    return b.build()
