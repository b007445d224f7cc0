"""Nonlinear springs of joints. A spring with the deflection y = q - rest exerts the torque -s(y).

    s(y) = preload + k y + c2 y^2 + c3 y^3 + ...
           + sum_i b_i max(y - knot_i, 0) + sum_i d_i max(y - knot_i, 0)^3

A linear spring has k only, the joint's `stiffness`. A table is linear between its points and
extends its first and last piece: `preload` and k = `first_slope` are those of the first piece, b_i
the `slope_changes` at the inner points. A smooth table is a natural cubic spline through its
points, linear beyond them: d_i are its `cubic_terms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from psiphi._util.text import shown

if TYPE_CHECKING:
    from psiphi.model.builder.builder_values import Fail

LARGEST = 1e50  # as in builder_values.py
POINTS, SMOOTH_POINTS = 64, 32  # the most points of a table; every time step evaluates all
TERMS = 8  # the most coefficients of a polynomial
FORMS = (
    'write {"deflection": [...], "torque": [...]}, with "smooth": True for a cubic spline, '
    'or {"polynomial": [c2, c3, ...]} with stiffness'
)


class Spring(NamedTuple):
    """The nonlinear part of a spring: coefficients c2, c3, ... of a polynomial, or a table."""

    polynomial: tuple[float, ...] = ()
    deflection: tuple[float, ...] = ()
    torque: tuple[float, ...] = ()
    smooth: bool = False

    @property
    def is_table(self) -> bool:
        return bool(self.deflection)

    @property
    def slopes(self) -> tuple[float, ...]:
        """The slopes of the pieces of a table."""
        points = pairwise(zip(self.deflection, self.torque, strict=True))
        return tuple((f1 - f0) / (y1 - y0) for (y0, f0), (y1, f1) in points)

    @property
    def curvatures(self) -> np.ndarray:
        """The second derivatives of a smooth table at its points; zero at both ends."""
        h, n = np.diff(self.deflection), len(self.deflection)
        A, right = np.eye(n), np.zeros(n)
        for i in range(1, n - 1):
            A[i, i - 1 : i + 2] = h[i - 1], 2.0 * (h[i - 1] + h[i]), h[i]
            right[i] = 6.0 * (self.slopes[i] - self.slopes[i - 1])
        return np.linalg.solve(A, right)

    @property
    def first_slope(self) -> float:
        """The slope of a table below its first point."""
        if not self.smooth:
            return self.slopes[0]
        return float(
            self.slopes[0] - (self.deflection[1] - self.deflection[0]) * self.curvatures[1] / 6.0
        )

    @property
    def preload(self) -> float:
        """The value of a table's first piece at y = 0."""
        return self.torque[0] - self.first_slope * self.deflection[0] if self.is_table else 0.0

    @property
    def slope_changes(self) -> list[tuple[float, float]]:
        """(knot, change of the slope) at the inner points."""
        if self.smooth:
            return []
        return [
            (y, b - a)
            for y, (a, b) in zip(self.deflection[1:], pairwise(self.slopes), strict=False)
        ]

    @property
    def cubic_terms(self) -> list[tuple[float, float]]:
        """(knot, change of the third derivative / 6) at all points of a smooth table."""
        if not self.smooth:
            return []
        thirds = np.concatenate([[0.0], np.diff(self.curvatures) / np.diff(self.deflection), [0.0]])
        return list(zip(self.deflection, (np.diff(thirds) / 6.0).tolist(), strict=True))

    def slope(self, y: float | np.ndarray) -> np.ndarray:
        """s'(y) of a table."""
        x = np.asarray(y)
        linear = sum(b * (x >= knot) for knot, b in self.slope_changes)
        cubic = sum(3.0 * d * np.maximum(x - knot, 0.0) ** 2 for knot, d in self.cubic_terms)
        return np.asarray(self.first_slope + linear + cubic)

    @property
    def stiffness(self) -> float:
        """The slope of a table at y = 0."""
        return float(self.slope(0.0))

    @property
    def max_slope(self) -> float:
        """The largest slope of a table: at a point, or between two where the curvature is zero."""
        y = np.array(self.deflection)
        M = self.curvatures if self.smooth else np.zeros(len(y))
        inflections = [
            a - u * (b - a) / (w - u)
            for (a, b), (u, w) in zip(pairwise(y), pairwise(M), strict=True)
            if u * w < 0.0
        ]
        return float(np.max(self.slope(np.array([y[0] - 1.0, *y, *inflections]))))


def read_spring(value: object, nv: int, stiffness: object, fail: Fail) -> Spring | None:
    """A spring from a mapping, or a Spring."""
    if value is None:
        return None
    if nv != 1:
        fail(
            f"spring is given, but the joint has {nv} velocities",
            "give it stiffness: one number, or one a coordinate",
        )
    fields = value
    if isinstance(value, Spring):
        fields = {name: x for name, x in value._asdict().items() if x}
    names = set(fields) if isinstance(fields, Mapping) else set()
    if not isinstance(fields, Mapping) or names not in (
        {"polynomial"},
        {"deflection", "torque"},
        {"deflection", "torque", "smooth"},
    ):
        fail(f"spring is {shown(value)}, expected a table or a polynomial", FORMS)
    smooth = fields.get("smooth", False)
    if not isinstance(smooth, bool | np.bool_):
        fail(f"smooth of the spring is {shown(smooth)}, expected True or False", FORMS)
    rows = {
        name: _row(f"{name} of the spring", fields[name], fail)
        for name in sorted(names - {"smooth"})
    }
    spring = Spring(**rows, smooth=bool(smooth))
    if not spring.is_table:
        if not 1 <= len(spring.polynomial) <= TERMS:
            count = len(spring.polynomial)
            fail(
                f"polynomial of the spring has {count} numbers, expected 1 to {TERMS}",
                "give c2, c3, ...",
            )
        return spring
    if stiffness is not None:
        fail(
            "both stiffness and a table of the spring are given",
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
            f"deflection of the spring is {shown(list(y))}, expected increasing numbers",
            "sort the points, each once",
        )
    return spring


def _row(what: str, value: object, fail: Fail) -> tuple[float, ...]:
    try:
        numbers: np.ndarray = np.asarray(value, dtype=float)
        if numbers.ndim == 1 and np.asarray(value).dtype.kind in "iuf":
            row = tuple(numbers.tolist())
            if all(isfinite(x) and abs(x) < LARGEST for x in row):
                return row
    except (TypeError, ValueError, OverflowError):
        pass
    fail(f"{what} is {shown(value)}, expected a row of finite numbers", FORMS)
