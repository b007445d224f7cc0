"""Proof: two expressions are equal when their normal forms are; when they are not, a number shows it."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from psiphi.errors import SingularError, StateError
from psiphi.operators import Expression, random_values
from psiphi.operators.blocks import labelled
from psiphi.operators.legality import check_sum, common_robot, foreign
from psiphi.rewriting.derivation import Counterexample, Derivation
from psiphi.rewriting.normal import normalizer

STATES, TOLERANCE = 5, 1e-7  # random states tried; difference relative to the size of the sides


LARGE = 150  # bodies beyond which matrices are too big to look for one


def prove(lhs: Expression, rhs: Any) -> Derivation:
    """Is lhs = rhs an identity? The derivation is true when proved; else it carries a counter-example, if one was found.

    >>> from psiphi.operators import Operators
    >>> s = Operators()
    >>> bool(prove((s.I - s.H @ s.psi @ s.K) @ s.H @ s.phi, s.H @ s.psi))
    True
    """
    rhs = lhs * 0 if isinstance(rhs, Real) and rhs == 0 else rhs
    for side in (lhs, rhs):
        if not isinstance(side, Expression):
            raise (
                foreign(lhs, "=", rhs) if isinstance(lhs, Expression) else StateError(f"{side!r} is not an operator expression")
            )
    model = common_robot(lhs, "=", rhs)
    check_sum(lhs.term, rhs.term, model, "=")
    lhs, rhs = Expression(lhs.term, model), Expression(rhs.term, model)
    derivation = normalizer(lhs, rhs).derivation(lhs, rhs)
    return derivation if derivation else replace(derivation, counterexample=find_counterexample(lhs, rhs))


def find_counterexample(lhs: Expression, rhs: Expression, rng: np.random.Generator | int = 0) -> Counterexample | None:
    """A random state at which the two sides differ; None when there is no robot, a very large one, or no difference."""
    model, rng = lhs.model, np.random.default_rng(rng)
    if model is None or len(model.bodies) > LARGE:
        return None
    both = lhs + rhs
    for _ in range(STATES):
        q, values = model.random(rng), random_values(both, rng)
        try:
            left, right = (_numbers(side, both, q, values) for side in (lhs, rhs))
        except SingularError:
            continue
        gap = np.abs(left - right)
        if gap.max(initial=0.0) > TOLERANCE * (1.0 + np.abs(left).max() + np.abs(right).max()):
            place = tuple(int(i) for i in np.unravel_index(gap.argmax(), gap.shape))
            return Counterexample(model, q, values, place, _labels(both, left, place), float(left[place]), float(right[place]))
    return None


def _numbers(side: Expression, both: Expression, q, values) -> np.ndarray:
    """One side's matrix; a bare multiple of I takes the other side's size."""
    own = {name for name in values if name == "v" or any(f":{name}@" in x for x in side.letters)}
    padded = side if side.rows == both.rows else side + 0 * both
    return np.asarray(padded.dense(q, **(values if padded is not side else {name: values[name] for name in own})))


def _labels(both: Expression, matrix: np.ndarray, place: tuple[int, ...]) -> tuple[str, ...]:
    blocks = labelled(both.term, both._robot(), matrix)
    sides = (blocks.row_slices, blocks.col_slices) if matrix.ndim == 2 else (blocks.row_slices,)
    if matrix.ndim == 0:
        return ()
    return tuple(name for side, i in zip(sides, place, strict=True) for name, part in side if part.start <= i < part.stop)
