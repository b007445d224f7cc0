"""The derivatives of a motion that has run on the CPU: steps in reverse for gradients, the motion
once more with its changes for directional derivatives.

In reverse, every step needs the state from which it started. If not every step was sampled, the
steps between two samples run again, as many at once as fit into MEMORY_LIMIT; if not even one such
interval fits, from checkpoints inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.contact.ground import Ground
from psiphi.robot.mechanisms.closed_functions.closed_function import constant_rank
from psiphi.robot.mechanisms.closed_functions.implicit_theorem import (
    RangeNullSplit,
    rank_is_constant,
    ranks,
)
from psiphi.robot.mechanisms.system import System
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

RANK_SAMPLES = 32  # states of a closed chain at which the rank of the constraints is checked
MEMORY_LIMIT = 1 << 24  # numbers of states and weights, of all motions together
ByPlace = Mapping[str, np.ndarray]  # (B, n), or (B, steps, n) of places that change with each step
# steps a ... b - 1, and the states (B, b - a, n) from which they start
RunPiece = tuple[int, int, list[np.ndarray]]
# (state, first step, steps, every, results)
Advance = Callable[[Sequence[np.ndarray], int, int, int, Sequence[np.ndarray]], None]


class RolloutAdjoint:
    """The derivatives of motions with samples (B, samples, n), one every `every` steps.

    `reference_samples` are samples of the controller's reference during the run.
    """

    def __init__(
        self, runner: FallbackRunner, states: Arrays, every: int, reference_samples: Arrays = ()
    ):
        self.runner, self.every, self.reference_samples = runner, every, reference_samples
        self.plant, self.options = runner.plant, replace(runner.options, records_stops=False)
        self.rollout_input = runner.rollout_input
        self.q, self.v = states
        self.steps = every * (self.q.shape[1] - 1)
        # places whose numbers are, or contain, parameters of the robot
        self.parameter_slices = self.rollout_input.losses.parameter_slices(self.plant.robot)
        self.without_derivative: np.ndarray | None = None
        if self.options.closure:
            self.without_derivative = self._singular_motions()
        elif self.options.contacts is not None:
            self.without_derivative = self._unsolved_motions(self.options.contacts.ground)

    def _check_reference(self) -> None:
        """Raise an error if the reference no longer has the values that it had during the run."""
        samples = self.runner.reference_samples(self.steps)
        for then, now in zip(self.reference_samples, samples, strict=True):
            if not np.array_equal(then, now, equal_nan=True):
                raise StateError(
                    "rollout: the controller's reference has changed since the motion ran",
                    "make the reference a function of t alone, which reads arrays that do not "
                    "change, or run the motion again",
                )

    @property
    def _rank_states(self) -> Arrays:
        """The states of a closed chain at which the rank of its constraints is checked."""
        return tuple(x[:, :: max(1, x.shape[1] // RANK_SAMPLES)] for x in (self.q, self.v))

    @property
    def _flat_system(self) -> System:
        """The closed chain for the flattened batch: batched parameters have one row a motion."""
        batch = self.runner.batch
        return self.plant.system.at_elements(batch, np.ones(batch, dtype=bool))

    def _singular_motions(self) -> np.ndarray:
        """Which motions of a closed chain have no derivative: those with steps that ran in Python,
        and those on which the rank of the constraints is not constant."""
        singular = self.runner.ran_in_python | ~constant_rank(self._flat_system, *self._rank_states)
        if singular.any() and not self.runner.batch:
            raise SingularError(
                "this motion has no derivative: the rank of its constraints is not constant "
                "near the motion",
                "start from another configuration",
            )
        return singular

    def _unsolved_motions(self, ground: Ground) -> np.ndarray:
        """Which motions have a step whose contacts violate the law by more than the tolerance: the
        equations of such contacts do not hold."""
        known = self.every * np.arange(self.q.shape[1])
        residual = self.runner.residuals.between(known).max(axis=(1, 2), initial=0.0)
        unsolved = residual > ground.tolerance
        if unsolved.any() and not self.runner.batch:
            raise SingularError(
                f"this motion has no derivative: its contacts violate the law by {residual[0]:.1g} "
                f"m/s, more than the tolerance of {ground.tolerance:g} m/s",
                "give the ground more iterations=, or accept the error with tolerance=",
            )
        return unsolved

    def _check_determined(self, found: ByPlace) -> None:
        """Raise an error if a single motion with contacts is finite, but not its derivative."""
        finite = all(np.isfinite(x).all() for x in (self.q, self.v))
        if finite and any(np.isnan(x).any() for x in found.values()):
            raise SingularError(
                "this motion has no derivative: at some step the law of contact does not say how "
                "redundant contacts that slip share the load",
                "give feet that slip at most three points, or the ground stiffness= and damping=",
            )

    def _mark_singular(self, found: ByPlace) -> dict[str, np.ndarray]:
        """Derivatives by place (B, ...), with NaN for motions that have none."""
        if self.without_derivative is not None and self.without_derivative.any():
            for x in found.values():
                x[self.without_derivative] = np.nan
        elif self.options.contacts is not None and not self.runner.batch:
            self._check_determined(found)
        return dict(found)

    def vjp(self, q_weight: np.ndarray, v_weight: np.ndarray) -> dict[str, np.ndarray]:
        """Gradients by place, (B, n) or (B, steps, n), of the sum of all samples with weights
        (B, samples, n)."""
        self._check_reference()
        places = self._with_parameter_places(self.options.derivative_places)
        weights = (q_weight, v_weight)
        pieces = self._pieces((self.q, self.v), self._advance)
        bars = self._run_reversed(AdjointSteps, places, self._carried(places), pieces, weights, {})
        bars |= {name: bars[name] + w[:, 0] for name, w in zip(STATE, weights, strict=True)}
        return self._mark_singular(self._gather_parameters(bars))

    def jvp(self, changes: ByPlace) -> Arrays:
        """(dq, dv), (B, samples, n), for changes by place; other places do not change."""
        return self._tangent(TangentSteps, [changes])

    def second_derivative(self, *changes: ByPlace) -> Arrays:
        """The change of (dq, dv) of the first changes, (B, samples, n), along the second ones, if
        the first themselves change by the third."""
        self._check_second_derivatives()
        return self._tangent(SecondOrderTangent, changes)

    def _tangent(self, kind: type[TangentSteps], changes: Sequence[ByPlace]) -> Arrays:
        """The last change of the state that these steps carry along, (B, samples, n)."""
        self._check_reference()
        rows = [self._spread_parameters(row) for row in changes]
        changed = tuple(
            name for name in self.options.derivative_places if any(name in row for row in rows)
        )
        places = self._with_parameter_places(changed)
        found = self._run_tangent(kind, places, [self._full_changes(row, places) for row in rows])
        return tuple(self._mark_singular(dict(zip(STATE, found, strict=True))).values())

    def _check_second_derivatives(self) -> None:
        """Raise an error if there are no second derivatives: with contacts, or if redundant
        constraint rows do not stay redundant near the motion."""
        if self.options.contacts is not None:
            raise StateError(
                "second derivatives of motions with contacts are not implemented",
                "use finite differences of vjp or jvp",
            )
        if not self.options.closure:
            return
        (q, v), system = self._rank_states, self._flat_system.with_sample_axis()
        Jc = system.constraint_jacobian(q)
        rank_of = ranks(Jc)
        for rank in set(rank_of.ravel().tolist()) - {system.nc}:
            here = rank_of == rank
            split = RangeNullSplit(Jc[here], rank)
            part = system.at_elements(here.shape, here)
            if not rank_is_constant(part, q[here], v[here], Jc[here], split).all():
                raise SingularError(
                    "this motion has no second derivatives: redundant constraint rows do not "
                    "stay redundant near the motion",
                    "start from another configuration",
                )

    def _full_changes(self, changes: ByPlace, places: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Changes of the state and of these places, with zeros where `changes` has none."""
        shapes: dict[str, tuple[int, ...]] = {}
        for name in places:
            size = self._size(name)
            is_table = name in self.options.packed_per_step
            shapes[name] = (self.steps, size) if is_table else (size,)
        shapes |= {name: (self._size(name),) for name in STATE}
        return {
            name: np.broadcast_to(changes.get(name, 0.0), (self.runner.count, *shape))
            for name, shape in shapes.items()
        }

    def vjp_derivative(
        self, q_weight: np.ndarray, v_weight: np.ndarray, changes: ByPlace
    ) -> dict[str, np.ndarray]:
        """The changes of the gradients of `vjp`, by place, for changes as in `jvp`: forward over
        reverse."""
        self._check_reference()
        self._check_second_derivatives()
        places = self._with_parameter_places(self.options.derivative_places)
        full = self._full_changes(self._spread_parameters(changes), places)
        tangent = self._run_tangent(TangentSteps, places, [full])
        advance = partial(self._advance_tangent, TangentSteps, places, [full])
        pieces = self._pieces((self.q, self.v, *tangent), advance)
        bars = {f"{name}_bar": self._size(name) for name in STATE}
        found = self._run_reversed(
            SecondOrderAdjoint,
            places,
            bars | self._carried(places),
            pieces,
            (q_weight, v_weight),
            full,
        )
        return self._mark_singular(
            self._gather_parameters({name: x for name, x in found.items() if name not in bars})
        )

    def _carried(self, places: tuple[str, ...]) -> dict[str, int]:
        """{place: size} of the gradients that reversed steps pass on: with respect to the state and
        to constant places."""
        return {
            name: self._size(name)
            for name in (*STATE, *places)
            if name not in self.options.packed_per_step
        }

    def _run_reversed(
        self,
        kind: type[DifferentiatedRollout],
        places: tuple[str, ...],
        carried: dict[str, int],
        pieces: Iterator[RunPiece],
        weights: Sequence[np.ndarray],
        changes: ByPlace,
    ) -> dict[str, np.ndarray]:
        """The results of reversed steps: what they carry, (B, n), and one row for each step,
        (B, steps, n).

        The states of a piece may be followed by their changes; `changes` are those of the other
        places.
        """
        runner, options = self.runner, self.options
        kernel, count = rollout_kernel(self.plant.system, options, kind, places), runner.count
        per_step = [name for name in places if name in options.packed_per_step]
        values = [np.zeros((count, 1, n)) for n in carried.values()]
        tables = {name: np.empty((count, self.steps, self._size(name))) for name in per_step}
        once = [runner.constants[name] for name in options.packed_once if name not in STATE]
        once += [
            changes[name][:, None] for name in places if name in changes and name not in per_step
        ]
        for a, b, states in pieces:
            inputs = self.rollout_input.tables(options, a, b - a, runner.dt)
            each = [*states[:2], *(runner.as_table(inputs[x]) for x in options.packed_per_step)]
            each += [self._step_weights(w, a, b) for w in weights]
            each += [*states[2:], *(changes[x][:, a:b] for x in per_step if x in changes)]
            results = [np.empty_like(x) for x in values]
            out = [_one_row(x, b - a) for x in results]
            out += [table[:, a:b][:, ::-1] for table in tables.values()]
            kernel.run([*once, *values, *(x[:, ::-1] for x in each), *out], b - a, 1)
            values = results
        return {name: x[:, 0] for name, x in zip(carried, values, strict=True)} | tables

    def _run_tangent(
        self, kind: type[TangentSteps], places: tuple[str, ...], changes: Sequence[ByPlace]
    ) -> Arrays:
        """Run the motion once more with its changes: the last (dq, dv) of all samples. `changes`
        has one element for each change that the steps carry along."""
        found = tuple(np.empty_like(x) for x in (self.q, self.v))
        for target, name in zip(found, STATE, strict=True):
            target[:, 0] = changes[-1][name]
        first = [self.q[:, 0], self.v[:, 0], *(row[name] for row in changes for name in STATE)]
        samples = self.q.shape[1] - 1
        unused = [_one_row(np.empty((len(x), 1, x.shape[-1])), samples) for x in first[:-2]]
        if self.steps and self.runner.count:
            out = [*unused, *(x[:, 1:] for x in found)]
            self._advance_tangent(kind, places, changes, first, 0, self.steps, self.every, out)
        return found

    def _advance(
        self,
        first: Sequence[np.ndarray],
        start: int,
        steps: int,
        every: int,
        out: Sequence[np.ndarray],
    ) -> None:
        """Run the motion from its state (B, n) at step `start`; store every `every`-th state."""
        self.runner.advance(first[0], first[1], start, steps, every, tuple(out))

    def _advance_tangent(
        self,
        kind: type[TangentSteps],
        places: tuple[str, ...],
        changes: Sequence[ByPlace],
        first: Sequence[np.ndarray],
        start: int,
        steps: int,
        every: int,
        out: Sequence[np.ndarray],
    ) -> None:
        """The same for the state and its changes (q, v, dq, dv, ...)."""
        runner, options = self.runner, self.options
        kernel = rollout_kernel(self.plant.system, options, kind, places)
        tables = self.rollout_input.tables(options, start, steps, runner.dt)
        once = [x[:, None] for x in first]
        once += [runner.constants[name] for name in options.packed_once if name not in STATE]
        each = [runner.as_table(tables[name]) for name in options.packed_per_step]
        for row in changes:
            for name in places:
                if name in options.packed_per_step:
                    each.append(row[name][:, start : start + steps])
                else:
                    once.append(row[name][:, None])
        kernel.run([*once, *each, *out], steps, every)

    def _spread_parameters(self, changes: ByPlace) -> dict[str, np.ndarray]:
        """The changes, and those of the places that contain the changed parameters."""
        found = dict(changes)
        for place in self.parameter_slices if PARAMETERS in changes else ():
            found[place] = np.zeros((self.runner.count, self.plant.nv))
            for entries, columns in self.parameter_slices[place]:
                found[place][:, entries] = changes[PARAMETERS][:, columns]
        return found

    def _gather_parameters(self, bars: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The gradients, with those of places that contain parameters added to the parameters'."""
        for place, slices in self.parameter_slices.items():
            bar = bars.pop(place)
            for entries, columns in slices:
                bars[PARAMETERS][..., columns] += bar[..., entries]
        return bars

    def _with_parameter_places(self, places: tuple[str, ...]) -> tuple[str, ...]:
        """The places, and if parameters are among them, the places that contain parameters; in the
        order of the kernel's inputs."""
        if PARAMETERS not in places:
            return places
        constant = [
            name
            for name in self.options.packed_once
            if name in places or name in self.parameter_slices
        ]
        return (*constant, *(name for name in places if name not in constant))

    def _size(self, name: str) -> int:
        sizes = {"q": self.plant.nq, "v": self.plant.nv, "tau": self.plant.nv}
        return sizes.get(name) or self.runner.constants[name].shape[-1]

    def _step_weights(self, weights: np.ndarray, a: int, b: int) -> np.ndarray:
        """The weights (B, b - a, n) of the states after steps a ... b - 1: zero between samples."""
        if self.every == 1:
            return weights[:, a + 1 : b + 1]
        numbers = np.arange(a + 1, b + 1)
        is_sample = numbers % self.every == 0
        out = np.zeros((len(weights), b - a, weights.shape[-1]))
        out[:, is_sample] = weights[:, numbers[is_sample] // self.every]
        return out

    def _pieces(self, samples: Sequence[np.ndarray], advance: Advance) -> Iterator[RunPiece]:
        """The steps in pieces, the last one first. `samples` (B, samples, n) are those of q and v,
        perhaps followed by their changes."""
        numbers = self.runner.count * sum(x.shape[-1] for x in samples)
        most_steps = max(1, MEMORY_LIMIT // max(1, 2 * numbers))
        length = max(1, most_steps // self.every) * self.every
        for b in range(self.steps if self.runner.count else 0, 0, -length):
            a = max(0, b - length)
            if self.every == 1:
                yield a, b, [x[:, a:b] for x in samples]
            else:
                first = [x[:, a // self.every] for x in samples]
                yield from self._recomputed_pieces(first, advance, a, b, most_steps)

    def _recomputed_pieces(
        self, first: Sequence[np.ndarray], advance: Advance, a: int, b: int, most_steps: int
    ) -> Iterator[RunPiece]:
        """The steps a ... b - 1, run again from a state (B, n): all of them, or checkpoints and
        then the steps between these."""
        # at least two checkpoints, as a single one would not shorten the interval
        stride = -(-(b - a) // max(2, most_steps))
        starts = range(a, b, stride)
        states = [np.empty((len(x), len(starts), x.shape[-1])) for x in first]
        for target, x in zip(states, first, strict=True):
            target[:, 0] = x
        if len(starts) > 1:
            advance(first, a, stride * (len(starts) - 1), stride, [x[:, 1:] for x in states])
        if stride == 1:
            yield a, b, states
            return
        for i in reversed(range(len(starts))):
            checkpoint = [x[:, i] for x in states]
            end = min(b, starts[i] + stride)
            yield from self._recomputed_pieces(checkpoint, advance, starts[i], end, most_steps)


def _one_row(x: np.ndarray, rows: int) -> np.ndarray:
    """(B, 1, n) as (B, rows, n) in the same memory: the last row written remains."""
    return np.lib.stride_tricks.as_strided(
        x, (x.shape[0], rows, x.shape[2]), (x.strides[0], 0, x.strides[2])
    )
