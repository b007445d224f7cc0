"""What the user writes: operators with @ + - * / .T .inv, checked when written, printed as algebra."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi.algebra.blocks.block_element import BlockSum, element
from psiphi.algebra.blocks.block_table import Blocks, labelled, plot
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.dense.rank_check import check_invertible
from psiphi.algebra.expressions import terms, type_checks
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import Letter
from psiphi.algebra.expressions.notation import LATEX, UNICODE, Python
from psiphi.algebra.expressions.spaces import Space, filled, size
from psiphi.algebra.expressions.terms import Poly, Term
from psiphi.model.model import Model

if TYPE_CHECKING:
    from collections.abc import Collection

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@with_late_methods
@dataclass(frozen=True)
class Expression:
    """An operator expression: a term of the algebra, on one robot (`model` None: on any).

    `rows` and `cols` are its spaces, `.T` its adjoint, `.inv` its inverse. Products of unlike spaces are refused when
    written. Equal expressions were written alike; `prove` says whether two expressions have the same value.
    """

    term: Term
    model: Model | None = None

    if TYPE_CHECKING:  # implemented in a later package

        def dot(self, frame: str = "local", held: str | Collection[str] = ()) -> Expression: ...

    __array_ufunc__ = None  # NumPy arrays leave the operators to us

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise StateError(
            f"{self} is an operator, and no array of numbers",
            "expr.dense(q), or pp.function(expr)(q), has them",
        )

    @cached_property
    def rows(self) -> Space:
        """The space it maps to."""
        found = ends(self.term)
        return filled(terms.spaces(self.term)[0], found.value(found.gives))

    @cached_property
    def cols(self) -> Space:
        """The space it acts on."""
        found = ends(self.term)
        return filled(terms.spaces(self.term)[1], found.value(found.takes))

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Its dimensions on its robot (None where they are open)."""
        if self.model is None:
            return None, None
        return size(self.rows, self.model), size(self.cols, self.model)

    @property
    def T(self) -> Expression:
        """The adjoint."""
        return Expression(terms.adjoint(self.term), self.model)

    @property
    def inv(self) -> Expression:
        """The inverse, of a square expression."""
        type_checks.check_square(self.term, self.model)
        check_invertible(self.term, self.model)
        return Expression(terms.inverse(self.term), self.model)

    def __getitem__(self, at: Any) -> BlockSum:
        """Its block between two bodies given by letters, k, j = s.bodies("k j"): s.psi[k, j]; s.D[k] is s.D[k, k]."""
        return element(self.term, self.model, at)

    __iter__ = None

    def __matmul__(self, other: Any) -> Expression:
        other = type_checks.operand(self, "@", other)
        model = type_checks.common_robot(self, "@", other)
        type_checks.check_product(self.term, other.term, model)
        return Expression(terms.product(self.term, other.term), model)

    def __rmatmul__(self, other: Any) -> Expression:
        raise type_checks.foreign(other, "@", self)

    def __add__(self, other: Any) -> Expression:
        if isinstance(other, Real) and other == 0:  # so that sum() works
            return self
        other = type_checks.operand(self, "+", other)
        model = type_checks.common_robot(self, "+", other)
        type_checks.check_sum(self.term, other.term, model)
        return Expression(terms.total(self.term, other.term), model)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return Expression(terms.scaled(Fraction(-1), self.term), self.model)

    def __sub__(self, other: Any) -> Expression:
        return self + (-other if isinstance(other, Expression) else other)

    def __rsub__(self, other: Any) -> Expression:
        return -self + other

    def __mul__(self, other: Any) -> Expression:
        return Expression(terms.scaled(_scalar(self, "*", other), self.term), self.model)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expression:
        c = _scalar(self, "/", other)
        if c == 0:
            raise StateError(f"{self} / 0", "divide by a number other than zero")
        return Expression(terms.scaled(1 / c, self.term), self.model)

    def poly(self) -> Poly:
        """The expanded polynomial {word: coefficient}; the inverse of `self.inverses[n]` stands there as "inv:n"."""
        return terms.expand(self.term, terms.numbered([x.term for x in self.inverses]))

    @cached_property
    def inverses(self) -> tuple[Expression, ...]:
        """What stands under an inverse sign, in order, inner before outer (D⁻¹ is a letter of its own)."""
        return tuple(Expression(t, self.model) for t in dict.fromkeys(terms.inverses(self.term)))

    @property
    def letters(self) -> frozenset[Letter]:
        """The letters it is written with."""
        return frozenset(terms.letters(self.term))

    def dense(self, q: Numbers, v: Numbers | None = None, **vectors: Numbers) -> np.ndarray:
        """The matrix at q (..., nq), in link axes, bodies base to tip: (..., rows, cols); vectors come out as (..., rows).

        Vectors of the expression are given by name; `v` also serves a and b.
        """
        return evaluate(self.term, self._robot(), q, v, vectors)

    def blocks(self, q: Numbers, v: Numbers | None = None, **vectors: Numbers) -> Blocks:
        """The matrix at one q by its blocks: blocks["elbow", "forearm"], labelled with joints, links and frames."""
        return labelled(self.term, self._robot(), self.dense(q, v, **vectors))

    def plot(
        self,
        q: Numbers,
        v: Numbers | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        ax: Axes | None = None,
        **vectors: Numbers,
    ) -> Figure:
        """The sizes of its entries at one q, blocks labelled: a matplotlib figure; `path` also writes it to a file.

        `ax` draws into axes of yours. Needs `psiphi[plot]`.
        """
        return plot(self.blocks(q, v, **vectors), str(self), path, ax)

    def latex(self) -> str:
        r"""The expression in LaTeX, for papers.

        >>> vector("tau").T.latex()
        '\\tau^*'
        """
        return LATEX.text(self.term)

    def _robot(self) -> Model:
        if self.model is None:
            raise StateError(
                f"{self} belongs to no robot yet",
                "write it with the operators of a robot: s = robot.operators",
            )
        return self.model

    def __str__(self) -> str:
        return UNICODE.text(self.term)

    def __repr__(self) -> str:
        return Python("s").text(self.term)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def _scalar(expression: Expression, sign: str, value: Any) -> Fraction:
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real) and isfinite(float(value)):
        return Fraction(float(value))
    if isinstance(value, Expression):
        raise StateError(
            f"({expression}) {sign} ({value}): {sign} takes a number",
            "write @ for the product of operators",
        )
    raise StateError(
        f"({expression}) {sign} {value!r}: expected a finite number",
        "scale by an int, a float or a Fraction",
    )


def vector(name: str, space: str = "joint") -> Expression:
    """A vector by name, given when the expression is evaluated: `vector("tau")`, `vector("f", "frame")`.

    Over links, "motion" and "force" say what it is; "link" leaves it to the expression.

    >>> str(vector("tau").T @ vector("v")), str(vector("alpha", "motion"))
    ('tau* v', 'alpha')
    """
    return Expression(terms.of_letter(type_checks.named_vector(name, space)))


def symbol(name: str, space: str = "link") -> Expression:
    """An unknown block-diagonal operator by name: for statements that hold for any (Lemma A.1 of S0)."""
    return Expression(terms.of_letter(type_checks.named_symbol(name, space)))
