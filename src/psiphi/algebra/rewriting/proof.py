"""Proof: two expressions are equal when their normal forms are; when they are not, a number shows it.

A claim is tried with numbers before it is called proved, too: on its robot, or, when it names none, on a small one with joints
of several sorts.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any, overload

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import positive_number
from psiphi.algebra.blocks.block_element import BlockSum
from psiphi.algebra.blocks.block_induction import BlockProof, prove_blocks
from psiphi.algebra.blocks.block_table import label_blocks
from psiphi.algebra.dense.rank_check import MAX_BODIES, check_invertible, entry_bound
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import FrameLetter, Letter, SymbolLetter, VectorLetter
from psiphi.algebra.expressions.operator_properties import random_values
from psiphi.algebra.expressions.terms import Poly, letter_term, product, scaled, total
from psiphi.algebra.expressions.type_checks import check_sum, common_robot, operand_error
from psiphi.algebra.rewriting.derivation import Chain, Counterexample, Derivation
from psiphi.algebra.rewriting.normal_form import normalizer
from psiphi.algebra.rewriting.proof_robots import proof_robot
from psiphi.algebra.rewriting.scalar_words import commute_scalars
from psiphi.algebra.rewriting.work_budget import DEFAULT_SECONDS, TooLarge
from psiphi.algebra.rewriting.work_budget import limit_work as budgeted

STATES, TOLERANCE = 5, 1e-7  # random states tried; difference relative to the size of the sides
ROUNDING, FLOOR = (
    1e-13,
    1e-14,
)  # of what the letters could make, and of the sides: below, a difference is rounding
REMAINDER_TOLERANCE = 1e-3  # the same for what is left when both sides are rewritten, relative to its own terms: it does not cancel


@overload
def prove(
    lhs: Expression, rhs: Any, budget: float = DEFAULT_SECONDS, *, where: tuple[()] = ()
) -> Derivation: ...
@overload
def prove(
    lhs: BlockSum, rhs: BlockSum, budget: float = DEFAULT_SECONDS, *, where: Any = ()
) -> BlockProof: ...
def prove(
    lhs: Any, rhs: Any, budget: float = DEFAULT_SECONDS, *, where: Any = ()
) -> Derivation | BlockProof:
    """Is lhs = rhs an identity? The derivation is true when proved; else it carries a counter-example, if one was found.

    `derivation.assumes` are the expressions whose inverses are taken to exist. `limit_work`: seconds that rewriting may take.
    Of blocks, s.phi[k, j], `where` says how the bodies stand: k > j, or several such facts.

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
        "budget", budget, f"give seconds, or leave it out for {DEFAULT_SECONDS:g}", inf
    )
    if isinstance(lhs, BlockSum):
        return prove_blocks(
            lhs,
            lhs.check_operand("=", lhs * 0 if isinstance(rhs, Real) and rhs == 0 else rhs),
            where,
            seconds,
        )
    if where != ():
        raise StateError(
            f"where={shown(where)} of operators", "it is for blocks: s.phi[k, j]; leave it out"
        )
    rhs = lhs * 0 if isinstance(rhs, Real) and rhs == 0 and isinstance(lhs, Expression) else rhs
    for side in (lhs, rhs):
        if not isinstance(side, Expression):
            if isinstance(lhs, Expression):
                raise operand_error(lhs, "=", rhs)
            raise StateError(
                f"{shown(side)} is not an operator expression", "write it with s = robot.operators"
            )
    model = common_robot(lhs, "=", rhs)
    check_sum(lhs.term, rhs.term, model, "=")
    lhs, rhs = Expression(lhs.term, model), Expression(rhs.term, model)
    for inner in (*lhs.inverses, *rhs.inverses):
        check_invertible(inner.term, model, MAX_BODIES)
    with budgeted(seconds):
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
    """What speaks against the claim; a proof is checked too."""
    if lhs.model is not None or not derivation.proved:
        found = find_counterexample(lhs, rhs, states=1 if derivation.proved else STATES)
        rest = derivation.remainder
        return found or (
            _small_difference(lhs, rhs, rest) if rest and not derivation.inverses else None
        )
    names = {
        name for x in lhs.letters | rhs.letters if isinstance(x, FrameLetter) for name in x.frames
    }
    model = proof_robot(tuple(sorted(names)))
    return find_counterexample(Expression(lhs.term, model), Expression(rhs.term, model), states=1)


def find_counterexample(
    lhs: Expression, rhs: Expression, states: int = STATES
) -> Counterexample | None:
    """A random state at which the two sides differ; None when there is no robot, a very large one, or no difference."""
    model, rng = lhs.model, np.random.default_rng(0)
    if model is None or len(model.bodies) > MAX_BODIES:
        return None
    both = lhs + rhs
    for _ in range(states):
        q, values = model.random(rng), random_values(both, rng)
        try:
            left, right = (_numbers(side, both, q, values) for side in (lhs, rhs))
        except (SingularError, StateError):  # no inverse here; or nothing but multiples of I
            continue
        gap = np.abs(left - right)
        if gap.max(initial=0.0) > TOLERANCE * (
            1.0 + np.abs(left).max(initial=0.0) + np.abs(right).max(initial=0.0)
        ):
            return _make_counterexample(both, q, values, left, right, gap)
    return None


def _small_difference(lhs: Expression, rhs: Expression, rest: Poly) -> Counterexample | None:
    """A difference too small for the sides' own numbers, but not for what is left of lhs - rhs when both are rewritten."""
    model, rng = lhs.model, np.random.default_rng(1)
    if model is None or len(model.bodies) > MAX_BODIES:
        return None
    both = lhs + rhs
    words = [
        Expression(scaled(c, product(*map(letter_term, word)) if word else letter_term("I")), model)
        for word, c in rest.items()
    ]
    whole = Expression(total(*(word.term for word in words)), model)
    for _ in range(STATES):
        q, values = model.random(rng), random_values(both, rng)
        try:
            gap = np.abs(_numbers(whole, both, q, values))
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
    both: Expression, q, values, left: np.ndarray, right: np.ndarray, gap: np.ndarray
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


def _numbers(side: Expression, both: Expression, q, values) -> np.ndarray:
    """One side's matrix; a bare multiple of I takes the other side's size."""
    own = {"v", *map(_word, side.letters)} & set(values)
    padded = side if side.rows == both.rows and side.cols == both.cols else side + 0 * both
    return np.asarray(
        padded.dense(q, **(values if padded is not side else {name: values[name] for name in own}))
    )


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
