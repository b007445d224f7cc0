"""C of a large robot's matrix: the loops of its operator (`c_loops.py`), run once for every column of the identity.

    for (n = 0; n < columns; ++n) M e_n

Arguments are copied first, so that an output may be one of the inputs' arrays.
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
    """`program` names the matrix, or several; `one` takes its arguments and a vector besides."""

    program: Program
    one: LinkLoops

    @property
    def vector(self) -> Argument:
        """What the operator takes besides: a column of the identity."""
        taken = {arg.name for arg in self.program.inputs}
        (vector,) = (arg for arg in self.one.program.inputs if arg.name not in taken)
        return vector

    @property
    def count(self) -> Count:
        return self.one.count * self.vector.size


class ColumnsCode:
    """How much of it stands on the stack, and its text."""

    def __init__(self, columns: Columns):
        self.columns, self.made = columns, LoopedCode(columns.one)

    @property
    def frame(self) -> int:
        one, inputs = self.columns.one.program, self.columns.program.inputs
        return (
            self.made.frame
            + self.columns.vector.size
            + sum(arg.size for arg in (*inputs, *one.outputs))
        )

    @property
    def alive(self) -> int:
        return self.made.alive

    def function(self, head: str, name: str, dialect: Dialect) -> Iterator[str]:
        """The operator's function, static, and the loop around it."""
        program, one, vector = self.columns.program, self.columns.one.program, self.columns.vector
        real = dialect.real
        given = [f"const {real} *{arg.name}" for arg in one.inputs] + [
            f"{real} *{arg.name}" for arg in one.outputs
        ]
        yield from framed_function(
            self.made, f"static void {name}_column({', '.join(given)})", f"{name}_column", dialect
        )
        yield ""
        yield head
        yield "{"
        copies = {arg.name: f"c0_{i}" for i, arg in enumerate(program.inputs)} | {vector.name: "t0"}
        for arg in program.inputs:
            yield f"    {real} {copies[arg.name]}[{arg.size}];"
        yield f"    {real} t0[{vector.size}];"
        for i, arg in enumerate(one.outputs):
            yield f"    {real} t{i + 1}[{arg.size}];"
        for arg in program.inputs:
            yield from _loop(arg.size, [f"{copies[arg.name]}[i] = {arg.name}[i];"])
        yield from _loop(vector.size, [f"t0[i] = 0.0{dialect.suffix};"])
        yield f"    for (int n = 0; n < {vector.size}; ++n) {{"
        yield f"        t0[n] = 1.0{dialect.suffix};"
        words = [copies[arg.name] for arg in one.inputs] + [
            f"t{i + 1}" for i in range(len(one.outputs))
        ]
        yield f"        {name}_column({', '.join(words)});"
        yield f"        t0[n] = 0.0{dialect.suffix};"
        for i, (matrix, arg) in enumerate(zip(program.outputs, one.outputs, strict=True)):
            yield from _loop(
                arg.size, [f"{matrix.name}[({vector.size} * i) + n] = t{i + 1}[i];"], "        "
            )
        yield "    }"
        yield "}"


def _loop(size: int, lines: list[str], margin: str = "    ") -> Iterator[str]:
    yield f"{margin}for (int i = 0; i < {size}; ++i) {{"
    yield from (f"{margin}    {line}" for line in lines)
    yield f"{margin}}}"
