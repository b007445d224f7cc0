"""How the contacts of a closed chain share the load under a law: the contact forces that act on
coordinates without motors minimize sum |f_i|^2 / share_i."""

from __future__ import annotations

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import real_array
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.control.control_law import Step


def read_share(system: object, share: Numbers | None) -> dict[str, np.ndarray]:
    """The number "share" of a law, one weight per contact; none if it is not given."""
    if share is None:
        return {}
    if not isinstance(system, System):
        raise StateError(
            "share= is given, but the system is not a closed chain", "leave share= out"
        )
    count = len(system.contacts)
    remedy = "give one positive number for each contact"
    weights = real_array("share", share, (count,), remedy)
    if weights.ndim != 1 or not count or not ((weights > 0.0) & np.isfinite(weights)).all():
        raise StateError(f"share is {shown(share)}, expected {count} positive numbers", remedy)
    return {"share": weights}


def inverse_dynamics_step(is_shared: bool) -> Step:
    """The torques for the acceleration u of a closed chain."""
    return Step("shared_inverse_dynamics" if is_shared else "inverse_dynamics", {"a": "u"})
