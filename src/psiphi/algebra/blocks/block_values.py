"""What blocks are on a robot at a state: numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from psiphi.algebra.blocks.block_terms import STEPS, BlockAt, Factors, PathSum
from psiphi.algebra.blocks.body_indices import Index
from psiphi.algebra.dense.dense_value import evaluate
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.spaces import JOINT, LINK, Space
from psiphi.algebra.expressions.terms import Term
from psiphi.model.model import Model


class BlockNumbers:
    """What blocks are on a robot at a state."""

    def __init__(self, model: Model, q: Any, v: Any = None):
        self.model, self.q, self.v = model, q, v
        self.known: dict[Term, np.ndarray] = {}

    def parent(self, index: Index, at: Mapping[str, int]) -> int:
        """The number of the body; -1 for the base, and beyond."""
        body = at[index.name]
        for _ in range(index.up):
            body = self.model.parent[body] if body >= 0 else -1
        return body

    def value(self, p: Mapping[Factors, Fraction], at: Mapping[str, int], rows, cols) -> np.ndarray:
        total = np.zeros(
            (
                self._part(rows[0], self.parent(rows[1], at)).size,
                self._part(cols[0], self.parent(cols[1], at)).size,
            )
        )
        for word, c in p.items():
            made = self._word(word, at)
            total = total if made is None else total + float(c) * made
        return total

    def _word(self, word: Factors, at: Mapping[str, int]) -> np.ndarray | None:
        """A product; None for one with an empty sum."""
        made = None
        for x in word:
            part = self._block(x, at) if isinstance(x, BlockAt) else self._total(x, at)
            if part is None:
                return None
            made = part if made is None else made @ part
        return made

    def _total(self, x: PathSum, at: Mapping[str, int]) -> np.ndarray | None:
        stop = -1 if x.stop is None else self.parent(x.stop, at)
        parts = [
            self._word(x.word, {**at, x.i.name: body})
            for body in self.way(self.parent(x.start, at), stop)
        ]
        made = [part for part in parts if part is not None]
        return sum(made[1:], made[0]) if made else None

    def way(self, body: int, stop: int = -1) -> Iterator[int]:
        """A body and its ancestors, until before `stop`."""
        while body >= 0 and body != stop:
            yield body
            body = self.model.parent[body]

    def _block(self, x: BlockAt, at: Mapping[str, int]) -> np.ndarray:
        """A block; of the base itself there is only the way to it: φ(k+1,j) = φ(k+1,k) φ(k,j) for a root k, ψ likewise."""
        bodies = [self.parent(i, at) for i in (x.row, x.col)]
        if -1 not in bodies:
            rows, cols = (
                self._part(s, body) for s, body in zip(terms.spaces(x.term), bodies, strict=True)
            )
            return self._matrix(x.term)[np.ix_(rows, cols)]
        name = x.term.args[0] if x.term.op == "letter" else None
        if name is None or name.bare not in STEPS or (bodies[0] == -1) == name.starred:
            sizes = [
                self._part(s, body).size
                for s, body in zip(terms.spaces(x.term), bodies, strict=True)
            ]
            return np.zeros(sizes)
        if bodies[0] == bodies[1]:
            return np.eye(6)
        from_ = bodies[0] if name.starred else bodies[1]
        *_, root = self.way(from_)
        step, whole = (
            self._matrix(terms.letter_term(letter)) for letter in (STEPS[name.bare], name.bare)
        )
        outer = np.arange(6 * root, 6 * root + 6)
        path = step[np.ix_(outer, outer)] @ whole[np.ix_(outer, self._part(LINK, from_))]
        return path.T if name.starred else path

    def _matrix(self, term: Term) -> np.ndarray:
        if term not in self.known:
            self.known[term] = np.asarray(evaluate(term, self.model, self.q, self.v, {}))
        return self.known[term]

    def _part(self, space: Space, body: int) -> np.ndarray:
        if space != JOINT:
            return np.arange(6 * body, 6 * body + 6)
        joint = self.model.joints[max(body, 0)].v_slice
        return np.arange(joint.start, joint.stop)
