"""`system.linearize(q, v, tau, dt)`: the matrices A and B of a closed chain.

The step is that of `pp.rollout`, with its projection onto the constraints. The columns of A and B
are the tangents of that motion for a change of each coordinate of the state and of the torque.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from psiphi._util.array_types import AnyArray, Array, Numbers
from psiphi._util.errors import SingularError, StateError
from psiphi._util.validate import flag, is_foreign, on_gpu
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.arrays.array_dispatch import array_module, call, full_like
from psiphi.robot.mechanisms import loop_closure
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.linearization.closed_step import read_closed_state, single_dt
from psiphi.simulation.linearization.linearize import (
    NAME,
    Pair,
    TangentArray,
    TangentManifold,
    broadcast,
    identity,
    linearize_closed,
)
from psiphi.simulation.linearization.step_arguments import check_method
from psiphi.simulation.rollout.rollout import rollout
from psiphi.simulation.rollout.rollout_arrays import RolloutFunction


def linearize(
    system: System,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: float | None = None,
    method: str = "rk4",
    check: bool = False,
) -> tuple[Array, Array]:
    """(A, B) of dx/dt = A x + B dtau for small changes x = (dq, dv) that satisfy the constraints;
    with dt, of x after one step of `pp.rollout` by `method`, which ends on the constraints.

    A (..., 2 nv, 2 nv), B (..., 2 nv, n), where n is the length of tau: nv, or na. The state must
    satisfy the constraints; `check=True` raises a `StateError` if it does not.

    >>> import numpy as np, psiphi as pp
    >>> case = pp.scenes.load("four_bar")
    >>> system, zero = case.system, np.zeros(case.system.nv)
    >>> A, B = system.linearize(case.q0, zero, zero, dt=1e-3)
    >>> A.shape[0] == 2 * system.nv
    True
    """
    if flag("check", check):
        loop_closure.check_constraints(system, NAME, *system.state_arrays(q=q, v=v))
    if dt is None:
        return linearize_closed(system, q, v, tau)
    return linearize_step(system, q, v, tau, dt, method)


def linearize_step(
    system: System, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers, method: str
) -> Pair:
    """(A, B) of one step, (..., 2 nv, 2 nv) and (..., 2 nv, n), where n is the length of tau."""
    method, nv, h = check_method(method, NAME), system.nv, single_dt(NAME, dt)
    if any(map(on_gpu, (q, v, tau))):
        raise StateError(
            f"{NAME}: steps of closed chains are linearized on the CPU, and these arrays are on "
            "the GPU",
            "give arrays on the CPU",
        )
    Q, V, U = state = read_closed_state(NAME, system, q, v, tau)
    batch, columns = tuple(Q.shape[:-1]), 2 * nv + U.shape[-1]
    m, sampled = TangentManifold(system.robot), system.with_sample_axis()
    eye = broadcast(identity(Q, columns), (*batch, columns, columns))
    no_change = full_like(Q, (*batch, system.nq, columns), 0.0)
    zero = full_like(Q, (*batch, nv), 0.0)
    dq = m.rate(TangentArray(Q, no_change), TangentArray(zero, eye[..., :nv, :])).change
    changes = [x.swapaxes(-1, -2) for x in (dq, eye[..., nv : 2 * nv, :], eye[..., 2 * nv :, :])]
    repeated = [broadcast(x[..., None, :], (*batch, columns, x.shape[-1])) for x in state]

    def run(q: AnyArray, v: AnyArray, tau: AnyArray) -> Any:
        return rollout(sampled, cast("Any", q), cast("Any", v), cast("Any", tau), h, 1, method)

    inputs = tuple(
        Argument(name, x.shape[-1:]) for name, x in zip(("q", "v", "tau"), state, strict=True)
    )
    step = RolloutFunction(run, inputs, None, (system.nq, nv), 2)
    end, _ = call(step, repeated)
    tangents = call(step.pushforward("q", "v", "tau"), [*repeated, *changes])
    dq, dv = (x[..., -1, :].swapaxes(-1, -2) for x in tangents)
    if not batch and not is_foreign(dv) and np.isnan(dv).any():
        raise SingularError(
            f"{NAME}: this step has no derivative: constraints that are redundant on it are not so "
            "next to it",
            "take another configuration, or a smaller dt",
        )
    end_tangents = m.tangent(TangentArray(end[..., 0, -1, :], dq))
    matrices = array_module(dv).concatenate([end_tangents, dv], -2)
    return matrices[..., : 2 * nv], matrices[..., 2 * nv :]
