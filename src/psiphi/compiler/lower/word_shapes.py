"""The shapes of matrix words: how a product between two small spaces becomes columns that climb the tree.

diagonal   L                      local letters only
climb      L c R                  columns of R climb with c = phi or psi; L reads them at every ancestor
fall       (L c R)*               the transpose of a climb
composite  L phi M phi* R         columns of r(j) R climb with phi; r is the composite inertia
compliance L c* X c R, X = X*     y_i(a)* Om(a) x_j(a) at the nearest common ancestor a (docs/mathematics.md section 6)
grounded   E_0 c R, E_0 phi M phi* R   columns climb to the world, which reads them; E_c about the centre of mass
whole      E_0 phi M phi* E_0*    the composite inertia of everything, at the world
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from psiphi.algebra.expressions.letters import FrameLetter, Letter
from psiphi.algebra.expressions.terms import Word, starred
from psiphi.compiler.lower.world_body import GROUND, SPREAD
from psiphi.compiler.recursions.body_step import LOCAL


@dataclass(frozen=True)
class ColumnFamily:
    """Columns `letters` e_j that climb with `kind`; composite ones start as r(j) letters e_j. A leading K starts them one
    body further in, as phi G."""

    kind: Letter
    letters: Word
    composite: bool = False

    @property
    def shifted(self) -> bool:
        return bool(self.letters) and self.letters[0] == "K"


@dataclass(frozen=True)
class Diagonal:
    """L: one block a body."""

    letters: Word


@dataclass(frozen=True)
class ColumnSweep:
    """L c R, or its transpose: entries wherever the row's body is the column's or an ancestor of it."""

    left: Word
    family: ColumnFamily
    transposed: bool = False


@dataclass(frozen=True)
class Composite:
    """L phi M phi* R: at the nearer body of each pair, L phi(i, j) r(j) R (S2 (7.11)); none across branches."""

    left: Word
    right: ColumnFamily
    mirror: ColumnFamily  # the columns of left*, for the entries below the diagonal


@dataclass(frozen=True)
class Compliance:
    """L c* X c R: motions of two branches come from one ancestor, so that every pair has an entry (S3 (20))."""

    left: ColumnFamily  # the columns of left*
    middle: Word
    right: ColumnFamily


@dataclass(frozen=True)
class Grounded:
    """E_0 c R or E_c c R, or its transpose: six rows, read at the world."""

    letter: Letter
    family: ColumnFamily
    transposed: bool = False


@dataclass(frozen=True)
class WholeMatrix:
    """E_0 phi M phi* E_0*: the robot as one rigid body, joints locked."""

    left: Letter
    right: Letter


def is_local(x: Letter) -> bool:
    """A letter that acts body by body, and needs no sweep for velocities first."""
    return (x in LOCAL or isinstance(x, FrameLetter)) and not x.moves


def shape_of(word: Word) -> Any:
    """The word's shape, or None when it has to be applied column by column."""
    # six rows at the world, or their transpose, before anything that climbs
    if word[:1] and word[0] in GROUND:
        return _at_world(word)
    if word[-1:] and word[-1] in SPREAD:
        mirror = _at_world(starred(word))
        return replace(mirror, transposed=True) if isinstance(mirror, Grounded) else None
    if any(
        isinstance(x, FrameLetter) and not x.starred and isinstance(y, FrameLetter)
        for x, y in pairwise(word)
    ):
        return None  # B B*: frames of one body push another
    # phi, psi and their adjoints are the sweeps of a word; what stands before, between and behind them is local
    turns = [i for i, x in enumerate(word) if x.bare in ("phi", "psi")]
    kinds = [word[i] for i in turns]
    if not turns:
        return Diagonal(word) if all(map(is_local, word)) else None
    first, last = turns[0], turns[-1]
    left, right = word[:first], word[last + 1 :]
    if len(turns) == 1:
        if kinds[0].starred:
            mirror = shape_of(starred(word))
            return (
                ColumnSweep(mirror.left, mirror.family, True)
                if isinstance(mirror, ColumnSweep)
                else None
            )
        family = ColumnFamily(kinds[0], right)
        # H phi B is read off the places of joint and frame; other letters before phi B would need its columns to climb
        if left != ("H",) and right and isinstance(right[0], FrameLetter) and kinds[0] == "phi":
            return None
        return (
            ColumnSweep(left, family) if all(map(is_local, left)) and _is_source(family) else None
        )
    # two sweeps that turn round in the middle: in and out again at composites, out and in again at compliances
    middle = word[first + 1 : last]
    if len(turns) > 2 or not all(map(is_local, middle)):
        return None
    if kinds == ["phi", "phi*"] and middle == ("M",) and all(map(is_local, left + right)):
        return Composite(
            left, ColumnFamily(kinds[0], right, True), ColumnFamily(kinds[0], starred(left), True)
        )
    if kinds[0].starred and kinds[0] == kinds[1].T:
        families = ColumnFamily(kinds[1], starred(left)), ColumnFamily(kinds[1], right)
        # Om(k) = X + c*(p, k) Om(p) c(p, k) is kept as an inertia is, by its upper half: X must be symmetric
        symmetric = starred(middle) == middle
        return (
            Compliance(families[0], middle, families[1])
            if symmetric and all(map(_is_source, families))
            else None
        )
    return None


def _at_world(word: Word) -> Grounded | WholeMatrix | None:
    """E_0 or E_c on columns that climb."""
    letter, kind, right = word[0], word[1:2], word[2:]
    if word[1:4] == ("phi", "M", "phi*"):
        if len(word) == 5 and word[4] in SPREAD:
            return WholeMatrix(letter, word[4])
        family = ColumnFamily(word[1], word[4:], True)
        return Grounded(letter, family) if word[4:] and all(map(is_local, word[4:])) else None
    # what climbs to the world is phi R or psi R; phi B need not even climb: it is where the frames are
    if kind not in (("phi",), ("psi",)):
        return None
    family = ColumnFamily(kind[0], right)
    return Grounded(letter, family) if _is_source(family) else None


def _is_source(family: ColumnFamily) -> bool:
    rest = family.letters[1:] if family.shifted else family.letters
    return all(map(is_local, rest)) and (family.shifted or bool(family.letters))
