"""Blocks, sums of blocks along a path to the base, and polynomials of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from psiphi.algebra.blocks.body_indices import Index
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.block_structure import MEMORYLESS
from psiphi.algebra.expressions.notation import LATEX, POWER, UNICODE, Notation, show_poly
from psiphi.algebra.expressions.terms import Term

STEPS = {"phi": "Delta_phi", "psi": "Delta_psi"}
# letters with blocks at (j+1, j) only: the memoryless letter that is the block; "": I
STEP_BLOCKS = {"E_phi": "Delta_phi", "E_psi": "Delta_psi", "K": "L", "S": ""}


@dataclass(frozen=True)
class BlockAt:
    """The block of a term in the row of one body and the column of another."""

    term: Term
    row: Index
    col: Index

    @property
    def indices(self) -> tuple[Index, ...]:
        return self.row, self.col

    @property
    def T(self) -> BlockAt:
        return BlockAt(terms.adjoint(self.term), self.col, self.row)

    def show(self, notation: Notation) -> str:
        one = self.row == self.col and terms.structure(self.term) == MEMORYLESS
        inside = str(self.row) if one else f"{self.row},{self.col}"
        return f"{notation.text(self.term, POWER)}({inside})"


@dataclass(frozen=True)
class PathSum:
    """Σ of a word over i on the path to the base, from `start` up to but not including `stop`.

    With `stop` None the sum includes the root.
    """

    i: Index
    start: Index
    stop: Index | None
    word: Factors

    @property
    def T(self) -> PathSum:
        return PathSum(self.i, self.start, self.stop, adjoint_word(self.word))

    def show(self, notation: Notation) -> str:
        latex = notation is LATEX
        low, high, sign = (str(self.start), str(self.stop or ""), r"\le" if latex else "≤")
        under = f"{low} {sign} {self.i}" + (f" < {high}" if high else "")
        body = show_word(self.word, notation)
        return rf"\sum_{{{under}}} {body}" if latex else f"Σ[{under}] {body}"


Factor = Any  # BlockAt, PathSum, LetterAt or Path: each has .T and .show(notation)
Factors = tuple[Factor, ...]
BlockPoly = dict[Factors, Fraction]  # a polynomial; `terms.py` has the arithmetic


def adjoint_word(word: Factors) -> Factors:
    """The adjoint of a word."""
    return tuple(x.T for x in reversed(word))


def show_word(word: Factors, notation: Notation = UNICODE) -> str:
    """The text of a word; sums among other factors are in brackets."""
    parts = [x.show(notation) for x in word]
    if len(parts) > 1:
        parts = [
            notation.brackets.format(p) if isinstance(x, PathSum) else p
            for p, x in zip(parts, word, strict=True)
        ]
    return notation.space.join(parts) or "I"


def show(p: Mapping[Factors, Fraction], notation: Notation = UNICODE) -> str:
    """The text of a polynomial of blocks."""
    return show_poly(p, notation, show_word)


def free_indices(word: Factors) -> Iterator[Index]:
    """The bodies that occur in a word, without those of its sums."""
    for x in word:
        if isinstance(x, PathSum):
            yield from (x.start, *(() if x.stop is None else (x.stop,)))
            yield from (y for y in free_indices(x.word) if y.name != x.i.name)
        else:
            yield from x.indices
