"""Straight-line code as stages that run one after the other, with other code between them.

    stage 1    inputs -> its outputs, kept numbers
    stage 2    inputs, kept numbers -> its outputs, kept numbers
    ...

What an earlier stage has computed is not computed again: it is kept, in one place for each stage.
A loop or a branch may stand between two stages, and change inputs that only the later one reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psiphi.compiler.ir.tape_cut import find_cut, replace_nodes
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op


def split_stages(
    whole: StraightCode, stages: Mapping[str, Sequence[str]], kept: str
) -> dict[str, StraightCode]:
    """The stages by name, for {stage: the outputs that it computes}, in their order. The numbers
    that stage k keeps are an output f"{kept}{k}", and an input of the stages that read them."""
    tape, program = whole.tape, whole.program
    results: list[list[tuple[str, int, int]]] = []  # of each stage: (output, index, node)
    cuts: list[set[int]] = []
    computed: list[set[int]] = []
    done: set[int] = set()
    for names in stages.values():
        stores = [
            (program.outputs[number].name, index, node)
            for number, index, node in whole.stores
            if program.outputs[number].name in names
        ]
        nodes = [node for *_, node in stores]
        live = tape.live(nodes)
        cut = find_cut(tape, live, nodes, done & set(live))
        own = {i for i in tape.live(nodes, cut) if tape.nodes[i][0] not in (Op.LEAF, Op.CONST)}
        results.append(stores)
        cuts.append(cut)
        computed.append(own - cut - done)
        done |= own
    keeps = [
        sorted(new & set().union(*cuts[k + 1 :])) for k, new in enumerate(computed)
    ]  # nodes that later stages read
    places = {node: (k, i) for k, nodes in enumerate(keeps) for i, node in enumerate(nodes)}
    arguments = [Argument(f"{kept}{k}", (len(nodes),)) for k, nodes in enumerate(keeps)]
    made = {}
    for k, (name, outputs) in enumerate(stages.items()):
        reads = sorted({places[node][0] for node in cuts[k]})
        inputs = (*program.inputs, *(arguments[j] for j in reads))
        spaces = {j: str(len(program.inputs) + n) for n, j in enumerate(reads)}
        leaves = {node: (Op.LEAF, spaces[places[node][0]], places[node][1]) for node in cuts[k]}
        own = [arg for arg in program.outputs if arg.name in outputs]
        own += [arguments[k]] if keeps[k] else []
        number = {arg.name: i for i, arg in enumerate(own)}
        stores = [(number[output], index, node) for output, index, node in results[k]]
        stores += [(len(own) - 1, i, node) for i, node in enumerate(keeps[k])]
        made[name] = StraightCode(
            Program(name, inputs, tuple(own), ()), replace_nodes(tape, leaves), tuple(stores)
        )
    return made
