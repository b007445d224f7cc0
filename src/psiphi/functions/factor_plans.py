"""Plans for expressions that are too long for one function: products are evaluated factor by factor
from the right, sums term by term.

    (A + B)^40 v         =  (A + B) ((A + B) (... ((A + B) v)))
    A x + 2 A y + ...    =  A (x + 2 y + ...)

A product is cut where its intermediate vectors are in joint or frame space. Equal factors are one
part, and each part is rewritten and compiled separately. The cost is O(N) per factor, where
multiplying out would result in 2^40 words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import prod
from typing import Any, Protocol

import numpy as np

from psiphi._util.array_types import DType
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import VectorLetter, vector_letter
from psiphi.algebra.expressions.spaces import ONE, size
from psiphi.algebra.expressions.terms import Term
from psiphi.algebra.rewriting.work_budget import share
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.tape.tape import Count

CARRIED = "vector so far"  # the input of a part; no identifier, so that no user's vector has it
CUT = ("joint", "frame")  # spaces of the vectors between parts

Values = Mapping[str, np.ndarray]
TOO_LONG = "too long to be one piece of code"


class Plan(Protocol):
    """A method to evaluate an expression. `values` are q and the vectors by name, as arrays with
    leading batch axes."""

    @property
    def sweeps(self) -> int: ...
    @property
    def dense(self) -> bool: ...
    @property
    def count(self) -> Count: ...
    def __call__(self, values: Values, dtype: DType) -> np.ndarray: ...
    def explain(self) -> str: ...


def word_count(term: Term) -> int:
    """The number of words of a term that is multiplied out, without cancellation."""
    if term.op == "sum":
        return sum(map(word_count, term.args))
    if term.op == "product":
        return prod(map(word_count, term.args))
    return (
        word_count(term.args[1])
        if term.op == "scale"
        else word_count(term.args[0])
        if term.op == "adjoint"
        else 1
    )


def has_parts(term: Term) -> bool:
    """Whether a term has more than one part."""
    _, term = _opened(term)
    return term.op == "sum" or len(_cut_product(term)) > 1


def plan_in_parts(expression: Expression, plan: Callable[[Term], Plan]) -> InTerms | InFactors:
    """The plan of an expression that has parts; `plan(term)` makes the plan of a part."""
    return (InTerms if _opened(expression.term)[1].op == "sum" else InFactors)(expression, plan)


class Parts:
    """The plans of the parts of an expression, each once."""

    def __init__(self, expression: Expression, plan: Callable[[Term], Plan]):
        self.expression, self.plan = expression, plan
        self.c, self.term = _opened(expression.term)
        self.plans: dict[Term, Plan] = {}
        self.used: list[Term] = []  # once per call

    def _use(self, parts: Iterable[Term]) -> None:
        """Make the plans of parts, each with its share of the budget; inputs need none."""
        self.used += [x for x in parts if not input_name(x)]
        waiting = list(dict.fromkeys(self.used))
        for i, term in enumerate(waiting):
            with share(1 / (len(waiting) - i)):
                self.plans[term] = self.plan(term)

    @property
    def dense(self) -> bool:
        return any(part.dense for part in self.plans.values())

    @property
    def sweeps(self) -> int:
        return sum(self.plans[term].sweeps for term in self.used)

    @property
    def count(self) -> Count:
        """The operations of all parts, without sums and matrix products of their results."""
        return sum((self.plans[term].count for term in self.used), Count())

    def _value(self, term: Term, values: Values) -> np.ndarray:
        """The value of a part."""
        if name := input_name(term):
            return values[name]
        names = {x.word for x in terms.letters(term) if isinstance(x, VectorLetter)} | {
            "q",
            "v",
            PARAMETERS,
        }
        return self.plans[term](
            {name: x for name, x in values.items() if name in names}, np.float64
        )

    def _explained(self, method: str) -> str:
        lines = [f"{self.expression}", "", method]
        for term, part in self.plans.items():
            lines += ["", f"-- {Expression(term)}", *part.explain().splitlines()]
        return "\n".join(lines)


class InFactors(Parts):
    """A product, factor by factor from the right: of vectors one after the other, of matrices by
    multiplication."""

    def __init__(self, expression: Expression, plan: Callable[[Term], Plan]):
        super().__init__(expression, plan)
        *others, last = _cut_product(self.term)
        self.last, vector = last, ONE in terms.spaces(self.term)
        self.others = [applied_to_vector(x) if vector else x for x in others]
        self.vector = vector
        self._use((*self.others, last))

    def __call__(self, values: Values, dtype: DType) -> np.ndarray:
        result = self._value(self.last, values)
        for x in reversed(self.others):
            result = (
                self._value(x, {**values, CARRIED: result})
                if self.vector
                else self._value(x, values) @ result
            )
        return float(self.c) * result

    def explain(self) -> str:
        return self._explained(
            f"{TOO_LONG}: factor by factor, {1 + len(self.others)} of them, from the right; each "
            "part is listed once:"
        )


class InTerms(Parts):
    """A sum, term by term. Terms with the same operator on different input vectors are one term:
    A x + 2 A y = A (x + 2 y)."""

    def __init__(self, expression: Expression, plan: Callable[[Term], Plan]):
        super().__init__(expression, plan)
        assert expression.model is not None
        self.size, self.multiple = size(expression.rows, expression.model), Fraction(0)  # of I
        self.addends: list[tuple[Fraction, Term]] = []
        self.collected: dict[Term, list[tuple[Fraction, str]]] = {}  # {A: [(c, x), ...]}
        for addend in self.term.args:
            c, term = _split_scale(addend)
            if (number := terms.identity_multiple(term)) is not None:
                self.multiple += c * number
                continue
            *front, last = term.args if term.op == "product" else (term,)
            name = input_name(last)
            if name and front and terms.spaces(last)[0].name in CUT:
                operator = applied_to_vector(terms.product(*front))
                self.collected.setdefault(operator, []).append((c, name))
            else:
                self.addends.append((c, term))
        self._use((*self.collected, *(term for _, term in self.addends)))

    def __call__(self, values: Values, dtype: DType) -> np.ndarray:
        pairs = [(c, self._value(term, values)) for c, term in self.addends]
        for operator, vectors in self.collected.items():
            x = _weighted_sum((c, values[name]) for c, name in vectors)
            pairs.append((Fraction(1), self._value(operator, {**values, CARRIED: x})))
        if self.multiple:
            pairs.append((self.multiple, np.eye(self.size or 0)))
        return float(self.c) * _weighted_sum(pairs)

    def explain(self) -> str:
        return self._explained(
            f"{TOO_LONG}: term by term, A x + B y + A z as A (x + z) + B y; each part is "
            "listed once:"
        )


def input_name(term: Term) -> str:
    """The name of a term that is an input vector; "" for others."""
    x = term.args[0] if term.op == "letter" else None
    return x.word if isinstance(x, VectorLetter) and x.is_input and not x.starred else ""


def _cut_product(term: Term) -> list[Term]:
    """The factors of a product, cut where intermediate vectors are in joint or frame space.

    A factor times an input vector is one part: cut again, it would be the same product.
    """
    factors = term.args if term.op == "product" else (term,)
    parts: list[list[Term]] = [[factors[0]]]
    for i, x in enumerate(factors[1:], 1):
        carried = i == len(factors) - 1 and input_name(x)
        if terms.spaces(x)[0].name in CUT and not (carried and len(parts[-1]) == 1):
            parts.append([])
        parts[-1].append(x)
    return [terms.product(*part) for part in parts]


def applied_to_vector(x: Term) -> Term:
    """A factor times the vector CARRIED."""
    return terms.product(x, terms.letter_term(vector_letter(CARRIED, terms.spaces(x)[1].name)))


def _opened(term: Term) -> tuple[Fraction, Term]:
    """(c, t) of a term c t, with (A + B) x and (A + B)* x of an input x written as sums."""
    c, term = _split_scale(term)
    if term.op == "product":  # factors like I + I have no space of their own
        numbers = [terms.identity_multiple(x) for x in term.args]
        c *= prod(n for n in numbers if n is not None)
        pairs = zip(term.args, numbers, strict=True)
        term = terms.product(*(x for x, n in pairs if n is None))
    if term.op != "product" or len(term.args) != 2 or not input_name(term.args[1]):
        return c, term
    front, x = term.args
    addends = front.args if front.op == "sum" else ()
    if front.op == "adjoint":
        addends = tuple(map(terms.adjoint, front.args[0].args))
    return c, terms.total(*(terms.product(a, x) for a in addends)) if addends else term


def _split_scale(term: Term) -> tuple[Fraction, Term]:
    """(c, t) of a term c t."""
    return (term.args[0], term.args[1]) if term.op == "scale" else (Fraction(1), term)


def _weighted_sum(pairs: Iterable[tuple[Fraction, np.ndarray]]) -> np.ndarray:
    total: Any = 0.0
    for c, x in pairs:
        total = total + float(c) * x
    return total
