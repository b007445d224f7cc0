"""Expressions of joint angles as textbooks write them."""

from __future__ import annotations

from typing import Any

from psiphi._util.extras import import_optional


def textbook(expression: Any) -> Any:
    """Products of sines and cosines as sums, multiplied out: a normal form of polynomials in sines and cosines, so that what is
    the same looks the same. A fraction is cancelled instead, with squares of sines as 1 - cos^2.

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
    above, below = sympy.fraction(sympy.together(expression))
    if not below.is_number:
        return sympy.cancel(_cosines(sympy, above) / _cosines(sympy, below))
    from sympy.simplify.fu import TR8

    return sympy.expand(TR8(sympy.expand(above))) / below


def _cosines(sympy: Any, expression: Any) -> Any:
    """Multiplied out, without squares of sines."""

    def square(power: Any) -> bool:
        return (
            power.is_Pow
            and isinstance(power.base, sympy.sin)
            and power.exp.is_Integer
            and power.exp > 1
        )

    def cosines(power: Any) -> Any:
        return (1 - sympy.cos(power.base.args[0]) ** 2) ** (power.exp // 2) * power.base ** (
            power.exp % 2
        )

    return sympy.expand(sympy.expand(expression).replace(square, cosines))
