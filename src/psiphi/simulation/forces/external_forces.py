"""`f_ext` of a simulation: wrenches on frames, constant or functions of time.

    tau_push = sum J(frame)* f(t)

A wrench is [moment; force] at the frame's origin in world axes, as in `robot.forward_dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import finite_array
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.plant import Plant

Push: TypeAlias = Mapping[str, Numbers | Callable[[float], Any]]
REMEDY = (
    'give {"tool": (0, 0, 0, 10, 0, 0)}: moment, then force, in world axes; or functions of the '
    "time t that return them"
)


class ExternalForces:
    """The wrenches on a system, and their torque (..., nv)."""

    def __init__(self, plant: Plant, batch: tuple[int, ...], f_ext: Push):
        if not (plant.is_robot or isinstance(plant.system, System)):
            raise StateError(
                f"f_ext is given for {plant.name}, expected a robot or a closed chain of psiphi",
                "leave it out",
            )
        if not isinstance(f_ext, Mapping):
            raise StateError(f"f_ext is {shown(f_ext)}, expected a dict by frames", REMEDY)
        self.robot, self.batch = plant.robot, batch
        self.wrenches: dict[str, Any] = {}
        for name, value in f_ext.items():
            frame = self.robot.frame(name).name
            self.wrenches[frame] = value if callable(value) else self._checked(frame, value)

    def __bool__(self) -> bool:
        return bool(self.wrenches)

    def torque(self, t: float, q: np.ndarray) -> np.ndarray:
        """The sum of J* f(t) at q."""
        total = np.zeros((*q.shape[:-1], self.robot.nv))
        for frame, wrench in self.wrenches.items():
            f = self._checked(frame, wrench(t)) if callable(wrench) else wrench
            total = total + np.einsum("...ij,...i->...j", self.robot.jacobian(q, frame), f)
        return total

    def sampled_torque(self, t: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The torques (..., n, nv) at n samples."""
        each = [self.torque(float(time), q[..., k, :]) for k, time in enumerate(t)]
        return np.stack(each, axis=-2) if each else np.zeros((*q.shape[:-1], self.robot.nv))

    def sampled_wrenches(self, t: np.ndarray) -> dict[str, np.ndarray]:
        """{frame: wrenches (..., n, 6)} at n times."""
        return {
            frame: np.stack([self._checked(frame, wrench(float(x))) for x in t], axis=-2)
            if callable(wrench)
            else wrench[..., None, :]
            for frame, wrench in self.wrenches.items()
        }

    def _checked(self, frame: str, value: Any) -> np.ndarray:
        """A wrench (6,), or one for each motion, (..., 6)."""
        f = finite_array(f"f_ext of {frame}", value, (6,), REMEDY)
        try:
            return np.broadcast_to(f, (*self.batch, 6))
        except ValueError:
            expected = f"(6,) or {(*self.batch, 6)}" if self.batch else "(6,)"
            raise StateError(
                f"f_ext of {frame} has shape {f.shape}, expected {expected}", REMEDY
            ) from None
