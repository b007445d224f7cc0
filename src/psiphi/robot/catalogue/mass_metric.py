"""The mass matrix as a metric: Christoffel and Riemann symbols (S1 section 1).

    Gamma_k,ij = (d_i M_kj + d_j M_ki - d_k M_ij) / 2
    R_abcd = d_c Gamma_a,bd - d_d Gamma_a,bc
             + Gamma_e,ad M^ef Gamma_f,bc - Gamma_e,ac M^ef Gamma_f,bd

C(q, v) v = Gamma v v is quadratic in v, so that its values at e_i + e_j, and their derivatives by
q, are all that is needed: both are compiled functions of the robot, without differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import real_array

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot


def christoffel_symbols(robot: Robot, q: Numbers) -> np.ndarray:
    """Gamma_k,ij of the first kind. -> (..., k, i, j)"""
    bias = robot.unbound_function("bias").ufunc
    values = _quadratic(robot, _configurations(robot, q), bias)
    return np.moveaxis(values, -1, -3)


def riemann_symbols(robot: Robot, q: Numbers) -> np.ndarray:
    """R_abcd, with R_1212 = curvature times det M for two coordinates. -> (..., a, b, c, d)"""
    slope, product = _curvature_terms(robot, q)
    return slope - product


def is_flat(robot: Robot, q: Numbers, tolerance: float) -> np.ndarray:
    """Whether |R| is at most `tolerance` times the size of its terms. -> (...)"""
    slope, product = _curvature_terms(robot, q)
    axes = (-4, -3, -2, -1)
    size = np.abs(slope).max(axis=axes, initial=0.0) + np.abs(product).max(axis=axes, initial=0.0)
    return np.abs(slope - product).max(axis=axes, initial=0.0) <= tolerance * size


def _curvature_terms(robot: Robot, q: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """The derivatives in R_abcd, and what the products of two symbols take off."""
    at = _configurations(robot, q)
    slopes = _quadratic(robot, at, robot.unbound_function("bias").jacobian("q"), axes=2)
    slope = np.einsum("...bdac->...abcd", slopes)  # d_c Gamma_a,bd
    symbols = christoffel_symbols(robot, at)
    solved = np.linalg.solve(robot.mass_matrix(at), symbols.reshape(*at.shape, -1))
    products = np.einsum("...eac,...ebd->...abcd", symbols, solved.reshape(symbols.shape))
    return slope - np.swapaxes(slope, -1, -2), products - np.swapaxes(products, -1, -2)


def _quadratic(robot: Robot, q: np.ndarray, function: Callable, axes: int = 1) -> np.ndarray:
    """The symmetric form Q_ij of function(q, v) = function(q, 0) + Q v v. -> (..., i, j, ...)"""
    rest = (slice(None),) * axes
    q, unit = q[..., None, None, :], np.eye(robot.nv)
    sums = unit[:, None] + unit[None, :]
    at_rest = function(q, np.zeros((1, 1, robot.nv)), *robot.parameter_arguments)
    values = function(q, sums, *robot.parameter_arguments) - at_rest
    # Q(e_i + e_i) = 4 Q_ii
    own = np.einsum("...iik->...ik", values.reshape(*values.shape[: values.ndim - axes], -1)) / 4.0
    own = own.reshape(*own.shape[:-1], *values.shape[values.ndim - axes :])
    first, second = own[(..., slice(None), None, *rest)], own[(..., None, slice(None), *rest)]
    return (values - first - second) / 2.0


def _configurations(robot: Robot, q: Numbers) -> np.ndarray:
    """q, of a robot whose velocities are the derivatives of coordinates."""
    turning = [joint.name for joint in robot.joints if not joint.row.is_flat]
    if turning or robot.embedding is not None:
        cause = f"the velocities of {robot.name} are not derivatives of coordinates: "
        cause += ", ".join(turning) or "joints move together"
        raise StateError(cause, "symbols need joints with q' = v, such as hinges and slides")
    return real_array("q", q, (robot.nq,), "pass q (..., nq)")
