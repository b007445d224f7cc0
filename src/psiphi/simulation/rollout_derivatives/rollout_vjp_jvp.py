"""The derivatives of a motion as functions of arrays of torch or JAX: once and twice, forwards and backwards.

With x = (q, v, tau, parameters) and the samples y = f(x), those by numbers:

    pull     x, w          -> f'* w                 push     x, dx          -> f' dx
    pull of pull           x, w, u   -> (f''* w) u, f' u          of f'* w, weighted by u
    push of pull           x, w, dx, dw -> (f''* w) dx + f'* dw
    pull of push           x, dx, w  -> (f''* w) dx, f'* w        of f' dx, weighted by w
    push of push           x, dx, ex, ddx -> f''(dx, ex) + f' ddx

(f''* w) u is symmetric in the numbers of x, whichever way it came about. Four maps of a motion make all of them: `back` f'* w,
`along` f' dx, `turns` (f''* w) dx and `bends` f''(dx, ex), on the host (`HostMotion`) and on a card (`CudaMotion`). A motion
begins at unit(q), U below (`simulation/compiled_rollout/initial_state.py`), whose derivatives these count in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays.function_registry import register
from psiphi.simulation.compiled_rollout.initial_state import InitialState
from psiphi.simulation.rollout.rollout_result import RolloutResult

Batch = tuple[int, ...]
By = dict[str, Any]  # arrays by name
SlopeRule = Callable[[Any, "RolloutDerivative", By], By]


class RolloutDerivative:
    """A derivative of a motion, by some arguments of what it is of: the motion itself, or its first derivative."""

    def __init__(self, of: Any, kind: str, names: tuple[str, ...]):
        self.of, self.names, self.kinds = of, names, (*getattr(of, "kinds", ()), kind)
        if len(self.kinds) > 2:
            raise StateError(
                "rollout: third derivatives of a motion are not there",
                "take second ones, or differences of them",
            )
        self.motion = getattr(of, "motion", of)
        self.name, self.number = f"rollout: {' of '.join(reversed(self.kinds))}", register(self)
        own = {arg.name: arg.shape for arg in of.inputs}
        if kind == "pull":
            added = [Argument(f"{arg.name}_weight", arg.shape) for arg in of.outputs]
            self.outputs = tuple(Argument(f"{name}_bar", own[name]) for name in names)
        else:
            added = [
                Argument(f"{name}_{'change' if of is self.motion else 'way'}", own[name])
                for name in names
            ]
            self.outputs = tuple(Argument(f"{arg.name}_moved", arg.shape) for arg in of.outputs)
        self.inputs = (*of.inputs, *added)
        self.unshared = (*getattr(of, "unshared", ("q",)), *(arg.name for arg in added))

    def __call__(self, *arrays: np.ndarray) -> Any:
        leads = {
            arg.name: x.shape[: x.ndim - len(arg.shape)]
            for arg, x in zip(self.inputs, arrays, strict=True)
        }
        states = self.motion.states(arrays[: len(self.motion.inputs)], batch_axes(self.name, leads))
        kind = np.result_type(np.float32, *arrays)
        return self._found(
            HostMotion(states, self.motion, arrays[0]), arrays, lambda x: x.astype(kind, copy=False)
        )

    def run(self, arrays: Sequence[Any], out: Any = None, dtype: Any = None) -> Any:
        """The same for arrays of a graphics card."""
        states = self.motion.card_states(arrays[: len(self.motion.inputs)])
        return self._found(CudaMotion(states, self.motion), arrays, lambda x: x)

    on_cards = run

    def _found(self, at: HostMotion | CudaMotion, arrays: Sequence[Any], like: Callable) -> Any:
        """Its results, in the batch of the motions."""
        given = {arg.name: x for arg, x in zip(self.inputs, arrays, strict=True)}
        found = RULES[self.kinds](at, self, given)
        results = [like(found[arg.name]).reshape(*at.lead, *arg.shape) for arg in self.outputs]
        return tuple(results) if len(results) > 1 else results[0]

    def pullback(self, *names: str) -> RolloutDerivative:
        return RolloutDerivative(self, "pull", names)

    def pushforward(self, *names: str) -> RolloutDerivative:
        return RolloutDerivative(self, "push", names)


def _pull(at: Any, own: RolloutDerivative, given: By) -> By:
    return _each("{}_bar", at.back(own.names, _weights(given, "{}_weight")))


def _push(at: Any, own: RolloutDerivative, given: By) -> By:
    return _each("{}_moved", at.along(_changes(own, given, "{}_change")))


def _pull_of_pull(at: Any, own: RolloutDerivative, given: By) -> By:
    found: By = {}
    changes = {name: given[f"{name}_bar_weight"] for name in own.of.names}
    if wanted := _states_of(own, own.names):
        found |= at.turns(wanted, _weights(given, "{}_weight"), changes)
    if len(wanted) < len(own.names):
        found |= _each("{}_weight", at.along(changes))
    return _each("{}_bar", found)


def _push_of_pull(at: Any, own: RolloutDerivative, given: By) -> By:
    parts = []
    if _states_of(own, own.names):
        parts.append(
            at.turns(own.of.names, _weights(given, "{}_weight"), _changes(own, given, "{}_way"))
        )
    if any(name.endswith("_weight") for name in own.names):
        parts.append(at.back(own.of.names, _weights(given, "{}_weight_way")))
    return {f"{name}_bar_moved": sum(part[name] for part in parts) for name in own.of.names}


def _pull_of_push(at: Any, own: RolloutDerivative, given: By) -> By:
    found: By = {}
    weights = _weights(given, "{}_moved_weight")
    if wanted := _states_of(own, own.names):
        found |= at.turns(wanted, weights, _changes(own.of, given, "{}_change"))
    if moved := tuple(
        name.removesuffix("_change") for name in own.names if name.endswith("_change")
    ):
        found |= _each("{}_change", at.back(moved, weights))
    return _each("{}_bar", found)


def _push_of_push(at: Any, own: RolloutDerivative, given: By) -> By:
    first, again = _changes(own.of, given, "{}_change"), _changes(own, given, "{}_change_way")
    ways = _changes(own, given, "{}_way")
    return _each("{}_moved_moved", at.bends(first, ways, again) if ways else at.along(again))


RULES: dict[tuple[str, ...], SlopeRule] = {
    ("pull",): _pull,
    ("push",): _push,
    ("pull", "pull"): _pull_of_pull,
    ("pull", "push"): _push_of_pull,
    ("push", "pull"): _pull_of_push,
    ("push", "push"): _push_of_push,
}


def _each(form: str, found: By) -> By:
    return {form.format(name): x for name, x in found.items()}


def _weights(given: By, form: str) -> By:
    """Those of q and v: None is zero."""
    return {name: given.get(form.format(name)) for name in ("q", "v")}


def _changes(of: RolloutDerivative, given: By, form: str) -> By:
    """Those of a motion's arguments that are there."""
    asked = {arg.name: form.format(arg.name) for arg in of.motion.inputs}
    return {name: given[key] for name, key in asked.items() if key in given}


