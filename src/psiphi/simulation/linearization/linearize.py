"""`robot.linearize`: the matrices A and B, continuous or of one step.

`closed_linearize.py` does the same for closed chains. A small change of the state is x = (δ, δv): q
moves along the tangent vector δ, as in `robot.integrate`, and v changes by δv.

    continuous   δ' = δv - ad_v δ,  δv' = a_q δ + a_v δv + a_tau δtau
    one step     the rules of the integrator, run on arrays with tangents. The acceleration of a
                 stage changes by da = a_q T⁺ dq + a_v dv + a_tau dtau, where dq = T(q) δ and
                 T(q) δ = rate(q, δ). Stages need not satisfy embedded loops; there da is the
                 derivative with respect to all numbers of q

ad_v is the bracket of a curved joint (ball, planar, free), and zero if q is a vector space. The
Jacobians are compiled functions (`joint_law_derivatives.py`, forward dynamics), and the products
are those of the array library, so that everything runs where the arrays are. NumPy arrays use the
same equations as one compiled function if that is not too long (`linearize_function.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from psiphi._util.array_types import AnyArray, Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_array, is_foreign, is_lazy, on_gpu
from psiphi.backends.cuda.kernel_launch import dtype_and_device
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import (
    array_module,
    as_row,
    beside,
    call,
    contiguous,
    convert_like,
    full_like,
    is_tracer,
    read_numbers,
)
from psiphi.functions.arrays.dask_arrays import map_blocks
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.functions.scalar_fast_path import install_fast_path, no_fast_path
from psiphi.robot import joint_law_derivatives
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import rule_places
from psiphi.simulation.integration.integrators import step_sequence
from psiphi.simulation.linearization import linearize_function
from psiphi.simulation.linearization.linearize_function import call_traced, is_traced_array
from psiphi.simulation.linearization.step_arguments import (
    FLOAT32,
    FLOAT64,
    check_batch,
    check_method,
    one_dt,
    read_dt,
    read_state,
)

if TYPE_CHECKING:
    from psiphi.robot.free_robot import FreeRobot

Pair = tuple[Any, Any]
Batch = tuple[int, ...]
StepSize = AnyArray | float | None  # None: continuous time
NAME = "linearize"


def linearize(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: Numbers | None = None,
    method: str = "rk4",
) -> tuple[Array, Array]:
    """(A, B) of dx/dt = A x + B δtau for small changes x = (δ, δv) of the state; with dt, of x
    after one step by `method`.

    δ is a tangent vector like v: `integrate(q, δ)` is the changed q. A (..., 2 nv, 2 nv),
    B (..., 2 nv, nv).

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> A, B = robot.linearize(robot.neutral(), np.zeros(6), robot.gravity(robot.neutral()))
    >>> A.shape, B.shape
    ((12, 12), (12, 6))
    """
    method, parameters = check_method(method, NAME), robot.parameter_arguments
    if any(map(is_lazy, (q, v, tau, dt, *parameters))):
        return _map_blocks(robot, q, v, tau, dt, method)
    if not any(map(is_foreign, (q, v, tau, dt, *parameters))):
        return _on_host(robot, q, v, tau, dt, method)
    foreign = [x for x in parameters if is_foreign(x)]
    if foreign and not is_foreign(q):  # the other arguments follow the library of q
        q = convert_like(foreign[0], read_numbers(NAME, Argument("q", (robot.nq,)), q))
    sizes = robot.nq, robot.nv, robot.nv
    (Q, V, U), h = read_foreign(sizes, (q, v, tau), dt, parameters)
    return _split(robot, _state_matrices(robot, Q, V, U, h, method, parameters))


def _map_blocks(
    robot: Robot, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers | None, method: str
) -> Any:
    """(A, B) of Dask arrays, as Dask arrays."""
    n, nv = 2 * robot.nv, robot.nv
    inputs = [Argument("q", (robot.nq,)), Argument("v", (nv,)), Argument("tau", (nv,))]
    values: list[Any] = [q, v, tau]
    for name, array in zip((PARAMETERS,), robot.parameter_arguments, strict=False):
        inputs.append(Argument(name, array.shape[-1:]))
        values.append(array)
    if dt is not None:
        inputs.append(Argument("dt", ()))
        values.append(dt if is_lazy(dt) else read_dt(dt, NAME))
    outputs = Argument("A", (n, n)), Argument("B", (n, nv))
    call = BlockLinearization(robot, dt is not None, method)
    return map_blocks(NAME, call, inputs, outputs, values, None)


@dataclass(frozen=True)
class BlockLinearization:
    """A and B of one block of Dask arrays: of q, v, tau, the parameters if any, and dt."""

    robot: Robot
    is_step: bool
    method: str

    def __call__(self, *arrays: np.ndarray) -> Pair:
        q, v, tau, *parameters = arrays
        dt = parameters.pop() if self.is_step else None
        robot = cast("FreeRobot", self.robot).at(*parameters) if parameters else self.robot
        return linearize(robot, q, v, tau, dt, self.method)


def _on_host(
    robot: Robot, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers | None, method: str
) -> Pair:
    """(A, B) of NumPy arrays, computed in float64; float32 if q, v and tau all are."""
    name, parameters = NAME if dt is None else f"{NAME} {method}", robot.parameter_arguments
    if dt is None or (isinstance(dt, float) and 0.0 < dt < math.inf):
        step_sizes = () if dt is None else (np.array((dt,)),)
        fast_call = robot.fast_calls.get(name, no_fast_path)
        found = fast_call(q, v, tau, *parameters, *step_sizes)
        if found is not None:
            return found
    arrays = read_state(NAME, robot, q, v, tau)
    h = None if dt is None else read_dt(dt, NAME)
    batch = check_batch(NAME, arrays, h, parameters)
    dtype = FLOAT32 if all(x.dtype == FLOAT32 for x in arrays) else FLOAT64
    Q, V, U = state = [
        np.broadcast_to(x.astype(float, copy=False), (*batch, x.shape[-1])) for x in arrays
    ]
    robot.check_nonzero_quaternions(NAME, Q)
    h = h if h is None else h[..., None]
    compiled = linearize_function.linearize_function(
        robot, name, "" if dt is None else method, _state_matrices
    )
    if compiled is None:
        A, B = _split(robot, _state_matrices(robot, Q, V, U, h, method, parameters))
    else:
        inputs = [*state, *parameters, *(() if h is None else (h,))]
        with np.errstate(all="ignore"):
            A, B = compiled.run(inputs)
        install_fast_path(compiled, inputs)
        robot.fast_calls[name] = compiled.fast_path
    return A.astype(dtype, copy=False), B.astype(dtype, copy=False)


def linearize_closed(system: System, q: Numbers, v: Numbers, tau: Numbers) -> Pair:
    """(A, B) of a closed chain, (..., 2 nv, 2 nv) and (..., 2 nv, len(tau)): x' = A x + B δtau."""
    a_q, a_v, a_tau = system.function("forward_dynamics").jacobian("q", "v", "tau")(q, v, tau)
    batch, nv = tuple(a_q.shape[:-2]), system.nv
    state: Sequence[Any] = (
        [beside(a_q, x) for x in (q, v)] if is_foreign(a_q) else system.state_arrays(q=q, v=v)
    )
    sizes = system.nq, nv
    Q, V = (broadcast(x, (*batch, n)) for x, n in zip(state, sizes, strict=True))
    join = array_module(a_q).concatenate
    A = join([_tangent_dynamics(system.robot, Q, V), join([a_q, a_v], -1)], -2)
    return A, join([full_like(a_q, (*batch, nv, a_tau.shape[-1]), 0.0), a_tau], -2)


