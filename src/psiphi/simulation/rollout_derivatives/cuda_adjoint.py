"""The derivatives of a motion that has run on the GPU, computed there by the kernels of
`step_derivatives.py`.

In reverse, every step needs the state from which it started. If not every step was sampled, the
steps between two samples run again; if their states exceed MEMORY_LIMIT, from checkpoints. Between
samples the weights are one row of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi.backends.cuda.dlpack import SIZE
from psiphi.backends.cuda.kernel_launch import common_dtype_and_device, views_of
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout.cuda_runner import CudaArgument, CudaRunner
from psiphi.simulation.compiled_rollout.initial_state import InitialState, normalized_joints
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.rollout_derivatives.second_order import (
    SecondOrderAdjoint,
    tangent_gradient_derivative,
)
from psiphi.simulation.rollout_derivatives.step_derivatives import STATE, AdjointSteps, TangentSteps

MEMORY_LIMIT = 1 << 27  # numbers of states between samples, of all motions together
Named = Mapping[str, Any]  # GPU arrays, or None for zeros, by place
CudaArguments = dict[str, CudaArgument]  # by place
CudaRows = tuple[Any, CudaArgument]  # an array and its memory
# steps a ... b - 1, and the memory of the states from which they start
CudaPiece = tuple[int, int, list[CudaArgument]]
# (state, first step, steps, every, results)
Advance = Callable[[list[CudaArgument], int, int, int, list[CudaArgument]], None]


class CudaRolloutAdjoint:
    """The derivatives of motions with samples (*batch, samples, n), one every `every` steps."""

    def __init__(self, runner: CudaRunner, states: tuple[AnyArray, AnyArray], every: int):
        self.runner, self.options, self.every = runner, runner.options, every
        self.steps = every * (states[0].shape[-2] - 1)
        self.sizes = {"q": runner.plant.nq, "v": runner.plant.nv}
        self.q, self.v = (
            self._samples(x, f"the motion's {name}", name)
            for name, x in zip(STATE, states, strict=True)
        )
        system = runner.plant.system
        if isinstance(system, System) and system.has_redundant_rows:
            raise StateError(
                f"rollout: some constraint rows of {system.name} are redundant, and then "
                "derivatives are available on the CPU only",
                "give NumPy arrays, or tensors on the CPU",
            )
        self.program = RolloutProgram(system, self.options)
        # states between samples, by depth of the checkpoints, rows and arrays
        self.checkpoints: dict[tuple[int, int, int], list[CudaRows]] = {}
        self.start_change: CudaRows | None = None  # a change of unit(q) at the start

    def _memory(
        self, x: AnyArray, label: str, core_shape: tuple[int, ...], all_axes: bool = True
    ) -> CudaArgument:
        """The memory of a GPU array (*batch, *core_shape); unless `all_axes`, it may be one row or
        table for all motions."""
        runner, arg = self.runner, Argument(label, core_shape)
        inputs = Argument("q0", (runner.plant.nq,)), arg
        views = views_of("rollout", inputs, (runner.like, x))
        common_dtype_and_device("rollout", inputs, views, None)
        lead = views[1].shape[: len(views[1].shape) - len(core_shape)]
        if lead != runner.batch and (all_axes or math.prod(lead) != 1):
            raise StateError(
                f"rollout: {label} has batch axes {lead}, the motion {runner.batch}",
                f"give it the shape {(*runner.batch, *core_shape)}",
            )
        size = SIZE[runner.char]
        motion_stride = arg.size * size if lead == runner.batch else 0
        return CudaArgument(views[1].pointer, motion_stride, core_shape[-1] * size)

    def _samples(self, x: AnyArray, label: str, name: str) -> CudaArgument:
        return self._memory(x, label, (1 + self.steps // self.every, self.sizes[name]))

    def _check_steps(self) -> None:
        """Raise an error if a table of torques has steps after the last sample."""
        if self.steps != self.runner.steps:
            raise StateError(
                f"rollout: of {self.runner.steps} steps every {self.every}th is sampled, and the "
                "torques continue after the last sample",
                f"give {self.steps} steps, an `every` that divides the steps, or arrays on the CPU",
            )

    def size(self, place: str) -> int:
        """The number of coordinates of a place."""
        if place == "tau":
            return self.runner.plant.nv
        return np.shape(self.runner.host_values[place])[-1]

    def vjp(
        self, places: tuple[str, ...], weights: Named, before_unit: bool = False
    ) -> dict[str, Any]:
        """Gradients by place, (*batch, n) or (*batch, steps, n), of the sum of all samples with the
        weights of q and v.

        The gradient with respect to q is that at the start of the motion, unit(q), or, with
        `before_unit`, that with respect to the q that was given.
        """
        found = self._bars(places, weights)
        bars = {name: self._result(name, rows) for name, rows in found.items()}
        for name in STATE:
            if weights.get(name) is not None:
                bars[name] = bars[name] + weights[name][..., 0, :]
        if before_unit and self.normalizes_start:
            bars["q"] = self._start_gradient("vjp", [found["q"][1], self._first_weight(weights)])
        return bars

    def _bars(self, places: tuple[str, ...], weights: Named) -> dict[str, CudaRows]:
        """The gradients without the weights of the first samples."""
        steps = AdjointSteps(self.program, places)
        carried = {**self.sizes, **{name: self.size(name) for name in steps.constant_places}}
        pieces = self._pieces([self.q, self.v], self._advance)
        return self._run_reversed(steps, carried, pieces, weights, {})

    def vjp_derivative(
        self,
        places: tuple[str, ...],
        weights: Named,
        changes: Named,
        before_unit: bool = False,
    ) -> dict[str, Any]:
        """The changes of the gradients of `vjp` for changes as in `jvp`: forward over reverse."""
        steps = SecondOrderAdjoint(self.program, places)
        tangent_steps = CudaTangentSteps(self.program, places)
        row = self._changes(places, changes, before_unit)
        tangent = self._run_tangent(tangent_steps, row)
        bars = {f"{name}_bar": size for name, size in self.sizes.items()}
        carried = bars | self.sizes | {name: self.size(name) for name in steps.constant_places}
        pieces = self._pieces(
            [self.q, self.v, *(argument for _, argument in tangent)],
            partial(self._advance_tangent, tangent_steps, row),
        )
        found = self._run_reversed(steps, carried, pieces, weights, row)
        bar_dots = {name: self._result(name, x) for name, x in found.items() if name not in bars}
        if before_unit and self.normalizes_start:
            bar = self._bars((), weights)["q"]  # holds the memory until the launch
            q_change = {name: x for name, x in changes.items() if name == "q"}
            dq = self._changes((), q_change)["q"]
            bar_dots["q"] = self._start_gradient(
                "vjp_derivative", [found["q"][1], bar[1], self._first_weight(weights), dq]
            )
        return bar_dots

    def _run_reversed(
        self,
        steps: AdjointSteps | SecondOrderAdjoint,
        carried: dict[str, int],
        pieces: Iterator[CudaPiece],
        weights: Named,
        dots: CudaArguments,
    ) -> dict[str, CudaRows]:
        """The results of reversed steps: what they carry, (*batch, 1, n), and one row for each
        step, (*batch, steps, n).

        The states of a piece may be followed by their changes; `dots` are the changes of the other
        places.
        """
        runner, options = self.runner, self.options
        # two buffers: each launch reads one and writes the other
        buffers = [{name: runner.empty(1, n) for name, n in carried.items()} for _ in range(2)]
        if steps.per_step_places:
            self._check_steps()
        tables = {x: runner.empty(self.steps, self.size(x)) for x in steps.per_step_places}
        weight_samples = {
            name: self._samples(x, f"{name}_weight", name)
            for name, x in weights.items()
            if x is not None
        }
        zeros = {name: runner.zeros(size) for name, size in carried.items()}
        values, turn = zeros, 0
        once = [runner.places[name] for name in options.packed_once if name not in STATE]
        once += [dots[name] for name in steps.constant_places if name in dots]
        step_dots = [dots[name] for name in steps.per_step_places if name in dots]
        for a, b, states in pieces:
            for low, high, weight in self._weighted_ranges(a, b, zeros | weight_samples, zeros):
                last = high - low - 1
                state = [x.from_row(low - a) for x in states[:2]]
                state += [runner.places[name].from_row(low) for name in options.packed_per_step]
                change = [x.from_row(low - a) for x in states[2:]]
                change += [x.from_row(low) for x in step_dots]
                rows = [
                    *(x.backward_from(last) for x in state),
                    *weight,
                    *(x.backward_from(last) for x in change),
                ]
                results = {name: argument for name, (_, argument) in buffers[turn].items()}
                out = [x.one_row for x in results.values()]
                out += [argument.backward_from(high - 1) for _, argument in tables.values()]
                arguments = [*once, *values.values(), *rows, *out]
                runner.launch(steps, steps.places, arguments, high - low, 1)
                values, turn = results, 1 - turn
        if values is zeros or not runner.count:
            return tables | {name: (self._zeros(n), zeros[name]) for name, n in carried.items()}
        return tables | buffers[1 - turn]

    def _zeros(self, size: int) -> Any:
        """An array (*batch, 1, size) of zeros."""
        runner = self.runner
        zeros: Any = runner.library.full(runner.like, runner.count * size, 0.0)
        return zeros.reshape(*runner.batch, 1, size)

    def _result(self, place: str, rows: CudaRows) -> Any:
        """A result of reversed steps: a table, or the only row."""
        array = self.runner.ready(rows[0])
        return array if place in self.options.packed_per_step else array[..., 0, :]

    @property
    def normalizes_start(self) -> bool:
        """Whether unit(q), at which a motion starts, may differ from the given q."""
        return bool(normalized_joints(self.runner.plant.manifold))

    def _first_weight(self, weights: Named) -> CudaArgument:
        """The weights of the first q."""
        w = weights.get("q")
        if w is None:
            return self.runner.zeros(self.sizes["q"])
        return self._samples(w, "q_weight", "q")

    def _start_gradient(self, rule: str, arguments: list[CudaArgument]) -> Any:
        """A gradient with respect to the given q, from that with respect to unit(q)."""
        array, out = self.runner.empty(1, self.sizes["q"])
        self._apply_at_given_q(rule, arguments, out)
        return self.runner.ready(array)[..., 0, :]

    def _apply_at_given_q(
        self, rule: str, arguments: list[CudaArgument], out: CudaArgument
    ) -> None:
        step, given_q = StartDerivative(self.program, rule), self.runner.places["q"]
        self.runner.launch(step, (rule,), [given_q, *arguments, out], 1, 1)

    def tangent_gradient(self, q_bar: AnyArray) -> Any:
        """The gradient (*batch, nv) with respect to tangent vectors at the first q, from that with
        respect to its nq coordinates."""
        return self._apply_at_first_q("tangent_gradient", {"q_bar": q_bar})

    def rate(self, change: AnyArray) -> Any:
        """The change (*batch, nq) of the first q along a tangent vector."""
        return self._apply_at_first_q("rate", {"the change of q": change})

    def tangent_gradient_derivative(
        self, q_bar_dot: AnyArray, q_bar: AnyArray, q_dot: AnyArray
    ) -> Any:
        """The change of `tangent_gradient(q_bar)` for changes of q_bar and of the first q."""
        return self._apply_at_first_q(
            "tangent_gradient_derivative",
            {"q_bar_dot": q_bar_dot, "q_bar": q_bar, "the change of q": q_dot},
        )

    def _apply_at_first_q(self, rule: str, arrays: Mapping[str, AnyArray]) -> Any:
        """A rule of `StartDerivative` at the first q, for arrays by their names in errors."""
        runner = self.runner
        if runner.plant.manifold.is_flat:
            return next(iter(arrays.values()))
        is_rate = rule == "rate"
        nq, nv = runner.plant.nq, runner.plant.nv
        arguments = [
            self._memory(x, label, (nv if is_rate else nq,), all_axes=False)
            for label, x in arrays.items()
        ]
        array, out = runner.empty(1, nq if is_rate else nv)
        step = StartDerivative(self.program, rule)
        runner.launch(step, (rule,), [self.q, *arguments, out], 1, 1)
        return runner.ready(array)[..., 0, :]

    def jvp(self, changes: Named, before_unit: bool = False) -> tuple[Any, Any]:
        """(dq, dv), (*batch, samples, n), for changes by place, (*batch, n) or (*batch, steps, n);
        other places do not change."""
        places = tuple(name for name in self.options.derivative_places if name in changes)
        row = self._changes(places, changes, before_unit)
        found = self._run_tangent(CudaTangentSteps(self.program, places), row)
        dq, dv = (self.runner.ready(array) for array, _ in found)
        return dq, dv

    def _changes(
        self, places: tuple[str, ...], changes: Named, before_unit: bool = False
    ) -> CudaArguments:
        """The changes of the state and of these places, zero by default. That of q is a change of
        unit(q) at the start, or, with `before_unit`, of the q that was given."""
        row = {name: self.runner.zeros(size) for name, size in self.sizes.items()}
        row |= {name: self.runner.zeros(self.size(name)) for name in places}
        for name, x in changes.items():
            size = self.sizes.get(name) or self.size(name)
            is_table = name in self.options.packed_per_step
            if is_table:
                self._check_steps()
            core_shape = (self.steps, size) if is_table else (size,)
            row[name] = self._memory(x, f"the change of {name}", core_shape, all_axes=False)
        if before_unit and self.normalizes_start and "q" in changes:
            # allocated once: kernels on a stream run in order, so the next change may overwrite it
            self.start_change = self.start_change or self.runner.empty(1, self.sizes["q"])
            self._apply_at_given_q("jvp", [row["q"]], self.start_change[1])
            row["q"] = self.start_change[1]
        return row

    def _run_tangent(self, steps: CudaTangentSteps, row: CudaArguments) -> list[CudaRows]:
        """Run the motion once more with its changes: (dq, dv) of all samples."""
        runner = self.runner
        samples = 1 + self.steps // self.every
        unused = [runner.empty(1, size) for size in self.sizes.values()]  # for q and v
        found = [runner.empty(samples, size) for size in self.sizes.values()]
        out = [argument.one_row for _, argument in unused] + [argument for _, argument in found]
        first = [self.q, self.v, row["q"], row["v"]]
        self._advance_tangent(steps, row, first, 0, self.steps, self.every, out)
        return found

    def _advance(
        self, first: list[CudaArgument], start: int, steps: int, every: int, out: list[CudaArgument]
    ) -> None:
        """Run the motion from its state at step `start`; store it and every `every`-th state."""
        self.runner.advance(first[0], first[1], start, steps, every, out)

    def _advance_tangent(
        self,
        tangent_steps: CudaTangentSteps,
        row: CudaArguments,
        first: list[CudaArgument],
        start: int,
        steps: int,
        every: int,
        out: list[CudaArgument],
    ) -> None:
        """The same for the state and its changes."""
        runner, options = self.runner, self.options
        once = [
            *first,
            *(runner.places[name] for name in options.packed_once if name not in STATE),
            *(row[name] for name in tangent_steps.constant_places),
        ]
        each = [
            *(runner.places[name].from_row(start) for name in options.packed_per_step),
            *(row[name].from_row(start) for name in tangent_steps.per_step_places),
        ]
        runner.launch(tangent_steps, tangent_steps.places, [*once, *each, *out], steps, every)

    def _weighted_ranges(
        self, a: int, b: int, weights: CudaArguments, zeros: CudaArguments
    ) -> Iterator[tuple[int, int, list[CudaArgument]]]:
        """The steps a ... b - 1 as ranges low ... high - 1, the last first, with the weights of the
        states after these steps."""
        if self.every == 1:
            yield a, b, [weights[name].backward_from(b) for name in STATE]
            return
        if b % self.every == 0:
            yield b - 1, b, [weights[name].from_row(b // self.every) for name in STATE]
            b -= 1
        if a < b:
            yield a, b, [zeros[name] for name in STATE]

    def _pieces(self, samples: list[CudaArgument], advance: Advance) -> Iterator[CudaPiece]:
        """The steps in pieces, the last one first. `samples` are those of q and v, perhaps followed
        by their changes."""
        if self.every == 1:
            yield from [(0, self.steps, samples)] if self.steps else []
            return
        for k in reversed(range(self.steps // self.every)):
            first = [x.from_row(k) for x in samples]
            yield from self._recomputed_pieces(first, advance, k * self.every, (k + 1) * self.every)

    def _recomputed_pieces(
        self, first: list[CudaArgument], advance: Advance, a: int, b: int, depth: int = 0
    ) -> Iterator[CudaPiece]:
        """The steps a ... b - 1, run again from a state: all of them, or checkpoints and then the
        steps between these.

        Pieces share memory: kernels on a stream run in order, so a piece is overwritten only after
        its use.
        """
        runner, sizes = self.runner, [*self.sizes.values()] * (len(first) // 2)
        stride = -(-(b - a) // max(2, MEMORY_LIMIT // max(1, runner.count * sum(sizes))))
        starts = range(a, b, stride)
        key = depth, len(starts), len(first)
        if key not in self.checkpoints:
            self.checkpoints[key] = [runner.empty(len(starts), size) for size in sizes]
        states = [argument for _, argument in self.checkpoints[key]]
        advance(first, a, stride * (len(starts) - 1), stride, states)
        if stride == 1:
            yield a, b, states
            return
        for i in reversed(range(len(starts))):
            checkpoint = [x.from_row(i) for x in states]
            end = min(b, starts[i] + stride)
            yield from self._recomputed_pieces(checkpoint, advance, starts[i], end, depth + 1)


class CudaTangentSteps(TangentSteps):
    """Tangent steps whose first sample is the initial change."""

    @cached_property
    def rollout(self) -> Rollout:
        return replace(super().rollout, samples_start=True)


@dataclass(frozen=True, eq=False)
class StartDerivative:
    """A map between coordinates of q at the start of a motion, as a step of one block.

    At the first q, T the map from tangent vectors to changes of the nq coordinates:

        rate                          T v
        tangent_gradient              T* g
        tangent_gradient_derivative   T* dg + dT* g

    At the given q, U = unit (`initial_state.py`):

        jvp                           U' dq
        vjp                           U'* (g + w), w the weight of the first sample
        vjp_derivative                U'* dg + (d/dq U'* (g + w)) dq
    """

    program: RolloutProgram
    rule: str
    flops = 0

    @cached_property
    def rollout(self) -> Rollout:
        m, name = self.program.manifold, self.rule
        start = partial(InitialState, m)
        rules: dict[str, Callable[..., Any]] = {
            "rate": lambda q, v: m.rate(q, v),
            "tangent_gradient": lambda q, g: m.tangent_gradient(q, g),
            "tangent_gradient_derivative": lambda q, g_dot, g, q_dot: tangent_gradient_derivative(
                m, q, g_dot, g, q_dot
            ),
            "jvp": lambda q, q_dot: start(q).jvp(q_dot),
            "vjp": lambda q, g, w: start(q).vjp(g + w),
            "vjp_derivative": lambda q, g_dot, g, w, q_dot: (
                start(q).vjp(g_dot) + start(q).vjp_derivative(g + w, q_dot)
            ),
        }
        rule = rules[name]
        sizes = {x: m.nv if x == "v" else m.nq for x in signature(rule).parameters}

        def apply(**values: np.ndarray) -> Values:
            return {"result": rule(**values)}

        return Rollout(
            BlockFrame({name: (trace(name, sizes, apply), {})}),
            order=(name,),
            packed_once=tuple(sizes),
            packed_per_step=(),
            sampled=("result",),
            prologue=(),
        )
