"""What `pp.rollout` gives: the states, and the derivatives of the motion by where it began and by what drove it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Array
from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi._util.validate import read_array
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions.arrays.function_registry import sum_repeated
from psiphi.simulation.control.torque_input import TorqueInput
from psiphi.simulation.plant import parameters_of
from psiphi.simulation.rollout_derivatives.rollout_adjoint import RolloutAdjoint
from psiphi.simulation.rollout_derivatives.second_order import tangent_turn

SEEN = 64  # states that are looked at again


class MotionStates(tuple[Any, Any]):
    """(q, v), as a tuple; `places` is what a derivative is taken by besides the beginning: by name, its place in the kernel."""

    places: Any

    def __reduce__(self) -> Any:
        """A copy in another process is the states alone."""
        return tuple, (tuple(self),)

    @property
    def q(self) -> Any:
        return self[0]

    @property
    def v(self) -> Any:
        return self[1]

    def _check_names(self, what: str, others: Iterable[str]) -> None:
        """Refuse derivatives by what drives nothing here."""
        for name in others:
            if name not in self.places:
                raise StateError(
                    f"{what} by {name!r}, which drives nothing here",
                    nearest(name, ["q", "v", *self.places]),
                )


class RolloutResult(MotionStates):
    """(q, v), as a tuple; `vjp` and `jvp` are the motion's derivatives, taken at the states in these arrays: once other numbers
    stand there (`out=` used again, q changed in place) they are refused."""

    tau: TorqueArgument | None
    _made: Callable[[], RolloutAdjoint]
    _seen: list[np.ndarray]

    @classmethod
    def of(
        cls,
        states: tuple[Array, Array],
        ways: Callable[[], RolloutAdjoint],
        tau: TorqueArgument | None,
    ) -> RolloutResult:
        self = cls(states)
        self._made, self.tau, self._seen = ways, tau, [_some(x) for x in states]
        return self

    @property
    def ways(self) -> RolloutAdjoint:
        if not all(
            np.array_equal(_some(x), seen, equal_nan=True)
            for x, seen in zip(self, self._seen, strict=True)
        ):
            cause = "rollout: other numbers stand in the arrays of this motion, whose derivatives are taken there"
            raise StateError(
                cause, "copy them before you write into them, or give out= other arrays"
            )
        return self._sensitivity

    @cached_property
    def _sensitivity(self) -> RolloutAdjoint:
        return self._made()

    @property
    def places(self) -> dict[str, str]:
        places = {
            place.removeprefix("law."): place for place in self.ways.options.derivative_places
        }
        if self.tau is not None and not self.tau.is_given:
            del places["tau"]
        return places

    def vjp(self, q_weight: Any = None, v_weight: Any = None) -> dict[str, np.ndarray]:
        """Gradients of the weighted sum of all samples: by "q" and "v" of the beginning, by "tau" or the controller's numbers,
        by "parameters" where the robot has some (`robot.free`).

        Weights have the shapes of q and v (None: zero). The gradient by q is a tangent one, (..., nv), as everywhere; that by
        tau has the shape that tau was given in, summed over motions that shared it.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> motion = pp.rollout(robot, robot.neutral(), tau=np.zeros((50, 6)), steps=50)
        >>> last = np.zeros_like(motion.q)
        >>> last[-1, 0] = 1.0  # where the first joint ends
        >>> motion.vjp(last)["tau"].shape
        (50, 6)
        """
        bars = self.coordinate_gradients(q_weight, v_weight)
        return bars | {"q": self.ways.plant.manifold.tangent_gradient(self.q[..., 0, :], bars["q"])}

    def coordinate_gradients(self, q_weight: Any, v_weight: Any) -> dict[str, np.ndarray]:
        """The same by the nq numbers of q."""
        return self._by_name(self.ways.back(*self._weights(q_weight, v_weight)))

    def _weights(self, q_weight: Any, v_weight: Any) -> list[np.ndarray]:
        weights = _shaped("q_weight", q_weight, self.q), _shaped("v_weight", v_weight, self.v)
        return [x.reshape(-1, *x.shape[-2:]) for x in weights]

    def _by_name(self, bars: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Gradients by place (B, ...) as those of what was given."""
        lead = self.q.shape[:-2]
        bars = {name: x.reshape(*lead, *x.shape[1:]) for name, x in bars.items()}
        found = {name: bars[name] for name in ("q", "v")}
        for name, place in self.places.items():
            table = self.tau if name == "tau" else None
            found[name] = (
                table.gradient(bars[place])
                if table
                else sum_repeated(bars[place], self._numbers(name).shape)
            )
        return found

    def jvp(self, q: Any = None, v: Any = None, **others: Any) -> tuple[np.ndarray, np.ndarray]:
        """(dq, dv), shaped as q and v, for changes of the beginning (q: a tangent vector), of tau, of a controller's numbers.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> motion = pp.rollout(robot, robot.neutral(), tau=pp.PD(robot, robot.random(seed=1), kp=20.0, kd=2.0), steps=50)
        >>> dq, dv = motion.jvp(kp=np.ones(6))
        >>> dq.shape
        (51, 6)
        """
        dq, dv = self.ways.along(self._changes("jvp", q, v, others))
        return dq.reshape(self.q.shape), dv.reshape(self.v.shape)

    def hvp(
        self,
        q_weight: Any = None,
        v_weight: Any = None,
        q: Any = None,
        v: Any = None,
        **others: Any,
    ) -> dict[str, np.ndarray]:
        """What the gradients that `vjp` gives change by, for changes of the beginning and of what drove it, as `jvp` has them:
        second derivatives of the weighted sum times a vector, exact, at a few times the cost of the gradient.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("pelican")
        >>> motion = pp.rollout(robot, robot.neutral(), tau=np.zeros((20, 2)), steps=20)
        >>> motion.hvp(np.ones_like(motion.q), tau=np.ones((20, 2)))["tau"].shape
        (20, 2)
        """
        changes = self._changes("hvp", q, v, others)
        turns = self.coordinate_turns(q_weight, v_weight, changes)
        manifold, first = self.ways.plant.manifold, self.q[..., 0, :]
        if manifold.is_flat:
            return turns
        bar, moved = (
            self.coordinate_gradients(q_weight, v_weight)["q"],
            changes["q"].reshape(first.shape),
        )
        return turns | {
            "q": np.stack(tangent_turn(manifold, first, turns["q"], bar, moved), axis=-1)
        }

    def coordinate_turns(
        self, q_weight: Any, v_weight: Any, changes: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The same by the nq numbers of q, for changes by place (B, ...)."""
        w_q, w_v = self._weights(q_weight, v_weight)
        return self._by_name(self.ways.curve(w_q, w_v, changes))

    def _changes(self, what: str, q: Any, v: Any, others: dict[str, Any]) -> dict[str, np.ndarray]:
        """Changes by place (B, ...), q by its numbers."""
        self._check_names(what, others)
        first = self.v[..., 0, :]
        rate = self.ways.plant.manifold.rate(self.q[..., 0, :], _shaped("q", q, first))
        return self.placed(others | {"q": rate, "v": _shaped("v", v, first)})

    def placed(self, given: dict[str, Any]) -> dict[str, np.ndarray]:
        """Changes by place (B, ...), of such by name; those of q are of its numbers."""
        lead, changes = self.q.shape[:-2], {name: given[name] for name in ("q", "v")}
        for name in given.keys() - changes.keys():
            table = self.tau if name == "tau" else None
            row = (
                table.change(given[name])
                if table
                else _shaped(name, given[name], self._numbers(name))
            )
            core = 2 if self.places[name] in self.ways.options.packed_per_step else 1
            if table:  # steps behind the last sample change nothing that is kept
                row = row[..., 0, :] if core == 1 else row[..., : self.ways.steps, :]
            changes[self.places[name]] = np.broadcast_to(
                row, (*lead, *row.shape[row.ndim - core :])
            )
        return {
            name: x.reshape(self.ways.runner.count, *x.shape[len(lead) :])
            for name, x in changes.items()
        }

    def _numbers(self, name: str) -> np.ndarray:
        """A controller's, what it follows where that does not change, or parameters of the robot."""
        if name == PARAMETERS:
            return np.asarray(parameters_of(self.ways.plant.robot)[0])
        return np.asarray(self.ways.drive.constants()[self.places[name]])


@dataclass(frozen=True)
class TorqueArgument:
    """A table of torques (..., 1 or steps, nv), and the shape that it was given in."""

    torque: TorqueInput
    shape: tuple[int, ...]
    is_given: bool  # or is it nothing, as zeros
    effort: np.ndarray | None

    @property
    def table(self) -> np.ndarray:
        assert self.torque.table is not None
        return self.torque.table

    def gradient(self, bars: np.ndarray) -> np.ndarray:
        """(*batch, nv) or (*batch, steps, nv) in the shape of what was given: zero where it was cut, and behind the last
        sample."""
        bars = bars if bars.ndim == len(self.torque.batch) + 2 else bars[..., None, :]
        if (behind := self.table.shape[-2] - bars.shape[-2]) > 0:
            bars = np.concatenate(
                [bars, np.zeros((*bars.shape[:-2], behind, bars.shape[-1]))], axis=-2
            )
        bars = sum_repeated(bars, self.table.shape)
        if self.effort is not None:
            bars = np.where(np.abs(self.table) < self.effort, bars, 0.0)
        return bars[..., self._driven()].reshape(self.shape)

    def change(self, given: Any) -> np.ndarray:
        """A change of it as a table."""
        change = _shaped("tau", given, np.empty(self.shape))
        out = np.zeros(self.table.shape)
        out[..., self._driven()] = change.reshape(*self.table.shape[:-1], *self.shape[-1:])
        return out if self.effort is None else np.where(np.abs(self.table) < self.effort, out, 0.0)

    def _driven(self) -> np.ndarray:
        plant = self.torque.plant
        every = np.arange(plant.nv)
        return (
            every
            if not self.shape or self.shape[-1] == plant.nv
            else np.setdiff1d(every, plant.unactuated_indices)
        )


def _some(states: np.ndarray) -> np.ndarray:
    """A copy of the last state and of some of the others: enough to see that another motion stands there."""
    flat = states.reshape(math.prod(states.shape[:-1]), states.shape[-1])
    return np.concatenate([flat[:: max(1, len(flat) // SEEN)], flat[-1:]])


def _shaped(name: str, given: Any, like: np.ndarray) -> np.ndarray:
    """A weight or a change as an array of this shape; nothing is zero."""
    if given is None:
        return np.zeros(like.shape)
    array, fault = read_array(given, None)
    try:
        if not fault:
            return np.broadcast_to(array.astype(float, copy=False), like.shape)
    except ValueError:
        fault = f"has shape {array.shape}, expected {like.shape}"
    raise StateError(f"rollout: {name} {fault}", "give it the shape of what it belongs to")
