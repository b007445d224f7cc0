"""`pp.rollout` of arrays of torch or JAX: the motion as a function of where it begins and of its torques (`foreign/`). And of
Dask arrays: a plan of rollouts of their blocks, run when somebody computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, is_lazy
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import dispatch, full_like
from psiphi.functions.arrays.dask_arrays import map_blocks
from psiphi.functions.arrays.function_registry import register
from psiphi.simulation.control.torque_input import is_per_step
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.rollout.rollout_result import RolloutResult
from psiphi.simulation.rollout_derivatives.rollout_vjp_jvp import Batch, RolloutDerivative
from psiphi.simulation.rollout_derivatives.step_derivatives import NO_DERIVATIVE


def rollout_of_arrays(
    run: Callable[..., Any],
    plant: Plant,
    given: dict[str, Any],
    like: Any,
    steps: int,
    every: int,
    blocks: bool,
) -> Any:
    """(q, v) of the library of `like`; `given` are q0, v0 and tau, the last two perhaps None or, of tau, no array, and perhaps
    parameters. Where joints end at their limits (`blocks`), it has no derivative."""
    inputs, values = [], []
    for name, size in (("q", plant.nq), ("v", plant.nv)):
        inputs.append(Argument(name, (size,), name))
        values.append(full_like(like, size, 0.0) if given[name] is None else given[name])
    if PARAMETERS in given:
        inputs.append(Argument(PARAMETERS, tuple(given[PARAMETERS].shape[-1:])))
        values.append(given[PARAMETERS])
    tau, law = given["tau"], None
    if tau is None or callable(tau):
        law = tau
    else:
        shape = tuple(np.shape(tau))
        lead = batch_axes(
            "rollout",
            {arg.name: tuple(np.shape(x)[:-1]) for arg, x in zip(inputs, values, strict=True)},
        )
        inputs.insert(
            2, Argument("tau", shape[-2:] if shape and is_per_step(shape, lead, steps) else shape[-1:])
        )
        values.insert(2, tau)
    return dispatch(
        RolloutFunction(run, tuple(inputs), law, (plant.nq, plant.nv), 1 + steps // every, blocks),
        values,
    )


class RolloutFunction:
    """The samples of a motion as a function of q, v, tau and parameters: of the last two, where these are arrays."""

    name = "rollout"
    is_temporary = True  # it exists for one call

    def __init__(
        self,
        run: Callable,
        inputs: tuple[Argument, ...],
        law: Any,
        sizes: tuple[int, int],
        rows: int,
        blocks: bool = False,
    ):
        self.run_states, self.inputs, self.law, self.blocks = run, inputs, law, blocks
        self.outputs = tuple(Argument(name, (rows, n)) for name, n in zip("qv", sizes, strict=True))
        self.number = register(self)
        self.last: Any = None  # what ran, on which arrays: gradients need not run it again

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        kind = np.result_type(np.float32, *arrays)
        return tuple(x.astype(kind, copy=False) for x in self.states(arrays))

    def states(self, arrays: Sequence[np.ndarray], batch: Batch = ()) -> RolloutResult:
        """Where it ran; every motion of its own, with these batch axes at least, so that every one has its own gradients."""
        which = [
            batch,
            *((x.shape, x.tobytes()) for x in arrays),
        ]  # memory is used again: numbers alone say what ran
        last = self.last
        if last is None or last[0] != which:
            leads = {
                arg.name: x.shape[: x.ndim - len(arg.shape)]
                for x, arg in zip(arrays, self.inputs, strict=True)
            }
            batch = batch_axes("rollout", leads | {"the weights": batch})
            each = zip(arrays, self.inputs, strict=True)
            given: dict[str, Any] = {
                arg.name: np.broadcast_to(x, (*batch, *arg.shape)) for x, arg in each
            }
            if "tau" not in given:
                given["tau"] = self.law
            elif given["tau"].ndim < len(batch) + 2:  # one row for all steps
                given["tau"] = given["tau"][..., None, :]
            last = self.last = which, self.run_states(**given)
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

    def pullback(self, *names: str) -> RolloutDerivative:
        return self._slope("pull", names)

    def pushforward(self, *names: str) -> RolloutDerivative:
        return self._slope("push", names)

    def _slope(self, kind: str, names: tuple[str, ...]) -> RolloutDerivative:
        if self.blocks:
            raise StateError(f"rollout: {NO_DERIVATIVE}", 'leave limits="ignore"')
        return RolloutDerivative(self, kind, names)


def _written(arrays: Sequence[Any]) -> list[tuple[int, int]]:
    """Which arrays of a card these are, and how often torch has written into them since."""
    return [
        (id(x), 0 if getattr(x, "is_inference", bool)() else getattr(x, "_version", 0))
        for x in arrays
    ]


class RolloutBlocks:
    """Rollouts of one block of starts, as a worker runs them; `core`: how many axes tau has behind those of the batch."""

    def __init__(
        self,
        rollout: Callable,
        robot: Any,
        names: tuple[str, ...],
        options: dict[str, Any],
        core: int,
    ):
        self.rollout, self.robot, self.names, self.options, self.core = (
            rollout,
            robot,
            names,
            options,
            core,
        )

    def __call__(self, *arrays: np.ndarray) -> Any:
        given = dict(zip(self.names, arrays, strict=True))
        if (
            "tau" in given
        ):  # with the axes of the batch, so that no block takes its rows for steps or these for its own
            tau = given["tau"] if self.core == 2 else given["tau"][..., None, :]
            missing = max(x.ndim for name, x in given.items() if name != "tau") + 1 - tau.ndim
            given["tau"] = tau.reshape((1,) * max(missing, 0) + tau.shape)
        return self.rollout(self.robot, **given, **self.options)


def lazy_rollout(
    rollout: Callable, plant: Plant, starts: dict[str, Any], steps: int, every: int, options: dict
) -> Any:
    """(q, v), lazy; `starts` are q0, v0 and tau: those that are arrays are cut into blocks, a law goes as it is."""
    if options.get("out") is not None:
        raise StateError(
            "rollout: out= takes numbers now, and an argument is a Dask array", "leave out= out"
        )
    cut = {
        name: x if is_lazy(x) else np.asarray(x)
        for name, x in starts.items()
        if x is not None and not callable(x)
    }
    law, rows, core = None if "tau" in cut else starts["tau"], 1 + steps // every, 1
    _refuse_axes(law, plant)
    sizes: dict[str, tuple[int, ...]] = {"q0": (plant.nq,), "v0": (plant.nv,), "tau": (plant.nv,)}
    if "tau" in cut and (shape := cut["tau"].shape):
        batch = batch_axes(
            "rollout", {name: x.shape[:-1] for name, x in cut.items() if name != "tau"}
        )
        known = all(n == n for n in (*batch, *shape))  # a block of unknown length is NaN long
        core = 1 + (is_per_step(shape, batch, steps) if known else len(shape) > len(batch) + 1)
        motors = plant.nv - len(plant.unactuated_indices)
        sizes["tau"] = *shape[-core:-1], motors if shape[-1] == motors else plant.nv
    inputs = [Argument(name, sizes[name]) for name in cut]
    outputs = [Argument("q", (rows, plant.nq)), Argument("v", (rows, plant.nv))]
    call = RolloutBlocks(
        rollout,
        plant.system,
        tuple(cut),
        {**options, **({} if "tau" in cut else {"tau": law})},
        core,
    )
    return map_blocks("rollout", call, inputs, outputs, list(cut.values()), None)


def _refuse_axes(law: Any, plant: Plant) -> None:
    """A block knows not which motions it has: what is not cut with them has to be the same for all."""
    constant = getattr(getattr(law, "reference", None), "constant", None)
    followed = (
        constant
        if constant is not None
        else law.reference(0.0)
        if getattr(law, "reference", None) is not None
        else ()
    )
    given = {
        "the controller": (*followed, *getattr(law, "numbers", {}).values()),
        "the parameters": parameters_of(plant.robot),
    }
    for name, arrays in given.items():
        for lead in (np.shape(x)[:-1] for x in arrays):
            if any(n != 1 for n in lead):
                cause = f"rollout: {name} came with batch axes {lead}, and Dask arrays are cut into blocks along these"
                raise StateError(cause, "give x.compute(), or one for all motions")