def read_foreign(
    sizes: Sequence[int],
    values: Sequence[Numbers],
    dt: Numbers | None,
    parameters: Sequence[AnyArray] = (),
    of: str = NAME,
) -> tuple[tuple[Any, Any, Any], Any]:
    """Arrays of another library or on the GPU, checked as kernels check them and broadcast to one
    batch, which includes that of the parameters; and dt, or None."""
    named = zip(("q", "v", "tau", "dt"), (*sizes, 1), strict=True)
    specs = tuple(Argument(name, (size,)) for name, size in named)
    given = (*values, as_row(cast("AnyArray", dt))) if is_foreign(dt) else values
    arrays: list[Any] = [contiguous(cast("AnyArray", x)) for x in given]
    specs = specs[: len(arrays)]
    like = next(x for x in arrays if is_foreign(x))
    if any(map(on_gpu, arrays)) and not any(map(is_tracer, arrays)):
        dtype_and_device(of, specs, arrays)
    m, dtype = array_module(like), _dtype_name(like)
    for i, (spec, x) in enumerate(zip(specs, arrays, strict=True)):
        if not is_foreign(x):
            x = m.asarray(read_numbers(of, spec, x).astype(dtype))
        arrays[i] = x
        check_array(of, spec, x.shape, _dtype_name(x))
        if _dtype_name(x) != dtype:
            raise StateError(
                f"{of}: {spec.name} is {_dtype_name(x)}, and another argument {dtype}",
                "give arrays of one dtype",
            )
    named = zip((*(spec.name for spec in specs), PARAMETERS), (*arrays, *parameters), strict=False)
    batch = batch_axes(of, {name: tuple(x.shape[:-1]) for name, x in named})
    h = None if dt is None else arrays[3] if len(arrays) > 3 else one_dt(dt, of)
    q, v, tau = (broadcast(x, (*batch, x.shape[-1])) for x in arrays[:3])
    return (q, v, tau), h


