"""Inverse dynamics with loops: who carries what.

Rows of M a + C v + g = tau + Jc* lambda without a motor fix what the contacts must do together, Jp* lambda = T_p; the rest of
lambda is free: internal forces, which the motors of one mechanism make and those of another take up.

    lambda = S Jp (Jp* S Jp)^+ T_p + N eta        S = diag(share),  N = null(Jp*)

Here it is said for any state, on arrays: ranks are told by singular values, and those take branches. `closed_inverse_dynamics.py` says it once
more without any, for tapes, with factors that leave rows out; where these are strained, `hold` and `drive` ask here.

What cannot be answered is an error where one state was asked about, or with check=True; in a batch that element is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import as_names, flag, is_foreign, read_array, real_array
from psiphi.model.components import joint_at
from psiphi.model.spatial.branch_free import less, max_magnitude
from psiphi.model.spatial.scalar_arrays import entries, max_norm
from psiphi.model.state_checks import element
from psiphi.robot.mechanisms.solve.dense_saddle import NO_ROW
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN, UNMET, direction, null_space

RCOND = 1e-10  # singular values below this, of the largest, are zeros


def inverse_dynamics(
    system: Any, q, v, a, internal, share, forces: bool, f_ext, axes: str, check: bool
) -> Any:
    """tau (..., nv), and the contact wrenches when asked for."""
    plain = (
        internal is None
        and share is None
        and f_ext is None
        and not flag("forces", forces)
        and not flag("check", check)
    )
    if plain and any(map(is_foreign, (q, v, a))):
        return system.torque_function(q, v, a)
    q, v, a = system.state_arrays(q=q, v=v, a=a)
    torque = system.robot.inverse_dynamics(q, v, a, f_ext=f_ext, axes=axes)
    Jc, weights = system.constraint_jacobian(q), _weights(system, share)
    Jp, T = Jc[..., system.idle], torque[..., system.idle]
    lam = _particular(Jp, weights, T)
    wrong = broken(system, q, v, a, Jc, check) | _undriven(system, Jp, lam, T, check)
    if internal is not None:
        squeeze = multipliers(system, q, internal)
        lam = lam + squeeze - _particular(Jp, weights, np.einsum("...mi,...m->...i", Jp, squeeze))
    lam = np.where(wrong[..., None], np.nan, lam)
    tau = torque - np.einsum("...mi,...m->...i", Jc, lam)
    tau[..., system.idle] = np.where(wrong[..., None], np.nan, 0.0)
    return (tau, system.multiplier_response(q, lam)[1]) if flag("forces", forces) else tau


def complete(system: Any, q, v, a, exactly, f_ext, axes: str, check: bool) -> np.ndarray:
    """a + x with Jc (a + x) + bias = 0 that motors can drive, x of least norm and zero on the joints that move exactly."""
    q, v, a = system.state_arrays(q=q, v=v, a=a)
    Jc, idle = system.constraint_jacobian(q), system.idle
    torque = system.robot.inverse_dynamics(q, v, a, f_ext=f_ext, axes=axes)
    gap = np.einsum("...mi,...i->...m", Jc, a) + system.bias_on_constraints(q, v)
    rows, opened, loose = Jc, gap, unfelt(Jc[..., idle])
    if (
        loose.any()
    ):  # Z* (M a + C v + g)_p = 0, Z = null(Jp): what no contact carries must be no force
        inertia = np.einsum("...pz,...pi->...zi", loose, system.robot.mass_matrix(q)[..., idle, :])
        size = np.linalg.norm(inertia, axis=-1)
        size = np.where(size > 0.0, size, 1.0)
        asked = np.einsum("...pz,...p->...z", loose, torque[..., idle]) / size
        rows, opened = _stacked(-2, Jc, inertia / size[..., None]), _stacked(-1, gap, asked)
    move = np.ones(system.nv)
    for name in as_names("exactly", exactly):
        move[system.robot.joint(name).v_slice] = 0.0
    x = -np.einsum("...im,...m->...i", _pinv(rows * move), opened)
    left = opened + np.einsum("...mi,...i->...m", rows, x)
    remedy = "ask for a motion the mechanisms can follow, or name fewer joints in exactly="

    def error(place: tuple[int, ...]) -> StateError:
        here, open_by = _at(q, left, place)
        own = system.at_elements(left.shape[:-1], place)
        unkept, unmoved = open_by[: system.nc], open_by[system.nc :]
        missing = f"{element(place)} ({np.abs(open_by).max():.3g} is missing)"
        if np.abs(unkept).max(initial=0.0) >= np.abs(unmoved).max(initial=0.0):
            return StateError(
                f"no acceleration of the other joints keeps {direction(own, here, unkept)}{missing}",
                remedy,
            )
        Z = np.broadcast_to(loose, (*left.shape[:-1], *loose.shape[-2:]))[place]
        worst = _joint(system, int(idle[np.argmax(np.abs(Z @ unmoved))]))
        cause = f"no motors drive this: {worst} has none, and nothing that may move gives it the force it needs"
        return StateError(f"{cause}{missing}", remedy)

    wrong = _refused(max_norm(left) > UNMET * (1.0 + max_norm(opened)), check, error)
    return np.where(wrong[..., None], np.nan, a + x)


def drivable(system: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """a + y of an a that keeps the constraints, y the least by the mass matrix with which motors can drive it:

    y_p = -Z (Z* M_pp Z)^-1 Z* (M a + C v + g)_p,   Z = null(Jp): joints without motors that no contact holds move as they must
    """
    loose = unfelt(system.constraint_jacobian(q)[..., system.idle])
    if not loose.any():
        return a
    inner = (
        np.swapaxes(loose, -1, -2)
        @ system.robot.mass_matrix(q)[..., system.idle[:, None], system.idle]
        @ loose
    )
    force = np.einsum(
        "...pz,...p->...z", loose, system.robot.inverse_dynamics(q, v, a)[..., system.idle]
    )
    y = np.einsum("...pz,...zy,...y->...p", loose, _pinv(inner), force)
    out = np.array(np.broadcast_to(a, (*y.shape[:-1], system.nv)))
    out[..., system.idle] -= y
    return out


def hold(system: Any, q) -> np.ndarray:
    """tau that holds the system still: `inverse_dynamics` at rest, compiled."""
    rest = np.zeros(system.nv)
    careful = lambda own, q: own.inverse_dynamics(q, rest, rest)  # noqa: E731
    return _mended(system, system.static_torque_function, system.state_arrays(q=q), careful)


def drive(system: Any, q, v, u) -> np.ndarray:
    """tau that accelerates as near to u, by the mass matrix, as the constraints allow (`closed_inverse_dynamics.py`): compiled."""

    def careful(own: Any, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        a = own.forward_dynamics(q, v, own.robot.inverse_dynamics(q, v, u))
        return own.inverse_dynamics(q, v, drivable(own, q, v, a))

    return _mended(
        system, system.inverse_dynamics_function, system.state_arrays(q=q, v=v, a=u), careful
    )


def _mended(
    system: Any, function: Any, values: tuple[np.ndarray, ...], careful: Callable[..., np.ndarray]
) -> np.ndarray:
    """What the compiled function answers; elements it is strained by, as the careful one says."""
    tau, strain = system.call_function(function, values)
    lead = np.shape(strain)
    bad = ~(strain < STRAIN)
    if not np.any(bad):
        return tau
    if not lead:
        return careful(system, *values)
    tau = np.array(tau)
    tau[bad] = careful(
        system.at_elements(lead, bad),
        *(np.broadcast_to(x, (*lead, x.shape[-1]))[bad] for x in values),
    )
    return tau


def split(system: Any, q, forces, share) -> tuple[np.ndarray, np.ndarray]:
    """The wrenches as (S Jp (Jp* S Jp)^+ Jp* lambda, the rest)."""
    (q,) = system.state_arrays(q=q)
    lam = multipliers(system, q, forces)
    Jp = system.constraint_jacobian(q)[..., system.idle]
    moving = _particular(Jp, _weights(system, share), np.einsum("...mi,...m->...i", Jp, lam))
    return system.multiplier_response(q, moving)[1], system.multiplier_response(q, lam - moving)[1]


def multipliers(system: Any, q: np.ndarray, forces) -> np.ndarray:
    """lambda of contact wrenches (..., l, 6): their part along the constraint rows, which are orthonormal."""
    wrenches = real_array(
        "the wrenches", forces, (len(system.contacts), 6), "give one [moment; force] a contact"
    )
    unit = system.with_sample_axis().multiplier_response(q[..., None, :], np.eye(system.nc))[1]
    return np.einsum("...mlk,...lk->...m", unit, wrenches)


def _particular(Jp: np.ndarray, weights: np.ndarray, T: np.ndarray) -> np.ndarray:
    """S Jp (Jp* S Jp)^+ T."""
    root = np.sqrt(weights)
    scaled = np.swapaxes(Jp * root[:, None], -1, -2)  # (S^1/2 Jp)*
    return root * np.einsum("...mi,...i->...m", _pinv(scaled), T)


def unfelt(Jp: np.ndarray) -> np.ndarray:
    """(..., p, p): columns that span null(Jp), other columns zero: how joints without motors move and no contact feels it."""
    finite = np.isfinite(Jp).all(axis=(-2, -1), keepdims=True)
    N, _ = null_space(np.where(finite & (np.abs(Jp) > NO_ROW), Jp, 0.0), RCOND)
    return np.where(finite, N, 0.0)


def _stacked(axis: int, *arrays: np.ndarray) -> np.ndarray:
    core = -axis
    lead = np.broadcast_shapes(*(x.shape[:-core] for x in arrays))
    return np.concatenate(
        [np.broadcast_to(x, (*lead, *x.shape[-core:])) for x in arrays], axis=axis
    )


def _joint(system: Any, coordinate: int) -> str:
    """A velocity coordinate in words."""
    joint = joint_at(system.joints, coordinate)
    return f"coordinate {coordinate - joint.v_slice.start} of {joint.name}"


def _pinv(A: np.ndarray) -> np.ndarray:
    """A^+; NaN of elements that are not finite, and only of those."""
    finite = np.isfinite(A).all(axis=(-2, -1), keepdims=True)
    return np.where(
        finite, np.linalg.pinv(np.where(finite & (np.abs(A) > NO_ROW), A, 0.0), rcond=RCOND), np.nan
    )


def _weights(system: Any, share) -> np.ndarray:
    """One weight a row, from one a contact."""
    out = np.ones(system.nc)
    if share is None:
        return out
    array, fault = read_array(share, (len(system.contacts),))
    if fault or array.ndim != 1 or not (array > 0.0).all() or not np.isfinite(array).all():
        raise StateError(
            f"share is {shown(share)}, expected {len(system.contacts)} positive numbers",
            "one a contact",
        )
    for weight, own in zip(array, system.closure.slices, strict=False):
        out[own] = weight
    return out


def broken(
    system: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray, Jc: np.ndarray, check: bool
) -> np.ndarray:
    """Where the motion asked for does not keep the constraints: Jc a + bias is not zero."""
    kept, bias = np.einsum("...mi,...i->...m", Jc, a), system.bias_on_constraints(q, v)
    left = kept + bias

    def error(place: tuple[int, ...]) -> StateError:
        (here, open_by), own = _at(q, left, place), system.at_elements(left.shape[:-1], place)
        return StateError(
            f"the acceleration asked for does not keep {direction(own, here, open_by)}{element(place)} "
            f"({np.abs(open_by).max():.3g} is missing)",
            "a = cell.complete(q, v, a) is the nearest one that keeps the constraints",
        )

    return _refused(opens(*map(entries, (left, kept, bias))) == 1.0, check, error)


def opens(left: list, kept: list, bias: list) -> Any:
    """1 where rows left = kept + bias are not zero, else 0: on numbers, arrays and tapes."""
    return less(UNMET * (1.0 + max_magnitude(kept) + max_magnitude(bias)), max_magnitude(left))


def _undriven(
    system: Any, Jp: np.ndarray, lam: np.ndarray, T: np.ndarray, check: bool
) -> np.ndarray:
    """Where contacts cannot do what bodies without motors need."""
    left = T - np.einsum("...mi,...m->...i", Jp, lam)

    def error(place: tuple[int, ...]) -> StateError:
        worst = int(system.idle[np.argmax(np.abs(left[place]))])
        return StateError(
            f"no contact can give {_joint(system, worst)} the force this motion needs"
            f"{element(place)} ({np.abs(left[place]).max():.3g} is missing)",
            "a = cell.complete(q, v, a) is the nearest motion that motors and contacts can drive; or add a contact",
        )

    return _refused(max_norm(left) > UNMET * np.maximum(max_norm(T), 1.0), check, error)


def _refused(wrong: Any, check: bool, error: Callable[[tuple[int, ...]], StateError]) -> np.ndarray:
    """`wrong` itself; an error where a single state was asked about, or check says so."""
    wrong = np.asarray(wrong)
    if wrong.any() and (check or not wrong.ndim):
        raise error(tuple(int(i) for i in np.argwhere(wrong)[0]))
    return wrong


def _at(q: np.ndarray, rows: np.ndarray, place: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """One element's q and rows."""
    return np.broadcast_to(q, (*rows.shape[:-1], q.shape[-1]))[place], rows[place]
