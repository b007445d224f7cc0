"""What the blocks of a program mean: each reads its inputs, then writes its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape_evaluation import OP_FUNCTIONS, evaluate

Places = dict[str, np.ndarray]


class BlockInterpreter:
    """Runs blocks, loops and conditions on named arrays; `functions` replaces operations."""

    def __init__(
        self,
        named: NamedBlocks,
        repeats: Iterable[Repeat] = (),
        conditions: Mapping[str, str] | None = None,
        functions: Mapping[Op, Callable] = OP_FUNCTIONS,
    ):
        self.named, self.conditions, self.functions = named, conditions or {}, functions
        self.repeats = {repeat.name: repeat for repeat in repeats}

    def run(self, order: Iterable[str], values: Places) -> None:
        """Run blocks and loops in order."""
        with np.errstate(all="ignore"):
            for name in order:
                if name in self.repeats:
                    self._repeat(self.repeats[name], values)
                elif name not in self.conditions or values[self.conditions[name]][0] != 0.0:
                    self._block(name, values)

    def _repeat(self, repeat: Repeat, values: Places) -> None:
        self.run([repeat.test], values)
        if values[repeat.when][0] == 0.0:
            return
        self.run(repeat.before, values)
        for _ in range(repeat.limit):
            self.run(repeat.body, values)
            if not values[repeat.done][0] < 1.0:
                break
        self.run([repeat.after] if repeat.after else [], values)

    def _block(self, name: str, values: Places) -> None:
        code, place = self.named[name]
        assert isinstance(code, StraightCode)
        inputs, outputs = (
            [values[place.get(arg.name, arg.name)] for arg in group]
            for group in (code.program.inputs, code.program.outputs)
        )
        nodes = [node for *_, node in code.stores]
        leaf = lambda space, i: inputs[int(space)][i]  # noqa: E731
        found = evaluate(code.tape, nodes, leaf, self.functions)
        for (number, index, _), x in zip(code.stores, found, strict=True):
            outputs[number][index] = x
