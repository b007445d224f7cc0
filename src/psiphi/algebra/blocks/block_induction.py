"""Proofs of statements about blocks: both sides in normal form, and by induction along the path where that is not enough.

    base     k = j + 1 (or j): the first body of which it is stated
    step     from k to k + 1; or from j + 1 outward to j: its largest term is put in terms of the others where it is given

A statement is proved when both differences rewrite to 0: nothing else counts. Then numbers are asked, too, at every choice of
bodies of its robot, or of a small tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.escape import latex
from psiphi._util.text import shown
from psiphi.algebra.blocks.block_element import BlockSum
from psiphi.algebra.blocks.block_expansion import BlockExpansion
from psiphi.algebra.blocks.block_normal_form import (
    LetterAt,
    Normal,
    fresh,
    indices,
    local,
    substituted,
)
from psiphi.algebra.blocks.block_terms import Blockwise, Factors, PathSum, show
from psiphi.algebra.blocks.block_values import BlockNumbers
from psiphi.algebra.blocks.body_indices import Ancestor, Branching, Fact, Index, Order
from psiphi.algebra.dense.rank_check import LARGE
from psiphi.algebra.expressions.notation import LATEX, UNICODE, Notation
from psiphi.algebra.expressions.terms import accumulate, between
from psiphi.algebra.rewriting.derivation import aligned, side_by_side, tabled
from psiphi.algebra.rewriting.proof_robots import LONG_ARMS, specimen
from psiphi.algebra.rewriting.rule_sets import rules_for
from psiphi.algebra.rewriting.work_budget import SECONDS, TooLarge, spend
from psiphi.algebra.rewriting.work_budget import budget as budgeted
from psiphi.model.model import Model

TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class ProofPart:
    """One part of a proof: what it is of, what is to be shown zero, what may be used, what is left."""

    title: str
    goal: Blockwise
    given: Blockwise
    rest: Blockwise
    sources: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class BlockProof:
    """Is a statement about blocks true? True when proved; `stages` tell why, or how far it came."""

    left: BlockSum
    right: BlockSum
    where: tuple[Fact, ...]
    stages: tuple[ProofPart, ...]
    counterexample: str = ""
    note: str = ""

    @property
    def proved(self) -> bool:
        return (
            bool(self.stages)
            and not any(stage.rest for stage in self.stages)
            and not self.counterexample
        )

    def __bool__(self) -> bool:
        return self.proved

    def rows(self, notation: Notation = UNICODE) -> Iterator[tuple[str, str]]:
        """Line by line: what is written, and what leads there."""
        where = f", for {', '.join(map(str, self.where))}" if self.where else ""
        both = " = ".join(show(side.poly, notation) for side in (self.left, self.right))
        yield both, ("proved" if self.proved else "not proved") + where
        for stage in self.stages:
            yield f"{show(stage.goal, notation)} = 0", stage.title
            if stage.given:
                yield f"{show(stage.given, notation)} = 0", "given"
            yield (
                f"{show(stage.rest, notation)}",
                "is left: " + (", ".join(stage.sources) or "the same words"),
            )
        if self.note:
            yield "", self.note
        if self.counterexample:
            yield "", f"counter-example: {self.counterexample}"

    def __str__(self) -> str:
        return side_by_side(self.rows())

    def latex(self) -> str:
        """The proof in LaTeX: an `aligned` environment (amsmath), a line a step."""
        return aligned(
            rf"& {text} && \text{{{latex(source)}}}" for text, source in self.rows(LATEX)
        )

    def _repr_html_(self) -> str:
        return tabled(self.rows())


def prove_blocks(
    lhs: BlockSum, rhs: BlockSum, where: Any = (), budget: float = SECONDS
) -> BlockProof:
    """lhs = rhs for all bodies of which `where` holds: a fact or several, k > j, k.meets(j, a)."""
    difference = lhs - rhs
    if difference.model is not None and difference.model.embedding is not None:
        has = difference.model.embedding
        raise StateError(
            f"{has.words(difference.model.name)}: it has no blocks of single bodies",
            f"state it of {has.instead}",
        )
    facts: tuple[Any, ...] = tuple(where) if isinstance(where, (tuple, list)) else (where,)
    for fact in facts:
        if not isinstance(fact, (Ancestor, Branching)):
            raise StateError(
                f"where has {shown(fact)}",
                "give what is known of bodies: k > j, k >= j, k.meets(j, a)",
            )
    order = Order(facts)
    names = {x.name for x in indices([*lhs.poly, *rhs.poly])} | {x.name for x in _mentioned(facts)}
    claim = BlockClaim(difference, order, Index(fresh(names)))
    note = ""
    try:
        with budgeted(budget):
            stages = claim.stages()
    except TooLarge as error:
        stages, note = (), error.cause
    robot = difference.model or specimen((), LONG_ARMS)
    found = _counterexample(lhs, rhs, order, names, robot) if len(robot.bodies) <= LARGE else ""
    return BlockProof(lhs, rhs, facts, stages, found, note)


def _mentioned(facts: tuple[Fact, ...]) -> Iterator[Index]:
    for fact in facts:
        yield from (
            (fact.upper, fact.lower)
            if isinstance(fact, Ancestor)
            else (fact.first, fact.second, fact.at)
        )


@dataclass
class BlockClaim:
    """A difference that is to be zero, of bodies that stand in an order; sums run over i."""

    difference: BlockSum
    order: Order
    i: Index

    def stages(self) -> tuple[ProofPart, ...]:
        """The parts of a proof, the best that was found: by normal form alone, or by induction on a letter."""
        start = BlockExpansion(self.order, self.i, self.difference.model)(self.difference.poly)
        whole = self._stage("left less right, unfolded", start, {}, self.order)
        if not whole.rest:
            return (whole,)
        tried: list[tuple[ProofPart, ...]] = [(whole,)]
        core = _stripped(whole.rest)
        for fact in self.order:
            if isinstance(fact, Ancestor):
                for stages in self._inductions(core, fact):
                    if not any(stage.rest for stage in stages):
                        return stages
                    tried.append(stages)
        return tried[-1]

    def _inductions(self, p: Blockwise, fact: Ancestor) -> Iterator[tuple[ProofPart, ...]]:
        """On the letter above (inward), and on the one below (outward)."""
        k, j, first = fact.upper.name, fact.lower.name, fact.lower
        others = [other for other in self.order if other != fact]
        if k == j or any(k == x.name for x in _mentioned(tuple(others))):
            return
        base = self._stage(f"{k} = {first}", substituted(p, k, first), {}, Order(others, [first]))
        up = Order(self.order, [Index(k, 1)])
        yield base, self._stage(f"from {k} to {k}+1", substituted(p, k, Index(k, 1)), p, up)
        if not any(j == x.name for x in _mentioned(tuple(others))):
            nearer = Order([*others, Ancestor(fact.upper, first + 1)])
            yield base, self._stage(f"from {j}+1 to {j}", p, substituted(p, j, Index(j, 1)), nearer)

    def _stage(self, title: str, goal: Blockwise, given: Blockwise, order: Order) -> ProofPart:
        """The goal in normal form, with what is given."""
        model, used = self.difference.model, {}
        tall: dict[str, int] = {}
        for x in (*indices(goal), *indices(given), *_mentioned(order.facts), *order.real):
            tall[x.name] = max(x.up, tall.get(x.name, 0))
        points = tuple(
            Index(name, up) for name, most in sorted(tall.items()) for up in range(most + 1)
        )
        normal = Normal(local(rules_for(model)), order, points, used)
        rest, known = normal(goal), normal(given)
        if known and rest:
            rest = _eliminated(rest, known, normal)
        return ProofPart(title, goal, given, rest, tuple(used))


def _stripped(p: Blockwise) -> Blockwise:
    """What stands before or behind every term alike is left out: X p Y is zero when p is."""
    words = list(p)
    while (
        all(word for word in words)
        and len({word[0] for word in words}) == 1
        and isinstance(words[0][0], LetterAt)
    ):
        words = [word[1:] for word in words]
    while (
        all(word for word in words)
        and len({word[-1] for word in words}) == 1
        and isinstance(words[0][-1], LetterAt)
    ):
        words = [word[:-1] for word in words]
    return dict(zip(words, p.values(), strict=True))


def _eliminated(goal: Blockwise, known: Blockwise, normal: Normal) -> Blockwise:
    """The goal where the largest term of what is known to be zero is put in terms of the others."""
    for pivot in sorted(known, key=_size, reverse=True):
        rest, c = dict(goal), known[pivot]
        instead = {word: -d / c for word, d in known.items() if word != pivot}
        for _ in range(2 * len(goal) + 2):
            spend(20)
            hit = next(((word, n) for word in rest for n in _places_of(pivot, word)), None)
            if hit is None:
                break
            rest = normal(_replaced(rest, *hit, pivot, instead))
        if not rest:
            return rest
    return goal


def _size(word: Factors) -> tuple[int, int]:
    return sum(isinstance(x, PathSum) for x in word), len(word)


def _places_of(part: Factors, word: Factors) -> list[int]:
    return [n for n in range(len(word) - len(part) + 1) if part and word[n : n + len(part)] == part]


def _replaced(
    p: Blockwise, word: Factors, n: int, part: Factors, by: Mapping[Factors, Fraction]
) -> Blockwise:
    total = {w: c for w, c in p.items() if w != word}
    accumulate(total, between(word[:n], by, word[n + len(part) :]), p[word])
    return total


def _counterexample(
    lhs: BlockSum, rhs: BlockSum, order: Order, names: set[str], model: Model
) -> str:
    """Bodies of this robot for which the sides differ; "" where there are none."""
    rng = np.random.default_rng(0)
    numbers = BlockNumbers(model, model.random(rng), rng.standard_normal(model.nv))
    letters = sorted(names)
    count = range(len(model.bodies))
    for chosen in (
        product(count, repeat=len(letters))
        if len(count) ** len(letters) <= 4096
        else _some(rng, count, letters)
    ):
        at = dict(zip(letters, chosen, strict=True))
        if not all(_holds(fact, at, numbers) for fact in order):
            continue
        try:
            left, right = (numbers.value(side.poly, at, lhs.rows, lhs.cols) for side in (lhs, rhs))
        except Error:
            continue
        gap = np.abs(left - right).max(initial=0.0)
        if gap > TOLERANCE * (1.0 + np.abs(left).max(initial=0.0) + np.abs(right).max(initial=0.0)):
            which = ", ".join(f"{name} = {model.bodies[body].name}" for name, body in at.items())
            return f"on {model.name} with {which} the sides differ by {gap:.3g}"
    return ""


def _some(rng: np.random.Generator, count: range, letters: list[str]) -> Iterator[tuple[int, ...]]:
    yield from (tuple(map(int, row)) for row in rng.integers(0, len(count), (4096, len(letters))))


def _holds(fact: Fact, at: Mapping[str, int], numbers: BlockNumbers) -> bool:
    """Is a fact true of these bodies?"""
    if isinstance(fact, Ancestor):
        return numbers.parent(fact.upper, at) in numbers.way(numbers.parent(fact.lower, at))
    ways = [list(numbers.way(numbers.parent(x, at))) for x in (fact.first, fact.second)]
    common = [body for body in ways[0] if body in ways[1]]
    apart = bool(ways[0] and ways[1]) and ways[0][0] not in ways[1] and ways[1][0] not in ways[0]
    return apart and bool(common) and common[0] == numbers.parent(fact.at, at)
