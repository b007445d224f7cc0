"""`robot.linearize`: how a small change of the state grows, at once or over one step.

A state changes by x = (δ, δv): q by the tangent vector δ, as `robot.integrate` moves it, v by δv.

    continuous   δ' = δv - ad_v δ,  δv' = a_q δ + a_v δv + a_tau δtau
    a step       the rules of the integrator, run on arrays that carry their change: each stage's acceleration changes by
                 da = a_q T⁺ dq + a_v dv + a_tau dtau, with dq = T(q) δ, T(q) δ = rate(q, δ), and the last one is brought back;
                 of embedded loops, which a stage may leave open, da is that by the numbers of q

ad_v is the bracket of a curved joint (a ball, a plane, a flying base), zero where q is a vector space.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.arguments import is_foreign, on_card
from psiphi.control.law import reads
from psiphi.errors import StateError
from psiphi.foreign.entering import constant, is_followed
from psiphi.model.definitions import stacked
from psiphi.model.manifold import Manifold
from psiphi.rollouts.integrators import course
from psiphi.rollouts.stepping import SINGLE, checked, fit, read_dt, read_state
from psiphi.tape.differentiate import push
from psiphi.tape.evaluation import evaluate
from psiphi.tape.tape import Tape

Pair = tuple[np.ndarray, np.ndarray]


def linearize(robot: Any, q: Any, v: Any, tau: Any, dt: Any, method: Any) -> Pair:
    """(A, B), (..., 2 nv, 2 nv) and (..., 2 nv, nv): x' = A x + B δtau, or x after a step of dt."""
    like = _library(q, v, tau)
    given = read_state("linearize", robot, q, v, tau)
    kind = np.result_type(*(x.dtype for x in given)) if all(x.dtype == SINGLE for x in given) else np.dtype(float)
    method, h = checked(method, "linearize"), None if dt is None else read_dt(dt, "linearize")
    lead = fit("linearize", given, h, robot._more)
    q, v, tau = (np.broadcast_to(x.astype(float), (*lead, x.shape[-1])) for x in given)
    robot.upright("linearize", q)
    grown = _at_once(robot, q, v, tau) if h is None else _after_step(robot, q, v, tau, h, method)
    nv = robot.nv
    return _home(like, grown[..., : 2 * nv].astype(kind), grown[..., 2 * nv :].astype(kind))


def _library(*values: Any) -> Any:
    """The first array of torch or JAX, whose library the matrices are to be of; refused where these are differentiated."""
    if any(map(is_followed, values)):
        cause = "linearize: its matrices have no derivatives of their own, and torch or JAX follows these arrays to have some"
        slopes = 'robot.function("forward_dynamics").jacobian("q", "v", "tau") has them'
        raise StateError(cause, f"give arrays that are not followed (x.detach(), outside of jit and grad); {slopes}")
    return next((x for x in values if is_foreign(x)), None)


def _home(like: Any, *matrices: np.ndarray) -> Pair:
    """In the library that the state came from."""
    A, B = matrices if like is None else (constant(like, x) for x in matrices)
    return A, B


def _slopes(robot: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """[a_q a_v a_tau]."""
    return np.concatenate(robot.function("forward_dynamics").jacobian("q", "v", "tau")(q, v, tau, *robot._more), axis=-1)


def linearize_closed(system: Any, q: Any, v: Any, tau: Any) -> Pair:
    """(A, B) of a closed system, (..., 2 nv, 2 nv) and (..., 2 nv, len(tau)): x' = A x + B δtau."""
    like = _library(q, v, tau)
    q, v, tau = (np.asarray(x) if is_foreign(x) and not on_card(x) else x for x in (q, v, tau))
    by_q, by_v, by_tau = system.function("forward_dynamics").jacobian("q", "v", "tau")(q, v, tau)
    lead, nv = by_q.shape[:-2], system.nv
    q, v = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in system._state(q=q, v=v))
    A = np.concatenate([_moved(system.robot, q, v), np.concatenate([by_q, by_v], axis=-1)], axis=-2)
    return _home(like, A, np.concatenate([np.zeros((*lead, nv, by_tau.shape[-1])), by_tau], axis=-2))


