"""Robots and closed chains that run in the interpreter, `psiphi.compiler.sweeps.interpreter`."""

from __future__ import annotations

import numpy as np

from psiphi.compiler.passes import Traceable
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.robot.mechanisms.dynamics.method_choice import MethodChoice
from psiphi.robot.mechanisms.dynamics.system_stages import dynamics
from psiphi.robot.mechanisms.solve.rccfd_methods import HUB
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot


class Interpreted(Robot):
    """A robot whose functions run in the interpreter."""

    def forward_dynamics(
        self, q, v, tau, f_ext=None, axes="world", out=None, dtype=None, check=False, method=None
    ):
        return self.call_with_wrenches(
            "forward_dynamics", dict(q=q, v=v, tau=tau), f_ext, axes, out, dtype, check
        )

    def _call_matrix(self, name, q, out, dtype, check):
        return self.call_quantity(name, dict(q=q), out, dtype, check)

    def call_quantity(self, name, state, out, dtype, check, frames=(), axes="world"):
        source = self.function(name, frames, axes).source
        results = interpret(source.program, source.tree, *state.values())
        return results[0] if len(results) == 1 else results


class Uncompiled(System):
    """A closed chain whose programs run in the interpreter."""

    def chosen_method(self, frames=(), axes="world", redundant=False):
        """The method with Omega if the constraints allow it, without counting operations."""
        method = HUB if self.algebra.is_thin else "free"
        return MethodChoice(dynamics(self.algebra, method, frames, axes, redundant), method)

    def run_function(self, function, values):
        source = function.source
        with np.errstate(all="ignore"):
            traced = isinstance(source.request, Traceable)
            results = (
                evaluate_tape(source, values)
                if traced
                else interpret(source.program, source.tree, *values)
            )
        return results[0] if len(results) == 1 else tuple(results)


def evaluate_tape(source, values):
    """The results of traced code, which has no sweeps: its tape is evaluated on arrays."""
    lead = np.broadcast_shapes(
        *(
            np.shape(x)[: np.ndim(x) - len(arg.shape)]
            for arg, x in zip(source.inputs, values, strict=True)
        )
    )
    flat = [
        np.broadcast_to(x, (*lead, *arg.shape)).reshape(*lead, arg.size)
        for arg, x in zip(source.inputs, values, strict=True)
    ]
    results = [np.zeros((*lead, arg.size)) for arg in source.outputs]
    numbers = evaluate(
        source.code.tape,
        [node for *_, node in source.code.stores],
        lambda argument, i: flat[int(argument)][..., i],
    )
    for (number, index, _), x in zip(source.code.stores, numbers, strict=True):
        results[number][..., index] = x
    return [x.reshape((*lead, *arg.shape)) for arg, x in zip(source.outputs, results, strict=True)]


def uncompiled(system: System) -> System:
    """The same system without compiled functions."""
    c = system.closure
    return Uncompiled(
        Interpreted.of(system.robot), c.constraints, c.mimics, system.passive, system.object
    )
