"""Blocks of expressions in terms of blocks of letters: (X Y)(k,j) = Σ X(k,i) Y(i,j).

The block structure of the letters determines the range of the sum: one body, a path, or the path to
the root. If the facts in `where` do not determine whether a block is zero, an error is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from psiphi._util.errors import StateError
from psiphi.algebra.blocks.block_normal_form import LetterAt, Path, replace_letter
from psiphi.algebra.blocks.block_normal_form import map_indices as with_indices
from psiphi.algebra.blocks.block_terms import STEP_BLOCKS, BlockAt, BlockPoly, Factors, PathSum
from psiphi.algebra.blocks.body_indices import Ancestor, Index, Order
from psiphi.algebra.expressions.block_structure import MEMORYLESS
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import letter
from psiphi.algebra.expressions.notation import UNICODE, show_word
from psiphi.algebra.expressions.terms import Term, Word, accumulate, multiply
from psiphi.algebra.rewriting.normal_form import normal_form
from psiphi.model.model import Model

# letters with blocks along paths: X(k, j) is φ or ψ from j, or from j + 1, to k
PATH_BLOCKS = {"phi": ("phi", 0), "psi": ("psi", 0), "Phi": ("phi", 1), "Psi": ("psi", 1)}


@dataclass
class BlockExpansion:
    """Expands blocks of expressions, with the facts about bodies and the index of sums."""

    order: Order
    i: Index
    model: Model | None
    cache: dict[Term, dict[Word, Fraction]] = field(default_factory=dict)

    def __call__(self, p: Mapping[Factors, Fraction]) -> BlockPoly:
        """The polynomial in blocks of letters."""
        total: BlockPoly = {}
        for word, c in p.items():
            out: BlockPoly = {(): c}
            for x in word:
                out = multiply(out, self._path_sum(x) if isinstance(x, PathSum) else self._block(x))
            accumulate(total, out)
        return total

    def _path_sum(self, x: PathSum) -> BlockPoly:
        """A sum that the user wrote: its path must be known; its terms are expanded."""
        if x.stop is not None and not self.order.at_least(x.stop, x.start):
            raise _unknown_order(self.order, f"the sum from {x.start} to {x.stop}", x.stop, x.start)
        if any(
            isinstance(fact, Ancestor) and x.i.name in (fact.upper.name, fact.lower.name)
            for fact in self.order
        ):
            raise StateError(
                f"{x.i} is the index of a sum, and where={self.order} names it",
                "sum over another letter",
            )
        to = replace_letter(x.i.name, self.i)
        facts = [
            Ancestor(self.i, x.start),
            *([Ancestor(x.stop, self.i + 1)] if x.stop is not None and not x.stop.up else []),
        ]
        inner = replace(self, order=self.order | facts, cache=self.cache)
        terms = inner({tuple(with_indices(y, to) for y in x.word): Fraction(1)})
        if any(isinstance(y, PathSum) for word in terms for y in word):
            raise StateError(
                f"{x.show(UNICODE)}: nested sums are not supported",
                "prove the inner sum separately",
            )
        return {(PathSum(self.i, x.start, x.stop, word),): c for word, c in terms.items()}

    def _block(self, x: BlockAt) -> BlockPoly:
        total: BlockPoly = {}
        for word, c in self._poly(x.term).items():
            out = self._word(word, x)
            if out is not None:
                accumulate(total, {out: c})
        return total

    def _poly(self, term: Term) -> dict[Word, Fraction]:
        """The polynomial of a term; known inverses are replaced."""
        if term not in self.cache:
            expression = Expression(term, self.model)
            p, derivation = (
                normal_form(expression) if expression.inverses else (expression.poly(), None)
            )
            if derivation is not None and derivation.inverses:
                raise StateError(
                    f"no rule resolves the inverse in {expression}: its blocks are unknown",
                    "use an inverse that psiphi knows, such as s.mass.inv",
                )
            self.cache[term] = p
        return self.cache[term]

    def _word(self, word: Word, x: BlockAt) -> Factors | None:
        """The block of one word; None if it is zero."""
        places, paths = _places(word, x)
        known = self._end_bodies(places, x)
        free = [g for g in range(places[-1][0] + 1) if known is not None and g not in known]
        if known is None:
            return None
        if len(free) > 1:
            raise StateError(
                f"{x.show(UNICODE)}: {show_word(word)} is a double sum over bodies", _SPLIT_REMEDY
            )
        lows: list[Index] = []
        stops: list[tuple[Index, bool]] = []  # the upper body, and whether the sum includes it
        for (g, up), (h, offset) in paths:
            high, low = known.get(g), known.get(h)
            if high is not None and low is not None:
                if not self._has_path(high + up, low + offset, x):
                    return None
            elif high is not None and offset <= 1 and not up:
                stops.append((high, not offset))
            elif low is not None and not up:
                lows.append(low + offset)
            else:
                raise StateError(
                    f"{x.show(UNICODE)}: {show_word(word)} is a sum that ends at a child",
                    _PARENT_REMEDY,
                )
        if not free:
            return _factors(word, places, known)
        return self._sum_between(_factors(word, places, {**known, free[0]: self.i}), lows, stops, x)

    def _end_bodies(self, places: list[WordPlace], x: BlockAt) -> dict[int, Index] | None:
        """The bodies at both ends of a block; None if they exclude each other: a zero block."""
        ends = [(places[0], x.row), (places[-1], x.col)]
        known: dict[int, Index] = {}
        for (g, up), index in sorted(ends, key=lambda end: end[0][1]):
            if g not in known and up:
                raise StateError(
                    f"{x.show(UNICODE)}: a step from {index} to a child, which is not unique",
                    _PARENT_REMEDY,
                )
            if g in known and not self._same_body(known[g] + up, index, x):
                return None
            known.setdefault(g, index)
        return known

    def _sum_between(
        self, factors: Factors, lows: list[Index], stops: list[tuple[Index, bool]], x: BlockAt
    ) -> Factors | None:
        """The sum over the free body: from the nearest common ancestor of `lows` up to `stops`."""
        if not lows or len(stops) > 1:
            raise StateError(
                f"{x.show(UNICODE)} is a sum over all descendants of {x.row}, not along a path",
                _SPLIT_REMEDY,
            )
        start = lows[0]
        for y in lows[1:]:
            found = self.order.nearest_common_ancestor(start, y)
            if found is None:
                raise _unknown_order(self.order, x.show(UNICODE), start, y)
            start = found
        for high, reached in stops:
            if not self._has_path(high, start, x):
                return None
            return (PathSum(self.i, start, high + 1 if reached else high, factors),)
        return (PathSum(self.i, start, None, factors),)

    def _same_body(self, a: Index, b: Index, x: BlockAt) -> bool:
        """True if a and b are one body; an error if the facts do not determine it."""
        if a == b:
            return True
        if self.order.never_at_least(a, b) or self.order.never_at_least(b, a):
            return False
        raise _unknown_order(self.order, x.show(UNICODE), a, b)

    def _has_path(self, high: Index, low: Index, x: BlockAt) -> bool:
        """True if high is low or an ancestor; an error if the facts do not determine it."""
        if self.order.at_least(high, low):
            return True
        if self.order.never_at_least(high, low):
            return False
        raise _unknown_order(self.order, x.show(UNICODE), high, low)


_SPLIT_REMEDY = "split the statement, and prove the parts"
_PARENT_REMEDY = "name the lower body j and write j+1 for its parent"


def _unknown_order(order: Order, what: str, a: Index, b: Index) -> StateError:
    facts = f"where={order} does not determine" if order.facts else "nothing determines"
    return StateError(
        f"{what}: {facts} the order of {a} and {b}",
        f"add a fact: where={a.name} > {b.name}, or {b.name}.meets(...)",
    )


WordPlace = tuple[int, int]  # number of a body, and of steps from it to the base


def _places(word: Word, x: BlockAt) -> tuple[list[WordPlace], list[tuple[WordPlace, WordPlace]]]:
    """The bodies at both sides of each letter of a word, and the paths (high, low) between them."""
    places: list[WordPlace] = [(0, 0)]
    paths: list[tuple[int, int, int]] = []  # positions of high and low, and the offset of low
    for t, name in enumerate(word):
        g, up = places[-1]
        if name.row.structure == MEMORYLESS:
            places.append((g, up))
        elif name.bare in STEP_BLOCKS and name.starred:
            places.append((g, up + 1))
        elif name.bare in STEP_BLOCKS:
            if up:
                raise StateError(
                    f"{x.show(UNICODE)}: {show_word(word)} steps to a parent and to its children",
                    _PARENT_REMEDY,
                )
            places = [(h, n + 1) if h == g else (h, n) for h, n in places]
            places.append((g, 0))
        elif name.bare in PATH_BLOCKS:
            places.append((g + 1, 0))
            offset = PATH_BLOCKS[name.bare][1]
            paths.append((t + 1, t, offset) if name.starred else (t, t + 1, offset))
        else:
            raise StateError(
                f"{x.show(UNICODE)}: {name.symbol} has no blocks along a path",
                "use letters with blocks along paths: phi, psi, Phi, Psi, E_phi, E_psi, K, S",
            )
    return places, [
        (places[high], (places[low][0], places[low][1] + offset)) for high, low, offset in paths
    ]


def _factors(word: Word, places: list[WordPlace], known: Mapping[int, Index]) -> Factors:
    out = []
    for t, name in enumerate(word):
        before, after = (known[g] + up for g, up in places[t : t + 2])
        if name.row.structure == MEMORYLESS:
            out.append(LetterAt(name, before))
        elif name.bare in STEP_BLOCKS:
            if STEP_BLOCKS[name.bare]:
                step = LetterAt(letter(STEP_BLOCKS[name.bare]), before if name.starred else after)
                out.append(step.T if name.starred else step)
        else:
            kind, offset = PATH_BLOCKS[name.bare]
            high, low = (after, before) if name.starred else (before, after)
            out.append(Path(letter(kind), high, low + offset, name.starred))
    return tuple(out)
