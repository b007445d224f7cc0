"""A rollout's derivatives as rollouts: the tape of one step, differentiated, in the same loop over steps.

    x_k+1 = f(x_k, p_k)              one step from the state x = (q, v), with the torques and numbers p

    along       dx_k+1 = f_x dx_k + f_p dp_k                     beside the motion
    backwards   λ_k = f_x* (λ_k+1 + w_k+1),  p̄_k = f_p* (...)     over the states x_k in reverse, w the weights of the samples

p̄ of what stays the same is summed over the steps. q counts by its nq numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from psiphi._util.errors import StateError
from psiphi.compiler.autodiff.equation_derivatives import TapeArrays
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout, SingleStep
from psiphi.compiler.ir.tape_fusion import fuse_blocks
from psiphi.compiler.passes import UNROLL_LIMIT, is_large
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Count
from psiphi.model.spatial.screws import add
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace

STATE = ("q", "v")
NO_DERIVATIVE = 'limits="block" stops joints at once, where a motion has no derivative'


@dataclass(frozen=True, eq=False)
class DifferentiatedRollout:
    """A rollout and the places, besides the state, that its derivative is taken by: `once` given, or anew each step."""

    machine: RolloutProgram
    names: tuple[str, ...]

    @property
    def once(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name in self.machine.options.packed_once)

    @property
    def anew(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name in self.machine.options.packed_per_step)

    @cached_property
    def step(self) -> StraightCode:
        """One step from (q, v) to (Q, V), on one tape."""
        m, plan = self.machine, self.machine.options
        if m.options.stops is not None:
            raise StateError(NO_DERIVATIVE, 'leave limits="ignore"')
        if is_large(m.robot):
            cause = f"{m.robot.name} has {len(m.robot.joints)} bodies: its steps run in loops over links, without derivatives"
            raise StateError(
                cause, f"take a robot of up to {UNROLL_LIMIT} bodies, or differences of motions"
            )
        frame = BlockFrame(m.blocks)
        inputs = tuple(
            Argument(name, (frame.sizes[name],), "q" if name == "q" else "")
            for name in (*plan.packed_once, *plan.packed_per_step)
        )
        outputs = tuple(Argument(name, (frame.sizes[name],)) for name in ("Q", "V"))
        return fuse_blocks(SingleStep(frame, ("start", *m.order), inputs, outputs))

    @cached_property
    def work(self) -> TapeArrays:
        return TapeArrays(self.machine.robot, self.step, (*STATE, *self.names), True)

    def sized(self, names: Any, form: str = "{}") -> dict[str, int]:
        """{place: size}, named by a form."""
        sizes = {arg.name: arg.size for arg in self.step.program.inputs}
        return {form.format(name): sizes[name] for name in names}

    def block(
        self, added: dict[str, int], results: dict[str, list[Any]]
    ) -> tuple[NamedBlocks, tuple[str, ...]]:
        """The differentiated step: more inputs than the step has, and named results."""
        inputs = (
            *self.step.program.inputs,
            *(Argument(name, (size,)) for name, size in added.items()),
        )
        outputs = tuple(Argument(name, (len(row),)) for name, row in results.items())
        tape = self.work.tape
        rows = enumerate(results.values())
        stores = tuple(
            (number, i, tape.operand(x)) for number, row in rows for i, x in enumerate(row)
        )
        return {"part": (StraightCode(Program("step", inputs, outputs, ()), tape, stores), {})}, (
            "part",
        )

    def carried(self, moving: dict[str, int]) -> NamedBlocks:
        """The blocks of what goes on from step to step: it begins as "{}_first", and what a step made of it is "{}_new"."""

        def taken(block: str, form: str) -> StraightCode:
            sizes = {form.format(name): size for name, size in moving.items()}
            return trace(
                block, sizes, lambda **at: {name: at[form.format(name)] for name in moving}
            )

        return {"start": (taken("start", "{}_first"), {}), "hand": (taken("hand", "{}_new"), {})}

    @property
    def flops(self) -> int:
        """Operations of one step, sines at forty each."""
        count = sum((code.count for code, _ in self.rollout.frame.named.values()), Count())
        return count.flops + 40 * count.trig

    @property
    def rollout(self) -> Rollout:
        raise NotImplementedError


class AdjointSteps(DifferentiatedRollout):
    """Steps in reverse: arrays are given last row first."""

    @cached_property
    def rollout(self) -> Rollout:
        plan, n = self.machine.options, self.sized(STATE)
        bars = dict(zip((*STATE, *self.names), self.work.pullback(), strict=True))
        before = {name: self.work.add_input(size) for name, size in self.sized(self.once).items()}
        results = {f"{name}_bar_new": bars[name] for name in STATE}
        results |= {f"{name}_bar": bars[name] for name in self.anew}
        results |= {f"{name}_bar_new": add(before[name].tolist(), bars[name]) for name in self.once}
        parts, order = self.block(
            {"q_sum": n["q"], "v_sum": n["v"]} | self.sized(self.once, "{}_bar"), results
        )
        held = self.sized((*STATE, *self.once), "{}_bar")  # what goes on from step to step

        def meet(**at: Any) -> dict[str, Any]:
            return {f"{name}_sum": at[f"{name}_bar"] + at[f"{name}_weight"] for name in STATE}

        weighted = self.sized(STATE, "{}_bar") | self.sized(STATE, "{}_weight")
        blocks: NamedBlocks = (
            parts | self.carried(held) | {"meet": (trace("meet", weighted, meet), {})}
        )
        once = (
            *(name for name in plan.packed_once if name not in STATE),
            *(f"{name}_first" for name in held),
        )
        each = (*STATE, *plan.packed_per_step, *(f"{name}_weight" for name in STATE))
        sample = (*held, *(f"{name}_bar" for name in self.anew))
        return Rollout(BlockFrame(blocks), ("meet", *order, "hand"), once, each, sample)


class TangentSteps(DifferentiatedRollout):
    """Steps with their changes."""

    changes: tuple[str, ...] = (
        "dot",
    )  # what is carried beside the state, each for changes of its own

    def values(self) -> list[list[Any]]:
        """The next state and, in this order, what is carried."""
        return self.work.jvp()

    @cached_property
    def rollout(self) -> Rollout:
        plan = self.machine.options
        beside = [f"_{change}" for change in self.changes]
        moving = {
            name: size
            for change in ("", *beside)
            for name, size in self.sized(STATE, "{}" + change).items()
        }
        values: dict[str, Any] = dict(
            zip((f"{name}_new" for name in moving), self.values(), strict=True)
        )
        dots = [self.sized((*STATE, *self.names), "{}" + change) for change in beside]
        parts, order = self.block(
            {name: size for row in dots for name, size in row.items()}, values
        )
        once = (
            *(f"{name}_first" for name in moving),
            *(name for name in plan.packed_once if name not in STATE),
        )
        once = (*once, *(f"{name}{change}" for change in beside for name in self.once))
        each = (
            *plan.packed_per_step,
            *(f"{name}{change}" for change in beside for name in self.anew),
        )
        return Rollout(
            BlockFrame(parts | self.carried(moving)), (*order, "hand"), once, each, tuple(moving)
        )
