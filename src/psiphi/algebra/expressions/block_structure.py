"""Where an operator's blocks may be nonzero, and what products make of it.

Between the body of a block's row and that of its column there are four relations: the *same* body; the row's body lies
*inward* (is an ancestor: forces flow this way, tip to base, causal); *outward* (a descendant: base to tip, anticausal);
or they are *unrelated*, on different branches. A structure is the set of relations in which blocks may stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

SAME, INWARD, OUTWARD, UNRELATED = "same", "inward", "outward", "unrelated"
EVERY = frozenset({SAME, INWARD, OUTWARD, UNRELATED})

# (i to k, k to j) -> what i may be to j, on a tree; SAME composes as the identity
PATHS = {
    (INWARD, INWARD): {INWARD},
    (OUTWARD, OUTWARD): {OUTWARD},
    (INWARD, OUTWARD): {SAME, INWARD, OUTWARD},  # two ancestors of one body lie on one path
    (OUTWARD, INWARD): EVERY,
    (INWARD, UNRELATED): {INWARD, UNRELATED},
    (UNRELATED, OUTWARD): {OUTWARD, UNRELATED},
    (OUTWARD, UNRELATED): {UNRELATED},
    (UNRELATED, INWARD): {UNRELATED},
    (UNRELATED, UNRELATED): EVERY,
}
MIRROR = {SAME: SAME, INWARD: OUTWARD, OUTWARD: INWARD, UNRELATED: UNRELATED}


@dataclass(frozen=True)
class Structure:
    """The relations in which an operator's blocks may stand."""

    relations: frozenset[str]

    def __add__(self, other: Structure) -> Structure:
        return Structure(self.relations | other.relations)

    def __matmul__(self, other: Structure) -> Structure:
        found: set[str] = set()
        for a in self.relations:
            for b in other.relations:
                found |= {b} if a == SAME else {a} if b == SAME else PATHS[a, b]
        return Structure(frozenset(found))

    @cached_property
    def adjoint(self) -> Structure:
        return Structure(frozenset(MIRROR[x] for x in self.relations))

    @property
    def inverse(self) -> Structure:
        """Triangular operators stay triangular; others may fill up."""
        full = self.relations | {SAME}
        return Structure(full if full <= {SAME, INWARD} or full <= {SAME, OUTWARD} else EVERY)


MEMORYLESS = Structure(frozenset({SAME}))
CAUSAL = Structure(frozenset({SAME, INWARD}))
STRICTLY_CAUSAL = Structure(frozenset({INWARD}))
ANYWHERE = Structure(EVERY)
