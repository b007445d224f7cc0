"""Blocks of operators, by the letters of their bodies: s.psi[k, j], sums of products of them along the path to the base.

    s.phi[k, j] - s.psi[k, j]                                                      φ(k,j) - ψ(k,j)
    (s.psi[k, i + 1] @ s.L[i] @ s.H[i] @ s.phi[i, j]).over(i, j, k)                Σ over i from j until before k
    (s.psi[i, k].T @ s.H[i].T @ s.D.inv[i] @ s.H[i] @ s.psi[i, k]).over(i, k)      Σ over i from k to its root

An element is a polynomial of factors: blocks, and sums. `X[k]` is X[k, k]. L, Δ_φ and Δ_ψ of body i give forces at its parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.algebra.blocks.block_terms import (
    BlockAt,
    BlockPoly,
    PathSum,
    adjoint_word,
    free_indices,
    show,
)
from psiphi.algebra.blocks.block_values import BlockNumbers
from psiphi.algebra.blocks.body_indices import Index
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.block_structure import MEMORYLESS
from psiphi.algebra.expressions.notation import LATEX, UNICODE
from psiphi.algebra.expressions.spaces import JOINT, LINK, Space, compatible, meet
from psiphi.algebra.expressions.terms import Term
from psiphi.model.model import Model


@dataclass(frozen=True, eq=False)
class BlockSum:
    """A polynomial of blocks between the places of two bodies, with @ + - * .T; `pp.prove` takes two of them."""

    poly: BlockPoly
    rows: tuple[Space, Index]
    cols: tuple[Space, Index]
    model: Model | None = None

    __array_ufunc__ = None

    @property
    def T(self) -> BlockSum:
        """The adjoint."""
        return BlockSum(
            {adjoint_word(word): c for word, c in self.poly.items()},
            self.cols,
            self.rows,
            self.model,
        )

    def __matmul__(self, other: Any) -> BlockSum:
        other = self.check_operand("@", other)
        (inner, i), (outer, j) = self.cols, other.rows
        if i != j or not compatible(inner, outer):
            raise StateError(
                f"({self}) @ ({other}): the first takes {inner.name}s of {i}, the second gives {outer.name}s of {j}",
                "indices that meet are the same; φ(k,j) goes from j to k, and L(i) from i to i+1",
            )
        return BlockSum(
            terms.multiply(self.poly, other.poly), self.rows, other.cols, self.model or other.model
        )

    def __add__(self, other: Any) -> BlockSum:
        if isinstance(other, (int, float)) and other == 0:  # so that sum() works
            return self
        other = self.check_operand("+", other)
        ends = [(self.rows, other.rows), (self.cols, other.cols)]
        if any(i != j or not compatible(a, b) for (a, i), (b, j) in ends):
            raise StateError(
                f"({self}) + ({other}): they stand between different bodies or spaces",
                "add blocks of one place",
            )
        rows, cols = ((meet(a, b), i) for (a, i), (b, _) in ends)
        return BlockSum(terms.add(self.poly, other.poly), rows, cols, self.model or other.model)

    __radd__ = __add__

    def __neg__(self) -> BlockSum:
        return self * -1

    def __sub__(self, other: Any) -> BlockSum:
        return self + (-other if isinstance(other, BlockSum) else other)

    def __mul__(self, c: Any) -> BlockSum:
        if not isinstance(c, Rational) or isinstance(c, bool):
            raise StateError(
                f"({self}) * {shown(c)}", "scale by an int or a Fraction; write @ for products"
            )
        return BlockSum(terms.scale_poly(self.poly, Fraction(c)), self.rows, self.cols, self.model)

    __rmul__ = __mul__

    def over(self, i: Index, start: Index, stop: Index | None = None) -> BlockSum:
        """Σ over i from `start` until before `stop`, as range() counts, on the way to the base; to the root without `stop`."""
        for x in (i, start, *(() if stop is None else (stop,))):
            if not isinstance(x, Index):
                raise StateError(
                    f"the sum's {shown(x)} is no body",
                    "write .over(i, j, k) with i, j, k = s.bodies('i j k')",
                )
        if i.up or i.name in (
            start.name,
            *(() if stop is None else (stop.name,)),
            self.rows[1].name,
            self.cols[1].name,
        ):
            raise StateError(
                f"a sum over {i} of what stands at {i}", "sum over a letter of its own"
            )
        if any(isinstance(x, PathSum) for word in self.poly for x in word):
            raise StateError(
                f"a sum over {i} of {self}",
                "sums within sums are not there: prove the inner one by itself",
            )
        total: BlockPoly = {(PathSum(i, start, stop, word),): c for word, c in self.poly.items()}
        return BlockSum(total, self.rows, self.cols, self.model)

    def check_operand(self, sign: str, other: Any) -> BlockSum:
        if not isinstance(other, BlockSum):
            raise StateError(
                f"({self}) {sign} {shown(other)}: expected blocks of operators", "write s.phi[k, j]"
            )
        if self.model is not None and other.model is not None and self.model != other.model:
            raise StateError(
                f"({self}) {sign} ({other}): blocks of two robots",
                "write both with the operators of one",
            )
        return other

    def value(self, q: Any, bodies: Mapping[str, str], v: Any = None) -> np.ndarray:
        """Its matrix at q, the letters being bodies of the robot by name: {"k": "forearm", "j": "hand"}."""
        if self.model is None:
            raise StateError(
                f"{self} belongs to no robot yet",
                "write it with the operators of a robot: s = robot.operators",
            )
        names = [body.name for body in self.model.bodies]
        free = {x.name for word in self.poly for x in free_indices(word)}
        if (
            not isinstance(bodies, dict)
            or set(bodies) != free
            or not all(isinstance(x, str) for x in bodies.values())
        ):
            raise StateError(
                f"bodies is {shown(bodies)}", f"name a body for each of {', '.join(sorted(free))}"
            )
        for name in bodies.values():
            if name not in names:
                raise StateError(f"no body {shown(name)}", nearest(name, names))
        at = {name: names.index(body) for name, body in bodies.items()}
        return BlockNumbers(self.model, q, v).value(self.poly, at, self.rows, self.cols)

    def latex(self) -> str:
        """In LaTeX."""
        return show(self.poly, LATEX)

    def __str__(self) -> str:
        return show(self.poly)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def block(term: Term, model: Model | None, at: Any) -> BlockSum:
    """term[k, j], or term[k]."""
    pair = at if isinstance(at, tuple) else (at, at)
    if len(pair) != 2 or not all(isinstance(x, Index) for x in pair):
        raise StateError(
            f"({UNICODE.text(term)})[{shown(at)}]",
            "name blocks by letters of bodies: k, j = s.bodies('k j')",
        )
    for space in terms.spaces(term):
        if space not in (LINK, JOINT):
            raise StateError(
                f"{UNICODE.text(term)} has no blocks: its sides are {' and '.join(x.name for x in terms.spaces(term))}",
                "take blocks of operators between links and joints; I[k] is left out",
            )
    made = BlockAt(term, *pair)
    rows, cols = terms.spaces(term)
    return BlockSum(
        {(made,): Fraction(1)},
        (rows, pair[0] + _parent_offset(term)),
        (cols, pair[1] + _parent_offset(terms.adjoint(term))),
        model,
    )


def _parent_offset(term: Term) -> int:
    """1 where what a block gives stands at the parent of its body: L, Δ_φ, Δ_ψ, and Φ*, Ψ*, S*."""
    if term.op == "letter":
        x = term.args[0]
        return int(x.row.mixed_axes and (x.row.structure == MEMORYLESS) != x.starred)
    if term.op == "inverse":
        return _parent_offset(terms.adjoint(term.args[0])) if isinstance(term.args[0], Term) else 0
    inner = [_parent_offset(x) for x in term.args if isinstance(x, Term)]
    if term.op == "sum" and len(set(inner)) > 1:
        raise StateError(
            f"{UNICODE.text(term)}: terms that stand at a body and at its parent",
            "take its blocks one by one",
        )
    if term.op == "adjoint":
        return (
            _parent_offset(terms.adjoint(term.args[0].args[0])) if term.args[0].op == "sum" else 0
        )
    return inner[0]
