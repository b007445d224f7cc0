"""`robot.linearize`: how a small change of the state grows, at once or over one step (of closed chains:
`simulation/linearization/closed_linearize.py`).

A state changes by x = (δ, δv): q by the tangent vector δ, as `robot.integrate` moves it, v by δv.

    continuous   δ' = δv - ad_v δ,  δv' = a_q δ + a_v δv + a_tau δtau
    a step       the rules of the integrator, run on arrays that carry their change: each stage's acceleration changes by
                 da = a_q T⁺ dq + a_v dv + a_tau dtau, with dq = T(q) δ, T(q) δ = rate(q, δ), and the last one is brought back;
                 of embedded loops, which a stage may leave open, da is that by the numbers of q

ad_v is the bracket of a curved joint (a ball, a plane, a flying base), zero where q is a vector space. Slopes are those of
compiled functions (`joint_law_derivatives.py`, forward dynamics), products those of the arrays' library: all of it runs where they are.
Arrays of NumPy's take the same laws as one compiled function, where that is not too long (`linearize_function.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import batch_axes, check_array, is_foreign, on_gpu
from psiphi.backends.cuda.kernel_launch import dtype_and_device
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import (
    array_module,
    as_row,
    contiguous,
    convert_like,
    dispatch,
    full_like,
    is_tracer,
    read_numbers,
)
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.functions.scalar_fast_path import install_fast_path, no_fast_path
from psiphi.robot import joint_law_derivatives
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import rule_places
from psiphi.simulation.integration.integrators import step_sequence
from psiphi.simulation.linearization import linearize_function
from psiphi.simulation.linearization.linearize_function import call_traced, is_traced_array
from psiphi.simulation.linearization.step_function import (
    FLOAT32,
    check_batch,
    check_method,
    one_dt,
    read_dt,
    read_state,
)

Pair = tuple[Any, Any]
Lead = tuple[int, ...]
NAME = "linearize"


def linearize(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: Numbers | None = None,
    method: str = "rk4",
) -> tuple[Array, Array]:
    """(A, B): how small changes x = (δ, δv) of the state grow, dx/dt = A x + B δtau; with dt, x after one step by `method`.

    δ is a tangent vector, as v is (`integrate(q, δ)` is the changed q): A (..., 2 nv, 2 nv), B (..., 2 nv, nv).

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> A, B = robot.linearize(robot.neutral(), np.zeros(6), robot.gravity(robot.neutral()))
    >>> A.shape, B.shape
    ((12, 12), (12, 6))
    """
    method = check_method(method, NAME)
    if not any(map(is_foreign, (q, v, tau, dt, *robot.parameter_arguments))):
        return _on_host(robot, q, v, tau, dt, method)
    for like in (
        () if is_foreign(q) else filter(is_foreign, robot.parameter_arguments)
    ):  # parameters bring the rest into their library
        q = convert_like(
            like,
            read_numbers(NAME, Argument("q", (robot.nq,)), q),
        )
    (q, v, tau), h = read_foreign(
        (robot.nq, robot.nv, robot.nv), (q, v, tau), dt, robot.parameter_arguments
    )
    return _split(robot, _state_matrices(robot, q, v, tau, h, method, robot.parameter_arguments))


def _on_host(robot: Any, q: Any, v: Any, tau: Any, dt: Any, method: str) -> Pair:
    """Of NumPy's arrays, and what reads as such; float32 where all are, by way of float64."""
    name, more = NAME if dt is None else f"{NAME} {method}", robot.parameter_arguments
    one = isinstance(dt, float) and 0.0 < dt < math.inf  # an array asks for a batch
    if dt is None or one:
        found = robot.fast_calls.get(name, no_fast_path)(
            q, v, tau, *more, *((np.array((dt,)),) if one else ())
        )
        if found is not None:
            return found
    given = read_state(NAME, robot, q, v, tau)
    h = None if dt is None else read_dt(dt, NAME)
    lead, kind = (
        check_batch(NAME, given, h, more),
        FLOAT32 if all(x.dtype == FLOAT32 for x in given) else np.dtype(float),
    )
    q, v, tau = state = [
        np.broadcast_to(x.astype(float, copy=False), (*lead, x.shape[-1])) for x in given
    ]
    robot.check_quaternions(NAME, q)
    h = h if h is None else h[..., None]
    own = linearize_function.linearize_function(
        robot, name, "" if dt is None else method, _state_matrices
    )
    if own is None:
        A, B = _split(robot, _state_matrices(robot, q, v, tau, h, method, more))
    else:
        arrays = [*state, *more, *(() if h is None else (h,))]
        with np.errstate(all="ignore"):
            A, B = own.run(arrays)
        install_fast_path(own, arrays)
        robot.fast_calls[name] = own.fast_path
    return A.astype(kind, copy=False), B.astype(kind, copy=False)


