"""Rules: oriented equations between polynomials, each with its proof; a set of them rewrites to normal form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

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
    """An equation taken as true: lhs - rhs as a polynomial, and where it stands."""

    sides: tuple[Expression, Expression] | str  # or the text of it
    poly: Poly
    source: str

    def __str__(self) -> str:
        return self.sides if isinstance(self.sides, str) else "{} = {}".format(*self.sides)


def axiom(lhs: Expression, rhs: Expression, source: str) -> Axiom:
    """lhs = rhs."""
    return Axiom((lhs, rhs), add(lhs.poly(), rhs.poly(), -1), source)


@lru_cache(maxsize=65536)
def term_order(word: Word) -> tuple[int, int, Word]:
    """The key of the term order: weight, length, then the alphabet; compatible with products on both sides."""
    return sum(letter(x).row.weight for x in word), len(word), word


@dataclass(frozen=True)
class Statement:
    """An axiom as it stands, or its adjoint: where proofs end."""

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
    """lead -> rest, with lead - rest written as a sum of c u (r) v over axioms and earlier rules: its `proof`."""

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
        """The axioms it was derived from."""
        return tuple(dict.fromkeys(axiom for use in self.proof for axiom in use.rule.axioms))

    @property
    def source(self) -> str:
        """Its name in the papers, or the axioms behind it."""
        return self.name or ", ".join(dict.fromkeys(axiom.source for axiom in self.axioms))

    def __str__(self) -> str:
        return f"{show_word(self.lead)} → {show_poly(self.rest)}"


@dataclass(frozen=True, eq=False)
class Application:
    """c left (rule) right: one rule, put to work once."""

    c: Fraction
    left: Word
    rule: Rule | Statement
    right: Word

    def times(self, factor: Fraction) -> Application:
        return Application(self.c * factor, self.left, self.rule, self.right)


@dataclass(frozen=True, eq=False)
class Rewriting:
    """One rewriting: `rule` applied to the letter at `position` of `word`; the whole polynomial before and after."""

    rule: Rule
    word: Word
    position: int
    before: Poly
    after: Poly

    @property
    def source(self) -> str:
        return self.rule.source

    @property
    def made(self) -> Poly:
        """What the word has become."""
        return two_sided_product(
            self.word[: self.position],
            self.rule.rest,
            self.word[self.position + len(self.rule.lead) :],
        )

    def __str__(self) -> str:
        return f"{show_word(self.word)}  →  {show_poly(self.made)}"


@dataclass(frozen=True, eq=False)
class Rules(Sequence[Rule]):
    """A set of rules; `complete` when completion ran to its end, so that normal forms are unique."""

    rules: tuple[Rule, ...]
    complete: bool = True
    by_lead: dict[Word, Rule] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "by_lead", {rule.lead: rule for rule in self.rules})

    def __getitem__(self, i):
        return self.rules[i]

    def __len__(self) -> int:
        return len(self.rules)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        return tuple(sorted({len(rule.lead) for rule in self.rules}))

    def find(self, word: Word) -> tuple[int, Rule] | None:
        """Where a rule applies: shortest rules first, then leftmost."""
        return find(word, self.by_lead, self.lengths)

    def reduce(self, p: Poly) -> Poly:
        """The normal form."""
        return reduce(p, self.find)[0]

    def steps(self, p: Poly) -> tuple[Poly, list[Rewriting]]:
        """The normal form, and how it was reached."""
        steps = list(rewriting_steps(p, self.find))
        return (steps[-1].after if steps else p), steps


def find(
    word: Word, by_lead: Mapping[Word, Rule], lengths: Sequence[int]
) -> tuple[int, Rule] | None:
    """Where a rule applies to a word, and which: of leading words of these `lengths`, in this order, then leftmost."""
    for n in lengths:
        for i in range(len(word) - n + 1):
            rule = by_lead.get(word[i : i + n])
            if rule is not None:
                return i, rule
    return None


def reduce(p: Poly, find) -> tuple[Poly, list[Application]]:
    """Rewrite until nothing applies, heaviest words first; the uses add up to p - result."""
    done: Poly = {}
    todo, uses = dict(p), []
    while todo:
        word = max(todo, key=term_order)
        c = todo.pop(word)
        hit = find(word)
        if hit is None:
            spend(2 + 0.3 * len(todo) + 2 * len(word))
            accumulate(
                done, {word: c}
            )  # inverses unfold to heavier words, which may have been met before
            continue
        i, rule = hit
        left, right = word[:i], word[i + len(rule.lead) :]
        spend(5 + 0.3 * len(todo) + len(word) + (2 + 0.2 * len(word)) * len(rule.rest))
        accumulate(todo, two_sided_product(left, rule.rest, right), c)
        uses.append(Application(c, left, rule, right))
    return done, uses


def rewriting_steps(p: Poly, find) -> Iterator[Rewriting]:
    """The same, one step at a time, with the whole polynomial at each."""
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
