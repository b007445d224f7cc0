"""The part of the code that depends on free parameters only, as a stage of its own: it need not run
at every call.

    early    parameters -> numbers             run once for parameters that do not change
    late     arguments, numbers -> results     `numbers` in place of the parameters

The tape is cut where the fewest numbers are read. A value that is one operation away from numbers
that are read anyway is computed again: an operation is faster than a cache line. Products that are
fused into a sum stay with the sum, so that both stages together give the same bits as the whole.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain

from psiphi.compiler.equations import Arguments, CompileRequest
from psiphi.compiler.ir.segments import fused_products
from psiphi.compiler.passes import Traceable, code, memoized_pass
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands
from psiphi.model.model import Model

READ_COST = 3  # the cost of reading a number, in operations
COST_LIMIT = 0.95  # the late stage may cost at most this part of the whole, reads included
RECOMPUTED = (Op.ADD, Op.SUB, Op.NEG, Op.MUL)


@dataclass(frozen=True, eq=False)
class ParameterStage(Traceable):
    """One stage of a request; `size` numbers pass from the early to the late one."""

    request: CompileRequest
    size: int
    late: bool

    @property
    def model(self) -> Model:
        return self.request.model

    @property
    def equation(self) -> str:
        whole = self.request.equation or "an expression"
        return whole if self.late else f"the part of {whole} that depends on parameters only"

    @property
    def key(self) -> str:
        """What the code depends on, besides the model."""
        return f"{getattr(self.request, 'key', '')} {'late' if self.late else 'early'}"

    def arguments(self) -> tuple[Arguments, Arguments]:
        inputs, outputs = self.request.arguments()
        index = parameters_index(inputs)
        assert index is not None
        if not self.late:
            return (inputs[index],), (Argument(PARAMETERS, (self.size,)),)
        return (*inputs[:index], Argument(PARAMETERS, (self.size,)), *inputs[index + 1 :]), outputs

    def trace(self) -> StraightCode:
        stages = split_parameters(self.request)
        assert stages is not None
        return stages[self.late]


def parameters_index(inputs: Arguments) -> int | None:
    """The position of the free parameters among the inputs."""
    return next((i for i, arg in enumerate(inputs) if arg.name == PARAMETERS), None)


def stage_size(request: CompileRequest) -> int:
    """How many numbers pass from the early to the late stage; 0 if a split does not pay."""
    stages = split_parameters(request)
    return stages[0].program.outputs[0].size if stages is not None else 0


@memoized_pass
def split_parameters(request: CompileRequest) -> tuple[StraightCode, StraightCode] | None:
    """The early and the late stage. None if few operations depend on parameters only, or if the
    code has loops."""
    whole = code(request)
    index = parameters_index(request.arguments()[0])
    if index is None or not isinstance(whole, StraightCode):
        return None
    tape, inputs, outputs = whole.tape, whole.program.inputs, whole.program.outputs
    results = [node for *_, node in whole.stores]
    live = tape.live(results)
    read = [i for i in live if tape.nodes[i][:2] == (Op.LEAF, str(index))]
    cut = sorted(_find_cut(tape, live, results, set(read)))
    between = Argument(PARAMETERS, (len(cut),))
    leaves = {i: (Op.LEAF, "0", tape.nodes[i][2]) for i in read}
    stores = tuple((0, place, node) for place, node in enumerate(cut))
    early = StraightCode(
        Program(PARAMETERS, (inputs[index],), (between,), ()), _replace_leaves(tape, leaves), stores
    )
    program = Program(
        whole.program.name, (*inputs[:index], between, *inputs[index + 1 :]), outputs, ()
    )
    leaves = {node: (Op.LEAF, str(index), place) for place, node in enumerate(cut)}
    late = StraightCode(program, _replace_leaves(tape, leaves), whole.stores, tree=whole.tree)
    late_cost = late.count.flops + READ_COST * len(cut)
    pays = late_cost <= COST_LIMIT * (whole.count.flops + READ_COST * len(read))
    return (early, late) if pays and cut else None


def _replace_leaves(tape: Tape, leaves: dict[int, tuple]) -> Tape:
    """The tape with leaves in place of some nodes. Other nodes keep their numbers, hence their
    order."""
    out = Tape()
    out.nodes = [leaves.get(i, node) for i, node in enumerate(tape.nodes)]
    return out


def _find_cut(tape: Tape, live: list[int], results: list[int], leaves: set[int]) -> set[int]:
    """The nodes that the late stage reads: those that depend on parameters only, and are results or
    operands of other nodes."""
    nodes = tape.nodes
    early = set(leaves)  # depend on parameters and constants only
    readers: dict[int, list[int]] = {}
    for i in live:
        own = operands(tape, i)
        for o in own:
            readers.setdefault(o, []).append(i)
        if any(o in early for o in own) and all(o in early or nodes[o][0] is Op.CONST for o in own):
            early.add(i)
    inside = [i for i in live if nodes[i][0] not in (Op.LEAF, Op.CONST)]
    fused = set(fused_products(tape, inside, results).values())
    late_operands = (o for i in inside if i not in early for o in operands(tape, i))
    needed = set(chain(results, late_operands)) & early
    # fused products stay with their sums, in the late stage
    cut = (needed - fused) | {o for i in needed & fused for o in operands(tape, i) if o in early}
    stored = set(results)
    for i in sorted(cut, reverse=True):
        only_late = i not in stored and not any(r in early for r in readers[i])
        if (
            nodes[i][0] in RECOMPUTED
            and (nodes[i][0] is not Op.MUL or only_late)
            and _is_cheap(tape, i, cut, fused)
        ):
            cut.remove(i)
    return cut


def _is_cheap(tape: Tape, node: int, cut: Collection[int], fused: Collection[int]) -> bool:
    """Whether a node is one operation on numbers that are read anyway and constants, fused products
    included."""
    needed = [x for o in operands(tape, node) for x in (operands(tape, o) if o in fused else (o,))]
    return all(x in cut or tape.nodes[x][0] is Op.CONST for x in needed)
