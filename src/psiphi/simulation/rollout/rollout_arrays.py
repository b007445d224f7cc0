"""`pp.rollout` of torch, JAX and Dask arrays.

With torch and JAX a rollout is a differentiable function of the initial state, the torques and the
parameters. With Dask it is a graph of rollouts of blocks, which runs when its result is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray, DType, Out
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, is_lazy
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import dispatch, full_like
from psiphi.functions.arrays.dask_arrays import map_blocks
from psiphi.functions.arrays.function_registry import register
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.torque_input import is_per_step
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.rollout.cuda_result import CudaRolloutResult
from psiphi.simulation.rollout.rollout_result import RolloutArrays, RolloutResult
from psiphi.simulation.rollout_derivatives.rollout_vjp_jvp import Batch, RolloutDerivative

Torque = AnyArray | Callable[..., Any] | None  # an array, a law or a controller, or zero


def rollout_of_arrays(
    run: Callable[..., RolloutResult | CudaRolloutResult],
    plant: Plant,
    values: Mapping[str, Any],
    like: AnyArray,
    steps: int,
    every: int,
    no_derivative: tuple[str, str] | None = None,
) -> RolloutArrays:
    """(q, v) as arrays of the library of `like`.

    `values` are q, v (or None), tau (an array, a law or None) and perhaps parameters.
    `no_derivative` is why the result has no derivative, and what to do.
    """
    inputs, arrays = [], []
    for name, size in (("q", plant.nq), ("v", plant.nv)):
        inputs.append(Argument(name, (size,), name))
        arrays.append(full_like(like, size, 0.0) if values[name] is None else values[name])
    if PARAMETERS in values:
        inputs.append(Argument(PARAMETERS, tuple(values[PARAMETERS].shape[-1:])))
        arrays.append(values[PARAMETERS])
    tau, law = values["tau"], None
    if tau is None or callable(tau):
        law = tau
    else:
        shape = tuple(np.shape(tau))
        leads = {x.name: tuple(np.shape(y)[:-1]) for x, y in zip(inputs, arrays, strict=True)}
        batch = batch_axes("rollout", leads)
        is_table = bool(shape) and is_per_step(shape, batch, steps)
        inputs.insert(2, Argument("tau", shape[-2:] if is_table else shape[-1:]))
        arrays.insert(2, tau)
    sizes, samples = (plant.nq, plant.nv), 1 + steps // every
    function = RolloutFunction(run, tuple(inputs), law, sizes, samples, no_derivative)
    return RolloutArrays(*dispatch(function, arrays))


class RolloutFunction:
    """The samples of a motion as a function of q, v, and of tau and parameters if these are
    arrays."""

    name = "rollout"
    is_temporary = True  # it exists for one call

    def __init__(
        self,
        run: Callable[..., Any],
        inputs: tuple[Argument, ...],
        law: Torque,
        sizes: tuple[int, int],
        samples: int,
        no_derivative: tuple[str, str] | None = None,
    ):
        self.run_states, self.inputs, self.law = run, inputs, law
        self.no_derivative = no_derivative
        self.outputs = tuple(
            Argument(name, (samples, n)) for name, n in zip("qv", sizes, strict=True)
        )
        self.number = register(self)
        self.last: Any = None  # the last run: (a key of its arrays, its states, ...), for gradients

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype = np.result_type(np.float32, *arrays)
        return tuple(x.astype(dtype, copy=False) for x in self.states(arrays))

    def states(self, arrays: Sequence[np.ndarray], batch: Batch = ()) -> RolloutResult:
        """The rollout of these arrays, run now unless it was the last one.

        All inputs are broadcast to all batch axes, at least to `batch`, so that each motion has
        gradients of its own.
        """
        # contents, not addresses: memory is reused
        key = [batch, *((x.shape, x.tobytes()) for x in arrays)]
        if self.last is None or self.last[0] != key:
            leads = {
                arg.name: x.shape[: x.ndim - len(arg.shape)]
                for x, arg in zip(arrays, self.inputs, strict=True)
            }
            batch = batch_axes("rollout", leads | {"the weights": batch})
            values: dict[str, Any] = {
                arg.name: np.broadcast_to(x, (*batch, *arg.shape))
                for x, arg in zip(arrays, self.inputs, strict=True)
            }
            if "tau" not in values:
                values["tau"] = self.law
            elif values["tau"].ndim < len(batch) + 2:  # constant: one row for all steps
                values["tau"] = values["tau"][..., None, :]
            self.last = key, self.run_states(**values)
        return self.last[1]

    def run(self, arrays: Sequence[AnyArray], out: Out = None, dtype: DType = None) -> Any:
        """The rollout of GPU arrays. It always runs: numbers on the GPU are not compared."""
        states = self.run_states(*arrays[:2], arrays[2] if len(arrays) > 2 else self.law)
        self.last = _versions(arrays), states, arrays
        return states

    run_on_gpu = run

    def gpu_states(self, arrays: Sequence[AnyArray]) -> Any:
        """The rollout of these GPU arrays, run now unless it was the last one."""
        if self.last is not None and self.last[0] == _versions(arrays):
            return self.last[1]
        return self.run(arrays)

    def pullback(self, *names: str) -> RolloutDerivative:
        return self._derivative("pull", names)

    def pushforward(self, *names: str) -> RolloutDerivative:
        return self._derivative("push", names)

    def _derivative(self, kind: str, names: tuple[str, ...]) -> RolloutDerivative:
        if self.no_derivative is not None:
            cause, remedy = self.no_derivative
            raise StateError(f"rollout: {cause}", remedy)
        return RolloutDerivative(self, kind, names)


def _versions(arrays: Sequence[AnyArray]) -> list[tuple[int, int]]:
    """The identity of GPU arrays, with the number of times that torch has changed them in place."""
    return [
        (id(x), 0 if getattr(x, "is_inference", bool)() else getattr(x, "_version", 0))
        for x in arrays
    ]


class RolloutBlocks:
    """Rollouts of one block of initial states, as a Dask worker runs them; tau has `core` axes
    after its batch axes."""

    def __init__(
        self,
        rollout: Callable[..., RolloutResult],
        robot: Robot | System,
        names: tuple[str, ...],
        options: dict[str, Any],
        core: int,
    ):
        self.rollout, self.robot, self.names = rollout, robot, names
        self.options, self.core = options, core

    def __call__(self, *arrays: np.ndarray) -> Any:
        values = dict(zip(self.names, arrays, strict=True))
        if "tau" in values:
            # With all batch axes and an axis of steps, tau has one meaning in each block.
            tau = values["tau"] if self.core == 2 else values["tau"][..., None, :]
            axes = max(x.ndim for name, x in values.items() if name != "tau") + 1
            values["tau"] = tau.reshape((1,) * max(axes - tau.ndim, 0) + tau.shape)
        return self.rollout(self.robot, **values, **self.options)


def lazy_rollout(
    rollout: Callable[..., RolloutResult],
    plant: Plant,
    starts: Mapping[str, Any],
    steps: int,
    every: int,
    options: Mapping[str, Any],
) -> RolloutArrays:
    """(q, v) as Dask arrays. `starts` are q0, v0 and tau: arrays are cut into blocks, a law is the
    same for all blocks."""
    if options.get("out") is not None:
        raise StateError(
            "rollout: out= needs results now, and an argument is a Dask array", "omit out="
        )
    arrays = {
        name: x if is_lazy(x) else np.asarray(x)
        for name, x in starts.items()
        if x is not None and not callable(x)
    }
    law, samples, core = None if "tau" in arrays else starts["tau"], 1 + steps // every, 1
    _check_no_batch_axes(law, plant)
    sizes: dict[str, tuple[int, ...]] = {"q0": (plant.nq,), "v0": (plant.nv,), "tau": (plant.nv,)}
    if "tau" in arrays and (shape := arrays["tau"].shape):
        leads = {name: x.shape[:-1] for name, x in arrays.items() if name != "tau"}
        batch = batch_axes("rollout", leads)
        is_known = all(n == n for n in (*batch, *shape))  # an unknown length is NaN
        core = 1 + (is_per_step(shape, batch, steps) if is_known else len(shape) > len(batch) + 1)
        motors = plant.nv - len(plant.unactuated_indices)
        sizes["tau"] = *shape[-core:-1], motors if shape[-1] == motors else plant.nv
    inputs = [Argument(name, sizes[name]) for name in arrays]
    outputs = [Argument("q", (samples, plant.nq)), Argument("v", (samples, plant.nv))]
    all_options = {**options, **({} if "tau" in arrays else {"tau": law})}
    call = RolloutBlocks(rollout, plant.system, tuple(arrays), all_options, core)
    states = map_blocks("rollout", call, inputs, outputs, list(arrays.values()), None)
    return RolloutArrays(*states)


def _check_no_batch_axes(law: object, plant: Plant) -> None:
    """Raise an error if the controller or the parameters have batch axes: they are not cut, and so
    must be the same for all blocks."""
    reference = getattr(law, "reference", None)
    followed = getattr(reference, "constant", None)
    if followed is None:
        followed = () if reference is None else reference(0.0)
    numbers = getattr(law, "numbers", {}).values()
    uncut = {
        "the controller": (*followed, *numbers),
        "the parameters": parameters_of(plant.robot),
    }
    for name, arrays in uncut.items():
        for lead in (np.shape(x)[:-1] for x in arrays):
            if any(n != 1 for n in lead):
                raise StateError(
                    f"rollout: {name} came with batch axes {lead}, along which Dask arrays are "
                    "cut into blocks",
                    "give x.compute(), or one value for all motions",
                )
