"""What is asked of the compiler: named results, each an expression of one robot, with their inputs and outputs.

This is its first pass, *write*: every vector over links is settled as force or motion, and the arguments are known before
anything is rewritten, so that a warm start need not rewrite at all. `passes.py` does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from psiphi._util.errors import StateError
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import ends, settled
from psiphi.algebra.expressions.letters import FormLetter, Letter, VectorLetter, vector_letter
from psiphi.algebra.rewriting.work_budget import SECONDS
from psiphi.compiler.sweeps.sweep_program import ADDED, PARAMETERS, Argument
from psiphi.model.model import Model

WHOLE, WRITTEN, REWRITTEN = FORMS = ("body forces whole", "as written", "rewritten")


def unmade(asked: Any) -> dict[str, Any]:
    """What is asked, as it travels: without what the passes made of it."""
    return {name: x for name, x in vars(asked).items() if name != "made"}


def with_parameters(inputs: tuple[Argument, ...], model: Model) -> tuple[Argument, ...]:
    """The inputs, and behind them the numbers of the model that are free, if they are not there yet."""
    if model.freed is None or any(arg.name == PARAMETERS for arg in inputs):
        return inputs
    return (*inputs, Argument(PARAMETERS, (model.freed.size,)))


@dataclass(eq=False)
class Equation:
    """Named results, each an expression of one robot; `at_rest` leaves out the velocity, `given` orders the inputs.

    In quasi-velocities the velocities V of links and v of joints are expressions of the other vectors: `velocities`.
    """

    results: dict[str, Expression]
    model: Model
    at_rest: bool = False
    given: Sequence[str] = ()
    equation: str = ""  # in words; the results themselves, where nothing is said
    forms: Sequence[str] = FORMS
    rods: bool | None = (
        None  # True: only forms that allow inertia to change sides; None: as the chosen form allows
    )
    columns: str = ""
    by_link: bool = False  # results over links come as (bodies, 6), not as one long vector
    budget: float = SECONDS  # of rewriting
    velocities: Mapping[str, Expression] = field(default_factory=dict)
    added: bool = False  # a diagonal stands beside the rotors' inertia, as the last input; the results are of `heavier(model)`

    def __post_init__(self):
        self.results = {
            name: Expression(settled(e.term), e.model) for name, e in self.results.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        return unmade(self)

    @cached_property
    def key(self) -> str:
        """What the code depends on, besides the model."""
        written = [(n, repr(e.term)) for n, e in (*self.results.items(), *self.velocities.items())]
        return repr([*written, self.at_rest, list(self.given), list(self.forms)])

    @cached_property
    def letters(self) -> tuple[Letter, ...]:
        every = (*self.velocities.values(), *self.results.values())
        return tuple(dict.fromkeys(x for e in every for x in terms.letters(e.term)))

    @property
    def is_matrix(self) -> bool:
        return any(e.cols.name in ("joint", "frame", "link", "any") for e in self.results.values())

    @property
    def is_number(self) -> bool:
        """x* A y: rows of vectors stand first in every word."""
        return all(e.rows.name == e.cols.name == "one" for e in self.results.values())

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        """Inputs and outputs of the function: q, then v where a or b need it, then the vectors by first appearance, then the
        numbers of the model that are free."""
        model = self.model
        vectors = {x.word: x.bare for x in self.letters if isinstance(x, VectorLetter) and x.given}
        names = [name for name in (*self.given, *vectors) if name in vectors]
        moving = any(x.moves for x in self.letters) or (
            "v" in vectors and any(isinstance(x, FormLetter) for x in self.letters)
        )
        moving = moving and not self.at_rest
        names = list(dict.fromkeys((["v"] if moving else []) + names))
        names = [name for name in names if name not in self.velocities]
        inputs = [Argument("q", (model.nq,), "q")]
        for name in names:
            inputs.append(self._argument(name, vectors.get(name) or vector_letter(name, "joint")))
        if self.added:
            inputs.append(Argument(ADDED, (model.nv,), "v"))
        return with_parameters(tuple(inputs), model), tuple(
            self._output(n, e) for n, e in self.results.items()
        )

    def _argument(self, name: str, vector: Letter) -> Argument:
        space = vector.rows.name
        if space == "joint":
            return Argument(name, (self.model.nv,), "v")
        if space != "frame":
            return Argument(name, (6 * len(self.model.bodies),))
        count = self._frames(name)
        return Argument(name, (count, 6) if self.by_link else (6 * count,))

    def _frames(self, name: str) -> int:
        """How many frames a frame vector is of: those of the B, or of the vectors, it meets."""
        counts = (ends(e.term).given.get(name) for e in self.results.values())
        for count in counts:
            if isinstance(count, int) and count:
                return count
        raise StateError(
            f"how many frames {name} is of is not known",
            "multiply it with B(frames), or add it to J(frames) @ v",
        )

    def _output(self, name: str, e: Expression) -> Argument:
        sizes = {"joint": self.model.nv, "link": 6 * len(self.model.bodies)}
        shape = tuple(
            sizes.get(space.name, 6 * (space.frames or 0))
            for space in (e.rows, e.cols)
            if space.name != "one"
        )
        if self.by_link and e.rows.name == "link" and len(shape) == 1:
            shape = (len(self.model.bodies), 6)
        of_joints = (e.rows.name == "joint" and len(shape) == 1) or (
            e.rows.name == "frame" and e.cols.name == "joint"
        )
        return Argument(name, shape, "v" if of_joints else "")