def _dtype_name(x: AnyArray) -> str:
    return str(x.dtype).removeprefix("torch.")


def _split(robot: Robot, matrices: AnyArray) -> Pair:
    """A and B from [A B]."""
    return matrices[..., : 2 * robot.nv], matrices[..., 2 * robot.nv :]


def _state_matrices(
    robot: Robot,
    q: AnyArray,
    v: AnyArray,
    tau: AnyArray,
    h: StepSize,
    method: str,
    parameters: Sequence[AnyArray],
) -> Any:
    """[A B], in continuous time or of a step h; `parameters` are the free parameters, if any."""
    if h is None:
        return _continuous(robot, q, v, tau, parameters)
    return _discrete(robot, q, v, tau, h, method, parameters)


def _acceleration_jacobian(robot: Robot, *values: AnyArray) -> Any:
    """[a_q a_v a_tau]."""
    jacobian = robot.unbound_function("forward_dynamics").jacobian("q", "v", "tau")
    is_traced = is_traced_array(values[0])
    blocks = call_traced(jacobian, cast("Any", values)) if is_traced else jacobian(*values)
    return array_module(blocks[0]).concatenate([*blocks], -1)


def _continuous(
    robot: Robot, q: AnyArray, v: AnyArray, tau: AnyArray, parameters: Sequence[AnyArray]
) -> Any:
    """[A B] of dx/dt = A x + B δtau."""
    join, batch, nv = array_module(q).concatenate, tuple(q.shape[:-1]), robot.nv
    top = join([_tangent_dynamics(robot, q, v), full_like(q, (*batch, nv, nv), 0.0)], -1)
    return join([top, _acceleration_jacobian(robot, q, v, tau, *parameters)], -2)


def _tangent_dynamics(robot: Robot, q: AnyArray, v: AnyArray) -> Any:
    """[-ad_v I]: δ' as a linear function of x = (δ, δv)."""
    join, batch, nv = array_module(q).concatenate, tuple(q.shape[:-1]), robot.nv
    rows = [full_like(q, (*batch, 0, nv), 0.0)]  # a robot without joints has no other rows
    for joints in TangentManifold(robot).slices:
        start, stop, number = joints.v.start, joints.v.stop, joints.number
        n = stop - start
        if number is None:
            rows.append(full_like(q, (*batch, n, nv), 0.0))
            continue
        block = _joint_law(robot, number, "bracket", q[..., joints.q], v[..., joints.v])
        before, after = (
            full_like(q, (*batch, n, start), 0.0),
            full_like(q, (*batch, n, nv - stop), 0.0),
        )
        rows.append(join([before, block, after], -1))
    return join([join(rows, -2), broadcast(identity(q, nv), (*batch, nv, nv))], -1)


