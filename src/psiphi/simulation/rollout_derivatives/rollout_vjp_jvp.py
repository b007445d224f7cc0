"""The first and second derivatives of a motion as functions of arrays of torch or JAX.

With x = (q, v, tau, parameters) and the samples y = f(x), in coordinates:

    pull              x, w             -> f'* w
    push              x, dx            -> f' dx
    pull of pull      x, w, u          -> (f''* w) u, f' u          of f'* w, weighted by u
    push of pull      x, w, dx, dw     -> (f''* w) dx + f'* dw
    pull of push      x, dx, w         -> (f''* w) dx, f'* w        of f' dx, weighted by w
    push of push      x, dx, ex, ddx   -> f''(dx, ex) + f' ddx

(f''* w) is symmetric, so four maps of a motion are enough: `vjp` f'* w, `jvp` f' dx,
`vjp_derivative` (f''* w) dx and `second_derivative` f''(dx, ex), on the CPU (`HostMotion`) and on
the GPU (`CudaMotion`). A motion starts at unit(q), called U below, whose derivatives are included
(`simulation/compiled_rollout/initial_state.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from psiphi._util.array_types import AnyArray, DType, Out
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays.function_registry import register
from psiphi.simulation.compiled_rollout.initial_state import InitialState
from psiphi.simulation.rollout.cuda_result import CudaRolloutResult
from psiphi.simulation.rollout.rollout_result import RolloutResult

if TYPE_CHECKING:
    from psiphi.simulation.rollout.rollout_arrays import RolloutFunction

Batch = tuple[int, ...]
Named = Mapping[str, Any]  # arrays by name


class Motion(Protocol):
    """The maps of a motion. Weights are by "q" and "v", and may be None; changes and gradients are
    by argument."""

    lead: Batch

    def vjp(self, names: tuple[str, ...], weights: Named) -> dict[str, Any]: ...
    def jvp(self, changes: Named) -> dict[str, Any]: ...
    def vjp_derivative(
        self, names: tuple[str, ...], weights: Named, changes: Named
    ) -> dict[str, Any]: ...
    def second_derivative(
        self, changes: Named, directions: Named, changes_of_changes: Named
    ) -> dict[str, Any]: ...


DerivativeRule = Callable[[Motion, "RolloutDerivative", Named], dict[str, Any]]


class RolloutDerivative:
    """The derivative of a motion, or of its first derivative, with respect to the inputs `names`;
    `kind` is "pull" or "push"."""

    motion: RolloutFunction

    def __init__(
        self, function: RolloutFunction | RolloutDerivative, kind: str, names: tuple[str, ...]
    ):
        self.function, self.names = function, names
        self.kinds: tuple[str, ...] = (*getattr(function, "kinds", ()), kind)
        if len(self.kinds) > 2:
            raise StateError(
                "rollout: third derivatives of a motion are not implemented",
                "use second derivatives, or finite differences of them",
            )
        self.motion = function.motion if isinstance(function, RolloutDerivative) else function
        self.name, self.number = f"rollout: {' of '.join(reversed(self.kinds))}", register(self)
        shapes = {arg.name: arg.shape for arg in function.inputs}
        if kind == "pull":
            added = [Argument(f"{arg.name}_weight", arg.shape) for arg in function.outputs]
            self.outputs = tuple(Argument(f"{name}_bar", shapes[name]) for name in names)
        else:
            suffix = "change" if function is self.motion else "direction"
            added = [Argument(f"{name}_{suffix}", shapes[name]) for name in names]
            self.outputs = tuple(Argument(f"{arg.name}_dot", arg.shape) for arg in function.outputs)
        self.inputs = (*function.inputs, *added)
        self.unshared: tuple[str, ...] = (
            *getattr(function, "unshared", ("q",)),
            *(arg.name for arg in added),
        )

    @property
    def first(self) -> RolloutDerivative:
        """The first derivative, of which this is the derivative."""
        assert isinstance(self.function, RolloutDerivative)
        return self.function

    def __call__(self, *arrays: np.ndarray) -> Any:
        leads = {
            arg.name: x.shape[: x.ndim - len(arg.shape)]
            for arg, x in zip(self.inputs, arrays, strict=True)
        }
        states = self.motion.states(arrays[: len(self.motion.inputs)], batch_axes(self.name, leads))
        dtype = np.result_type(np.float32, *arrays)
        motion = HostMotion(states, self.motion, arrays[0])
        return self._results(motion, arrays, lambda x: x.astype(dtype, copy=False))

    def run(self, arrays: Sequence[AnyArray], out: Out = None, dtype: DType = None) -> Any:
        """The results for GPU arrays."""
        states = self.motion.gpu_states(arrays[: len(self.motion.inputs)])
        return self._results(CudaMotion(states, self.motion), arrays, lambda x: x)

    run_on_gpu = run

    def _results(
        self, motion: Motion, arrays: Sequence[AnyArray], convert: Callable[[Any], Any]
    ) -> Any:
        """The results, with the batch axes of the motions."""
        values = {arg.name: x for arg, x in zip(self.inputs, arrays, strict=True)}
        found = RULES[self.kinds](motion, self, values)
        results = [
            convert(found[arg.name]).reshape(*motion.lead, *arg.shape) for arg in self.outputs
        ]
        return tuple(results) if len(results) > 1 else results[0]

    def pullback(self, *names: str) -> RolloutDerivative:
        return RolloutDerivative(self, "pull", names)

    def pushforward(self, *names: str) -> RolloutDerivative:
        return RolloutDerivative(self, "push", names)


def _pull(motion: Motion, derivative: RolloutDerivative, values: Named) -> dict[str, Any]:
    return _renamed("{}_bar", motion.vjp(derivative.names, _weights(values, "{}_weight")))


def _push(motion: Motion, derivative: RolloutDerivative, values: Named) -> dict[str, Any]:
    return _renamed("{}_dot", motion.jvp(_changes(derivative, values, "{}_change")))


def _pull_of_pull(motion: Motion, derivative: RolloutDerivative, values: Named) -> dict[str, Any]:
    found: dict[str, Any] = {}
    changes = {name: values[f"{name}_bar_weight"] for name in derivative.first.names}
    if names := _motion_inputs(derivative):
        found |= motion.vjp_derivative(names, _weights(values, "{}_weight"), changes)
    if len(names) < len(derivative.names):
        found |= _renamed("{}_weight", motion.jvp(changes))
    return _renamed("{}_bar", found)


def _push_of_pull(motion: Motion, derivative: RolloutDerivative, values: Named) -> dict[str, Any]:
    parts, names = [], derivative.first.names
    if _motion_inputs(derivative):
        directions = _changes(derivative, values, "{}_direction")
        parts.append(motion.vjp_derivative(names, _weights(values, "{}_weight"), directions))
    if any(name.endswith("_weight") for name in derivative.names):
        parts.append(motion.vjp(names, _weights(values, "{}_weight_direction")))
    return {f"{name}_bar_dot": sum(part[name] for part in parts) for name in names}


def _pull_of_push(motion: Motion, derivative: RolloutDerivative, values: Named) -> dict[str, Any]:
    found: dict[str, Any] = {}
    weights = _weights(values, "{}_dot_weight")
    if names := _motion_inputs(derivative):
        changes = _changes(derivative.first, values, "{}_change")
        found |= motion.vjp_derivative(names, weights, changes)
    changed = (x.removesuffix("_change") for x in derivative.names if x.endswith("_change"))
    if names := tuple(changed):
        found |= _renamed("{}_change", motion.vjp(names, weights))
    return _renamed("{}_bar", found)


def _push_of_push(motion: Motion, derivative: RolloutDerivative, values: Named) -> dict[str, Any]:
    changes = _changes(derivative.first, values, "{}_change")
    directions = _changes(derivative, values, "{}_direction")
    changes_of_changes = _changes(derivative, values, "{}_change_direction")
    if directions:
        found = motion.second_derivative(changes, directions, changes_of_changes)
    else:
        found = motion.jvp(changes_of_changes)
    return _renamed("{}_dot_dot", found)


RULES: dict[tuple[str, ...], DerivativeRule] = {
    ("pull",): _pull,
    ("push",): _push,
    ("pull", "pull"): _pull_of_pull,
    ("pull", "push"): _push_of_pull,
    ("push", "pull"): _pull_of_push,
    ("push", "push"): _push_of_push,
}


def _renamed(pattern: str, found: Named) -> dict[str, Any]:
    return {pattern.format(name): x for name, x in found.items()}


def _weights(values: Named, pattern: str) -> dict[str, Any]:
    """The weights of q and v; None is zero."""
    return {name: values.get(pattern.format(name)) for name in ("q", "v")}


def _changes(derivative: RolloutDerivative, values: Named, pattern: str) -> dict[str, Any]:
    """The changes of inputs of the motion that are among the values."""
    keys = {arg.name: pattern.format(arg.name) for arg in derivative.motion.inputs}
    return {name: values[key] for name, key in keys.items() if key in values}


def _motion_inputs(derivative: RolloutDerivative) -> tuple[str, ...]:
    """Those of the derivative's names that are inputs of the motion itself."""
    inputs = {arg.name for arg in derivative.motion.inputs}
    return tuple(name for name in derivative.names if name in inputs)


