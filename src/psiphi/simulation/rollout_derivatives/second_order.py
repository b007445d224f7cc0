"""The second derivatives of a rollout as rollouts.

Forward over reverse: the reversed steps of `step_derivatives.py` and their changes. For one change
of all inputs it gives the change of all gradients, in as many steps as one gradient takes.

    λ_k = f_x*(x_k, p_k) (λ_k+1 + w_k+1)          p̄_k = f_p*(x_k, p_k) (λ_k+1 + w_k+1)
    dλ_k, dp̄_k    the changes of both for changes dx_k, dp_k, dλ_k+1; dx is that of `TangentSteps`

Forward over forward: along with the motion, for two changes (dx, dp), (ex, ep) of all inputs and a
change (z, r) of the first of them.

    z_k+1 = f_x z_k + f_p r_k + f''((dx_k, dp_k), (ex_k, ep_k))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray, AnyScalar
from psiphi.compiler.autodiff.equation_derivatives import TapeArrays
from psiphi.compiler.autodiff.tape_derivatives import push_forward
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.model.manifold import Manifold, ManifoldRow
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import add, dot
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.rollout_derivatives.step_derivatives import (
    STATE,
    DifferentiatedRollout,
    TangentSteps,
)


class SecondOrderAdjoint(DifferentiatedRollout):
    """Steps in reverse with the changes of their gradients: the rows of the arrays are given last
    first."""

    @cached_property
    def rollout(self) -> Rollout:
        options, tape_arrays = self.program.options, self.tape_arrays
        names, first_weight = (*STATE, *self.places), tape_arrays.next_input
        bars = tape_arrays.pullback()
        seeds: dict[int, Any] = {}
        for name, size in self.sizes(names).items():
            seeds |= tape_arrays.seeds(name, tape_arrays.add_input(size))
        for number, size in enumerate(self.sizes(STATE).values(), first_weight):
            seeds |= tape_arrays.leaf_seeds(number, tape_arrays.add_input(size))
        bar_dots = dict(zip(names, _changes_of(tape_arrays, bars, seeds), strict=True))
        # changes of gradients with respect to constant inputs, summed over the steps so far
        sums = {
            x: tape_arrays.add_input(size) for x, size in self.sizes(self.constant_places).items()
        }
        results = {f"{name}_bar_next": bar for name, bar in zip(STATE, bars, strict=False)}
        results |= {f"{name}_bar_dot_next": bar_dots[name] for name in STATE}
        results |= {f"{name}_bar_dot": bar_dots[name] for name in self.per_step_places}
        results |= {
            f"{name}_bar_dot_next": add(total.tolist(), bar_dots[name])
            for name, total in sums.items()
        }
        added = (
            self.sizes(STATE, "{}_sum")
            | self.sizes(names, "{}_dot")
            | self.sizes(STATE, "{}_sum_dot")
            | self.sizes(self.constant_places, "{}_bar_dot")
        )
        carried = self.sizes(STATE, "{}_bar") | self.sizes(
            (*STATE, *self.constant_places), "{}_bar_dot"
        )

        def add_weights(**values: np.ndarray) -> Values:
            sums = {f"{x}_sum": values[f"{x}_bar"] + values[f"{x}_weight"] for x in STATE}
            return sums | {f"{x}_sum_dot": values[f"{x}_bar_dot"] for x in STATE}

        weighted = (
            self.sizes(STATE, "{}_bar")
            | self.sizes(STATE, "{}_weight")
            | self.sizes(STATE, "{}_bar_dot")
        )
        blocks: NamedBlocks = self.step_block(added, results) | self.carry_blocks(carried)
        blocks |= {"add_weights": (trace("add_weights", weighted, add_weights), {})}
        return Rollout(
            BlockFrame(blocks),
            order=("add_weights", "differentiated_step", "carry"),
            packed_once=(
                *(name for name in options.packed_once if name not in STATE),
                *(f"{name}_dot" for name in self.constant_places),
                *(f"{name}_first" for name in carried),
            ),
            packed_per_step=(
                *STATE,
                *options.packed_per_step,
                *(f"{name}_weight" for name in STATE),
                *(f"{name}_dot" for name in (*STATE, *self.per_step_places)),
            ),
            sampled=(*carried, *(f"{name}_bar_dot" for name in self.per_step_places)),
        )


class SecondOrderTangent(TangentSteps):
    """Steps of the motion with two changes, dot and prime, and the change of the first of them
    along the second."""

    suffixes = ("dot", "prime", "dot_prime")

    def values(self) -> list[list[Any]]:
        tape_arrays, sizes = self.tape_arrays, self.sizes((*STATE, *self.places))
        first_dot = tape_arrays.next_input
        state_and_dots = tape_arrays.jvp()
        seeds: dict[int, Any] = {}
        for name, size in sizes.items():
            seeds |= tape_arrays.seeds(name, tape_arrays.add_input(size))
        for number, size in enumerate(sizes.values(), first_dot):
            seeds |= tape_arrays.leaf_seeds(number, tape_arrays.add_input(size))
        return [*state_and_dots, *_changes_of(tape_arrays, state_and_dots, seeds)]


def _changes_of(
    tape_arrays: TapeArrays, rows: Sequence[Sequence[AnyScalar]], seeds: dict[int, Any]
) -> list[list[Any]]:
    """The changes of rows of expressions, for the changes {leaf: change} of inputs."""
    tape = tape_arrays.tape
    changes = iter(push_forward(tape, [tape.operand(x) for row in rows for x in row], seeds))
    return [[next(changes) for _ in row] for row in rows]


def tangent_gradient_derivative(
    m: Manifold, q: AnyArray, gradient_dot: AnyArray, gradient: AnyArray, q_dot: AnyArray
) -> list[Any]:
    """The change of the gradient T(q)* g with respect to tangent vectors, T* g_dot + T_dot* g, for
    changes of g and q; on arrays (..., nq) and on tapes."""
    found = {
        v_index: gradient_dot[..., q_index][()]
        for q_index, v_index in zip(*(x.tolist() for x in m.flat), strict=True)
    }
    for joint in m.curved:
        q_j, g_dot, g, change = (
            entries(x[..., joint.q_slice]) for x in (q, gradient_dot, gradient, q_dot)
        )
        for index, unit in enumerate(np.eye(joint.row.nv).tolist(), joint.v_slice.start):
            rate = partial(_rate, joint.row, unit)
            found[index] = dot(rate(q_j), g_dot) + dot(rate_of_change(rate, q_j, change), g)
    return [found[index] for index in range(m.nv)]


def _rate(row: ManifoldRow, v: list[float], q: list[AnyScalar]) -> list[Any]:
    """dq/dt of a joint, with q as the last argument."""
    return row.rate(q, v)
