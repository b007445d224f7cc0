"""Completion: from axioms to rules whose normal forms are unique (Knuth-Bendix / Buchberger on non-commutative polynomials).

Each equation, and its adjoint, is oriented from its heaviest word to the rest. Where two rules overlap in one word they
may disagree: the difference is a new equation (a critical pair). When no pair disagrees any more, the rules are confluent:
two expressions are equal, as far as the axioms say, exactly when their normal forms are.
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

MAX_PAIRS = 2000  # critical pairs looked at before giving up: the rules are then sound, but normal forms may not be unique


@dataclass
class Completion:
    """Rules so far, by their leading words, and what is left to do: equations (with proofs) and overlaps, lightest first."""

    rules: dict[Word, Rule] = field(default_factory=dict)
    queue: list = field(default_factory=list)
    ticket: Iterator[int] = field(default_factory=count)

    def find(self, word: Word) -> tuple[int, Rule] | None:
        return find(word, self.rules, sorted({len(lead) for lead in self.rules}))

    def state(self, known: Rule | Statement) -> None:
        """An equation to be considered."""
        p = known.poly
        heapq.heappush(
            self.queue,
            (
                term_order(max(p, key=term_order)),
                next(self.ticket),
                (p, (Application(Fraction(1), (), known, ()),)),
            ),
        )

    def consider(self, p: Poly, proof: tuple[Application, ...]) -> None:
        """Reduce p = 0; what remains is a new rule, which may unseat others and overlaps with all."""
        rest, uses = reduce(p, self.find)
        if not rest:
            return
        lead = max(rest, key=term_order)
        c = rest.pop(lead)
        proof = tuple(use.times(1 / c) for use in proof) + tuple(use.times(-1 / c) for use in uses)
        for old in [word for word in self.rules if _contains(word, lead)]:
            self.state(self.rules.pop(old))
        self.rules[lead] = Rule(lead, scale_poly(rest, -1 / c), proof)
        spend(2 * len(self.rules))
        for other in list(self.rules):
            self.overlap(lead, other)
            if other != lead:
                self.overlap(other, lead)

    def overlap(self, a: Word, b: Word) -> None:
        """Queue the words in which an end of a is a beginning of b."""
        for n in range(1, min(len(a), len(b))):
            if a[-n:] == b[:n]:
                heapq.heappush(
                    self.queue,
                    (term_order(a + b[n:]), next(self.ticket), (self.rules[a], self.rules[b], n)),
                )

    def disagree(self, a: Rule, b: Rule, n: int) -> None:
        """The critical pair of two rules that share n letters."""
        if self.rules.get(a.lead) is not a or self.rules.get(b.lead) is not b:
            return
        left, right = a.lead[:-n], b.lead[n:]
        p = add(two_sided_product(left, b.rest, ()), two_sided_product((), a.rest, right), -1)
        self.consider(
            p, (Application(Fraction(1), (), a, right), Application(Fraction(-1), left, b, ()))
        )

    def run(self, pairs: int) -> bool:
        """Until nothing is left to do, or so many pairs were looked at."""
        while self.queue:
            _, _, work = heapq.heappop(self.queue)
            if len(work) == 2:
                self.consider(*work)
                continue
            if pairs == 0:
                return False
            pairs -= 1
            spend(100)
            self.disagree(*work)
        return True

    def tidy(self) -> Iterator[Rule]:
        """Each rule with its right side in normal form."""
        for rule in self.rules.values():
            rest, uses = reduce(rule.rest, self.find)
            yield (
                rule
                if not uses
                else Rule(rule.lead, rest, (Application(Fraction(1), (), rule, ()), *uses))
            )


def complete(axioms: Iterable[Axiom], base: Rules | None = None, pairs: int = MAX_PAIRS) -> Rules:
    """The rules of the axioms and their adjoints, on top of `base`."""
    work = Completion()
    for rule in base or ():
        work.rules[rule.lead] = rule
    for axiom in axioms:
        work.state(Statement(axiom))
        if adjoint_poly(axiom.poly) not in (axiom.poly, scale_poly(axiom.poly, -1)):
            work.state(Statement(axiom, starred=True))
    whole = work.run(pairs)
    return Rules(tuple(work.tidy()), whole and (base is None or base.complete))


def _contains(word: Word, part: Word) -> bool:
    n = len(part)
    return any(word[i : i + n] == part for i in range(len(word) - n + 1))
