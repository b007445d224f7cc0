"""The law of a spring, on arrays of any scalars (`joint_springs.py`: which act, `model/builder/nonlinear_springs.py`: where the numbers come from).

With y = q - rest and z_i = max(y - knot_i, 0) a spring pulls its joint back by s, and stores U:

    s(y) = preload + k y + c2 y^2 + ... + sum_i bend_i z_i + bow_i z_i^3
    U(y) = preload y + k y^2 / 2 + c2 y^3 / 3 + ... + sum_i bend_i z_i^2 / 2 + bow_i z_i^4 / 4
"""

from __future__ import annotations

from typing import Any

from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.spatial.branch_free import less, maximum

NO_SPRING = Spring()


def numbers(stiffness: Any, rest: Any, spring: Spring) -> dict[str, Any]:
    """The numbers of one spring by name, as the laws take them."""
    found = {"stiffness": spring.first_slope if spring.is_table else stiffness, "rest": rest}
    found |= {"preload": spring.preload} if spring.preload else {}
    found |= {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
    for word, points in (("bend", spring.slope_changes), ("bow", spring.cubic_terms)):
        for i, (knot, x) in enumerate(points):
            found |= {f"knot{i}": knot, f"{word}{i}": x}
    return found


def pull(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """s(y); `more` are preload, c2, c3, ..., and knot0, bend0 or bow0, knot1, ..."""
    y = x - rest
    s = _horner(y, [stiffness, *_terms(more)]) + more.get("preload", 0.0)
    for knot, bend, bow in _knots(more):
        z = less(knot, y) * (y - knot)
        s = s + _times(bend, z) + _times(bow, z * z * z)
    return s


def firmness(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """max(s'(y), 0)."""
    y = x - rest
    slope = stiffness + _horner(y, [n * c for n, c in enumerate(_terms(more), start=2)])
    for knot, bend, bow in _knots(more):
        past = less(knot, y)
        slope = slope + _times(bend, past) + _times(bow, 3.0 * past * (y - knot) * (y - knot))
    return maximum(slope, 0.0) if more else slope


def stored(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """U(y) - U(0) of all joints together, (...)."""
    y = x - rest
    U = (
        y * _horner(y, [c / n for n, c in enumerate([stiffness, *_terms(more)], start=2)])
        + more.get("preload", 0.0) * y
    )
    for knot, bend, bow in _knots(more):
        past, none = (z * z for z in (maximum(y - knot, 0.0), maximum(-knot, 0.0)))
        U = U + _times(bend, 0.5 * (past - none)) + _times(bow, 0.25 * (past * past - none * none))
    return U.sum(axis=-1)


def _times(weight: Any, value: Any) -> Any:
    """weight value; nothing where there is no such term."""
    return 0.0 if weight is None else weight * value


def _terms(more: dict[str, Any]) -> list[Any]:
    """c2, c3, ..."""
    return [c for name, c in more.items() if name[0] == "c"]


def _horner(y: Any, terms: list[Any]) -> Any:
    """y (terms[0] + y (terms[1] + ...))."""
    total = 0.0 * y
    for c in reversed(terms):
        total = (total + c) * y
    return total


def _knots(more: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """(knot, bend, bow), None where there is none."""
    numbered = [(name[4:], knot) for name, knot in more.items() if name.startswith("knot")]
    return [(knot, more.get(f"bend{i}"), more.get(f"bow{i}")) for i, knot in numbered]
