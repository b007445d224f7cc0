"""When a simulation breaks off: the error keeps what was computed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from psiphi.control.plant import Plant
from psiphi.errors import Error
from psiphi.model.compound_joints import CompoundJoint, dead_points


class SimulationError(Error):
    """A torque, an event function or the system itself failed; `.trajectory` is the motion so far, the cause is chained."""

    def __init__(self, cause: str, remedy: str = "", *, trajectory: Any = None):
        super().__init__(cause, remedy)
        self.trajectory = trajectory


class MotionWarning(UserWarning):
    """A motion was computed, and part of it is no motion: it diverged, or passed a dead point of an embedded loop."""


def warn_of_dead_points(plant: Plant, q: np.ndarray, t: np.ndarray) -> None:
    """Say that motions q (..., n, nq), sampled at t (n,), pass dead points of embedded loops: there a free coordinate cannot
    drive the others, its inertia has no bound, and a step across loses digits."""
    for joint in plant.manifold.bent:
        if not isinstance(joint, CompoundJoint) or not (passed := dead_points(joint, q)).any():
            continue
        samples, motions = passed.any(axis=tuple(range(passed.ndim - 1))), passed.any(axis=-1)
        many = f" ({motions.sum()} of {motions.size} motions)" if motions.size > 1 else ""
        warnings.warn(
            f"the motion passes a dead point of {joint.name} at t = {t[samples.argmax()]:.6g} s{many}, where its free "
            "coordinate does not move the others: steps across it are not exact. What helps: pp.embed with another joint in "
            "free=, or pp.connect, which has no such points",
            MotionWarning,
            stacklevel=4,
        )


class Interrupted(KeyboardInterrupt):
    """Control-C during a simulation; `.trajectory` is the motion so far."""

    def __init__(self, trajectory: Any):
        super().__init__(f"interrupted at t = {trajectory.t[-1]:g} s; .trajectory has the motion so far")
        self.trajectory = trajectory
