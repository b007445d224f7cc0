"""Names of quantities, frames and axes, checked: what the compiler is asked for."""

from __future__ import annotations

from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.functions.argument_checks import check_axes, names
from psiphi.functions.compiled_function import QuantityRequest
from psiphi.model.model import Model
from psiphi.robot.catalogue.quantities import BY_METHOD, CATALOGUE, EVERY, METHODS
from psiphi.robot.catalogue.quasi_velocities import DIAGONAL

ON_FRAMES = {  # how many; 0: as many as you like
    "frame_pose": 1,
    "frame_velocity": 1,
    "frame_acceleration": 1,
    "jacobian": 1,
    "operational_compliance": 0,
    "operational_space_inertia": 0,
    "frame_jacobians": 0,
    "frame_velocities": 0,
    "borne": 0,
    **{name: 1 for name, quantity in DIAGONAL.items() if quantity.on_frame},
}
OF_SEVERAL = {"jacobian": "frame_jacobians", "frame_velocity": "frame_velocities"}
MADE_OF = {  # methods of a robot that end in a library of arrays
    "mass_log_det": 'it is the sum of log d, d = robot.function("mass_pivots")(q), and its gradient the vjp of that for 1 / d'
}
LOADED = tuple(name for name, quantity in DIAGONAL.items() if quantity.loaded)
WITH_WRENCHES = (
    "forward_dynamics",
    "inverse_dynamics",
    "bias",
    "joint_forces",
    *METHODS,
    *BY_METHOD.values(),
    *LOADED,
)


def request(model: Model, name: Any, frames: Any, axes: Any) -> QuantityRequest:
    """A request the compiler understands: a known quantity, frames of this robot, known axes."""
    if not isinstance(name, str) or name not in EVERY:
        remedy = MADE_OF.get(name) if isinstance(name, str) else None
        raise StateError(f"no function {shown(name)}", remedy or nearest(name, CATALOGUE))
    check_axes(axes)
    on = names(model, frames)
    if name in ON_FRAMES and len(on) != (ON_FRAMES[name] or max(1, len(on))):
        several = f"; {OF_SEVERAL[name]} is of several" if name in OF_SEVERAL else ""
        raise StateError(
            f"{name} is of one frame, and {len(on)} are given",
            f'name it: frames=("tool",){several}',
        )
    if on and name not in (*ON_FRAMES, *WITH_WRENCHES):
        raise StateError(
            f"{name} has nothing to do with frames, and {shown(on)} is given", "leave frames out"
        )
    return QuantityRequest(name, on, axes)
