"""Inverse dynamics with loops: who carries what.

Rows of M a + C v + g = tau + Jc* lambda without a motor fix what the contacts must do together, Jp* lambda = T_p; the rest of
lambda is free: internal forces, which the motors of one mechanism make and those of another take up.

    lambda = S Jp (Jp* S Jp)^+ T_p + N eta        S = diag(share),  N = null(Jp*)

What cannot be answered is an error where one state was asked about, or with check=True; in a batch that element is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.arguments import flag, read, real
from psiphi.closed.reading import names
from psiphi.closed.singular import STRAIN, UNMET, direction, element
from psiphi.errors import StateError
from psiphi.wording import shown


def inverse_dynamics(system: Any, q, v, a, internal, share, forces: bool, f_ext, axes: str, check: bool) -> Any:
    """tau (..., nv), and the contact wrenches when asked for."""
    q, v, a = system._state(q=q, v=v, a=a)
    torque = system.robot.inverse_dynamics(q, v, a, f_ext=f_ext, axes=axes)
    Jc, weights = system.constraint_jacobian(q), _weights(system, share)
    Jp, T = Jc[..., system.idle], torque[..., system.idle]
    lam = _particular(Jp, weights, T)
    wrong = _broken(system, q, v, a, Jc, check) | _undriven(system, Jp, lam, T, check)
    if internal is not None:
        squeeze = multipliers(system, q, internal)
        lam = lam + squeeze - _particular(Jp, weights, np.einsum("...mi,...m->...i", Jp, squeeze))
    lam = np.where(wrong[..., None], np.nan, lam)
    tau = torque - np.einsum("...mi,...m->...i", Jc, lam)
    tau[..., system.idle] = np.where(wrong[..., None], np.nan, 0.0)
    return (tau, system._corrected(q, lam)[1]) if flag("forces", forces) else tau


def complete(system: Any, q, v, a, exactly, check: bool) -> np.ndarray:
    """a + x with Jc (a + x) + bias = 0, x of least norm and zero on the joints that move exactly."""
    q, v, a = system._state(q=q, v=v, a=a)
    Jc = system.constraint_jacobian(q)
    gap = np.einsum("...mi,...i->...m", Jc, a) + system.constraint_bias(q, v)
    move = np.ones(system.nv)
    for name in names("exactly", exactly):
        move[system.robot.joint(name).v_slice] = 0.0
    x = -np.einsum("...im,...m->...i", _pinv(Jc * move), gap)
    left = gap + np.einsum("...mi,...i->...m", Jc, x)

    def error(place: tuple[int, ...]) -> StateError:
        here, open_by = _at(q, left, place)
        cause = f"no acceleration of the other joints keeps {direction(system, here, open_by)}{element(place)}"
        return StateError(
            f"{cause} ({np.abs(open_by).max():.3g} is missing)",
            "ask for a motion the mechanisms can follow, or name fewer joints in exactly=",
        )

    wrong = _refused(_most(left) > UNMET * (1.0 + _most(gap)), check, error)
    return np.where(wrong[..., None], np.nan, a + x)


def hold(system: Any, q) -> np.ndarray:
    """tau that holds the system still: `inverse_dynamics` at rest, compiled."""
    rest = np.zeros(system.nv)
    return _mended(system, system._holding, system._state(q=q), lambda q: system.inverse_dynamics(q, rest, rest))


def drive(system: Any, q, v, u) -> np.ndarray:
    """tau that accelerates as near to u, by the mass matrix, as the constraints allow (`driving.py`): compiled."""

    def careful(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        return system.inverse_dynamics(q, v, system.forward_dynamics(q, v, system.robot.inverse_dynamics(q, v, u)))

    values = system._state(q=q, v=v, a=u)
    return careful(*values) if system.algebra.is_thin else _mended(system, system._driving, values, careful)


def _mended(system: Any, function: Any, values: tuple[np.ndarray, ...], careful: Callable[..., np.ndarray]) -> np.ndarray:
    """What the compiled function answers; elements it is strained by, as the careful one says."""
    tau, strain = system._call(function, values)
    lead = np.shape(strain)
    bad = ~(strain < STRAIN)
    if not np.any(bad):
        return tau
    if not lead:
        return careful(*values)
    tau = np.array(tau)
    tau[bad] = careful(*(np.broadcast_to(x, (*lead, x.shape[-1]))[bad] for x in values))
    return tau


def split(system: Any, q, forces, share) -> tuple[np.ndarray, np.ndarray]:
    """The wrenches as (S Jp (Jp* S Jp)^+ Jp* lambda, the rest)."""
    (q,) = system._state(q=q)
    lam = multipliers(system, q, forces)
    Jp = system.constraint_jacobian(q)[..., system.idle]
    moving = _particular(Jp, _weights(system, share), np.einsum("...mi,...m->...i", Jp, lam))
    return system._corrected(q, moving)[1], system._corrected(q, lam - moving)[1]


def multipliers(system: Any, q: np.ndarray, forces) -> np.ndarray:
    """lambda of contact wrenches (..., l, 6): their part along the constraint rows, which are orthonormal."""
    wrenches = real("the wrenches", forces, (len(system.contacts), 6), "give one [moment; force] a contact")
    unit = system._corrected(q[..., None, :], np.eye(system.nc))[1]
    return np.einsum("...mlk,...lk->...m", unit, wrenches)


def _particular(Jp: np.ndarray, weights: np.ndarray, T: np.ndarray) -> np.ndarray:
    """S Jp (Jp* S Jp)^+ T."""
    root = np.sqrt(weights)
    scaled = np.swapaxes(Jp * root[:, None], -1, -2)  # (S^1/2 Jp)*
    return root * np.einsum("...mi,...i->...m", _pinv(scaled), T)


def _pinv(A: np.ndarray) -> np.ndarray:
    """A^+; NaN of elements that are not finite, and only of those."""
    finite = np.isfinite(A).all(axis=(-2, -1), keepdims=True)
    return np.where(finite, np.linalg.pinv(np.where(finite, A, 0.0), rcond=1e-10), np.nan)


def _weights(system: Any, share) -> np.ndarray:
    """One weight a row, from one a contact."""
    out = np.ones(system.nc)
    if share is None:
        return out
    array, fault = read(share, (len(system.contacts),))
    if fault or array.ndim != 1 or not (array > 0.0).all() or not np.isfinite(array).all():
        raise StateError(f"share is {shown(share)}, expected {len(system.contacts)} positive numbers", "one a contact")
    for weight, own in zip(array, system.closure.slices, strict=False):
        out[own] = weight
    return out


def _broken(system: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray, Jc: np.ndarray, check: bool) -> np.ndarray:
    """Where the motion asked for does not keep the constraints: Jc a + bias is not zero."""
    kept, bias = np.einsum("...mi,...i->...m", Jc, a), system.constraint_bias(q, v)
    left = kept + bias

    def error(place: tuple[int, ...]) -> StateError:
        here, open_by = _at(q, left, place)
        return StateError(
            f"the acceleration asked for does not keep {direction(system, here, open_by)}{element(place)} "
            f"({np.abs(open_by).max():.3g} is missing)",
            "a = cell.complete(q, v, a) is the nearest one that keeps the constraints",
        )

    return _refused(_most(left) > UNMET * (1.0 + _most(kept) + _most(bias)), check, error)


def _undriven(system: Any, Jp: np.ndarray, lam: np.ndarray, T: np.ndarray, check: bool) -> np.ndarray:
    """Where contacts cannot do what bodies without motors need."""
    left = T - np.einsum("...mi,...m->...i", Jp, lam)

    def error(place: tuple[int, ...]) -> StateError:
        worst = int(system.idle[np.argmax(np.abs(left[place]))])
        joint = next(j for j in system.joints if j.v_slice.start <= worst < j.v_slice.stop)
        return StateError(
            f"no contact can give coordinate {worst - joint.v_slice.start} of {joint.name} the force this motion needs"
            f"{element(place)} ({np.abs(left[place]).max():.3g} is missing)",
            "ask for a motion the contacts can drive, or add a contact",
        )

    return _refused(_most(left) > UNMET * np.maximum(_most(T), 1.0), check, error)


def _refused(wrong: Any, check: bool, error: Callable[[tuple[int, ...]], StateError]) -> np.ndarray:
    """`wrong` itself; an error where a single state was asked about, or check says so."""
    wrong = np.asarray(wrong)
    if wrong.any() and (check or not wrong.ndim):
        raise error(tuple(int(i) for i in np.argwhere(wrong)[0]))
    return wrong


def _most(rows: np.ndarray) -> np.ndarray:
    return np.abs(rows).max(axis=-1, initial=0.0)


def _at(q: np.ndarray, rows: np.ndarray, place: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """One element's q and rows."""
    return np.broadcast_to(q, (*rows.shape[:-1], q.shape[-1]))[place], rows[place]
