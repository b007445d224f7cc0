"""Completion: rules with unique normal forms from axioms.

This is Knuth-Bendix completion, or Buchberger's algorithm on non-commutative polynomials. Each
equation and its adjoint become a rule from the heaviest word to the rest. If two rules overlap in
a word, the two results may differ; their difference is a new equation (a critical pair). When all
critical pairs reduce to zero, the rules are confluent: two expressions are equal by the axioms if
and only if their normal forms are equal.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

from psiphi.algebra.expressions.terms import (
    Poly,
    Word,
    add,
    adjoint_poly,
    scale_poly,
    two_sided_product,
)
from psiphi.algebra.rewriting.rewrite_rules import (
    Application,
    Axiom,
    Rule,
    Rules,
    Statement,
    find,
    reduce,
    term_order,
)
from psiphi.algebra.rewriting.work_budget import spend

MAX_PAIRS = 2000  # with more critical pairs, rules are sound but normal forms may not be unique


@dataclass
class Completion:
    """The rules so far by leading word, and a queue of equations and overlaps, lightest first."""

    rules: dict[Word, Rule] = field(default_factory=dict)
    queue: list = field(default_factory=list)
    tie_breaker: Iterator[int] = field(default_factory=count)

    def find(self, word: Word) -> tuple[int, Rule] | None:
        return find(word, self.rules, sorted({len(lead) for lead in self.rules}))

    def add_equation(self, known: Rule | Statement) -> None:
        """Queue an equation."""
        p = known.poly
        heapq.heappush(
            self.queue,
            (
                term_order(max(p, key=term_order)),
                next(self.tie_breaker),
                (p, (Application(Fraction(1), (), known, ()),)),
            ),
        )

    def add_rule(self, p: Poly, proof: tuple[Application, ...]) -> None:
        """Reduce p = 0 and add the remainder as a rule; rules that it reduces are queued again."""
        rest, uses = reduce(p, self.find)
        if not rest:
            return
        lead = max(rest, key=term_order)
        c = rest.pop(lead)
        proof = tuple(use.scaled(1 / c) for use in proof) + tuple(
            use.scaled(-1 / c) for use in uses
        )
        for old in [word for word in self.rules if _contains(word, lead)]:
            self.add_equation(self.rules.pop(old))
        self.rules[lead] = Rule(lead, scale_poly(rest, -1 / c), proof)
        spend(2 * len(self.rules))
        for other in list(self.rules):
            self.queue_overlaps(lead, other)
            if other != lead:
                self.queue_overlaps(other, lead)

    def queue_overlaps(self, a: Word, b: Word) -> None:
        """Queue the words in which an end of a is a start of b."""
        for n in range(1, min(len(a), len(b))):
            if a[-n:] == b[:n]:
                heapq.heappush(
                    self.queue,
                    (
                        term_order(a + b[n:]),
                        next(self.tie_breaker),
                        (self.rules[a], self.rules[b], n),
                    ),
                )

    def add_critical_pair(self, a: Rule, b: Rule, n: int) -> None:
        """Add the critical pair of two rules that overlap in n letters."""
        if self.rules.get(a.lead) is not a or self.rules.get(b.lead) is not b:
            return
        left, right = a.lead[:-n], b.lead[n:]
        p = add(two_sided_product(left, b.rest, ()), two_sided_product((), a.rest, right), -1)
        self.add_rule(
            p, (Application(Fraction(1), (), a, right), Application(Fraction(-1), left, b, ()))
        )

    def run(self, pairs: int) -> bool:
        """Work off the queue; False if there are more critical pairs than `pairs`."""
        while self.queue:
            _, _, work = heapq.heappop(self.queue)
            if len(work) == 2:
                self.add_rule(*work)
                continue
            if pairs == 0:
                return False
            pairs -= 1
            spend(100)
            self.add_critical_pair(*work)
        return True

    def interreduced(self) -> Iterator[Rule]:
        """The rules with right sides in normal form."""
        for rule in self.rules.values():
            rest, uses = reduce(rule.rest, self.find)
            yield (
                rule
                if not uses
                else Rule(rule.lead, rest, (Application(Fraction(1), (), rule, ()), *uses))
            )


def complete(axioms: Iterable[Axiom], base: Rules | None = None, pairs: int = MAX_PAIRS) -> Rules:
    """The completed rules of `base`, the axioms and their adjoints."""
    completion = Completion()
    for rule in base or ():
        completion.rules[rule.lead] = rule
    for axiom in axioms:
        completion.add_equation(Statement(axiom))
        if adjoint_poly(axiom.poly) not in (axiom.poly, scale_poly(axiom.poly, -1)):
            completion.add_equation(Statement(axiom, starred=True))
    finished = completion.run(pairs)
    return Rules(tuple(completion.interreduced()), finished and (base is None or base.complete))


def _contains(word: Word, part: Word) -> bool:
    n = len(part)
    return any(word[i : i + n] == part for i in range(len(word) - n + 1))
