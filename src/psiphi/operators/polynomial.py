"""Non-commutative polynomials: {word: coefficient}, a word is a tuple of letters, the empty word is the identity."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from psiphi.operators.letters import Letter, letter

Word = tuple[Letter, ...]
Poly = dict[Word, Fraction]

ZERO = Fraction(0)


def add(p: Mapping[Word, Fraction], q: Mapping[Word, Fraction], factor: Fraction | int = 1) -> Poly:
    """p + factor q."""
    total = dict(p)
    accumulate(total, q, factor)
    return total


def accumulate(total: Poly, q: Mapping[Word, Fraction], factor: Fraction | int = 1) -> None:
    """total += factor q, in place; words that cancel disappear."""
    for word, c in q.items():
        value = total.get(word, ZERO) + factor * c
        if value:
            total[word] = value
        else:
            total.pop(word, None)


def scale(p: Mapping[Word, Fraction], factor: Fraction | int) -> Poly:
    """factor p."""
    return {word: Fraction(c * factor) for word, c in p.items()} if factor else {}


def multiply(p: Mapping[Word, Fraction], q: Mapping[Word, Fraction]) -> Poly:
    """p q.

    >>> multiply({("H",): Fraction(2)}, {("phi",): Fraction(1), (): Fraction(1)})
    {('H', 'phi'): Fraction(2, 1), ('H',): Fraction(2, 1)}
    """
    total: Poly = {}
    for a, c in p.items():
        accumulate(total, {a + b: d for b, d in q.items()}, c)
    return total


def between(left: Word, p: Mapping[Word, Fraction], right: Word) -> Poly:
    """left p right, for two words."""
    return {left + word + right: c for word, c in p.items()}


def adjoint(p: Mapping[Word, Fraction]) -> Poly:
    """p*: every word reversed, every letter starred."""
    return {tuple(letter(x).T for x in reversed(word)): c for word, c in p.items()}
