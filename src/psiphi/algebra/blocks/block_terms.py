"""What statements about blocks are made of: blocks, sums of them along a path, and polynomials of these."""

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
    """Σ of a word over i from `start` until before `stop` (None: to the root) on the way to the base."""

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


Factor = Any  # BlockAt, Total, and what proofs make of them: each has .T and .show(notation)
Factors = tuple[Factor, ...]
BlockPoly = dict[Factors, Fraction]  # a polynomial of them: the arithmetic is that of `terms.py`


def adjoint_word(word: Factors) -> Factors:
    """The adjoint of a word."""
    return tuple(x.T for x in reversed(word))


def show_word(word: Factors, notation: Notation = UNICODE) -> str:
    """A word as it is printed; a sum among other factors in brackets."""
    parts = [x.show(notation) for x in word]
    if len(parts) > 1:
        parts = [
            notation.brackets.format(p) if isinstance(x, PathSum) else p
            for p, x in zip(parts, word, strict=True)
        ]
    return notation.space.join(parts) or "I"


def show(p: Mapping[Factors, Fraction], notation: Notation = UNICODE) -> str:
    """A polynomial of blocks."""
    return show_poly(p, notation, show_word)


def free_indices(word: Factors) -> Iterator[Index]:
    """The bodies a word of blocks and sums names, those it sums over left out."""
    for x in word:
        if isinstance(x, PathSum):
            yield from (x.start, *(() if x.stop is None else (x.stop,)))
            yield from (y for y in free_indices(x.word) if y.name != x.i.name)
        else:
            yield from x.indices
