"""Methods to evaluate an expression; the first that applies is chosen.

Sweeps           one compiled function
ByColumns        a large matrix: its compiled product with the columns of the identity
AroundInverses   with an inverse that no identity resolves: its argument and the other factors are
                 evaluated by plans, and the inverse is computed numerically
in parts         too long for one function: factor by factor, term by term (`factor_plans.py`)
Dense            no sweeps are known: matrices over links, O(N³)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from math import inf
from typing import Any

import numpy as np

from psiphi._util.array_types import DType
from psiphi._util.errors import StateError
from psiphi.algebra.dense.dense_inverse import invert
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import vector_letter
from psiphi.algebra.expressions.spaces import ONE, size
from psiphi.algebra.expressions.terms import Term
from psiphi.algebra.rewriting.work_budget import TooLarge, limit_work, share
from psiphi.compiler import explanation
from psiphi.compiler.equations import Equation
from psiphi.compiler.lower.column_sweeps import COLUMN_INPUT, LoweredColumns
from psiphi.compiler.passes import UNROLL_LIMIT, choose, fills_in_loops, frame, program, resolve
from psiphi.compiler.tape.tape import Count
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.functions.factor_plans import (
    CARRIED,
    Parts,
    Plan,
    Values,
    applied_to_vector,
    has_parts,
    plan_in_parts,
    word_count,
)
from psiphi.model.model import Model

MAX_WRITTEN_OUT = 40_000  # operations: larger matrices are computed by columns
MAX_STRAIGHT_BODIES = 1500  # bodies: larger robots need loops over the tree
MAX_DENSE_BODIES = 400  # bodies: larger robots have no matrices over links
MAX_OPERANDS = 30  # arrays: NumPy's gufuncs take 32, results included
MANY_WORDS = 500  # words: for more, multiplying out gets only QUICK_BUDGET
QUICK_BUDGET = 1.0  # seconds
MAX_PRODUCTS = 200  # products into which sums around inverses may be multiplied out


def plan_for(expression: Expression, function: Function) -> Plan:
    """The plan of an expression; `function` is its compiled form, if it has one.

    The expression is type-checked, and the kind of each of its vectors, force or motion, is known.
    """
    why, equation = "", function.source.request
    assert isinstance(equation, Equation)
    if len(function.inputs) > MAX_OPERANDS:
        if has_parts(expression.term):
            return plan_in_parts(expression, partial(_part_plan, equation))
        raise StateError(
            f"{expression} depends on {len(function.inputs)} arrays, and a NumPy function takes "
            f"{MAX_OPERANDS} at most",
            "add up vectors beforehand, or write it as a sum of parts",
        )
    if 0 in function.outputs[0].shape:
        return Dense(expression, equation.model, "there is nothing to compute")
    opaque: frozenset[Term] = frozenset()
    try:
        with _attempt(expression.term):
            opaque = _opaque_inverses(equation)
            if not opaque:
                return _sweep_plan(expression, function, equation)
    except TooLarge as error:
        why = error.cause
        if has_parts(expression.term):
            return plan_in_parts(expression, partial(_part_plan, equation))
        opaque = opaque or frozenset(e.term for e in equation.results["out"].inverses)
    except StateError:  # no form has sweeps
        pass
    if opaque and all(map(_is_small_inverse, opaque)):
        try:
            return AroundInverses(expression, equation, opaque)
        except StateError as error:
            why = why or error.cause
            if isinstance(error, TooLarge) and has_parts(expression.term):
                return plan_in_parts(expression, partial(_part_plan, equation))
    if len(equation.model.bodies) > MAX_DENSE_BODIES:
        why = why or "no identity turns it into sweeps"
        raise StateError(
            f"{expression}: {why}, and {equation.model.name} has too many bodies for matrices",
            "write it as a product with a vector, or give more: budget=60",
        )
    return Dense(expression, equation.model, why)


@contextmanager
def _attempt(term: Term) -> Iterator[None]:
    """The limit of the attempt to make one function of a term; parts get what is left over."""
    divisible = has_parts(term)
    seconds = QUICK_BUDGET if divisible and word_count(term) > MANY_WORDS else inf
    part = 0.5 if divisible or any(terms.inverses(term)) else 1.0
    with limit_work(seconds), share(part, seconds):
        yield


def _opaque_inverses(equation: Equation) -> frozenset[Term]:
    """The terms that are inverted and whose inverses no identity knows."""
    known = resolve(equation)["out"].known
    return frozenset(e.term for e in equation.results["out"].inverses if e.term not in known)


def _part_plan(equation: Equation, term: Term) -> Plan:
    """The plan of a part of an equation."""
    part = Expression(term, equation.model)
    return plan_for(
        part,
        Function(
            QuantityRequest("expression"),
            Equation({"out": part}, equation.model, budget=equation.budget),
        ),
    )


def _is_small_inverse(term: Term) -> bool:
    """Whether an inverse is over joints or frames; matrices over links are evaluated by `Dense`."""
    return all(space.name in ("joint", "frame") for space in terms.spaces(term))


def _sweep_plan(expression: Expression, function: Function, equation: Equation) -> Plan:
    """The plan of an expression that has sweeps."""
    bodies = len(equation.model.bodies)
    chosen = choose(equation)
    by_columns = isinstance(chosen.lowered, LoweredColumns)
    by_columns |= bodies > UNROLL_LIMIT and not fills_in_loops(chosen)
    if equation.is_matrix and by_columns:
        columns = ByColumns(expression, equation)
        if bodies > UNROLL_LIMIT or columns.written_out > MAX_WRITTEN_OUT:
            return columns
    if (
        bodies > MAX_STRAIGHT_BODIES
        and not program(
            equation, frame(equation.model, choose(equation).lowered.movable_inertia)
        ).can_loop
    ):
        raise StateError(
            f"{expression} cannot run in loops over the tree, and {equation.model.name} has "
            f"{bodies} bodies",
            "make functions of its parts, each with one frame and joint vectors, and combine their "
            "results",
        )
    return Sweeps(function, equation)


class Sweeps:
    """One compiled function."""

    dense = False

    def __init__(self, function: Function, equation: Equation):
        self.function, self.equation = function, equation

    @property
    def sweeps(self) -> int:
        return explanation.sweep_count(self.equation)

    @property
    def count(self) -> Count:
        return self.function.count

    def __call__(self, values: Values, dtype: DType) -> np.ndarray:
        arrays = [values[arg.name] for arg in self.function.inputs]
        return self.function.run(arrays, dtype=dtype)

    def explain(self) -> str:
        return explanation.explain(self.equation, self.count)


class ByColumns(Sweeps):
    """A matrix X, computed as the product X x with the columns x of the identity, as one batch."""

    def __init__(self, expression: Expression, equation: Equation):
        space, frames = expression.cols.name, expression.cols.frames
        self.width = equation.model.nv if space == "joint" else 6 * (frames or 0)
        x = Expression(terms.letter_term(vector_letter(COLUMN_INPUT, space)), equation.model)
        column = Equation({"out": expression @ x}, equation.model, budget=equation.budget)
        super().__init__(Function(QuantityRequest("expression"), column), column)
        self.symmetric = terms.adjoint(expression.term) == expression.term

    @property
    def written_out(self) -> int:
        """The operations of the whole matrix in straight-line code, column by column."""
        return self.function.source.code.count.flops * self.width

    @property
    def count(self) -> Count:
        return self.function.count * self.width

    def __call__(self, values: Values, dtype: DType) -> np.ndarray:
        kind = np.dtype(dtype or np.result_type(np.float32, *values.values()))
        batch = {name: array[..., None, :] for name, array in values.items()} | {
            COLUMN_INPUT: np.eye(self.width, dtype=kind)
        }
        arrays = [batch[arg.name] for arg in self.function.inputs]
        columns = self.function.run(arrays, dtype=kind)
        X = columns.swapaxes(-1, -2)
        return (X + columns) / 2 if self.symmetric else X

    def explain(self) -> str:
        column = explanation.explain(self.equation, self.function.count)
        return f"{column}\n\nThis is one of {self.width} columns, which run as a batch."


class Dense:
    """Matrices over links, as the definition of the expression has them."""

    dense, sweeps = True, 0

    def __init__(self, expression: Expression, model: Model, why: str = ""):
        self.expression, self.model, self.why = expression, model, why

    @property
    def count(self) -> Count:
        raise StateError(
            f"{self.expression} is evaluated as dense matrices, which are not counted",
            "see explain()",
        )

    def __call__(self, values: Values, dtype: DType) -> np.ndarray:
        vectors = dict(values)
        q, v = vectors.pop("q"), vectors.pop("v", None)
        return evaluate(self.expression.term, self.model, q, v, vectors, invert)

    def explain(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return (
            f"{self.expression}\n\nNo identity turns this into sweeps{why}: it is evaluated as a "
            "dense matrix, O(N^3)."
        )


class AroundInverses(Parts):
    """A sum of products with opaque inverses, c A X⁻¹ B Y⁻¹ d: X, Y and the other factors are
    evaluated by plans, from the right. Batch elements with a singular X are NaN."""

    def __init__(self, expression: Expression, equation: Equation, opaque: frozenset[Term]):
        super().__init__(expression, partial(_part_plan, equation))
        self.opaque, term = opaque, expression.term
        rows, cols = terms.spaces(term)
        self.vector = ONE in (rows, cols)
        products = self._expand(terms.adjoint(term) if rows == ONE and cols != ONE else term)
        self.multiple = float(sum(c for c, factors in products if not factors))  # of the identity
        self.size = size(rows, equation.model) or 0
        products = [(c, factors) for c, factors in products if factors]
        plain = [
            terms.scaled(c, terms.product(*factors))
            for c, factors in products
            if not any(map(self._is_opaque, factors))
        ]
        self.plain = terms.total(*plain) if plain else None  # the addends without opaque inverses
        self.products = [
            (c, self._segments(factors))
            for c, factors in products
            if any(map(self._is_opaque, factors))
        ]
        needed = [] if self.plain is None else [self.plain]
        needed += [x for _, segments in self.products for x in self._needed(segments)]
        self._use(dict.fromkeys(needed))

    def _is_opaque(self, term: Term) -> bool:
        return term.op == "inverse" and term.args[0] in self.opaque

    def _contains_opaque(self, term: Term) -> bool:
        return self._is_opaque(term) or any(
            self._contains_opaque(x) for x in term.args if isinstance(x, Term)
        )

    def _expand(self, term: Term) -> list[tuple[Fraction, tuple[Term, ...]]]:
        """The addends (c, factors) of a term, multiplied out only around opaque inverses."""
        if (c := terms.identity_multiple(term)) is not None:
            return [(c, ())]
        if self._is_opaque(term) or (term.op != "scale" and not self._contains_opaque(term)):
            return [(Fraction(1), (term,))]
        if term.op == "scale":
            return [(term.args[0] * c, factors) for c, factors in self._expand(term.args[1])]
        if term.op == "adjoint":
            return self._expand(terms.total(*map(terms.adjoint, term.args[0].args)))
        if term.op == "sum":
            return [addend for x in term.args for addend in self._expand(x)]
        if term.op == "inverse":  # a resolved inverse of a term with an opaque one
            raise StateError(f"{Expression(term)}: an opaque inverse inside a resolved one", "")
        addends: list[tuple[Fraction, tuple[Term, ...]]] = [(Fraction(1), ())]
        for x in term.args:
            addends = [
                (c * d, (*left, *right)) for c, left in addends for d, right in self._expand(x)
            ]
            if len(addends) > MAX_PRODUCTS:
                raise TooLarge(
                    f"{self.expression} multiplies out to more than {MAX_PRODUCTS} products",
                    "write it shorter",
                )
        return addends

    def _segments(self, factors: tuple[Term, ...]) -> list[Term]:
        """The factors, with adjacent ones multiplied, except for opaque inverses."""
        segments: list[Term] = []
        for x in factors:
            if segments and not self._is_opaque(x) and not self._is_opaque(segments[-1]):
                segments[-1] = terms.product(segments[-1], x)
            else:
                segments.append(x)
        return segments

    def _needed(self, segments: list[Term]) -> list[Term]:
        """The terms that need plans: the arguments of opaque inverses, and the other segments,
        times a vector if the product is one."""
        *others, last = (x.args[0] if self._is_opaque(x) else x for x in segments)
        pairs = zip(segments, others, strict=False)
        return [
            *(
                applied_to_vector(x) if self.vector and not self._is_opaque(segment) else x
                for segment, x in pairs
            ),
            last,
        ]

    @property
    def count(self) -> Count:
        raise StateError(
            f"{self.expression} has an inverse that is computed numerically, which is not counted",
            "see explain()",
        )

    def __call__(self, values: Values, dtype: DType) -> np.ndarray:
        total: Any = 0.0 if self.plain is None else self._value(self.plain, values)
        if self.multiple:
            total = total + self.multiple * np.eye(self.size)
        for c, segments in self.products:
            total = total + float(c) * self._product(segments, values)
        return total

    def _product(self, segments: list[Term], values: Values) -> np.ndarray:
        """The product of the segments, from the right."""
        result: Any = None
        for x in reversed(segments):
            if self._is_opaque(x):
                inverse = invert(self._value(x.args[0], values))
                result = inverse if result is None else _multiply(inverse, result, self.vector)
            elif result is None:
                result = self._value(x, values)
            elif self.vector:
                result = self._value(applied_to_vector(x), {**values, CARRIED: result})
            else:
                result = self._value(x, values) @ result
        return result

    def explain(self) -> str:
        return self._explained("in parts, with numerical inverses (NaN for singular matrices):")


def _multiply(A: np.ndarray, x: np.ndarray, vector: bool) -> np.ndarray:
    return (A @ x[..., None])[..., 0] if vector else A @ x
