"""Proofs of statements about blocks: by normal forms, and by induction along the path.

    base    k = j + 1 (or j): the first body of the statement
    step    from k to k + 1, or from j + 1 to j: the largest term of the premise is expressed by its
            other terms and substituted

A statement is proved if the differences of base and step rewrite to 0. It is then also checked
numerically, for all choices of bodies of its robot or of a small tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    BlockNormalizer,
    LetterAt,
    all_indices,
    memoryless_rules,
    substitute,
    unused_letter,
)
from psiphi.algebra.blocks.block_terms import BlockPoly, Factors, PathSum, show
from psiphi.algebra.blocks.block_values import BlockNumbers
from psiphi.algebra.blocks.body_indices import Ancestor, Branching, Fact, Index, Order
from psiphi.algebra.dense.rank_check import MAX_BODIES
from psiphi.algebra.expressions.notation import LATEX, UNICODE, Notation
from psiphi.algebra.expressions.terms import accumulate, two_sided_product
from psiphi.algebra.rewriting.derivation import html_table, latex_aligned, text_columns
from psiphi.algebra.rewriting.proof_robots import LONG_ARMS, proof_robot
from psiphi.algebra.rewriting.rule_sets import rules_for
from psiphi.algebra.rewriting.work_budget import DEFAULT_SECONDS, TooLarge, limit_work, spend
from psiphi.model.model import Model

TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class ProofPart:
    """A part of a proof: `goal` = 0 from `premise` = 0; `rest` remains, and is 0 if proved."""

    title: str
    goal: BlockPoly
    premise: BlockPoly
    rest: BlockPoly
    sources: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class BlockProof:
    """The proof of a statement about blocks; True if it is proved. `stages` are its parts."""

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
        """The lines of the proof: (formula, reason)."""
        where = f", for {', '.join(map(str, self.where))}" if self.where else ""
        both = " = ".join(show(side.poly, notation) for side in (self.left, self.right))
        yield both, ("proved" if self.proved else "not proved") + where
        for stage in self.stages:
            yield f"{show(stage.goal, notation)} = 0", stage.title
            if stage.premise:
                yield f"{show(stage.premise, notation)} = 0", "given"
            yield (
                f"{show(stage.rest, notation)}",
                "remains: " + (", ".join(stage.sources) or "no rule applied"),
            )
        if self.note:
            yield "", self.note
        if self.counterexample:
            yield "", f"counter-example: {self.counterexample}"

    def __str__(self) -> str:
        return text_columns(self.rows())

    def latex(self) -> str:
        """The proof in LaTeX: an `aligned` environment (amsmath), one line per step."""
        return latex_aligned(
            rf"& {text} && \text{{{latex(source)}}}" for text, source in self.rows(LATEX)
        )

    def _repr_html_(self) -> str:
        return html_table(self.rows())


def prove_blocks(
    lhs: BlockSum,
    rhs: BlockSum,
    where: Fact | Sequence[Fact] = (),
    budget: float = DEFAULT_SECONDS,
) -> BlockProof:
    """lhs = rhs for all bodies that satisfy the facts `where`: k > j, k.meets(j, a)."""
    difference = lhs - rhs
    if difference.model is not None and difference.model.embedding is not None:
        embedding = difference.model.embedding
        raise StateError(
            f"{embedding.describe(difference.model.name)}: it has no blocks of single bodies",
            f"use {embedding.remedy}",
        )
    facts: tuple[Any, ...] = tuple(where) if isinstance(where, (tuple, list)) else (where,)
    for fact in facts:
        if not isinstance(fact, (Ancestor, Branching)):
            raise StateError(
                f"where has {shown(fact)}, expected facts about bodies",
                "write k > j, k >= j, or k.meets(j, a)",
            )
    order = Order(facts)
    names = {x.name for x in all_indices([*lhs.poly, *rhs.poly])} | {
        x.name for x in _fact_indices(facts)
    }
    claim = BlockClaim(difference, order, Index(unused_letter(names)))
    note = ""
    try:
        with limit_work(budget):
            stages = claim.stages()
    except TooLarge as error:
        stages, note = (), error.cause
    robot = difference.model or proof_robot((), LONG_ARMS)
    found = (
        _counterexample(lhs, rhs, order, names, robot) if len(robot.bodies) <= MAX_BODIES else ""
    )
    return BlockProof(lhs, rhs, facts, stages, found, note)


def _fact_indices(facts: tuple[Fact, ...]) -> Iterator[Index]:
    for fact in facts:
        yield from (
            (fact.upper, fact.lower)
            if isinstance(fact, Ancestor)
            else (fact.first, fact.second, fact.ancestor)
        )


@dataclass
class BlockClaim:
    """The claim that a difference is zero, with facts about its bodies; sums run over i."""

    difference: BlockSum
    order: Order
    i: Index

    def stages(self) -> tuple[ProofPart, ...]:
        """The parts of the proof: by normal form alone, or by induction on a letter."""
        start = BlockExpansion(self.order, self.i, self.difference.model)(self.difference.poly)
        whole = self._stage("left - right, expanded", start, {}, self.order)
        if not whole.rest:
            return (whole,)
        tried: list[tuple[ProofPart, ...]] = [(whole,)]
        core = _without_common_factors(whole.rest)
        for fact in self.order:
            if isinstance(fact, Ancestor):
                for stages in self._inductions(core, fact):
                    if not any(stage.rest for stage in stages):
                        return stages
                    tried.append(stages)
        return tried[-1]

    def _inductions(self, p: BlockPoly, fact: Ancestor) -> Iterator[tuple[ProofPart, ...]]:
        """Induction on the upper letter (inward), and on the lower letter (outward)."""
        k, j, first = fact.upper.name, fact.lower.name, fact.lower
        others = [other for other in self.order if other != fact]
        if k == j or any(k == x.name for x in _fact_indices(tuple(others))):
            return
        base = self._stage(f"{k} = {first}", substitute(p, k, first), {}, Order(others, [first]))
        up = Order(self.order, [Index(k, 1)])
        yield base, self._stage(f"from {k} to {k}+1", substitute(p, k, Index(k, 1)), p, up)
        if not any(j == x.name for x in _fact_indices(tuple(others))):
            nearer = Order([*others, Ancestor(fact.upper, first + 1)])
            yield base, self._stage(f"from {j}+1 to {j}", p, substitute(p, j, Index(j, 1)), nearer)

    def _stage(self, title: str, goal: BlockPoly, premise: BlockPoly, order: Order) -> ProofPart:
        """The normal form of the goal, with the premise substituted."""
        model, sources = self.difference.model, {}
        height: dict[str, int] = {}
        for x in (
            *all_indices(goal),
            *all_indices(premise),
            *_fact_indices(order.facts),
            *order.existing,
        ):
            height[x.name] = max(x.up, height.get(x.name, 0))
        points = tuple(
            Index(name, up) for name, most in sorted(height.items()) for up in range(most + 1)
        )
        normal = BlockNormalizer(memoryless_rules(rules_for(model)), order, points, sources)
        rest, known = normal(goal), normal(premise)
        if known and rest:
            rest = _eliminate(rest, known, normal)
        return ProofPart(title, goal, premise, rest, tuple(sources))


def _without_common_factors(p: BlockPoly) -> BlockPoly:
    """p from X p Y: factors common to all terms are left out, since X p Y is zero if p is."""
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


def _eliminate(goal: BlockPoly, known: BlockPoly, normal: BlockNormalizer) -> BlockPoly:
    """The goal with one term of `known` = 0 expressed by its other terms; largest terms first."""
    for pivot in sorted(known, key=_pivot_order, reverse=True):
        rest, c = dict(goal), known[pivot]
        replacement = {word: -d / c for word, d in known.items() if word != pivot}
        for _ in range(2 * len(goal) + 2):
            spend(20)
            hit = next(((word, n) for word in rest for n in _occurrences(pivot, word)), None)
            if hit is None:
                break
            rest = normal(_replace_occurrence(rest, *hit, pivot, replacement))
        if not rest:
            return rest
    return goal


def _pivot_order(word: Factors) -> tuple[int, int]:
    return sum(isinstance(x, PathSum) for x in word), len(word)


def _occurrences(part: Factors, word: Factors) -> list[int]:
    return [n for n in range(len(word) - len(part) + 1) if part and word[n : n + len(part)] == part]


def _replace_occurrence(
    p: BlockPoly, word: Factors, n: int, part: Factors, by: Mapping[Factors, Fraction]
) -> BlockPoly:
    total = {w: c for w, c in p.items() if w != word}
    accumulate(total, two_sided_product(word[:n], by, word[n + len(part) :]), p[word])
    return total


def _counterexample(
    lhs: BlockSum, rhs: BlockSum, order: Order, names: set[str], model: Model
) -> str:
    """A choice of bodies of this robot for which the sides differ; "" if none was found."""
    rng = np.random.default_rng(0)
    numbers = BlockNumbers(model, model.random(rng), rng.standard_normal(model.nv))
    letters = sorted(names)
    count = range(len(model.bodies))
    for chosen in (
        product(count, repeat=len(letters))
        if len(count) ** len(letters) <= 4096
        else _random_choices(rng, count, letters)
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


def _random_choices(
    rng: np.random.Generator, count: range, letters: list[str]
) -> Iterator[tuple[int, ...]]:
    yield from (tuple(map(int, row)) for row in rng.integers(0, len(count), (4096, len(letters))))


def _holds(fact: Fact, at: Mapping[str, int], numbers: BlockNumbers) -> bool:
    """True if a fact holds for these bodies."""
    if isinstance(fact, Ancestor):
        return numbers.body(fact.upper, at) in numbers.path_to_base(numbers.body(fact.lower, at))
    ways = [list(numbers.path_to_base(numbers.body(x, at))) for x in (fact.first, fact.second)]
    common = [body for body in ways[0] if body in ways[1]]
    apart = bool(ways[0] and ways[1]) and ways[0][0] not in ways[1] and ways[1][0] not in ways[0]
    return apart and bool(common) and common[0] == numbers.body(fact.ancestor, at)
