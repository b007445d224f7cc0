"""The speeds above which a motion is not valid: it has diverged.

A joint in a closed loop that turns by a revolution or more in one step can close the loop in more
than one way, so its state after the step is arbitrary. Loops reach such speeds at singular
postures: stretched arms, dead points.
"""

from __future__ import annotations

import numpy as np

from psiphi.model.components import Joint, bodies_between
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.integration.integrators import METHODS
from psiphi.simulation.plant import Plant

MAX_SPEED = 1e9  # of all other joints


def loop_joints(plant: Plant) -> list[Joint]:
    """The joints of a closed chain that its loops and contacts connect."""
    if not isinstance(plant.system, System):
        return []
    closure, found = plant.system.closure, set[int]()
    for constraint in closure.constraints:
        ends = (closure.model.frame(name).body for name in (constraint.first, constraint.second))
        found |= bodies_between(closure.model.parent, list(ends))
    return [closure.model.joints[k] for k in sorted(found)]


def speed_limits(plant: Plant, method: str, dt: float) -> np.ndarray:
    """(nv,): MAX_SPEED; for turning joints in closed loops, a revolution per step of dt."""
    limits = np.full(plant.nv, MAX_SPEED)
    if method not in METHODS:
        return limits  # steps of their own size
    for joint in loop_joints(plant):
        own = limits[joint.v_slice]  # empty for further bodies of a flexible link
        turns = ~np.array(joint.row.slides, dtype=bool)[: len(own)]
        own[turns] = min(2.0 * np.pi / dt, MAX_SPEED)
    return limits


def fastest_coordinate(plant: Plant, v: np.ndarray) -> int:
    """The index of the fastest entry of v (nv,); NaN is fastest. Of a closed chain that holds an
    object, that of its mechanisms, which move the object."""
    speeds = np.where(np.isnan(v), np.inf, np.abs(v))
    name = plant.system.object if isinstance(plant.system, System) else None
    for joint in plant.robot.joints if name else ():
        if plant.robot.bodies[joint.index].name == name and joint.kind == "free":
            speeds[joint.v_slice] = -1.0
    return int(np.argmax(speeds))
