"""The law of a spring, on arrays of any scalars (`springs.py`: which act, `model/nonlinear.py`: where the numbers come from).

s(y) = preload + k y + c2 y^2 + ... + sum_i bend_i max(y - knot_i, 0),    y = q - rest          what pulls a joint back
U(y) = preload y + k y^2 / 2 + c2 y^3 / 3 + ... + sum_i bend_i max(y - knot_i, 0)^2 / 2         what it stores
"""

from __future__ import annotations

from typing import Any

from psiphi.model.nonlinear import Spring
from psiphi.spatial.choices import less, most

NO_SPRING = Spring()


def numbers(stiffness: Any, rest: Any, spring: Spring) -> dict[str, Any]:
    """The numbers of one spring by name, as the laws take them."""
    found = {"stiffness": spring.slopes[0] if spring.is_table else stiffness, "rest": rest}
    found |= {"preload": spring.preload} if spring.preload else {}
    found |= {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
    for i, (knot, bend) in enumerate(spring.bends):
        found |= {f"knot{i}": knot, f"bend{i}": bend}
    return found


def pull(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """s(y), on arrays of any scalars; `more` are preload, c2, c3, ..., and knot0, bend0, knot1, ..."""
    y = x - rest
    s = _horner(y, [stiffness, *_terms(more)]) + more.get("preload", 0.0)
    for knot, bend in _knots(more):
        s = s + bend * (less(knot, y) * (y - knot))
    return s


def firmness(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """max(s'(y), 0)."""
    y = x - rest
    slope = stiffness + _horner(y, [n * c for n, c in enumerate(_terms(more), start=2)])
    for knot, bend in _knots(more):
        slope = slope + bend * less(knot, y)
    return most(slope, 0.0) if more else slope


def stored(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """U(y) - U(0) of all joints together, (...)."""
    y = x - rest
    U = y * _horner(y, [c / n for n, c in enumerate([stiffness, *_terms(more)], start=2)]) + more.get("preload", 0.0) * y
    for knot, bend in _knots(more):
        past, none = most(y - knot, 0.0), most(-knot, 0.0)
        U = U + 0.5 * bend * (past * past - none * none)
    return U.sum(axis=-1)


def _terms(more: dict[str, Any]) -> list[Any]:
    """c2, c3, ..."""
    return [c for name, c in more.items() if name[0] == "c"]


def _horner(y: Any, terms: list[Any]) -> Any:
    """y (terms[0] + y (terms[1] + ...))."""
    total = 0.0 * y
    for c in reversed(terms):
        total = (total + c) * y
    return total


def _knots(more: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(knot, more[f"bend{name[4:]}"]) for name, knot in more.items() if name.startswith("knot")]
