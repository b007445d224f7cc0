"""`check_request`: checks the name of a quantity, its frames and axes."""

from __future__ import annotations

from collections.abc import Iterable

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.functions.argument_checks import check_axes, frame_names
from psiphi.functions.compiled_function import QuantityRequest
from psiphi.model.model import Model
from psiphi.robot.catalogue.catalogue import ALL_QUANTITIES, BY_METHOD, CATALOGUE, METHODS
from psiphi.robot.catalogue.quasi_velocities import QUASI_QUANTITIES

ON_FRAMES = {  # {quantity: number of frames}, 0 for any number
    "frame_pose": 1,
    "frame_velocity": 1,
    "frame_acceleration": 1,
    "frame_imu": 1,
    "frame_motion": 0,
    "jacobian": 1,
    "operational_compliance": 0,
    "operational_space_inertia": 0,
    "frame_jacobians": 0,
    "frame_velocities": 0,
    "wrench_torques": 0,
    "wrench_acceleration": 0,
    "added_inertia_compliance": 0,
    "half_wrench_response": 0,
    "added_inertia_half_wrench_response": 0,
    "added_inertia_wrench_acceleration": 0,
    **{name: 1 for name, quantity in QUASI_QUANTITIES.items() if quantity.on_frame},
}
SEVERAL_FRAMES = {"jacobian": "frame_jacobians", "frame_velocity": "frame_velocities"}
REPLACEMENTS = {  # remedies for methods of a robot that are not compiled functions
    "mass_log_det": 'it is the sum of log d, d = robot.function("mass_pivots")(q); '
    "its gradient is the vjp of that function for 1 / d"
}
QUASI_WITH_WRENCHES = tuple(
    name for name, quantity in QUASI_QUANTITIES.items() if quantity.takes_wrenches
)
WITH_WRENCHES = (
    "forward_dynamics",
    "inverse_dynamics",
    "bias",
    "joint_forces",
    "joint_torques",
    *METHODS,
    *BY_METHOD.values(),
    *QUASI_WITH_WRENCHES,
)


def check_request(
    model: Model, name: str, frames: str | Iterable[str], axes: str
) -> QuantityRequest:
    """The request for a known quantity, frames of this robot, and known axes; or a StateError."""
    if not isinstance(name, str) or name not in ALL_QUANTITIES:
        remedy = REPLACEMENTS.get(name) if isinstance(name, str) else None
        raise StateError(f"no function {shown(name)}", remedy or nearest(name, CATALOGUE))
    check_axes(axes)
    given = frame_names(model, frames)
    if name in ON_FRAMES and len(given) != (ON_FRAMES[name] or max(1, len(given))):
        several = SEVERAL_FRAMES.get(name)
        more = f"; {several} takes several" if several else ""
        raise StateError(
            f"{name} takes one frame, and {len(given)} are given", f'give frames=("tool",){more}'
        )
    if given and name not in (*ON_FRAMES, *WITH_WRENCHES):
        raise StateError(
            f"{name} does not depend on frames, and frames is {shown(given)}", "leave frames out"
        )
    return QuantityRequest(name, given, axes)
