"""`pp.Ground`: a plane or heights that robots stand on; friction, restitution and compliance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import count_of, shown
from psiphi._util.validate import (
    nonnegative_number,
    one_of,
    positive_number,
    read_array,
    whole_number,
)
from psiphi.model.contact.contact_points import Vector, perpendicular
from psiphi.model.contact.height_field import HeightGrid
from psiphi.model.spatial.screws import cross

LAWS = ("coulomb", "convex")
LEAST_SMOOTH, MOST_SMOOTH = 1e-6, 1.0  # m/s


@dataclass(frozen=True, eq=False, repr=False)
class Ground:
    """The plane through `point` with the unit normal `normal`, or heights above it; rigid unless
    `stiffness` is given.

    friction     Coulomb's coefficient: one number, or (..., contacts), or (..., 1), with an entry
                 for each motion of a batch
    restitution  Newton's coefficient, 0 to 1: the speed after an impact over that before; as
                 friction. It is not applied where it would add energy
    stiffness    N/m of each contact; damping in N s/m goes with it
    iterations   at most so many iterations of the solver in a step
    tolerance    m/s: a step whose contacts violate the law by more is an event "contact not solved"
    height       (..., nx, ny) in m: the heights of a grid above `point`, with an entry for each
                 motion of a batch; height[i, j] is at the i-th x and the j-th y
    size         (x, y) in m: the sides of the grid, whose centre is above or below `point`
    law          "coulomb"; or "convex", its relaxation, in which contacts that slide lift off at
                 friction times the speed of sliding
    smooth       m/s: 0, or a speed that smooths the law, for gradients: contacts push before they
                 touch, and creep where they hold

    >>> Ground(friction=0.8)
    Ground(friction=0.8)
    >>> steps = Ground(height=[[0.0, 0.0], [0.1, 0.1]], size=(2.0, 1.0))
    >>> steps.grid.origin, steps.grid.spacing
    ((-1.0, -0.5, 0.0), (2.0, 1.0))
    """

    friction: Numbers = 0.8
    restitution: Numbers = 0.0
    stiffness: Numbers | None = None
    damping: Numbers = 0.0
    normal: Numbers = (0.0, 0.0, 1.0)
    point: Numbers = (0.0, 0.0, 0.0)
    iterations: int = 200
    tolerance: float = 1e-6
    height: Numbers | None = None
    size: Numbers | None = None
    law: str = "coulomb"
    smooth: float = 0.0

    def __post_init__(self) -> None:
        _check_coefficient("friction", self.friction, np.inf)
        _check_coefficient("restitution", self.restitution, 1.0)
        _check_coefficient("damping", self.damping, np.inf)
        if self.stiffness is not None:
            _check_coefficient("stiffness", self.stiffness, np.inf)
            if not (np.asarray(self.stiffness, dtype=float) > 0.0).all():
                raise ModelError(
                    f"stiffness is {shown(self.stiffness)}",
                    "give a number above 0, or leave it out for a rigid ground",
                )
        elif np.any(np.asarray(self.damping, dtype=float)):
            raise ModelError(
                f"damping is {shown(self.damping)}, but the ground is rigid",
                "give stiffness= as well, or leave damping out",
            )
        normal = _triple("normal", self.normal)
        if not normal.any():
            raise ModelError("normal is zero, which has no direction", "give a unit vector")
        _triple("point", self.point)
        if whole_number("iterations", self.iterations) < 1:
            raise ModelError("iterations is 0", "give at least 1")
        positive_number("tolerance", self.tolerance, "give a speed in m/s, such as 1e-6")
        one_of("law", self.law, LAWS, kind=ModelError)
        smooth = nonnegative_number("smooth", self.smooth, "give a speed in m/s, such as 1e-2")
        if smooth and not LEAST_SMOOTH <= smooth <= MOST_SMOOTH:
            raise ModelError(
                f"smooth is {shown(self.smooth)}",
                f"give a speed from {LEAST_SMOOTH:g} to {MOST_SMOOTH:g} m/s, or 0",
            )
        self._check_heights()

    def _check_heights(self) -> None:
        if self.height is None:
            if self.size is not None:
                raise ModelError(
                    f"size is {shown(self.size)}, but the ground is a plane",
                    "give height=, an array (nx, ny), or leave size out",
                )
            return
        array, fault = read_array(self.height, None)
        if fault or array.ndim < 2 or min(array.shape[-2:]) < 2 or array.dtype.kind not in "iuf":
            given = shown(self.height) if fault or array.ndim < 1 else f"of shape {array.shape}"
            raise ModelError(
                f"height is {given}", "give an array (nx, ny) of numbers, at least (2, 2)"
            )
        holes = ~(np.abs(array.astype(float)) < 1e50)
        if holes.any():
            where = tuple(int(i) for i in np.argwhere(holes)[0])
            raise ModelError(
                f"height has {count_of(int(holes.sum()), 'entry', 'entries')} that "
                f"{'is' if holes.sum() == 1 else 'are'} not finite, the first at {where}",
                "fill holes, with the heights around them for instance",
            )
        sides, fault = read_array(self.size, None)
        if fault or sides.shape != (2,) or not ((sides > 0.0) & (sides < 1e50)).all():
            raise ModelError(
                f"size is {shown(self.size)}, and height is given",
                "give the sides (x, y) of the grid, two lengths above 0 in metres",
            )
        if self.axes[0] != (0.0, 0.0, 1.0):
            raise ModelError(
                f"normal is {shown(self.normal)}, and height is given",
                "leave normal out: heights are along z",
            )

    @cached_property
    def axes(self) -> tuple[Vector, Vector, Vector]:
        """The normal and two tangents, world axes: x and y for a horizontal ground."""
        given = _triple("normal", self.normal)
        x, y, z = (given / np.linalg.norm(given)).tolist()
        normal = (x, y, z)
        if normal == (0.0, 0.0, 1.0):
            return normal, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
        first = perpendicular(normal)
        a, b, c = cross(normal, first)
        return normal, first, (a, b, c)

    @cached_property
    def grid(self) -> HeightGrid | None:
        """The grid of the heights; None for a plane."""
        if self.height is None:
            return None
        nx, ny = self.heights.shape[-2:]
        lx, ly = np.asarray(self.size, dtype=float).tolist()
        x, y, z = _triple("point", self.point).tolist()
        origin = x - 0.5 * lx, y - 0.5 * ly, z
        return HeightGrid((nx, ny), origin, (lx / (nx - 1), ly / (ny - 1)))

    @cached_property
    def heights(self) -> np.ndarray:
        """The heights (..., nx, ny)."""
        return np.ascontiguousarray(self.height, dtype=float)

    @cached_property
    def offset(self) -> float:
        """The distance of the plane from the origin of the world, along the normal."""
        return float(np.dot(self.axes[0], _triple("point", self.point)))

    @property
    def plane(self) -> dict[str, list[float]]:
        """The normal, of length 1, and a point of the plane."""
        return {"normal": list(self.axes[0]), "point": _triple("point", self.point).tolist()}

    @property
    def surface(self) -> dict[str, list]:
        """The normal and a point of the plane; of heights also these, and their size."""
        if self.height is None:
            return dict(self.plane)
        sides = np.asarray(self.size, dtype=float).tolist()
        return {**self.plane, "height": self.heights.tolist(), "size": sides}

    @property
    def is_rigid(self) -> bool:
        return self.stiffness is None

    @property
    def rebounds(self) -> bool:
        """Whether some contact has restitution."""
        return bool(np.any(np.asarray(self.restitution, dtype=float)))

    def __repr__(self) -> str:
        default = {name: field.default for name, field in self.__dataclass_fields__.items()}
        given = [
            f"{name}={getattr(self, name)!r}"
            for name in default
            if name == "friction"
            or (name != "height" and not np.array_equal(getattr(self, name), default[name]))
        ]
        given += [] if self.height is None else [f"height={self.heights.shape}"]
        return f"Ground({', '.join(given)})"


def check_ground(name: str, value: object) -> Ground:
    """`value`, checked to be a ground; `name` is the argument, "explain: contacts" for instance."""
    if not isinstance(value, Ground):
        raise StateError(f"{name} is {shown(value)}, expected a ground", "give a pp.Ground")
    return value


def _check_coefficient(name: str, value: object, most: float) -> None:
    array, fault = read_array(value, None)
    fault = fault or isinstance(value, bool | np.bool_)
    if fault or not ((array >= 0.0) & (array <= most) & (array < 1e50)).all():
        span = "of at least 0" if most == np.inf else f"from 0 to {most:g}"
        raise ModelError(f"{name} is {shown(value)}", f"give a finite number {span}")


def _triple(name: str, value: object) -> np.ndarray:
    array, fault = read_array(value, None)
    if fault or array.shape != (3,) or not np.isfinite(array.astype(float)).all():
        raise ModelError(f"{name} is {shown(value)}", "give three finite numbers (x, y, z)")
    return array.astype(float)
