"""The law of a controller as a compiled function of the state, for arrays of torch and JAX and on
the GPU, with derivatives.

The steps of a law are in `simulation/control/control_law.py`. NumPy arrays run them one by one;
here they are the same blocks as in a rollout. The reference and the controller's numbers are
arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi._util.validate import robot_of
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.passes import RuleRequest
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import beside, call, widest_array
from psiphi.functions.differentiable_function import traced_function
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.control.control_law import Controller


def _request(program: RolloutProgram) -> RuleRequest:
    """tau of a law at a state, as a request to the compiler."""
    model, frame = program.robot.model, BlockFrame(program.law_blocks)
    names = [name for name in program.options.packed_once if name in frame.sizes]
    inputs = tuple(
        Argument(name, (frame.sizes[name],), name if name in ("q", "v") else "") for name in names
    )
    equation = f"tau by {', '.join(step.name for step in program.options.law.steps)}"
    outputs, order = (Argument("tau", (model.nv,)),), tuple(program.law_blocks)
    return RuleRequest(model, equation, inputs, outputs, partial(SingleStep, frame, order))


def torque(controller: Controller, values: Mapping[str, AnyArray]) -> Any:
    """tau of a law if the state, the reference or the parameters are arrays of another library;
    `values` are by place."""
    robot, name = robot_of(controller.robot), type(controller).__name__
    has_quantities = any(isinstance(step.operation, str) for step in controller.law.steps)
    if robot is not controller.robot and has_quantities:
        cause = f"{name} of a closed chain takes NumPy arrays, and these are of another library"
        raise StateError(
            cause,
            "use pp.rollout, which has gradients with respect to the controller's numbers",
        )
    options = RolloutOptions(
        "euler",
        controller.law,
        time_varying=False,
        hold=False,
        law_numbers=tuple(controller.numbers),
        has_parameters=robot.freed is not None,
    )
    program = RolloutProgram(controller.robot, options)
    key = json.dumps([*options.key, *program.foreign_rules])
    function = traced_function(robot.function_cache, name, partial(_request, program), key)
    by_place = {**values, **dict(zip((PARAMETERS,), robot.parameter_arguments, strict=False))}
    arguments = [by_place[arg.name.removeprefix("law.")] for arg in function.inputs]
    # a law that does not depend on the foreign arrays gives NumPy arrays: convert its result
    return beside(widest_array(*by_place.values()), call(function, arguments))
