"""Geoms as shapes: boxes, spheres, capsules and cylinders; of meshes the convex hulls of those
that collide. Other geoms are skipped.

A geom that is drawn and collides is two shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from psiphi.io.peer_models import MjModel
from psiphi.model.shapes import Shape, Surface
from psiphi.model.spatial.transforms import from_quaternion

if TYPE_CHECKING:
    from psiphi.io.mujoco.from_mujoco import NameTable

KINDS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}  # mjtGeom
MESH = 7
FIRST_HIDDEN_GROUP = 3  # from this group on, geoms are not drawn; usually collision geoms


def read_shapes(peer: MjModel, names: NameTable) -> Iterator[Shape]:
    """The shapes of all supported geoms. MuJoCo stores half lengths."""
    for i in range(peer.ngeom):
        kind = KINDS.get(int(peer.geom_type[i]))
        qw, qx, qy, qz = peer.geom_quat[i].tolist()
        px, py, pz = peer.geom_pos[i].tolist()
        placement = from_quaternion(qx, qy, qz, qw), (px, py, pz)
        if kind is None and is_mesh(peer, i) and collides(peer, i):
            yield Shape(
                names.bodies[peer.geom_bodyid[i]],
                "collision",
                "mesh",
                placement,
                (1.0, 1.0, 1.0),
                surface=_surface(peer, i),
                vertices=_hull_vertices(peer, int(peer.geom_dataid[i])),
            )
        if kind is not None:
            x, y, z = peer.geom_size[i].tolist()
            size = {"sphere": (x,), "box": (2 * x, 2 * y, 2 * z)}.get(kind, (x, 2 * y))
            link, color = names.bodies[peer.geom_bodyid[i]], _color(peer, i)
            if drawn := peer.geom_group[i] < FIRST_HIDDEN_GROUP:
                yield Shape(link, "visual", kind, placement, size, color=color)
            if not drawn or collides(peer, i):
                surface = _surface(peer, i)
                yield Shape(link, "collision", kind, placement, size, color=color, surface=surface)


def collides(peer: MjModel, i: int) -> bool:
    """Whether a geom can collide."""
    return bool(peer.geom_contype[i] or peer.geom_conaffinity[i])


def is_mesh(peer: MjModel, i: int) -> bool:
    """Whether a geom is a mesh with vertices."""
    return int(peer.geom_type[i]) == MESH and int(peer.geom_dataid[i]) >= 0


def _hull_vertices(peer: MjModel, mesh: int) -> tuple[tuple[float, ...], ...]:
    """The vertices of the convex hull of a mesh; all of its vertices if MuJoCo has no hull."""
    first = int(peer.mesh_vertadr[mesh])
    vertices = peer.mesh_vert[first : first + int(peer.mesh_vertnum[mesh])]
    graph = int(peer.mesh_graphadr[mesh])
    if graph >= 0:  # the numbers of vertices and faces, an address and a number for each vertex
        count = int(peer.mesh_graph[graph])
        vertices = vertices[peer.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]]
    return tuple(map(tuple, np.asarray(vertices, dtype=float).tolist()))


def _surface(peer: MjModel, i: int) -> Surface:
    """Friction, margin and condim. From MuJoCo 4 on, the gap does not affect forces."""
    margin = float(peer.geom_margin[i])
    return Surface(float(peer.geom_friction[i][0]), margin, int(peer.geom_condim[i]))


def _color(peer: MjModel, i: int) -> tuple[float, ...]:
    material = peer.geom_matid[i]
    rgba = peer.geom_rgba[i] if material < 0 else peer.mat_rgba[material]
    return tuple(np.asarray(rgba, dtype=float).tolist())
