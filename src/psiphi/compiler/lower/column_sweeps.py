"""Matrices whose words have no shape of `word_shapes.py`: the expression on the columns of the
identity, all on one tape.

The sweeps are those of the vector expression. Unit vectors fold most of each column away, and what
columns share (P, gains, sines and cosines) is computed once. Columns of joints are one stage each.
Columns of frames are few and run in the same sweeps, so that loops over the links of a large robot
run once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from psiphi.algebra.expressions.letters import vector_letter
from psiphi.algebra.expressions.terms import Poly, Term
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.lower.vector_sweeps import Lowered, Result
from psiphi.compiler.sweeps.sweep_program import Argument, Program, ProgramStage

# the input vector, and the suffix of its results; users cannot choose these names
COLUMN_INPUT, COLUMN_SUFFIX = "column of the identity", " of a column"


class LoweredColumns:
    """`polys` between the spaces rows x cols, as the vector expressions poly @ x."""

    def __init__(
        self,
        polys: dict[str, Poly],
        rows: str,
        cols: str,
        slot_polys: Mapping[Term, Poly] | None = None,
    ):
        self.polys, self.rows, self.cols, self.slot_polys = polys, rows, cols, slot_polys or {}
        self.lowered = self._lowered_on({COLUMN_INPUT: COLUMN_SUFFIX})

    def _lowered_on(self, vectors: Mapping[str, str]) -> Lowered:
        """The expressions on several vectors, {name: suffix of the names of the results}."""
        # poly @ x for each x: the columns share equal parts, and run in the same sweeps
        results = [
            Result(
                name + end,
                {(*word, vector_letter(vector, self.cols)): c for word, c in poly.items()},
                self.rows,
            )
            for vector, end in vectors.items()
            for name, poly in self.polys.items()
        ]
        return Lowered(results, slot_polys=self.slot_polys)

    @property
    def movable_inertia(self) -> bool:
        return self.lowered.movable_inertia

    @property
    def sweeps(self) -> int:
        return len(self.lowered.schedule.directions)

    def column_program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """One column, that of the vector given last. All columns cost a multiple of it."""
        return self._program_on(
            {COLUMN_INPUT: COLUMN_SUFFIX}, self.lowered, name, tree, inputs, outputs
        )

    def _program_on(
        self,
        vectors: Mapping[str, str],
        lowered: Lowered,
        name: str,
        tree: Tree,
        inputs: tuple[Argument, ...],
        outputs: tuple[Argument, ...],
    ) -> Program:
        # a vector over joints has a part at each body; one over frames is read at the frames
        place = "v" if self.cols == "joint" else ""
        given = tuple(Argument(vector, outputs[0].shape[-1:], place) for vector in vectors)
        # a column has as many entries as the matrix has rows
        results = tuple(
            Argument(arg.name + end, arg.shape[:1]) for end in vectors.values() for arg in outputs
        )
        return lowered.program(name, tree, (*inputs, *given), results)

    def program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        """The columns of the identity in stages, and the matrix of the results."""
        count, names = outputs[0].shape[-1], [arg.name for arg in outputs]
        # A = A I: column j of A is the expression on e_j
        unit = [[float(i == j) for i in range(count)] for j in range(count)]
        if self.cols == "frame":
            vectors = {f"column {j}": f" {j}" for j in range(count)}
            lowered = self._lowered_on(vectors)
            program = self._program_on(vectors, lowered, name, tree, inputs, outputs)
            constants = dict(zip(vectors, unit, strict=True))
            columns = [ProgramStage("columns", program, constants=constants)]
        else:
            program = self.column_program(name, tree, inputs, outputs)
            columns = [
                ProgramStage(
                    f"column {j}",
                    program,
                    {x + COLUMN_SUFFIX: f"{x} {j}" for x in names},
                    {COLUMN_INPUT: e},
                )
                for j, e in enumerate(unit)
            ]

        def side_by_side(places: dict) -> dict:
            # from columns to the rows of the matrix
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
            can_loop=False,
        )
