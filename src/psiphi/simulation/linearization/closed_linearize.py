"""How a change of a closed chain's state grows in one step: `system.linearize(q, v, tau, dt)`.

The step is that of `pp.rollout`, with its way back onto the constraints; the columns are the changes of that motion, one for
every coordinate of the state and of the torque.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import SingularError, StateError
from psiphi._util.validate import is_foreign, on_gpu
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import array_module, dispatch
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.linearization.linearize import (
    NAME,
    Pair,
    TangentArray,
    TangentManifold,
    broadcast,
    full,
    identity,
    linearize_closed,
    read_foreign,
)
from psiphi.simulation.linearization.step_function import check_method, read_dt
from psiphi.simulation.rollout.rollout import rollout
from psiphi.simulation.rollout.rollout_arrays import RolloutFunction


def linearize(
    system: System,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: float | None = None,
    method: str = "rk4",
) -> tuple[Array, Array]:
    """A, B of dx/dt = A x + B dtau, for small changes x = (dq, dv) of the state that keep the constraints; with dt, x after
    one step of `pp.rollout` by `method`, which ends on the constraints.

    (..., 2 nv, 2 nv) and (..., 2 nv, n), n as many torques as came: nv, or na.

    >>> import numpy as np, psiphi as pp
    >>> case = pp.scenes.load("four_bar")
    >>> A, B = case.system.linearize(case.q0, np.zeros(case.system.nv), np.zeros(case.system.nv), dt=1e-3)
    >>> A.shape[0] == 2 * case.system.nv
    True
    """
    if dt is None:
        return linearize_closed(system, q, v, tau)
    return linearize_step(system, q, v, tau, dt, method)


def linearize_step(system: Any, q: Any, v: Any, tau: Any, dt: Any, method: Any) -> Pair:
    """(A, B), (..., 2 nv, 2 nv) and (..., 2 nv, n): x after a step of dt, for n torques, as many as came."""
    method, h, nv = (
        check_method(method, NAME),
        dt if is_foreign(dt) else read_dt(dt, NAME),
        system.nv,
    )
    if is_foreign(h) or h.ndim:
        raise StateError(
            f"{NAME}: a closed chain takes one dt, and this is an array",
            "give one number, 1e-3 for instance",
        )
    if any(map(on_gpu, (q, v, tau))):
        raise StateError(
            f"{NAME}: steps of closed chains are linearised on the host", "give arrays of the host"
        )
    state = _read_arguments(system, q, v, tau)
    lead, columns = tuple(state[0].shape[:-1]), 2 * nv + state[2].shape[-1]
    m, wide = TangentManifold(system.robot), system.with_sample_axis()
    eye = broadcast(identity(state[0], columns), (*lead, columns, columns))
    still, rest = (
        full(state[0], (*lead, system.nq, columns), 0.0),
        full(state[0], (*lead, nv), 0.0),
    )
    start = m.rate(TangentArray(state[0], still), TangentArray(rest, eye[..., :nv, :])).change
    changes = [x.swapaxes(-1, -2) for x in (start, eye[..., nv : 2 * nv, :], eye[..., 2 * nv :, :])]
    given = [broadcast(x[..., None, :], (*lead, columns, x.shape[-1])) for x in state]

    def run(q: Any, v: Any, tau: Any) -> Any:
        return rollout(wide, q, v, tau, float(h), 1, method)

    inputs = tuple(
        Argument(name, x.shape[-1:]) for name, x in zip(("q", "v", "tau"), state, strict=True)
    )
    step = RolloutFunction(run, inputs, None, (system.nq, nv), 2)
    end, _ = _call(step, given)
    dq, dv = (
        x[..., -1, :].swapaxes(-1, -2)
        for x in _call(step.pushforward("q", "v", "tau"), [*given, *changes])
    )
    if not lead and not is_foreign(dv) and np.isnan(dv).any():
        cause = f"{NAME}: this step has no derivative: constraints that follow from others on it do not stay so beside it"
        raise SingularError(cause, "take another configuration, or a smaller dt")
    grown = array_module(dv).concatenate([m.tangent(TangentArray(end[..., 0, -1, :], dq)), dv], -2)
    return grown[..., : 2 * nv], grown[..., 2 * nv :]


def _read_arguments(system: Any, q: Any, v: Any, tau: Any) -> list[Any]:
    """All of one batch, in their library; torques of all coordinates, or of the motors alone."""
    if any(map(is_foreign, (q, v, tau))):
        few = np.shape(tau)[-1:] == (system.na,)
        return read_foreign(
            (system.nq, system.nv, system.na if few else system.nv), (q, v, tau), None
        )[0]
    own = [
        *system.state_arrays(q=q, v=v),
        np.asarray(tau, float) if system.state_arrays(tau=tau) else tau,
    ]
    lead = system.batch_axes(
        argument_checks.batch_axes(
            NAME, {name: x.shape[:-1] for name, x in zip(("q", "v", "tau"), own, strict=True)}
        )
    )
    return [np.broadcast_to(x, (*lead, x.shape[-1])) for x in own]


def _call(function: Any, values: Sequence[Any]) -> Any:
    return dispatch(function, values) if any(map(is_foreign, values)) else function(*values)
