"""The invariants of a tape. Tests check every tape that is traced.

order    a node reads only nodes before it
unique   no node occurs twice
leaves   leaves are inputs that exist, and constants are floats
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from psiphi.compiler.tape.ops import BINARY, CONST, LEAF, UNARY
from psiphi.compiler.tape.tape import Tape


class InvalidTape(AssertionError):
    """A tape violates an invariant: internal error in psiphi."""


def check_tape(
    tape: Tape, outputs: Iterable[int], sizes: Sequence[int] | Mapping[str, int]
) -> None:
    """Check the nodes and the outputs. `sizes` are those of the inputs, by number, or those of the
    spaces of leaves, by name."""
    if not isinstance(sizes, Mapping):
        sizes = {str(i): size for i, size in enumerate(sizes)}
    if len(set(tape.nodes)) < len(tape.nodes):
        raise InvalidTape("a node occurs twice")
    for index, (op, a, b) in enumerate(tape.nodes):
        if op is LEAF:
            good = 0 <= b < sizes.get(a, 0)
        elif op is CONST:
            good = isinstance(a, float) and b is None
        elif op in BINARY:
            good = 0 <= a < index and 0 <= b < index
        else:
            good = op in UNARY and 0 <= a < index and b is None
        if not good:
            raise InvalidTape(f"node {index} is invalid: {op.name} of {a!r}, {b!r}")
    if not all(0 <= node < len(tape.nodes) for node in outputs):
        raise InvalidTape("an output is not a node of the tape")
