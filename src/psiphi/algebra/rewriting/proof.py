"""Proofs: two expressions are equal if their normal forms are; counter-examples are numerical.

A proved claim is also checked numerically: on its robot or, if it has none, on a small robot with
joints of several types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from numbers import Real
from typing import overload

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import positive_number
from psiphi.algebra.blocks.block_element import BlockSum
from psiphi.algebra.blocks.block_induction import BlockProof, prove_blocks
from psiphi.algebra.blocks.block_table import label_blocks
from psiphi.algebra.blocks.body_indices import Fact
from psiphi.algebra.dense.rank_check import MAX_BODIES, check_invertible, entry_bound
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import FrameLetter, Letter, SymbolLetter, VectorLetter
from psiphi.algebra.expressions.operator_properties import dense_at, random_values
from psiphi.algebra.expressions.terms import Poly, letter_term, product, scaled, total
from psiphi.algebra.expressions.type_checks import check_sum, common_robot, operand_error
from psiphi.algebra.rewriting.derivation import Chain, Counterexample, Derivation
from psiphi.algebra.rewriting.normal_form import normalizer
from psiphi.algebra.rewriting.proof_robots import proof_robot
from psiphi.algebra.rewriting.scalar_words import commute_scalars
from psiphi.algebra.rewriting.work_budget import DEFAULT_SECONDS, TooLarge, limit_work

STATES, TOLERANCE = 5, 1e-7  # random states tried; difference relative to the size of the sides
REMAINDER_TOLERANCE = 1e-3  # of the rewritten difference, relative to its terms
ROUNDING, FLOOR = (
    1e-13,
    1e-14,
)  # smaller differences, relative to letters and to sides, are rounding


@overload
def prove(
    lhs: Expression,
    rhs: Expression | float,
    budget: float = DEFAULT_SECONDS,
    *,
    where: tuple[()] = (),
) -> Derivation: ...
@overload
def prove(
    lhs: BlockSum,
    rhs: BlockSum | float,
    budget: float = DEFAULT_SECONDS,
    *,
    where: Fact | Sequence[Fact] = (),
) -> BlockProof: ...
def prove(
    lhs: Expression | BlockSum,
    rhs: Expression | BlockSum | float,
    budget: float = DEFAULT_SECONDS,
    *,
    where: Fact | Sequence[Fact] = (),
) -> Derivation | BlockProof:
    """Prove lhs = rhs. The derivation is True if proved; otherwise it may have a counter-example.

    `derivation.assumes` are expressions that are assumed to be invertible. `budget`: seconds that
    rewriting may take. For blocks, s.phi[k, j], `where` are facts about the bodies, such as k > j.

    >>> from psiphi.algebra.expressions.operators import Operators
    >>> s = Operators()
    >>> bool(prove((s.I - s.H @ s.psi @ s.K) @ s.H @ s.phi, s.H @ s.psi))
    True
    >>> i, j, k = s.bodies("i j k")
    >>> steps = (s.psi[k, i + 1] @ s.L[i] @ s.H[i] @ s.phi[i, j]).over(i, j, k)
    >>> bool(prove(s.phi[k, j] - s.psi[k, j], steps, where=k > j))
    True
    """
    seconds = positive_number(
        "budget", budget, f"pass seconds, or leave it out for {DEFAULT_SECONDS:g}", inf
    )
    is_zero = isinstance(rhs, Real) and rhs == 0
    if isinstance(lhs, BlockSum):
        right = lhs.check_operand("=", lhs * 0 if is_zero else rhs)
        return prove_blocks(lhs, right, where, seconds)
    if where != ():
        raise StateError(
            f"where={shown(where)} with operators", "leave it out; it is for blocks: s.phi[k, j]"
        )
    if not isinstance(lhs, Expression):
        raise StateError(
            f"{shown(lhs)} is not an operator expression", "write it with s = robot.operators"
        )
    right = lhs * 0 if is_zero else rhs
    if not isinstance(right, Expression):
        raise operand_error(lhs, "=", right)
    return _prove_expressions(lhs, right, seconds)


def _prove_expressions(lhs: Expression, rhs: Expression, seconds: float) -> Derivation:
    model = common_robot(lhs, "=", rhs)
    check_sum(lhs.term, rhs.term, model, "=")
    lhs, rhs = Expression(lhs.term, model), Expression(rhs.term, model)
    for inner in (*lhs.inverses, *rhs.inverses):
        check_invertible(inner.term, model, MAX_BODIES)
    with limit_work(seconds):
        derivation = _derivation(lhs, rhs)
    return replace(derivation, counterexample=_counterexample(lhs, rhs, derivation))


def _derivation(lhs: Expression, rhs: Expression) -> Derivation:
    try:
        work = normalizer(lhs, rhs)
        derivation = work.derivation(lhs, rhs)
    except TooLarge as error:
        return Derivation(
            Chain(lhs, None, ()),
            Chain(rhs, None, ()),
            notes=(error.cause,),
            remainder=None,
            unfinished=True,
        )
    remainder = commute_scalars(derivation.remainder or {})
    return replace(derivation, remainder=remainder, assumes=tuple(work.opaque.values()))


def _counterexample(
    lhs: Expression, rhs: Expression, derivation: Derivation
) -> Counterexample | None:
    """A counter-example, if one is found. Proved claims are checked, too."""
    states = 1 if derivation.proved else STATES
    if lhs.model is None:  # a claim about all robots: one robot can refute it
        letters = lhs.letters | rhs.letters
        names = {name for x in letters if isinstance(x, FrameLetter) for name in x.frames}
        model = proof_robot(tuple(sorted(names)))
        lhs, rhs = Expression(lhs.term, model), Expression(rhs.term, model)
    found = find_counterexample(lhs, rhs, states)
    rest = derivation.remainder
    if found or not rest or derivation.inverses:
        return found
    return _small_difference(lhs, rhs, rest)


def find_counterexample(
    lhs: Expression, rhs: Expression, states: int = STATES
) -> Counterexample | None:
    """A random state at which the two sides differ; None if none is found, or without a robot.

    Robots of more than MAX_BODIES bodies are not tried.
    """
    model, rng = lhs.model, np.random.default_rng(0)
    if model is None or len(model.bodies) > MAX_BODIES:
        return None
    both = lhs + rhs
    for _ in range(states):
        q, values = model.random(rng), random_values(both, rng)
        try:
            left, right = (_numbers(side, both, q, values) for side in (lhs, rhs))
        except (SingularError, StateError):  # singular at this state, or multiples of I only
            continue
        gap = np.abs(left - right)
        if gap.max(initial=0.0) > TOLERANCE * (
            1.0 + np.abs(left).max(initial=0.0) + np.abs(right).max(initial=0.0)
        ):
            return _make_counterexample(both, q, values, left, right, gap)
    return None


def _small_difference(lhs: Expression, rhs: Expression, rest: Poly) -> Counterexample | None:
    """A counter-example from the rewritten lhs - rhs: it finds very small differences."""
    model, rng = lhs.model, np.random.default_rng(1)
    if model is None or len(model.bodies) > MAX_BODIES:
        return None
    both = lhs + rhs
    words = [
        Expression(scaled(c, product(*map(letter_term, word)) if word else letter_term("I")), model)
        for word, c in rest.items()
    ]
    remainder = Expression(total(*(word.term for word in words)), model)
    for _ in range(STATES):
        q, values = model.random(rng), random_values(both, rng)
        try:
            gap = np.abs(_numbers(remainder, both, q, values))
            size = sum(np.abs(_numbers(word, both, q, values)) for word in words)
            left, right = (_numbers(side, both, q, values) for side in (lhs, rhs))
            noise = ROUNDING * max(entry_bound(word.term, model, q, values) for word in words)
            noise = max(noise, FLOOR, FLOOR * np.abs(left).max(initial=0.0))
        except (SingularError, StateError):
            continue
        if gap.max(initial=0.0) > max(REMAINDER_TOLERANCE * np.max(size, initial=0.0), noise):
            return _make_counterexample(both, q, values, left, right, gap)
    return None


def _make_counterexample(
    both: Expression,
    q: np.ndarray,
    values: Mapping[str, np.ndarray],
    left: np.ndarray,
    right: np.ndarray,
    gap: np.ndarray,
) -> Counterexample:
    place = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
    labels = _labels(both, left, place)
    return Counterexample(
        both.require_model(),
        q,
        values,
        place,
        labels,
        float(left[place]),
        float(right[place]),
        float(gap[place]),
    )


def _numbers(
    side: Expression, both: Expression, q: np.ndarray, values: Mapping[str, np.ndarray]
) -> np.ndarray:
    """The matrix of one side; a multiple of I has the size of the other side."""
    names = {"v", *map(_word, side.letters)} & set(values)
    padded = side if side.rows == both.rows and side.cols == both.cols else side + 0 * both
    own = values if padded is not side else {name: values[name] for name in names}
    return np.asarray(dense_at(padded, q, own))


def _labels(both: Expression, matrix: np.ndarray, place: tuple[int, ...]) -> tuple[str, ...]:
    blocks = label_blocks(both.term, both.require_model(), matrix)
    sides = (blocks.row_slices, blocks.col_slices) if matrix.ndim == 2 else (blocks.row_slices,)
    if matrix.ndim == 0:
        return ()
    return tuple(
        name
        for side, i in zip(sides, place, strict=True)
        for name, part in side
        if part.start <= i < part.stop
    )


def _word(x: Letter) -> str:
    """The name of a vector or symbol; "" for other letters."""
    return x.word if isinstance(x, (SymbolLetter, VectorLetter)) else ""