class HostMotion:
    """The maps of a motion on the CPU."""

    def __init__(self, states: RolloutResult, function: RolloutFunction, q: np.ndarray):
        self.states, self.lead = states, states.q.shape[:-2]
        self.shapes = {arg.name: arg.shape for arg in function.inputs}
        self.start = InitialState(states.adjoint.plant.manifold, self._broadcast("q", q))

    def vjp(self, names: tuple[str, ...], weights: Named) -> dict[str, Any]:
        """U'* f'* w."""
        found = self.states.coordinate_gradients(*self._full_weights(weights))
        return {name: self.start.vjp(found[name]) if name == "q" else found[name] for name in names}

    def jvp(self, changes: Named) -> dict[str, Any]:
        """f' U' dx."""
        return self._by_name(self.states.adjoint.jvp(self._by_place(self._start_changes(changes))))

    def vjp_derivative(
        self, names: tuple[str, ...], weights: Named, changes: Named
    ) -> dict[str, Any]:
        """U'* (f''* w) U' dx + (d/dq U'* g) dx, with g = f'* w."""
        full_weights = self._full_weights(weights)
        found = self.states.coordinate_gradient_changes(
            *full_weights, self._by_place(self._start_changes(changes))
        )
        if "q" in names and self.start.normalized:
            found["q"] = self.start.vjp(found["q"])
            if "q" in changes:
                gradient = self.states.coordinate_gradients(*full_weights)["q"]
                dq = self._broadcast("q", changes["q"])
                found["q"] = found["q"] + self.start.vjp_derivative(gradient, dq)
        return {name: found[name] for name in names}

    def second_derivative(
        self, changes: Named, directions: Named, changes_of_changes: Named
    ) -> dict[str, Any]:
        """f''(U' dx, U' ex) + f' (U' ddx + U''(dx, ex))."""
        last = self._start_changes(changes_of_changes)
        if "q" in changes and "q" in directions and self.start.normalized:
            dq, eq = (self._broadcast("q", x["q"]) for x in (changes, directions))
            curvature = self.start.second_derivative(dq, eq)
            last["q"] = last["q"] + curvature if "q" in last else curvature
        rows = (self._start_changes(changes), self._start_changes(directions), last)
        return self._by_name(self.states.adjoint.second_derivative(*map(self._by_place, rows)))

    def _start_changes(self, changes: Named) -> dict[str, Any]:
        """The changes, with that of unit(q) for that of q."""
        return {
            name: self.start.jvp(self._broadcast(name, x)) if name == "q" else x
            for name, x in changes.items()
        }

    def _broadcast(self, name: str, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (*self.lead, *self.shapes[name])).astype(float)

    def _by_name(self, found: Sequence[np.ndarray]) -> dict[str, Any]:
        return {
            name: x.reshape(like.shape)
            for name, x, like in zip("qv", found, self.states, strict=True)
        }

    def _full_weights(self, weights: Named) -> tuple[np.ndarray | None, np.ndarray | None]:
        w_q, w_v = (
            None if w is None else np.broadcast_to(w, x.shape)
            for w, x in zip(weights.values(), self.states, strict=True)
        )
        return w_q, w_v

    def _by_place(self, changes: Named) -> dict[str, np.ndarray]:
        states = self.states
        full = {name: np.zeros_like(x[..., 0, :]) for name, x in zip("qv", states, strict=True)}
        for name, x in changes.items():
            full[name] = self._broadcast(name, x)
            if name == "tau" and states.tau is not None:
                full[name] = full[name].reshape(states.tau.shape)
        return states.changes_by_place(full)


