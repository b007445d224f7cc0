"""The law of a spring, on numbers, arrays or tape expressions.

With y = q - rest and z_i = max(y - knot_i, 0), a spring exerts the torque -s and stores U:

    s(y) = preload + k y + c2 y^2 + ... + sum_i b_i z_i + d_i z_i^3
    U(y) = preload y + k y^2 / 2 + c2 y^3 / 3 + ... + sum_i b_i z_i^2 / 2 + d_i z_i^4 / 4

The numbers are keyword arguments: `stiffness` k, `rest`, `preload`, `c2`, `c3`, ..., `knot0`, ...,
and `slope_change0` b_0 or `cubic0` d_0, ... `model/builder/nonlinear_springs.py` computes them;
`joint_springs.py` selects the springs that act.
"""

from __future__ import annotations

from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.spatial.branch_free import less, maximum

NO_SPRING = Spring()


def spring_values(stiffness: AnyScalar, rest: AnyScalar, spring: Spring) -> dict[str, Any]:
    """The numbers of one spring by name."""
    found: dict[str, Any] = {"stiffness": stiffness, "rest": rest}
    if spring.is_table:
        found["stiffness"] = spring.first_slope
    found |= {"preload": spring.preload} if spring.preload else {}
    found |= {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
    for name, points in (("slope_change", spring.slope_changes), ("cubic", spring.cubic_terms)):
        for i, (knot, x) in enumerate(points):
            found |= {f"knot{i}": knot, f"{name}{i}": x}
    return found


def spring_force(x: AnyScalar, stiffness: AnyScalar, rest: AnyScalar, **nonlinear: Any) -> Any:
    """s(y)."""
    y = x - rest
    s = _horner(y, [stiffness, *_polynomial(nonlinear)]) + nonlinear.get("preload", 0.0)
    for knot, b, d in _knots(nonlinear):
        z = less(knot, y) * (y - knot)
        s = s + _times(b, z) + _times(d, z * z * z)
    return s


def spring_slope(x: AnyScalar, stiffness: AnyScalar, rest: AnyScalar, **nonlinear: Any) -> Any:
    """max(s'(y), 0)."""
    y = x - rest
    slope = stiffness + _horner(y, [n * c for n, c in enumerate(_polynomial(nonlinear), start=2)])
    for knot, b, d in _knots(nonlinear):
        past = less(knot, y)
        slope = slope + _times(b, past) + _times(d, 3.0 * past * (y - knot) * (y - knot))
    return maximum(slope, 0.0) if nonlinear else slope


def spring_energy(x: AnyScalar, stiffness: AnyScalar, rest: AnyScalar, **nonlinear: Any) -> Any:
    """U(y) - U(0), summed over the last axis, (...)."""
    y = x - rest
    terms = [c / n for n, c in enumerate([stiffness, *_polynomial(nonlinear)], start=2)]
    U = y * _horner(y, terms) + nonlinear.get("preload", 0.0) * y
    for knot, b, d in _knots(nonlinear):
        zz, zz_0 = (z * z for z in (maximum(y - knot, 0.0), maximum(-knot, 0.0)))
        U = U + _times(b, 0.5 * (zz - zz_0)) + _times(d, 0.25 * (zz * zz - zz_0 * zz_0))
    return U.sum(axis=-1)


def _times(weight: AnyScalar | None, value: AnyScalar) -> Any:
    """weight * value; 0 without a weight."""
    return 0.0 if weight is None else weight * value


def _polynomial(nonlinear: dict[str, Any]) -> list[Any]:
    """c2, c3, ..."""
    return [c for name, c in nonlinear.items() if name[0] == "c" and name[1:].isdigit()]


def _horner(y: AnyScalar, terms: list[Any]) -> Any:
    """y (terms[0] + y (terms[1] + ...))."""
    total = 0.0 * y
    for c in reversed(terms):
        total = (total + c) * y
    return total


def _knots(nonlinear: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """(knot, b, d) of each knot; None for a missing coefficient."""
    numbered = [(name[4:], knot) for name, knot in nonlinear.items() if name.startswith("knot")]
    get = nonlinear.get
    return [(knot, get(f"slope_change{i}"), get(f"cubic{i}")) for i, knot in numbered]
