"""The sides of ω̃ = diag(w~, w~): one matrix for forces and motions, but sweeps need to know which,
because they choose the origins of links.

The letter "omega" acts on forces, "omega*" = -"omega" on motions: ω̃ M - M ω̃ becomes ω̃ M + M ω̃*.
The sides of vectors over links are known here (`force_motion_duality.resolve_sides`), so the vector
at the end of a word decides.
"""

from __future__ import annotations

from psiphi.algebra.expressions.letters import FORCE, MOTION, letter
from psiphi.algebra.expressions.terms import Poly, Word, accumulate

OMEGA = letter("omega")  # on forces
OMEGAS = (OMEGA, OMEGA.T)


def resolve_omega(poly: Poly) -> Poly:
    """The polynomial with each ω̃ written for its side."""
    out: Poly = {}
    for word, c in poly.items():
        key, sign = _resolve_word(word)
        accumulate(out, {key: c}, sign)
    return out


def _resolve_word(word: Word) -> tuple[Word, int]:
    # ω̃* = -ω̃: each change of side changes the sign of the word
    out, sign = list(word), 1
    for i, x in enumerate(word):
        if x in OMEGAS:
            out[i] = OMEGA.T if _side_at(word, i) == MOTION else OMEGA
            sign = sign if out[i] == x else -sign
    return tuple(out), sign


def _side_at(word: Word, i: int) -> str:
    """Forces or motions: what the letters before position i take, or else what those behind it
    give."""
    before = [letter(x).takes for x in reversed(word[:i]) if x not in OMEGAS][:1]
    behind = [letter(x).gives for x in word[i + 1 :] if x not in OMEGAS][:1]
    return next((side for side in (*before, *behind) if side), FORCE)
