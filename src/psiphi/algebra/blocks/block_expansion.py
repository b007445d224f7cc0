"""Blocks of expressions as what they are made of: (X Y)(k,j) = Σ X(k,i) Y(i,j), the sum over the bodies where both stand.

Where the letters of an operator have their blocks says what the sum runs over: one body, a path, or the way to the root. A
block whose place is not known, from `where`, to hold something or nothing is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from psiphi._util.errors import StateError
from psiphi.algebra.blocks.block_normal_form import LetterAt, Path, replace_letter
from psiphi.algebra.blocks.block_normal_form import map_indices as with_indices
from psiphi.algebra.blocks.block_terms import BlockAt, BlockPoly, Factors, PathSum
from psiphi.algebra.blocks.body_indices import Ancestor, Index, Order
from psiphi.algebra.expressions.block_structure import MEMORYLESS
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.letters import letter
from psiphi.algebra.expressions.notation import UNICODE, show_word
from psiphi.algebra.expressions.terms import Term, Word, accumulate, multiply
from psiphi.algebra.rewriting.normal_form import normal_form
from psiphi.model.model import Model

STEP_BLOCKS = {
    "E_phi": "Delta_phi",
    "E_psi": "Delta_psi",
    "K": "L",
    "S": "",
}  # (j+1, j): what stands there
PATH_BLOCKS = {
    "phi": ("phi", 0),
    "psi": ("psi", 0),
    "Phi": ("phi", 1),
    "Psi": ("psi", 1),
}  # (k, j): of which letter, from j or j+1


@dataclass
class BlockExpansion:
    """How the bodies stand, and the letter that sums run over."""

    order: Order
    i: Index
    model: Model | None
    known: dict[Term, dict[Word, Fraction]] = field(default_factory=dict)

    def __call__(self, p: Mapping[Factors, Fraction]) -> BlockPoly:
        """Blocks of letters in place of blocks of expressions."""
        total: BlockPoly = {}
        for word, c in p.items():
            made: BlockPoly = {(): c}
            for x in word:
                made = multiply(made, self._total(x) if isinstance(x, PathSum) else self._block(x))
            accumulate(total, made)
        return total

    def _total(self, x: PathSum) -> BlockPoly:
        """A sum as it was written: its path must be known, and the terms are unfolded one by one."""
        if x.stop is not None and not self.order.at_least(x.stop, x.start):
            raise _unknown_order(
                self.order, f"the sum from {x.start} until {x.stop}", x.stop, x.start
            )
        if any(
            isinstance(fact, Ancestor) and x.i.name in (fact.upper.name, fact.lower.name)
            for fact in self.order
        ):
            raise StateError(
                f"{x.i} is summed over, and where={self.order} speaks of it",
                "sum over a letter of its own",
            )
        to = replace_letter(x.i.name, self.i)
        facts = [
            Ancestor(self.i, x.start),
            *([Ancestor(x.stop, self.i + 1)] if x.stop is not None and not x.stop.up else []),
        ]
        inside = replace(self, order=self.order | facts, known=self.known)
        terms = inside({tuple(with_indices(y, to) for y in x.word): Fraction(1)})
        if any(isinstance(y, PathSum) for word in terms for y in word):
            raise StateError(
                f"{x.show(UNICODE)}: a sum within a sum", "prove the inner one by itself"
            )
        return {(PathSum(self.i, x.start, x.stop, word),): c for word, c in terms.items()}

    def _block(self, x: BlockAt) -> BlockPoly:
        total: BlockPoly = {}
        for word, c in self._poly(x.term).items():
            made = self._word(word, x)
            if made is not None:
                accumulate(total, {made: c})
        return total

    def _poly(self, term: Term) -> dict[Word, Fraction]:
        """The polynomial of a term; inverses are resolved by the rules of the book."""
        if term not in self.known:
            expression = Expression(term, self.model)
            p, derivation = (
                normal_form(expression) if expression.inverses else (expression.poly(), None)
            )
            if derivation is not None and derivation.inverses:
                raise StateError(
                    f"no rule resolves the inverse in {expression}", "its blocks are not known"
                )
            self.known[term] = p
        return self.known[term]

    def _word(self, word: Word, x: BlockAt) -> Factors | None:
        """The block of one word: None where there is none."""
        places, ways = _places(word, x)
        pinned = self._pinned(places, x)
        free = [g for g in range(places[-1][0] + 1) if pinned is not None and g not in pinned]
        if pinned is None:
            return None
        if len(free) > 1:
            raise StateError(
                f"{x.show(UNICODE)}: {show_word(word)} is a sum over two bodies", _SPLIT_REMEDY
            )
        lows: list[Index] = []
        stops: list[tuple[Index, bool]] = []  # the body above, and whether the sum reaches it
        for (g, up), (h, more) in ways:
            high, low = pinned.get(g), pinned.get(h)
            if high is not None and low is not None:
                if not self._way(high + up, low + more, x):
                    return None
            elif high is not None and more <= 1 and not up:
                stops.append((high, not more))
            elif low is not None and not up:
                lows.append(low + more)
            else:
                raise StateError(
                    f"{x.show(UNICODE)}: {show_word(word)} is a sum that ends at a child",
                    _PARENT_REMEDY,
                )
        if not free:
            return _factors(word, places, pinned)
        return self._between(_factors(word, places, {**pinned, free[0]: self.i}), lows, stops, x)

    def _pinned(self, places: list[WordPlace], x: BlockAt) -> dict[int, Index] | None:
        """The bodies that the ends of a block name; None where these cannot be: there is no block."""
        ends = [(places[0], x.row), (places[-1], x.col)]
        pinned: dict[int, Index] = {}
        for (g, up), index in sorted(ends, key=lambda end: end[0][1]):
            if g not in pinned and up:
                raise StateError(
                    f"{x.show(UNICODE)}: a step to a child, of which {index} may have several",
                    _PARENT_REMEDY,
                )
            if g in pinned and not self._same(pinned[g] + up, index, x):
                return None
            pinned.setdefault(g, index)
        return pinned

    def _between(
        self, factors: Factors, lows: list[Index], stops: list[tuple[Index, bool]], x: BlockAt
    ) -> Factors | None:
        """The sum over the body that is not pinned: from the highest of what lies below until what lies above."""
        if not lows or len(stops) > 1:
            raise StateError(
                f"{x.show(UNICODE)} is a sum over all that {x.row} carries, no sum along a path",
                _SPLIT_REMEDY,
            )
        start = lows[0]
        for y in lows[1:]:
            found = self.order.highest(start, y)
            if found is None:
                raise _unknown_order(self.order, x.show(UNICODE), start, y)
            start = found
        for high, reached in stops:
            if not self._way(high, start, x):
                return None
            return (PathSum(self.i, start, high + 1 if reached else high, factors),)
        return (PathSum(self.i, start, None, factors),)

    def _same(self, a: Index, b: Index, x: BlockAt) -> bool:
        """Are they one body? Known, or refused."""
        if a == b:
            return True
        if self.order.out_of_reach(a, b) or self.order.out_of_reach(b, a):
            return False
        raise _unknown_order(self.order, x.show(UNICODE), a, b)

    def _way(self, high: Index, low: Index, x: BlockAt) -> bool:
        """Does a path lead from low to high? Known, or refused."""
        if self.order.at_least(high, low):
            return True
        if self.order.out_of_reach(high, low):
            return False
        raise _unknown_order(self.order, x.show(UNICODE), high, low)


_SPLIT_REMEDY = "take it apart, and prove the parts"
_PARENT_REMEDY = "write it with bodies that are parents of those below: j+1"


def _unknown_order(order: Order, what: str, a: Index, b: Index) -> StateError:
    given = f"where={order} does not say" if order.facts else "nothing says"
    return StateError(
        f"{what}: {given} how {a} and {b} stand",
        f"say it: where={a.name} > {b.name}, or {b.name}.meets(...)",
    )


WordPlace = tuple[int, int]  # a body of its own, and how many steps further in


def _places(word: Word, x: BlockAt) -> tuple[list[WordPlace], list[tuple[WordPlace, WordPlace]]]:
    """Where each letter begins and ends: bodies by number, offset; and the paths between them (high, low)."""
    places: list[WordPlace] = [(0, 0)]
    paths: list[tuple[int, int, int]] = []  # positions of high and low, and what is added to low
    for t, name in enumerate(word):
        g, up = places[-1]
        if name.row.structure == MEMORYLESS:
            places.append((g, up))
        elif name.bare in STEP_BLOCKS and name.starred:
            places.append((g, up + 1))
        elif name.bare in STEP_BLOCKS:
            if up:
                raise StateError(
                    f"{x.show(UNICODE)}: {show_word(word)} goes to a parent and back to its children",
                    _PARENT_REMEDY,
                )
            places = [(h, n + 1) if h == g else (h, n) for h, n in places]
            places.append((g, 0))
        elif name.bare in PATH_BLOCKS:
            places.append((g + 1, 0))
            more = PATH_BLOCKS[name.bare][1]
            paths.append((t + 1, t, more) if name.starred else (t, t + 1, more))
        else:
            raise StateError(
                f"{x.show(UNICODE)}: {name.symbol} has no blocks along a path",
                "use the letters of chains and trees",
            )
    ways = [(places[high], (places[low][0], places[low][1] + more)) for high, low, more in paths]
    return places, ways


def _factors(word: Word, places: list[WordPlace], pinned: Mapping[int, Index]) -> Factors:
    made = []
    for t, name in enumerate(word):
        before, after = (pinned[g] + up for g, up in places[t : t + 2])
        if name.row.structure == MEMORYLESS:
            made.append(LetterAt(name, before))
        elif name.bare in STEP_BLOCKS:
            if STEP_BLOCKS[name.bare]:
                step = LetterAt(letter(STEP_BLOCKS[name.bare]), before if name.starred else after)
                made.append(step.T if name.starred else step)
        else:
            kind, more = PATH_BLOCKS[name.bare]
            high, low = (after, before) if name.starred else (before, after)
            made.append(Path(letter(kind), high, low + more, name.starred))
    return tuple(made)
