"""Blocks in normal form: products along the path through every letter of a statement, sums over what lies between two of them.

φ(k,j)              = φ(k,j+1) φ(j+1,j)                     where k > j; likewise ψ, and through any letter between
Σ[j ≤ i < k] X(i)   = X(j) + Σ[j+1 ≤ i < k] X(i)            where k > j; what does not depend on i stands before and behind
Ω(k)                = Σ[k ≤ i] ψ*(i,k) H*(i) D⁻¹(i) H(i) ψ(i,k)
letters of one body    the rules of the operators that have no memory (`rule_sets.py`): ψ(j+1,j) = φ(j+1,j) (I - G(j) H(j)), ...
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
    """A letter without memory, at one body."""

    letter: Letter
    at: Index

    @property
    def indices(self) -> tuple[Index, ...]:
        return (self.at,)

    @property
    def T(self) -> LetterAt:
        return LetterAt(self.letter.T, self.at)

    def show(self, notation: Notation) -> str:
        if self.letter.bare in PATH_OF_STEP:
            return Path(
                letter(PATH_OF_STEP[self.letter.bare]), self.at + 1, self.at, self.letter.starred
            ).show(notation)
        return f"{notation.letter(self.letter)[0]}({self.at})"


@dataclass(frozen=True)
class Path:
    """φ(high,low) or ψ(high,low): the product of all steps between, or its adjoint."""

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
        return f"{notation.letter(self.letter.T if self.starred else self.letter)[0]}({self.high},{self.low})"


def map_indices(x: Factor, to: IndexMap) -> Factor:
    """A factor with other indices."""
    if isinstance(x, LetterAt):
        return LetterAt(x.letter, to(x.at))
    if isinstance(x, Path):
        return replace(x, high=to(x.high), low=to(x.low))
    if isinstance(x, BlockAt):
        return replace(x, row=to(x.row), col=to(x.col))
    stop = None if x.stop is None else to(x.stop)
    return PathSum(x.i, to(x.start), stop, tuple(map_indices(y, to) for y in x.word))


def substitute(p: Mapping[Factors, Fraction], name: str, by: Index) -> BlockPoly:
    """The polynomial with another body in place of a letter: k by k+1, or by j+1."""
    total: BlockPoly = {}
    for word, c in p.items():
        accumulate(total, {tuple(map_indices(x, replace_letter(name, by)) for x in word): c})
    return total


def replace_letter(name: str, by: Index) -> IndexMap:
    return lambda x: by + x.up if x.name == name else x


def all_indices(p: Iterable[Factors]) -> set[Index]:
    """All that occur, those of sums left out."""
    return {x for word in p for x in free_indices(word)}


@lru_cache
def memoryless_rules(rules: Rules) -> Rules:
    """The rules between letters without memory: they hold body by body."""
    return Rules(tuple(rule for rule in rules if _is_memoryless(rule)))


def _is_memoryless(rule: Rule) -> bool:
    return all(
        x.row.structure == MEMORYLESS and x.bare != "Om"
        for word in (rule.lead, *rule.rest)
        for x in word
    )


@dataclass
class BlockNormalizer:
    """Rewriting to normal form: the rules of letters, how the bodies stand, and the points every path goes through."""

    rules: Rules
    order: Order
    points: tuple[Index, ...]
    used: dict[str, None]  # the sources of the rules that were used

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
        """The word after one rewriting; None when nothing applies."""
        for n, x in enumerate(word):
            made = (
                self._path(x)
                if isinstance(x, Path)
                else self._total(x)
                if isinstance(x, PathSum)
                else None
            )
            if made is None and isinstance(x, LetterAt) and x.letter == "Om":
                made = self._unfolded(x)
            if made is not None:
                return [((*word[:n], *w, *word[n + 1 :]), c) for w, c in made]
        return self._letters(word)

    def _letters(self, word: Factors) -> list[tuple[Factors, Fraction]] | None:
        """A rule of the algebra on letters of one body."""
        n = 0
        while n < len(word):
            m = n
            while (
                m < len(word)
                and isinstance(word[m], LetterAt)
                and isinstance(word[n], LetterAt)
                and word[m].at == word[n].at
            ):
                m += 1
            hit = self.rules.find(tuple(x.letter for x in word[n:m])) if m > n else None
            if hit is not None:
                i, rule = hit
                self.used[rule.source] = None
                start, stop, at = n + i, n + i + len(rule.lead), word[n].at
                return [
                    ((*word[:start], *(LetterAt(x, at) for x in w), *word[stop:]), c)
                    for w, c in rule.rest.items()
                ]
            n = max(m, n + 1)
        return None

    def _path(self, x: Path) -> list[tuple[Factors, Fraction]] | None:
        """φ(k,k) = I; through the points between; the outermost step by itself."""
        if x.high == x.low:
            return [((), Fraction(1))]
        for p in self.points:
            if (
                p not in (x.high, x.low)
                and self.order.at_least(x.high, p)
                and self.order.at_least(p, x.low)
            ):
                return [(_in_order(x, (replace(x, low=p), replace(x, high=p))), Fraction(1))]
        if self.order.above(x.high, x.low):
            last = LetterAt(letter(STEPS[x.letter]), x.low)
            return [
                (
                    _in_order(x, (replace(x, low=x.low + 1), last.T if x.starred else last)),
                    Fraction(1),
                )
            ]
        return None

    def _total(self, x: PathSum) -> list[tuple[Factors, Fraction]] | None:
        """Cut at the points between, each term rewritten, and what does not depend on i put before and behind."""
        one = Fraction(1)
        if x.stop == x.start:
            return []
        for p in self.points:
            if (
                self.order.exists(p)
                and self.order.at_least(p, x.start)
                and (x.stop is None or self.order.above(x.stop, p))
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
        inside = BlockNormalizer(
            self.rules, self.order | facts, tuple(dict.fromkeys((*self.points, *ends))), self.used
        )
        terms = inside({x.word: one})
        if terms != {x.word: one}:
            return [((replace(x, word=word),), c) for word, c in terms.items()]
        depends = [
            n for n, y in enumerate(x.word) if x.i.name in {z.name for z in all_indices([(y,)])}
        ]
        first, last = (depends[0], depends[-1] + 1) if depends else (0, len(x.word))
        if (first, last) == (0, len(x.word)):
            return None
        return [((*x.word[:first], replace(x, word=x.word[first:last]), *x.word[last:]), one)]

    def _unfolded(self, x: LetterAt) -> list[tuple[Factors, Fraction]] | None:
        """Ω(k) is a block of ψ* H* D⁻¹ H ψ."""
        i = Index(unused_letter({y.name for y in (*self.points, x.at)}))
        if any(fact.upper.name == i.name for fact in self.order if isinstance(fact, Ancestor)):
            return None  # within a sum it stays a letter
        to = Path(letter("psi"), i, x.at)
        word = (
            to.T,
            LetterAt(letter("H*"), i),
            LetterAt(letter("D_inv"), i),
            LetterAt(letter("H"), i),
            to,
        )
        return [((PathSum(i, x.at, None, word),), Fraction(1))]


def _in_order(x: Path, parts: Factors) -> Factors:
    return tuple(reversed(parts)) if x.starred else parts


def unused_letter(names: set[str]) -> str:
    """The letter that sums run over in normal forms: the first that is free."""
    for name in ("i", "l", "m", "n", "r", *(f"i{n}" for n in range(len(names) + 1))):
        if name not in names:
            return name
    raise StateError("no letter is left", "use fewer letters")