def _discrete(
    robot: Robot,
    q: AnyArray,
    v: AnyArray,
    tau: AnyArray,
    h: AnyArray | float,
    method: str,
    parameters: Sequence[AnyArray],
) -> Any:
    """[A B] of x after one step of h, from the rules of the integrator on arrays with tangents."""
    nv, batch, join = robot.nv, tuple(q.shape[:-1]), array_module(q).concatenate
    m, eye = TangentManifold(robot), broadcast(identity(q, 3 * nv), (*batch, 3 * nv, 3 * nv))
    no_change, zero = full_like(q, (*batch, robot.nq, 3 * nv), 0.0), full_like(q, (*batch, nv), 0.0)
    dq = m.rate(TangentArray(q, no_change), TangentArray(zero, eye[..., :nv, :])).change
    state = {"q": TangentArray(q, dq), "v": TangentArray(v, eye[..., nv : 2 * nv, :])}
    torque = TangentArray(tau, eye[..., 2 * nv :, :])
    values: dict[str, Any] = {**state, "Q": state["q"], "V": state["v"], "h": h}
    for item in step_sequence(method, False):
        if callable(item):
            arguments = (values[name] for name in rule_places(item))
            values |= item(m, *arguments)  # type: ignore[arg-type]
            continue
        values["u"] = values["v"]
        if isinstance(item, int):
            values["a"] = _stage_acceleration(
                robot, m, values["q"], values["v"], torque, parameters
            )
    return join([m.tangent(values["q"]), values["v"].change], -2)


def _stage_acceleration(
    robot: Robot,
    m: TangentManifold,
    q: TangentArray,
    v: TangentArray,
    tau: TangentArray,
    parameters: Sequence[AnyArray],
) -> TangentArray:
    """a of one stage. Stages need not satisfy embedded loops: a then depends on all numbers of q,
    and its change is a directional derivative."""
    values = q.value, v.value, tau.value, *parameters
    a = _call(robot.unbound_function("forward_dynamics"), values)
    if not m.manifold.cluster_joints:
        change = array_module(a).concatenate([m.tangent(q), v.change, tau.change], -2)
        return TangentArray(a, _acceleration_jacobian(robot, *values) @ change)
    columns = [x.change.swapaxes(-1, -2) for x in (q, v, tau)]
    batch = tuple(columns[0].shape[:-1])  # with one more axis, of the changes
    repeated = [broadcast(x[..., None, :], (*batch, x.shape[-1])) for x in values]
    pushforward = robot.unbound_function("forward_dynamics").pushforward("q", "v", "tau")
    return TangentArray(a, _call(pushforward, [*repeated, *columns]).swapaxes(-1, -2))


class TangentArray:
    """An array (..., n) with its tangents (..., n, k): its change for k changes of the inputs."""

    __array_ufunc__ = None  # NumPy arrays leave the arithmetic to this class

    def __init__(self, value: AnyArray, change: AnyArray):
        self.value: Any = value
        self.change: Any = change

    def __add__(self, other: TangentArray) -> TangentArray:
        return TangentArray(self.value + other.value, self.change + other.change)

    def __sub__(self, other: TangentArray) -> TangentArray:
        return TangentArray(self.value - other.value, self.change - other.change)

    def __mul__(self, c: AnyArray | float) -> TangentArray:
        """The product with constants."""
        factor = cast("AnyArray", c)[..., None] if getattr(c, "ndim", 0) else c
        return TangentArray(self.value * c, self.change * factor)

    __rmul__ = __mul__


class JointSlice(NamedTuple):
    """The slices of q and v of one curved joint, with its number, or of consecutive flat joints."""

    q: slice
    v: slice
    number: int | None


