"""Scalars: a word from the single column to the single column is a number, equal to its adjoint, and may stand anywhere.

    τ* v = v* τ        x y* A z = (y* A z) x = (z* A* y) x

`commute_scalars` writes every word with its scalar factors in front, each as the lesser of itself and its adjoint, in order: two
polynomials that differ only in that become the same.
"""

from __future__ import annotations

from psiphi.algebra.expressions.letters import InverseLetter, letter
from psiphi.algebra.expressions.spaces import ONE
from psiphi.algebra.expressions.terms import Poly, Word, accumulate, adjoint_word


def commute_scalars(p: Poly) -> Poly:
    """The polynomial with its scalars in order."""
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
    """Scalars first: the runs between a row vector x* and the next vector y."""
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
