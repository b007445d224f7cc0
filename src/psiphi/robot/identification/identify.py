"""`pp.identify`: the parameters of a robot from measured motions, by weighted least squares.

    y = Y pi + noise,      Y pi = Y_b x,      x = K pi the base parameters
    x = argmin |(y - Y_b x) / sigma|^2,      its covariance (Y_b* sigma^-2 Y_b)^-1

sigma is the noise of each row (the torque of a joint, a component of a wrench). It is given, or
estimated from the residuals in a few passes:

    sigma^2 = |y - Y_b x|^2 / (samples (1 - leverage))

where the leverage is the mean diagonal entry of the hat matrix over a row; leverage times samples,
summed over all rows, is the rank. Directions of x that the data do not determine keep the values of
the robot, with infinite deviation. `physical_consistency.py` finds parameters that are physically
consistent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import broadcast_row, check_robot, flag
from psiphi.robot.identification.base_parameters import BaseParameters
from psiphi.robot.identification.identification_result import Identification
from psiphi.robot.identification.measurements import MeasuredRows, read_measurements, rms
from psiphi.robot.identification.physical_consistency import KnownBodies, nearest_consistent
from psiphi.robot.robot import Robot

RANK_TOLERANCE = 1e-9  # relative to the largest singular value
PASSES = 3  # estimates of weights from residuals
LARGEST = 1e120  # of a number divided by its noise, so that squares of products are finite
LEAST_FREEDOM = 1e-3  # least value of 1 - leverage
LEAST_NOISE = 1e-12  # relative to the rms of the largest row: smaller noise is rounding


@dataclass(frozen=True)
class Fit:
    """A least-squares solution x with information R* R, its deviations, and each row's leverage."""

    x: np.ndarray
    deviations: np.ndarray
    R: np.ndarray
    condition: float
    leverage: np.ndarray


def identify(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    tau: Numbers,
    *,
    more: str | Sequence[str] = (),
    wrenches: Mapping[str, Numbers] | None = None,
    sigma: Numbers | None = None,
    consistent: bool = True,
) -> Identification:
    """The inertial parameters that fit torques tau along motions q, v, a.

    q is (..., nq); v, a and tau are (..., nv).

    more         "armature", "damping", "friction": also identify these for all joints. By default
                 the armature is that of the robot, and there are no losses.
    wrenches     {link: (..., 6)}: measured [moment; force] through the joint that carries the link,
                 at the link's origin in link axes, as `joint_forces` returns it: from a force plate
                 under a root link, or a sensor.
    sigma        the standard deviations of the torques (nv,), followed by those of the wrenches; by
                 default estimated from the residuals.
    consistent   whether the parameters must be physically consistent (a density that is nowhere
                 negative).

    >>> import numpy as np, psiphi as pp
    >>> robot, rng = pp.load("puma560"), np.random.default_rng(0)
    >>> q = robot.random(rng, (200,))
    >>> v, a = rng.standard_normal((2, 200, 6))
    >>> tau = robot.inverse_dynamics(q, v, a) + 0.01 * rng.standard_normal((200, 6))
    >>> found = pp.identify(robot, q, v, a, tau)
    >>> found.base.rank, bool(np.abs(found.values - found.base.values).max() < 0.1)
    (36, True)
    """
    check_robot("identify", robot, Robot)
    strict = flag("consistent", consistent)
    data = read_measurements(robot, {"q": q, "v": v, "a": a, "tau": tau}, more, wrenches)
    fit, noise = weighted_fit(data, None if sigma is None else _read_sigma(sigma, data))
    prior = np.concatenate([robot.inertial_parameters, *(getattr(robot, w) for w in data.groups)])
    base = data.base
    if strict:
        floor = np.maximum(1e-6, _joint_floor(fit, base, 10 * len(robot.bodies), len(prior)))
        pi = nearest_consistent(
            KnownBodies.of(prior, len(robot.bodies), floor), base.matrix, fit.R, fit.x
        )
    else:  # the parameters with these base parameters that are nearest to the prior
        pi = prior + np.linalg.pinv(base.matrix) @ (fit.x - base.matrix @ prior)
    unused = [i for i in range(10 * len(robot.bodies), len(pi)) if not data.Y[..., i].any()]
    pi[unused] = prior[unused]  # joint parameters on which the data do not depend
    return Identification(robot, data, fit.x, fit.deviations, fit.condition, noise, pi, strict)


