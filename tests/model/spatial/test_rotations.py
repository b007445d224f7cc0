"""Unit quaternions x, y, z, w against rotation matrices, series and integrals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi.model.joint_types import JOINTS
from psiphi.model.spatial import rotations
from tests.model.spatial import on_arrays as quat
from tests.oracles.reference import axis_rotation, quaternion_rotation, skew

SEEDS = st.integers(0, 2**32 - 1)
SIZES = [
    0.0,
    1e-300,
    1e-18,
    1e-12,
    1e-9,
    1e-8,
    1e-4,
    0.0999,
    0.1,
    0.1001,
    0.3,
    0.49,
    1.0,
    3.0,
    math.pi - 1e-9,
]


def rotation_vector(rng, size: float) -> np.ndarray:
    x = rng.standard_normal(3)
    return size * x / np.linalg.norm(x)


def close(ours, theirs, law: str, atol: float = 1e-14) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol, err_msg=law)


@given(SEEDS)
def test_products_are_products_of_rotations(seed):
    a, b = quat.random(np.random.default_rng(seed), (2,))
    R, S = quaternion_rotation(a), quaternion_rotation(b)
    close(quaternion_rotation(quat.multiply(a, b)), R @ S, "R(ab) = R(a) R(b)", 1e-13)
    close(quaternion_rotation(quat.conjugate(a)), R.T, "R(a*) = R(a)*", 1e-13)
    close(quat.multiply(a, quat.conjugate(a)), [0, 0, 0, 1], "a a* = 1")
    x = np.random.default_rng(seed + 1).standard_normal(3)
    close(quat.rotate(a, x), R @ x, "R(a) x", 1e-13)


@pytest.mark.parametrize("size", SIZES)
def test_exp_is_the_turn_about_w(size, rng):
    w = rotation_vector(rng, size)
    q = quat.exp(w)
    close(np.linalg.norm(q), 1.0, "unit length")
    close(quaternion_rotation(q), axis_rotation(w / size, size) if size else np.eye(3), "Rodrigues")
    np.testing.assert_allclose(
        quat.log(q), w, rtol=1e-7 if size > 3.1 else 1e-14, err_msg="log exp w = w"
    )


@pytest.mark.parametrize("size", [3.5, 5.0, 2 * math.pi, 40.0])
def test_log_is_the_shortest_way(size, rng):
    w = rotation_vector(rng, size)
    shortest = quat.log(quat.exp(w))
    assert np.linalg.norm(shortest) <= math.pi + 1e-12
    close(
        quaternion_rotation(quat.exp(shortest)),
        axis_rotation(w / size, size),
        "the same rotation",
        1e-13,
    )


@given(SEEDS)
def test_log_does_not_see_the_sign(seed):
    """q and -q are one rotation."""
    q = quat.random(np.random.default_rng(seed), ())
    close(quat.log(q), quat.log(-q), "log q = log -q")
    close(
        quaternion_rotation(quat.exp(quat.log(q))), quaternion_rotation(q), "exp log q = q", 1e-13
    )
    assert np.linalg.norm(quat.log(q)) <= math.pi + 1e-12


def integral(w: np.ndarray) -> np.ndarray:
    """V(w) = integral of R(s w) ds from 0 to 1, by Gauss's rule with 40 points."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    size = np.linalg.norm(w)
    turns = [axis_rotation(w / size, size * (x + 1) / 2) if size else np.eye(3) for x in nodes]
    return np.tensordot(weights / 2, turns, 1)


def series(w: np.ndarray) -> np.ndarray:
    """V(w) = sum of w~^n / (n + 1)!"""
    total, term = np.zeros((3, 3)), np.eye(3)
    for n in range(1, 60):
        total, term = total + term, term @ skew(w) / (n + 1)
    return total


@pytest.mark.parametrize("size", [*SIZES, 5.0])
def test_left_jacobian(size, rng):
    w = rotation_vector(rng, size)
    close(quat.left_jacobian(w), series(w), "series", 3e-15 * max(1, size**3))
    close(quat.left_jacobian(w), integral(w), "integral of the turn", 1e-14)


def test_left_jacobian_is_the_derivative_of_exp(rng):
    """exp(w + e) = exp(V(w) e) exp(w) to first order."""
    w, e, h = rotation_vector(rng, 1.7), rng.standard_normal(3), 1e-5
    ahead, behind = (
        quat.multiply(quat.exp(w + t * e), quat.conjugate(quat.exp(w))) for t in (h, -h)
    )
    close(
        (quat.log(ahead) - quat.log(behind)) / (2 * h),
        quat.left_jacobian(w) @ e,
        "central difference",
        1e-9,
    )


def test_skew_is_the_cross_product(rng):
    x, y = rng.standard_normal((2, 5, 3))
    close(np.einsum("...ij,...j->...i", rotations.skew(x), y), np.cross(x, y), "x~ y = x x y")


def test_functions_of_batches_are_batches_of_functions(rng):
    a, b, w = quat.random(rng, (2, 3)), quat.random(rng, (3,)), rng.uniform(-2, 2, (2, 3, 3))
    w[0, 0], w[1, 1] = 0.0, 1e-12
    batches = {
        "multiply": (quat.multiply(a, b), lambda i, j: quat.multiply(a[i, j], b[j])),
        "conjugate": (quat.conjugate(a), lambda i, j: quat.conjugate(a[i, j])),
        "rotate": (quat.rotate(a, w), lambda i, j: quat.rotate(a[i, j], w[i, j])),
        "exp": (quat.exp(w), lambda i, j: quat.exp(w[i, j])),
        "log": (quat.log(a), lambda i, j: quat.log(a[i, j])),
        "left_jacobian": (quat.left_jacobian(w), lambda i, j: quat.left_jacobian(w[i, j])),
        "normalize": (quat.normalize(3 * a), lambda i, j: a[i, j]),
    }
    for name, (batch, alone) in batches.items():
        close(batch, [[alone(i, j) for j in range(3)] for i in range(2)], name, 1e-15)


def test_random_is_uniform(rng):
    """Unit length; every coordinate of mean zero and mean square 1/4."""
    q = JOINTS["spherical"].random(rng, (20_000,), None, None)
    close(np.linalg.norm(q, axis=-1), 1.0, "unit length")
    close(q.mean(0), 0.0, "mean", 0.02)
    close(q.T @ q / len(q), np.eye(4) / 4, "covariance", 0.01)
