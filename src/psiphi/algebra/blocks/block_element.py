"""Blocks of operators between bodies named by letters, their products, and sums along a path.

    s.phi[k, j] - s.psi[k, j]
    (s.psi[k, i + 1] @ s.L[i] @ s.H[i] @ s.phi[i, j]).over(i, j, k)
    (s.psi[i, k].T @ s.H[i].T @ s.D.inv[i] @ s.H[i] @ s.psi[i, k]).over(i, k)

The first is φ(k,j) - ψ(k,j). The second is a sum over i from j up to but not including k, the third
a sum over i from k to its root. `X[k]` is X[k, k]. L, Δ_φ and Δ_ψ of body i give forces at its
parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np

from psiphi._util.array_types import Numbers
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
    """A polynomial of blocks and sums, with @ + - * .T; `pp.prove` compares two of them.

    `rows` and `cols` are (space, body).
    """

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

    def __matmul__(self, other: BlockSum) -> BlockSum:
        other = self.check_operand("@", other)
        (inner, i), (outer, j) = self.cols, other.rows
        if i != j or not compatible(inner, outer):
            raise StateError(
                f"({self}) @ ({other}): the first takes {inner.name}s of {i}, "
                f"the second gives {outer.name}s of {j}",
                "adjacent indices must be equal; φ(k,j) maps from j to k, L(i) from i to i+1",
            )
        return BlockSum(
            terms.multiply(self.poly, other.poly), self.rows, other.cols, self.model or other.model
        )

    def __add__(self, other: BlockSum | float) -> BlockSum:
        if isinstance(other, (int, float)) and other == 0:  # the start value of sum()
            return self
        other = self.check_operand("+", other)
        ends = [(self.rows, other.rows), (self.cols, other.cols)]
        if any(i != j or not compatible(a, b) for (a, i), (b, j) in ends):
            raise StateError(
                f"({self}) + ({other}): they are between different bodies or spaces",
                "add blocks with equal rows and equal columns",
            )
        rows, cols = ((meet(a, b), i) for (a, i), (b, _) in ends)
        return BlockSum(terms.add(self.poly, other.poly), rows, cols, self.model or other.model)

    __radd__ = __add__

    def __neg__(self) -> BlockSum:
        return self * -1

    def __sub__(self, other: BlockSum | float) -> BlockSum:
        return self + (-other if isinstance(other, BlockSum) else other)

    def __mul__(self, c: int | Fraction) -> BlockSum:
        if not isinstance(c, Rational) or isinstance(c, bool):
            raise StateError(
                f"({self}) * {shown(c)}", "scale by an int or a Fraction; use @ for products"
            )
        return BlockSum(terms.scale_poly(self.poly, Fraction(c)), self.rows, self.cols, self.model)

    __rmul__ = __mul__

    def over(self, i: Index, start: Index, stop: Index | None = None) -> BlockSum:
        """Σ over i on the path to the base, from `start` up to but not including `stop`.

        Without `stop` the sum includes the root.
        """
        for x in (i, start, *(() if stop is None else (stop,))):
            if not isinstance(x, Index):
                raise StateError(
                    f"over() got {shown(x)}, which is not a body",
                    "write .over(i, j, k) with i, j, k = s.bodies('i j k')",
                )
        if i.up or i.name in (
            start.name,
            *(() if stop is None else (stop.name,)),
            self.rows[1].name,
            self.cols[1].name,
        ):
            raise StateError(
                f"a sum over {i}, which is also a bound or an end of the block",
                "sum over another letter",
            )
        if any(isinstance(x, PathSum) for word in self.poly for x in word):
            raise StateError(
                f"a sum over {i} of {self}: nested sums are not supported",
                "prove the inner sum separately",
            )
        total: BlockPoly = {(PathSum(i, start, stop, word),): c for word, c in self.poly.items()}
        return BlockSum(total, self.rows, self.cols, self.model)

    def check_operand(self, sign: str, other: object) -> BlockSum:
        """`other`, if it is a polynomial of blocks of the same robot."""
        if not isinstance(other, BlockSum):
            raise StateError(
                f"({self}) {sign} {shown(other)}: expected blocks of operators", "write s.phi[k, j]"
            )
        if self.model is not None and other.model is not None and self.model != other.model:
            raise StateError(
                f"({self}) {sign} ({other}): blocks of two robots",
                "write both with the operators of one robot",
            )
        return other

    def value(self, q: Numbers, bodies: Mapping[str, str], v: Numbers | None = None) -> np.ndarray:
        """Its matrix at q; `bodies` has the body of each letter: {"k": "forearm", "j": "hand"}."""
        if self.model is None:
            raise StateError(
                f"{self} belongs to no robot",
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
                f"bodies is {shown(bodies)}",
                f"pass a dict with a body name for each of {', '.join(sorted(free))}",
            )
        for name in bodies.values():
            if name not in names:
                raise StateError(f"no body {shown(name)}", nearest(name, names))
        at = {name: names.index(body) for name, body in bodies.items()}
        return BlockNumbers(self.model, q, v).value(self.poly, at, self.rows, self.cols)

    def latex(self) -> str:
        """The polynomial in LaTeX."""
        return show(self.poly, LATEX)

    def __str__(self) -> str:
        return show(self.poly)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def block(term: Term, model: Model | None, bodies: Index | tuple[Index, Index]) -> BlockSum:
    """term[k, j], or term[k]."""
    pair = bodies if isinstance(bodies, tuple) else (bodies, bodies)
    if len(pair) != 2 or not all(isinstance(x, Index) for x in pair):
        raise StateError(
            f"({UNICODE.text(term)})[{shown(bodies)}]",
            "name blocks by letters of bodies: k, j = s.bodies('k j')",
        )
    for space in terms.spaces(term):
        if space not in (LINK, JOINT):
            raise StateError(
                f"{UNICODE.text(term)} has no blocks: "
                f"its spaces are {' and '.join(x.name for x in terms.spaces(term))}",
                "take blocks of operators between links and joints; leave I[k] out",
            )
    factor = BlockAt(term, *pair)
    rows, cols = terms.spaces(term)
    return BlockSum(
        {(factor,): Fraction(1)},
        (rows, pair[0] + _parent_offset(term)),
        (cols, pair[1] + _parent_offset(terms.adjoint(term))),
        model,
    )


def _parent_offset(term: Term) -> int:
    """1 if the rows of a block belong to the parent of its body (L, Δ_φ, Δ_ψ, Φ*, Ψ*, S*), or 0."""
    if term.op == "letter":
        x = term.args[0]
        return int(x.row.mixed_axes and (x.row.structure == MEMORYLESS) != x.starred)
    if term.op == "inverse":
        return _parent_offset(terms.adjoint(term.args[0])) if isinstance(term.args[0], Term) else 0
    inner = [_parent_offset(x) for x in term.args if isinstance(x, Term)]
    if term.op == "sum" and len(set(inner)) > 1:
        raise StateError(
            f"{UNICODE.text(term)} has terms whose rows belong to a body, and to its parent",
            "take the blocks of its terms",
        )
    if term.op == "adjoint":
        return (
            _parent_offset(terms.adjoint(term.args[0].args[0])) if term.args[0].op == "sum" else 0
        )
    return inner[0]
