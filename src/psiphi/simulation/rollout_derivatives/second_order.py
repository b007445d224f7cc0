"""Second derivatives of a rollout as a rollout: the reversed steps of `step_derivatives.py`, and what they change by.

    λ_k = f_x*(x_k, p_k) (λ_k+1 + w_k+1)          p̄_k = f_p*(x_k, p_k) (λ_k+1 + w_k+1)
    dλ_k, dp̄_k: the changes of both when x_k, p_k and λ_k+1 change by dx_k, dp_k and dλ_k+1          dx as `TangentSteps` has it

Forward over backward: for one change of everything the change of all gradients, in as many steps as one gradient takes.
Forward over forward: beside the motion, for two changes of everything and one more of the first,

    z_k+1 = f_x z_k + f_p r_k + f''((dx_k, dp_k), (ex_k, ep_k))
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi.compiler.autodiff.tape_derivatives import push_forward
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import add, dot
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.rollout_derivatives.step_derivatives import (
    STATE,
    DifferentiatedRollout,
    TangentSteps,
)


class SecondOrderAdjoint(DifferentiatedRollout):
    """Steps in reverse with the changes of their gradients: arrays are given last row first."""

    @cached_property
    def rollout(self) -> Rollout:
        plan, sizes, work = self.machine.options, self.sized(STATE), self.work
        names, weights = (*STATE, *self.names), work.next_input
        bars = work.pullback()
        seeds: dict[int, Any] = {}
        for name in names:
            seeds |= work.seeds(name, work.add_input(self.sized((name,))[name]))
        for number, name in enumerate(STATE):
            seeds |= work.leaf_seeds(weights + number, work.add_input(sizes[name]))
        turned = iter(
            push_forward(work.tape, [work.tape.operand(x) for row in bars for x in row], seeds)
        )
        turns = {name: [next(turned) for _ in row] for name, row in zip(names, bars, strict=True)}
        before = {name: work.add_input(size) for name, size in self.sized(self.once).items()}
        results = {f"{name}_bar_new": bar for name, bar in zip(STATE, bars, strict=False)}
        results |= {f"{name}_turn_new": turns[name] for name in STATE}
        results |= {f"{name}_turn": turns[name] for name in self.anew}
        results |= {
            f"{name}_turn_new": add(before[name].tolist(), turns[name]) for name in self.once
        }
        added = (
            self.sized(STATE, "{}_sum")
            | self.sized(names, "{}_dot")
            | self.sized(STATE, "{}_sum_dot")
        )
        parts, order = self.block(added | self.sized(self.once, "{}_turn"), results)
        held = self.sized(STATE, "{}_bar") | self.sized(
            (*STATE, *self.once), "{}_turn"
        )  # what goes on from step to step

        def meet(**at: Any) -> dict[str, Any]:
            sums = {f"{name}_sum": at[f"{name}_bar"] + at[f"{name}_weight"] for name in STATE}
            return sums | {f"{name}_sum_dot": at[f"{name}_turn"] for name in STATE}

        met = (
            self.sized(STATE, "{}_bar")
            | self.sized(STATE, "{}_weight")
            | self.sized(STATE, "{}_turn")
        )
        blocks: NamedBlocks = parts | self.carried(held) | {"meet": (trace("meet", met, meet), {})}
        once = (
            *(name for name in plan.packed_once if name not in STATE),
            *(f"{name}_dot" for name in self.once),
        )
        once = (*once, *(f"{name}_first" for name in held))
        each = (
            *STATE,
            *plan.packed_per_step,
            *(f"{name}_weight" for name in STATE),
            *(f"{name}_dot" for name in (*STATE, *self.anew)),
        )
        sample = (*held, *(f"{name}_turn" for name in self.anew))
        return Rollout(BlockFrame(blocks), ("meet", *order, "hand"), once, each, sample)


class SecondOrderTangent(TangentSteps):
    """Steps with their changes along two ways, and what the first of these changes by along the other."""

    changes = ("dot", "way", "bend")

    def values(self) -> list[list[Any]]:
        work, names = self.work, (*STATE, *self.names)
        first, sizes = work.next_input, self.sized(names)
        found = work.jvp()
        seeds: dict[int, Any] = {}
        for name in names:
            seeds |= work.seeds(name, work.add_input(sizes[name]))
        for number, name in enumerate(names, first):
            seeds |= work.leaf_seeds(number, work.add_input(sizes[name]))
        turned = iter(
            push_forward(work.tape, [work.tape.operand(x) for row in found for x in row], seeds)
        )
        return [*found, *([next(turned) for _ in row] for row in found)]


def tangent_turn(m: Manifold, q: Any, turn: Any, slope: Any, moved: Any) -> list[Any]:
    """What a gradient along every tangent vector, <rate(q, unit), slope>, changes by where the slope turns and q moves: on
    arrays (..., nq), and on tapes."""
    found = dict(
        zip(m.flat[1].tolist(), (turn[..., i][()] for i in m.flat[0].tolist()), strict=True)
    )
    for joint in m.curved:
        at, turns, slopes, way = (entries(x[..., joint.q_slice]) for x in (q, turn, slope, moved))
        for k, unit in enumerate(np.eye(joint.row.nv).tolist(), joint.v_slice.start):
            rate = partial(_rate, joint.row, unit)
            found[k] = dot(rate(at), turns) + dot(rate_of_change(rate, at, way), slopes)
    return [found[k] for k in range(m.nv)]


def _rate(row: Any, v: list[float], q: list[Any]) -> list[Any]:
    return row.rate(q, v)
