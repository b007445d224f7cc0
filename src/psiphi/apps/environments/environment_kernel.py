"""Compiles and runs the control step of environments: many at once, in SIMD lanes and threads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psiphi.apps.environments.environment_program import EnvironmentProgram
from psiphi.backends.cpu.cpu_target import CpuTarget
from psiphi.backends.kernel_cache import kernel_key
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.simulation.compiled_rollout.rollout_runner import Cache, StepLoop

_cache: Cache = {}
Arrays = dict[str, np.ndarray]  # (n, size) by place


class EnvironmentKernel:
    """A control step, or a reset, of n environments."""

    def __init__(self, program: EnvironmentProgram):
        self.program = program
        self.state_sizes, self.outputs = program.state_sizes, program.outputs
        self.packed, self.constants, self.sampled = (
            program.packed,
            program.constants,
            program.sampled,
        )
        robot, options = program.given.robot, program.given.options
        parts = [str(options.key), *program.rollout_program.foreign_rules, *program.key]

        def key(target: CpuTarget) -> str:
            return kernel_key(robot.digest, "environment", *parts, str(target.key("d")))

        self.loop = StepLoop(key, self._rollout, f"environments of {robot.name}", _cache)

    def _rollout(self) -> tuple[Rollout, dict[str, int]]:
        return self.program.rollout, {"flops": self.program.flops}

    def empty(self, count: int) -> Arrays:
        """Arrays for the state and the outputs of `count` environments."""
        sizes = {**self.state_sizes, **self.outputs}
        return {name: np.empty((count, size)) for name, size in sizes.items()}

    def run(self, state: Mapping[str, np.ndarray], given: np.ndarray, out: Arrays) -> None:
        """Run one step from `state`; `out` may be its arrays. `given` are the actions, or for a
        reset 1 where an episode begins."""
        count = len(given)
        if not count:
            return
        numbers = self.program.given.constants
        inputs = [state[name] for name in self.state_sizes]
        inputs.append(given)
        constants = (numbers[name] for name in self.constants)
        inputs += [np.broadcast_to(x, (count, x.shape[-1])) for x in constants]
        names = [*self.state_sizes, *self.outputs]
        arrays = [x[:, None, :] for x in (*inputs, *(out[name] for name in names))]
        self.loop.run(arrays, 1, 1)
