"""Compiles and runs the control step of environments: many at once, in SIMD lanes and threads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psiphi.apps.environments.environment_program import EnvironmentProgram
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.simulation.compiled_rollout.rollout_runner import StepLoop

CACHE_SIZE = 32  # kernels in the memory of a process
_cache: dict[str, StepLoop] = {}
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
        parts = [str(options.key), *program.rollout_program.foreign_rules, str(HOST.key("d"))]
        key = kernel_cache.kernel_key(robot.digest, "environment", *parts, *program.key)
        self.loop = kernel_cache.in_memory(
            _cache, key, CACHE_SIZE, lambda: StepLoop(self._built(key, robot.name))
        )

    def _built(self, key: str, name: str) -> bytes:
        def build() -> bytes:
            return HOST.build(HOST.emit(self.program.rollout), {"flops": self.program.flops})

        return kernel_cache.fetch_or_build(key, build, f"environments of {name}")

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
