"""`pp.rollout` of arrays of torch or JAX: the motion as a function of where it begins and of its torques (`foreign/`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psiphi.arguments import batch_axes
from psiphi.control.plant import Plant
from psiphi.control.torques import fits_steps
from psiphi.errors import StateError
from psiphi.foreign.entering import enter, full
from psiphi.foreign.numbering import numbered
from psiphi.simulation.rolled_states import RolledStates
from psiphi.sweeps.program import Argument

Batch = tuple[int, ...]


def rolled(run: Callable[..., Any], plant: Plant, given: dict[str, Any], like: Any, steps: int, every: int) -> Any:
    """(q, v) of the library of `like`; `given` are q0, v0 and tau, the last two perhaps None or, of tau, no array."""
    inputs, values = [], []
    for name, size in (("q", plant.nq), ("v", plant.nv)):
        inputs.append(Argument(name, (size,), name))
        values.append(full(like, size, 0.0) if given[name] is None else given[name])
    tau, law = given["tau"], None
    if tau is None or callable(tau):
        law = tau
    else:
        shape, lead = tuple(np.shape(tau)), max((np.shape(x)[:-1] for x in values), key=len)
        inputs.append(Argument("tau", shape[-2:] if fits_steps(shape, lead, steps) else shape[-1:]))
        values.append(tau)
    return enter(RolledFunction(run, tuple(inputs), law, (plant.nq, plant.nv), 1 + steps // every), values)


class RolledFunction:
    """The samples of a motion as a function of q, v and tau."""

    name = "rollout"

    def __init__(self, run: Callable, inputs: tuple[Argument, ...], law: Any, sizes: tuple[int, int], rows: int):
        self.run_states, self.inputs, self.law = run, inputs, law
        self.outputs = tuple(Argument(name, (rows, n)) for name, n in zip("qv", sizes, strict=True))
        self.number = numbered(self)
        self.last: Any = None  # what ran, on which arrays: gradients need not run it again

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        kind = np.result_type(np.float32, *arrays)
        return tuple(x.astype(kind, copy=False) for x in self.states(arrays))

    def states(self, arrays: Sequence[np.ndarray], batch: Batch = ()) -> RolledStates:
        """Where it ran; every motion of its own, with these batch axes at least, so that every one has its own gradients."""
        which = [batch, *((x.shape, x.tobytes()) for x in arrays)]  # memory is used again: numbers alone say what ran
        last = self.last
        if last is None or last[0] != which:
            leads = {arg.name: x.shape[: x.ndim - len(arg.shape)] for x, arg in zip(arrays, self.inputs, strict=True)}
            batch = batch_axes("rollout", leads | {"the weights": batch})
            q, v, *tau = (np.broadcast_to(x, (*batch, *arg.shape)) for x, arg in zip(arrays, self.inputs, strict=True))
            torque = self.law if not tau else tau[0] if len(self.inputs[2].shape) == 2 else tau[0][..., None, :]
            last = self.last = which, self.run_states(q, v, torque)
        return last[1]

    def run(self, arrays: Sequence[Any], out: Any = None, dtype: Any = None) -> Any:
        """The same for arrays of a graphics card, whose numbers nobody looks at: it always runs."""
        states = self.run_states(*arrays[:2], arrays[2] if len(arrays) > 2 else self.law)
        self.last = _written(arrays), states, arrays
        return states

    on_cards = run

    def card_states(self, arrays: Sequence[Any]) -> Any:
        """What ran on these arrays, or runs now."""
        last = self.last
        return last[1] if last is not None and last[0] == _written(arrays) else self.run(arrays)

    def pullback(self, *names: str) -> RolledPullback:
        return RolledPullback(self, names)

    def pushforward(self, *names: str) -> Any:
        raise StateError("rollout: forward mode is not there for arrays of other libraries", "take motion.jvp of NumPy arrays")


class WeighedGradients:
    """Gradients of the weighed results of another function, by some of its arguments."""

    def __init__(self, of: Any, names: tuple[str, ...]):
        self.of, self.names, self.number = of, names, numbered(self)
        self.inputs = (*of.inputs, *(Argument(f"{arg.name}_weight", arg.shape) for arg in of.outputs))
        self.outputs = tuple(Argument(f"{arg.name}_bar", arg.shape) for arg in of.inputs if arg.name in names)
        before = of.whole if isinstance(of, WeighedGradients) else ("q",)
        self.whole = *before, *(f"{arg.name}_weight" for arg in of.outputs)


class RolledPullback(WeighedGradients):
    """The gradients of a motion, by the numbers of its arguments."""

    name = "rollout: pullback"
    of: RolledFunction

    def __call__(self, *arrays: np.ndarray) -> Any:
        states = self.of.states(arrays[: len(self.of.inputs)], _batch(self, arrays))
        weights = (np.broadcast_to(w, x.shape) for w, x in zip(arrays[len(self.of.inputs) :], states, strict=True))
        bars = states.coordinate_gradients(*weights)
        return _found(self, bars, arrays, states)

    def run(self, arrays: Sequence[Any], out: Any = None, dtype: Any = None) -> Any:
        """The same for arrays of a graphics card."""
        states, weights = self.of.card_states(arrays[: len(self.of.inputs)]), arrays[len(self.of.inputs) :]
        bars = states.coordinate_gradients(tuple(name for name in self.names if name == "tau"), *weights)
        return _shaped(self, bars, states.q.shape[:-2])

    on_cards = run

    def pullback(self, *names: str) -> RolledBending:
        return RolledBending(self, names)

    def pushforward(self, *names: str) -> Any:
        raise StateError(
            "rollout: forward mode is not there for arrays of other libraries", "take motion.jvp or motion.hvp of NumPy arrays"
        )


class RolledBending(WeighedGradients):
    """The gradients of a weighted sum of those gradients. Second derivatives are symmetric in the numbers of q, v and tau: they
    are what the gradients change by when these change by the weights; by the motion's weights it is the motion's change."""

    name = "rollout: second pullback"
    of: RolledPullback

    def __call__(self, *arrays: np.ndarray) -> Any:
        motion, own = self.of.of, len(self.of.inputs)
        states = motion.states(arrays[: len(motion.inputs)], _batch(self, arrays))
        w_q, w_v = (np.broadcast_to(w, x.shape) for w, x in zip(arrays[len(motion.inputs) : own], states, strict=True))
        changes: dict[str, Any] = {name: np.zeros_like(x[..., 0, :]) for name, x in zip("qv", states, strict=True)}
        for name, x in zip(self.of.names, arrays[own:], strict=True):
            shape = states.tau.shape if name == "tau" and states.tau is not None else changes[name].shape
            changes[name] = np.broadcast_to(x, (*states.q.shape[:-2], *_core(motion, name))).reshape(shape)
        placed, found = states.placed(changes), {}
        if {arg.name for arg in motion.inputs} & set(self.names):
            found |= states.coordinate_turns(w_q, w_v, placed)
        if {"q_weight", "v_weight"} & set(self.names):
            moved = zip(("q_weight", "v_weight"), states.ways.along(placed), states, strict=True)
            found |= {name: x.reshape(like.shape) for name, x, like in moved}
        return _found(self, found, arrays, states)

    def run(self, arrays: Sequence[Any], out: Any = None, dtype: Any = None) -> Any:
        """The same for arrays of a graphics card."""
        motion, own = self.of.of, len(self.of.inputs)
        states = motion.card_states(arrays[: len(motion.inputs)])
        weights, driven = arrays[len(motion.inputs) : own], tuple(arg.name for arg in motion.inputs[2:])
        changes = {name: states.one_row(x) if name == "tau" else x for name, x in zip(self.of.names, arrays[own:], strict=True)}
        found: dict[str, Any] = {}
        if {arg.name for arg in motion.inputs} & set(self.names):
            found |= states.coordinate_turns(driven, *weights, changes)
        if {"q_weight", "v_weight"} & set(self.names):
            found |= dict(zip(("q_weight", "v_weight"), states.coordinate_changes(changes), strict=True))
        return _shaped(self, found, tuple(states.q.shape[:-2]))

    on_cards = run

    def pullback(self, *names: str) -> Any:
        raise StateError("rollout: third derivatives of a motion are not there", "take second ones, or differences of them")

    pushforward = pullback


def _core(of: Any, name: str) -> tuple[int, ...]:
    return next(arg.shape for arg in of.inputs if arg.name == name)


def _found(of: Any, bars: dict[str, np.ndarray], arrays: tuple[np.ndarray, ...], states: RolledStates) -> Any:
    """What was asked for, by name, each in the batch of the motions and of their arrays' kind."""
    kind = np.result_type(np.float32, *arrays)
    return _shaped(of, {name: x.astype(kind, copy=False) for name, x in bars.items()}, states.q.shape[:-2])


def _shaped(of: Any, bars: dict[str, Any], lead: Batch) -> Any:
    found: Any = tuple(bars[name].reshape(*lead, *_core(of, name)) for name in of.names)
    return found if len(found) > 1 else found[0]


def _batch(of: Any, arrays: Sequence[np.ndarray]) -> Batch:
    """The batch axes of all arguments: weights may have more than the motion."""
    return batch_axes(of.name, {arg.name: x.shape[: x.ndim - len(arg.shape)] for arg, x in zip(of.inputs, arrays, strict=True)})


def _written(arrays: Sequence[Any]) -> list[tuple[int, int]]:
    """Which arrays of a card these are, and how often torch has written into them since."""
    return [(id(x), 0 if getattr(x, "is_inference", bool)() else getattr(x, "_version", 0)) for x in arrays]
