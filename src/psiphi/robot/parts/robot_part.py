"""`robot.part("arm_*")`: the dynamics of some joints of a robot, with vectors of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, Numbers, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import is_foreign, matching_names, read_array
from psiphi.functions.arrays.array_dispatch import convert_like
from psiphi.model.motors import velocity_indices

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot


def part(robot: Robot, joints: str | Iterable[str]) -> RobotPart:
    """Some joints of the robot, by names or patterns: their dynamics, with vectors of their own.

    >>> import psiphi as pp
    >>> robot = pp.load("g1")
    >>> arm = robot.part("left_*wrist*")
    >>> arm.nv, arm.mass_matrix(robot.neutral()).shape
    (3, (3, 3))
    """
    names = matching_names("joints", joints, robot.joint_names, robot.name)
    return RobotPart(robot, tuple(names))


@dataclass(frozen=True, eq=False)
class RobotPart:
    """Some joints of a robot, from `robot.part`. q and v are those of the whole robot; torques and
    accelerations of the part are (..., n), of the other joints (..., nv - n).

    `rest` says what the other joints do: None, they keep their velocities (with v = 0 there, they
    are locked); an array (..., nv - n), they have these accelerations; "free", they are carried
    along without torques.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> wrist, q, v = robot.part("wrist_*"), robot.random(seed=0), np.zeros(6)
    >>> a = wrist.forward_dynamics(q, v, wrist.gravity(q))
    >>> bool(abs(a).max() < 1e-9)
    True
    >>> bool(abs(wrist.forward_dynamics(q, v, wrist.gravity(q), rest="free")).max() > 1.0)
    True
    """

    robot: Robot
    joint_names: tuple[str, ...]

    @cached_property
    def coordinates(self) -> np.ndarray:
        """The indices (n,) of its velocities in v."""
        return velocity_indices(self.robot, self.joint_names)

    @cached_property
    def other_coordinates(self) -> np.ndarray:
        """The indices (nv - n,) of the velocities of the other joints."""
        return np.setdiff1d(np.arange(self.robot.nv), self.coordinates)

    @property
    def nv(self) -> int:
        """The number n of its velocities."""
        return len(self.coordinates)

    def forward_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        rest: Numbers | str | None = None,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        check: bool = False,
    ) -> Array:
        """The accelerations (..., n) of the part for its torques tau (..., n)."""
        held = np.zeros(self.robot.nv)
        if not self._is_free(rest):
            held[self.other_coordinates] = 1.0
        a = self._whole("rest", rest, self.other_coordinates)
        torques = self._whole("tau", tau, self.coordinates)
        found, _ = self.robot.hybrid_dynamics(
            q, v, torques, a, held, f_ext=f_ext, axes=axes, check=check
        )
        return found[..., self.coordinates]

    def inverse_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        rest: Numbers | str | None = None,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        check: bool = False,
    ) -> Array:
        """The torques (..., n) of the part for its accelerations a (..., n)."""
        held, options = np.zeros(self.robot.nv), {"f_ext": f_ext, "axes": axes, "check": check}
        held[self.coordinates] = 1.0
        own = self._whole("a", a, self.coordinates)
        if self._is_free(rest):
            zero = np.zeros(self.robot.nv)
            _, tau = self.robot.hybrid_dynamics(q, v, zero, own, held, **options)
        else:
            every = own + self._whole("rest", rest, self.other_coordinates)
            tau = self.robot.inverse_dynamics(q, v, every, **options)
        return tau[..., self.coordinates]

    def mass_matrix(self, q: Numbers) -> Array:
        """(..., n, n): the rows and columns of the part in the mass matrix; that of the part while
        the other joints are locked."""
        rows = self.coordinates
        return self.robot.mass_matrix(q)[..., rows, :][..., rows]

    def bias(self, q: Numbers, v: Numbers) -> Array:
        """(C v + g) of the part (..., n)."""
        return self.robot.bias(q, v)[..., self.coordinates]

    def gravity(self, q: Numbers) -> Array:
        """g of the part (..., n)."""
        return self.robot.gravity(q)[..., self.coordinates]

    def jacobian(self, q: Numbers, frame: str, *, axes: str = "world") -> Array:
        """(..., 6, n): the columns of the part in the Jacobian of a frame."""
        return self.robot.jacobian(q, frame, axes=axes)[..., self.coordinates]

    def __repr__(self) -> str:
        return f"<part of {self.robot.name}: {', '.join(self.joint_names)}>"

    @staticmethod
    def _is_free(rest: Numbers | str | None) -> bool:
        if isinstance(rest, str) and rest != "free":
            raise StateError(
                f"rest is {shown(rest)}",
                'give "free", accelerations (..., nv - n), or leave it out',
            )
        return isinstance(rest, str)

    def _whole(self, name: str, value: Any, rows: np.ndarray) -> Any:
        """The vector (..., nv) with these entries; zero elsewhere, and where none are given."""
        if value is None or isinstance(value, str):
            return np.zeros(self.robot.nv)
        places = np.zeros((len(rows), self.robot.nv))
        places[np.arange(len(rows)), rows] = 1.0
        if is_foreign(value):
            if value.shape[-1:] != (len(rows),):
                self._refuse(name, f"has shape {tuple(value.shape)}", rows)
            return value @ convert_like(value, places)
        array, fault = read_array(value, (len(rows),))
        if fault:
            self._refuse(name, fault, rows)
        out = np.zeros((*array.shape[:-1], self.robot.nv), dtype=np.result_type(array, np.float32))
        out[..., rows] = array
        return out

    def _refuse(self, name: str, fault: str, rows: np.ndarray) -> None:
        what = "the part" if rows is self.coordinates else "the other joints"
        raise StateError(
            f"{name} {fault}", f"give (..., {len(rows)}) numbers, one for each velocity of {what}"
        )
