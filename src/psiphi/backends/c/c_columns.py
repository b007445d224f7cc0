"""C of a large robot's matrix: the loops of its operator (`c_loops.py`) on each column of the
identity.

    for (n = 0; n < columns; ++n) M e_n

Arguments are copied first, so that an output may be the array of an input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psiphi.backends.c.c_lines import Dialect
from psiphi.backends.c.c_loops import LoopedCode, framed_function
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.tape.tape import Count


@dataclass(frozen=True)
class Columns:
    """One or several matrices (`program`), and their operator, which takes a vector in addition."""

    program: Program
    operator: LinkLoops

    @property
    def vector(self) -> Argument:
        """The argument of the operator that is a column of the identity."""
        others = {arg.name for arg in self.program.inputs}
        (vector,) = (arg for arg in self.operator.program.inputs if arg.name not in others)
        return vector

    @property
    def count(self) -> Count:
        return self.operator.count * self.vector.size


class ColumnsCode:
    """The C of such a function, and the size of its frame."""

    def __init__(self, columns: Columns):
        self.columns, self.code = columns, LoopedCode(columns.operator)

    @property
    def frame_size(self) -> int:
        operator, inputs = self.columns.operator.program, self.columns.program.inputs
        return (
            self.code.frame_size
            + self.columns.vector.size
            + sum(arg.size for arg in (*inputs, *operator.outputs))
        )

    @property
    def max_live(self) -> int:
        return self.code.max_live

    def function(self, head: str, name: str, dialect: Dialect) -> Iterator[str]:
        """The static function of the operator, and the function with the loop around it."""
        program, operator, vector = (
            self.columns.program,
            self.columns.operator.program,
            self.columns.vector,
        )
        real = dialect.real
        parameters = [f"const {real} *{arg.name}" for arg in operator.inputs] + [
            f"{real} *{arg.name}" for arg in operator.outputs
        ]
        yield from framed_function(
            self.code,
            f"static void {name}_column({', '.join(parameters)})",
            f"{name}_column",
            dialect,
        )
        yield ""
        yield head
        yield "{"
        copies = {arg.name: f"c0_{i}" for i, arg in enumerate(program.inputs)} | {vector.name: "t0"}
        for arg in program.inputs:
            yield f"    {real} {copies[arg.name]}[{arg.size}];"
        yield f"    {real} t0[{vector.size}];"
        for i, arg in enumerate(operator.outputs):
            yield f"    {real} t{i + 1}[{arg.size}];"
        for arg in program.inputs:
            yield from _loop(arg.size, [f"{copies[arg.name]}[i] = {arg.name}[i];"])
        yield from _loop(vector.size, [f"t0[i] = 0.0{dialect.suffix};"])
        yield f"    for (int n = 0; n < {vector.size}; ++n) {{"
        yield f"        t0[n] = 1.0{dialect.suffix};"
        names = [copies[arg.name] for arg in operator.inputs] + [
            f"t{i + 1}" for i in range(len(operator.outputs))
        ]
        yield f"        {name}_column({', '.join(names)});"
        yield f"        t0[n] = 0.0{dialect.suffix};"
        for i, (matrix, arg) in enumerate(zip(program.outputs, operator.outputs, strict=True)):
            yield from _loop(
                arg.size, [f"{matrix.name}[({vector.size} * i) + n] = t{i + 1}[i];"], "        "
            )
        yield "    }"
        yield "}"


def _loop(size: int, lines: list[str], margin: str = "    ") -> Iterator[str]:
    yield f"{margin}for (int i = 0; i < {size}; ++i) {{"
    yield from (f"{margin}    {line}" for line in lines)
    yield f"{margin}}}"
