"""The result of `pp.rollout`: the states, and the derivatives of the motion with respect to its
initial state, its torques or its controller, and the parameters of the robot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi._util.validate import read_array
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions.arrays.function_registry import sum_repeated
from psiphi.simulation.compiled_rollout.rollout_program import input_name
from psiphi.simulation.control.torque_input import TorqueInput
from psiphi.simulation.plant import parameters_of
from psiphi.simulation.rollout_derivatives.rollout_adjoint import RolloutAdjoint
from psiphi.simulation.rollout_derivatives.second_order import tangent_gradient_derivative

COMPARED_STATES = 64  # states that are compared to detect changes of the arrays


def _shapes(states: tuple[Any, Any]) -> str:
    q, v = (tuple(x.shape) for x in states)
    return f"<rollout: q {q}, v {v}>"


class RolloutArrays(NamedTuple):
    """The tuple (q, v) of arrays of torch, JAX or Dask, whose library has the derivatives."""

    q: Any
    v: Any

    def __repr__(self) -> str:
        return _shapes(self)


class MotionStates(tuple[Any, Any]):
    """The tuple (q, v), with derivatives."""

    @property
    def places(self) -> dict[str, str]:
        """The inputs besides q and v with respect to which there are derivatives: {name: place in
        the kernel}."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        """Copies, also those in other processes, are named tuples without derivatives."""
        return RolloutArrays, tuple(self)

    def __repr__(self) -> str:
        return _shapes(self)

    @property
    def q(self) -> Any:
        return self[0]

    @property
    def v(self) -> Any:
        return self[1]

    def _check_names(self, method: str, names: Iterable[str]) -> None:
        """Raise an error for names that are not inputs of this motion."""
        for name in names:
            if name not in self.places:
                raise StateError(
                    f"{method} with respect to {name!r}, which is not an input of this motion",
                    nearest(name, ["q", "v", *self.places]),
                )


class RolloutResult(MotionStates):
    """The tuple (q, v) with derivatives `vjp`, `jvp` and `hvp`.

    Derivatives are taken at the states in these arrays. After the arrays were overwritten (`out=`
    used again, q changed in place) they raise an error.
    """

    tau: TorqueArgument | None
    contact_residual: np.ndarray | None = None  # (..., n), with contacts with the ground
    _make_adjoint: Callable[[], RolloutAdjoint]
    _original: list[np.ndarray]

    @classmethod
    def of(
        cls,
        states: tuple[Array, Array],
        make_adjoint: Callable[[], RolloutAdjoint],
        tau: TorqueArgument | None,
    ) -> RolloutResult:
        self = cls(states)
        self._make_adjoint, self.tau = make_adjoint, tau
        self._original = [_some_states(x) for x in states]
        return self

    @property
    def adjoint(self) -> RolloutAdjoint:
        """The derivatives by place, for the flattened batch."""
        if not all(
            np.array_equal(_some_states(x), original, equal_nan=True)
            for x, original in zip(self, self._original, strict=True)
        ):
            raise StateError(
                "rollout: the arrays of this motion were overwritten, and its derivatives are "
                "taken at their states",
                "copy the arrays before you change them, or pass other arrays as out=",
            )
        return self._adjoint

    @cached_property
    def _adjoint(self) -> RolloutAdjoint:
        return self._make_adjoint()

    @property
    def places(self) -> dict[str, str]:
        places = {input_name(place): place for place in self.adjoint.options.derivative_places}
        if self.tau is not None and not self.tau.is_given:
            del places["tau"]
        return places

    def vjp(
        self, q_weight: Numbers | None = None, v_weight: Numbers | None = None
    ) -> dict[str, np.ndarray]:
        """Gradients of the weighted sum of all samples: with respect to the initial "q" and "v", to
        "tau" or the controller's numbers, to "parameters" if the robot has some (`robot.free`), and
        to the numbers of a ground for each contact point ("ground_friction", ...).

        Weights have the shapes of q and v; None is zero. The gradient with respect to q is one with
        respect to tangent vectors, (..., nv). That with respect to tau has the shape of the given
        tau, summed over the motions that shared it.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> motion = pp.rollout(robot, robot.neutral(), tau=np.zeros((50, 6)), steps=50)
        >>> last = np.zeros_like(motion.q)
        >>> last[-1, 0] = 1.0  # the final position of the first joint
        >>> motion.vjp(last)["tau"].shape
        (50, 6)
        """
        bars = self.coordinate_gradients(q_weight, v_weight)
        manifold = self.adjoint.plant.manifold
        return bars | {"q": manifold.tangent_gradient(self.q[..., 0, :], bars["q"])}

    def coordinate_gradients(
        self, q_weight: Numbers | None, v_weight: Numbers | None
    ) -> dict[str, np.ndarray]:
        """`vjp` with the gradient with respect to the nq coordinates of q."""
        return self._by_name(self.adjoint.vjp(*self._weights(q_weight, v_weight)))

    def _weights(self, q_weight: Numbers | None, v_weight: Numbers | None) -> list[np.ndarray]:
        weights = (
            _broadcast("q_weight", q_weight, self.q),
            _broadcast("v_weight", v_weight, self.v),
        )
        return [x.reshape(-1, *x.shape[-2:]) for x in weights]

    def _by_name(self, bars: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Gradients by place (B, ...) as gradients by name, in the shapes of the inputs."""
        lead = self.q.shape[:-2]
        bars = {name: x.reshape(*lead, *x.shape[1:]) for name, x in bars.items()}
        found = {name: bars[name] for name in ("q", "v")}
        for name, place in self.places.items():
            if name == "tau" and self.tau is not None:
                found[name] = self.tau.gradient(bars[place])
            else:
                found[name] = sum_repeated(bars[place], self._values(name).shape)
        return found

    def jvp(
        self, q: Numbers | None = None, v: Numbers | None = None, **others: Numbers
    ) -> tuple[np.ndarray, np.ndarray]:
        """(dq, dv), in the shapes of q and v, for changes of the initial state (q: a tangent
        vector), of tau, of a controller's numbers or of parameters.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> law = pp.PD(robot, robot.random(seed=1), kp=20.0, kd=2.0)
        >>> motion = pp.rollout(robot, robot.neutral(), tau=law, steps=50)
        >>> dq, dv = motion.jvp(kp=np.ones(6))
        >>> dq.shape
        (51, 6)
        """
        dq, dv = self.adjoint.jvp(self._changes("jvp", q, v, others))
        return dq.reshape(self.q.shape), dv.reshape(self.v.shape)

    def hvp(
        self,
        q_weight: Numbers | None = None,
        v_weight: Numbers | None = None,
        q: Numbers | None = None,
        v: Numbers | None = None,
        **others: Numbers,
    ) -> dict[str, np.ndarray]:
        """The changes of the gradients of `vjp` for changes as in `jvp`: second derivatives of the
        weighted sum times a vector. They are exact, and cost a few times as much as the gradient.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("pelican")
        >>> motion = pp.rollout(robot, robot.neutral(), tau=np.zeros((20, 2)), steps=20)
        >>> motion.hvp(np.ones_like(motion.q), tau=np.ones((20, 2)))["tau"].shape
        (20, 2)
        """
        changes = self._changes("hvp", q, v, others)
        bar_dots = self.coordinate_gradient_changes(q_weight, v_weight, changes)
        manifold, first = self.adjoint.plant.manifold, self.q[..., 0, :]
        if manifold.is_flat:
            return bar_dots
        bar = self.coordinate_gradients(q_weight, v_weight)["q"]
        q_dot = changes["q"].reshape(first.shape)
        entries = tangent_gradient_derivative(manifold, first, bar_dots["q"], bar, q_dot)
        return bar_dots | {"q": np.stack(entries, axis=-1)}

    def coordinate_gradient_changes(
        self, q_weight: Numbers | None, v_weight: Numbers | None, changes: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """`hvp` with the gradient with respect to the nq coordinates of q, for changes by place
        (B, ...)."""
        w_q, w_v = self._weights(q_weight, v_weight)
        return self._by_name(self.adjoint.vjp_derivative(w_q, w_v, changes))

    def _changes(
        self,
        method: str,
        q: Numbers | None,
        v: Numbers | None,
        others: Mapping[str, Numbers],
    ) -> dict[str, np.ndarray]:
        """Changes by place (B, ...); q is a tangent vector."""
        self._check_names(method, others)
        first = self.v[..., 0, :]
        manifold = self.adjoint.plant.manifold
        rate = manifold.rate(self.q[..., 0, :], _broadcast("q", q, first))
        return self.changes_by_place({**others, "q": rate, "v": _broadcast("v", v, first)})

    def changes_by_place(self, changes: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Changes by place (B, ...), from changes by name; q is in coordinates."""
        lead, found = self.q.shape[:-2], {name: changes[name] for name in ("q", "v")}
        for name in changes.keys() - found.keys():
            place = self.places[name]
            core = 2 if place in self.adjoint.options.packed_per_step else 1
            if name == "tau" and self.tau is not None:
                table = self.tau.change(changes[name])
                # steps after the last sample have no effect
                row = table[..., 0, :] if core == 1 else table[..., : self.adjoint.steps, :]
            else:
                row = _broadcast(name, changes[name], self._values(name))
            found[place] = np.broadcast_to(row, (*lead, *row.shape[row.ndim - core :]))
        count = self.adjoint.runner.count
        return {name: x.reshape(count, *x.shape[len(lead) :]) for name, x in found.items()}

    def _values(self, name: str) -> np.ndarray:
        """The values of an input: parameters of the robot, numbers of the controller, or its
        reference if this is constant."""
        if name == PARAMETERS:
            return np.asarray(parameters_of(self.adjoint.plant.robot)[0])
        return np.asarray(self.adjoint.rollout_input.constants()[self.places[name]])


@dataclass(frozen=True)
class TorqueArgument:
    """A table of torques (..., 1 or steps, nv), and the shape of the argument tau."""

    torque: TorqueInput
    shape: tuple[int, ...]
    is_given: bool  # False if tau is None, which is zero
    effort: np.ndarray | None

    @property
    def table(self) -> np.ndarray:
        assert self.torque.table is not None
        return self.torque.table

    def gradient(self, bars: np.ndarray) -> np.ndarray:
        """A gradient (*batch, nv) or (*batch, steps, nv) in the shape of the argument: zero for
        torques beyond the effort limits, and for steps after the last sample."""
        bars = bars if bars.ndim == len(self.torque.batch) + 2 else bars[..., None, :]
        unused = self.table.shape[-2] - bars.shape[-2]
        if unused > 0:
            zeros = np.zeros((*bars.shape[:-2], unused, bars.shape[-1]))
            bars = np.concatenate([bars, zeros], axis=-2)
        bars = self._within_effort(sum_repeated(bars, self.table.shape))
        return bars[..., self._columns()].reshape(self.shape)

    def change(self, value: Numbers | None) -> np.ndarray:
        """A change of the argument as a change of the table."""
        change = _broadcast("tau", value, np.empty(self.shape))
        out = np.zeros(self.table.shape)
        out[..., self._columns()] = change.reshape(*self.table.shape[:-1], *self.shape[-1:])
        return self._within_effort(out)

    def _within_effort(self, change: np.ndarray) -> np.ndarray:
        """The change, with zeros where the effort limits act."""
        if self.effort is None:
            return change
        return np.where(np.abs(self.table) < self.effort, change, 0.0)

    def _columns(self) -> np.ndarray:
        """The columns of the table that the argument sets: all, or those of the motors."""
        plant = self.torque.plant
        columns = np.arange(plant.nv)
        if not self.shape or self.shape[-1] == plant.nv:
            return columns
        return np.setdiff1d(columns, plant.unactuated_indices)


def _some_states(states: np.ndarray) -> np.ndarray:
    """A copy of the last state and some of the others, to detect whether the array was
    overwritten."""
    flat = states.reshape(math.prod(states.shape[:-1]), states.shape[-1])
    return np.concatenate([flat[:: max(1, len(flat) // COMPARED_STATES)], flat[-1:]])


def _broadcast(name: str, value: object, like: np.ndarray) -> np.ndarray:
    """A weight or a change as an array of this shape; None is zero."""
    if value is None:
        return np.zeros(like.shape)
    array, fault = read_array(value, None)
    try:
        if not fault:
            return np.broadcast_to(array.astype(float, copy=False), like.shape)
    except ValueError:
        fault = f"has shape {array.shape}, expected {like.shape}"
    raise StateError(f"rollout: {name} {fault}", f"give real numbers of shape {like.shape}")
