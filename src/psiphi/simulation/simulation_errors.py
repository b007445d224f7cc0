"""Errors and warnings of simulations; the errors carry the motion computed so far."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.text import shown_path
from psiphi.model.diagnostics import PACKAGE, caller_stacklevel
from psiphi.model.loops.cluster_joints import ClusterJoint, passes_dead_point
from psiphi.simulation.plant import Plant
from psiphi.simulation.trajectory.trajectory import Trajectory

MAX_CHECKED_STATES = 10_000  # of a batch, for dead points; whole motions are checked


class SimulationError(Error):
    """A torque, an event function or the system failed. `.trajectory` is the motion so far;
    `__cause__` is the original error."""

    __module__ = "psiphi"

    def __init__(self, cause: str, remedy: str = "", *, trajectory: Trajectory | None = None):
        super().__init__(cause, remedy)
        self.trajectory = trajectory


class MotionWarning(UserWarning):
    """A computed motion is not valid throughout: it diverged, or passes a dead point of an embedded
    loop."""

    __module__ = "psiphi"


def user_line(error: BaseException) -> str:
    """Where in the user's file an error arose that a user's function raised in a call by psiphi;
    "" if psiphi itself raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [k for k, frame in enumerate(frames) if not frame.filename.startswith(PACKAGE)]
    called = [k for k in outside if k and frames[k - 1].filename.startswith(PACKAGE)]
    if not called:
        return ""
    file = frames[called[0]].filename
    last = [frame for frame in frames[called[0] :] if frame.filename == file][-1]
    return f"{last.name}, line {last.lineno} of {shown_path(file)}"


def warn_of_dead_points(plant: Plant, q: np.ndarray, t: np.ndarray) -> None:
    """Warn if motions q (..., n, nq), sampled at t (n,), pass dead points of embedded loops.

    There the free coordinate cannot drive the others, its inertia is unbounded, and a step across
    the point loses digits. Of a large batch, some motions are checked.
    """
    joints = [joint for joint in plant.manifold.curved if isinstance(joint, ClusterJoint)]
    if not joints or not q.size:
        return
    motions = q.reshape(-1, *q.shape[-2:])
    checked = motions[:: max(1, motions.size // (MAX_CHECKED_STATES * motions.shape[-1]))]
    for joint in joints:
        passed = passes_dead_point(joint, checked)
        if not passed.any():
            continue
        first = passed.any(axis=0).argmax()
        count = f"{passed.any(axis=-1).sum()} of {len(checked)}"
        count += "" if len(checked) == len(motions) else " checked"
        count = f" ({count} motions)" if len(motions) > 1 else ""
        warnings.warn(
            f"the motion passes a dead point of {joint.name} at t = {t[first]:.6g} s{count}, where "
            "its free coordinate does not move the others: steps across it are not exact. What "
            "helps: pp.embed with another joint in free=, or pp.connect, which has no such points",
            MotionWarning,
            stacklevel=4,
        )


def warn_of_rises(rises: Mapping[str, float]) -> None:
    """Warn of event functions that rose through zero at these times, and never fell."""
    for name, t in list(rises.items())[:1]:
        warnings.warn(
            f"event {name!r} rose through zero at t = {t:.6g} s, and is recorded where its "
            "function falls to zero: return -g to record where g rises",
            MotionWarning,
            stacklevel=caller_stacklevel(),
        )


class Interrupted(KeyboardInterrupt):
    """Control-C during a simulation; `.trajectory` is the motion so far."""

    def __init__(self, trajectory: Trajectory):
        super().__init__(
            f"interrupted at t = {trajectory.t[-1]:g} s; .trajectory has the motion so far"
        )
        self.trajectory = trajectory
