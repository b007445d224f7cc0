"""Geoms as shapes: boxes, spheres, capsules and cylinders; MuJoCo keeps half lengths. The rest is not drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import from_quaternion

KINDS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}  # mjtGeom
FIRST_HIDDEN_GROUP = 3  # groups from here on are hidden: by custom what collides


def read_shapes(peer: Any, names: Any) -> Iterator[Shape]:
    """What viewers draw."""
    for i in range(peer.ngeom):
        kind = KINDS.get(int(peer.geom_type[i]))
        if kind is not None:
            x, y, z = peer.geom_size[i].tolist()
            size = {"sphere": (x,), "box": (2 * x, 2 * y, 2 * z)}.get(kind, (x, 2 * y))
            w, *v = peer.geom_quat[i].tolist()
            rotation = from_quaternion(v[0], v[1], v[2], w)
            role = "visual" if peer.geom_group[i] < FIRST_HIDDEN_GROUP else "collision"
            link, place = (
                names.bodies[peer.geom_bodyid[i]],
                (rotation, tuple(peer.geom_pos[i].tolist())),
            )
            yield Shape(link, role, kind, place, size, color=_color(peer, i))  # type: ignore[arg-type]


def _color(peer: Any, i: int) -> tuple[float, ...]:
    material = peer.geom_matid[i]
    rgba = peer.geom_rgba[i] if material < 0 else peer.mat_rgba[material]
    return tuple(np.asarray(rgba, dtype=float).tolist())
