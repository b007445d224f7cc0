"""Where every link is: one outward sweep on arrays, for all frames of an animation at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.model.loops.closure_types import perpendicular_axes
from psiphi.model.model import WORLD, Model
from psiphi.robot.catalogue.quantities import quantity_program


def link_poses(model: Model, q) -> tuple[np.ndarray, np.ndarray]:
    """R(k), p(k) of each link frame in the world. q (..., nq) -> (..., bodies, 3, 3), (..., bodies, 3)

    >>> from psiphi.model.builder.builder import Builder
    >>> b = Builder("pendulum")
    >>> b.body("rod", mass=1.0, com=(0, 0, -0.5))
    >>> b.joint("hinge", "revolute", parent="world", child="rod", xyz=(0, 0, 1), axis=(0, 1, 0))
    >>> link_poses(b.build(), [0.5])[1].tolist()
    [[0.0, 0.0, 1.0]]
    """
    if model.freed is not None:  # masses do not move links
        if model.freed.blocks_of("offsets"):
            raise StateError(
                f"the places of joints of {model.name} are inputs", "show light.baked(parameters)"
            )
        model = model.freed.nominal
    q = np.asarray(q, dtype=float)
    if not len(model.bodies):
        return np.zeros((*q.shape[:-1], 0, 3, 3)), np.zeros((*q.shape[:-1], 0, 3))
    tree = frame_tree(model, movable_inertia=False)
    R, p = interpret(quantity_program("link_poses", tree), tree, q)
    return R, p


def origin_positions(R: np.ndarray, p: np.ndarray, on: Any) -> np.ndarray:
    """Where the origin of what is fixed `on` a body, a frame or a piece, is at each time, (times, 3)."""
    if on.body == WORLD:
        return np.broadcast_to(on.pose.translation, (len(p), 3))
    return p[:, on.body] + R[:, on.body] @ on.pose.translation


def rotation_with_z_along(axis) -> np.ndarray:
    """A rotation whose z is along `axis`."""
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return np.column_stack([*perpendicular_axes(z), z])


def rotation_to_z(axis) -> np.ndarray:
    """The shortest rotation that brings `axis` to z: exactly the identity where it is z.

    >>> turned_from([1.0, 0.0, 0.0]).tolist()
    [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    if z[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    K = np.array([[0.0, 0.0, -z[0]], [0.0, 0.0, -z[1]], [z[0], z[1], 0.0]])  # K x = (axis x z) x x
    return np.eye(3) + K + K @ K / (1.0 + z[2]) + 0.0
