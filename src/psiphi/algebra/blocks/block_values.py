"""The numerical values of blocks on a robot at a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi.algebra.blocks.block_terms import STEP_BLOCKS, STEPS, BlockAt, Factors, PathSum
from psiphi.algebra.blocks.body_indices import Index
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.letters import Letter
from psiphi.algebra.expressions.notation import UNICODE
from psiphi.algebra.expressions.spaces import JOINT, LINK, Space
from psiphi.algebra.expressions.terms import Term
from psiphi.model.model import Model


class BlockNumbers:
    """The values of blocks on a robot at a state. `bodies` are the body numbers of the letters."""

    def __init__(self, model: Model, q: Numbers, v: Numbers | None = None):
        self.model, self.q, self.v = model, q, v
        self.cache: dict[Term, np.ndarray] = {}

    def body(self, index: Index, bodies: Mapping[str, int]) -> int:
        """The number of the body; -1 for the base and beyond."""
        body = bodies[index.name]
        for _ in range(index.up):
            body = self.model.parent[body] if body >= 0 else -1
        return body

    def value(
        self,
        p: Mapping[Factors, Fraction],
        bodies: Mapping[str, int],
        rows: tuple[Space, Index],
        cols: tuple[Space, Index],
    ) -> np.ndarray:
        """The matrix of a polynomial of blocks."""
        shape = [self._range(space, self.body(i, bodies)).size for space, i in (rows, cols)]
        total = np.zeros(shape)
        for word, c in p.items():
            value = self._word_value(word, bodies)
            total = total if value is None else total + float(c) * value
        return total

    def _word_value(self, word: Factors, bodies: Mapping[str, int]) -> np.ndarray | None:
        """A product; None for one with an empty sum."""
        value = None
        for x in word:
            factor = (
                self._block_value(x, bodies)
                if isinstance(x, BlockAt)
                else self._sum_value(x, bodies)
            )
            if factor is None:
                return None
            value = factor if value is None else value @ factor
        return value

    def _sum_value(self, x: PathSum, bodies: Mapping[str, int]) -> np.ndarray | None:
        stop = -1 if x.stop is None else self.body(x.stop, bodies)
        parts = [
            self._word_value(x.word, {**bodies, x.i.name: body})
            for body in self.path_to_base(self.body(x.start, bodies), stop)
        ]
        values = [part for part in parts if part is not None]
        return sum(values[1:], values[0]) if values else None

    def path_to_base(self, body: int, stop: int = -1) -> Iterator[int]:
        """A body and its ancestors, up to but not including `stop`."""
        while body >= 0 and body != stop:
            yield body
            body = self.model.parent[body]

    def _block_value(self, x: BlockAt, bodies: Mapping[str, int]) -> np.ndarray:
        """A block of a term.

        Of blocks of the base, with a root k, those of φ, ψ and the letters of one step are nonzero:
        φ(k+1,j) = φ(k+1,k) φ(k,j), ℰ_φ(k+1,k) = Δ_φ(k), K(k+1,k) = L(k). Those of products have no
        value.
        """
        row, col = self.body(x.row, bodies), self.body(x.col, bodies)
        spaces = terms.spaces(x.term)
        if row >= 0 and col >= 0:
            entries = [self._range(s, body) for s, body in zip(spaces, (row, col), strict=True)]
            return self._matrix(x.term)[np.ix_(*entries)]
        if x.term.op != "letter":
            raise StateError(f"{x.show(UNICODE)} is a block of the base", "take blocks of bodies")
        name = x.term.args[0]
        if name.bare in STEP_BLOCKS and row != col:
            return self._step_value(name, *((row, col) if name.starred else (col, row)))
        if name.bare not in STEPS or (row == -1) == name.starred:
            return np.zeros(
                [self._range(s, body).size for s, body in zip(spaces, (row, col), strict=True)]
            )
        if row == col:
            return np.eye(6)
        body = row if name.starred else col
        *_, root = self.path_to_base(body)
        step, whole = (
            self._matrix(terms.letter_term(letter)) for letter in (STEPS[name.bare], name.bare)
        )
        outer = np.arange(6 * root, 6 * root + 6)
        path = step[np.ix_(outer, outer)] @ whole[np.ix_(outer, self._range(LINK, body))]
        return path.T if name.starred else path

    def _step_value(self, name: Letter, lower: int, upper: int) -> np.ndarray:
        """ℰ_φ(0,k) = Δ_φ(k), K(0,k) = L(k), ..., at the base 0 and a root k; zero elsewhere."""
        cols = terms.spaces(terms.letter_term(name.bare))[1]
        rows, own = self._range(LINK, lower), self._range(cols, lower)
        if upper >= 0 or lower < 0 or self.model.parent[lower] >= 0:
            block = np.zeros((6, own.size))
        elif step := STEP_BLOCKS[name.bare]:
            block = self._matrix(terms.letter_term(step))[np.ix_(rows, own)]
        else:
            block = np.eye(6)
        return block.T if name.starred else block

    def _matrix(self, term: Term) -> np.ndarray:
        if term not in self.cache:
            self.cache[term] = np.asarray(evaluate(term, self.model, self.q, self.v, {}))
        return self.cache[term]

    def _range(self, space: Space, body: int) -> np.ndarray:
        """The rows of a body in vectors of a space."""
        if space != JOINT:
            return np.arange(6 * body, 6 * body + 6)
        joint = self.model.joints[max(body, 0)].v_slice
        return np.arange(joint.start, joint.stop)
