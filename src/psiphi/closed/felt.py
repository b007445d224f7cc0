"""The inertia one feels at the object, by its addends."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.closed import circuits
from psiphi.closed.coupling import Algebra
from psiphi.closed.singular import STRAIN
from psiphi.closed.solving import low_groups
from psiphi.errors import StateError


def inertias(system: Any, q, axes: str) -> tuple[np.ndarray, np.ndarray]:
    """M(C) (..., 6, 6), and A* Lambda A of every arm (..., arms, 6, 6), where V = J v of the object: J^-* . J^-1."""
    algebra, body = Algebra(system.closure, trunks=False), system.object
    hub = algebra.hub
    if not body or hub is None or hub.name != body or len(hub.coordinates) != 6:
        raise StateError(
            f"{system.name} is not several arms around one free body", "ask for effective_inertia(q, frame), the inertia of all"
        )
    (q,) = system._state(q=q)
    own, added, strain = system._call(system._function("inertias", lambda: circuits.inertias(algebra)), (q,))
    added = added.reshape(*own.shape[:-2], len(hub.groups), *own.shape[-2:])
    back = np.linalg.inv(system.robot.jacobian(q, body, axes=axes)[..., list(hub.coordinates)])
    moved = np.swapaxes(back, -1, -2) @ own @ back
    arms = np.swapaxes(back, -1, -2)[..., None, :, :] @ added @ back[..., None, :, :]
    stiff = ~(strain < STRAIN) | np.array(low_groups(algebra))
    return moved, np.where(stiff[..., None, None], np.nan, arms)
