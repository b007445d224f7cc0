"""Functions of closed systems as programs in stages: inputs, outputs and the stages between.

A stage is an operator equation (compiled to sweeps) or a rule: a Python function of the values
that earlier stages have left, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from psiphi.backends import kernel_cache
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import Equation, with_parameters
from psiphi.compiler.passes import code, program
from psiphi.compiler.sweeps.sweep_program import Argument, Program, ProgramStage
from psiphi.compiler.tape.tape import Count
from psiphi.functions.compiled_function import CompileJob, Function, QuantityRequest
from psiphi.model.model import Model
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator
from psiphi.robot.mechanisms.solve.relative_motion import PLACES

StagePlaces = dict[str, Any]
StageRule = Callable[[StagePlaces], StagePlaces]
FunctionType = TypeVar("FunctionType", bound=Function)


@dataclass(frozen=True)
class BodySubset:
    """An equation over some of the bodies; the results of the other bodies are zero."""

    equation: Equation
    bodies: tuple[int, ...]


StageDefinition = Equation | BodySubset | StageRule


@dataclass(frozen=True, eq=False)
class StageProgramCode:
    """A function of a closed system: its inputs, its outputs and its stages by name.

    `named` maps (stage, input or result) to the place where the value is stored, where that
    differs from the name in the equation.
    """

    name: str
    equation: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    algebra: Algebra
    stages: dict[str, StageDefinition]
    named: dict[tuple[str, str], str]
    movable_inertia: bool = True
    columns: str = ""
    # poses of the constrained frames and, if v is an input, their motions
    frame_equations: dict[str, Equation] = field(init=False)

    def __post_init__(self):
        equations = self.algebra.frame_equations([arg.name for arg in self.inputs])
        object.__setattr__(self, "frame_equations", equations)

    @property
    def model(self) -> Model:
        return self.algebra.closure.model

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        return with_parameters(self.inputs, self.model), self.outputs

    def program(self, tree: Tree) -> Program:
        closure = self.algebra.closure
        stages = [
            ProgramStage(name, program(equation, tree), PLACES)
            for name, equation in self.frame_equations.items()
        ]
        stages.append(ProgramStage("rows", lambda places: {"c": DelassusOperator(closure, places)}))
        for name, stage in self.stages.items():
            places = {own: place for (of, own), place in self.named.items() if of == name}
            stages.append(ProgramStage(name, _lowered(stage, tree), places))
        return Program(self.name, *self.arguments(), (), stages=tuple(stages), can_loop=False)

    @property
    def quantity(self) -> QuantityRequest:
        """The name of the function; the constraints are part of it, and so of its cache key."""
        return QuantityRequest(self.name, (self.algebra.closure.key,))

    def compiled(self, kind: type[FunctionType] = Function) -> FunctionType:
        """The gufunc."""
        return kind(self.quantity, self)

    @property
    def count(self) -> Count:
        return code(self).count

    @cached_property
    def flops(self) -> int:
        """In the cache, so that a warm process chooses between methods without tracing them."""
        key = kernel_cache.key(CompileJob(self.quantity, self).key("d"), "flops")
        return int(kernel_cache.fetch_or_build(key, lambda: str(self.count.flops).encode()))


def _lowered(stage: StageDefinition, tree: Tree) -> Program | StageRule:
    if isinstance(stage, BodySubset):
        whole = program(stage.equation, tree)
        links = tuple(dict.fromkeys(tree.link_of(k)[0] for k in stage.bodies))
        return replace(
            whole,
            bodies=links,
            body_data={k: data for k, data in whole.body_data.items() if k in links},
        )
    return program(stage, tree) if isinstance(stage, Equation) else stage


def program_of_rules(
    name: str,
    equation: str,
    inputs: tuple[Argument, ...],
    outputs: tuple[Argument, ...],
    algebra: Algebra,
    /,
    **stages: StageDefinition,
) -> StageProgramCode:
    """A program whose stages are keyword arguments; no place is renamed."""
    return StageProgramCode(name, equation, inputs, outputs, algebra, stages, {})


def arguments(algebra: Algebra, *names: str) -> tuple[Argument, ...]:
    """The arguments of these names: q (nq,), lam (m,), all others (nv,)."""
    model, m = algebra.closure.model, algebra.closure.size
    known = {"q": Argument("q", (model.nq,), "q"), "lam": Argument("lam", (m,))}
    return tuple(known.get(name) or Argument(name, (model.nv,), "v") for name in names)


def dynamics_arguments(algebra: Algebra, frames: tuple[str, ...]) -> tuple[Argument, ...]:
    """q, v, tau and, if frames are named, the wrenches f_ext (frames, 6) on them."""
    return arguments(algebra, "q", "v", "tau") + (
        (Argument("f_ext", (len(frames), 6)),) if frames else ()
    )
