"""Geoms as shapes: boxes, spheres, capsules and cylinders; other geoms are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from psiphi.io.peer_models import MjModel
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import from_quaternion

if TYPE_CHECKING:
    from psiphi.io.mujoco.from_mujoco import NameTable

KINDS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}  # mjtGeom
FIRST_HIDDEN_GROUP = 3  # from this group on, geoms are not drawn; usually collision geoms


def read_shapes(peer: MjModel, names: NameTable) -> Iterator[Shape]:
    """The shapes of all supported geoms. MuJoCo stores half lengths."""
    for i in range(peer.ngeom):
        kind = KINDS.get(int(peer.geom_type[i]))
        if kind is not None:
            x, y, z = peer.geom_size[i].tolist()
            size = {"sphere": (x,), "box": (2 * x, 2 * y, 2 * z)}.get(kind, (x, 2 * y))
            qw, qx, qy, qz = peer.geom_quat[i].tolist()
            px, py, pz = peer.geom_pos[i].tolist()
            placement = from_quaternion(qx, qy, qz, qw), (px, py, pz)
            role = "visual" if peer.geom_group[i] < FIRST_HIDDEN_GROUP else "collision"
            link = names.bodies[peer.geom_bodyid[i]]
            yield Shape(link, role, kind, placement, size, color=_color(peer, i))


def _color(peer: MjModel, i: int) -> tuple[float, ...]:
    material = peer.geom_matid[i]
    rgba = peer.geom_rgba[i] if material < 0 else peer.mat_rgba[material]
    return tuple(np.asarray(rgba, dtype=float).tolist())
