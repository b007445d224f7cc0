"""Which joints have motors.

By default all joints but free joints and those built with `motor=False`; a call may name others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import as_names
from psiphi.model.components import Joint

JOINT_NAMES = "names of joints"


class HasJoints(Protocol):
    """A model, robot or system."""

    @property
    def joints(self) -> tuple[Joint, ...]: ...
    def joint(self, name: str) -> Joint: ...


def unactuated_joints(
    model: HasJoints,
    actuated: str | Iterable[str] | None = None,
    passive: str | Iterable[str] | None = None,
) -> tuple[str, ...]:
    """The joints without motors: those named `passive`, or those not named `actuated`.

    If neither is given: free joints and joints built with `motor=False`.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> unactuated_joints(robot), unactuated_joints(robot, passive="elbow")
    ((), ('elbow',))
    """
    if actuated is not None and passive is not None:
        raise StateError(
            "both actuated and passive are given", "name the joints with motors, or those without"
        )
    if passive is not None:
        named = {model.joint(name).name for name in as_names("passive", passive, JOINT_NAMES)}
        return tuple(joint.name for joint in model.joints if joint.name in named)
    if actuated is not None:
        driven = {model.joint(name).name for name in as_names("actuated", actuated, JOINT_NAMES)}
        return tuple(joint.name for joint in model.joints if joint.name not in driven)
    unshared = (joint for joint in model.joints if joint.shared is None)
    return tuple(joint.name for joint in unshared if joint.kind == "free" or not joint.motor)


def expand_torques(tau: np.ndarray, actuated: np.ndarray, nv: int) -> np.ndarray:
    """Torques (..., motors) at the velocity indices `actuated` as (..., nv), zero elsewhere.

    Torques that have nv entries already are returned unchanged.
    """
    if tau.shape[-1:] != (len(actuated),) or len(actuated) == nv:
        return tau
    out = np.zeros((*tau.shape[:-1], nv), dtype=tau.dtype)
    out[..., actuated] = tau
    return out


def velocity_indices(model: HasJoints, joints: Iterable[str]) -> np.ndarray:
    """The indices of the joints' velocities in v."""
    indices = [i for name in joints for i in model.joint(name).coordinates]
    return np.array(indices, dtype=int)
