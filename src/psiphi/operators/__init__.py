"""What the user writes: spatial operators of one robot, with @ + - * .T .inv, checked when written.

Comes in: a `Model`. Goes out: an `Expression`, its polynomial (`poly`), its matrix at a state (`dense`), its print.

Read `letters.py` first (the alphabet, one row a letter), then `expression.py` and `operators.py` (what a user holds).

    what it is         `spaces.py`, `structure.py` (where blocks stand), `terms.py` (tree and polynomial),
                       `printing.py`, `forms.py` (letters made of vectors), `questions.py`; derivatives: `rates.py` in time,
                       `variations.py` by q and vectors, both by `product_rule.py`
                       blocks of them by letters of bodies: `indices.py`, `elements.py` (of `factors.py`), `block_values.py`
    what is legal      `legality.py` (the words for what does not fit), `sides.py` (forces and motions), `rank.py` (inverses)
    what it means      `dense.py`, on `atoms.py`, `units.py` and `moving.py` (the letters as matrices) and `inverting.py`;
                       `blocks.py` shows it
"""

from psiphi.operators.blocks import Blocks
from psiphi.operators.expression import Expression, symbol, vector
from psiphi.operators.operators import Operators, has_constant_maps, has_rotors, has_single_joints, heavier, is_chain
from psiphi.operators.questions import (
    DotTest,
    dot_test,
    is_anticausal,
    is_causal,
    is_memoryless,
    is_strictly_anticausal,
    is_strictly_causal,
    random_values,
)
from psiphi.operators.rates import RATES, time_derivative
from psiphi.operators.spaces import ANY, FRAME, JOINT, LINK, ONE, Space
from psiphi.operators.variations import derivative

__all__ = [
    "Operators",
    "Expression",
    "vector",
    "symbol",
    "Blocks",
    "Space",
    "JOINT",
    "LINK",
    "FRAME",
    "ONE",
    "ANY",
    "is_memoryless",
    "is_causal",
    "is_strictly_causal",
    "is_anticausal",
    "is_strictly_anticausal",
    "dot_test",
    "DotTest",
    "random_values",
    "time_derivative",
    "derivative",
    "RATES",
    "has_constant_maps",
    "has_rotors",
    "has_single_joints",
    "heavier",
    "is_chain",
]
