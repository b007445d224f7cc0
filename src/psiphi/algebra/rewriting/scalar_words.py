"""Scalar factors of words: x* A y is a number, equals its adjoint, and commutes with all factors.

    τ* v = v* τ        x y* A z = (y* A z) x = (z* A* y) x

`commute_scalars` writes the scalar factors of a word first, in order, each as the lesser of itself
and its adjoint. Polynomials that differ only in their scalar factors then become equal.
"""

from __future__ import annotations

from psiphi.algebra.expressions.letters import InverseLetter, letter
from psiphi.algebra.expressions.spaces import ONE
from psiphi.algebra.expressions.terms import Poly, Word, accumulate, adjoint_word


def commute_scalars(p: Poly) -> Poly:
    """The polynomial with the scalar factors of its words first and sorted."""
    if not any(
        letter(x).cols == ONE or letter(x).rows == ONE
        for word in p
        for x in word
        if not isinstance(x, InverseLetter)
    ):
        return p
    out: Poly = {}
    for word, c in p.items():
        accumulate(out, {_commute_scalars(word): c})
    return out


def _commute_scalars(word: Word) -> Word:
    """Scalars are the runs from a row vector x* to the next vector y."""
    scalars, rest, run = [], [], []
    for x in word:
        row = letter(x)
        run = [*run, x]
        if row.rows == ONE:
            rest, run = rest + run[:-1], [x]
        if row.cols == ONE:
            if letter(run[0]).rows == ONE:
                scalars.append(min(tuple(run), adjoint_word(run)))
            else:
                rest += run
            run = []
    return tuple(x for part in sorted(scalars) for x in part) + tuple(rest) + tuple(run)
