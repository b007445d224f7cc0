"""Block structure: where the blocks of an operator may be nonzero, and that of sums and products.

The body of a block's row and the body of its column have one of four relations:

    same        one body
    inward      the row's body is an ancestor: tip to base, the direction of forces, causal
    outward     the row's body is a descendant: base to tip, anticausal
    unrelated   the two are on different branches

A structure is the set of relations in which blocks may be nonzero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

SAME, INWARD, OUTWARD, UNRELATED = "same", "inward", "outward", "unrelated"
ALL_RELATIONS = frozenset({SAME, INWARD, OUTWARD, UNRELATED})

# (relation of i to k, of k to j) -> possible relations of i to j on a tree; SAME is the identity
COMPOSITIONS = {
    (INWARD, INWARD): {INWARD},
    (OUTWARD, OUTWARD): {OUTWARD},
    (INWARD, OUTWARD): {SAME, INWARD, OUTWARD},  # ancestors of one body are on one path
    (OUTWARD, INWARD): ALL_RELATIONS,
    (INWARD, UNRELATED): {INWARD, UNRELATED},
    (UNRELATED, OUTWARD): {OUTWARD, UNRELATED},
    (OUTWARD, UNRELATED): {UNRELATED},
    (UNRELATED, INWARD): {UNRELATED},
    (UNRELATED, UNRELATED): ALL_RELATIONS,
}
MIRROR = {SAME: SAME, INWARD: OUTWARD, OUTWARD: INWARD, UNRELATED: UNRELATED}


@dataclass(frozen=True)
class Structure:
    """The relations in which the blocks of an operator may be nonzero."""

    relations: frozenset[str]

    def __add__(self, other: Structure) -> Structure:
        return Structure(self.relations | other.relations)

    def __matmul__(self, other: Structure) -> Structure:
        found: set[str] = set()
        for a in self.relations:
            for b in other.relations:
                found |= {b} if a == SAME else {a} if b == SAME else COMPOSITIONS[a, b]
        return Structure(frozenset(found))

    @cached_property
    def adjoint(self) -> Structure:
        return Structure(frozenset(MIRROR[x] for x in self.relations))

    @property
    def inverse(self) -> Structure:
        """The inverse of a triangular operator is triangular; other inverses may be full."""
        full = self.relations | {SAME}
        triangular = full <= {SAME, INWARD} or full <= {SAME, OUTWARD}
        return Structure(full if triangular else ALL_RELATIONS)


MEMORYLESS = Structure(frozenset({SAME}))
CAUSAL = Structure(frozenset({SAME, INWARD}))
STRICTLY_CAUSAL = Structure(frozenset({INWARD}))
ANYWHERE = Structure(ALL_RELATIONS)
