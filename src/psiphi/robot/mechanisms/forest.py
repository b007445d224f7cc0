"""What a closed system is: the forest of its mechanisms, what holds them together, which coordinates have motors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.validate import read_array
from psiphi.functions import argument_checks
from psiphi.model import motors
from psiphi.model.loops.constraints import Closure, Constraint
from psiphi.model.model import Body, Frame, Joint
from psiphi.model.state_checks import check_order
from psiphi.robot.robot import Robot


@with_late_methods
class Forest:
    """Mechanisms and constraints, and the states they have."""

    def __init__(
        self,
        robot: Robot,
        constraints,
        follows=(),
        passive: tuple[str, ...] = (),
        object_body: str = "",
    ):
        self.robot = robot
        self.closure = Closure(robot.model, tuple(constraints), tuple(follows))
        self.passive, self.object = passive, object_body

    @property
    def name(self) -> str:
        return self.robot.name

    @property
    def nq(self) -> int:
        return self.robot.nq

    @property
    def nv(self) -> int:
        return self.robot.nv

    @property
    def joints(self) -> tuple[Joint, ...]:
        return self.robot.joints

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.robot.bodies

    @property
    def frames(self) -> Mapping[str, Frame]:
        return self.robot.frames

    @property
    def contacts(self) -> tuple[Constraint, ...]:
        """The constraints between frames: .name .kind .first .second .friction."""
        return self.closure.constraints

    @property
    def nc(self) -> int:
        """How many constraint rows."""
        return self.closure.size

    @cached_property
    def actuated(self) -> np.ndarray:
        """The velocity coordinates that have motors: all but the object's and those named passive."""
        idle = {i for name in self.passive for i in self.robot.joint(name).coordinates}
        return np.array([i for i in range(self.nv) if i not in idle], dtype=int)

    @property
    def na(self) -> int:
        return len(self.actuated)

    @cached_property
    def idle(self) -> np.ndarray:
        """The velocity coordinates without motors."""
        return np.setdiff1d(np.arange(self.nv), self.actuated)

    def frame(self, name: str) -> Frame:
        return self.robot.frame(name)

    def joint(self, name: str) -> Joint:
        return self.robot.joint(name)

    def neutral(self) -> np.ndarray:
        """Every joint at its zero; not assembled."""
        return self.robot.neutral()

    def random(
        self,
        rng: np.random.Generator | int | None = None,
        size: tuple[int, ...] | int | None = None,
        *,
        seed: int | None = None,
    ) -> np.ndarray:
        """Random joints; not assembled."""
        return self.robot.random(rng, size, seed=seed)

    def integrate(self, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> np.ndarray:
        return self.robot.integrate(q, v, dt)

    def difference(self, q0: Numbers, q1: Numbers) -> np.ndarray:
        return self.robot.difference(q0, q1)

    def normalize(self, q: Numbers) -> np.ndarray:
        return self.robot.normalize(q)

    def energy(self, q: Numbers, v: Numbers) -> Array:
        return self.robot.energy(q, v)

    def frame_pose(self, q: Numbers, frame: str, **options: Any) -> Array:
        return self.robot.frame_pose(q, frame, **options)

    def __reduce__(self):
        """What it is; what was compiled is made anew."""
        c = self.closure
        return type(self), (self.robot, c.constraints, c.follows, self.passive, self.object)

    def __eq__(self, other) -> bool:
        return isinstance(other, Forest) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.robot, self.key))

    if TYPE_CHECKING:  # implemented in a later package

        def html(
            self, path: str | os.PathLike[str], live: bool = False, **options: Any
        ) -> Path: ...

        def _repr_html_(self) -> str: ...

    def __repr__(self) -> str:
        held = ", ".join(
            [
                *(f"{c.name}: {c.kind}" for c in self.contacts),
                *(f.name for f in self.closure.follows),
            ]
        )
        rows = f"{self.nc} constraint row{'s' if self.nc > 1 else ''}"
        return f"<System {self.name!r}: nq={self.nq}, nv={self.nv}, {rows} ({held})>"

    @property
    def key(self) -> str:
        """What code depends on, besides the robot."""
        return f"{self.closure.key} {self.idle.tolist()}"

    def state_arrays(self, **arrays) -> tuple[np.ndarray, ...]:
        """The arrays as the functions take them; torques of the actuated coordinates are filled up with zeros."""
        out = []
        for name, value in arrays.items():
            array, fault = read_array(value, None)
            if fault:
                raise StateError(f"{name} {fault}", "give an array")
            if array is not value:  # a table has columns
                check_order(self.robot, name, value, "q" if name == "q" else "v")
            array = array.astype(float, copy=False)
            size = self.nq if name == "q" else self.nv
            if name == "tau":
                array = motors.filled(array, self.actuated, self.nv)
            if array.shape[-1:] != (size,):
                also = (
                    f" (or {self.na}, the actuated ones)"
                    if name == "tau" and self.na != self.nv
                    else ""
                )
                what = "nq" if name == "q" else "nv"
                raise StateError(
                    f"{name} has shape {array.shape}, expected (..., {size}){also}",
                    f"{what} of {self!r} is {size}",
                )
            out.append(array)
        return tuple(out)

    def bind_parameters(self, parameters: Any) -> Self:
        """The same system, compiled functions included, with other parameters."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, robot=self.robot.bind_parameters(parameters))  # type: ignore[attr-defined]
        made.__dict__.pop(
            "_closed_functions", None
        )  # which know their system, and so its parameters
        return made

    def with_sample_axis(self) -> Self:
        """For arrays (..., samples, n): parameters with batch axes get one for the samples."""
        own = self._parameters
        return self if own.ndim < 2 else self.bind_parameters(own[..., None, :])

    def at_elements(self, lead: tuple[int, ...], which: Any) -> Self:
        """The system of some elements of a batch with axes `lead`: parameters with batch axes are those of these elements."""
        own = self._parameters
        return (
            self
            if own.ndim < 2
            else self.bind_parameters(np.broadcast_to(own, (*lead, own.shape[-1]))[which])
        )

    def batch_axes(self, *leads: tuple[int, ...]) -> tuple[int, ...]:
        """The batch axes of arguments that have `leads`, and of the parameters."""
        own = self._parameters.shape[:-1]
        return argument_checks.batch_axes(
            self.name, {"the state": np.broadcast_shapes(*leads), "parameters": own}
        )

    @property
    def _parameters(self) -> np.ndarray:
        """The free numbers (..., n) that `at` put in; none where nothing is free."""
        return (
            np.zeros(0)
            if self.robot.freed is None
            else np.asarray(self.robot.parameter_arguments[0])
        )

    def _frame_or_object(self, frame) -> str:
        if frame is None and not self.object:
            raise StateError(
                "no frame named, and this system holds no object", "name a frame of the robot"
            )
        return self.robot.frame(self.object if frame is None else frame).name
