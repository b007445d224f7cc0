"""Requests of the compiler. An `Equation` is named results, each an expression of one robot.

This is the first pass, *write*. It decides for each vector over links whether it is a force or a
motion, and knows the inputs and outputs without rewriting, so that a warm start does not rewrite at
all. `passes.py` has the other passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from psiphi._util.errors import StateError
from psiphi.algebra.expressions import terms
from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.force_motion_duality import ends, resolve_sides
from psiphi.algebra.expressions.letters import FormLetter, Letter, VectorLetter, vector_letter
from psiphi.algebra.rewriting.work_budget import DEFAULT_SECONDS
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.sweeps.sweep_program import ADDED_INERTIA, PARAMETERS, Argument, Program
from psiphi.model.model import Model

WHOLE, WRITTEN, REWRITTEN = FORMS = ("body forces whole", "as written", "rewritten")
Arguments = tuple[Argument, ...]


class CompileRequest(Protocol):
    """What the compiler is given: an `Equation`, a `SweepRequest`, or a `passes.Traceable`."""

    @property
    def model(self) -> Model: ...
    @property
    def equation(self) -> str: ...  # the formula, as text
    @property
    def movable_inertia(self) -> bool | None: ...  # whether inertia may move across joints
    @property
    def columns(self) -> str: ...  # the quantity whose columns a large robot computes instead
    def arguments(self) -> tuple[Arguments, Arguments]: ...  # inputs and outputs


class SweepRequest(CompileRequest, Protocol):
    """A request that is a program of sweeps already."""

    def program(self, tree: Tree) -> Program: ...


def without_memo(request: object) -> dict[str, Any]:
    """The state of a request to pickle: its attributes, without the results of the passes."""
    return {name: x for name, x in vars(request).items() if name != "memo"}


def with_parameters(inputs: Arguments, model: Model) -> Arguments:
    """The inputs, followed by the free parameters of the model if there are any."""
    if model.freed is None or any(arg.name == PARAMETERS for arg in inputs):
        return inputs
    return (*inputs, Argument(PARAMETERS, (model.freed.size,)))


def parameters_index(inputs: Arguments) -> int | None:
    """The position of the free parameters among the inputs."""
    return next((i for i, arg in enumerate(inputs) if arg.name == PARAMETERS), None)


@dataclass(eq=False)
class Equation:
    """Named results, each an expression of one robot.

    With quasi-velocities, the velocities V of links and v of joints are expressions of other
    vectors: `velocities`.
    """

    results: dict[str, Expression]
    model: Model
    at_rest: bool = False  # whether the velocity is zero, and not an input
    input_order: Sequence[str] = ()  # names of input vectors
    equation: str = ""  # the formula as text; if empty, the results are printed
    forms: Sequence[str] = FORMS
    # True: only candidates that permit it; None: as the chosen candidate permits
    movable_inertia: bool | None = None
    columns: str = ""  # the quantity whose columns a large robot computes instead
    by_link: bool = False  # results over links are (bodies, 6) arrays, not vectors
    budget: float = DEFAULT_SECONDS  # seconds, for rewriting
    velocities: Mapping[str, Expression] = field(default_factory=dict)
    # whether the last input is added to the rotor inertia; the results are of `with_rotors(model)`
    added: bool = False

    def __post_init__(self):
        self.results = {
            name: Expression(resolve_sides(e.term), e.model) for name, e in self.results.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        return without_memo(self)

    @cached_property
    def key(self) -> str:
        """What the code depends on, besides the model."""
        written = [(n, repr(e.term)) for n, e in (*self.results.items(), *self.velocities.items())]
        return repr([*written, self.at_rest, list(self.input_order), list(self.forms)])

    @cached_property
    def letters(self) -> tuple[Letter, ...]:
        every = (*self.velocities.values(), *self.results.values())
        return tuple(dict.fromkeys(x for e in every for x in terms.letters(e.term)))

    @property
    def is_matrix(self) -> bool:
        return any(e.cols.name in ("joint", "frame", "link", "any") for e in self.results.values())

    @property
    def is_number(self) -> bool:
        """Whether the results are numbers x* A y."""
        return all(e.rows.name == e.cols.name == "one" for e in self.results.values())

    def arguments(self) -> tuple[Arguments, Arguments]:
        """Inputs and outputs of the function.

        The inputs are q; v if needed; the vectors in the given order, then in the order of their
        first appearance; and the free parameters of the model.
        """
        model = self.model
        vectors = {
            x.word: x.bare for x in self.letters if isinstance(x, VectorLetter) and x.is_input
        }
        names = [name for name in (*self.input_order, *vectors) if name in vectors]
        moving = any(x.needs_velocity for x in self.letters) or (
            "v" in vectors and any(isinstance(x, FormLetter) for x in self.letters)
        )
        moving = moving and not self.at_rest
        names = list(dict.fromkeys((["v"] if moving else []) + names))
        names = [name for name in names if name not in self.velocities]
        inputs = [Argument("q", (model.nq,), "q")]
        for name in names:
            inputs.append(self._argument(name, vectors.get(name) or vector_letter(name, "joint")))
        if self.added:
            inputs.append(Argument(ADDED_INERTIA, (model.nv,), "v"))
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
        """The number of frames of a frame vector: that of the B, or of the vectors, that it is
        combined with."""
        counts = (ends(e.term).vector_values.get(name) for e in self.results.values())
        for count in counts:
            if isinstance(count, int) and count:
                return count
        raise StateError(
            f"the number of frames of {name} is unknown",
            "multiply it by B(frames), or add it to J(frames) @ v",
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
