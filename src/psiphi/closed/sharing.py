"""Inverse dynamics with loops: who carries what.

Rows of M a + C v + g = tau + Jc* lambda without a motor fix what the contacts must do together, Jp* lambda = T_p; the rest of
lambda is free: internal forces, which the motors of one mechanism make and those of another take up.

    lambda = S Jp (Jp* S Jp)^+ T_p + N eta        S = diag(share),  N = null(Jp*)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.closed.singular import UNMET, direction
from psiphi.errors import StateError
from psiphi.model.words import shown


def inverse_dynamics(system: Any, q, v, a, internal, share, forces: bool) -> Any:
    """tau (..., nv), and the contact wrenches when asked for."""
    q, v, a = system._state(q=q, v=v, a=a)
    torque = system.robot.inverse_dynamics(q, v, a)
    Jc = system.constraint_jacobian(q)
    idle = np.setdiff1d(np.arange(system.nv), system.actuated)
    Jp, weights = Jc[..., idle], _weights(system, share)
    lam = _particular(Jp, weights, torque[..., idle])
    _check_possible(system, Jp, lam, torque[..., idle], idle)
    if internal is not None:
        squeeze = multipliers(system, q, internal)
        lam = lam + squeeze - _particular(Jp, weights, np.einsum("...mi,...m->...i", Jp, squeeze))
    tau = torque - np.einsum("...mi,...m->...i", Jc, lam)
    tau[..., idle] = 0.0
    return (tau, system._corrected(q, lam)[1]) if forces else tau


def complete(system: Any, q, v, a, exactly) -> np.ndarray:
    """a + x with Jc (a + x) + bias = 0, x of least norm and zero on the joints that move exactly."""
    q, v, a = system._state(q=q, v=v, a=a)
    Jc = system.constraint_jacobian(q)
    gap = np.einsum("...mi,...i->...m", Jc, a) + system.constraint_bias(q, v)
    move = np.ones(system.nv)
    for name in (exactly,) if isinstance(exactly, str) else exactly:
        move[system.robot.joint(name).v_slice] = 0.0
    x = -np.einsum("...im,...m->...i", np.linalg.pinv(Jc * move, rcond=1e-10), gap)
    left = np.abs(gap + np.einsum("...mi,...i->...m", Jc, x))
    if left.max(initial=0.0) > UNMET * (1.0 + np.abs(gap).max(initial=0.0)):
        row = int(np.unravel_index(np.argmax(left), left.shape)[-1])
        raise StateError(
            f"no acceleration of the other joints keeps {direction(system.closure, row)} ({left.max():.3g} is missing)",
            "ask for a motion the mechanisms can follow, or name fewer joints in exactly=",
        )
    return a + x


def split(system: Any, q, forces, share) -> tuple[np.ndarray, np.ndarray]:
    """The wrenches as (S Jp (Jp* S Jp)^+ Jp* lambda, the rest)."""
    (q,) = system._state(q=q)
    lam = multipliers(system, q, forces)
    idle = np.setdiff1d(np.arange(system.nv), system.actuated)
    Jp = system.constraint_jacobian(q)[..., idle]
    moving = _particular(Jp, _weights(system, share), np.einsum("...mi,...m->...i", Jp, lam))
    parts = (system._corrected(q, x)[1] for x in (moving, lam - moving))
    first, second = parts
    return first, second


def multipliers(system: Any, q: np.ndarray, forces) -> np.ndarray:
    """lambda of contact wrenches (..., l, 6): their part along the constraint rows, which are orthonormal."""
    wrenches = np.asarray(forces, dtype=float)
    count = len(system.contacts)
    if wrenches.shape[-2:] != (count, 6):
        raise StateError(f"wrenches have shape {wrenches.shape}, expected (..., {count}, 6)", "one [moment; force] a contact")
    unit = system._corrected(q[..., None, :], np.eye(system.nc))[1]
    return np.einsum("...mlk,...lk->...m", unit, wrenches)


def _particular(Jp: np.ndarray, weights: np.ndarray, T: np.ndarray) -> np.ndarray:
    """S Jp (Jp* S Jp)^+ T."""
    root = np.sqrt(weights)
    scaled = np.swapaxes(Jp * root[:, None], -1, -2)  # (S^1/2 Jp)*
    return root * np.einsum("...mi,...i->...m", np.linalg.pinv(scaled, rcond=1e-10), T)


def _weights(system: Any, share) -> np.ndarray:
    """One weight a row, from one a contact."""
    out = np.ones(system.nc)
    if share is None:
        return out
    share = np.asarray(share, dtype=float)
    if share.shape != (len(system.contacts),) or not (share > 0.0).all() or not np.isfinite(share).all():
        raise StateError(f"share is {shown(share)}, expected {len(system.contacts)} positive numbers", "one a contact")
    for weight, own in zip(share, system.closure.slices, strict=False):
        out[own] = weight
    return out


def _check_possible(system: Any, Jp: np.ndarray, lam: np.ndarray, T: np.ndarray, idle: np.ndarray) -> None:
    """The contacts must be able to do what bodies without motors need."""
    left = np.abs(T - np.einsum("...mi,...m->...i", Jp, lam))
    scale = np.maximum(np.abs(T).max(initial=0.0), 1.0)
    if idle.size and left.max(initial=0.0) > UNMET * scale:
        worst = int(idle[np.unravel_index(np.argmax(left), left.shape)[-1]])
        joint = next(j for j in system.joints if j.v_slice.start <= worst < j.v_slice.stop)
        raise StateError(
            f"no contact can give coordinate {worst - joint.v_slice.start} of {joint.name} the force this motion needs "
            f"({left.max():.3g} is missing)",
            "ask for a motion the contacts can drive, or add a contact",
        )
