"""Terms as code: a function of `TermState` runs once, on tape expressions, as laws do.

What a term reads becomes an input of the code, by the name of its place; random numbers are entries
of the place `numbers`, in the order in which they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import count_of, name_of
from psiphi.apps.environments.terms.term_state import TermSetup, TermState
from psiphi.compiler.ir.lane_blocks import DRAWS
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Scalar, Tape
from psiphi.simulation.control.law_arrays import LawArray, flat_entries
from psiphi.simulation.plant import parameters_of

NUMBERS = "numbers"
REMEDY = "help(pp.law) says which functions compile: no branches on numbers, no internal state"


class TermTrace:
    """Some terms on one tape. `sizes` are those of the places that they may read."""

    def __init__(self, setup: TermSetup, sizes: Mapping[str, int], random: bool = False):
        self.tape, self.sizes, self.inputs, self.drawn = Tape(strict=True), sizes, {}, 0
        self.state = TermState(setup, self.place, self.draw if random else None)
        self.outputs: dict[str, list[Any]] = {}
        for values in parameters_of(setup.robot) if PARAMETERS in sizes else ():
            self.tape.alias(values, np.asarray(self.place(PARAMETERS)))

    def place(self, name: str) -> LawArray:
        """The values of a place."""
        if name not in self.sizes:
            raise StateError(f"a term reads {name}, which does not exist here", "leave it out")
        return LawArray.of([self._leaf(name, i) for i in range(self.sizes[name])])

    def draw(self) -> Scalar:
        """The next random number."""
        self.drawn += 1
        return self._leaf(NUMBERS, self.drawn - 1)

    def _leaf(self, name: str, i: int) -> Scalar:
        return self.tape.leaf(str(self.inputs.setdefault(name, len(self.inputs))), i)

    def value(self, what: str, term: Callable[[TermState], Any]) -> list[Any]:
        """The entries of a term, as tape expressions and numbers."""
        try:
            found = list(flat_entries(term(self.state)).ravel())
        except Error as error:
            raise StateError(f"{what}: {error.cause}", error.remedy or REMEDY) from error
        except Exception as error:
            cause = f"{what} cannot be traced: {type(error).__name__}: {error}".partition("\n")[0]
            raise StateError(cause, REMEDY) from error
        bad = [x for x in found if not isinstance(x, Scalar | int | float | np.number | np.bool_)]
        if bad:
            raise StateError(f"{what} returns {type(bad[0]).__name__}, expected numbers", REMEDY)
        known = (a for op, a, _ in self.tape.nodes if op is Op.CONST)
        if any(x != x for x in (*known, *(y for y in found if not isinstance(y, Scalar)))):
            raise StateError(f"{what} has a constant that is NaN", "check the numbers in the term")
        return found

    def number(self, what: str, term: Callable[[TermState], Any]) -> Any:
        """The single entry of a term."""
        values = self.value(what, term)
        if len(values) != 1:
            cause = f"{what} returns {count_of(len(values), 'number')}, expected one"
            raise StateError(cause, "sum its entries, or take the one that matters")
        return values[0]

    def code(self, name: str) -> StraightCode:
        """The code that stores the outputs."""
        sizes = {**self.sizes, NUMBERS: self.random_size}
        inputs = tuple(Argument(place, (sizes[place],)) for place in self.inputs)
        outputs = tuple(Argument(place, (len(x),)) for place, x in self.outputs.items())
        stores = tuple(
            (number, index, self.tape.operand(x if isinstance(x, Scalar) else float(x)))
            for number, values in enumerate(self.outputs.values())
            for index, x in enumerate(values)
        )
        return StraightCode(Program(name, inputs, outputs, ()), self.tape, stores)

    @property
    def random_size(self) -> int:
        """How many random numbers a block has to provide."""
        return -(-self.drawn // DRAWS) * DRAWS


def traced_twice(what: str, make: Callable[[], StraightCode]) -> StraightCode:
    """The code, traced two times: an error if the traces differ."""
    first, second = make(), make()
    if (first.tape.nodes, first.stores) != (second.tape.nodes, second.stores):
        raise StateError(
            f"{what} have another trace each time: a term has internal state or draws random "
            "numbers of its own",
            "use s.uniform(...) and s.normal(...)",
        )
    return first


def term_name(term: object) -> str:
    """The name of a term: the word itself, or the name of the function."""
    return term if isinstance(term, str) else name_of(term)
