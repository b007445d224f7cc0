"""The derivatives of a rollout as rollouts: the tape of one step is differentiated and runs in the
same loop over steps.

    x_k+1 = f(x_k, p_k)          one step from the state x = (q, v); p are torques and other inputs

    tangent    dx_k+1 = f_x dx_k + f_p dp_k                       along with the motion
    adjoint    λ_k = f_x* (λ_k+1 + w_k+1),  p̄_k = f_p* (...)      over the states x_k in reverse

w are the weights of the samples. If p is constant, p̄ is summed over the steps. Changes of q are
changes of its nq coordinates, not tangent vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

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
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.rollout_derivatives.implicit_contacts import ImplicitContacts

STATE = ("q", "v")
NO_DERIVATIVE = 'limits="block" changes velocities abruptly: such a motion has no derivative'


@dataclass(frozen=True, eq=False)
class DifferentiatedRollout:
    """The derivative of a rollout with respect to the state and `places`: inputs that are constant,
    or that change with each step."""

    program: RolloutProgram
    places: tuple[str, ...]

    @property
    def constant_places(self) -> tuple[str, ...]:
        return tuple(name for name in self.places if name in self.program.options.packed_once)

    @property
    def per_step_places(self) -> tuple[str, ...]:
        return tuple(name for name in self.places if name in self.program.options.packed_per_step)

    @cached_property
    def step(self) -> StraightCode:
        """One step from (q, v) to (Q, V), on one tape."""
        program, options = self.program, self.program.options
        robot = program.robot
        if options.stops is not None:
            raise StateError(NO_DERIVATIVE, 'use limits="ignore"')
        if is_large(robot):
            raise StateError(
                f"{robot.name} has {len(robot.joints)} bodies: its steps run in loops over links, "
                "which have no derivatives",
                f"use a robot of up to {UNROLL_LIMIT} bodies, or finite differences",
            )
        implicit = self.contacts
        frame = BlockFrame(program.blocks if implicit is None else implicit.step_blocks)
        order = program.order if implicit is None else implicit.step_order
        held = () if implicit is None else implicit.held_inputs
        inputs = tuple(
            Argument(name, (frame.sizes[name],), "q" if name == "q" else "")
            for name in (*options.packed_once, *options.packed_per_step, *held)
        )
        outputs = tuple(Argument(name, (frame.sizes[name],)) for name in ("Q", "V"))
        return fuse_blocks(SingleStep(frame, ("start", *order), inputs, outputs))

    @cached_property
    def contacts(self) -> ImplicitContacts | None:
        """The contacts with the ground as equations, if there are any."""
        return None if self.program.options.contacts is None else ImplicitContacts(self.program)

    @cached_property
    def tape_arrays(self) -> TapeArrays:
        return TapeArrays(self.program.robot, self.step, (*STATE, *self.places), True)

    def sizes(self, names: Iterable[str], pattern: str = "{}") -> dict[str, int]:
        """{place: size} of inputs of the step; `pattern` makes the place from the input's name."""
        size_of = {arg.name: arg.size for arg in self.step.program.inputs}
        return {pattern.format(name): size_of[name] for name in names}

    def step_block(self, added: dict[str, int], results: dict[str, list[Any]]) -> NamedBlocks:
        """The block "differentiated_step": the inputs of the step and the `added` ones (sizes), and
        named results."""
        inputs = (
            *self.step.program.inputs,
            *(Argument(name, (size,)) for name, size in added.items()),
        )
        outputs = tuple(Argument(name, (len(row),)) for name, row in results.items())
        tape = self.tape_arrays.tape
        stores = tuple(
            (number, i, tape.operand(x))
            for number, row in enumerate(results.values())
            for i, x in enumerate(row)
        )
        code = StraightCode(Program("step", inputs, outputs, ()), tape, stores)
        return {"differentiated_step": (code, self.contacts.held_inputs if self.contacts else {})}

    def carry_blocks(self, carried: dict[str, int]) -> NamedBlocks:
        """The blocks for values {place: size} that a step passes on to the next one: "start" copies
        "{}_first", the initial value; "carry" copies "{}_next", the result of a step."""

        def copies(block: str, pattern: str) -> StraightCode:
            def copy(**values: np.ndarray) -> Values:
                return {name: values[pattern.format(name)] for name in carried}

            return trace(block, {pattern.format(x): size for x, size in carried.items()}, copy)

        return {
            "start": (copies("start", "{}_first"), {}),
            "carry": (copies("carry", "{}_next"), {}),
        }

    def solving_contacts(self, rollout: Rollout) -> Rollout:
        """The loop in which the step itself, which solves its contacts, runs before the block
        "differentiated_step"; the loop as it is if there are none."""
        contacts = self.contacts
        if contacts is None:
            return rollout
        at = rollout.order.index("differentiated_step")
        return replace(
            rollout,
            frame=BlockFrame(contacts.solve_blocks | rollout.frame.named),
            order=(*rollout.order[:at], *contacts.solve_order, *rollout.order[at:]),
            repeats=contacts.loops,
            conditions=contacts.conditions,
            prologue=(*rollout.prologue, *contacts.prologue),
        )

    @property
    def flops(self) -> int:
        """The operations of one step; a sine or cosine counts as forty."""
        count = sum((code.count for code, _ in self.rollout.frame.named.values()), Count())
        return count.flops + 40 * count.trig

    @cached_property
    def rollout(self) -> Rollout:
        raise NotImplementedError