class CudaMotion:
    """The maps of a motion on the GPU."""

    def __init__(self, states: CudaRolloutResult, function: RolloutFunction):
        self.states, self.lead = states, tuple(states.q.shape[:-2])
        self.names = tuple(arg.name for arg in function.inputs[2:])  # besides q and v

    def vjp(self, names: tuple[str, ...], weights: Named) -> dict[str, Any]:
        some = tuple(name for name in self.names if name in names)
        return self.states.coordinate_gradients(some, weights["q"], weights["v"], before_unit=True)

    def jvp(self, changes: Named) -> dict[str, Any]:
        return dict(zip("qv", self.states.coordinate_jvp(self._one_row(changes)), strict=True))

    def vjp_derivative(
        self, names: tuple[str, ...], weights: Named, changes: Named
    ) -> dict[str, Any]:
        return self.states.coordinate_gradient_changes(
            self.names, weights["q"], weights["v"], self._one_row(changes), before_unit=True
        )

    def second_derivative(
        self, changes: Named, directions: Named, changes_of_changes: Named
    ) -> dict[str, Any]:
        raise StateError(
            "rollout: forward over forward mode is not implemented on the GPU",
            "use forward over reverse mode (jax.hessian, torch.func.hessian), or arrays on the CPU",
        )

    def _one_row(self, changes: Named) -> dict[str, Any]:
        return {
            name: self.states.drop_step_axis(x) if name == "tau" else x
            for name, x in changes.items()
        }
