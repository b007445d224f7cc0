"""Questions about an operator, as functions: its structure, and the adjoint test."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import generator, positive
from psiphi.algebra.dense.rank_check import sample
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.block_structure import INWARD, OUTWARD, SAME
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.spaces import ANY, JOINT, LINK


def _within(op: Expression, *allowed: str) -> bool:
    """Do all blocks that may be nonzero stand in the allowed relations? Only links and joints sit on bodies."""
    return {op.rows, op.cols} <= {LINK, JOINT, ANY} and terms.structure(op.term).relations <= set(
        allowed
    )


def is_memoryless(op: Expression) -> bool:
    """Block diagonal: each body by itself.

    >>> from psiphi.algebra.expressions.operators import Operators
    >>> s = Operators()
    >>> is_memoryless(s.H @ s.P @ s.H.T), is_memoryless(s.phi)
    (True, False)
    """
    return _within(op, SAME)


def is_causal(op: Expression) -> bool:
    """Tip to base: body k hears of itself and of bodies further out. Such products run as one inward sweep."""
    return _within(op, SAME, INWARD)


def is_strictly_causal(op: Expression) -> bool:
    """Tip to base, not of itself."""
    return _within(op, INWARD)


def is_anticausal(op: Expression) -> bool:
    """Base to tip: body k hears of itself and of the bodies that carry it. Such products run as one outward sweep."""
    return _within(op, SAME, OUTWARD)


def is_strictly_anticausal(op: Expression) -> bool:
    """Base to tip, not of itself."""
    return _within(op, OUTWARD)


class DotTest(NamedTuple):
    """<A u, v> and <u, A* v>; true when they agree."""

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
    """The adjoint test <A u, v> = <u, A* v> at q (random when not given), with random u, v and random values for vectors."""
    if not isinstance(op, Expression):
        raise StateError(
            f"dot_test of {shown(op)}, expected an expression",
            "robot.operators has operators: s.phi, s.mass, ...",
        )
    model, rng, tolerance = (
        op._robot(),
        generator(rng),
        positive("tolerance", tolerance, "1e-9 is the default"),
    )
    q = model.random(rng) if q is None else q
    values = random_values(op, rng)
    A, At = (np.atleast_2d(x.dense(q, **values)) for x in (op, op.T))
    A = A if A.shape == At.shape[::-1] else A.T
    u, v = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    left, right = float((A @ u) @ v), float(u @ (At @ v))
    size = float(np.abs(A).max(initial=0.0) * np.abs(u).sum() * np.abs(v).max())
    return DotTest(left, right, abs(left - right) / (1.0 + size), tolerance)


def random_values(op: Expression, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random numbers for every vector and symbol of the expression, and for v where it is needed."""
    return sample(op.term, op._robot(), rng)[1]
