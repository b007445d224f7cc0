"""The optimum as a function of its start, goals and parameters: arrays of torch or JAX.

    x -> (q, v, u, converged)      x: those of the start, the goals and the parameters that are
                                   arrays of the library; everything else is constant
    pullback   x, w -> x_bar       `OptimalMotion.vjp`
    pushforward   x, dx -> (dq, dv, du)      `OptimalMotion.jvp`

An element of a batch whose weights are all zero has the gradient zero, also if it has not
converged: losses that leave such elements out have finite gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from psiphi._util.array_types import AnyArray, DType, Out
from psiphi._util.errors import StateError
from psiphi._util.validate import (
    array_library,
    batch_axes,
    check_array,
    is_foreign,
    on_gpu,
    real_array,
)
from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
from psiphi.apps.optimal_control.optimum_derivatives import goal_shape
from psiphi.apps.optimal_control.problem_request import check_goal_names, read_goal
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import array_module, dispatch, is_tracer
from psiphi.functions.arrays.function_registry import register

if TYPE_CHECKING:
    from psiphi.apps.optimal_control.optimal_control import OptimalControl

Named = Mapping[str, Any]
STATES = ("q", "v", "u")


class OptimalArrays(NamedTuple):
    """The optimum as arrays of torch or JAX: states q (..., N + 1, nq), v (..., N + 1, nv) and
    torques u (..., N, nu), and whether each problem has converged (...)."""

    q: Any
    v: Any
    u: Any
    converged: Any


def has_foreign(values: Sequence[object]) -> bool:
    """Whether some are arrays of torch, JAX or on the GPU."""
    return any(map(is_foreign, values))


def solve_arrays(problem: OptimalControl, given: Named, options: Named) -> OptimalArrays:
    """The optimum for `given`: q, v, goals by name, and perhaps parameters."""
    cores = argument_shapes(problem, given)
    inputs, values, leads, constants = [], [], {}, {}
    for name, value in given.items():
        arg = Argument(name, cores[name])
        if is_foreign(value):
            check_array("solve", arg, value.shape, str(value.dtype).removeprefix("torch."))
            inputs.append(arg)
            values.append(value)
            leads[name] = tuple(value.shape[: value.ndim - len(arg.shape)])
        else:
            constants[name] = value
            leads[name] = _constant_axes(problem, arg, value)
    if any(map(on_gpu, values)):
        _refuse_gpu()
    options = {name: constant_numbers(name, value) for name, value in options.items()}
    leads |= _guess_axes(options)
    batch = batch_axes("solve", leads)
    if np.broadcast_shapes(*(leads[arg.name] for arg in inputs)) != batch:
        values[0] = array_module(values[0]).broadcast_to(values[0], (*batch, *inputs[0].shape))
    function = OptimumFunction(problem, tuple(inputs), constants, options)
    found = OptimalArrays(*dispatch(function, values))
    return found._replace(converged=found.converged > 0.5)


def argument_shapes(problem: OptimalControl, given: Named) -> dict[str, tuple[int, ...]]:
    """{name: core shape} of the start, the goals and the parameters."""
    robot, rows = problem.robot, problem.steps + 1
    found: dict[str, tuple[int, ...]] = {"q": (robot.nq,), "v": (robot.nv,)}
    if PARAMETERS in given:
        problem.check_free(given[PARAMETERS])
        found[PARAMETERS] = np.shape(robot.parameter_arguments[0])[-1:]
    terms = (*problem.running, *problem.final)
    check_goal_names(terms, [name for name in given if name not in found])
    for term in terms:
        if term.has_goal:
            found[term.name] = (*(rows,) * term.cost.along, *goal_shape(term))
    return found


def _constant_axes(problem: OptimalControl, arg: Argument, value: Any) -> tuple[int, ...]:
    """The batch axes of an argument that is no array of the library."""
    terms = (*problem.running, *problem.final)
    for term in terms:
        if term.has_goal and term.name == arg.name:
            return read_goal(term, value, problem.steps).shape[:-2]
    is_number = isinstance(value, int | float)
    row = np.zeros(arg.shape) if is_number else real_array(arg.name, value, arg.shape, "")
    return row.shape[: row.ndim - len(arg.shape)]


def _guess_axes(options: Named) -> dict[str, tuple[int, ...]]:
    """The batch axes of guesses."""
    found = {}
    if (near := options.get("near")) is not None and isinstance(near, OptimalMotion):
        found["near"] = near.batch
    if (torques := options["torques"]) is not None:
        found["torques"] = np.shape(torques)[:-2]
    if (states := options["states"]) is not None and isinstance(states, tuple | list):
        found |= {f"states {i}": np.shape(x)[:-2] for i, x in enumerate(states)}
    schedule = options["schedule"]
    if isinstance(schedule, Mapping):
        found |= {f"schedule {name}": np.shape(x)[:-1] for name, x in schedule.items()}
    elif schedule is not None:
        found["schedule"] = np.shape(schedule)[:-2]
    return found


def constant_numbers(name: str, value: Any) -> Any:
    """The numbers of an array or of several, without derivatives; other values as they are."""
    if isinstance(value, tuple | list) and has_foreign(value):
        return tuple(constant_numbers(name, x) for x in value)
    if not is_foreign(value):
        return value
    if is_tracer(value):
        raise StateError(
            f"OptimalControl: {name} is a tracer of JAX, expected numbers",
            "give the start, goals and parameters= of solve as tracers, nothing else",
        )
    array: Any = value
    return array.detach().cpu().numpy() if array_library(array) == "torch" else np.asarray(array)


def _refuse_gpu() -> NoReturn:
    raise StateError("solve runs on the CPU, and an array is on a GPU", "use x.cpu()")


class OptimumFunction:
    """(q, v, u, converged) as a function of the `inputs`; `constants` are the other arguments."""

    name = "solve"
    is_temporary = True  # it exists for one call

    def __init__(
        self,
        problem: OptimalControl,
        inputs: tuple[Argument, ...],
        constants: Named,
        options: Named,
    ):
        self.problem, self.inputs = problem, inputs
        self.constants, self.options = constants, options
        robot, nodes = problem.robot, problem.steps + 1
        self.outputs = (
            Argument("q", (nodes, robot.nq)),
            Argument("v", (nodes, robot.nv)),
            Argument("u", (problem.steps, len(problem.motors))),
            Argument("converged", ()),
        )
        self.number = register(self)
        self.last: tuple[list, OptimalMotion] | None = None

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        motion, dtype = self.motion(arrays), np.result_type(np.float32, *arrays)
        found = (motion.q, motion.v, motion.u, motion.converged)
        return tuple(np.asarray(x, dtype) for x in found)

    def motion(self, arrays: Sequence[np.ndarray]) -> OptimalMotion:
        """The optimum, solved now unless it was the last one."""
        # contents, not addresses: memory is reused
        key = [(x.shape, x.dtype, x.tobytes()) for x in arrays]
        if self.last is None or self.last[0] != key:
            named = {
                arg.name: np.asarray(x, float) for arg, x in zip(self.inputs, arrays, strict=True)
            }
            found = self.problem.solve(**self.constants, **named, **self.options)
            self.last = key, found
        return self.last[1]

    def run(self, values: Sequence[AnyArray], out: Out = None, dtype: DType = None) -> Any:
        _refuse_gpu()

    run_on_gpu = run

    def pullback(self, *names: str) -> OptimumDerivative:
        return OptimumDerivative(self, "pull", names)

    def pushforward(self, *names: str) -> OptimumDerivative:
        return OptimumDerivative(self, "push", names)


class OptimumDerivative:
    """The pullback or pushforward of an optimum by the inputs `names`."""

    is_temporary = True

    def __init__(self, function: OptimumFunction, kind: str, names: tuple[str, ...]):
        self.function, self.kind, self.names = function, kind, names
        self.name, self.number = f"solve: {kind}", register(self)
        shapes = {arg.name: arg.shape for arg in function.inputs}
        if kind == "pull":
            added = [Argument(f"{arg.name}_weight", arg.shape) for arg in function.outputs]
            self.outputs = tuple(Argument(f"{name}_bar", shapes[name]) for name in names)
        else:
            added = [Argument(f"{name}_change", shapes[name]) for name in names]
            self.outputs = tuple(Argument(f"{arg.name}_dot", arg.shape) for arg in function.outputs)
        self.inputs = (*function.inputs, *added)
        self.added = tuple(added)

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        count, dtype = len(self.function.inputs), np.result_type(np.float32, *arrays)
        motion = self.function.motion(arrays[:count])
        rule = self._pull if self.kind == "pull" else self._push
        changes = [np.asarray(x, float) for x in arrays[count:]]
        cores = [len(arg.shape) for arg in self.added]
        found = over_rows(lambda rows: rule(motion, rows), motion.batch, changes, cores)
        return tuple(x.astype(dtype, copy=False) for x in found)

    def _pull(self, motion: OptimalMotion, weights: list[np.ndarray]) -> list[np.ndarray]:
        """The gradients by `names`, (..., *shape)."""
        batch, manifold = motion.batch, motion.problem.robot.manifold
        named = dict(zip(STATES, weights, strict=False))
        used = np.zeros(batch, dtype=bool)
        for w in named.values():
            used |= np.broadcast_to((w != 0.0).any(axis=(-1, -2)), batch)
        shapes = [(*batch, *arg.shape) for arg in self.outputs]
        if not used.any():
            return [np.zeros(shape) for shape in shapes]
        named["q"] = manifold.tangent_gradient(motion.q, named["q"])
        found = motion.vjp(**named)
        found["q"] = manifold.coordinate_gradient(motion.q[..., 0, :], found["q"])
        rows = [found[name] for name in self.names]
        return [np.where(_spread(used, x), x, 0.0) for x in rows]

    def _push(self, motion: OptimalMotion, changes: list[np.ndarray]) -> list[np.ndarray]:
        """The changes of the results."""
        manifold = motion.problem.robot.manifold
        named = dict(zip(self.names, changes, strict=True))
        if "q" in named:
            named["q"] = manifold.velocity(motion.q[..., 0, :], named["q"])
        found = motion.jvp(**named)
        found["q"] = manifold.rate(motion.q, found["q"])
        return [*(found[name] for name in STATES), np.zeros(motion.batch)]

    def run(self, values: Sequence[AnyArray], out: Out = None, dtype: DType = None) -> Any:
        _refuse_gpu()

    run_on_gpu = run

    def pullback(self, *names: str) -> NoReturn:
        raise StateError(
            "solve: second derivatives of an optimum are not implemented",
            "use finite differences of the first ones",
        )

    pushforward = pullback


def _spread(flags: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Flags (...) as an array that broadcasts with (..., *core)."""
    return flags.reshape((*flags.shape, *(1,) * (like.ndim - flags.ndim)))


