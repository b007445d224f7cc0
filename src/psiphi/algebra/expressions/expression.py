"""Operator expressions: @ + - * / .T .inv, checked when written, printed as algebra."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from numbers import Rational, Real
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi.algebra.blocks.block_element import BlockSum, block
from psiphi.algebra.blocks.block_table import Blocks, label_blocks, plot
from psiphi.algebra.blocks.body_indices import Index
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.dense.rank_check import check_invertible
from psiphi.algebra.expressions import terms, type_checks
from psiphi.algebra.expressions.force_motion_duality import ends
from psiphi.algebra.expressions.letters import Letter
from psiphi.algebra.expressions.notation import LATEX, UNICODE, Python
from psiphi.algebra.expressions.spaces import Space, size, with_frame_count
from psiphi.algebra.expressions.terms import Poly, Term
from psiphi.model.model import Model

if TYPE_CHECKING:
    from collections.abc import Collection

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@with_late_methods
@dataclass(frozen=True)
class Expression:
    """An operator expression: a term of the algebra, for one robot (`model` None: for any robot).

    `rows` and `cols` are its spaces, `.T` its adjoint, `.inv` its inverse. A product of operators
    whose spaces do not fit raises an error. `==` compares how two expressions are written; `prove`
    decides whether they have the same value.
    """

    term: Term
    model: Model | None = None

    if TYPE_CHECKING:  # implemented in a later package

        def dot(self, frame: str = "local", held: str | Collection[str] = ()) -> Expression: ...

    __array_ufunc__ = None  # NumPy arrays defer to the operators of this class

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise StateError(
            f"{self} is an operator, not an array of numbers",
            "evaluate it: expr.dense(q) or pp.function(expr)(q)",
        )

    @cached_property
    def rows(self) -> Space:
        """The space of its values."""
        found = ends(self.term)
        return with_frame_count(terms.spaces(self.term)[0], found.value(found.gives))

    @cached_property
    def cols(self) -> Space:
        """The space it acts on."""
        found = ends(self.term)
        return with_frame_count(terms.spaces(self.term)[1], found.value(found.takes))

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """Its dimensions on its robot; None if unknown."""
        if self.model is None:
            return None, None
        return size(self.rows, self.model), size(self.cols, self.model)

    @property
    def T(self) -> Expression:
        """The adjoint."""
        return Expression(terms.adjoint(self.term), self.model)

    @property
    def inv(self) -> Expression:
        """The inverse of a square expression."""
        type_checks.check_square(self.term, self.model)
        check_invertible(self.term, self.model)
        return Expression(terms.inverse(self.term), self.model)

    def __getitem__(self, bodies: Index | tuple[Index, Index]) -> BlockSum:
        """The block between two bodies: k, j = s.bodies("k j"), then s.psi[k, j].

        s.D[k] is s.D[k, k].
        """
        return block(self.term, self.model, bodies)

    __iter__ = None

    def __matmul__(self, other: Expression) -> Expression:
        other = type_checks.check_operand(self, "@", other)
        model = type_checks.common_robot(self, "@", other)
        type_checks.check_product(self.term, other.term, model)
        return Expression(terms.product(self.term, other.term), model)

    def __rmatmul__(self, other: object) -> NoReturn:
        raise type_checks.operand_error(other, "@", self)

    def __add__(self, other: Expression | float) -> Expression:
        if isinstance(other, Real) and other == 0:  # the start value of sum()
            return self
        right = type_checks.check_operand(self, "+", other)
        model = type_checks.common_robot(self, "+", right)
        type_checks.check_sum(self.term, right.term, model)
        return Expression(terms.total(self.term, right.term), model)

    __radd__ = __add__

    def __neg__(self) -> Expression:
        return Expression(terms.scaled(Fraction(-1), self.term), self.model)

    def __sub__(self, other: Expression | float) -> Expression:
        return self + (-other if isinstance(other, Expression) else other)

    def __rsub__(self, other: Expression | float) -> Expression:
        return -self + other

    def __mul__(self, c: float | Fraction) -> Expression:
        return Expression(terms.scaled(_scalar(self, "*", c), self.term), self.model)

    __rmul__ = __mul__

    def __truediv__(self, c: float | Fraction) -> Expression:
        divisor = _scalar(self, "/", c)
        if divisor == 0:
            raise StateError(f"{self} / 0", "divide by a nonzero number")
        return Expression(terms.scaled(1 / divisor, self.term), self.model)

    def poly(self) -> Poly:
        """The polynomial {word: coefficient}.

        The inverse of `self.inverses[n]` is the letter "inv:n".
        """
        return terms.expand(self.term, terms.inverses_as_letters([x.term for x in self.inverses]))

    @cached_property
    def inverses(self) -> tuple[Expression, ...]:
        """The expressions whose inverses occur, in order, inner before outer (D⁻¹ is a letter)."""
        return tuple(Expression(t, self.model) for t in dict.fromkeys(terms.inverses(self.term)))

    @property
    def letters(self) -> frozenset[Letter]:
        """The letters that occur in it."""
        return frozenset(terms.letters(self.term))

    def dense(
        self, q: Numbers, v: Numbers | None = None, *, axes: str = "link", **vectors: Numbers
    ) -> np.ndarray:
        """The matrix (..., rows, cols) at q (..., nq); (..., rows) for a vector.

        Link quantities are in link axes, bodies base to tip; with axes="world" rows and columns
        over links are in world axes, still about link origins. Vectors of the expression are passed
        by name, in link axes. `v` (..., nv) is also used for letters that depend on velocity, such
        as a and b.
        """
        return evaluate(self.term, self.require_model(), q, v, vectors, axes=axes)

    def blocks(
        self, q: Numbers, v: Numbers | None = None, *, axes: str = "link", **vectors: Numbers
    ) -> Blocks:
        """The blocks of the matrix at one q, by joint, link and frame: blocks["elbow", "arm"]."""
        matrix = evaluate(self.term, self.require_model(), q, v, vectors, axes=axes)
        return label_blocks(self.term, self.require_model(), matrix)

    def plot(
        self,
        q: Numbers,
        v: Numbers | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        ax: Axes | None = None,
        **vectors: Numbers,
    ) -> Figure:
        """A matplotlib figure of the magnitudes of its entries at one q, with labelled blocks.

        `path` also writes it to a file; `ax` draws into existing axes. Needs matplotlib.
        """
        return plot(self.blocks(q, v, axes="link", **vectors), str(self), path, ax)

    def latex(self) -> str:
        r"""The expression in LaTeX.

        >>> vector("tau").T.latex()
        '\\tau^*'
        """
        return LATEX.text(self.term)

    def require_model(self) -> Model:
        """(Internal use only) Its robot; an error if it has none."""
        if self.model is None:
            raise StateError(
                f"{self} belongs to no robot",
                "write it with the operators of a robot: s = robot.operators",
            )
        return self.model

    def __str__(self) -> str:
        return UNICODE.text(self.term)

    def __repr__(self) -> str:
        return Python("s").text(self.term)

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


def _scalar(expression: Expression, sign: str, value: object) -> Fraction:
    """The number `value`, as a Fraction."""
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real) and isfinite(float(value)):
        return Fraction(float(value))
    if isinstance(value, Expression):
        raise StateError(
            f"({expression}) {sign} ({value}): {sign} takes a number",
            "use @ for the product of operators",
        )
    raise StateError(
        f"({expression}) {sign} {value!r}: expected a finite number",
        "scale by an int, a float or a Fraction",
    )


def vector(name: str, space: str = "joint") -> Expression:
    """A vector whose value is passed by name: `vector("tau")`, `vector("f", "frame")`.

    `space` is "joint", "link" or "frame", or "motion" or "force" for a link vector of that kind;
    with "link" the expression determines which it is.

    >>> str(vector("tau").T @ vector("v")), str(vector("alpha", "motion"))
    ('tau* v', 'alpha')
    """
    return Expression(terms.letter_term(type_checks.named_vector(name, space)))


def symbol(name: str, space: str = "link") -> Expression:
    """An arbitrary block-diagonal operator, for identities that hold for all (Lemma A.1 of S0)."""
    return Expression(terms.letter_term(type_checks.named_symbol(name, space)))
