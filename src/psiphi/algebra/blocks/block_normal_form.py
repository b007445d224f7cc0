"""The normal form of blocks: paths and sums are split at every letter of a statement.

φ(k,j) = φ(k,j+1) φ(j+1,j)                      k > j; also for ψ, and at any letter in between
Σ[j ≤ i < k] X(i) = X(j) + Σ[j+1 ≤ i < k] X(i)  k > j; factors without i are taken out
Ω(k) = Σ[k ≤ i] ψ*(i,k) H*(i) D⁻¹(i) H(i) ψ(i,k)
ψ(j+1,j) = φ(j+1,j) (I - G(j) H(j)), ...        rules of the memoryless letters of one body
                                                (`rule_sets.py`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from psiphi._util.errors import StateError
from psiphi.algebra.blocks.block_terms import (
    STEPS,
    BlockAt,
    BlockPoly,
    Factor,
    Factors,
    PathSum,
    free_indices,
)
from psiphi.algebra.blocks.body_indices import Ancestor, Index, Order
from psiphi.algebra.expressions.block_structure import MEMORYLESS
from psiphi.algebra.expressions.letters import Letter, letter
from psiphi.algebra.expressions.notation import Notation
from psiphi.algebra.expressions.terms import accumulate
from psiphi.algebra.rewriting.rewrite_rules import Rule, Rules
from psiphi.algebra.rewriting.work_budget import spend

PATH_OF_STEP = {step: path for path, step in STEPS.items()}  # φ(j+1,j), ψ(j+1,j)
IndexMap = Callable[[Index], Index]


@dataclass(frozen=True)
class LetterAt:
    """A memoryless letter at one body."""

    letter: Letter
    body: Index

    @property
    def indices(self) -> tuple[Index, ...]:
        return (self.body,)

    @property
    def T(self) -> LetterAt:
        return LetterAt(self.letter.T, self.body)

    def show(self, notation: Notation) -> str:
        if self.letter.bare in PATH_OF_STEP:
            return Path(
                letter(PATH_OF_STEP[self.letter.bare]),
                self.body + 1,
                self.body,
                self.letter.starred,
            ).show(notation)
        return f"{notation.letter(self.letter)[0]}({self.body})"


@dataclass(frozen=True)
class Path:
    """φ(high,low) or ψ(high,low), the product of the steps in between; or its adjoint."""

    letter: Letter
    high: Index
    low: Index
    starred: bool = False

    @property
    def indices(self) -> tuple[Index, ...]:
        return self.high, self.low

    @property
    def T(self) -> Path:
        return replace(self, starred=not self.starred)

    def show(self, notation: Notation) -> str:
        symbol = notation.letter(self.letter.T if self.starred else self.letter)[0]
        return f"{symbol}({self.high},{self.low})"


def map_indices(x: Factor, to: IndexMap) -> Factor:
    """A factor with every index replaced."""
    if isinstance(x, LetterAt):
        return LetterAt(x.letter, to(x.body))
    if isinstance(x, Path):
        return replace(x, high=to(x.high), low=to(x.low))
    if isinstance(x, BlockAt):
        return replace(x, row=to(x.row), col=to(x.col))
    stop = None if x.stop is None else to(x.stop)
    return PathSum(x.i, to(x.start), stop, tuple(map_indices(y, to) for y in x.word))


def substitute(p: Mapping[Factors, Fraction], name: str, by: Index) -> BlockPoly:
    """The polynomial with a letter replaced by a body: k by k+1, or by j+1."""
    total: BlockPoly = {}
    for word, c in p.items():
        accumulate(total, {tuple(map_indices(x, replace_letter(name, by)) for x in word): c})
    return total


def replace_letter(name: str, by: Index) -> IndexMap:
    """The map that replaces a letter by a body."""
    return lambda x: by + x.up if x.name == name else x


def all_indices(p: Iterable[Factors]) -> set[Index]:
    """The bodies that occur in words, without those of sums."""
    return {x for word in p for x in free_indices(word)}


@lru_cache
def memoryless_rules(rules: Rules) -> Rules:
    """The rules between memoryless letters, which hold at each body."""
    return Rules(tuple(rule for rule in rules if _is_memoryless(rule)))


def _is_memoryless(rule: Rule) -> bool:
    return all(
        x.row.structure == MEMORYLESS and x.bare != "Om"
        for word in (rule.lead, *rule.rest)
        for x in word
    )


@dataclass
class BlockNormalizer:
    """Rewrites polynomials of blocks to normal form.

    rules     between memoryless letters
    points    bodies at which paths and sums are split
    sources   the sources of the rules that were applied
    """

    rules: Rules
    order: Order
    points: tuple[Index, ...]
    sources: dict[str, None]

    def __call__(self, p: Mapping[Factors, Fraction]) -> BlockPoly:
        done: BlockPoly = {}
        todo = list(p.items())
        while todo:
            spend(20)
            word, c = todo.pop()
            after = self._step(word)
            if after is None:
                accumulate(done, {word: c})
            else:
                todo += [(w, c * d) for w, d in after]
        return done

    def _step(self, word: Factors) -> list[tuple[Factors, Fraction]] | None:
        """The word after one rewriting step; None if nothing applies."""
        for n, x in enumerate(word):
            result = (
                self._split_path(x)
                if isinstance(x, Path)
                else self._split_sum(x)
                if isinstance(x, PathSum)
                else None
            )
            if result is None and isinstance(x, LetterAt) and x.letter == "Om":
                result = self._expand_omega(x)
            if result is not None:
                return [((*word[:n], *w, *word[n + 1 :]), c) for w, c in result]
        return self._apply_rule(word)

    def _apply_rule(self, word: Factors) -> list[tuple[Factors, Fraction]] | None:
        """Apply a rule to letters of one body."""
        n = 0
        while n < len(word):
            m = n
            while (
                m < len(word)
                and isinstance(word[m], LetterAt)
                and isinstance(word[n], LetterAt)
                and word[m].body == word[n].body
            ):
                m += 1
            hit = self.rules.find(tuple(x.letter for x in word[n:m])) if m > n else None
            if hit is not None:
                i, rule = hit
                self.sources[rule.source] = None
                start, stop, body = n + i, n + i + len(rule.lead), word[n].body
                return [
                    ((*word[:start], *(LetterAt(x, body) for x in w), *word[stop:]), c)
                    for w, c in rule.rest.items()
                ]
            n = max(m, n + 1)
        return None

    def _split_path(self, x: Path) -> list[tuple[Factors, Fraction]] | None:
        """φ(k,k) = I; otherwise split at a point, or split off the last step."""
        if x.high == x.low:
            return [((), Fraction(1))]
        for p in self.points:
            if (
                p not in (x.high, x.low)
                and self.order.at_least(x.high, p)
                and self.order.at_least(p, x.low)
            ):
                return [(_in_order(x, (replace(x, low=p), replace(x, high=p))), Fraction(1))]
        if self.order.is_above(x.high, x.low):
            last = LetterAt(letter(STEPS[x.letter]), x.low)
            return [
                (
                    _in_order(x, (replace(x, low=x.low + 1), last.T if x.starred else last)),
                    Fraction(1),
                )
            ]
        return None

    def _split_sum(self, x: PathSum) -> list[tuple[Factors, Fraction]] | None:
        """Split a sum at a point, rewrite its terms, or take out factors independent of i."""
        one = Fraction(1)
        if x.stop == x.start:
            return []
        for p in self.points:
            if (
                self.order.exists(p)
                and self.order.at_least(p, x.start)
                and (x.stop is None or self.order.is_above(x.stop, p))
            ):
                there = tuple(map_indices(y, replace_letter(x.i.name, p)) for y in x.word)
                return [
                    ((replace(x, stop=p),), one),
                    (there, one),
                    ((replace(x, start=p + 1),), one),
                ]
        facts = [
            Ancestor(x.i, x.start),
            *([Ancestor(x.stop, x.i + 1)] if x.stop is not None and not x.stop.up else []),
        ]
        ends = (x.start, *(() if x.stop is None else (x.stop,)))
        inner = BlockNormalizer(
            self.rules,
            self.order | facts,
            tuple(dict.fromkeys((*self.points, *ends))),
            self.sources,
        )
        terms = inner({x.word: one})
        if terms != {x.word: one}:
            return [((replace(x, word=word),), c) for word, c in terms.items()]
        depends = [
            n for n, y in enumerate(x.word) if x.i.name in {z.name for z in all_indices([(y,)])}
        ]
        first, last = (depends[0], depends[-1] + 1) if depends else (0, len(x.word))
        if (first, last) == (0, len(x.word)):
            return None
        return [((*x.word[:first], replace(x, word=x.word[first:last]), *x.word[last:]), one)]

    def _expand_omega(self, x: LetterAt) -> list[tuple[Factors, Fraction]] | None:
        """Ω(k) as a block of ψ* H* D⁻¹ H ψ."""
        i = Index(unused_letter({y.name for y in (*self.points, x.body)}))
        if any(fact.upper.name == i.name for fact in self.order if isinstance(fact, Ancestor)):
            return None  # within a sum, Ω is not expanded
        to = Path(letter("psi"), i, x.body)
        word = (
            to.T,
            LetterAt(letter("H*"), i),
            LetterAt(letter("D_inv"), i),
            LetterAt(letter("H"), i),
            to,
        )
        return [((PathSum(i, x.body, None, word),), Fraction(1))]


def _in_order(x: Path, parts: Factors) -> Factors:
    return tuple(reversed(parts)) if x.starred else parts


def unused_letter(names: set[str]) -> str:
    """A letter for the index of sums that does not occur among the names."""
    for name in ("i", "l", "m", "n", "r", *(f"i{n}" for n in range(len(names) + 1))):
        if name not in names:
            return name
    raise StateError("all letters for indices of sums are used", "use fewer letters")
