"""Matrices whose words have no shape of their own: the expression on the columns of the identity, all in one tape.

The sweeps are those of the vector expression; unit vectors fold most of each column away, and what the columns share (P,
gains, sines and cosines) is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping

from psiphi.framing.framing import Tree
from psiphi.lowering.vectors import Lowered, Result
from psiphi.operators.letters import vector_letter
from psiphi.operators.terms import Poly, Term
from psiphi.sweeps.program import Argument, Program, ProgramStage


class LoweredColumns:
    """`polys` between spaces rows x cols, as the vector expressions poly @ x."""

    def __init__(self, polys: dict[str, Poly], rows: str, cols: str, made_of: Mapping[Term, Poly] | None = None):
        self.vector = vector_letter("column", cols)
        results = [Result(name, {(*word, self.vector): c for word, c in p.items()}, rows) for name, p in polys.items()]
        self.lowered = Lowered(results, made_of=made_of or {})

    @property
    def rods(self) -> bool:
        return self.lowered.rods

    @property
    def sweeps(self) -> int:
        return len(self.lowered.schedule.directions)

    def column(self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]) -> Program:
        """One column, that of a vector given last: what all of them cost is a multiple of it."""
        given = Argument("column", outputs[0].shape[-1:], "v" if self.vector.space == "joint" else "")
        vectors = tuple(Argument(arg.name, arg.shape[:1]) for arg in outputs)
        return self.lowered.program(name, tree, (*inputs, given), vectors)

    def program(self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]) -> Program:
        """A stage for each column of the identity, and the matrix they make."""
        one, count = self.column(name, tree, inputs, outputs), outputs[0].shape[-1]
        names = [arg.name for arg in outputs]
        columns = [
            ProgramStage(f"column {j}", one, {x: f"{x} {j}" for x in names}, {"column": [float(i == j) for i in range(count)]})
            for j in range(count)
        ]

        def side_by_side(places: dict) -> dict:
            return {
                x: [value for row in zip(*(places[f"{x} {j}"] for j in range(count)), strict=True) for value in row]
                for x in names
            }

        return Program(name, inputs, outputs, (), stages=(*columns, ProgramStage("matrix", side_by_side)), local=False)
