"""Derivatives of motions that ran on a graphics card, taken there: by the kernels of `step_derivatives.py`.

Backwards every step needs the state it began with. Samples of every step have them; otherwise the steps from one sample to the
next run again, from checkpoints in between where they do not fit into ROOM. Between samples weights are one row of zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np

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
from psiphi.simulation.rollout_derivatives.second_order import SecondOrderAdjoint, tangent_turn
from psiphi.simulation.rollout_derivatives.step_derivatives import STATE, AdjointSteps, TangentSteps

MEMORY_LIMIT = 1 << 27  # numbers that states between samples may take, of all motions together
CardPlaces = dict[str, CudaArgument]
CardRows = tuple[Any, CudaArgument]  # an array, and where it is
CardPiece = tuple[
    int, int, list[CudaArgument]
]  # steps a ... b, and where the states that they begin with are
Advance = Callable[
    [list[CudaArgument], int, int, int, list[CudaArgument]], None
]  # from a state, at step, steps, every, results


class CudaRolloutAdjoint:
    """The derivatives of the motions (*batch, samples, n) that a runner made, every `every` steps."""

    def __init__(self, runner: CudaRunner, states: tuple[Any, Any], every: int):
        self.runner, self.options, self.every = runner, runner.options, every
        self.steps = every * (states[0].shape[-2] - 1)
        self.sizes = {"q": runner.plant.nq, "v": runner.plant.nv}
        self.q, self.v = (
            self._sampled(x, f"the motion's {name}", name)
            for name, x in zip(STATE, states, strict=True)
        )
        system, own = runner.plant.system, RolloutProgram(runner.plant.system, self.options)
        if isinstance(system, System) and system.has_redundant_rows:
            cause = f"rollout: rows of the constraints of {system.name} follow from others, and derivatives are the host's then"
            raise StateError(cause, "give arrays of the host")
        self.machine = own
        self.rooms: dict[tuple[int, int, int], list[CardRows]] = {}  # of states between samples
        self.moved: CardRows | None = None  # and of a change of the first q

    def _place(
        self, x: Any, called: str, shape: tuple[int, ...], whole: bool = True
    ) -> CudaArgument:
        """Where numbers (*batch, *shape) of the card are; those that are not `whole` may be one row (table) for all motions."""
        r, own = self.runner, Argument(called, shape)
        inputs = Argument("q0", (r.plant.nq,)), own
        views = views_of("rollout", inputs, (r.like, x))
        common_dtype_and_device("rollout", inputs, views, None)
        lead = views[1].shape[: len(views[1].shape) - len(shape)]
        if lead != r.batch and (whole or math.prod(lead) != 1):
            cause = f"rollout: {called} has batch axes {lead}, the motion {r.batch}"
            raise StateError(cause, f"give it the shape {(*r.batch, *shape)}")
        return CudaArgument(
            views[1].pointer, own.size * SIZE[r.char] * (lead == r.batch), shape[-1] * SIZE[r.char]
        )

    def _sampled(self, x: Any, called: str, name: str) -> CudaArgument:
        return self._place(x, called, (1 + self.steps // self.every, self.sizes[name]))

    def _check_steps(self) -> None:
        """Refuse tables of torques that go on behind the last sample."""
        if self.steps != self.runner.steps:
            cause = f"rollout: of {self.runner.steps} steps every {self.every}th is kept, and torques go on behind the last one"
            raise StateError(
                cause,
                f"give {self.steps} steps, an `every` that divides them, or arrays of the host",
            )

    def size(self, name: str) -> int:
        """How many numbers a place has."""
        return self.runner.plant.nv if name == "tau" else np.shape(self.runner.numbers[name])[-1]

    def back(
        self, names: tuple[str, ...], weights: Mapping[str, Any], given: bool = False
    ) -> dict[str, Any]:
        """Gradients by place, (*batch, n), of a table (*batch, steps, n); `weights` of q and v, shaped as these, or none. By q
        where the motion begins, or by the numbers that were `given` for it."""
        found = self._back(names, weights)
        arrays = {name: self._row(name, made) for name, made in found.items()}
        for name in STATE:
            if weights.get(name) is not None:
                arrays[name] = arrays[name] + weights[name][..., 0, :]
        if given and self.start_bends:
            arrays["q"] = self._begun("weighed", [found["q"][1], self._first(weights)])
        return arrays

    def _back(self, names: tuple[str, ...], weights: Mapping[str, Any]) -> dict[str, CardRows]:
        """Without the weights of the first samples."""
        machine = AdjointSteps(self.machine, names)
        held = {**self.sizes, **{name: self.size(name) for name in machine.once}}
        return self._reversed(
            machine, names, held, self._pieces([self.q, self.v], self._advance), weights, {}
        )

    def curve(
        self,
        names: tuple[str, ...],
        weights: Mapping[str, Any],
        changes: Mapping[str, Any],
        given: bool = False,
    ) -> dict[str, Any]:
        """What these gradients change by, for changes of places as in `along`: forward over backward."""
        machine, along = (
            SecondOrderAdjoint(self.machine, names),
            CudaTangentSteps(self.machine, names),
        )
        row = self._changes(names, changes, given)
        moved = self._beside(along, row, 1 + self.steps // self.every)
        held = {f"{name}_bar": size for name, size in self.sizes.items()} | self.sizes
        held |= {name: self.size(name) for name in machine.once}
        pieces = self._pieces(
            [self.q, self.v, *(place for _, place in moved)],
            partial(self._advance_beside, along, row),
        )
        found = self._reversed(machine, names, held, pieces, weights, row)
        turned = {
            name: self._row(name, x)
            for name, x in found.items()
            if name not in (f"{each}_bar" for each in STATE)
        }
        if given and self.start_bends:
            slope, change = (
                self._back((), weights)["q"],
                self._changes((), {k: x for k, x in changes.items() if k == "q"}),
            )
            turned["q"] = self._begun(
                "turned", [found["q"][1], slope[1], self._first(weights), change["q"]]
            )
        return turned

    def _reversed(
        self,
        machine: AdjointSteps | SecondOrderAdjoint,
        names: tuple[str, ...],
        held: dict[str, int],
        pieces: Iterator[CardPiece],
        weights: Mapping[str, Any],
        dots: CardPlaces,
    ) -> dict[str, CardRows]:
        """What reversed steps leave: what they hold on to, (*batch, 1, n), and what they give anew, (*batch, steps, n). Behind
        q and v a piece may have what these change by; `dots` are the changes of the other places."""
        r = self.runner
        rooms = [{name: r.empty(1, size) for name, size in held.items()} for _ in range(2)]
        if machine.anew:
            self._check_steps()
        table = {name: r.empty(self.steps, self.size(name)) for name in machine.anew}
        given = {
            name: self._sampled(x, f"{name}_weight", name)
            for name, x in weights.items()
            if x is not None
        }
        nothing = {name: r.zeros(size) for name, size in held.items()}
        bar, turn = nothing, 0
        fixed = [r.places[name] for name in self.options.packed_once if name not in STATE]
        fixed += [dots[name] for name in machine.once if name in dots]
        later = [dots[name] for name in machine.anew if name in dots]
        for a, b, states in pieces:
            for low, high, weight in self._weighed(a, b, nothing | given, nothing):
                state, change = (
                    [place.at(low - a) for place in states[:2]],
                    [place.at(low - a) for place in states[2:]],
                )
                each = [*state, *(r.places[name].at(low) for name in self.options.packed_per_step)]
                change += [place.at(low) for place in later]
                ends = {name: place for name, (_, place) in rooms[turn].items()}
                out = [
                    *(place.held for place in ends.values()),
                    *(place.back(high - 1) for _, place in table.values()),
                ]
                last = high - low - 1
                rows = [
                    *(place.back(last) for place in each),
                    *weight,
                    *(place.back(last) for place in change),
                ]
                r.launch(machine, names, [*fixed, *bar.values(), *rows, *out], high - low, 1)
                bar, turn = ends, 1 - turn
        if bar is nothing or not r.count:
            return table | {name: (self._zeros(size), nothing[name]) for name, size in held.items()}
        return table | rooms[1 - turn]

    def _zeros(self, size: int) -> Any:
        r = self.runner
        return r.library.full(r.like, r.count * size, 0.0).reshape(*r.batch, 1, size)

    def _row(self, name: str, made: CardRows) -> Any:
        """What reversed steps left, of the only row it has, if it is no table."""
        array = self.runner.ready(made[0])
        return array if name in self.options.packed_per_step else array[..., 0, :]

    @property
    def start_bends(self) -> bool:
        """Whether a motion begins at other numbers than were given, unit(q)."""
        return bool(normalized_joints(self.runner.plant.manifold))

    def _first(self, weights: Mapping[str, Any]) -> CudaArgument:
        """The weights of the first q."""
        w = weights.get("q")
        return (
            self.runner.zeros(self.sizes["q"]) if w is None else self._sampled(w, "q_weight", "q")
        )

    def _begun(self, wanted: str, places: list[CudaArgument]) -> Any:
        """Gradients by the numbers given for q, from those by the q where a motion begins."""
        made = self.runner.empty(1, self.sizes["q"])
        self._start(wanted, places, made[1])
        return self.runner.ready(made[0])[..., 0, :]

    def _start(self, wanted: str, places: list[CudaArgument], out: CudaArgument) -> None:
        r = self.runner
        r.launch(TangentStep(self.machine, wanted), (wanted,), [r.places["q"], *places, out], 1, 1)

    def tangent(self, q_bar: Any) -> Any:
        """The gradient by a tangent vector of the first q (*batch, nv), from that by its nq numbers."""
        return self._turned(q_bar, "q_bar", "nq", "slope")

    def rate(self, change: Any) -> Any:
        """The change of the numbers of the first q (*batch, nq) along a tangent vector."""
        return self._turned(change, "the change of q", "nv", "rate")

    def _turned(self, x: Any, called: str, size: str, wanted: str, *more: Any) -> Any:
        r = self.runner
        if r.plant.manifold.is_flat:
            return x
        places = [
            self._place(y, called, (getattr(r.plant, size),), whole=False) for y in (x, *more)
        ]
        array, out = r.empty(1, r.plant.nq if wanted == "rate" else r.plant.nv)
        r.launch(TangentStep(self.machine, wanted), (wanted,), [self.q, *places, out], 1, 1)
        return r.ready(array)[..., 0, :]

    def turned(self, q_turn: Any, q_bar: Any, change: Any) -> Any:
        """What `tangent(q_bar)` changes by where q_bar changes by q_turn and the numbers of the first q by `change`."""
        return self._turned(q_turn, "q_turn", "nq", "turn", q_bar, change)

    def along(self, changes: Mapping[str, Any], given: bool = False) -> tuple[Any, Any]:
        """(dq, dv) (*batch, samples, n) for changes of places, (*batch, n) or (*batch, steps, n); others do not change."""
        machine = CudaTangentSteps(
            self.machine,
            names := tuple(name for name in self.options.derivative_places if name in changes),
        )
        made = self._beside(
            machine, self._changes(names, changes, given), 1 + self.steps // self.every
        )
        dq, dv = (self.runner.ready(array) for array, _ in made)
        return dq, dv

    def _changes(
        self, names: tuple[str, ...], changes: Mapping[str, Any], given: bool = False
    ) -> CardPlaces:
        """The changes of the state and of these places; zero where there are none. That of q is one of its first sample, or of
        the numbers that were `given` for it."""
        row = {name: self.runner.zeros(size) for name, size in self.sizes.items()}
        row |= {name: self.runner.zeros(self.size(name)) for name in names}
        for name, x in changes.items():
            size = self.sizes.get(name) or self.size(name)
            if name in self.options.packed_per_step:
                self._check_steps()
            shape = (self.steps, size) if name in self.options.packed_per_step else (size,)
            row[name] = self._place(x, f"the change of {name}", shape, whole=False)
        if given and self.start_bends and "q" in changes:
            self.moved = self.moved or self.runner.empty(
                1, self.sizes["q"]
            )  # work is in order: the next change overwrites it
            self._start("moved", [row["q"]], self.moved[1])
            row["q"] = self.moved[1]
        return row

    def _beside(self, machine: CudaTangentSteps, row: CardPlaces, rows: int) -> list[CardRows]:
        """(dq, dv) of all samples."""
        r = self.runner
        values = [
            r.empty(1, size) for size in self.sizes.values()
        ]  # of the motion itself, once more
        made = [r.empty(rows, size) for size in self.sizes.values()]
        out = [*(place.held for _, place in values), *(place for _, place in made)]
        self._advance_beside(
            machine, row, [self.q, self.v, row["q"], row["v"]], 0, self.steps, self.every, out
        )
        return made

    def _advance(
        self, first: list[CudaArgument], start: int, steps: int, every: int, out: list[CudaArgument]
    ) -> None:
        """The motion from its state at step `start`: that, and every `every`-th of `steps` after it."""
        self.runner.advance(first[0], first[1], start, steps, every, out)

    def _advance_beside(
        self,
        machine: CudaTangentSteps,
        row: CardPlaces,
        first: list[CudaArgument],
        start: int,
        steps: int,
        every: int,
        out: list[CudaArgument],
    ) -> None:
        """The same with what it changes by."""
        r = self.runner
        once = [
            *first,
            *(r.places[name] for name in self.options.packed_once if name not in STATE),
            *(row[name] for name in machine.once),
        ]
        each = [
            *(r.places[name] for name in self.options.packed_per_step),
            *(row[name] for name in machine.anew),
        ]
        r.launch(
            machine,
            machine.names,
            [*once, *(place.at(start) for place in each), *out],
            steps,
            every,
        )

    def _weighed(
        self, a: int, b: int, given: dict[str, CudaArgument], nothing: dict[str, CudaArgument]
    ) -> Iterator[tuple[int, int, list[CudaArgument]]]:
        """Steps low ... high, the last first, and the weights of the states that they end with."""
        if self.every == 1:
            yield a, b, [given[name].back(b) for name in STATE]
            return
        if b % self.every == 0:
            yield b - 1, b, [given[name].at(b // self.every) for name in STATE]
            b -= 1
        if a < b:
            yield a, b, [nothing[name] for name in STATE]

    def _pieces(self, states: list[CudaArgument], advance: Advance) -> Iterator[CardPiece]:
        """The last first, of samples of q and v, or of these and what they change by."""
        if self.every == 1:
            yield from [(0, self.steps, states)] if self.steps else []
            return
        for k in reversed(range(self.steps // self.every)):
            yield from self._again(
                [place.at(k) for place in states], advance, k * self.every, (k + 1) * self.every
            )

    def _again(
        self, first: list[CudaArgument], advance: Advance, a: int, b: int, depth: int = 0
    ) -> Iterator[CardPiece]:
        """The steps a ... b once more from a state: all of them, or some checkpoints and then what lies between. What one
        stretch is done with, the next one overwrites: on a stream work is in order."""
        r, sizes = self.runner, [*self.sizes.values()] * (len(first) // 2)
        stride = -(-(b - a) // max(2, MEMORY_LIMIT // max(1, r.count * sum(sizes))))
        starts = range(a, b, stride)
        key = depth, len(starts), len(first)
        if key not in self.rooms:
            self.rooms[key] = [r.empty(len(starts), size) for size in sizes]
        states = [place for _, place in self.rooms[key]]
        advance(first, a, stride * (len(starts) - 1), stride, states)
        if stride == 1:
            yield a, b, states
            return
        for i in reversed(range(len(starts))):
            at = [place.at(i) for place in states]
            yield from self._again(at, advance, starts[i], min(b, starts[i] + stride), depth + 1)


class CudaTangentSteps(TangentSteps):
    """The changes where the motion begins are a sample, too."""

    @cached_property
    def rollout(self) -> Rollout:
        return replace(super().rollout, samples_start=True)


@dataclass(frozen=True, eq=False)
class TangentStep:
    """Tangent vectors of q and its nq numbers, in a step of one block: the `rate` of these along a vector; the `slope` along
    all vectors, from that by the numbers; the `turn` of that slope, where the numbers' slope turns and they move. And where
    q is what was given, which begins as unit(q): changes `moved`, gradients `weighed`, and these `turned` (`initial_state.py`)."""

    machine: RolloutProgram
    wanted: str
    flops = 0

    @cached_property
    def rollout(self) -> Rollout:
        m, begun = self.machine.manifold, partial(InitialState, self.machine.manifold)
        rules = {
            "rate": lambda q, x: m.rate(q, x),
            "slope": lambda q, x: m.tangent_gradient(q, x),
            "turn": lambda q, x, slope, moved: tangent_turn(m, q, x, slope, moved),
            "moved": lambda q, x: begun(q).jvp(x),
            "weighed": lambda q, x, first: begun(q).vjp(x + first),
            "turned": lambda q, x, slope, first, moved: (
                begun(q).vjp(x) + begun(q).vjp_derivative(slope + first, moved)
            ),
        }
        rule = rules[self.wanted]
        sizes = dict.fromkeys(signature(rule).parameters, m.nq) | (
            {"x": m.nv} if self.wanted == "rate" else {}
        )
        code = trace(self.wanted, sizes, lambda **given: {self.wanted: rule(**given)})
        return Rollout(
            BlockFrame({self.wanted: (code, {})}),
            (self.wanted,),
            tuple(sizes),
            (),
            (self.wanted,),
            prologue=(),
        )
