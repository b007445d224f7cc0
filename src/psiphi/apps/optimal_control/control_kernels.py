"""The compiled loops of a problem, and their calls on arrays.

Arrays are (B, rows, n), B problems; constants have one row and any strides, so that a number that
all problems or all nodes share is stored once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi.apps.optimal_control.control_blocks import ControlBlocks, loop_count
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import CpuTarget
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.simulation.compiled_rollout.rollout_runner import Cache, StepLoop

Arrays = Mapping[str, np.ndarray]
KINDS = "once", "node", "result"  # of places, in the facts about a kernel
_loops: Cache = {}


@dataclass(frozen=True)
class CompiledLoop:
    """One loop of `ControlBlocks`: "backward", "look", "take", "value" or "second"."""

    blocks: ControlBlocks
    name: str

    @cached_property
    def places(self) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        """The places packed once, those packed for each node, and the results: as the kernel was
        built, so that nothing is traced if it is in the cache."""
        found: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for fact in self.loop.code().facts:
            kind, _, name = fact.partition(" ")
            if kind in found:
                found[kind].append(name)
        once, node, result = found.values()
        return once, node, result

    @property
    def rollout(self) -> Rollout:
        return getattr(self.blocks, self.name)

    @cached_property
    def loop(self) -> StepLoop:
        robot = self.blocks.robot

        def key(target: CpuTarget) -> str:
            content = f"{self.name} {KINDS} {self.blocks.key} {target.key('d')}"
            return kernel_cache.kernel_key(robot.digest, "optimal control", content)

        def rollout() -> tuple[Rollout, dict[str, int]]:
            rollout, count = self.rollout, loop_count(self.rollout)
            facts = {"flops": count.flops + 40 * count.trig}
            groups = rollout.packed_once, rollout.packed_per_step, rollout.sampled
            for kind, names in zip(KINDS, groups, strict=True):
                facts |= {f"{kind} {name}": i for i, name in enumerate(names)}
            return rollout, facts

        what = f"optimal control of {robot.name}"
        return StepLoop(key, rollout, what, _loops)

    def run(self, arrays: Arrays, steps: int, every: int) -> None:
        """Run the loop on arrays by place; results are written to those of the results."""
        self.loop.code(len(next(iter(arrays.values()))))  # `places` are among its facts
        once, each, out = self.places
        self.loop.run([arrays[name] for name in (*once, *each, *out)], steps, every)


@dataclass(frozen=True)
class ControlKernels:
    """All loops of a problem."""

    blocks: ControlBlocks

    @cached_property
    def backward(self) -> CompiledLoop:
        return CompiledLoop(self.blocks, "backward")

    @cached_property
    def look(self) -> CompiledLoop:
        return CompiledLoop(self.blocks, "look")

    @cached_property
    def take(self) -> CompiledLoop:
        return CompiledLoop(self.blocks, "take")

    @cached_property
    def value(self) -> CompiledLoop:
        return CompiledLoop(self.blocks, "value")

    @cached_property
    def second(self) -> CompiledLoop:
        return CompiledLoop(self.blocks, "second")


def last_row(x: np.ndarray) -> np.ndarray:
    """(B, n) as (B, rows, n) with stride 0: each row that a loop writes replaces the one before."""
    count, n = x.shape
    shape, strides = (count, 1, n), (x.strides[0], 0, x.strides[1])
    return np.ndarray(shape, x.dtype, x, 0, strides)
