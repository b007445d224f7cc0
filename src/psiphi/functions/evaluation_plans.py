"""How an expression is evaluated. Five plans, each with the same manners; the first that fits is taken:

Sweeps           one compiled function
ByColumns        a matrix too large to write out: its compiled action on the columns of the identity
AroundInverses   an inverse no identity resolves: what stands under it and beside it by plans of their own, A⁻¹ by numbers
in parts         too long for one piece of code: products by factors, sums by terms (`factor_plans.py`)
Dense            no sweeps are known: matrices over links, O(N³); it says so
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi.algebra.dense.dense_inverse import invert
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import vector_letter
from psiphi.algebra.expressions.spaces import ONE, size
from psiphi.algebra.expressions.terms import Term
from psiphi.algebra.rewriting.work_budget import TooLarge, budget
from psiphi.compiler import explanation
from psiphi.compiler.equations import Equation
from psiphi.compiler.lower.column_sweeps import COLUMN, LoweredColumns
from psiphi.compiler.passes import UNROLLED, choose, frame, program, resolve
from psiphi.compiler.tape.tape import Count
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.functions.factor_plans import CARRIED, Parts, has_parts, in_parts, on_vector, words
from psiphi.model.model import Model

Values = Mapping[str, np.ndarray]

WRITTEN_OUT = (
    40_000  # operations from which on a matrix by columns is no longer one straight piece of code
)
LOOPLESS = 1500  # bodies beyond which what cannot run in loops over the tree is refused
MATRICES = 400  # bodies beyond which matrices over links are refused
OPERANDS = 30  # NumPy's gufuncs take 32 arrays, results included
MANY_WORDS = 500  # words from which on multiplying out is given a glance of the budget
GLANCE = 1.0  # seconds
ENTRIES = 200  # products into which sums around inverses may be multiplied out


class Plan(Protocol):
    """`values` holds q and the vectors by name, as arrays with leading batch axes."""

    @property
    def sweeps(self) -> int: ...
    @property
    def dense(self) -> bool: ...
    @property
    def count(self) -> Count: ...
    def __call__(self, values: Values, dtype: Any) -> np.ndarray: ...
    def explain(self) -> str: ...


def plan_for(expression: Expression, function: Function) -> Plan:
    """The plan of an expression that is legal, with every vector settled as force or motion; `function` is its compiled form,
    if it has one."""
    why, equation = "", function.asked
    if len(function.inputs) > OPERANDS:
        if has_parts(expression.term):
            return in_parts(expression, partial(_part_plan, equation))
        cause = f"{expression}: its value hangs on {len(function.inputs)} arrays, and a NumPy function takes {OPERANDS} at most"
        raise StateError(cause, "add up vectors beforehand, or write it as a sum of parts")
    huge = words(expression.term) > MANY_WORDS and has_parts(expression.term)
    if 0 in function.outputs[0].shape:
        return Dense(expression, equation.model, "there is nothing to compute")
    try:
        with budget(min(equation.budget, GLANCE)) if huge else nullcontext():
            known = resolve(equation)["out"].known
            opaque = frozenset(
                e.term for e in equation.results["out"].inverses if e.term not in known
            )
            if opaque and all(_small(x) for x in opaque):
                return AroundInverses(expression, equation, opaque)
            if not opaque:
                return _by_sweeps(expression, function)
    except TooLarge as error:
        why = error.cause
        if has_parts(expression.term):
            return in_parts(expression, partial(_part_plan, equation))
    except StateError:  # no form is made of sweeps
        pass
    if len(equation.model.bodies) > MATRICES:
        why = why or "no identity turns it into sweeps"
        raise StateError(
            f"{expression}: {why}, and {equation.model.name} has too many bodies for matrices",
            "write it as a product with a vector, or give more: budget=60",
        )
    return Dense(expression, equation.model, why)


def _part_plan(equation: Equation, term: Term) -> Plan:
    part = Expression(term, equation.model)
    return plan_for(
        part,
        Function(
            QuantityRequest("expression"),
            Equation({"out": part}, equation.model, budget=equation.budget),
        ),
    )


def _small(term: Term) -> bool:
    """An inverse over joints or frames; matrices over links are left to `Dense`."""
    return all(space.name in ("joint", "frame") for space in terms.spaces(term))


def _by_sweeps(expression: Expression, function: Function) -> Plan:
    equation, bodies = function.asked, len(function.model.bodies)
    by_columns = isinstance(choose(equation).lowered, LoweredColumns)
    if equation.is_matrix and (bodies > UNROLLED or by_columns):
        columns = ByColumns(expression, equation)
        if bodies > UNROLLED or columns.written_out > WRITTEN_OUT:
            return columns
    if (
        bodies > LOOPLESS
        and not program(equation, frame(equation.model, choose(equation).lowered.rods)).local
    ):
        raise StateError(
            f"{expression} cannot run in loops over the tree, and {equation.model.name} has {bodies} bodies",
            "make functions of its parts, each of one frame and of joint vectors, and combine what they return",
        )
    return Sweeps(function)


class Sweeps:
    """One compiled function."""

    dense = False

    def __init__(self, function: Function):
        self.function, self.equation = function, function.asked

    @property
    def sweeps(self) -> int:
        return explanation.sweeps(self.equation)

    @property
    def count(self) -> Count:
        return self.function.count

    def __call__(self, values: Values, dtype: Any) -> np.ndarray:
        arrays = [values[arg.name] for arg in self.function.inputs]
        return self.function.run(arrays, dtype=dtype)

    def explain(self) -> str:
        return explanation.explain(self.equation, self.count)


class ByColumns(Sweeps):
    """X as the vector function X x on the columns x of the identity, a batch axis more."""

    def __init__(self, expression: Expression, equation: Equation):
        space, frames = expression.cols.name, expression.cols.frames
        self.width = equation.model.nv if space == "joint" else 6 * (frames or 0)
        x = Expression(terms.of_letter(vector_letter(COLUMN, space)), equation.model)
        column = Equation({"out": expression @ x}, equation.model, budget=equation.budget)
        super().__init__(Function(QuantityRequest("expression"), column))
        self.symmetric = terms.adjoint(expression.term) == expression.term

    @property
    def written_out(self) -> int:
        """Operations of the whole matrix, were each column written out."""
        return self.function.code.count.flops * self.width

    @property
    def count(self) -> Count:
        return self.function.count * self.width

    def __call__(self, values: Values, dtype: Any) -> np.ndarray:
        kind = np.dtype(dtype or np.result_type(np.float32, *values.values()))
        more = {name: array[..., None, :] for name, array in values.items()} | {
            COLUMN: np.eye(self.width, dtype=kind)
        }
        arrays = [more[arg.name] for arg in self.function.inputs]
        columns = self.function.run(arrays, dtype=kind)
        X = columns.swapaxes(-1, -2)
        return (X + columns) / 2 if self.symmetric else X

    def explain(self) -> str:
        one = explanation.explain(self.equation, self.function.count)
        return f"{one}\n\nThis is one of its {self.width} columns; they run as a batch."


class Dense:
    """Matrices over links, as the expression defines them."""

    dense, sweeps = True, 0

    def __init__(self, expression: Expression, model: Model, why: str = ""):
        self.expression, self.model, self.why = expression, model, why

    @property
    def count(self) -> Count:
        raise StateError(
            f"{self.expression} is evaluated as dense matrices, which are not counted",
            "see explain()",
        )

    def __call__(self, values: Values, dtype: Any) -> np.ndarray:
        given = dict(values)
        return evaluate(
            self.expression.term, self.model, given.pop("q"), given.pop("v", None), given, invert
        )

    def explain(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.expression}\n\nNo identity turns this into sweeps{why}: it is evaluated as a dense matrix, O(N^3)."


class AroundInverses(Parts):
    """A sum of products around inverses: c A X⁻¹ B Y⁻¹ d, each part by its own plan, from the right.

    Where X is singular the element is NaN, and only that one.
    """

    def __init__(self, expression: Expression, equation: Equation, opaque: frozenset[Term]):
        super().__init__(expression, partial(_part_plan, equation))
        self.opaque, term = opaque, expression.term
        rows, cols = terms.spaces(term)
        self.vector = ONE in (rows, cols)
        entries = self._entries(terms.adjoint(term) if rows == ONE and cols != ONE else term)
        self.multiple = float(sum(c for c, factors in entries if not factors))  # of the identity
        self.size = size(rows, equation.model) or 0
        entries = [(c, factors) for c, factors in entries if factors]
        free = [
            terms.scaled(c, terms.product(*factors))
            for c, factors in entries
            if not any(map(self._is_opaque, factors))
        ]
        self.free = terms.total(*free) if free else None
        self.products = [
            (c, self._segments(factors))
            for c, factors in entries
            if any(map(self._is_opaque, factors))
        ]
        needed = [] if self.free is None else [self.free]
        for x in dict.fromkeys(
            [*needed, *(x for _, segments in self.products for x in self._needed(segments))]
        ):
            self._use(x)

    def _is_opaque(self, term: Term) -> bool:
        return term.op == "inverse" and term.args[0] in self.opaque

    def _holds(self, term: Term) -> bool:
        return self._is_opaque(term) or any(
            self._holds(x) for x in term.args if isinstance(x, Term)
        )

    def _entries(self, term: Term) -> list[tuple[Fraction, tuple[Term, ...]]]:
        """c t u ..., multiplied out as far as inverses ask for it."""
        if (c := terms.multiple(term)) is not None:
            return [(c, ())]
        if self._is_opaque(term) or (term.op != "scale" and not self._holds(term)):
            return [(Fraction(1), (term,))]
        if term.op == "scale":
            return [(term.args[0] * c, factors) for c, factors in self._entries(term.args[1])]
        if term.op == "adjoint":
            return self._entries(terms.total(*map(terms.adjoint, term.args[0].args)))
        if term.op == "sum":
            return [entry for x in term.args for entry in self._entries(x)]
        if term.op == "inverse":  # known, of something that holds an inverse that is not
            raise StateError(f"{Expression(term)}: an inverse inside another that is known", "")
        found: list[tuple[Fraction, tuple[Term, ...]]] = [(Fraction(1), ())]
        for x in term.args:
            found = [(c * d, (*left, *right)) for c, left in found for d, right in self._entries(x)]
            if len(found) > ENTRIES:
                raise TooLarge(
                    f"{self.expression} multiplies out to more than {ENTRIES} products",
                    "write it shorter",
                )
        return found

    def _segments(self, factors: tuple[Term, ...]) -> list[Term]:
        """Neighbours without inverses as one factor."""
        segments: list[Term] = []
        for x in factors:
            if segments and not self._is_opaque(x) and not self._is_opaque(segments[-1]):
                segments[-1] = terms.product(segments[-1], x)
            else:
                segments.append(x)
        return segments

    def _needed(self, segments: list[Term]) -> list[Term]:
        """What has plans of its own: inverses' insides, and the others, on a vector where one is carried through."""
        *others, last = (x.args[0] if self._is_opaque(x) else x for x in segments)
        carried = zip(segments, others, strict=False)
        return [
            *(
                on_vector(x) if self.vector and not self._is_opaque(own) else x
                for own, x in carried
            ),
            last,
        ]

    @property
    def count(self) -> Count:
        raise StateError(
            f"{self.expression} holds an inverse by numbers, which is not counted", "see explain()"
        )

    def __call__(self, values: Values, dtype: Any) -> np.ndarray:
        total: Any = 0.0 if self.free is None else self._value(self.free, values)
        if self.multiple:
            total = total + self.multiple * np.eye(self.size)
        for c, segments in self.products:
            total = total + float(c) * self._product(segments, values)
        return total

    def _product(self, segments: list[Term], values: Values) -> np.ndarray:
        """From the right: a vector is carried through; matrices are multiplied."""
        found: Any = None
        for x in reversed(segments):
            if self._is_opaque(x):
                inverse = invert(self._value(x.args[0], values))
                found = inverse if found is None else _times(inverse, found, self.vector)
            elif found is None:
                found = self._value(x, values)
            elif self.vector:
                found = self._value(on_vector(x), {**values, CARRIED: found})
            else:
                found = self._value(x, values) @ found
        return found

    def explain(self) -> str:
        return self._explained("in parts, with inverses by numbers (NaN where there is none):")


def _times(A: np.ndarray, x: np.ndarray, vector: bool) -> np.ndarray:
    return (A @ x[..., None])[..., 0] if vector else A @ x
