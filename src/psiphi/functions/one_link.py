"""The force through one joint as a function of its own: what `joint_forces` has of one link, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from psiphi.compiler.passes import Ready
from psiphi.functions.differentiable import Differentiable, ready
from psiphi.model.model import Model
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import Argument, Program


@dataclass(frozen=True, eq=False)
class LinkForce(Ready):
    """[moment; force] through the joint that carries a body, by its number: six results of those of a robot's function."""

    of: Differentiable
    number: int

    @property
    def model(self) -> Model:
        return self.of.source.model

    @property
    def equation(self) -> str:
        return f"f({self.number}), f = phi (M alpha + b)"

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        return self.of.source.inputs, (Argument("f", (6,)),)

    def ready(self) -> Straight:
        code, start = self.of.source.code, 6 * self.number
        assert isinstance(code, Straight)
        stores = tuple((0, i - start, node) for _, i, node in code.stores if start <= i < start + 6)
        return Straight(Program("link_force", *self.arguments(), ()), code.tape, stores)


def force_through(robot: Any, link: str, number: int) -> Differentiable:
    """It of a robot, by the name of the link and its number."""
    made = partial(LinkForce, robot.function("joint_forces"), number)
    return ready(robot._functions, f"force through {link}", made)
