"""A scene: solids on bodies, link poses at each time, frames, forces and plots.

All viewers and pages show a scene.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeGuard

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.deprecation import RenamedMember
from psiphi._util.errors import StateError
from psiphi._util.text import count_of, shown
from psiphi._util.validate import flag, robot_of, whole_number
from psiphi.apps.viewer.geometry.link_poses import link_poses, origin_positions, rotation_to_z
from psiphi.apps.viewer.geometry.solids import DrawnSolid
from psiphi.apps.viewer.geometry.stick_figure import pedestals
from psiphi.apps.viewer.geometry.terrain import terrain
from psiphi.apps.viewer.geometry.urdf_visuals import link_visuals
from psiphi.apps.viewer.recorded_motion import (
    RecordedMotion,
    batch_element,
    closed_configuration,
    motion_from_configurations,
    motion_from_trajectory,
)
from psiphi.apps.viewer.recorded_motion import contacts as loop_contacts
from psiphi.apps.viewer.svg_plots import sample_indices
from psiphi.model.contact.ground import Ground, check_ground
from psiphi.model.loops.constraints import Constraint
from psiphi.model.model import WORLD, Frame, Model
from psiphi.model.shapes import Shape
from psiphi.simulation.trajectory.trajectory import Trajectory

MAX_FRAMES = 900  # of an animation
FRAME_RATE = 60.0  # frames per second at most
MAX_POSES = 14_000  # of bodies, in all frames together
POINTS_ON_PLANES = ("rough", "sliding")  # constraints of a point on a plane


class Slope(NamedTuple):
    """A plane by its unit normal (3,) and a point (3,), in world axes."""

    normal: np.ndarray
    point: np.ndarray


@dataclass(frozen=True, eq=False)
class Scene:
    """What a viewer shows.

    `rotation` (times, bodies, 3, 3) and `position` (times, bodies, 3) are those of link frames.
    """

    title: str
    model: Model
    motion: RecordedMotion
    rotation: np.ndarray
    position: np.ndarray
    pieces: tuple[DrawnSolid, ...]
    ground: float | None = 0.0
    notes: tuple[str, ...] = ()
    freedom: str = ""  # text: its numbers of coordinates and constraint rows
    slope: Slope | None = None  # the ground of a motion that is not horizontal

    @property
    def up(self) -> np.ndarray:
        """(3,): the floor's normal, opposite to gravity; z if there is no gravity."""
        return upward(self.model)

    upright = RenamedMember("view_rotation")

    @property
    def view_rotation(self) -> np.ndarray:
        """(3, 3): from world axes to the axes of a picture, in which z is up."""
        return rotation_to_z(self.up)

    @property
    def t(self) -> np.ndarray:
        return self.motion.t

    @property
    def frames(self) -> list[Frame]:
        """The named frames, without "world"."""
        return [frame for frame in self.model.frames.values() if frame.name != "world"]

    @cached_property
    def extent(self) -> tuple[np.ndarray, float]:
        """Centre and radius of a ball that contains the solids at all times."""
        pieces = [piece for piece in self.pieces if not piece.is_ground]
        points = [self.track(piece) for piece in pieces]
        if not points:
            return np.zeros(3), 1.0
        reach = [piece.bounding_radius for piece in pieces]
        low = np.min([x.min(axis=0) - r for x, r in zip(points, reach, strict=True)], axis=0)
        high = np.max([x.max(axis=0) + r for x, r in zip(points, reach, strict=True)], axis=0)
        center = (low + high) / 2
        far = [
            float(np.linalg.norm(x - center, axis=1).max()) + 0.8 * r
            for x, r in zip(points, reach, strict=True)
        ]
        return center, max(far) or 1.0

    def track(self, piece: DrawnSolid) -> np.ndarray:
        """(times, 3): the origin of a solid in the world."""
        if not isinstance(piece, DrawnSolid):
            raise StateError(
                f"{shown(piece)} is not a solid of the scene", "pass one of scene.pieces"
            )
        return origin_positions(self.rotation, self.position, piece)


