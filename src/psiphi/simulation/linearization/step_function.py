"""`robot.step(q, v, tau, dt)`: one step as one function, for loops that need every state.

    x = [q; v] after a step of h = dt with constant torque tau

It is a gufunc like all others (any batch axes, float32 and float64, threads), and calls with a
single state have no NumPy overhead. Its last argument, `like`, only sets the shape of the result.
The code consists of the blocks of a rollout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from psiphi._util.array_types import AnyArray, Array, Numbers
from psiphi._util.errors import Error
from psiphi._util.validate import is_foreign, is_lazy, on_gpu
from psiphi.backends.cuda.kernel_launch import dtype_and_device
from psiphi.compiler.equations import Arguments, with_parameters
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.passes import RuleRequest
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays.array_dispatch import (
    dispatch,
    dt_beside,
    full_like,
    widest_array,
)
from psiphi.functions.differentiable_function import DifferentiableFunction, traced_function
from psiphi.functions.scalar_fast_path import no_fast_path
from psiphi.model.contact.contact_state import ContactState
from psiphi.model.contact.ground import Ground
from psiphi.model.model import TINY, Model
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Law
from psiphi.simulation.linearization.ground_step import ground_step
from psiphi.simulation.linearization.step_arguments import (
    FLOAT32,
    FLOAT64,
    check_batch,
    check_method,
    one_dt,
    read_dt,
    read_state,
)

Pair = tuple[np.ndarray, np.ndarray]


def _method_step(model: Model, method: str) -> RuleRequest:
    """One step of a method as a request to the compiler: the blocks of a rollout, once."""
    state = (model.nq + model.nv,)
    inputs = with_parameters(
        (
            Argument("q", (model.nq,), "q"),
            Argument("v", (model.nv,), "v"),
            Argument("tau", (model.nv,), "v"),
            Argument("h", (1,)),
        ),
        model,
    )
    equation, rule = f"[q; v] after one step of {method}", partial(_trace_step, model, method)
    inputs = (*inputs, Argument("like", state))
    return RuleRequest(model, equation, inputs, (Argument("x", state),), rule)


def _trace_step(model: Model, method: str, inputs: Arguments, outputs: Arguments) -> SingleStep:
    program = RolloutProgram(
        Robot.of(model), RolloutOptions(method, Law(), time_varying=False, hold=False)
    )
    sizes = {"Q": model.nq, "V": model.nv, "like": model.nq + model.nv}
    both = trace("both", sizes, lambda Q, V, like: {"x": np.concatenate([Q, V])})
    frame = BlockFrame(program.blocks | {"both": (both, {})})
    return SingleStep(frame, ("start", *program.order, "both"), inputs, outputs)


class Stepper:
    """Takes steps of one robot with one method."""

    def __init__(self, robot: Robot, method: str):
        self.model, self.method, self.nq, self.nv = robot.model, method, robot.nq, robot.nv
        self.dt, self.h = 0.0, np.zeros(1)
        self.like = np.zeros(self.nq + self.nv)
        self.fast_call: Callable[..., Any] = no_fast_path  # until the first call
        self.parameters, self.functions = robot.parameter_arguments, robot.function_cache
        # indices of the last number of each quaternion; all four are read if it is zero
        self.quaternion_ends = tuple(robot.quaternions)

    @cached_property
    def function(self) -> DifferentiableFunction:
        """The compiled step; one for all values of a robot's parameters."""
        return traced_function(
            self.functions, f"step {self.method}", partial(_method_step, self.model, self.method)
        )

    def __call__(self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers) -> Pair:
        if (
            isinstance(dt, float)  # not an array, which is a batch, nor a tensor
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
        """Whether a quaternion may be zero, which is an error."""
        return any(-TINY < q[last] < TINY for last in self.quaternion_ends)

    def call_checked(self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers) -> Pair:
        """A step of anything that can be read as arrays; float32 if q, v and tau all are."""
        if any(map(is_foreign, (q, v, tau, dt, *self.parameters))):
            return self._foreign(q, v, tau, dt)
        if any(map(is_lazy, (q, v, tau))):
            x = self.function.run((q, v, tau, read_dt(dt)[..., None], *self.parameters, self.like))
            return x[..., : self.nq], x[..., self.nq :]
        q, v, tau = read_state("step", self.model, q, v, tau)
        dtype = FLOAT32 if q.dtype == v.dtype == tau.dtype == FLOAT32 else FLOAT64
        self.model.check_nonzero_quaternions("step", q)
        h = read_dt(dt)
        check_batch("step", (q, v, tau), h, self.parameters)
        arguments = (q, v, tau, h[..., None], *self.parameters, self.like)
        with np.errstate(all="ignore"):
            x = self.function.run([x.astype(dtype, copy=False) for x in arguments])
        if h.ndim == 0 and x.ndim == 1 and self.fast_call is no_fast_path:
            self.fast_call = self.function.scalar_call(no_fast_path)
        if not h.ndim:
            self.dt, self.h = float(h), h.reshape(1).copy()
        return x[..., : self.nq], x[..., self.nq :]

    def _foreign(self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers) -> Pair:
        """A step of arrays of torch or JAX, or on the GPU; dt is a number or an array (..., 1) of
        their library."""
        like = widest_array(q, v, tau, dt, *self.parameters)
        if is_foreign(dt) and on_gpu(like):  # the kernel calls dt "h"
            inputs = [
                replace(arg, name="dt" if arg.name == "h" else arg.name)
                for arg in self.function.inputs[:4]
            ]
            dtype_and_device("step", inputs, cast("Sequence[AnyArray]", (q, v, tau, dt)))
        h = dt_beside(like, dt, one_dt)
        x = dispatch(
            self.function, (q, v, tau, h, *self.parameters, full_like(like, self.nq + self.nv, 0.0))
        )
        return x[..., : self.nq], x[..., self.nq :]


def step(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: Numbers,
    method: str | None = None,
    *,
    contacts: Ground | None = None,
) -> tuple[Array, Array] | tuple[np.ndarray, np.ndarray, ContactState]:
    """(q, v) after one step of dt with constant torque tau, as one compiled function.

    q (..., nq), v and tau (..., nv); dt in seconds, a number or (...); `method` is "rk4" (the
    default), "lie", "implicit", "midpoint" or "euler", as in `pp.simulate`. float32 in, float32
    out.

    With `contacts`, a `pp.Ground`, a third result has the forces, gaps, modes and residual of the
    contacts (`ContactState`). Derivatives of torch and JAX are those of q and v; for them the third
    result is a constant.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = robot.step(robot.neutral(), np.zeros(6), np.zeros(6), 1e-3)
    >>> q.shape, v.shape
    ((6,), (6,))
    """
    if contacts is not None:
        return ground_step(robot, q, v, tau, dt, method, contacts)
    memo, method = robot.__dict__, "rk4" if method is None else method
    try:
        return memo["_steppers"][method](q, v, tau, dt)
    except Exception as error:  # a first call, a list, a batch, or a wrong argument
        if isinstance(error, Error):
            raise
    steppers = memo.setdefault("_steppers", Steppers(robot))
    return steppers[check_method(method)].call_checked(q, v, tau, dt)


class Steppers(dict):
    """The steppers of a robot by method, made on first use."""

    def __init__(self, robot: Robot):
        super().__init__()
        self.robot = robot

    def __missing__(self, method: str) -> Stepper:
        return self.setdefault(check_method(method), Stepper(self.robot, method))