def linearize_closed(system: Any, q: Any, v: Any, tau: Any) -> Pair:
    """(A, B) of a closed system, (..., 2 nv, 2 nv) and (..., 2 nv, len(tau)): x' = A x + B δtau."""
    by_q, by_v, by_tau = system.function("forward_dynamics").jacobian("q", "v", "tau")(q, v, tau)
    lead, nv = tuple(by_q.shape[:-2]), system.nv
    state = [
        x if is_foreign(x) else convert_like(by_q, np.asarray(x)) for x in (q, v)
    ]  # in the library of the slopes
    state = state if is_foreign(by_q) else system.state_arrays(q=q, v=v)
    q, v = (broadcast(x, (*lead, n)) for x, n in zip(state, (system.nq, nv), strict=True))
    join = array_module(by_q).concatenate
    A = join([_tangent_dynamics(system.robot, q, v), join([by_q, by_v], -1)], -2)
    return A, join([full(by_q, (*lead, nv, by_tau.shape[-1]), 0.0), by_tau], -2)


def read_foreign(
    sizes: Sequence[int], values: Sequence[Any], dt: Any, more: Sequence[Any] = ()
) -> tuple[list[Any], Any]:
    """Arrays of another library, or of a card: looked at as a function of one kernel would, and of one batch, which is that of
    parameters (`more`), too; dt or None."""
    inputs = tuple(
        Argument(name, (size,))
        for name, size in zip(("q", "v", "tau", "dt"), (*sizes, 1), strict=True)
    )
    given = [contiguous(x) for x in ((*values, as_row(dt)) if is_foreign(dt) else values)]
    used = inputs[: len(given)]
    like = next(x for x in given if is_foreign(x))
    if any(map(on_gpu, given)) and not any(map(is_tracer, given)):
        dtype_and_device(NAME, used, given)
    m, kind = array_module(like), str(like.dtype).removeprefix("torch.")
    for i, x in enumerate(given):
        given[i] = x = (
            x if is_foreign(x) else m.asarray(read_numbers(NAME, inputs[i], x).astype(kind))
        )
        check_array(NAME, inputs[i], x.shape, own := str(x.dtype).removeprefix("torch."))
        if own != kind:
            raise StateError(
                f"{NAME}: {inputs[i].name} is {own}, and another argument {kind}",
                "give arrays of one type",
            )
    named = zip((*(arg.name for arg in used), PARAMETERS), (*given, *more), strict=False)
    lead = batch_axes(NAME, {name: tuple(x.shape[:-1]) for name, x in named})
    h = None if dt is None else given[3] if len(given) > 3 else one_dt(dt, NAME)
    return [broadcast(x, (*lead, x.shape[-1])) for x in given[:3]], h


def _split(robot: Any, grown: Any) -> Pair:
    return grown[..., : 2 * robot.nv], grown[..., 2 * robot.nv :]


def _state_matrices(
    robot: Any, q: Any, v: Any, tau: Any, h: Any, method: str, more: Sequence[Any]
) -> Any:
    """[A B]; `more` are the free numbers of a robot that has some."""
    return (
        _continuous(robot, q, v, tau, more)
        if h is None
        else _discrete(robot, q, v, tau, h, method, more)
    )


def _acceleration_jacobian(robot: Any, *values: Any) -> Any:
    """[a_q a_v a_tau]."""
    by = robot.function("forward_dynamics").jacobian("q", "v", "tau")
    found = call_traced(by, values) if is_traced_array(values[0]) else by(*values)
    return array_module(found[0]).concatenate([*found], -1)


