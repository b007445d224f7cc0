"""Springs of joints that are more than a number. With the deflection y = q - rest a spring pulls its joint back by

    s(y) = preload + k y + c2 y^2 + c3 y^3 + ... + sum_i bend_i max(y - knot_i, 0) + sum_i bow_i max(y - knot_i, 0)^3

A linear spring is k alone, the joint's `stiffness`. A table is straight between its points, and goes on beyond them as it ends:
that is `preload` and `slope` of its first piece, and the `bends` of its slope at the inner points. A smooth one goes through
its points as a natural cubic spline, whose second derivative is continuous, and straight beyond them: the `bows` at all points.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.text import shown

if TYPE_CHECKING:
    from psiphi.model.builder.builder_values import Fail

LARGEST = 1e50  # as in builder_values.py
POINTS, SMOOTH_POINTS = 64, 32  # of a table: a step looks at all of them
TERMS = 8  # of a polynomial
FORMS = (
    'write {"deflection": [...], "torque": [...]}, "smooth": True among them for a cubic spline, '
    'or {"polynomial": [c2, c3, ...]} beside stiffness'
)


class Spring(NamedTuple):
    """What a spring has besides its stiffness k: the terms from the second on, or a table."""

    polynomial: tuple[float, ...] = ()
    deflection: tuple[float, ...] = ()
    torque: tuple[float, ...] = ()
    smooth: bool = False

    @property
    def is_table(self) -> bool:
        return bool(self.deflection)

    @property
    def slopes(self) -> tuple[float, ...]:
        """Of the pieces of a table."""
        points = pairwise(zip(self.deflection, self.torque, strict=True))
        return tuple((f1 - f0) / (y1 - y0) for (y0, f0), (y1, f1) in points)

    @property
    def curvatures(self) -> np.ndarray:
        """The second derivatives of a smooth table at its points, zero at its ends: those of a natural cubic spline."""
        h, n = np.diff(self.deflection), len(self.deflection)
        A, right = np.eye(n), np.zeros(n)
        for i in range(1, n - 1):
            A[i, i - 1 : i + 2] = h[i - 1], 2.0 * (h[i - 1] + h[i]), h[i]
            right[i] = 6.0 * (self.slopes[i] - self.slopes[i - 1])
        return np.linalg.solve(A, right)

    @property
    def first(self) -> float:
        """The slope of a table before its points."""
        if not self.smooth:
            return self.slopes[0]
        return float(
            self.slopes[0] - (self.deflection[1] - self.deflection[0]) * self.curvatures[1] / 6.0
        )

    @property
    def preload(self) -> float:
        """Where the first piece meets y = 0."""
        return self.torque[0] - self.first * self.deflection[0] if self.is_table else 0.0

    @property
    def bends(self) -> list[tuple[float, float]]:
        """(knot, change of the slope) at the inner points."""
        if self.smooth:
            return []
        return [
            (y, b - a)
            for y, (a, b) in zip(self.deflection[1:], pairwise(self.slopes), strict=False)
        ]

    @property
    def bows(self) -> list[tuple[float, float]]:
        """(knot, a sixth of the change of the third derivative) at all points of a smooth table."""
        if not self.smooth:
            return []
        thirds = np.concatenate([[0.0], np.diff(self.curvatures) / np.diff(self.deflection), [0.0]])
        return list(zip(self.deflection, (np.diff(thirds) / 6.0).tolist(), strict=True))

    def slope(self, y: Any) -> Any:
        """Of a table, at deflections y."""
        bent = sum(bend * (np.asarray(y) >= knot) for knot, bend in self.bends)
        return (
            self.first
            + bent
            + sum(3.0 * bow * np.maximum(np.asarray(y) - knot, 0.0) ** 2 for knot, bow in self.bows)
        )

    @property
    def stiffness(self) -> float:
        """The slope of a table at no deflection."""
        return float(self.slope(0.0))

    @property
    def steepest(self) -> float:
        """The largest slope of a table: at its points, or where its curvature is zero between two of them."""
        y, M = (
            np.array(self.deflection),
            self.curvatures if self.smooth else np.zeros(len(self.deflection)),
        )
        turns = [
            a - u * (b - a) / (w - u)
            for (a, b), (u, w) in zip(pairwise(y), pairwise(M), strict=True)
            if u * w < 0.0
        ]
        return float(np.max(self.slope(np.array([y[0] - 1.0, *y, *turns]))))


def read_spring(value: Any, nv: int, stiffness: Any, fail: Fail) -> Spring | None:
    """A spring from its mapping, or as it was read before."""
    if value is None:
        return None
    if nv != 1:
        fail(
            f"spring is given, and the joint has {nv} velocities",
            "give it stiffness: one number, or one a coordinate",
        )
    given = (
        {name: x for name, x in value._asdict().items() if x}
        if isinstance(value, Spring)
        else value
    )
    known = set(given) if isinstance(given, Mapping) else set()
    if known not in ({"polynomial"}, {"deflection", "torque"}, {"deflection", "torque", "smooth"}):
        fail(f"spring is {shown(value)}, expected a table or a polynomial", FORMS)
    smooth = given.get("smooth", False)
    if not isinstance(smooth, bool | np.bool_):
        fail(f"smooth of the spring is {shown(smooth)}, expected True or False", FORMS)
    rows = {
        name: _row(f"{name} of the spring", given[name], fail)
        for name in sorted(known - {"smooth"})
    }
    spring = Spring(**rows, smooth=bool(smooth))
    if not spring.is_table:
        if not 1 <= len(spring.polynomial) <= TERMS:
            fail(
                f"polynomial of the spring has {len(spring.polynomial)} numbers, expected 1 to {TERMS}",
                "give c2, c3, ...",
            )
        return spring
    if stiffness is not None:
        fail(
            "stiffness and a table of the spring are given",
            "give one of them: a table has its own slopes",
        )
    y, f = spring.deflection, spring.torque
    most = SMOOTH_POINTS if spring.smooth else POINTS
    if not 2 <= len(y) <= most or len(y) != len(f):
        fail(
            f"the spring's table has {len(y)} deflections and {len(f)} torques",
            f"give as many of each, 2 to {most}",
        )
    if any(b <= a for a, b in pairwise(y)) or not all(abs(s) < LARGEST for s in spring.slopes):
        fail(
            f"deflection of the spring is {shown(list(y))}, expected numbers that grow",
            "order the points, each once",
        )
    return spring


def _row(what: str, value: Any, fail: Fail) -> tuple[float, ...]:
    try:
        numbers = np.asarray(value, dtype=float)
        if numbers.ndim == 1 and np.asarray(value).dtype.kind in "iuf":
            row = tuple(numbers.tolist())
            if all(isfinite(x) and abs(x) < LARGEST for x in row):
                return row
    except (TypeError, ValueError, OverflowError):
        pass
    fail(f"{what} is {shown(value)}, expected a row of finite numbers", FORMS)
