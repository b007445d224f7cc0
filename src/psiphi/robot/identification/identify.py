"""`pp.identify`: the parameters of a robot from measured motions, by weighted least squares.

    y = Y pi + noise,      Y pi = Y_b x,      x = K pi the base parameters
    x = argmin |(y - Y_b x) / sigma|^2,      its covariance (Y_b* sigma^-2 Y_b)^-1

sigma is that of each row (a joint's torque, a component of a wrench): given, or what the residuals say, in a few passes,

    sigma^2 = |y - Y_b x|^2 / (samples - spent),      spent the row's share of the trace of the hat matrix, all rows' the rank.

Directions of x that the data do not tell keep the robot's own values, and have no finite deviation. What bodies can have is
`physical_consistency.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import check_robot, flag, one_or_each
from psiphi.robot.identification.identification_result import Identification
from psiphi.robot.identification.measurements import MeasuredRows, measured, rms
from psiphi.robot.identification.physical_consistency import KnownBodies, nearest
from psiphi.robot.robot import Robot

UNTOLD = 1e-9  # of the largest singular value: below it the data do not tell
PASSES = 3  # of weights from residuals
LARGE = 1e120  # of a number by its noise: squares of products are floating-point numbers still
SPENT = 1e-3  # of a row's samples: fewer are not left to tell its noise
EXACT = 1e-12  # of a row's size: noise below this is rounding


@dataclass(frozen=True)
class Fit:
    """x, its covariance's root R^-1 as information R, which of x have a finite deviation, how clear all is, and which part of a
    row's samples the fit used up."""

    x: np.ndarray
    deviations: np.ndarray
    R: np.ndarray
    condition: float
    spent: np.ndarray


def identify(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    a: Numbers,
    tau: Numbers,
    *,
    more: str | Sequence[str] = (),
    wrenches: Any = None,
    sigma: Numbers | None = None,
    consistent: bool = True,
) -> Identification:
    """The inertial parameters that explain torques tau (..., nv) along motions q (..., nq), v and a (..., nv).

    more         "armature", "damping", "friction": these of all joints, too; else armature is the robot's, losses are none
    wrenches     {link: (..., 6)}: [moment; force] through the joint that carries the link, at its origin in its axes, as
                 `joint_forces` gives it: of a force plate under a root link, or of a sensor
    sigma        the noise of the torques (nv,), and of the wrenches behind them; left out, what the residuals say
    consistent   whether the parameters must be those of bodies (a density that is nowhere negative)

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
    data = measured(robot, q, v, a, tau, more, wrenches)
    noise = None if sigma is None else _sigma(sigma, data)
    fit, noise = fitted(data, noise)
    prior = np.concatenate([robot.inertial_parameters, *(getattr(robot, w) for w in data.words)])
    base = data.base
    if strict:
        floor = np.maximum(1e-6, _positive(fit, base, 10 * len(robot.bodies), len(prior)))
        pi = nearest(KnownBodies.of(prior, len(robot.bodies), floor), base.matrix, fit.R, fit.x)
    else:  # the nearest parameters with these base parameters
        pi = prior + np.linalg.pinv(base.matrix) @ (fit.x - base.matrix @ prior)
    silent = [i for i in range(10 * len(robot.bodies), len(pi)) if not data.Y[..., i].any()]
    pi[silent] = prior[silent]  # joints' numbers of which the data have no word
    return Identification(robot, data, fit.x, fit.deviations, fit.condition, noise, pi, strict)


def fitted(data: MeasuredRows, noise: np.ndarray | None) -> tuple[Fit, np.ndarray]:
    """Least squares, with weights that are given or made of the residuals."""
    if not max(np.abs(data.Y).max(initial=0.0), np.abs(data.y).max(initial=0.0)) < LARGE:
        raise StateError(
            "identify: the data are too large for floating point", "look at their units"
        )
    given, size = noise is not None, rms(data.y)
    if not size.any():
        raise StateError(
            "identify: all torques are zero, and tell nothing", "give what was measured"
        )
    weights = (
        noise if noise is not None else np.maximum(size, 1e-12 * max(size.max(initial=0.0), 1e-300))
    )
    fit = solved(data, weights)
    for _ in range(0 if given else PASSES):
        left = rms(data.y - data.Y[..., data.base.columns] @ fit.x) / np.sqrt(
            np.maximum(1.0 - fit.spent, SPENT)
        )
        weights = np.maximum(left, EXACT * max(size.max(initial=0.0), 1e-300))
        fit = solved(data, weights)
    return fit, weights


def solved(data: MeasuredRows, noise: np.ndarray) -> Fit:
    """x and its deviations, for rows with this noise."""
    base = data.base
    A = (data.Y[..., base.columns] / noise[:, None]).reshape(-1, base.rank)
    y = (data.y / noise).reshape(-1)
    if not max(np.abs(A).max(initial=0.0), np.abs(y).max(initial=0.0)) < LARGE:
        raise StateError(
            "identify: the data by their noise are too large for floating point",
            "look at units, and at sigma",
        )
    whole: Any = np.linalg.qr(np.column_stack([A, y]), mode="r")
    R, z = whole[: base.rank, : base.rank], whole[: base.rank, base.rank]
    scale = np.linalg.norm(R, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    U, w, Vt = np.linalg.svd(R / scale)
    told = w > UNTOLD * w.max(initial=0.0)
    start = base.values
    x = start + (Vt[told].T @ ((U[:, told].T @ (z - R @ start)) / w[told])) / scale
    spread = np.sqrt(((Vt[told] / w[told, None]) ** 2).sum(axis=0)) / scale
    lost = (Vt[~told] ** 2).sum(axis=0) > 1e-12
    information = (w[told, None] * Vt[told]) * scale
    condition = float(w[0] / w[-1]) if len(w) and w[-1] > 0.0 else np.inf
    spent = (
        ((A @ (Vt[told].T / scale[:, None] / w[told])) ** 2)
        .sum(axis=-1)
        .reshape(data.y.shape)
        .mean(axis=0)
    )
    return Fit(x, np.where(lost, np.inf, spread), information, condition, spent)


def _positive(fit: Fit, base: Any, first: int, count: int) -> np.ndarray:
    """The joints' numbers as least squares has them, where it tells them alone."""
    alone = {int(c): float(x) for c, x in zip(base.columns, fit.x, strict=True)}
    return np.array([max(alone.get(i, 0.0), 0.0) for i in range(first, count)])


def _sigma(sigma: Any, data: MeasuredRows) -> np.ndarray:
    count = len(data.rows)
    expected = (
        f"one or {count} numbers above 0 and below {LARGE:g}: one a row of torques and wrenches"
    )
    return one_or_each(
        "sigma", sigma, count, (1e-300, LARGE), expected, "leave it out: the residuals say"
    )
