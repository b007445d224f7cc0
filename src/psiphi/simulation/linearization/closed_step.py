"""`system.step(q, v, tau, dt)`: one step of a closed chain, for loops that need every state."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import is_foreign
from psiphi.functions import argument_checks
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.linearization.linearize import read_foreign
from psiphi.simulation.linearization.step_arguments import check_method, read_dt
from psiphi.simulation.rollout.rollout import rollout

NAME = "step"


def step(
    system: System, q: Numbers, v: Numbers, tau: Numbers, dt: float, method: str = "rk4"
) -> tuple[Array, Array]:
    """(q, v) after one step of dt with constant torque tau, projected onto the constraints.

    This is one step of `pp.rollout`, with the same bits. q (..., nq), v (..., nv), tau (..., nv) or
    (..., na), with batch axes that broadcast; dt is a number. `method` is "rk4", "lie", "implicit",
    "midpoint" or "euler".

    >>> import numpy as np, psiphi as pp
    >>> case = pp.scenes.load("four_bar")
    >>> system, zero = case.system, np.zeros(case.system.nv)
    >>> q, v = system.step(case.q0, zero, zero, 1e-3)
    >>> bool(np.abs(system.constraint_residual(q, v)).max() < 1e-9)
    True
    """
    method, h = check_method(method), single_dt(NAME, dt)
    Q, V, U = read_closed_state(NAME, system, q, v, tau)
    positions, velocities = cast("Any", rollout(system, Q, V, U[..., None, :], h, 1, method))
    return positions[..., -1, :], velocities[..., -1, :]


def single_dt(of: str, dt: object) -> float:
    """dt as one positive number: all motions of a batch take the same step."""
    h = None if is_foreign(dt) else read_dt(cast("Numbers", dt), of)
    if h is None or h.ndim:
        raise StateError(
            f"{of}: dt is an array, but closed chains take a single dt", "give a number like 1e-3"
        )
    return float(h)


def read_closed_state(
    of: str, system: System, q: Numbers, v: Numbers, tau: Numbers
) -> tuple[Any, Any, Any]:
    """q, v and tau in one library, with the same batch axes; tau (..., nv) or (..., na)."""
    if any(map(is_foreign, (q, v, tau))):
        shape = np.shape(cast("Any", tau))
        size = system.na if shape[-1:] == (system.na,) else system.nv
        return read_foreign((system.nq, system.nv, size), (q, v, tau), None, of=of)[0]
    Q, V = system.state_arrays(q=q, v=v)
    system.state_arrays(tau=tau)  # checks tau
    arrays = Q, V, np.asarray(tau, float)
    named = zip(("q", "v", "tau"), arrays, strict=True)
    shared = argument_checks.batch_axes(of, {name: x.shape[:-1] for name, x in named})
    batch = system.batch_axes(shared)
    q, v, tau = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays)
    return q, v, tau