class TangentManifold:
    """The configuration manifold of a robot for arrays with tangents."""

    def __init__(self, robot: Robot):
        self.robot, self.manifold = robot, robot.manifold

    @cached_property
    def slices(self) -> list[JointSlice]:
        """The slices of all joints, in order."""
        found = [
            JointSlice(joint.q_slice, joint.v_slice, number)
            for number, joint in enumerate(self.manifold.curved)
        ]
        for i, k in zip(*(x.tolist() for x in self.manifold.flat), strict=True):
            last = found[-1] if found else JointSlice(slice(0, 0), slice(0, 0), 0)
            if last.number is None and (last.q.stop, last.v.stop) == (i, k):
                found[-1] = JointSlice(slice(last.q.start, i + 1), slice(last.v.start, k + 1), None)
            else:
                found.append(JointSlice(slice(i, i + 1), slice(k, k + 1), None))
        return sorted(found, key=lambda joints: joints.v.start)

    def rate(self, q: TangentArray, v: TangentArray) -> TangentArray:
        return v if self.manifold.is_flat else self._by_joint("rate", q, v)

    def exp(self, q: TangentArray, v: TangentArray) -> TangentArray:
        return q + v if self.manifold.is_flat else self._by_joint("exp", q, v)

    def unit(self, q: TangentArray) -> TangentArray:
        return q if self.manifold.is_flat else self._by_joint("unit", q)

    def tangent(self, q: TangentArray) -> Any:
        """T⁺ dq: the changes of q as tangent vectors."""
        if self.manifold.is_flat:
            return q.change
        rows = []
        for joints in self.slices:
            change = q.change[..., joints.q, :]
            if joints.number is not None:
                value = q.value[..., joints.q]
                change = _joint_law(self.robot, joints.number, "tangent", value) @ change
            rows.append(change)
        return array_module(q.value).concatenate(rows, -2)

    def _by_joint(self, law: str, q: TangentArray, v: TangentArray | None = None) -> TangentArray:
        """A law of the manifold, joint by joint."""
        values, changes = [], []
        for joints in self.slices:
            inputs = [TangentArray(q.value[..., joints.q], q.change[..., joints.q, :])]
            if v is not None:
                inputs.append(TangentArray(v.value[..., joints.v], v.change[..., joints.v, :]))
            result = (
                _flat_law(law, *inputs)
                if joints.number is None
                else self._curved_law(law, joints.number, inputs)
            )
            values.append(result.value)
            changes.append(result.change)
        join = array_module(q.value).concatenate
        return TangentArray(join(values, -1), join(changes, -2))

    def _curved_law(self, law: str, number: int, inputs: list[TangentArray]) -> TangentArray:
        if law == "unit" and self.manifold.curved[number].row.unit is list:
            return inputs[0]
        value, *jacobians = _joint_law(self.robot, number, law, *(x.value for x in inputs))
        change = jacobians[0] @ inputs[0].change
        for jacobian, x in zip(jacobians[1:], inputs[1:], strict=True):
            change = change + jacobian @ x.change
        return TangentArray(value, change)


def _flat_law(law: str, q: TangentArray, v: TangentArray | None = None) -> TangentArray:
    """The laws "unit", "rate" and "exp" where q is a vector."""
    return q if v is None else v if law == "rate" else q + v


def _joint_law(robot: Robot, number: int, law: str, *arrays: AnyArray) -> Any:
    """The law of a curved joint and its Jacobians, as functions of the joint's own numbers."""
    return _call(joint_law_derivatives.joint_law_function(robot, number, law), arrays)


# -- arrays of any library


def _call(function: DifferentiableFunction, arrays: Sequence[AnyArray]) -> Any:
    if is_traced_array(arrays[0]):
        return call_traced(function, cast("Any", arrays))
    return call(function, [*map(contiguous, arrays)])


def broadcast(x: AnyArray, shape: Batch) -> Any:
    if tuple(x.shape) == shape:
        return x
    return contiguous(array_module(x).broadcast_to(x, shape))


def identity(like: AnyArray, n: int) -> Any:
    """The identity matrix in the library of `like`, without a copy from the host: ones, each
    followed by n zeros, reshaped."""
    if not n:
        return full_like(like, (0, 0), 0.0)
    one, zeros = full_like(like, (1,), 1.0), full_like(like, (n,), 0.0)
    return array_module(like).concatenate([one, *[zeros, one] * (n - 1)], -1).reshape((n, n))
