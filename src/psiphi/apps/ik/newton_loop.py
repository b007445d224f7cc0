"""Many steps of a descent in one compiled loop: a problem a lane, big batches on all threads."""

from __future__ import annotations

import json
from functools import cached_property

import numpy as np

from psiphi.apps.ik.newton_step import NewtonStep
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.simulation.compiled_rollout.rollout_runner import StepLoop
from psiphi.simulation.compiled_rollout.step_blocks import trace

SAMPLE = ("B", "Q", "E", "miss")


class CompiledNewtonLoop:
    """A descent, compiled."""

    def __init__(self, descent: NewtonStep):
        self.descent = descent

    @cached_property
    def loop(self) -> StepLoop:
        d = self.descent
        what = json.dumps(
            [[vars(task) for task in d.tasks], d.ease, d.bounds, d.pulled, HOST.key("d")]
        )
        key = kernel_cache.kernel_key(d.robot.digest, "reach", what)
        return StepLoop(kernel_cache.fetch_or_build(key, self._built))

    @property
    def _given(self) -> tuple[str, ...]:
        return ("q", "goal", "wary", *["posture"] * self.descent.pulled)

    def _built(self) -> bytes:
        d = self.descent
        start, look = trace("start", {"q": d.robot.nq}, d.begin), trace("look", d.sizes, d.look)
        move = trace("move", {"B": d.robot.nq, "D": d.robot.nv}, d.move)
        frame = BlockFrame({"start": (start, {}), "look": (look, {}), "move": (move, {})})
        count = look.count + move.count
        rollout = Rollout(frame, ("look", "move"), self._given, (), SAMPLE)
        return HOST.build(HOST.emit(rollout), {"flops": count.flops + 40 * count.trig})

    def run(
        self,
        q: np.ndarray,
        goal: np.ndarray,
        steps: int,
        wary: bool = False,
        posture: np.ndarray | None = None,
        held: np.ndarray | float = 0.0,
    ) -> tuple:
        """From q (B, nq), `steps` evaluations: the last q that was taken, where the next step leads, E (B,) of the first of
        these and the square of what each part of a task misses there (B, parts)."""
        count, sizes = len(q), self.descent.sizes
        given = [
            q,
            goal,
            np.stack([np.full(count, float(wary)), np.broadcast_to(held, count)], axis=-1),
            *([] if posture is None else [posture]),
        ]
        out = [np.empty((count, sizes[name])) for name in SAMPLE]
        self.loop.run([x[:, None, :] for x in (*given, *out)], steps, steps)
        taken, ahead, energy, miss = out
        return taken, ahead, energy[:, 0], miss
