"""The data of a closed system: the forest of its mechanisms, the constraints, and the motors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.validate import read_array
from psiphi.functions import argument_checks
from psiphi.model import motors
from psiphi.model.loops.constraints import Closure, Constraint, MimicConstraint
from psiphi.model.model import Body, Frame, Joint
from psiphi.model.state_checks import check_column_order
from psiphi.robot.robot import Robot


@with_late_methods
class Forest:
    """Mechanisms as one robot, the constraints between them, and their states."""

    def __init__(
        self,
        robot: Robot,
        constraints: Iterable[Constraint],
        mimics: Iterable[MimicConstraint] = (),
        passive: tuple[str, ...] = (),
        object_body: str = "",
    ):
        self.robot = robot
        self.closure = Closure(robot.model, tuple(constraints), tuple(mimics))
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
        """The constraints between frames, with name, kind, first, second and friction."""
        return self.closure.constraints

    @property
    def nc(self) -> int:
        """The number of constraint rows."""
        return self.closure.size

    @cached_property
    def actuated(self) -> np.ndarray:
        """Velocity coordinates with motors: all but those of the object and of passive joints."""
        passive = {i for name in self.passive for i in self.robot.joint(name).coordinates}
        return np.array([i for i in range(self.nv) if i not in passive], dtype=int)

    @property
    def na(self) -> int:
        """The number of velocity coordinates with motors."""
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
        """The configuration with all joints at zero; loops need not be closed."""
        return self.robot.neutral()

    def random(
        self,
        rng: np.random.Generator | int | None = None,
        size: tuple[int, ...] | int | None = None,
        *,
        seed: int | None = None,
    ) -> np.ndarray:
        """Random configurations; loops need not be closed."""
        return self.robot.random(rng, size, seed=seed)

    def integrate(self, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> np.ndarray:
        return self.robot.integrate(q, v, dt)

    def difference(self, q0: Numbers, q1: Numbers) -> np.ndarray:
        return self.robot.difference(q0, q1)

    def normalize(self, q: Numbers) -> np.ndarray:
        return self.robot.normalize(q)

    def energy(self, q: Numbers, v: Numbers) -> Array:
        return self.robot.energy(q, v)

    def frame_pose(
        self, q: Numbers, frame: str, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        return self.robot.frame_pose(q, frame, out=out, dtype=dtype, check=check)

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickles the definition; functions are compiled again."""
        c = self.closure
        return type(self), (self.robot, c.constraints, c.mimics, self.passive, self.object)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.robot, self.key))

    if TYPE_CHECKING:  # implemented in a later package

        def html(
            self, path: str | os.PathLike[str], live: bool = False, **options: Any
        ) -> Path: ...

        def _repr_html_(self) -> str: ...

    def __repr__(self) -> str:
        constraints = ", ".join(
            [
                *(f"{c.name}: {c.kind}" for c in self.contacts),
                *(m.name for m in self.closure.mimics),
            ]
        )
        rows = f"{self.nc} constraint row{'s' if self.nc > 1 else ''}"
        return f"<System {self.name!r}: nq={self.nq}, nv={self.nv}, {rows} ({constraints})>"

    @property
    def key(self) -> str:
        """What compiled code depends on besides the robot."""
        return f"{self.closure.key} {self.idle.tolist()}"

    def state_arrays(self, **arrays: Numbers) -> tuple[np.ndarray, ...]:
        """(Internal use only) The checked arguments as float arrays (..., nq) or (..., nv); tau of
        the coordinates with motors alone, (..., na), is expanded with zeros."""
        out = []
        for name, value in arrays.items():
            array, fault = read_array(value, None)
            if fault:
                raise StateError(f"{name} {fault}", "give an array")
            if array is not value:  # a table has columns
                check_column_order(self.robot, name, value, "q" if name == "q" else "v")
            array = array.astype(float, copy=False)
            size = self.nq if name == "q" else self.nv
            if name == "tau":
                array = motors.expand_torques(array, self.actuated, self.nv)
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

    def bind_parameters(self, parameters: Numbers) -> Self:
        """(Internal use only) The same system with other parameters; it shares the compiled
        functions."""
        bound = object.__new__(type(self))
        robot = self.robot.bind_parameters(parameters)  # type: ignore[attr-defined]
        bound.__dict__.update(self.__dict__, robot=robot)
        bound.__dict__.pop("_closed_functions", None)  # these refer to this system
        return bound

    def with_sample_axis(self) -> Self:
        """(Internal use only) The system for arguments (..., samples, n): batched parameters get a
        samples axis."""
        parameters = self._parameters
        return self if parameters.ndim < 2 else self.bind_parameters(parameters[..., None, :])

    def at_elements(
        self, batch: tuple[int, ...], index: np.ndarray | int | tuple[int, ...]
    ) -> Self:
        """(Internal use only) The system for some elements of a batch with axes `batch`: selects
        their parameters."""
        parameters = self._parameters
        if parameters.ndim < 2:
            return self
        return self.bind_parameters(
            np.broadcast_to(parameters, (*batch, parameters.shape[-1]))[index]
        )

    def batch_axes(self, *batches: tuple[int, ...]) -> tuple[int, ...]:
        """(Internal use only) The batch axes of arguments and parameters, broadcast."""
        parameters = self._parameters.shape[:-1]
        return argument_checks.batch_axes(
            self.name, {"the state": np.broadcast_shapes(*batches), "parameters": parameters}
        )

    @property
    def _parameters(self) -> np.ndarray:
        """The parameters (..., n) that `at` has bound; empty if none are free."""
        return (
            np.zeros(0)
            if self.robot.freed is None
            else np.asarray(self.robot.parameter_arguments[0])
        )

    def _frame_or_object(self, frame: str | None) -> str:
        if frame is None and not self.object:
            raise StateError(
                "no frame is given, and the system holds no object", "name a frame of the robot"
            )
        return self.robot.frame(self.object if frame is None else frame).name
