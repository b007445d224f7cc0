"""ω̃ = diag(w~, w~) is one matrix for forces and motions; sweeps, which choose the links' origins, must know which it meets.

The letter "omega" acts on forces, "omega*" = -"omega" on motions: ω̃ M - M ω̃ becomes ω̃ M + M ω̃*. Vectors over links have said
by now what they are (`operators.sides.settled`), so every word that ends in one decides.
"""

from __future__ import annotations

from psiphi.algebra.expressions.letters import FORCE, MOTION, letter
from psiphi.algebra.expressions.terms import Poly, Word, accumulate

OMEGA = letter("omega")  # on forces
TURNING = (OMEGA, OMEGA.T)


def sided(poly: Poly) -> Poly:
    """The polynomial with every ω̃ written for what it meets."""
    out: Poly = {}
    for word, c in poly.items():
        key, sign = _sided(word)
        accumulate(out, {key: c}, sign)
    return out


def _sided(word: Word) -> tuple[Word, int]:
    # ω̃* = -ω̃: each that is written for the other side turns the sign of its word
    out, sign = list(word), 1
    for i, x in enumerate(word):
        if x in TURNING:
            out[i] = OMEGA.T if _meets(word, i) == MOTION else OMEGA
            sign = sign if out[i] == x else -sign
    return tuple(out), sign


def _meets(word: Word, i: int) -> str:
    """Forces or motions: what the letters before it take, or else those behind it give."""
    before = [letter(x).takes for x in reversed(word[:i]) if x not in TURNING][:1]
    behind = [letter(x).gives for x in word[i + 1 :] if x not in TURNING][:1]
    return next((side for side in (*before, *behind) if side), FORCE)
