"""Functions of closed systems as programs: what goes in, what comes out, and the stages between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import Equation, with_parameters
from psiphi.compiler.passes import code, program
from psiphi.compiler.sweeps.sweep_program import Argument, Program, ProgramStage
from psiphi.compiler.tape.tape import Count
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.model.model import Model
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator
from psiphi.robot.mechanisms.solve.relative_motion import PLACES

StagePlaces = dict[str, Any]
StageRule = Callable[[StagePlaces], StagePlaces]
Made = TypeVar("Made", bound=Function)


@dataclass(frozen=True)
class BodySubset:
    """An equation, over some bodies alone: what the others would give is zero."""

    equation: Equation
    bodies: tuple[int, ...]


CircuitStage = Equation | BodySubset | StageRule


@dataclass(frozen=True, eq=False)
class StageProgramCode:
    """A function of a closed system: what goes in, what comes out, and the stages between: {name: an equation, or a rule}.

    An equation's results are called otherwise where `named` says so, {(stage, result or input): place}."""

    name: str
    equation: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    algebra: Algebra
    stages: dict[str, CircuitStage]
    named: dict[tuple[str, str], str]
    rods: bool = True
    columns: str = ""
    moving: dict[str, Equation] = field(
        init=False
    )  # where constrained frames are and, where v comes in, how they move

    def __post_init__(self):
        object.__setattr__(
            self, "moving", self.algebra.whereabouts([arg.name for arg in self.inputs])
        )

    @property
    def model(self) -> Model:
        return self.algebra.closure.model

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        return with_parameters(self.inputs, self.model), self.outputs

    def program(self, tree: Tree) -> Program:
        closure = self.algebra.closure
        stages = [
            ProgramStage(name, program(equation, tree), PLACES)
            for name, equation in self.moving.items()
        ]
        stages.append(ProgramStage("meet", lambda places: {"c": DelassusOperator(closure, places)}))
        for name, what in self.stages.items():
            at = {own: place for (stage, own), place in self.named.items() if stage == name}
            stages.append(ProgramStage(name, _run(what, tree), at))
        return Program(self.name, *self.arguments(), (), stages=tuple(stages), local=False)

    def compiled(self, kind: type[Made] = Function) -> Made:
        """The gufunc; the constraints are part of its name, and so of its key in the cache."""
        request = QuantityRequest(self.name, (self.algebra.closure.key,))
        return kind(request, self)

    @property
    def count(self) -> Count:
        return code(self).count

    @property
    def flops(self) -> int:
        return self.count.flops


def _run(what: CircuitStage, tree: Tree) -> Program | StageRule:
    if isinstance(what, BodySubset):
        whole = program(what.equation, tree)
        links = tuple(dict.fromkeys(tree.link_of(k)[0] for k in what.bodies))
        return replace(
            whole, bodies=links, marks={k: mark for k, mark in whole.marks.items() if k in links}
        )
    return program(what, tree) if isinstance(what, Equation) else what


def circuit(
    name: str,
    equation: str,
    inputs: tuple[Argument, ...],
    outputs: tuple[Argument, ...],
    algebra: Algebra,
    /,
    **stages: CircuitStage,
) -> StageProgramCode:
    """A circuit; a rule that is no more than a lambda is a stage like any other."""
    return StageProgramCode(name, equation, inputs, outputs, algebra, stages, {})


def arguments(algebra: Algebra, *names: str) -> tuple[Argument, ...]:
    model, m = algebra.closure.model, algebra.closure.size
    known = {"q": Argument("q", (model.nq,), "q"), "lam": Argument("lam", (m,))}
    return tuple(known.get(name) or Argument(name, (model.nv,), "v") for name in names)


def given(algebra: Algebra, frames: tuple[str, ...]) -> tuple[Argument, ...]:
    """q, v, tau, and wrenches on frames where there are any."""
    return arguments(algebra, "q", "v", "tau") + (
        (Argument("f_ext", (len(frames), 6)),) if frames else ()
    )
