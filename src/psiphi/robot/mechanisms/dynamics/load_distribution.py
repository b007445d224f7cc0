"""Inverse dynamics of closed chains, and the distribution of the load over the contacts.

Rows of M a + C v + g = tau + Jc* lambda without a motor determine Jp* lambda = T_p. The rest of
lambda is free: internal forces, which motors of one mechanism apply and those of another balance.

    lambda = S Jp (Jp* S Jp)^+ T_p + N eta        S = diag(share),  N = null(Jp*)

This file works on arrays of any state, with ranks by singular values. `closed_inverse_dynamics.py`
is the branch-free version for tapes; `static_torques` and `nearest_inverse_dynamics` run it, and
use this file for the elements where it is ill-conditioned.

An infeasible element of a batch is NaN; a single state, or any with check=True, raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Numbers, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import as_names, flag, is_foreign, read_array, real_array
from psiphi.functions.compiled_function import Function
from psiphi.model.components import joint_of_entry
from psiphi.model.spatial.branch_free import less, max_magnitude
from psiphi.model.spatial.scalar_arrays import entries, max_norm
from psiphi.model.state_checks import batch_element
from psiphi.robot.mechanisms import loop_closure
from psiphi.robot.mechanisms.solve.dense_saddle import ROW_ROUNDING
from psiphi.robot.mechanisms.solve.redundant_constraints import (
    ILL_CONDITIONED,
    UNMET_TOLERANCE,
    null_space,
    violated_direction,
)

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

RCOND = 1e-10  # singular values below this fraction of the largest count as zero


def inverse_dynamics(
    system: System,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    internal: Numbers | None,
    share: Numbers | None,
    forces: bool,
    f_ext: Wrenches | None,
    axes: str,
    check: bool,
) -> Any:
    """tau (..., nv); with `forces` also the contact wrenches (..., l, 6)."""
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
    if flag("check", check):
        loop_closure.check_constraints(system, "inverse_dynamics", q, v)
    torque = system.robot.inverse_dynamics(q, v, a, f_ext=f_ext, axes=axes)
    Jc, weights = system.constraint_jacobian(q), _row_weights(system, share)
    Jp, T = Jc[..., system.idle], torque[..., system.idle]
    lam = _weighted_solution(Jp, weights, T)
    infeasible = violates_constraints(system, q, v, a, Jc, check)
    infeasible = infeasible | _lacks_contact_force(system, Jp, lam, T, check)
    if internal is not None:
        extra = wrench_multipliers(system, q, internal)
        on_unactuated = np.einsum("...mi,...m->...i", Jp, extra)
        lam = lam + extra - _weighted_solution(Jp, weights, on_unactuated)
    lam = np.where(infeasible[..., None], np.nan, lam)
    tau = torque - np.einsum("...mi,...m->...i", Jc, lam)
    tau[..., system.idle] = np.where(infeasible[..., None], np.nan, 0.0)
    return (tau, system.multiplier_response(q, lam)[1]) if flag("forces", forces) else tau


def complete(
    system: System,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    exactly: str | Sequence[str],
    f_ext: Wrenches | None,
    axes: str,
    check: bool,
) -> np.ndarray:
    """a + x that satisfies Jc (a + x) + bias = 0 and that the motors can produce; x has least norm
    and is zero for the joints `exactly`."""
    q, v, a = system.state_arrays(q=q, v=v, a=a)
    if flag("check", check):
        loop_closure.check_constraints(system, "complete", q, v)
    Jc, unactuated = system.constraint_jacobian(q), system.idle
    torque = system.robot.inverse_dynamics(q, v, a, f_ext=f_ext, axes=axes)
    bias = np.einsum("...mi,...i->...m", Jc, a) + system.bias_on_constraints(q, v)
    rows, right, floating = Jc, bias, unconstrained_motions(Jc[..., unactuated])
    if floating.any():  # no contact force acts along Z = null(Jp): Z* (M a + C v + g)_p = 0
        mass = system.robot.mass_matrix(q)[..., unactuated, :]
        inertia = np.einsum("...pz,...pi->...zi", floating, mass)
        size = np.linalg.norm(inertia, axis=-1)
        size = np.where(size > 0.0, size, 1.0)
        force = np.einsum("...pz,...p->...z", floating, torque[..., unactuated]) / size
        rows = _concatenate(-2, Jc, inertia / size[..., None])
        right = _concatenate(-1, bias, force)
    weights = np.ones(system.nv)
    for name in as_names("exactly", exactly):
        weights[system.robot.joint(name).v_slice] = 0.0
    x = -np.einsum("...im,...m->...i", _pinv(rows * weights), right)
    residual = right + np.einsum("...mi,...i->...m", rows, x)

    def error(index: tuple[int, ...]) -> StateError:
        own_q, own = _element_rows(q, residual, index)
        constraint_part, force_part = own[: system.nc], own[system.nc :]
        missing = f"{batch_element(index)} ({np.abs(own).max():.3g} is missing)"
        remedy = "choose a motion that the mechanisms can follow, or name fewer joints in exactly="
        if np.abs(constraint_part).max(initial=0.0) >= np.abs(force_part).max(initial=0.0):
            one = system.at_elements(residual.shape[:-1], index)
            direction = violated_direction(one, own_q, constraint_part)
            return StateError(
                f"no acceleration of the other joints satisfies {direction}{missing}", remedy
            )
        Z = np.broadcast_to(floating, (*residual.shape[:-1], *floating.shape[-2:]))[index]
        worst = int(unactuated[np.argmax(np.abs(Z @ force_part))])
        return StateError(
            f"the motion needs a force on {_coordinate_text(system, worst)}, which has no motor, "
            f"and no joint that may move provides it{missing}",
            remedy,
        )

    infeasible = _raise_or_mask(
        max_norm(residual) > UNMET_TOLERANCE * (1.0 + max_norm(right)), check, error
    )
    return np.where(infeasible[..., None], np.nan, a + x)


def drivable_acceleration(
    system: System, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """a + y that the motors can produce, for an a that satisfies the constraints; y is the smallest
    change by the mass matrix:

    y_p = -Z (Z* M_pp Z)^-1 Z* (M a + C v + g)_p,   Z = null(Jp)
    """
    floating = unconstrained_motions(system.constraint_jacobian(q)[..., system.idle])
    if not floating.any():
        return a
    mass = system.robot.mass_matrix(q)[..., system.idle[:, None], system.idle]
    inner = np.swapaxes(floating, -1, -2) @ mass @ floating
    torque = system.robot.inverse_dynamics(q, v, a)[..., system.idle]
    force = np.einsum("...pz,...p->...z", floating, torque)
    y = np.einsum("...pz,...zy,...y->...p", floating, _pinv(inner), force)
    out = np.array(np.broadcast_to(a, (*y.shape[:-1], system.nv)))
    out[..., system.idle] -= y
    return out


def static_torques(system: System, q: Numbers) -> np.ndarray:
    """tau that holds the system at rest; compiled."""
    rest = np.zeros(system.nv)

    def fallback(system: System, q: np.ndarray) -> np.ndarray:
        return system.inverse_dynamics(q, rest, rest)

    return _call_with_fallback(
        system, system.static_torque_function, system.state_arrays(q=q), fallback
    )


def nearest_inverse_dynamics(
    system: System, q: Numbers, v: Numbers, u: Numbers, share: np.ndarray | None = None
) -> np.ndarray:
    """tau of the feasible acceleration nearest to u by the mass matrix
    (`closed_inverse_dynamics.py`); compiled. `share` has one weight per contact."""

    def fallback(
        system: System, q: np.ndarray, v: np.ndarray, u: np.ndarray, *_: np.ndarray
    ) -> np.ndarray:
        a = system.forward_dynamics(q, v, system.robot.inverse_dynamics(q, v, u))
        return system.inverse_dynamics(q, v, drivable_acceleration(system, q, v, a), share=share)

    values = system.state_arrays(q=q, v=v, a=u)
    if share is None:
        return _call_with_fallback(system, system.inverse_dynamics_function, values, fallback)
    function = system.shared_inverse_dynamics_function
    return _call_with_fallback(system, function, (*values, share), fallback)


def _call_with_fallback(
    system: System,
    function: Function,
    values: tuple[np.ndarray, ...],
    fallback: Callable[..., np.ndarray],
) -> np.ndarray:
    """The result of a compiled function; of `fallback` for elements where it is ill-conditioned."""
    tau, ill_conditioning = system.call_function(function, values)
    batch = np.shape(ill_conditioning)
    singular = ~(ill_conditioning < ILL_CONDITIONED)
    if not np.any(singular):
        return tau
    if not batch:
        return fallback(system, *values)
    tau = np.array(tau)
    tau[singular] = fallback(
        system.at_elements(batch, singular),
        *(np.broadcast_to(x, (*batch, x.shape[-1]))[singular] for x in values),
    )
    return tau


def split(
    system: System, q: Numbers, forces: Numbers, share: Numbers | None
) -> tuple[np.ndarray, np.ndarray]:
    """The wrenches as (S Jp (Jp* S Jp)^+ Jp* lambda, the rest)."""
    (q,) = system.state_arrays(q=q)
    lam = wrench_multipliers(system, q, forces)
    Jp = system.constraint_jacobian(q)[..., system.idle]
    on_unactuated = np.einsum("...mi,...m->...i", Jp, lam)
    external = _weighted_solution(Jp, _row_weights(system, share), on_unactuated)
    internal = lam - external
    return system.multiplier_response(q, external)[1], system.multiplier_response(q, internal)[1]


def wrench_multipliers(system: System, q: np.ndarray, forces: Numbers) -> np.ndarray:
    """lambda of contact wrenches (..., l, 6): their components along the orthonormal rows."""
    wrenches = real_array(
        "the wrenches",
        forces,
        (len(system.contacts), 6),
        "give one [moment; force] for each contact",
    )
    unit = system.with_sample_axis().multiplier_response(q[..., None, :], np.eye(system.nc))[1]
    return np.einsum("...mlk,...lk->...m", unit, wrenches)


def _weighted_solution(Jp: np.ndarray, weights: np.ndarray, T: np.ndarray) -> np.ndarray:
    """S Jp (Jp* S Jp)^+ T."""
    root = np.sqrt(weights)
    scaled = np.swapaxes(Jp * root[:, None], -1, -2)  # (S^1/2 Jp)*
    return root * np.einsum("...mi,...i->...m", _pinv(scaled), T)


def unconstrained_motions(Jp: np.ndarray) -> np.ndarray:
    """null(Jp) as columns (..., p, p), padded with zeros: motions of coordinates without motors on
    which no contact acts."""
    finite = np.isfinite(Jp).all(axis=(-2, -1), keepdims=True)
    N, _ = null_space(np.where(finite & (np.abs(Jp) > ROW_ROUNDING), Jp, 0.0), RCOND)
    return np.where(finite, N, 0.0)


def _concatenate(axis: int, *arrays: np.ndarray) -> np.ndarray:
    """Concatenate along a negative axis, with batch axes broadcast."""
    core = -axis
    batch = np.broadcast_shapes(*(x.shape[:-core] for x in arrays))
    return np.concatenate(
        [np.broadcast_to(x, (*batch, *x.shape[-core:])) for x in arrays], axis=axis
    )


def _coordinate_text(system: System, coordinate: int) -> str:
    """A velocity coordinate by its joint, for messages."""
    joint = joint_of_entry(system.joints, coordinate)
    return f"coordinate {coordinate - joint.v_slice.start} of {joint.name}"


def _pinv(A: np.ndarray) -> np.ndarray:
    """A^+; only elements that are not finite become NaN."""
    finite = np.isfinite(A).all(axis=(-2, -1), keepdims=True)
    return np.where(
        finite,
        np.linalg.pinv(np.where(finite & (np.abs(A) > ROW_ROUNDING), A, 0.0), rcond=RCOND),
        np.nan,
    )


def _row_weights(system: System, share: Numbers | None) -> np.ndarray:
    """`share`, one number per contact, as one weight per row (m,)."""
    out = np.ones(system.nc)
    if share is None:
        return out
    array, fault = read_array(share, (len(system.contacts),))
    if fault or array.ndim != 1 or not (array > 0.0).all() or not np.isfinite(array).all():
        raise StateError(
            f"share is {shown(share)}, expected {len(system.contacts)} positive numbers",
            "give one for each contact",
        )
    for weight, own in zip(array, system.closure.slices, strict=False):
        out[own] = weight
    return out


def violates_constraints(
    system: System, q: np.ndarray, v: np.ndarray, a: np.ndarray, Jc: np.ndarray, check: bool
) -> np.ndarray:
    """Where Jc a + bias is not zero (...)."""
    Jc_a, bias = np.einsum("...mi,...i->...m", Jc, a), system.bias_on_constraints(q, v)
    residual = Jc_a + bias

    def error(index: tuple[int, ...]) -> StateError:
        own_q, own = _element_rows(q, residual, index)
        one = system.at_elements(residual.shape[:-1], index)
        direction = violated_direction(one, own_q, own)
        return StateError(
            f"the acceleration does not satisfy {direction}{batch_element(index)} "
            f"({np.abs(own).max():.3g} is missing)",
            "a = system.complete(q, v, a) is the nearest one that satisfies the constraints",
        )

    violated = exceeds_tolerance(*map(entries, (residual, Jc_a, bias))) == 1.0
    return _raise_or_mask(violated, check, error)


def exceeds_tolerance(residual: list, Jc_a: list, bias: list) -> Any:
    """1 if the rows residual = Jc a + bias are not zero, else 0; on numbers, arrays and tapes."""
    return less(
        UNMET_TOLERANCE * (1.0 + max_magnitude(Jc_a) + max_magnitude(bias)),
        max_magnitude(residual),
    )


def _lacks_contact_force(
    system: System, Jp: np.ndarray, lam: np.ndarray, T: np.ndarray, check: bool
) -> np.ndarray:
    """Where Jp* lambda cannot produce T_p (...)."""
    residual = T - np.einsum("...mi,...m->...i", Jp, lam)

    def error(index: tuple[int, ...]) -> StateError:
        worst = int(system.idle[np.argmax(np.abs(residual[index]))])
        return StateError(
            f"no contact can give {_coordinate_text(system, worst)} the force that the motion "
            f"needs{batch_element(index)} ({np.abs(residual[index]).max():.3g} is missing)",
            "a = system.complete(q, v, a) is the nearest motion that motors and contacts can "
            "produce; or add a contact",
        )

    return _raise_or_mask(
        max_norm(residual) > UNMET_TOLERANCE * np.maximum(max_norm(T), 1.0), check, error
    )


def _raise_or_mask(
    infeasible: np.ndarray | np.bool_,
    check: bool,
    error: Callable[[tuple[int, ...]], StateError],
) -> np.ndarray:
    """`infeasible` as an array; raises for a single state, and with `check`."""
    infeasible = np.asarray(infeasible)
    if infeasible.any() and (check or not infeasible.ndim):
        raise error(tuple(int(i) for i in np.argwhere(infeasible)[0]))
    return infeasible


def _element_rows(
    q: np.ndarray, rows: np.ndarray, index: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """q and rows of one element of a batch."""
    return np.broadcast_to(q, (*rows.shape[:-1], q.shape[-1]))[index], rows[index]
