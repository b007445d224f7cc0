"""Properties of an operator: its block structure, and the adjoint test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import generator, positive_number
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.dense.rank_check import random_inputs
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.block_structure import INWARD, OUTWARD, SAME
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.spaces import ANY, JOINT, LINK
from psiphi.algebra.rewriting.normal_form import normal_form
from psiphi.algebra.rewriting.work_budget import TooLarge, limit_work

SECONDS = 1.0  # budget of the normal form


def _has_structure(op: Expression, *allowed: str) -> bool:
    """True if its blocks are nonzero in the allowed relations only; False for frame spaces.

    The expression as written may be enough; otherwise its normal form is asked.
    """
    if not {op.rows, op.cols} <= {LINK, JOINT, ANY}:
        return False
    if terms.structure(op.term).relations <= set(allowed):
        return True
    try:
        with limit_work(SECONDS):
            words = normal_form(op)[0]
    except TooLarge:
        return False
    products = (terms.product(*map(terms.letter_term, word)) for word in words)
    return all(terms.structure(x).relations <= set(allowed) for x in products)


def is_memoryless(op: Expression) -> bool:
    """True if the operator is block diagonal: it acts on each body separately.

    >>> from psiphi.algebra.expressions.operators import Operators
    >>> s = Operators()
    >>> is_memoryless(s.H @ s.P @ s.H.T), is_memoryless(s.phi)
    (True, False)
    """
    return _has_structure(op, SAME)


def is_causal(op: Expression) -> bool:
    """True if the result at a body depends on the body and its descendants only.

    Products of such operators run as one sweep from tip to base.
    """
    return _has_structure(op, SAME, INWARD)


def is_strictly_causal(op: Expression) -> bool:
    """True if the result at a body depends on its proper descendants only."""
    return _has_structure(op, INWARD)


def is_anticausal(op: Expression) -> bool:
    """True if the result at a body depends on the body and its ancestors only.

    Products of such operators run as one sweep from base to tip.
    """
    return _has_structure(op, SAME, OUTWARD)


def is_strictly_anticausal(op: Expression) -> bool:
    """True if the result at a body depends on its proper ancestors only."""
    return _has_structure(op, OUTWARD)


class DotTest(NamedTuple):
    """<A u, v> and <u, A* v>; True if they agree."""

    left: float
    right: float
    error: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.error <= self.tolerance


def dot_test(
    op: Expression,
    q: Numbers | None = None,
    rng: np.random.Generator | int | None = None,
    tolerance: float = 1e-9,
) -> DotTest:
    """The adjoint test <A u, v> = <u, A* v> with random u, v and vectors, at q or at a random q."""
    if not isinstance(op, Expression):
        raise StateError(
            f"dot_test got {shown(op)}, expected an expression",
            "use operators of a robot: s = robot.operators; s.phi, s.mass, ...",
        )
    model, rng, tolerance = (
        op.require_model(),
        generator(rng),
        positive_number("tolerance", tolerance, "1e-9 is the default"),
    )
    q = model.random(rng) if q is None else q
    values = random_values(op, rng)
    A, At = (np.atleast_2d(dense_at(x, q, values)) for x in (op, op.T))
    A = A if A.shape == At.shape[::-1] else A.T
    u, v = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    left, right = float((A @ u) @ v), float(u @ (At @ v))
    size = float(np.abs(A).max(initial=0.0) * np.abs(u).sum() * np.abs(v).max())
    return DotTest(left, right, abs(left - right) / (1.0 + size), tolerance)


def dense_at(op: Expression, q: Numbers, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The matrix at q, with the values of vectors, and of v, by name."""
    vectors = {name: x for name, x in values.items() if name != "v"}
    return evaluate(op.term, op.require_model(), q, values.get("v"), vectors)


def random_values(op: Expression, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random values of the vectors and symbols of the expression, and of v if it depends on it."""
    return random_inputs(op.term, op.require_model(), rng)[1]