def scene(
    thing: object,
    *,
    q: Numbers | None = None,
    t: Numbers | None = None,
    shapes: str | os.PathLike[str] | Sequence[Shape] | None = None,
    meshes: bool = True,
    title: str | None = None,
    element: int = 0,
    frames: int = MAX_FRAMES,
    contacts: Ground | None = None,
) -> Scene:
    """The scene of a robot, a closed chain or a trajectory.

    A robot or closed chain takes configurations `q` (times, nq) and times `t`. Without them, every
    joint of a robot swings in turn, and a closed chain is assembled.
    `shapes` is a URDF file or a list of shapes; the default is the robot's own shapes. Robots
    without shapes are drawn from their kinematics. `meshes=False` does not read mesh files.
    `element` selects one motion of a batch. `frames` is the maximum number of frames.
    `contacts` is the ground on which a robot is drawn; a motion on a ground has its own.
    """
    if contacts is not None:
        check_ground("contacts", contacts)
    if title is not None and not isinstance(title, str):
        raise StateError(
            f"title is {shown(title)}, expected text", "omit it to use the robot's name"
        )
    flag("meshes", meshes, "pass False to skip mesh files")
    if is_trajectory(thing):
        system = thing.system
        model = model_of(system)
        motion = motion_from_trajectory(thing, model, element)
    else:
        system, model = thing, model_of(thing)
        motion = motion_from_configurations(
            model, closed_configuration(system, model) if q is None else q, t
        )
    frames = whole_number("frames", frames)
    span = float(motion.t[-1] - motion.t[0])
    most = min(frames, span * FRAME_RATE + 1, max(MAX_POSES / max(1, len(model.bodies)), 24))
    motion = motion[sample_indices(len(motion.t), max(2, int(most)))]
    R, p = link_poses(model, motion.q)
    pieces, bare_trees, notes = link_visuals(model, shapes, meshes)
    ground, slope = contact_floor(model, loop_contacts(system)), None
    if is_trajectory(thing) and "ground" in thing.info:
        contacts = Ground(**thing.info["ground"])
    if contacts is not None and contacts.grid is None:
        slope = Slope(*(np.array(contacts.plane[key]) for key in ("normal", "point")))
        ground = _horizontal_ground(model, slope)
        slope = slope if ground is None else None
    has_heights = contacts is not None and contacts.grid is not None
    if ground is None and slope is None and not has_heights:
        ground = _ground_height(model, R, p, pieces)
    if ground is not None:
        pieces += pedestals(model, ground, bare_trees, upward(model))
    name = title or str(getattr(system, "name", "") or model.name)
    freedom = _mobility_text(system, model)
    view = Scene(name, model, motion, R, p, tuple(pieces), ground, tuple(notes), freedom, slope)
    if contacts is None or contacts.grid is None:
        return view
    heights = batch_element(contacts.heights, element, 2)
    surface = terrain(contacts.grid, heights, *view.extent)
    return replace(view, pieces=(*view.pieces, surface))


def is_trajectory(thing: object) -> TypeGuard[Trajectory]:
    """Whether the object is a trajectory, or has the fields of one."""
    return all(hasattr(thing, name) for name in ("t", "q", "v", "system"))


def model_of(thing: object) -> Model:
    """The model that is drawn: the robot, or the forest of a closed chain."""
    model = robot_of(thing)
    if isinstance(model, Model):
        return model
    if thing is None:
        raise StateError(
            "the trajectory has no system",
            "load it with Trajectory.load(path, system=robot)",
        )
    raise StateError(
        f"{shown(thing)} cannot be shown", "pass a robot, a closed chain or a trajectory"
    )


def _mobility_text(system: object, model: Model) -> str:
    rows = getattr(system, "nc", None)
    if rows is None:
        return count_of(model.nv, "degree of freedom", "degrees of freedom")
    return f"{count_of(model.nv, 'coordinate')}, {count_of(rows, 'constraint row')}"


def upward(model: Model) -> np.ndarray:
    """(3,): the unit vector opposite to gravity; z if there is no gravity."""
    size = float(np.linalg.norm(model.gravity_vector))
    return -np.asarray(model.gravity_vector) / size if size else np.array([0.0, 0.0, 1.0])


def contact_floor(model: Model, constraints: Sequence[Constraint]) -> float | None:
    """The height of the lowest horizontal plane, fixed to the world, on which a point of a body
    rests; None if there is none, or no gravity."""
    if not np.any(model.gravity_vector):
        return None
    up, heights = upward(model), []
    for constraint in constraints:
        plane, point = model.frame(constraint.second), model.frame(constraint.first)
        if constraint.kind not in POINTS_ON_PLANES or plane.body != WORLD or point.body == WORLD:
            continue
        normal = plane.pose.rotation @ constraint.shape.axis
        if normal @ up > 1.0 - 1e-9:
            heights.append(float(plane.pose.translation @ up))
    return min(heights, default=None)


def _horizontal_ground(model: Model, plane: Slope) -> float | None:
    """The height of the ground of a simulation, if it is horizontal."""
    up = upward(model)
    return float(plane.point @ up) if plane.normal @ up > 1.0 - 1e-9 else None


def _ground_height(
    model: Model, R: np.ndarray, p: np.ndarray, pieces: list[DrawnSolid]
) -> float | None:
    """The floor's height: 0, or below all solids if some are below 0; None without gravity."""
    if not np.any(model.gravity_vector) or not pieces:
        return None
    moving = (piece for piece in pieces if piece.body != WORLD)
    low = min(
        (
            float((origin_positions(R, p, piece) @ upward(model)).min()) - piece.bounding_radius
            for piece in moving
        ),
        default=0.0,
    )
    return 0.0 if low > -0.05 else low
