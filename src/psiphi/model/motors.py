"""Which joints have motors: all but free ones and those built with `motor=False`, unless it is said. A floating base is driven
by nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import names

JOINTS = "names of joints"


def idle(model: Any, actuated: Any = None, passive: Any = None) -> tuple[str, ...]:
    """The joints without motors: those named `passive`, or those not named `actuated`; where nothing is said the free ones,
    and those whose model says so.

    >>> import psiphi as pp
    >>> idle(pp.robots.puma560()), idle(pp.robots.puma560(), passive="elbow")
    ((), ('elbow',))
    """
    if actuated is not None and passive is not None:
        raise StateError(
            "both actuated and passive came", "name the joints with motors, or those without"
        )
    if passive is not None:
        named = {model.joint(name).name for name in names("passive", passive, JOINTS)}
        return tuple(joint.name for joint in model.joints if joint.name in named)
    if actuated is not None:
        driven = {model.joint(name).name for name in names("actuated", actuated, JOINTS)}
        return tuple(joint.name for joint in model.joints if joint.name not in driven)
    own = (joint for joint in model.joints if joint.shared is None)
    return tuple(joint.name for joint in own if joint.kind == "free" or not joint.motor)


def filled(tau: np.ndarray, driven: np.ndarray, nv: int) -> np.ndarray:
    """Torques (..., motors) of the coordinates `driven` as (..., nv), zero at the others; torques of all are as they are."""
    if tau.shape[-1:] != (len(driven),) or len(driven) == nv:
        return tau
    out = np.zeros((*tau.shape[:-1], nv), dtype=tau.dtype)
    out[..., driven] = tau
    return out


def coordinates(model: Any, joints: Iterable[str]) -> np.ndarray:
    """The velocity coordinates of these joints."""
    slices = [model.joint(name).v_slice for name in joints]
    return np.array([i for own in slices for i in range(own.start, own.stop)], dtype=int)
