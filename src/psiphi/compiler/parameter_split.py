"""What code makes of the robot's free numbers alone, apart from the rest: it need not be made at every call.

    early    parameters -> numbers             run once for parameters that stay
    late     arguments, numbers -> results     where `parameters` stood, `numbers` stand, under the same name

The cut goes where least is read. What follows in one operation from numbers that are read anyway is made again: an operation
takes less than a line of memory. A product that rides in a sum stays with it, and one that rides in none gets no chance to, so
that both halves together give the bits of the whole.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from typing import Any

from psiphi.compiler.ir.segments import riders
from psiphi.compiler.passes import Traceable, code, kept
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands
from psiphi.model.model import Model

READ = 3  # operations that are made while a number is read
WORTH = 0.95  # of the operations, reading among them: what may be left of them
AGAIN = (Op.ADD, Op.SUB, Op.NEG, Op.MUL)

Arguments = tuple[Argument, ...]


@dataclass(frozen=True, eq=False)
class ParameterStage(Traceable):
    """One half of something asked; `size` is how many numbers go from one to the other."""

    of: Any
    size: int
    late: bool

    @property
    def model(self) -> Model:
        return self.of.model

    @property
    def equation(self) -> str:
        whole = self.of.equation or "an expression"
        return whole if self.late else f"what {whole} makes of parameters alone"

    @property
    def key(self) -> str:
        """What the code depends on, besides the model."""
        return f"{getattr(self.of, 'key', '')} {'late' if self.late else 'early'}"

    def arguments(self) -> tuple[Arguments, Arguments]:
        inputs, outputs = self.of.arguments()
        own = number_of_parameters(inputs)
        assert own is not None
        if not self.late:
            return (inputs[own],), (Argument(PARAMETERS, (self.size,)),)
        return (*inputs[:own], Argument(PARAMETERS, (self.size,)), *inputs[own + 1 :]), outputs

    def ready(self) -> StraightCode:
        found = halves(self.of)
        assert found is not None
        return found[self.late]


def number_of_parameters(inputs: Arguments) -> int | None:
    """Which of the inputs are the free numbers."""
    return next((i for i, arg in enumerate(inputs) if arg.name == PARAMETERS), None)


def size_between(asked: Any) -> int:
    """How many numbers go from one half to the other; 0 where it is not worth it."""
    found = halves(asked)
    return found[0].program.outputs[0].size if found is not None else 0


@kept
def halves(asked: Any) -> tuple[StraightCode, StraightCode] | None:
    """Early and late; None where nothing much is made of parameters alone, or in loops."""
    whole = code(asked)
    own = number_of_parameters(asked.arguments()[0])
    if own is None or not isinstance(whole, StraightCode):
        return None
    tape, inputs, outputs = whole.tape, whole.program.inputs, whole.program.outputs
    last = [node for *_, node in whole.stores]
    live = tape.live(last)
    read = [i for i in live if tape.nodes[i][:2] == (Op.LEAF, str(own))]
    numbers = sorted(_border(tape, live, last, set(read)))
    between = Argument(PARAMETERS, (len(numbers),))
    leaves = {i: (Op.LEAF, "0", tape.nodes[i][2]) for i in read}
    stores = tuple((0, place, node) for place, node in enumerate(numbers))
    early = StraightCode(
        Program(PARAMETERS, (inputs[own],), (between,), ()), _with(tape, leaves), stores
    )
    program = Program(whole.program.name, (*inputs[:own], between, *inputs[own + 1 :]), outputs, ())
    leaves = {node: (Op.LEAF, str(own), place) for place, node in enumerate(numbers)}
    late = StraightCode(program, _with(tape, leaves), whole.stores, tree=whole.tree)
    is_worth = late.count.flops + READ * len(numbers) <= WORTH * (
        whole.count.flops + READ * len(read)
    )
    return (early, late) if is_worth and numbers else None


def _with(tape: Tape, leaves: dict[int, tuple]) -> Tape:
    """The tape with leaves in place of some nodes; every other one keeps its number, and so its turn and its readers."""
    out = Tape()
    out.nodes = [leaves.get(i, node) for i, node in enumerate(tape.nodes)]
    return out


def _border(tape: Tape, live: list[int], last: list[int], leaves: set[int]) -> set[int]:
    """What the late half reads: made of parameters alone, and needed by what is not, or a result."""
    nodes = tape.nodes
    alone = set(leaves)  # made of parameters, and of nothing else but constants
    readers: dict[int, list[int]] = {}
    for i in live:
        own = operands(tape, i)
        for o in own:
            readers.setdefault(o, []).append(i)
        if any(o in alone for o in own) and all(o in alone or nodes[o][0] is Op.CONST for o in own):
            alone.add(i)
    inside = [i for i in live if nodes[i][0] not in (Op.LEAF, Op.CONST)]
    riding = set(riders(tape, inside, last).values())
    wanted = (
        set(chain(last, (o for i in inside if i not in alone for o in operands(tape, i)))) & alone
    )
    passengers = wanted & riding  # their sums are in the late half, and so are they
    border = (wanted - riding) | {o for i in passengers for o in operands(tape, i) if o in alone}
    stored = set(last)
    for i in sorted(border, reverse=True):
        only_late = i not in stored and not any(
            r in alone for r in readers[i]
        )  # no reader in the early half
        if (
            nodes[i][0] in AGAIN
            and (nodes[i][0] is not Op.MUL or only_late)
            and _follows(tape, i, border, riding)
        ):
            border.remove(i)
    return border


def _follows(tape: Tape, node: int, border: Collection[int], riding: Collection[int]) -> bool:
    """Whether it is one operation on numbers that are read anyway, and constants; with what rides in it."""
    needed = [x for o in operands(tape, node) for x in (operands(tape, o) if o in riding else (o,))]
    return all(x in border or tape.nodes[x][0] is Op.CONST for x in needed)
