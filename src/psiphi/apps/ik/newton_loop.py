"""Many Newton steps in one compiled loop: one problem per SIMD lane, large batches on threads."""

from __future__ import annotations

import json
from functools import cached_property

import numpy as np

from psiphi.apps.ik.newton_step import NewtonStep
from psiphi.backends.cpu.cpu_target import CpuTarget
from psiphi.backends.kernel_cache import kernel_key
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.simulation.compiled_rollout.rollout_runner import StepLoop
from psiphi.simulation.compiled_rollout.step_blocks import trace

RESULTS = ("B", "Q", "E", "squared_errors")


class CompiledNewtonLoop:
    """A Newton step, compiled with the loop around it."""

    def __init__(self, step: NewtonStep):
        self.step = step

    @cached_property
    def loop(self) -> StepLoop:
        s = self.step
        what = [[vars(task) for task in s.tasks], s.mobility, s.bounds, s.has_posture]

        def key(target: CpuTarget) -> str:
            return kernel_key(s.robot.digest, "reach", json.dumps([*what, target.key("d")]))

        return StepLoop(key, self._rollout, f"reach of {s.robot.name}")

    @property
    def _inputs(self) -> tuple[str, ...]:
        return ("q", "goal", "caution", *["posture"] * self.step.has_posture)

    def _rollout(self) -> tuple[Rollout, dict[str, int]]:
        s = self.step
        begin = trace("start", {"q": s.robot.nq}, s.begin)
        evaluate = trace("evaluate", s.sizes, s.evaluate)
        advance = trace("advance", {"B": s.robot.nq, "D": s.robot.nv}, s.advance)
        frame = BlockFrame(
            {"start": (begin, {}), "evaluate": (evaluate, {}), "advance": (advance, {})}
        )
        count = evaluate.count + advance.count
        rollout = Rollout(frame, ("evaluate", "advance"), self._inputs, (), RESULTS)
        return rollout, {"flops": count.flops + 40 * count.trig}

    def run(
        self,
        q: np.ndarray,
        goal: np.ndarray,
        steps: int,
        monotone: bool = False,
        posture: np.ndarray | None = None,
        extra_damping: np.ndarray | float = 0.0,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`steps` evaluations from q (B, nq).

        Returns the last accepted q, the q of the next step, E (B,) at the accepted q, and the
        squared error of each residual there (B, residuals).
        """
        count, sizes = len(q), self.step.sizes
        caution = [np.full(count, float(monotone)), np.broadcast_to(extra_damping, count)]
        inputs = [q, goal, np.stack(caution, axis=-1), *([] if posture is None else [posture])]
        results = [np.empty((count, sizes[name])) for name in RESULTS]
        self.loop.run([x[:, None, :] for x in (*inputs, *results)], steps, steps)
        accepted, following, energy, squared_errors = results
        return accepted, following, energy[:, 0], squared_errors