class AdjointSteps(DifferentiatedRollout):
    """Steps in reverse: the rows of the arrays are given last first."""

    @cached_property
    def rollout(self) -> Rollout:
        options, tape_arrays = self.program.options, self.tape_arrays
        bars = dict(zip((*STATE, *self.places), tape_arrays.pullback(), strict=True))
        # gradients with respect to constant inputs, summed over the steps so far
        sums = {
            x: tape_arrays.add_input(size) for x, size in self.sizes(self.constant_places).items()
        }
        results = {f"{name}_bar_next": bars[name] for name in STATE}
        results |= {f"{name}_bar": bars[name] for name in self.per_step_places}
        results |= {f"{x}_bar_next": add(total.tolist(), bars[x]) for x, total in sums.items()}
        added = self.sizes(STATE, "{}_sum") | self.sizes(self.constant_places, "{}_bar")
        carried = self.sizes((*STATE, *self.constant_places), "{}_bar")

        def add_weights(**values: np.ndarray) -> Values:
            return {f"{x}_sum": values[f"{x}_bar"] + values[f"{x}_weight"] for x in STATE}

        weighted = self.sizes(STATE, "{}_bar") | self.sizes(STATE, "{}_weight")
        blocks: NamedBlocks = self.step_block(added, results) | self.carry_blocks(carried)
        blocks |= {"add_weights": (trace("add_weights", weighted, add_weights), {})}
        loop = Rollout(
            BlockFrame(blocks),
            order=("add_weights", "differentiated_step", "carry"),
            packed_once=(
                *(name for name in options.packed_once if name not in STATE),
                *(f"{name}_first" for name in carried),
            ),
            packed_per_step=(
                *STATE,
                *options.packed_per_step,
                *(f"{name}_weight" for name in STATE),
            ),
            sampled=(*carried, *(f"{name}_bar" for name in self.per_step_places)),
        )
        return self.solving_contacts(loop)


class TangentSteps(DifferentiatedRollout):
    """Steps of the motion together with their changes."""

    suffixes: tuple[str, ...] = ("dot",)  # one for each change of the state that is carried along

    def values(self) -> list[list[Any]]:
        """The next state and its changes, in the order of `suffixes`."""
        return self.tape_arrays.jvp()

    @cached_property
    def rollout(self) -> Rollout:
        options = self.program.options
        patterns = ["{}_" + suffix for suffix in self.suffixes]
        carried: dict[str, int] = {}
        for pattern in ("{}", *patterns):
            carried |= self.sizes(STATE, pattern)
        results = dict(zip((f"{name}_next" for name in carried), self.values(), strict=True))
        next_state: dict[str, str] = {}
        if self.contacts is not None:  # that of the loop, not of the equations
            next_state = {f"{name}_next": name.upper() for name in STATE}
            results = {name: row for name, row in results.items() if name not in next_state}
        added: dict[str, int] = {}
        for pattern in patterns:
            added |= self.sizes((*STATE, *self.places), pattern)
        blocks: NamedBlocks = self.step_block(added, results) | self.carry_blocks(carried)
        blocks["carry"] = blocks["carry"][0], next_state
        loop = Rollout(
            BlockFrame(blocks),
            order=("differentiated_step", "carry"),
            packed_once=(
                *(f"{name}_first" for name in carried),
                *(name for name in options.packed_once if name not in STATE),
                *(pattern.format(name) for pattern in patterns for name in self.constant_places),
            ),
            packed_per_step=(
                *options.packed_per_step,
                *(pattern.format(name) for pattern in patterns for name in self.per_step_places),
            ),
            sampled=tuple(carried),
        )
        return self.solving_contacts(loop)
