"""What is too long to be one piece of code, part by part: products factor by factor from the right, sums term by term.

    (A + B)^40 v  =  (A + B) ((A + B) (... ((A + B) v)))         A x + 2 A y + ...  =  A (x + 2 y + ...)

A product is cut where it passes through joints or frames, equal factors are one part, and each part is rewritten and compiled
on its own: O(N) for every factor, where multiplying out would make 2^40 words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import VectorLetter, vector_letter
from psiphi.algebra.expressions.spaces import ONE
from psiphi.algebra.expressions.terms import Term
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.tape.tape import Count

CARRIED = "vector so far"  # a name no user can give
CUT = ("joint", "frame")  # spaces in which a vector is handed from part to part

Values = Mapping[str, np.ndarray]
TOO_LONG = "too long to be one piece of code"


def words(term: Term) -> int:
    """Into how many words a term would be multiplied out, if none of them met."""
    if term.op == "sum":
        return sum(map(words, term.args))
    if term.op == "product":
        return prod(map(words, term.args))
    return (
        words(term.args[1])
        if term.op == "scale"
        else words(term.args[0])
        if term.op == "adjoint"
        else 1
    )


def has_parts(term: Term) -> bool:
    """Whether there is more than one part."""
    _, term = _unscaled(term)
    return term.op == "sum" or len(_segments(term)) > 1


def in_parts(expression: Expression, plan: Callable[[Term], Any]) -> InTerms | InFactors:
    """An expression that has parts; `plan` makes the plan of one."""
    return (InTerms if _unscaled(expression.term)[1].op == "sum" else InFactors)(expression, plan)


class Parts:
    """The plans of some terms, each once."""

    def __init__(self, expression: Expression, plan: Callable[[Term], Any]):
        self.expression, self.plan = expression, plan
        self.c, self.term = _unscaled(expression.term)
        self.plans: dict[Term, Any] = {}
        self.used: list[Term] = []  # as often as it is called

    def _use(self, term: Term) -> None:
        if not given(term):
            self.used.append(term)
            if term not in self.plans:
                self.plans[term] = self.plan(term)

    @property
    def dense(self) -> bool:
        return any(part.dense for part in self.plans.values())

    @property
    def sweeps(self) -> int:
        return sum(self.plans[term].sweeps for term in self.used)

    @property
    def count(self) -> Count:
        """Of all parts; sums and products of matrices between them are not counted."""
        return sum((self.plans[term].count for term in self.used), Count())

    def _value(self, term: Term, values: Values) -> np.ndarray:
        if name := given(term):
            return values[name]
        names = {x.word for x in terms.letters(term) if isinstance(x, VectorLetter)} | {
            "q",
            "v",
            PARAMETERS,
        }
        return self.plans[term](
            {name: x for name, x in values.items() if name in names}, np.float64
        )

    def _explained(self, how: str) -> str:
        lines = [f"{self.expression}", "", how]
        for term, part in self.plans.items():
            lines += ["", f"-- {Expression(term)}", *part.explain().splitlines()]
        return "\n".join(lines)


class InFactors(Parts):
    """A product, factor by factor from the right: a vector is carried through, matrices are multiplied."""

    def __init__(self, expression: Expression, plan: Callable[[Term], Any]):
        super().__init__(expression, plan)
        *others, last = _segments(self.term)
        self.last, vector = last, ONE in terms.spaces(self.term)
        self.carried = [on_vector(x) if vector else x for x in others]
        self.vector = vector
        for x in (*self.carried, last):
            self._use(x)

    def __call__(self, values: Values, dtype: Any) -> np.ndarray:
        found = self._value(self.last, values)
        for x in reversed(self.carried):
            found = (
                self._value(x, {**values, CARRIED: found})
                if self.vector
                else self._value(x, values) @ found
            )
        return float(self.c) * found

    def explain(self) -> str:
        return self._explained(
            f"{TOO_LONG}: factor by factor, {1 + len(self.carried)} of them, from the right; each part once:"
        )


class InTerms(Parts):
    """A sum, term by term; terms that end in given vectors and begin alike are one: A x + 2 A y = A (x + 2 y)."""

    def __init__(self, expression: Expression, plan: Callable[[Term], Any]):
        super().__init__(expression, plan)
        self.whole: list[tuple[Fraction, Term]] = []
        self.alike: dict[Term, list[tuple[Fraction, str]]] = {}
        for addend in self.term.args:
            c, term = _unscaled(addend)
            *front, last = term.args if term.op == "product" else (term,)
            name = given(last)
            if name and front and terms.spaces(last)[0].name in CUT:
                self.alike.setdefault(on_vector(terms.product(*front)), []).append((c, name))
            else:
                self.whole.append((c, term))
        for x in (*self.alike, *(term for _, term in self.whole)):
            self._use(x)

    def __call__(self, values: Values, dtype: Any) -> np.ndarray:
        pairs = [(c, self._value(term, values)) for c, term in self.whole]
        for front, vectors in self.alike.items():
            x = _combined((c, values[name]) for c, name in vectors)
            pairs.append((Fraction(1), self._value(front, {**values, CARRIED: x})))
        return float(self.c) * _combined(pairs)

    def explain(self) -> str:
        return self._explained(
            f"{TOO_LONG}: term by term, A x + B y + A z as A (x + z) + B y; each part once:"
        )


def given(term: Term) -> str:
    """The name of a vector that stands alone; "" for anything else."""
    x = term.args[0] if term.op == "letter" else None
    return x.word if isinstance(x, VectorLetter) and x.given and not x.starred else ""


def _segments(term: Term) -> list[Term]:
    """The factors of a product, cut where it passes through joints or frames."""
    factors = term.args if term.op == "product" else (term,)
    found: list[list[Term]] = [[factors[0]]]
    for x in factors[1:]:
        if terms.spaces(x)[0].name in CUT:
            found.append([])
        found[-1].append(x)
    return [terms.product(*parts) for parts in found]


def on_vector(x: Term) -> Term:
    """A factor as it acts on what stands to its right."""
    return terms.product(x, terms.of_letter(vector_letter(CARRIED, terms.spaces(x)[1].name)))


def _unscaled(term: Term) -> tuple[Fraction, Term]:
    """c, t of c t."""
    return (term.args[0], term.args[1]) if term.op == "scale" else (Fraction(1), term)


def _combined(pairs: Iterable[tuple[Fraction, np.ndarray]]) -> np.ndarray:
    total: Any = 0.0
    for c, x in pairs:
        total = total + float(c) * x
    return total