def _states_of(of: RolloutDerivative, names: Sequence[str]) -> tuple[str, ...]:
    """Which of these are arguments of the motion."""
    return tuple(name for name in names if any(arg.name == name for arg in of.motion.inputs))


class HostMotion:
    """The four maps of a motion of the host: weights by "q" and "v", or None; changes and gradients by argument."""

    def __init__(self, states: RolloutResult, motion: Any, q: np.ndarray):
        self.states, self.lead = states, states.q.shape[:-2]
        self.shapes = {arg.name: arg.shape for arg in motion.inputs}
        self.start = InitialState(
            states.ways.plant.manifold,
            np.broadcast_to(q, (*self.lead, *self.shapes["q"])).astype(float),
        )

    def back(self, names: tuple[str, ...], weights: By) -> By:
        """U'* f'* w."""
        found = self.states.coordinate_gradients(*self._spread(weights))
        return {name: self.start.vjp(found[name]) if name == "q" else found[name] for name in names}

    def along(self, changes: By) -> By:
        """f' U' dx."""
        return self._sampled(self.states.ways.along(self._placed(self._moved(changes))))

    def turns(self, names: tuple[str, ...], weights: By, changes: By) -> By:
        """U'* (f''* w) U' dx + (d/dq U'* g) dx, g = f'* w."""
        found = self.states.coordinate_turns(
            *self._spread(weights), self._placed(self._moved(changes))
        )
        if "q" in names and self.start.normalized:
            found["q"] = self.start.vjp(found["q"])
            if "q" in changes:
                slope = self.states.coordinate_gradients(*self._spread(weights))["q"]
                found["q"] = found["q"] + self.start.vjp_derivative(
                    slope, self._whole("q", changes["q"])
                )
        return {name: found[name] for name in names}

    def bends(self, changes: By, ways: By, again: By) -> By:
        """f''(U' dx, U' ex) + f' (U' ddx + U''(dx, ex))."""
        last = self._moved(again)
        if "q" in changes and "q" in ways and self.start.normalized:
            curved = self.start.second_derivative(
                self._whole("q", changes["q"]), self._whole("q", ways["q"])
            )
            last["q"] = last["q"] + curved if "q" in last else curved
        given = (
            self._placed(self._moved(changes)),
            self._placed(self._moved(ways)),
            self._placed(last),
        )
        return self._sampled(self.states.ways.bend(*given))

    def _moved(self, changes: By) -> By:
        return {
            name: self.start.jvp(self._whole(name, x)) if name == "q" else x
            for name, x in changes.items()
        }

    def _whole(self, name: str, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, (*self.lead, *self.shapes[name])).astype(float)

    def _sampled(self, found: Sequence[np.ndarray]) -> By:
        return {
            name: x.reshape(like.shape)
            for name, x, like in zip("qv", found, self.states, strict=True)
        }

    def _spread(self, weights: By) -> tuple[Any, Any]:
        w_q, w_v = (
            None if w is None else np.broadcast_to(w, x.shape)
            for w, x in zip(weights.values(), self.states, strict=True)
        )
        return w_q, w_v

    def _placed(self, changes: By) -> By:
        states = self.states
        full: By = {name: np.zeros_like(x[..., 0, :]) for name, x in zip("qv", states, strict=True)}
        for name, x in changes.items():
            own = self._whole(name, x)
            full[name] = (
                own.reshape(states.tau.shape) if name == "tau" and states.tau is not None else own
            )
        return states.placed(full)


class CudaMotion:
    """The same of a motion on a graphics card."""

    def __init__(self, states: Any, motion: Any):
        self.states, self.lead = states, tuple(states.q.shape[:-2])
        self.driven = tuple(arg.name for arg in motion.inputs[2:])

    def back(self, names: tuple[str, ...], weights: By) -> By:
        return self.states.coordinate_gradients(
            tuple(x for x in self.driven if x in names), *weights.values(), given=True
        )

    def along(self, changes: By) -> By:
        return dict(zip("qv", self.states.coordinate_changes(self._rows(changes)), strict=True))

    def turns(self, names: tuple[str, ...], weights: By, changes: By) -> By:
        return self.states.coordinate_turns(
            self.driven, *weights.values(), self._rows(changes), given=True
        )

    def bends(self, changes: By, ways: By, again: By) -> By:
        cause = "rollout: forward mode of forward mode is not there on graphics cards"
        raise StateError(
            cause,
            "take forward over reverse mode (jax.hessian, torch.func.hessian), or arrays of the host",
        )

    def _rows(self, changes: By) -> By:
        return {name: self.states.one_row(x) if name == "tau" else x for name, x in changes.items()}
