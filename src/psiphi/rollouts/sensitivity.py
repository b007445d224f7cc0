"""Derivatives of a motion that has run: backwards for gradients, once more alongside for the effect of changes.

Backwards every step needs the state it began with. Samples of every step have them; otherwise the steps from one sample to
the next run again, as many at once as fit into ROOM, from checkpoints in between where even one stretch does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.closed.closed_function import lasting
from psiphi.closed.implicit import ranks
from psiphi.control.plant import Plant
from psiphi.errors import SingularError
from psiphi.rollouts.curving import Bending, Curving
from psiphi.rollouts.differentiated import STATE, Along, Backwards
from psiphi.rollouts.machine import Recipe
from psiphi.rollouts.mending import Careful
from psiphi.rollouts.runner import Arrays, compiled
from psiphi.rollouts.supply import Drive
from psiphi.sweeps.program import PARAMETERS

SEEN = 32  # states of a closed chain's motion that are looked at
ROOM = 1 << 24  # numbers that states and weights may take, of all motions together
Piece = tuple[int, int, np.ndarray, np.ndarray]  # steps a ... b, and the states (B, b - a, n) they begin with


class Sensitivity:
    """The derivatives of the motions (B, samples, n) that a runner made, every `every` steps."""

    def __init__(self, plant: Plant, drive: Drive, plan: Recipe, runner: Careful, states: Arrays, every: int):
        self.plant, self.drive, self.plan, self.runner, self.every = plant, drive, plan, runner, every
        self.q, self.v = states
        self.steps = every * (self.q.shape[1] - 1)
        self.within = drive.losses.parameters(plant.robot)  # places whose numbers are parameters
        self.rough = self._rough() if plan.closure else None

    def _rough(self) -> np.ndarray:
        """Which motions of a closed chain have no derivative: some of their steps ran in Python, or the rank of the
        constraints does not stay."""
        system, some = self.plant.given, slice(None, None, max(1, self.q.shape[1] // SEEN))
        lost = self.runner.mended | ~lasting(system, self.q[:, some], self.v[:, some])
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

    @property
    def names(self) -> tuple[str, ...]:
        """The places a derivative is taken by, besides the state: torques, a controller's numbers, parameters of the robot."""
        fixed = (name for name in self.plan.given if name in ("tau", PARAMETERS) or name.startswith("law."))
        return (*fixed, *(name for name in self.plan.tables if name == "tau"))

    def back(self, q_weight: np.ndarray, v_weight: np.ndarray) -> dict[str, np.ndarray]:
        """Gradients by place, (B, n), of a table (B, steps, n); the weights are (B, samples, n)."""
        names = self._with_places(self.names)
        code = compiled(self.plant.given, self.plan, Backwards, names)
        sizes = {name: self._size(name) for name in (*STATE, *names)}
        rows = [name for name in names if name in self.plan.tables]
        bar = {name: np.zeros((self.runner.count, 1, n)) for name, n in sizes.items() if name not in rows}
        table = {name: np.empty((self.runner.count, self.steps, sizes[name])) for name in rows}
        for a, b, q, v in self._pieces():
            tables = self.drive.tables(self.plan, a, b - a, self.runner.dt)
            each = [q, v, *(self.runner.table(tables[name]) for name in self.plan.tables)]
            each += [self._weights(w, a, b) for w in (q_weight, v_weight)]
            ends = {name: np.empty_like(x) for name, x in bar.items()}
            out = [_in_place(x, b - a) for x in ends.values()] + [x[:, a:b][:, ::-1] for x in table.values()]
            given = [self.runner.given[name] for name in self.plan.given if name not in STATE]
            code.run([*given, *bar.values(), *(x[:, ::-1] for x in each), *out], b - a, 1)
            bar = ends
        bar["q"] = bar["q"] + q_weight[:, :1]
        bar["v"] = bar["v"] + v_weight[:, :1]
        return self._sound(self._gathered({name: x[:, 0] for name, x in bar.items()}) | table)

    def along(self, changes: Mapping[str, np.ndarray]) -> Arrays:
        """(dq, dv) (B, samples, n) for changes of places, (B, n) or (B, steps, n); others do not change."""
        return self._moved(Along, [changes])

    def bend(self, *changes: Mapping[str, np.ndarray]) -> Arrays:
        """What (dq, dv) of the first changes turn by along the second ones, and where they themselves change by the third."""
        self._check_bent()
        return self._moved(Bending, changes)

    def _moved(self, kind: type[Along], changes: Sequence[Mapping[str, np.ndarray]]) -> Arrays:
        """The last of what is carried beside the motions, (B, samples, n) each."""
        every = [self._spread(row) for row in changes]
        names = self._with_places(tuple(name for name in self.names if any(name in row for row in every)))
        every = [{name: self._full(row.get(name, 0.0), name) for name in (*STATE, *names)} for row in every]
        found = tuple(np.empty_like(x) for x in (self.q, self.v))
        for room, name in zip(found, STATE, strict=True):
            room[:, 0] = every[-1][name]
        first = [self.q[:, :1], self.v[:, :1], *(row[name][:, None] for row in every for name in STATE)]
        rest = [_in_place(np.empty((len(x), 1, x.shape[-1])), self.q.shape[1] - 1) for x in first[:-2]]
        if self.steps and self.runner.count:
            Beside(self, names, every, kind).run(first, 0, self.steps, self.every, [*rest, *(x[:, 1:] for x in found)])
        return tuple(self._sound(dict(zip(STATE, found, strict=True))).values())

    def _check_bent(self) -> None:
        """Whether motions have second derivatives: rows that follow in every posture are left out, others are in the way."""
        system = self.plant.given
        whole = self.plan.closure and (system._lasting_rank or system.nc)
        if whole and (ranks(system._over_samples().constraint_jacobian(self.q)) < whole).any():
            cause = "this motion has no second derivatives: constraints follow from others"
            raise SingularError(cause, "use a kind of loop without rows to spare, or take differences of gradients")

    def _full(self, change: Any, name: str) -> np.ndarray:
        """A change of a place, (B, n) or (B, steps, n)."""
        size, count = self._size(name), self.runner.count
        return np.broadcast_to(change, (count, self.steps, size) if name in self.plan.tables else (count, size))

    def curve(self, q_weight: np.ndarray, v_weight: np.ndarray, changes: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the gradients of `back` change by, by place, for changes of places as in `along`: forward over backward."""
        self._check_bent()
        names, changes = self._with_places(self.names), self._spread(changes)
        sizes = {name: self._size(name) for name in (*STATE, *names)}
        rows, count = [name for name in names if name in self.plan.tables], self.runner.count
        changes = {name: self._full(changes.get(name, 0.0), name) for name in sizes}
        beside, code = Beside(self, names, [changes]), compiled(self.plant.given, self.plan, Curving, names)
        state = {name: np.zeros((count, 1, sizes[name])) for name in STATE}  # gradients that go on; what they change by:
        turn = {name: np.zeros((count, 1, n)) for name, n in sizes.items() if name not in rows}
        table = {name: np.empty((count, self.steps, sizes[name])) for name in rows}
        for a, b, *states in beside.pieces(ROOM):
            tables = self.drive.tables(self.plan, a, b - a, self.runner.dt)
            each = [*states[:2], *(self.runner.table(tables[name]) for name in self.plan.tables)]
            each += [self._weights(w, a, b) for w in (q_weight, v_weight)]
            each += [*states[2:], *(changes[name][:, a:b] for name in rows)]
            ends = [np.empty_like(x) for x in (*state.values(), *turn.values())]
            out = [_in_place(x, b - a) for x in ends] + [x[:, a:b][:, ::-1] for x in table.values()]
            given = [self.runner.given[name] for name in self.plan.given if name not in STATE]
            given += [changes[name][:, None] for name in names if name not in rows]
            code.run([*given, *state.values(), *turn.values(), *(x[:, ::-1] for x in each), *out], b - a, 1)
            state, turn = dict(zip(state, ends[:2], strict=True)), dict(zip(turn, ends[2:], strict=True))
        return self._sound(self._gathered({name: x[:, 0] for name, x in turn.items()}) | table)

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
        fixed = [name for name in self.plan.given if name in names or name in self.within]
        return (*fixed, *(name for name in names if name not in fixed))

    def _size(self, name: str) -> int:
        if name in (*STATE, "tau"):
            return self.plant.nq if name == "q" else self.plant.nv
        return self.runner.given[name].shape[-1]

    def _weights(self, weights: np.ndarray, a: int, b: int) -> np.ndarray:
        """Of the states that the steps a ... b end with, (B, b - a, n): zero between samples."""
        if self.every == 1:
            return weights[:, a + 1 : b + 1]
        ends = np.arange(a + 1, b + 1)
        on = ends % self.every == 0
        out = np.zeros((len(weights), b - a, weights.shape[-1]))
        out[:, on] = weights[:, ends[on] // self.every]
        return out

    def _pieces(self) -> Iterator[Piece]:
        """The last first."""
        room = max(1, ROOM // max(1, 2 * self.runner.count * self.runner.width))
        length = max(1, room // self.every) * self.every
        for b in range(self.steps if self.runner.count else 0, 0, -length):
            a = max(0, b - length)
            if self.every == 1:
                yield a, b, self.q[:, a:b], self.v[:, a:b]
            else:
                yield from self._again(self.q[:, a // self.every], self.v[:, a // self.every], a, b, room)

    def _again(self, q: np.ndarray, v: np.ndarray, a: int, b: int, room: int) -> Iterator[Piece]:
        """The steps a ... b once more from (q, v) (B, n): all of them, or some checkpoints and then what lies between."""
        stride = -(-(b - a) // room)
        starts = range(a, b, stride)
        Q, V = (np.empty((len(x), len(starts), x.shape[-1])) for x in (q, v))
        Q[:, 0], V[:, 0] = q, v
        if len(starts) > 1:
            self.runner.advance(q, v, a, stride * (len(starts) - 1), stride, (Q[:, 1:], V[:, 1:]))
        if stride == 1:
            yield a, b, Q, V
            return
        for i in reversed(range(len(starts))):
            yield from self._again(Q[:, i], V[:, i], starts[i], min(b, starts[i] + stride), room)


class Beside:
    """Motions run once more, with what they change by for changes of places, (B, n) or (B, steps, n): one a row."""

    def __init__(self, of: Sensitivity, names: tuple[str, ...], changes: Sequence[Mapping[str, np.ndarray]], kind: Any = Along):
        self.of, self.names, self.changes = of, names, changes
        self.code = compiled(of.plant.given, of.plan, kind, names)

    def run(self, first: Sequence[np.ndarray], start: int, steps: int, every: int, out: list[np.ndarray]) -> None:
        """From (q, v, dq, dv, ...) (B, 1, n) each at step `start`, every `every`-th of them into out (B, steps // every, n)."""
        of, plan = self.of, self.of.plan
        tables = of.drive.tables(plan, start, steps, of.runner.dt)
        given = [*first, *(of.runner.given[name] for name in plan.given if name not in STATE)]
        given += [row[name][:, None] for row in self.changes for name in self.names if name not in plan.tables]
        each = [of.runner.table(tables[name]) for name in plan.tables]
        each += [row[name][:, start : start + steps] for row in self.changes for name in self.names if name in plan.tables]
        self.code.run([*given, *each, *out], steps, every)

    def pieces(self, room: int) -> Iterator[tuple[Any, ...]]:
        """(a, b, q, v, dq, dv) of the steps a ... b, the last first: all that they begin with, from checkpoints."""
        of = self.of
        length = max(1, room // max(1, 4 * of.runner.count * of.runner.width))
        starts = range(0, of.steps if of.runner.count else 0, length)
        first = [of.q[:, :1], of.v[:, :1], *(row[name][:, None] for row in self.changes for name in STATE)]
        marks = self._states(first, 0, len(starts), length) if len(starts) else []
        for i in reversed(range(len(starts))):
            a, b = starts[i], min(of.steps, starts[i] + length)
            yield a, b, *self._states([x[:, i : i + 1] for x in marks], a, b - a, 1)

    def _states(self, first: Sequence[np.ndarray], start: int, rows: int, every: int) -> list[np.ndarray]:
        """`rows` states, `every` steps apart, the first among them."""
        out = [np.empty((x.shape[0], rows, x.shape[2])) for x in first]
        for x, own in zip(out, first, strict=True):
            x[:, :1] = own
        if rows > 1:
            self.run(first, start, (rows - 1) * every, every, [x[:, 1:] for x in out])
        return out


def _in_place(x: np.ndarray, rows: int) -> np.ndarray:
    """(B, 1, n) as (B, rows, n): every row is the same memory, in which the last one remains."""
    return np.lib.stride_tricks.as_strided(x, (x.shape[0], rows, x.shape[2]), (x.strides[0], 0, x.strides[2]))