def weighted_fit(data: MeasuredRows, noise: np.ndarray | None) -> tuple[Fit, np.ndarray]:
    """Least squares, with this noise of each row or noise estimated from the residuals."""
    if not max(np.abs(data.Y).max(initial=0.0), np.abs(data.y).max(initial=0.0)) < LARGEST:
        raise StateError("identify: the data are too large for floating point", "check their units")
    size = rms(data.y)
    if not size.any():
        raise StateError("identify: all torques are zero", "give the measured torques")
    if noise is not None:
        return solve_weighted(data, noise), noise
    least = LEAST_NOISE * max(size.max(initial=0.0), 1e-300)
    noise = np.maximum(size, least)
    fit = solve_weighted(data, noise)
    for _ in range(PASSES):
        residuals = data.y - data.Y[..., data.base.columns] @ fit.x
        freedom = np.maximum(1.0 - fit.leverage, LEAST_FREEDOM)
        noise = np.maximum(rms(residuals) / np.sqrt(freedom), least)
        fit = solve_weighted(data, noise)
    return fit, noise


def solve_weighted(data: MeasuredRows, noise: np.ndarray) -> Fit:
    """Least squares for rows with this noise."""
    base = data.base
    A = (data.Y[..., base.columns] / noise[:, None]).reshape(-1, base.rank)
    y = (data.y / noise).reshape(-1)
    if not max(np.abs(A).max(initial=0.0), np.abs(y).max(initial=0.0)) < LARGEST:
        raise StateError(
            "identify: the data divided by their noise are too large for floating point",
            "check units and sigma",
        )
    factor: Any = np.linalg.qr(np.column_stack([A, y]), mode="r")
    R, z = factor[: base.rank, : base.rank], factor[: base.rank, base.rank]
    scale = np.linalg.norm(R, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    U, w, Vt = np.linalg.svd(R / scale)
    determined = w > RANK_TOLERANCE * w.max(initial=0.0)
    Ut, w_kept, V = U[:, determined].T, w[determined], Vt[determined].T
    start = base.values
    x = start + (V @ ((Ut @ (z - R @ start)) / w_kept)) / scale
    deviations = np.sqrt(((V / w_kept) ** 2).sum(axis=1)) / scale
    undetermined = (Vt[~determined] ** 2).sum(axis=0) > 1e-12
    information = (w_kept[:, None] * V.T) * scale
    condition = float(w[0] / w[-1]) if len(w) and w[-1] > 0.0 else np.inf
    hat_root = A @ (V / scale[:, None] / w_kept)  # the hat matrix is hat_root hat_root*
    leverage = (hat_root**2).sum(axis=-1).reshape(data.y.shape).mean(axis=0)
    return Fit(x, np.where(undetermined, np.inf, deviations), information, condition, leverage)


def _joint_floor(fit: Fit, base: BaseParameters, first: int, count: int) -> np.ndarray:
    """The least-squares values of joint parameters that are base parameters, else 0; at least 0."""
    solved = {int(c): float(x) for c, x in zip(base.columns, fit.x, strict=True)}
    return np.array([max(solved.get(i, 0.0), 0.0) for i in range(first, count)])


def _read_sigma(sigma: Numbers, data: MeasuredRows) -> np.ndarray:
    count = len(data.rows)
    expected = (
        f"one or {count} numbers above 0 and below {LARGEST:g}: one per row of torques and wrenches"
    )
    return broadcast_row(
        "sigma", sigma, count, (1e-300, LARGEST), expected, "leave it out to estimate it"
    )
