"""Rewrite rules: oriented equations between polynomials, with proofs; sets of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from typing import TypeAlias, overload

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import letter
from psiphi.algebra.expressions.notation import show_poly, show_word
from psiphi.algebra.expressions.terms import (
    Poly,
    Word,
    accumulate,
    add,
    adjoint_poly,
    two_sided_product,
)
from psiphi.algebra.rewriting.work_budget import spend


@dataclass(frozen=True, eq=False)
class Axiom:
    """An equation that is assumed: lhs - rhs as a polynomial, and its source."""

    sides: tuple[Expression, Expression] | str  # or their text
    poly: Poly
    source: str

    def __str__(self) -> str:
        return self.sides if isinstance(self.sides, str) else "{} = {}".format(*self.sides)


def axiom(lhs: Expression, rhs: Expression, source: str) -> Axiom:
    """The axiom lhs = rhs."""
    return Axiom((lhs, rhs), add(lhs.poly(), rhs.poly(), -1), source)


@lru_cache(maxsize=65536)
def term_order(word: Word) -> tuple[int, int, Word]:
    """The key of the term order: weight, length, alphabet. Products on both sides preserve it."""
    return sum(letter(x).row.weight for x in word), len(word), word


class HeaviestFirst:
    """A word in a heap, which gives the heaviest word first."""

    __slots__ = ("key", "word")

    def __init__(self, word: Word):
        self.word, self.key = word, term_order(word)

    def __lt__(self, other: HeaviestFirst) -> bool:
        return self.key > other.key


@dataclass(frozen=True)
class Statement:
    """An axiom or its adjoint: a leaf of proofs."""

    axiom: Axiom
    starred: bool = False
    name: str = ""

    @property
    def poly(self) -> Poly:
        """lhs - rhs, which is zero."""
        return adjoint_poly(self.axiom.poly) if self.starred else self.axiom.poly

    @property
    def axioms(self) -> tuple[Axiom, ...]:
        return (self.axiom,)


@dataclass(frozen=True, eq=False)
class Rule:
    """lead -> rest. `proof`: lead - rest as a sum of c u (r) v over axioms and earlier rules r."""

    lead: Word
    rest: Poly
    proof: tuple[Application, ...] = ()
    name: str = ""

    @property
    def poly(self) -> Poly:
        """lead - rest, which is zero."""
        p = {word: -c for word, c in self.rest.items()}
        accumulate(p, {self.lead: Fraction(1)})
        return p

    @cached_property
    def axioms(self) -> tuple[Axiom, ...]:
        """The axioms from which it was derived."""
        return tuple(dict.fromkeys(axiom for use in self.proof for axiom in use.rule.axioms))

    @property
    def source(self) -> str:
        """Its name in the papers, or the sources of its axioms."""
        return self.name or ", ".join(dict.fromkeys(axiom.source for axiom in self.axioms))

    def __str__(self) -> str:
        return f"{show_word(self.lead)} → {show_poly(self.rest)}"


@dataclass(frozen=True, eq=False)
class Application:
    """c left (rule) right: one application of a rule."""

    c: Fraction
    left: Word
    rule: Rule | Statement
    right: Word

    def scaled(self, factor: Fraction) -> Application:
        return Application(self.c * factor, self.left, self.rule, self.right)


@dataclass(frozen=True, eq=False)
class Rewriting:
    """A rewriting step: `rule` applied at `position` of `word`; the polynomial before and after."""

    rule: Rule
    word: Word
    position: int
    before: Poly
    after: Poly

    @property
    def source(self) -> str:
        return self.rule.source

    @property
    def replacement(self) -> Poly:
        """The polynomial that replaces the word."""
        return two_sided_product(
            self.word[: self.position],
            self.rule.rest,
            self.word[self.position + len(self.rule.lead) :],
        )

    def __str__(self) -> str:
        return f"{show_word(self.word)}  →  {show_poly(self.replacement)}"


FindRule: TypeAlias = Callable[[Word], tuple[int, Rule] | None]


@dataclass(frozen=True, eq=False)
class Rules(Sequence[Rule]):
    """A set of rules; `complete` if completion terminated: normal forms are then unique."""

    rules: tuple[Rule, ...]
    complete: bool = True
    by_lead: dict[Word, Rule] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "by_lead", {rule.lead: rule for rule in self.rules})

    @overload
    def __getitem__(self, i: int) -> Rule: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[Rule, ...]: ...
    def __getitem__(self, i: int | slice) -> Rule | tuple[Rule, ...]:
        return self.rules[i]

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        return tuple(sorted({len(rule.lead) for rule in self.rules}))

    def find(self, word: Word) -> tuple[int, Rule] | None:
        """(position, rule) of the rule that applies: shortest lead first, then leftmost."""
        return find(word, self.by_lead, self.lengths)

    def reduce(self, p: Poly) -> Poly:
        """The normal form of a polynomial."""
        return reduce(p, self.find)[0]

    def steps(self, p: Poly) -> tuple[Poly, list[Rewriting]]:
        """The normal form, and the steps to it."""
        steps = list(rewriting_steps(p, self.find))
        return (steps[-1].after if steps else p), steps


def find(
    word: Word, by_lead: Mapping[Word, Rule], lengths: Sequence[int]
) -> tuple[int, Rule] | None:
    """(position, rule) of the rule that applies to a word: by `lengths` in order, then leftmost."""
    for n in lengths:
        for i in range(len(word) - n + 1):
            rule = by_lead.get(word[i : i + n])
            if rule is not None:
                return i, rule
    return None


def reduce(p: Poly, find: FindRule) -> tuple[Poly, list[Application]]:
    """Rewrite until no rule applies, heaviest words first; the applications sum to p - result."""
    done: Poly = {}
    todo, uses = dict(p), []
    heap = [HeaviestFirst(word) for word in todo]
    heapify(heap)
    while todo:
        word = heappop(heap).word
        if word not in todo:  # it has cancelled, or was added twice
            continue
        c = todo.pop(word)
        hit = find(word)
        if hit is None:
            spend(2 + 0.3 * len(todo) + 2 * len(word))
            # added, not set: inverses expand to heavier words, which may already be done
            accumulate(done, {word: c})
            continue
        i, rule = hit
        left, right = word[:i], word[i + len(rule.lead) :]
        spend(5 + 0.3 * len(todo) + len(word) + (2 + 0.2 * len(word)) * len(rule.rest))
        added = two_sided_product(left, rule.rest, right)
        accumulate(todo, added, c)
        for x in added:
            heappush(heap, HeaviestFirst(x))
        uses.append(Application(c, left, rule, right))
    return done, uses


def rewriting_steps(p: Poly, find: FindRule) -> Iterator[Rewriting]:
    """The steps of `reduce`, each with the whole polynomial."""
    done: set[Word] = set()
    while todo := p.keys() - done:
        word = max(todo, key=term_order)
        hit = find(word)
        if hit is None:
            spend(2 + 0.3 * len(p) + 2 * len(word))
            done.add(word)
            continue
        i, rule = hit
        spend(10 + 0.5 * len(p) + len(word) + (2 + 0.2 * len(word)) * len(rule.rest))
        after = {w: c for w, c in p.items() if w != word}
        accumulate(
            after, two_sided_product(word[:i], rule.rest, word[i + len(rule.lead) :]), p[word]
        )
        yield Rewriting(rule, word, i, p, after)
        p = after
