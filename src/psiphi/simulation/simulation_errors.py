"""When a simulation breaks off: the error keeps what was computed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi.model.loops.cluster_joints import ClusterJoint, dead_points
from psiphi.simulation.plant import Plant

SEEN = 10_000  # states that are looked at afterwards, in whole motions


class SimulationError(Error):
    """A torque, an event function or the system itself failed; `.trajectory` is the motion so far, the cause is chained."""

    __module__ = "psiphi"

    def __init__(self, cause: str, remedy: str = "", *, trajectory: Any = None):
        super().__init__(cause, remedy)
        self.trajectory = trajectory


class MotionWarning(UserWarning):
    """A motion was computed, and part of it is no motion: it diverged, or passed a dead point of an embedded loop."""

    __module__ = "psiphi"


def warn_of_dead_points(plant: Plant, q: np.ndarray, t: np.ndarray) -> None:
    """Say that motions q (..., n, nq), sampled at t (n,), pass dead points of embedded loops: there a free coordinate cannot
    drive the others, its inertia has no bound, and a step across loses digits. Of large batches some motions are looked at."""
    joints = [joint for joint in plant.manifold.bent if isinstance(joint, ClusterJoint)]
    if not joints or not q.size:
        return
    motions = q.reshape(-1, *q.shape[-2:])
    seen = motions[:: max(1, motions.size // (SEEN * motions.shape[-1]))]
    looked = "" if len(seen) == len(motions) else " that were looked at"
    for joint in joints:
        passed = dead_points(joint, seen)
        if not passed.any():
            continue
        first = passed.any(axis=0).argmax()
        many = (
            f" ({passed.any(axis=-1).sum()} of {len(seen)} motions{looked})"
            if len(motions) > 1
            else ""
        )
        warnings.warn(
            f"the motion passes a dead point of {joint.name} at t = {t[first]:.6g} s{many}, where its free "
            "coordinate does not move the others: steps across it are not exact. What helps: pp.embed with another joint in "
            "free=, or pp.connect, which has no such points",
            MotionWarning,
            stacklevel=4,
        )


class Interrupted(KeyboardInterrupt):
    """Control-C during a simulation; `.trajectory` is the motion so far."""

    def __init__(self, trajectory: Any):
        super().__init__(
            f"interrupted at t = {trajectory.t[-1]:g} s; .trajectory has the motion so far"
        )
        self.trajectory = trajectory