def _continuous(robot: Any, q: Any, v: Any, tau: Any, more: Sequence[Any]) -> Any:
    join, lead, nv = array_module(q).concatenate, tuple(q.shape[:-1]), robot.nv
    top = join([_tangent_dynamics(robot, q, v), full(q, (*lead, nv, nv), 0.0)], -1)
    return join([top, _acceleration_jacobian(robot, q, v, tau, *more)], -2)


def _tangent_dynamics(robot: Any, q: Any, v: Any) -> Any:
    """[-ad_v I]: δ' of x = (δ, δv)."""
    join, lead, nv = array_module(q).concatenate, tuple(q.shape[:-1]), robot.nv
    rows = [full(q, (*lead, 0, nv), 0.0)]  # of a robot that does not move there are none
    for mine, own, number in TangentManifold(robot).slices:
        n = own.stop - own.start
        if number is None:
            rows.append(full(q, (*lead, n, nv), 0.0))
            continue
        turned = _joint_law(robot, number, "bracket", q[..., mine], v[..., own])
        rows.append(
            join(
                [
                    full(q, (*lead, n, own.start), 0.0),
                    turned,
                    full(q, (*lead, n, nv - own.stop), 0.0),
                ],
                -1,
            )
        )
    return join([join(rows, -2), broadcast(identity(q, nv), (*lead, nv, nv))], -1)


def _discrete(
    robot: Any, q: Any, v: Any, tau: Any, h: Any, method: str, more: Sequence[Any]
) -> Any:
    nv, lead, join = robot.nv, tuple(q.shape[:-1]), array_module(q).concatenate
    m, eye = TangentManifold(robot), broadcast(identity(q, 3 * nv), (*lead, 3 * nv, 3 * nv))
    still, rest = full(q, (*lead, robot.nq, 3 * nv), 0.0), full(q, (*lead, nv), 0.0)
    start = m.rate(TangentArray(q, still), TangentArray(rest, eye[..., :nv, :])).change
    state = {"q": TangentArray(q, start), "v": TangentArray(v, eye[..., nv : 2 * nv, :])}
    at: dict[str, Any] = {**state, "Q": state["q"], "V": state["v"], "h": h}
    for item in step_sequence(method, False):
        if callable(item):
            at |= item(m, *(at[name] for name in rule_places(item)))  # type: ignore[arg-type]
            continue
        at["u"] = at["v"]
        if isinstance(item, int):
            at["a"] = _stage_acceleration(
                robot, m, at["q"], at["v"], TangentArray(tau, eye[..., 2 * nv :, :]), more
            )
    return join([m.tangent(at["q"]), at["v"].change], -2)


def _stage_acceleration(
    robot: Any,
    m: TangentManifold,
    q: TangentArray,
    v: TangentArray,
    tau: TangentArray,
    more: Sequence[Any],
) -> TangentArray:
    """a of one stage. Loops that are embedded are open there, by as much as the stage is off: a depends on all numbers of q."""
    values = q.value, v.value, tau.value, *more
    a = _call(robot.function("forward_dynamics"), values)
    if not m.manifold.cluster_joints:
        here = array_module(a).concatenate([m.tangent(q), v.change, tau.change], -2)
        return TangentArray(a, _acceleration_jacobian(robot, *values) @ here)
    columns = [x.change.swapaxes(-1, -2) for x in (q, v, tau)]
    lead = tuple(columns[0].shape[:-1])  # one more batch axis, of the changes
    given = [broadcast(x[..., None, :], (*lead, x.shape[-1])) for x in values]
    along = _call(
        robot.function("forward_dynamics").pushforward("q", "v", "tau"), [*given, *columns]
    )
    return TangentArray(a, along.swapaxes(-1, -2))


class TangentArray:
    """An array (..., n) and its change (..., n, k) for k changes of what it is made from."""

    __array_ufunc__ = None  # NumPy leaves the arithmetic to us

    def __init__(self, value: Any, change: Any):
        self.value, self.change = value, change

    def __add__(self, other: TangentArray) -> TangentArray:
        return TangentArray(self.value + other.value, self.change + other.change)

    def __sub__(self, other: TangentArray) -> TangentArray:
        return TangentArray(self.value - other.value, self.change - other.change)

    def __mul__(self, c: Any) -> TangentArray:
        """By numbers, which do not change."""
        return TangentArray(
            self.value * c, self.change * (c[..., None] if getattr(c, "ndim", 0) else c)
        )

    __rmul__ = __mul__


