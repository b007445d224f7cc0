"""Derivatives of a motion that has run: backwards for gradients, once more alongside for the effect of changes.

Backwards every step needs the state it began with. Samples of every step have them; otherwise the steps from one sample to
the next run again, as many at once as fit into ROOM, from checkpoints in between where even one stretch does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.robot.mechanisms.closed_functions.closed_function import constant_rank
from psiphi.robot.mechanisms.closed_functions.implicit_theorem import (
    RangeNullSplit,
    rank_is_constant,
    ranks,
)
from psiphi.simulation.compiled_rollout.python_fallback import FallbackRunner
from psiphi.simulation.compiled_rollout.rollout_runner import Arrays, rollout_kernel
from psiphi.simulation.rollout_derivatives.second_order import (
    SecondOrderAdjoint,
    SecondOrderTangent,
)
from psiphi.simulation.rollout_derivatives.step_derivatives import (
    STATE,
    AdjointSteps,
    DifferentiatedRollout,
    TangentSteps,
)

SEEN = 32  # of a closed chain's states
MEMORY_LIMIT = 1 << 24  # numbers that states and weights may take, of all motions together
RunPiece = tuple[
    int, int, list[np.ndarray]
]  # steps a ... b, and the states (B, b - a, n) they begin with
# from a state, at step, steps, every, results
Advance = Callable[[Sequence[np.ndarray], int, int, int, Sequence[np.ndarray]], None]


class RolloutAdjoint:
    """The derivatives of the motions (B, samples, n) that a runner made, every `every` steps; `followed` is what the controller
    followed when they ran."""

    def __init__(self, runner: FallbackRunner, states: Arrays, every: int, followed: Arrays = ()):
        self.followed = followed
        self.plant, self.drive, self.options, self.runner, self.every = (
            runner.plant,
            runner.rollout_input,
            runner.options,
            runner,
            every,
        )
        self.q, self.v = states
        self.steps = every * (self.q.shape[1] - 1)
        self.within = self.drive.losses.parameter_slices(
            self.plant.robot
        )  # places whose numbers are parameters
        self.rough = self._rough() if self.options.closure else None

    def _check_followed(self) -> None:
        """Whether the reference answers as it did when the motion ran: derivatives ask it once more."""
        for then, now in zip(self.followed, self.runner.reference_samples(self.steps), strict=True):
            if not np.array_equal(then, now, equal_nan=True):
                cause = "rollout: what the controller follows is another motion now than when this one ran"
                raise StateError(
                    cause,
                    "give a function of t alone, and what it reads arrays of their own, or run it again",
                )

    @property
    def _some(self) -> Arrays:
        """States of a closed chain's motion that are looked at."""
        return tuple(x[:, :: max(1, x.shape[1] // SEEN)] for x in (self.q, self.v))

    @property
    def _chain(self) -> Any:
        """The closed chain of the motions in a row: parameters with batch axes are one set a motion."""
        batch = self.runner.batch
        return self.plant.system.at_elements(batch, np.ones(batch, dtype=bool))

    def _rough(self) -> np.ndarray:
        """Which motions of a closed chain have no derivative: some of their steps ran in Python, or the rank of the
        constraints does not stay."""
        lost = self.runner.ran_in_python | ~constant_rank(self._chain, *self._some)
        if lost.any() and not self.runner.batch:
            cause = "this motion has no derivative: constraints that follow from others on it do not stay so beside it"
            raise SingularError(cause, "start from another configuration")
        return lost

    def _sound(self, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Derivatives by place (B, ...): NaN of motions that have none."""
        if self.rough is not None and self.rough.any():
            for x in found.values():
                x[self.rough] = np.nan
        return dict(found)

    def back(self, q_weight: np.ndarray, v_weight: np.ndarray) -> dict[str, np.ndarray]:
        """Gradients by place, (B, n), of a table (B, steps, n); the weights are (B, samples, n)."""
        self._check_followed()
        names, weights = self._with_places(self.options.derivative_places), (q_weight, v_weight)
        pieces = self._pieces((self.q, self.v), self._advance)
        found = self._reversed(AdjointSteps, names, self._held(names), pieces, weights, {})
        found |= {name: found[name] + w[:, 0] for name, w in zip(STATE, weights, strict=True)}
        return self._sound(self._gathered(found))

    def along(self, changes: Mapping[str, np.ndarray]) -> Arrays:
        """(dq, dv) (B, samples, n) for changes of places, (B, n) or (B, steps, n); others do not change."""
        return self._moved(TangentSteps, [changes])

    def bend(self, *changes: Mapping[str, np.ndarray]) -> Arrays:
        """What (dq, dv) of the first changes turn by along the second ones, and where they themselves change by the third."""
        self._check_bent()
        return self._moved(SecondOrderTangent, changes)

    def _moved(
        self, kind: type[TangentSteps], changes: Sequence[Mapping[str, np.ndarray]]
    ) -> Arrays:
        """The last of what is carried beside the motions, (B, samples, n) each."""
        self._check_followed()
        rows = [self._spread(row) for row in changes]
        names = self._with_places(
            tuple(
                name for name in self.options.derivative_places if any(name in row for row in rows)
            )
        )
        found = self._beside(kind, names, [self._whole(row, names) for row in rows])
        return tuple(self._sound(dict(zip(STATE, found, strict=True))).values())

    def _check_bent(self) -> None:
        """Whether motions have second derivatives: rows that follow from others are left out, and must stay so beside them."""
        if not self.options.closure:
            return
        (q, v), system = self._some, self._chain.with_sample_axis()
        Jc = system.constraint_jacobian(q)
        own = ranks(Jc)
        for rank in set(own.ravel().tolist()) - {system.nc}:
            here = own == rank
            if not rank_is_constant(
                system.at_elements(here.shape, here),
                q[here],
                v[here],
                Jc[here],
                RangeNullSplit(Jc[here], rank),
            ).all():
                cause = "this motion has no second derivatives: constraints that follow from others on it do not stay so"
                raise SingularError(cause, "start from another configuration")

    def _whole(
        self, changes: Mapping[str, np.ndarray], names: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Changes of the state and of places, (B, n) or (B, steps, n): zero where there are none."""
        shapes = {
            name: (self.steps, self._size(name))
            if name in self.options.packed_per_step
            else (self._size(name),)
            for name in names
        }
        shapes |= {name: (self._size(name),) for name in STATE}
        return {
            name: np.broadcast_to(changes.get(name, 0.0), (self.runner.count, *shape))
            for name, shape in shapes.items()
        }

    def curve(
        self, q_weight: np.ndarray, v_weight: np.ndarray, changes: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """What the gradients of `back` change by, by place, for changes of places as in `along`: forward over backward."""
        self._check_followed()
        self._check_bent()
        names = self._with_places(self.options.derivative_places)
        whole = self._whole(self._spread(changes), names)
        moved = self._beside(TangentSteps, names, [whole])
        pieces = self._pieces(
            (self.q, self.v, *moved), partial(self._advance_beside, TangentSteps, names, [whole])
        )
        held = {f"{name}_bar": self._size(name) for name in STATE} | self._held(names)
        found = self._reversed(SecondOrderAdjoint, names, held, pieces, (q_weight, v_weight), whole)
        return self._sound(
            self._gathered({name: x for name, x in found.items() if name not in ("q_bar", "v_bar")})
        )

    def _held(self, names: tuple[str, ...]) -> dict[str, int]:
        """What goes on from step to step: by the state, and by places that stay the same."""
        return {
            name: self._size(name)
            for name in (*STATE, *names)
            if name not in self.options.packed_per_step
        }

    def _reversed(
        self,
        kind: type[DifferentiatedRollout],
        names: tuple[str, ...],
        held: dict[str, int],
        pieces: Iterator[RunPiece],
        weights: Sequence[np.ndarray],
        changes: Mapping[str, np.ndarray],
    ) -> dict[str, np.ndarray]:
        """What reversed steps leave: what they hold on to, (B, n), and what they give anew, (B, steps, n). Behind q and v a
        piece may have what these change by; `changes` are those of the other places."""
        code, count = (
            rollout_kernel(self.plant.system, self.options, kind, names),
            self.runner.count,
        )
        rows = [name for name in names if name in self.options.packed_per_step]
        bar = [np.zeros((count, 1, n)) for n in held.values()]
        table = {name: np.empty((count, self.steps, self._size(name))) for name in rows}
        given = [
            self.runner.constants[name] for name in self.options.packed_once if name not in STATE
        ]
        given += [changes[name][:, None] for name in names if name in changes and name not in rows]
        for a, b, states in pieces:
            tables = self.drive.tables(self.options, a, b - a, self.runner.dt)
            each = [
                *states[:2],
                *(self.runner.as_table(tables[name]) for name in self.options.packed_per_step),
            ]
            each += [self._weights(w, a, b) for w in weights]
            each += [*states[2:], *(changes[name][:, a:b] for name in rows if name in changes)]
            ends = [np.empty_like(x) for x in bar]
            out = [_in_place(x, b - a) for x in ends] + [x[:, a:b][:, ::-1] for x in table.values()]
            code.run([*given, *bar, *(x[:, ::-1] for x in each), *out], b - a, 1)
            bar = ends
        return {name: x[:, 0] for name, x in zip(held, bar, strict=True)} | table

    def _beside(
        self,
        kind: type[TangentSteps],
        names: tuple[str, ...],
        changes: Sequence[Mapping[str, np.ndarray]],
    ) -> Arrays:
        """The last (dq, dv) of all samples: the motion once more, with what it changes by along every row of changes."""
        found = tuple(np.empty_like(x) for x in (self.q, self.v))
        for room, name in zip(found, STATE, strict=True):
            room[:, 0] = changes[-1][name]
        first = [self.q[:, 0], self.v[:, 0], *(row[name] for row in changes for name in STATE)]
        rest = [
            _in_place(np.empty((len(x), 1, x.shape[-1])), self.q.shape[1] - 1) for x in first[:-2]
        ]
        if self.steps and self.runner.count:
            out = [*rest, *(x[:, 1:] for x in found)]
            self._advance_beside(kind, names, changes, first, 0, self.steps, self.every, out)
        return found

    def _advance(
        self,
        first: Sequence[np.ndarray],
        start: int,
        steps: int,
        every: int,
        out: Sequence[np.ndarray],
    ) -> None:
        """The motion from its state (B, n) at step `start`: every `every`-th of `steps` after it."""
        self.runner.advance(first[0], first[1], start, steps, every, tuple(out))

    def _advance_beside(
        self,
        kind: type[TangentSteps],
        names: tuple[str, ...],
        changes: Sequence[Mapping[str, np.ndarray]],
        first: Sequence[np.ndarray],
        start: int,
        steps: int,
        every: int,
        out: Sequence[np.ndarray],
    ) -> None:
        """The same with what it changes by, (q, v, dq, dv, ...), for rows of changes of places, (B, n) or (B, steps, n)."""
        plan, code = self.options, rollout_kernel(self.plant.system, self.options, kind, names)
        tables = self.drive.tables(plan, start, steps, self.runner.dt)
        given = [
            *(x[:, None] for x in first),
            *(self.runner.constants[name] for name in plan.packed_once if name not in STATE),
        ]
        given += [
            row[name][:, None]
            for row in changes
            for name in names
            if name not in plan.packed_per_step
        ]
        each = [self.runner.as_table(tables[name]) for name in plan.packed_per_step]
        each += [
            row[name][:, start : start + steps]
            for row in changes
            for name in names
            if name in plan.packed_per_step
        ]
        code.run([*given, *each, *out], steps, every)

    def _spread(self, changes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """And those of the places whose numbers are parameters."""
        found = dict(changes)
        for place in self.within if PARAMETERS in changes else ():
            found[place] = np.zeros((self.runner.count, self.plant.nv))
            for own, among in self.within[place]:
                found[place][:, own] = changes[PARAMETERS][:, among]
        return found

    def _gathered(self, bar: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Gradients by places whose numbers are parameters, among the parameters'."""
        for place, shares in self.within.items():
            part = bar.pop(place)
            for own, among in shares:
                bar[PARAMETERS][..., among] += part[..., own]
        return bar

    def _with_places(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """And, for the parameters, where else their numbers stand: in the order of what is given."""
        if PARAMETERS not in names:
            return names
        fixed = [name for name in self.options.packed_once if name in names or name in self.within]
        return (*fixed, *(name for name in names if name not in fixed))

    def _size(self, name: str) -> int:
        known = {"q": self.plant.nq, "v": self.plant.nv, "tau": self.plant.nv}
        return known.get(name) or self.runner.constants[name].shape[-1]

    def _weights(self, weights: np.ndarray, a: int, b: int) -> np.ndarray:
        """Of the states that the steps a ... b end with, (B, b - a, n): zero between samples."""
        if self.every == 1:
            return weights[:, a + 1 : b + 1]
        ends = np.arange(a + 1, b + 1)
        on = ends % self.every == 0
        out = np.zeros((len(weights), b - a, weights.shape[-1]))
        out[:, on] = weights[:, ends[on] // self.every]
        return out

    def _pieces(self, samples: Sequence[np.ndarray], advance: Advance) -> Iterator[RunPiece]:
        """The last first, of samples (B, samples, n) of q and v, or of these and what they change by."""
        room = max(
            1, MEMORY_LIMIT // max(1, 2 * self.runner.count * sum(x.shape[-1] for x in samples))
        )
        length = max(1, room // self.every) * self.every
        for b in range(self.steps if self.runner.count else 0, 0, -length):
            a = max(0, b - length)
            if self.every == 1:
                yield a, b, [x[:, a:b] for x in samples]
            else:
                yield from self._again(
                    [x[:, a // self.every] for x in samples], advance, a, b, room
                )

    def _again(
        self, first: Sequence[np.ndarray], advance: Advance, a: int, b: int, room: int
    ) -> Iterator[RunPiece]:
        """The steps a ... b once more from a state (B, n): all of them, or some checkpoints and then what lies between."""
        stride = -(-(b - a) // max(2, room))  # of one checkpoint the stretch would be as long again
        starts = range(a, b, stride)
        states = [np.empty((len(x), len(starts), x.shape[-1])) for x in first]
        for own, x in zip(states, first, strict=True):
            own[:, 0] = x
        if len(starts) > 1:
            advance(first, a, stride * (len(starts) - 1), stride, [x[:, 1:] for x in states])
        if stride == 1:
            yield a, b, states
            return
        for i in reversed(range(len(starts))):
            yield from self._again(
                [x[:, i] for x in states], advance, starts[i], min(b, starts[i] + stride), room
            )


def _in_place(x: np.ndarray, rows: int) -> np.ndarray:
    """(B, 1, n) as (B, rows, n): every row is the same memory, in which the last one remains."""
    return np.lib.stride_tricks.as_strided(
        x, (x.shape[0], rows, x.shape[2]), (x.strides[0], 0, x.strides[2])
    )
