"""A controller's law as a function of the state: for arrays of torch, JAX and graphics cards, with derivatives.

The steps are those of `simulation/control/control_law.py`, which NumPy's arrays run one by one, and the blocks those of a rollout; what the
controller follows and its numbers are arguments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.validate import is_foreign, robot_of
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.passes import Traceable
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import convert_like, dispatch
from psiphi.functions.differentiable_function import traced_function
from psiphi.model.model import Model
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram


@dataclass(frozen=True, eq=False)
class LawTorque(Traceable):
    """tau at a state, as the compiler takes it."""

    machine: RolloutProgram
    movable_inertia: bool = True
    columns: str = ""

    @property
    def model(self) -> Model:
        return self.machine.robot.model

    @property
    def equation(self) -> str:
        return f"tau by {', '.join(step.name for step in self.machine.options.law.steps)}"

    @cached_property
    def frame(self) -> BlockFrame:
        return BlockFrame(self.machine.law_blocks)

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        model, sizes = self.model, self.frame.sizes
        names = [name for name in self.machine.options.packed_once if name in sizes]
        inputs = tuple(
            Argument(name, (sizes[name],), name if name in ("q", "v") else "") for name in names
        )
        return inputs, (Argument("tau", (model.nv,)),)

    def trace(self) -> SingleStep:
        return SingleStep(self.frame, tuple(self.machine.law_blocks), *self.arguments())


def torque(controller: Any, values: dict[str, Any]) -> Any:
    """tau of a law, where the state or what it follows are arrays of another library; `values` by place."""
    robot, name = robot_of(controller.robot), type(controller).__name__
    if robot is not controller.robot and any(
        isinstance(step.what, str) for step in controller.law.steps
    ):
        cause = f"{name} asks a closed chain for torques by NumPy's arrays, and these are of another library"
        raise StateError(
            cause, "let pp.rollout run it: its motions have gradients by the controller's numbers"
        )
    plan = RolloutOptions(
        "euler",
        controller.law,
        False,
        False,
        tuple(controller.numbers),
        has_parameters=robot.freed is not None,
    )
    machine = RolloutProgram(controller.robot, plan)
    own = json.dumps([*plan.key, *machine.foreign_rules])
    function = traced_function(robot.function_cache, name, lambda: LawTorque(machine), own)
    known = {**values, **dict(zip((PARAMETERS,), robot.parameter_arguments, strict=False))}
    given = [known[arg.name.removeprefix("law.")] for arg in function.inputs]
    if any(map(is_foreign, given)):
        return dispatch(function, given)
    return convert_like(
        next(filter(is_foreign, (*values.values(), *robot.parameter_arguments))), function(*given)
    )  # what is foreign has no say