class JointSlice(NamedTuple):
    """Where joints stand in q and in v: one that is curved, by its number, or several in a row that are not."""

    q: slice
    v: slice
    number: int | None


class TangentManifold:
    """The configuration manifold of a robot, for arrays that carry their change."""

    def __init__(self, robot: Any):
        self.robot, self.manifold = robot, robot.manifold

    @cached_property
    def slices(self) -> list[JointSlice]:
        """All of q and v, in order."""
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
        return sorted(found, key=lambda part: part.v.start)

    def rate(self, q: TangentArray, v: TangentArray) -> TangentArray:
        return v if self.manifold.is_flat else self._by_part("rate", q, v)

    def exp(self, q: TangentArray, v: TangentArray) -> TangentArray:
        return q + v if self.manifold.is_flat else self._by_part("exp", q, v)

    def unit(self, q: TangentArray) -> TangentArray:
        return q if self.manifold.is_flat else self._by_part("unit", q)

    def tangent(self, q: TangentArray) -> Any:
        """T⁺ dq: the change as a tangent vector."""
        if self.manifold.is_flat:
            return q.change
        rows = []
        for mine, _, number in self.slices:
            change = q.change[..., mine, :]
            rows.append(
                change
                if number is None
                else _joint_law(self.robot, number, "tangent", q.value[..., mine]) @ change
            )
        return array_module(q.value).concatenate(rows, -2)

    def _by_part(self, law: str, q: TangentArray, v: TangentArray | None = None) -> TangentArray:
        values, changes = [], []
        for mine, own, number in self.slices:
            given = [TangentArray(q.value[..., mine], q.change[..., mine, :])]
            given += [] if v is None else [TangentArray(v.value[..., own], v.change[..., own, :])]
            moved = (
                _flat_law(law, *given) if number is None else self._curved_law(law, number, given)
            )
            values.append(moved.value)
            changes.append(moved.change)
        join = array_module(q.value).concatenate
        return TangentArray(join(values, -1), join(changes, -2))

    def _curved_law(self, law: str, number: int, given: list[TangentArray]) -> TangentArray:
        if law == "unit" and self.manifold.curved[number].row.unit is list:
            return given[0]
        value, *by = _joint_law(self.robot, number, law, *(x.value for x in given))
        change = by[0] @ given[0].change
        for slope, x in zip(by[1:], given[1:], strict=True):
            change = change + slope @ x.change
        return TangentArray(value, change)


def _flat_law(law: str, q: TangentArray, v: TangentArray | None = None) -> TangentArray:
    """The laws where q is a vector."""
    return q if v is None else v if law == "rate" else q + v


def _joint_law(robot: Any, number: int, law: str, *arrays: Any) -> Any:
    """The law of a curved joint and its slopes, at the joint's own numbers."""
    return _call(joint_law_derivatives.joint_law_function(robot, number, law), arrays)


# -- arrays of any library -----------------------------------------------------------------------------------------------------


def _call(function: DifferentiableFunction, arrays: Sequence[Any]) -> Any:
    if is_traced_array(arrays[0]):
        return call_traced(function, arrays)
    return (
        dispatch(function, [*map(contiguous, arrays)])
        if any(map(is_foreign, arrays))
        else function.run(arrays)
    )


def broadcast(x: Any, shape: Lead) -> Any:
    return x if tuple(x.shape) == shape else contiguous(array_module(x).broadcast_to(x, shape))


def full(like: Any, shape: Lead, value: float) -> Any:
    """Equal numbers, beside an array."""
    return (
        full_like(like, math.prod(shape), value).reshape(shape)
        if is_foreign(like)
        else np.full(shape, value)
    )


def identity(like: Any, n: int) -> Any:
    """The identity beside an array: ones, each with n zeros behind it, cut into rows; nothing is copied from the host."""
    one, none = full(like, (1,), 1.0), full(like, (n,), 0.0)
    return (
        array_module(like).concatenate([one, *[none, one] * (n - 1)], -1).reshape((n, n))
        if n
        else full(like, (0, 0), 0.0)
    )
