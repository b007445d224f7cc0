"""The shapes of matrix words: how a product between two small spaces is computed from columns.

diagonal   L                      local letters only
column     L c R                  columns of R move to the base by c = phi or psi; L reads them at
                                  every ancestor
           (L c R)*               the transpose
composite  L phi M phi* R         columns of r(j) R move by phi; r is the composite inertia
compliance L c* X c R, X = X*     y_i(a)* Om(a) x_j(a) at the nearest common ancestor a
                                  (docs/mathematics.md section 6)
grounded   E_0 c R                columns move to the world, which reads them; E_c reads them about
           E_0 phi M phi* R       the centre of mass
whole      E_0 phi M phi* E_0*    the composite inertia of the robot, at the world
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from psiphi.algebra.expressions.letters import FrameLetter, Letter
from psiphi.algebra.expressions.terms import Word, adjoint_word
from psiphi.compiler.lower.world_body import FROM_WORLD, TO_WORLD
from psiphi.compiler.recursions.body_step import LOCAL


@dataclass(frozen=True)
class ColumnFamily:
    """Columns `letters` e_j that move to the base by `kind`. Composite ones start as r(j) letters
    e_j. A leading K starts them at the parent, as phi G."""

    kind: Letter
    letters: Word
    composite: bool = False

    @property
    def shifted(self) -> bool:
        return bool(self.letters) and self.letters[0] == "K"

    @property
    def frame_letter(self) -> FrameLetter:
        """B of the columns phi B."""
        (letter,) = self.letters
        assert isinstance(letter, FrameLetter)
        return letter


@dataclass(frozen=True)
class Diagonal:
    """L: one block per body."""

    letters: Word


@dataclass(frozen=True)
class ColumnSweep:
    """L c R, or its transpose: entries (i, j) where body i is body j or one of its ancestors."""

    left: Word
    family: ColumnFamily
    transposed: bool = False


@dataclass(frozen=True)
class Composite:
    """L phi M phi* R: L phi(i, j) r(j) R at the body of each pair that is nearer to the base (S2
    (7.11)); zero between branches."""

    left: Word
    right: ColumnFamily
    mirror: ColumnFamily  # the columns of left*, for the entries below the diagonal


@dataclass(frozen=True)
class Compliance:
    """L c* X c R: two branches move with their common ancestor, so every pair has an entry (S3
    (20))."""

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
    """E_0 phi M phi* E_0*: the robot as one rigid body with locked joints."""

    left: Letter
    right: Letter


WordShape = Diagonal | ColumnSweep | Composite | Compliance | Grounded | WholeMatrix


def is_local(x: Letter) -> bool:
    """Whether the letter acts body by body and does not need velocities."""
    return (x in LOCAL or isinstance(x, FrameLetter)) and not x.needs_velocity


def shape_of(word: Word) -> WordShape | None:
    """The shape of a word; None if it has to be applied column by column."""
    # six rows at the world, or the transpose
    if word[:1] and word[0] in TO_WORLD:
        return _at_world(word)
    if word[-1:] and word[-1] in FROM_WORLD:
        mirror = _at_world(adjoint_word(word))
        return replace(mirror, transposed=True) if isinstance(mirror, Grounded) else None
    if any(
        isinstance(x, FrameLetter) and not x.starred and isinstance(y, FrameLetter)
        for x, y in pairwise(word)
    ):
        return None  # B B*: wrenches on the frames of other bodies
    # phi, psi and their adjoints are sweeps; the letters before, between and behind them are local
    sweeps = [i for i, x in enumerate(word) if x.bare in ("phi", "psi")]
    kinds = [word[i] for i in sweeps]
    if not sweeps:
        return Diagonal(word) if all(map(is_local, word)) else None
    first, last = sweeps[0], sweeps[-1]
    left, right = word[:first], word[last + 1 :]
    if len(sweeps) == 1:
        if kinds[0].starred:
            mirror = shape_of(adjoint_word(word))
            return (
                ColumnSweep(mirror.left, mirror.family, True)
                if isinstance(mirror, ColumnSweep)
                else None
            )
        family = ColumnFamily(kinds[0], right)
        # H phi B has a closed form of poses; with other letters before phi B, columns would be
        # needed
        if left != ("H",) and right and isinstance(right[0], FrameLetter) and kinds[0] == "phi":
            return None
        return (
            ColumnSweep(left, family) if all(map(is_local, left)) and _is_source(family) else None
        )
    # two sweeps: base, then tips for composites; tips, then base for compliances
    middle = word[first + 1 : last]
    if len(sweeps) > 2 or not all(map(is_local, middle)):
        return None
    if kinds == ["phi", "phi*"] and middle == ("M",) and all(map(is_local, left + right)):
        return Composite(
            left,
            ColumnFamily(kinds[0], right, True),
            ColumnFamily(kinds[0], adjoint_word(left), True),
        )
    if kinds[0].starred and kinds[0] == kinds[1].T:
        families = ColumnFamily(kinds[1], adjoint_word(left)), ColumnFamily(kinds[1], right)
        # Om(k) = X + c*(p, k) Om(p) c(p, k) is stored as a symmetric matrix, so X must be symmetric
        symmetric = adjoint_word(middle) == middle
        return (
            Compliance(families[0], middle, families[1])
            if symmetric and all(map(_is_source, families))
            else None
        )
    return None


def _at_world(word: Word) -> Grounded | WholeMatrix | None:
    """The shape of a word that begins with E_0 or E_c."""
    letter, kind, right = word[0], word[1:2], word[2:]
    if word[1:4] == ("phi", "M", "phi*"):
        if len(word) == 5 and word[4] in FROM_WORLD:
            return WholeMatrix(letter, word[4])
        family = ColumnFamily(word[1], word[4:], True)
        return Grounded(letter, family) if word[4:] and all(map(is_local, word[4:])) else None
    # columns that move to the world are phi R or psi R; those of phi B are poses of frames
    if kind not in (("phi",), ("psi",)):
        return None
    family = ColumnFamily(kind[0], right)
    return Grounded(letter, family) if _is_source(family) else None


def _is_source(family: ColumnFamily) -> bool:
    rest = family.letters[1:] if family.shifted else family.letters
    return all(map(is_local, rest)) and (family.shifted or bool(family.letters))
