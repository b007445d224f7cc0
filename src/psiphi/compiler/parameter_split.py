"""The part of the code that depends on free parameters only, as a stage of its own: it need not run
at every call.

    early    parameters -> numbers             run once for parameters that do not change
    late     arguments, numbers -> results     `numbers` in place of the parameters

The tape is cut where few numbers are read (`ir/tape_cut.py`). Products that are fused into a sum
stay with the sum, so that both stages together give the same bits as the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.compiler.equations import Arguments, CompileRequest, parameters_index
from psiphi.compiler.ir.tape_cut import find_cut, replace_nodes
from psiphi.compiler.passes import Traceable, code, memoized_pass
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands
from psiphi.model.model import Model

READ_COST = 3  # the cost of reading a number, in operations
COST_LIMIT = 0.95  # the late stage may cost at most this part of the whole, reads included


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
    early_nodes = _parameter_nodes(tape, live, set(read))
    cut = sorted(find_cut(tape, live, results, early_nodes))
    between = Argument(PARAMETERS, (len(cut),))
    leaves = {i: (Op.LEAF, "0", tape.nodes[i][2]) for i in read}
    stores = tuple((0, place, node) for place, node in enumerate(cut))
    early = StraightCode(
        Program(PARAMETERS, (inputs[index],), (between,), ()), replace_nodes(tape, leaves), stores
    )
    program = Program(
        whole.program.name, (*inputs[:index], between, *inputs[index + 1 :]), outputs, ()
    )
    leaves = {node: (Op.LEAF, str(index), place) for place, node in enumerate(cut)}
    late = StraightCode(program, replace_nodes(tape, leaves), whole.stores, tree=whole.tree)
    late_cost = late.count.flops + READ_COST * len(cut)
    pays = late_cost <= COST_LIMIT * (whole.count.flops + READ_COST * len(read))
    return (early, late) if pays and cut else None


def _parameter_nodes(tape: Tape, live: list[int], leaves: set[int]) -> set[int]:
    """The nodes that depend on these leaves and constants only."""
    nodes, early = tape.nodes, set(leaves)
    for i in live:
        own = operands(tape, i)
        if any(o in early for o in own) and all(o in early or nodes[o][0] is Op.CONST for o in own):
            early.add(i)
    return early
