"""Poses of all links at all times: one base-to-tip sweep on arrays."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util.errors import StateError
from psiphi.compiler.axes.link_axes import frame_tree
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.model.loops.closure_types import perpendicular_axes
from psiphi.model.model import WORLD, Model, Pose
from psiphi.model.parameters.free_parameters import nominal_model
from psiphi.robot.catalogue.catalogue import quantity_program


class OnBody(Protocol):
    """A frame or solid that is fixed to a body."""

    @property
    def body(self) -> int: ...
    @property
    def pose(self) -> Pose: ...


def link_poses(model: Model, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """R(k), p(k): each link frame in the world.

    q (..., nq) -> R (..., bodies, 3, 3), p (..., bodies, 3)

    >>> from psiphi.model.builder.builder import Builder
    >>> b = Builder("pendulum")
    >>> b.body("rod", mass=1.0, com=(0, 0, -0.5))
    >>> b.joint("hinge", "revolute", parent="world", child="rod", xyz=(0, 0, 1), axis=(0, 1, 0))
    >>> link_poses(b.build(), [0.5])[1].tolist()
    [[0.0, 0.0, 1.0]]
    """
    if model.free_blocks("offsets"):
        raise StateError(
            f"joint offsets of {model.name} are free parameters", "pass robot.baked(parameters)"
        )
    model = nominal_model(model)  # poses do not depend on masses
    q = np.asarray(q, dtype=float)
    if not len(model.bodies):
        return np.zeros((*q.shape[:-1], 0, 3, 3)), np.zeros((*q.shape[:-1], 0, 3))
    tree = frame_tree(model, movable_inertia=False)
    R, p = interpret(quantity_program("link_poses", tree), tree, q)
    return R, p


def origin_positions(R: np.ndarray, p: np.ndarray, item: OnBody) -> np.ndarray:
    """(times, 3): origin of a frame or solid in the world, from the link poses."""
    if item.body == WORLD:
        return np.broadcast_to(item.pose.translation, (len(p), 3))
    return p[:, item.body] + R[:, item.body] @ item.pose.translation


def origin_rotations(R: np.ndarray, item: OnBody) -> np.ndarray:
    """(times, 3, 3): the axes of a frame or solid in the world, from the link poses."""
    if item.body == WORLD:
        return np.broadcast_to(item.pose.rotation, (len(R), 3, 3))
    return R[:, item.body] @ item.pose.rotation


def rotation_with_z_along(axis: ArrayLike) -> np.ndarray:
    """A rotation whose z axis is along `axis`."""
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return np.column_stack([*perpendicular_axes(z), z])


def rotation_to_z(axis: ArrayLike) -> np.ndarray:
    """The shortest rotation that takes `axis` to z; exactly the identity if `axis` is z.

    >>> rotation_to_z([1.0, 0.0, 0.0]).tolist()
    [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    if z[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    K = np.array([[0.0, 0.0, -z[0]], [0.0, 0.0, -z[1]], [z[0], z[1], 0.0]])  # K u = (axis x z) x u
    return np.eye(3) + K + K @ K / (1.0 + z[2]) + 0.0
