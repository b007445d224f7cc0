"""The contact forces of a motion as wrenches on the frames of its robot."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.model.contact.ground import Ground
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.trajectory.trajectory import Trajectory

FrameWrenches = dict[str, np.ndarray]  # {frame: [moment; force] (..., 6) at its origin, world axes}


def contact_wrenches(
    motion: Trajectory, robot: Robot, q: np.ndarray, forces: np.ndarray | None
) -> FrameWrenches:
    """The wrenches of the recorded contact forces at q (..., n, nq); none without contacts."""
    if "ground" in motion.info:
        return _ground_wrenches(motion, robot, q, forces)
    if isinstance(motion.system, System) and motion.system.contacts:
        return _closure_wrenches(motion.system, q, forces)
    return {}


def _recorded(forces: np.ndarray | None) -> np.ndarray:
    if forces is None:
        raise StateError(
            "this motion has contacts, but their forces are not recorded",
            "use the trajectory that pp.simulate returned",
        )
    return forces


def _ground_wrenches(
    motion: Trajectory, robot: Robot, q: np.ndarray, forces: np.ndarray | None
) -> FrameWrenches:
    """Of contacts with the ground and pairs of links: forces (..., c, 3) in world axes, those of
    pairs on their first links."""
    found = _recorded(forces)
    if found.shape[-2] != len(robot.contact_points) + len(robot.contact_pairs):
        raise StateError(
            "the motion has given contacts, whose points are not recorded",
            "measure contacts of shapes: robot.with_contacts(...)",
        )
    contacts = GroundContact(robot, Ground(**motion.info["ground"]))
    poses = np.concatenate(
        [_flat_pose(robot.frame_pose(q, frame)) for frame in contacts.frames], axis=-1
    )
    places, _ = contacts.geometry(poses, contacts.cells(poses, samples=True))
    total: FrameWrenches = {}
    for i, (place, sides) in enumerate(zip(places, contacts.space.sides, strict=False)):
        for (frame, sign), lever in zip(sides, place.levers, strict=True):
            force = sign * found[..., i, :]
            arm = np.stack(np.broadcast_arrays(*lever), axis=-1)
            _add(total, frame, np.cross(arm, force), force)
    return total


def _flat_pose(T: Any) -> np.ndarray:
    return np.asarray(T).reshape(*T.shape[:-2], 16)


def _closure_wrenches(system: System, q: np.ndarray, forces: np.ndarray | None) -> FrameWrenches:
    """Of a closed chain: wrenches (..., l, 6) on the bodies of second frames, at the origins of
    first frames."""
    robot, found, total = system.robot, _recorded(forces), {}
    for i, contact in enumerate(system.contacts):
        moment, force = found[..., i, :3], found[..., i, 3:]
        first, second = (
            robot.frame_pose(q, frame)[..., :3, 3] for frame in (contact.first, contact.second)
        )
        _add(total, contact.first, -moment, -force)
        _add(total, contact.second, moment + np.cross(first - second, force), force)
    return total


def _add(total: FrameWrenches, frame: str, moment: np.ndarray, force: np.ndarray) -> None:
    """Add a wrench on a frame."""
    wrench = np.concatenate([moment, force], axis=-1)
    total[frame] = total[frame] + wrench if frame in total else wrench
