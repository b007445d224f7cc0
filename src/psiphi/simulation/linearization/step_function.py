"""`robot.step(q, v, tau, dt)`: one step as one function, for loops that ask for the state after every step.

    x = [q; v] after a step of h = dt under the torque tau, which is held

It is a gufunc like all others (any batch axes, float32 and float64, threads), and for one state a call without NumPy's
overhead: its last argument is only looked at, for the shape of the result. The code is that of a rollout, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import Error, StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, is_foreign, is_lazy, on_gpu, one_of, read_array
from psiphi.backends.cuda.kernel_launch import dtype_and_device
from psiphi.compiler.equations import with_parameters
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.passes import Traceable
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import (
    as_row,
    dispatch,
    full_like,
    scalar_dt,
    widest_array,
)
from psiphi.functions.differentiable_function import DifferentiableFunction, traced_function
from psiphi.model.model import TINY, Model
from psiphi.model.state_checks import check_column_order
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Law
from psiphi.simulation.integration.integrators import METHODS

Pair = tuple[np.ndarray, np.ndarray]
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


@dataclass(frozen=True, eq=False)
class MethodStep(Traceable):
    """One step of a method, as the compiler takes it: the blocks of a rollout, once."""

    model: Model
    method: str

    @property
    def equation(self) -> str:
        return f"[q; v] after one step of {self.method}"

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        m = self.model
        state = (m.nq + m.nv,)
        inputs = (
            Argument("q", (m.nq,), "q"),
            Argument("v", (m.nv,), "v"),
            Argument("tau", (m.nv,), "v"),
            Argument("h", (1,)),
        )
        return (*with_parameters(inputs, m), Argument("like", state)), (Argument("x", state),)

    def trace(self) -> SingleStep:
        machine = RolloutProgram(
            Robot.of(self.model), RolloutOptions(self.method, Law(), time_varying=False, hold=False)
        )
        sizes = {"Q": self.model.nq, "V": self.model.nv, "like": self.model.nq + self.model.nv}
        both = trace("both", sizes, lambda Q, V, like: {"x": np.concatenate([Q, V])})
        return SingleStep(
            BlockFrame(machine.blocks | {"both": (both, {})}),
            ("start", *machine.order, "both"),
            *self.arguments(),
        )


class Stepper:
    """Steps of one robot by one method."""

    def __init__(self, robot: Any, method: str):
        self.model, self.method, self.nq, self.nv = robot.model, method, robot.nq, robot.nv
        self.dt, self.h = 0.0, np.zeros(1)
        self.like = np.zeros(self.nq + self.nv)
        self.fast_call: Any = None  # after the first call
        self.parameters, self.functions = robot.parameter_arguments, robot.function_cache
        self.quaternion_ends = tuple(
            robot.quaternions
        )  # where their last numbers stand: of one that is 0 all four are looked at

    @cached_property
    def function(self) -> DifferentiableFunction:
        """One for all parameters of a robot; its name in the cache tells of the rules it is made from."""
        return traced_function(
            self.functions, f"step {self.method}", partial(MethodStep, self.model, self.method)
        )

    def __call__(self, q: Any, v: Any, tau: Any, dt: Any) -> Pair:
        if (
            isinstance(dt, float)  # one number: an array asks for a batch, a tensor for a slope
            and dt == self.dt
            and type(q) is np.ndarray
            and q.ndim == 1
            and q.dtype is FLOAT64
            and not (self.quaternion_ends and self._may_be_zero(q))
        ):
            x = self.fast_call(q, v, tau, self.h, *self.parameters, self.like)
            if type(x) is np.ndarray and x.ndim == 1 and x.dtype is FLOAT64:
                return x[: self.nq], x[self.nq :]
        return self.call_checked(q, v, tau, dt)

    def _may_be_zero(self, q: np.ndarray) -> bool:
        """Whether some quaternion may be zero, which has no direction."""
        return any(-TINY < q[last] < TINY for last in self.quaternion_ends)

    def call_checked(self, q: Any, v: Any, tau: Any, dt: Any) -> Pair:
        """Anything that reads as arrays; float32 out where q, v and tau all are."""
        if any(map(is_foreign, (q, v, tau, dt, *self.parameters))):
            return self._foreign(q, v, tau, dt)
        if any(map(is_lazy, (q, v, tau))):
            x = self.function.run((q, v, tau, read_dt(dt)[..., None], *self.parameters, self.like))
            return x[..., : self.nq], x[..., self.nq :]
        q, v, tau = read_state("step", self.model, q, v, tau)
        kind = FLOAT32 if q.dtype == v.dtype == tau.dtype == FLOAT32 else FLOAT64
        self.model.check_quaternions("step", q)
        h = read_dt(dt)
        check_batch("step", [q, v, tau], h, self.parameters)
        more = (x.astype(kind, copy=False) for x in self.parameters)
        given = (
            *(x.astype(kind, copy=False) for x in (q, v, tau)),
            h[..., None].astype(kind),
            *more,
            self.like.astype(kind),
        )
        with np.errstate(all="ignore"):
            x = self.function.run(given)
        if not h.ndim and self.fast_call is None:
            self.fast_call = self.function.scalar_call()
        if not h.ndim:
            self.dt, self.h = float(h), h.reshape(1).copy()
        return x[..., : self.nq], x[..., self.nq :]

    def _foreign(self, q: Any, v: Any, tau: Any, dt: Any) -> tuple[Any, Any]:
        """Arrays of torch or JAX, or of a graphics card; one dt, or one an element, (..., 1), in their library."""
        like = widest_array(q, v, tau, dt, *self.parameters)
        if is_foreign(dt) and on_gpu(like):  # whose name in the kernel is another
            inputs = [
                replace(arg, name="dt" if arg.name == "h" else arg.name)
                for arg in self.function.inputs[:4]
            ]
            dtype_and_device("step", inputs, (q, v, tau, dt))
        h = as_row(dt) if is_foreign(dt) else full_like(like, 1, one_dt(dt))
        x = dispatch(
            self.function, (q, v, tau, h, *self.parameters, full_like(like, self.nq + self.nv, 0.0))
        )
        return x[..., : self.nq], x[..., self.nq :]


def step(
    robot: Robot, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers, method: str = "rk4"
) -> tuple[Array, Array]:
    """(q, v) after one step of dt under the torque tau, which is held: compiled, one call.

    q (..., nq), v and tau (..., nv), dt in seconds, one or one an element; `method` is "rk4", "lie", "implicit" or "euler"
    as in `pp.simulate`. float32 in, float32 out.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = robot.step(robot.neutral(), np.zeros(6), np.zeros(6), 1e-3)
    >>> q.shape, v.shape
    ((6,), (6,))
    """
    known = robot.__dict__
    try:
        return known["_steppers"][method](q, v, tau, dt)
    except (
        Exception
    ) as error:  # a first call, a list, a batch, or a mistake: which is found out once more, slowly
        if isinstance(error, Error):
            raise
    steppers = known.setdefault("_steppers", Steppers(robot))
    return steppers[check_method(method)].call_checked(q, v, tau, dt)


class Steppers(dict):
    """By method, each made when it is first asked for."""

    def __init__(self, robot: Any):
        super().__init__()
        self.robot = robot

    def __missing__(self, method: Any) -> Stepper:
        return self.setdefault(check_method(method), Stepper(self.robot, method))


def check_method(method: Any, of: str = "step") -> str:
    """One of the methods that take steps of dt."""
    return one_of(f"{of}: method", method, METHODS)


def one_dt(dt: Any, of: str = "step") -> float:
    """One dt beside arrays of another library."""
    return scalar_dt(of, read_dt(dt, of))


one_dt._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch.compile takes it as it is


def read_state(of: str, model: Any, q: Any, v: Any, tau: Any) -> list[np.ndarray]:
    """q, v and tau as arrays of float64, or float32 where they came so."""
    arrays = []
    for name, given, size in (("q", q, model.nq), ("v", v, model.nv), ("tau", tau, model.nv)):
        array, fault = read_array(given, (size,))
        if fault:
            raise StateError(
                f"{of}: {name} {fault}", f"give {size} numbers, with any batch axes in front"
            )
        check_column_order(model, f"{of}: {name}", given, "q" if name == "q" else "v")
        arrays.append(array if array.dtype == FLOAT32 else array.astype(float, copy=False))
    return arrays


def check_batch(
    of: str, state: list[np.ndarray], h: np.ndarray | None, more: Any
) -> tuple[int, ...]:
    """The batch axes of q, v, tau, of the steps, and of the free numbers of a robot that has some."""
    leads = {
        name: x.shape[:-1]
        for name, x in zip(("q", "v", "tau", PARAMETERS), (*state, *more), strict=False)
    }
    return batch_axes(of, leads if h is None else leads | {"dt": h.shape})


def read_dt(dt: Any, of: str = "step") -> np.ndarray:
    h, fault = read_array(dt, ())
    if fault:
        raise StateError(f"{of}: dt {fault}", "give seconds, 1e-3 for instance")
    is_word, h = h.dtype == bool, h.astype(float)
    if is_word or not ((h > 0.0) & (h < np.inf)).all():
        raise StateError(
            f"{of}: dt is {shown(dt)}, expected finite numbers above 0",
            "give seconds, 1e-3 for instance",
        )
    return h
