"""Closing loops: from a rough guess (`assemble`), and from a state that drifted (`project`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.closed.singular import STRAIN, direction, least_norm
from psiphi.errors import StateError

STEPS = 300  # damped Gauss-Newton steps before giving up
LONGEST = 0.5  # the most a coordinate moves in one step: radians, metres


def assemble(system: Any, q_guess, hold, tolerance: float) -> np.ndarray:
    """min |e(q)|: dq = -W Jc* (Jc W Jc* + mu I)^-1 e, mu per element by what helped; W leaves out the held joints."""
    (q,) = system._state(q=q_guess)
    lead = q.shape[:-1]
    q = system.normalize(q).reshape(-1, system.nq)
    move = np.ones(system.nv)
    for name in (hold,) if isinstance(hold, str) else hold:
        move[system.robot.joint(name).v_slice] = 0.0
    if not np.isfinite(q).all():
        raise StateError("the guess is not finite", "give numbers")
    q, e = _off_half_turns(system, q, move)
    mu = np.full(len(q), 1e-3)
    for _ in range(STEPS):
        todo = np.abs(e).max(axis=-1, initial=0.0) > 0.1 * tolerance
        if not todo.any():
            break
        step = _step(system.constraint_jacobian(q[todo]), e[todo], mu[todo], move)
        trial = system.integrate(q[todo], step)
        with np.errstate(all="ignore"):
            new = system.constraint_residual(trial)
            better = (new**2).sum(axis=-1) < (e[todo] ** 2).sum(axis=-1)
        at = np.flatnonzero(todo)
        q[at[better]], e[at[better]] = trial[better], new[better]
        mu[at] = np.where(better, np.maximum(mu[at] * 0.2, 1e-15), np.minimum(mu[at] * 4.0, 1e9))
        if (mu[at] >= 1e9).all():
            break
    _check_closed(system, e, tolerance, lead)
    return system.normalize(q).reshape(*lead, system.nq)


def _off_half_turns(system: Any, q: np.ndarray, move: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors are infinite at exactly half a turn: such guesses are nudged, always the same way."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        with np.errstate(all="ignore"):
            e = system.constraint_residual(q)
        lost = ~(np.abs(e).max(axis=-1, initial=0.0) < 1e3)
        if not lost.any():
            break
        q[lost] = system.integrate(q[lost], 0.1 * move * rng.standard_normal(system.nv))
    return q, e


def _step(Jc: np.ndarray, e: np.ndarray, mu: np.ndarray, move: np.ndarray) -> np.ndarray:
    held = Jc * move
    gram = held @ np.swapaxes(Jc, -1, -2)
    scale = np.maximum(np.trace(gram, axis1=-2, axis2=-1) / max(gram.shape[-1], 1), 1e-300)
    gram = gram + (mu * scale)[:, None, None] * np.eye(gram.shape[-1])
    step = -np.einsum("bij,bi->bj", held, np.linalg.solve(gram, e[..., None])[..., 0])
    longest = np.abs(step).max(axis=-1, keepdims=True, initial=0.0)
    return step * np.minimum(1.0, LONGEST / np.maximum(longest, LONGEST))


def _check_closed(system: Any, e: np.ndarray, tolerance: float, lead: tuple[int, ...]) -> None:
    worst = np.abs(e).max(axis=-1, initial=0.0)
    if (worst <= tolerance).all():
        return
    element = int(np.argmax(~(worst <= tolerance)))
    row = int(np.argmax(np.abs(e[element])))
    where = f" (batch element {element})" if lead else ""
    raise StateError(
        f"the loops do not close{where}: {direction(system.closure, row)} stays open by {abs(e[element, row]):.3g}",
        "guess a configuration nearer to closing, hold fewer joints, or check that the mechanism reaches that far",
    )


def project(system: Any, q, v, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Newton in the metric of the mass matrix: first q, until every row is closed to `tolerance`, then v once."""
    q, v = system._state(q=q, v=v)
    for _ in range(8):
        e = system.constraint_residual(q)
        if not np.abs(e).max(initial=0.0) > tolerance:
            break
        dq, _ = _newton(system, q, v)
        q = system.integrate(q, dq)
    _, dv = _newton(system, q, v)
    return q, v + dv


def _newton(system: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    dq, dv, strain = system._call(system._projection, (q, v))
    bad = ~(strain < STRAIN)
    if not np.any(bad):
        return dq, dv
    lead = np.shape(strain)
    q, v = np.broadcast_to(q, (*lead, system.nq))[bad], np.broadcast_to(v, (*lead, system.nv))[bad]
    Omega, rows = system._call(system._omega, (q,)), system.constraint_residual(q, v)
    mended = [system._corrected(q, least_norm(Omega, -rows[..., i, :]).multipliers)[0] for i in range(2)]
    dq, dv = np.array(dq), np.array(dv)
    dq[bad], dv[bad] = mended
    return dq, dv
