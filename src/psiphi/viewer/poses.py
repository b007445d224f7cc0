"""Where every link is: one outward sweep on arrays, for all frames of an animation at once."""

from __future__ import annotations

import numpy as np

from psiphi.framing.framing import frame_tree
from psiphi.model.model import Model
from psiphi.steps.world_poses import world_origin, world_pose
from psiphi.sweeps.interpreter import interpret
from psiphi.sweeps.program import BASE_TO_TIP, Argument, Program, Site, Sweep


def link_poses(model: Model, q) -> tuple[np.ndarray, np.ndarray]:
    """R(k), p(k) of each link frame in the world. q (..., nq) -> (..., bodies, 3, 3), (..., bodies, 3)

    >>> from psiphi.model.builder import Builder
    >>> b = Builder("pendulum")
    >>> b.body("rod", mass=1.0, com=(0, 0, -0.5))
    >>> b.joint("hinge", "revolute", parent="world", child="rod", xyz=(0, 0, 1), axis=(0, 1, 0))
    >>> link_poses(b.build(), [0.5])[1].tolist()
    [[0.0, 0.0, 1.0]]
    """
    if model.freed is not None and not model.freed.every("offsets"):  # masses do not move links
        model = model.freed.nominal
    tree, n = frame_tree(model, rods=False), len(model.bodies)
    q = np.asarray(q, dtype=float)
    if not n:
        return np.zeros((*q.shape[:-1], 0, 3, 3)), np.zeros((*q.shape[:-1], 0, 3))
    outputs = Argument("R", (n, 3, 3)), Argument("p", (n, 3))
    sweeps = (Sweep(BASE_TO_TIP, _write_pose),)
    R, p = interpret(Program("link_poses", (Argument("q", (model.nq,), "q"),), outputs, sweeps, world_origin), tree, q)
    back = [gauge.inv for gauge in tree.gauge]  # from the working axes to the public link frames
    turn, shift = np.array([pose.rotation for pose in back]), np.array([pose.translation for pose in back])
    return R @ turn, p + np.einsum("...kij,kj->...ki", R, shift)


def _write_pose(site: Site) -> None:
    world_pose(site)
    k = site.link.index
    for i, row in enumerate(site.kept["R"]):
        site.write("R", 9 * k + 3 * i, row)
    site.write("p", 3 * k, site.kept["p"])


def turned_to(axis) -> np.ndarray:
    """A rotation whose z is along `axis`."""
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def turned_from(axis) -> np.ndarray:
    """The shortest rotation that brings `axis` to z: exactly the identity where it is z.

    >>> turned_from([1.0, 0.0, 0.0]).tolist()
    [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    if z[2] < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    K = np.array([[0.0, 0.0, -z[0]], [0.0, 0.0, -z[1]], [z[0], z[1], 0.0]])  # K x = (axis x z) x x
    return np.eye(3) + K + K @ K / (1.0 + z[2]) + 0.0
