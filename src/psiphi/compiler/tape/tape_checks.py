"""What a tape may hold: tests look at every tape that is traced.

order       a node reads nodes before it
once        no node is there twice
leaves      inputs that exist, and constants that are numbers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from psiphi.compiler.tape.ops import BINARY, UNARY, Op
from psiphi.compiler.tape.tape import Tape


class InvalidTape(AssertionError):
    """A tape that means nothing: a mistake of psiphi's own."""


def check_tape(
    tape: Tape, outputs: Iterable[int], places: Sequence[int] | Mapping[str, int]
) -> None:
    """`outputs` are nodes of it; input number i has `places[i]` places, or a space of leaves as many as it is said to have."""
    sizes = (
        places if isinstance(places, Mapping) else {str(i): size for i, size in enumerate(places)}
    )
    if len(set(tape.nodes)) < len(tape.nodes):
        raise InvalidTape("a node is there twice")
    for index, (op, a, b) in enumerate(tape.nodes):
        if op is Op.LEAF:
            good = 0 <= b < sizes.get(a, 0)
        elif op is Op.CONST:
            good = isinstance(a, float) and b is None
        elif op in BINARY:
            good = 0 <= a < index and 0 <= b < index
        else:
            good = op in UNARY and 0 <= a < index and b is None
        if not good:
            raise InvalidTape(f"node {index} is {op.name} of {a!r}, {b!r}")
    if not all(0 <= node < len(tape.nodes) for node in outputs):
        raise InvalidTape("a result is no node of the tape")
