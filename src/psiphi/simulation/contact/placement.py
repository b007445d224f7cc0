"""Where a robot stands: `robot.on_ground(q, ground)`, and the check that it starts above ground."""

from __future__ import annotations

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi.model.contact.given_contacts import GivenContacts
from psiphi.model.contact.ground import Ground, check_ground
from psiphi.model.state_checks import batch_element
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.plant import Plant
from psiphi.simulation.start_checks import initial_state

PLACED = 1e-10  # m: the distance from heights at which a robot stands on them
MOST_MOVES = 10_000
MAX_DEPTH = 1e-3  # m: a rigid ground pushes a deeper start out at a speed that one can see


def contact_gaps(
    contacts: GroundContact, q: np.ndarray, robot: Robot | None = None, samples: bool = False
) -> np.ndarray:
    """(..., c): the distances of the contact points of `robot` from the ground, and of its pairs
    from each other. With `samples`, q has an axis of samples after those of the ground's numbers.
    """
    poses = frame_poses(contacts, q, robot)
    given = contacts.found(q).get("given")
    gaps = contacts.geometry(poses, contacts.cells(poses, samples), given)[1]
    return np.stack(np.broadcast_arrays(*gaps), axis=-1)


def frame_poses(contacts: GroundContact, q: np.ndarray, robot: Robot | None = None) -> np.ndarray:
    """(..., 16 frames): the poses of the frames of the contacts."""
    of = contacts.robot if robot is None else robot
    poses = [of.frame_pose(q, frame) for frame in contacts.frames]
    return np.concatenate([T.reshape(*T.shape[:-2], 16) for T in poses], axis=-1)


def on_ground(robot: Robot, q: Numbers, ground: Ground | None = None) -> np.ndarray:
    """q (..., nq) with the free base moved along the normal so that the lowest contact point
    touches the ground, by default the plane z = 0. On heights it moves along z.

    >>> import psiphi as pp
    >>> robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
    >>> q = robot.on_ground(robot.neutral())
    >>> round(float(robot.frame_pose(q, "LF_FOOT")[2, 3]), 9)
    0.03
    """
    given = Ground() if ground is None else check_ground("on_ground: ground", ground)
    given = given.plain_ground if isinstance(given, GivenContacts) else given
    contacts = GroundContact(robot, given)
    if robot.joints[0].kind != "free":
        raise StateError(
            f"on_ground: {robot.name} has no free base",
            'load it with base="free", or move the ground: pp.Ground(point=...)',
        )
    placed, _ = initial_state(Plant(robot), q, None)
    count = len(contacts.points)
    if not count:
        raise StateError(
            f"on_ground: no shape of {robot.name} can touch the ground",
            "name some: robot.with_contacts(..., ground=...)",
        )
    if given.grid is not None:
        return _on_heights(contacts, placed)
    gaps = contact_gaps(contacts, placed)[..., :count]
    moved = np.stack([placed] * 3)
    for i in range(3):
        moved[i, ..., i] += 1.0
    normal = np.moveaxis(contact_gaps(contacts, moved)[..., :count] - gaps, 0, -1)[..., 0, :]
    placed[..., :3] -= gaps.min(axis=-1, keepdims=True) * normal
    return placed


def _on_heights(contacts: GroundContact, q: np.ndarray) -> np.ndarray:
    """q with the base moved along z by its distance from the ground until that is zero."""
    heights = contacts.ground.heights
    lead = np.broadcast_shapes(q.shape[:-1], heights.shape[:-2])
    q = np.array(np.broadcast_to(q, (*lead, q.shape[-1])))
    for _ in range(MOST_MOVES):
        gaps = contact_gaps(contacts, q)[..., : len(contacts.points)].min(axis=-1)
        q[..., 2] -= gaps
        if not (np.abs(gaps) > PLACED).any():
            return q
    raise StateError(
        f"on_ground: {contacts.robot.name} does not reach the ground; its heights are too steep",
        "place the base yourself, or give heights with smaller slopes",
    )


def check_above_ground(contacts: GroundContact, q: np.ndarray, of: str) -> None:
    """Raise an error if a contact starts deep inside a rigid ground, or a rigid pair."""
    gaps = contact_gaps(contacts, q)
    if not contacts.ground.is_rigid or not gaps.size:
        return
    with np.errstate(invalid="ignore"):
        deep = gaps < -MAX_DEPTH
    if not deep.any():
        return
    *where, c = (int(i) for i in np.unravel_index(np.nanargmin(gaps), gaps.shape))
    depth, element = f"{-np.nanmin(gaps):.3g} m", batch_element(tuple(where))
    if c >= len(contacts.points):
        raise StateError(
            f"{of}: the solids of {contacts.names[c]} overlap by {depth} at the start{element}",
            "move them apart; or give the ground stiffness= and damping=",
        )
    raise StateError(
        f"{of}: {contacts.names[c]} starts {depth} inside the ground{element}",
        "move the base up: q = robot.on_ground(q, ground); or give the ground stiffness= and "
        "damping=",
    )
