"""Matrices whose words have no shape of their own: the expression on the columns of the identity, all in one tape.

The sweeps are those of the vector expression; unit vectors fold most of each column away, and what the columns share (P,
gains, sines and cosines) is computed once. Columns of joints are a stage each; those of frames are few, and climb together in
the same sweeps, so that loops over the links of a large robot run once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from psiphi.algebra.expressions.letters import vector_letter
from psiphi.algebra.expressions.terms import Poly, Term
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.lower.vector_sweeps import Lowered, Result
from psiphi.compiler.sweeps.sweep_program import Argument, Program, ProgramStage

COLUMN, OF = (
    "column of the identity",
    " of a column",
)  # names that no user can give: the vector, and what its results end in


class LoweredColumns:
    """`polys` between spaces rows x cols, as the vector expressions poly @ x."""

    def __init__(
        self,
        polys: dict[str, Poly],
        rows: str,
        cols: str,
        made_of: Mapping[Term, Poly] | None = None,
    ):
        self.polys, self.rows, self.cols, self.made_of = polys, rows, cols, made_of or {}
        self.lowered = self._along({COLUMN: OF})

    def _along(self, vectors: Mapping[str, str]) -> Lowered:
        """The expressions on some vectors, {name: what is put behind the names of the results}."""
        # poly @ x for each x: equal parts of all columns are one node, and run in the same sweeps
        results = [
            Result(
                name + end,
                {(*word, vector_letter(vector, self.cols)): c for word, c in poly.items()},
                self.rows,
            )
            for vector, end in vectors.items()
            for name, poly in self.polys.items()
        ]
        return Lowered(results, made_of=self.made_of)

    @property
    def rods(self) -> bool:
        return self.lowered.rods

    @property
    def sweeps(self) -> int:
        return len(self.lowered.schedule.directions)

    def column(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """One column, that of a vector given last: what all of them cost is a multiple of it."""
        return self._on({COLUMN: OF}, self.lowered, name, tree, inputs, outputs)

    def _on(
        self, vectors: Mapping[str, str], lowered: Lowered, name: str, tree: Tree, inputs, outputs
    ) -> Program:
        # a vector over joints has a part at each body; one over frames is read where a frame sits
        place = "v" if self.cols == "joint" else ""
        given = tuple(Argument(vector, outputs[0].shape[-1:], place) for vector in vectors)
        # a column is as long as the matrix is high
        results = tuple(
            Argument(arg.name + end, arg.shape[:1]) for end in vectors.values() for arg in outputs
        )
        return lowered.program(name, tree, (*inputs, *given), results)

    def program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """The columns of the identity in stages, and the matrix they make."""
        count, names = outputs[0].shape[-1], [arg.name for arg in outputs]
        # A = A I: column j of A is the expression on e_j
        unit = [[float(i == j) for i in range(count)] for j in range(count)]
        if self.cols == "frame":
            vectors = {f"column {j}": f" {j}" for j in range(count)}
            every = self._on(vectors, self._along(vectors), name, tree, inputs, outputs)
            columns = [ProgramStage("columns", every, given=dict(zip(vectors, unit, strict=True)))]
        else:
            one = self.column(name, tree, inputs, outputs)
            columns = [
                ProgramStage(f"column {j}", one, {x + OF: f"{x} {j}" for x in names}, {COLUMN: e})
                for j, e in enumerate(unit)
            ]

        def side_by_side(places: dict) -> dict:
            # columns came one after the other, matrices are written row by row
            return {
                x: [
                    value
                    for row in zip(*(places[f"{x} {j}"] for j in range(count)), strict=True)
                    for value in row
                ]
                for x in names
            }

        return Program(
            name,
            inputs,
            outputs,
            (),
            stages=(*columns, ProgramStage("matrix", side_by_side)),
            local=False,
        )