def over_rows(
    rule: Callable[[list[np.ndarray]], list[np.ndarray]],
    batch: tuple[int, ...],
    arrays: Sequence[np.ndarray],
    cores: Sequence[int],
) -> list[np.ndarray]:
    """rule(rows) for each set of rows with the batch axes `batch`, where the arrays may have more:
    several weights of one optimum. `cores` are the numbers of core axes."""
    leads = [x.shape[: x.ndim - n] for x, n in zip(arrays, cores, strict=True)]
    whole = np.broadcast_shapes(batch, *leads)
    if whole == batch:
        return rule(list(arrays))
    full = [
        np.broadcast_to(x, (*whole, *x.shape[x.ndim - n :]))
        for x, n in zip(arrays, cores, strict=True)
    ]
    padded = (*(1,) * (len(whole) - len(batch)), *batch)
    more = [i for i, n in enumerate(padded) if n != whole[i]]
    results: list[np.ndarray] | None = None
    for index in np.ndindex(*(whole[i] for i in more)):
        place = [slice(None)] * len(whole)
        for i, k in zip(more, index, strict=True):
            place[i] = slice(k, k + 1)
        rows = [x[tuple(place)].reshape((*batch, *x.shape[len(whole) :])) for x in full]
        found = rule(rows)
        if results is None:
            results = [np.zeros((*whole, *x.shape[len(batch) :])) for x in found]
        for total, x in zip(results, found, strict=True):
            total[tuple(place)] = x.reshape((*padded, *x.shape[len(batch) :]))
    assert results is not None
    return results
