"""Expressions of joint angles as textbooks write them."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

from psiphi._util.extras import import_optional


class Power(Protocol):
    """A SymPy expression base^exp, or (`is_Pow` is False) another expression."""

    is_Pow: bool
    base: Any
    exp: Any


def textbook(expression: object) -> Any:
    """Products of sines and cosines as sums, multiplied out: a normal form of polynomials in sines
    and cosines, so that equal expressions look equal. Fractions are cancelled instead, with squares
    of sines as 1 - cos^2.

    >>> import sympy
    >>> a, b = sympy.symbols("a b")
    >>> textbook(sympy.cos(a) * sympy.cos(b) - sympy.sin(a) * sympy.sin(b))
    cos(a + b)
    >>> textbook(2 * sympy.cos(a) ** 2 + 2 * sympy.sin(a) ** 2)
    2
    >>> textbook(sympy.sin(a) ** 2 / (1 - sympy.cos(a)))
    cos(a) + 1
    """
    sympy = import_optional("sympy", "symbolic", "psiphi[symbolic]")
    numerator, denominator = sympy.fraction(sympy.together(expression))
    if not denominator.is_number:
        return sympy.cancel(
            _without_sine_squares(sympy, numerator) / _without_sine_squares(sympy, denominator)
        )
    from sympy.simplify.fu import TR8

    return sympy.expand(TR8(sympy.expand(numerator))) / denominator


def _without_sine_squares(sympy: ModuleType, expression: object) -> Any:
    """The expression multiplied out, with sin^2 replaced by 1 - cos^2."""

    def is_sine_power(power: Power) -> bool:
        return (
            power.is_Pow
            and isinstance(power.base, sympy.sin)
            and power.exp.is_Integer
            and power.exp > 1
        )

    def with_cosines(power: Power) -> Any:
        return (1 - sympy.cos(power.base.args[0]) ** 2) ** (power.exp // 2) * power.base ** (
            power.exp % 2
        )

    return sympy.expand(sympy.expand(expression).replace(is_sine_power, with_cosines))