def _at_once(robot: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    top = _moved(robot, q, v)
    top = np.concatenate([top, np.zeros((*top.shape[:-1], robot.nv))], axis=-1)
    return np.concatenate([top, _slopes(robot, q, v, tau)], axis=-2)


def _moved(robot: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[-ad_v I]: δ' of x = (δ, δv)."""
    nv, lead = robot.nv, q.shape[:-1]
    top = np.zeros((*lead, nv, 2 * nv))
    top[..., nv : 2 * nv] = np.eye(nv)
    for joint in robot.manifold.bent:
        own = joint.v_slice
        top[..., own, own] = _bracket(joint.row, q[..., joint.q_slice], v[..., own])
    return top


def _bracket(row: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """-ad_v: T(q) (δ' - δv) = d rate(q, v)[T δ] - d rate(q, δ)[T v], since d/ds and d/dt of q commute."""
    units = [np.broadcast_to(unit, v.shape) for unit in np.eye(row.nv)]
    T = _jacobian(row.rate, q, v)[1]
    moved = (T @ v[..., None])[..., 0]
    turned = [(_jacobian(row.rate, q, unit)[0] @ moved[..., None])[..., 0] for unit in units]
    return _undone(T, _jacobian(row.rate, q, v)[0] @ T - np.stack(turned, axis=-1))


def _after_step(robot: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray, h: np.ndarray, method: str) -> np.ndarray:
    nv, lead = robot.nv, q.shape[:-1]
    m, eye = ChangingManifold(robot.manifold), np.broadcast_to(np.eye(3 * nv), (*lead, 3 * nv, 3 * nv))
    start = m.rate(Changing(q, np.zeros((*lead, robot.nq, 3 * nv))), Changing(np.zeros_like(v), eye[..., :nv, :])).change
    state = {"q": Changing(q, start), "v": Changing(v, eye[..., nv : 2 * nv, :])}
    at: dict[str, Any] = {**state, "Q": state["q"], "V": state["v"], "h": h[..., None]}
    for item in course(method, False):
        if callable(item):
            at |= item(m, *(at[name] for name in reads(item)))  # type: ignore[arg-type]
            continue
        at["u"] = at["v"]
        if isinstance(item, int):
            at["a"] = _accelerated(robot, m, at["q"], at["v"], Changing(tau, eye[..., 2 * nv :, :]))
    return np.concatenate([m.tangent(at["q"]), at["v"].change], axis=-2)


def _accelerated(robot: Any, m: ChangingManifold, q: Changing, v: Changing, tau: Changing) -> Changing:
    """a of one stage. Loops that are embedded are open there, by as much as the stage is off: a depends on all numbers of q."""
    values = q.value, v.value, tau.value
    a = robot.forward_dynamics(*values)
    if not m.m.compound:
        return Changing(a, _slopes(robot, *values) @ np.concatenate([m.tangent(q), v.change, tau.change], axis=-2))
    given = [np.asarray(x)[..., None, :] for x in (*values, *robot._more)]  # one more batch axis, of the changes
    columns = [np.swapaxes(x.change, -1, -2) for x in (q, v, tau)]
    along = robot.function("forward_dynamics").pushforward("q", "v", "tau")(*given, *columns)
    return Changing(a, np.swapaxes(along, -1, -2))


class Changing:
    """An array (..., n) and its change (..., n, k) for k changes of what it is made from."""

    __array_ufunc__ = None  # NumPy leaves the arithmetic to us

    def __init__(self, value: np.ndarray, change: np.ndarray):
        self.value, self.change = value, change

    def __add__(self, other: Changing) -> Changing:
        return Changing(self.value + other.value, self.change + other.change)

    def __sub__(self, other: Changing) -> Changing:
        return Changing(self.value - other.value, self.change - other.change)

    def __mul__(self, c: Any) -> Changing:
        """By numbers, which do not change."""
        return Changing(self.value * c, self.change * (c[..., None] if np.ndim(c) else c))

    __rmul__ = __mul__


class ChangingManifold:
    """The configuration manifold, for arrays that carry their change."""

    def __init__(self, m: Manifold):
        self.m = m

    def rate(self, q: Changing, v: Changing) -> Changing:
        return v if self.m.is_flat else self._by_joint("rate", q, v)

    def exp(self, q: Changing, v: Changing) -> Changing:
        return q + v if self.m.is_flat else self._by_joint("exp", q, v)

    def unit(self, q: Changing) -> Changing:
        change = q.change.copy()
        for joint in self.m.bent:
            if joint.row.unit is not list:
                own = joint.q_slice
                change[..., own, :] = _jacobian(joint.row.unit, q.value[..., own])[0] @ q.change[..., own, :]
        return Changing(self.m.unit(q.value), change)

    def tangent(self, q: Changing) -> np.ndarray:
        """T⁺ dq: the change as a tangent vector."""
        if self.m.is_flat:
            return q.change
        out = np.empty((*q.change.shape[:-2], self.m.nv, q.change.shape[-1]))
        out[..., self.m.flat[1], :] = q.change[..., self.m.flat[0], :]
        for joint in self.m.bent:
            here = q.value[..., joint.q_slice]
            T = _jacobian(joint.row.rate, here, np.zeros((*here.shape[:-1], joint.row.nv)))[1]
            out[..., joint.v_slice, :] = _undone(T, q.change[..., joint.q_slice, :])
        return out

    def _by_joint(self, law: str, q: Changing, v: Changing) -> Changing:
        (i, k), moved = self.m.flat, v.change
        change = np.empty_like(q.change)
        change[..., i, :] = moved[..., k, :] + (q.change[..., i, :] if law == "exp" else 0.0)
        for joint in self.m.bent:
            mine, own = joint.q_slice, joint.v_slice
            by_q, by_v = _jacobian(getattr(joint.row, law), q.value[..., mine], v.value[..., own])
            change[..., mine, :] = by_q @ q.change[..., mine, :] + by_v @ moved[..., own, :]
        return Changing(getattr(self.m, law)(q.value, v.value), change)


def _undone(T: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """x with T x = dq, for a change dq along the manifold (what leads off it is left out)."""
    back = np.swapaxes(T, -1, -2)
    return np.linalg.solve(back @ T, back @ dq)


def _jacobian(law: Callable, *arrays: np.ndarray) -> list[np.ndarray]:
    """The derivatives of a joint's law by each of its vectors, (..., m, n): of its tape, on arrays."""
    tape, nodes, rows = _traced(law, tuple(x.shape[-1] for x in arrays))
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    numbers = evaluate(tape, nodes, lambda place, i: arrays[int(place)][..., i])
    whole = stacked(numbers, lead).reshape(*lead, rows, -1)
    return np.split(whole, np.cumsum([x.shape[-1] for x in arrays])[:-1], axis=-1)


@lru_cache(maxsize=64)
def _traced(law: Callable, sizes: tuple[int, ...]) -> tuple[Tape, list[int], int]:
    """A tape, its nodes row by row, and how many rows there are."""
    tape = Tape()
    leaves = [[tape.leaf(str(place), i) for i in range(size)] for place, size in enumerate(sizes)]
    results = [tape.operand(x) for x in law(*leaves)]
    columns = [push(tape, results, {leaf.index: 1.0}) for group in leaves for leaf in group]
    return tape, [tape.operand(column[r]) for r in range(len(results)) for column in columns], len(results)
