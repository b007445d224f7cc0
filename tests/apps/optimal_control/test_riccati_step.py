"""The Riccati step in blocks of nv, beside dense matrices."""

import numpy as np
import pytest

from psiphi.apps.optimal_control.riccati_step import CostSlopes, StepSlopes, riccati_step

N, M = 3, 2


def random_problem(rng):
    Ad, J, X, Y = rng.standard_normal((4, N, N))
    Z = rng.standard_normal((N, M))
    zero = np.zeros((N, N))
    T = np.block([[Ad, J], [zero, np.eye(N)]])
    A = T @ np.block([[np.eye(N), zero], [X, Y]])
    B = T @ np.concatenate([np.zeros((N, M)), Z])
    root = rng.standard_normal((2 * N + M, 2 * N + M))
    l, P = root @ root.T, (lambda r: r @ r.T)(rng.standard_normal((2 * N, 2 * N)))
    return (Ad, J, X, Y, Z), A, B, l, P, *rng.standard_normal((2, 2 * N + M))


@pytest.mark.parametrize("mask", [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_one_step_is_that_of_dense_matrices(rng, mask):
    blocks, A, B, l, P, gradient, more = random_problem(rng)
    p = more[: 2 * N]
    lists = [block.tolist() for block in blocks]
    cost = CostSlopes(
        gradient[: 2 * N].tolist(),
        gradient[2 * N :].tolist(),
        l[: 2 * N, : 2 * N].tolist(),
        l[2 * N :, : 2 * N].tolist(),
        l[2 * N :, 2 * N :].tolist(),
    )
    damping = np.diag([0.1, 0.2])
    to_bound = [0.0 if free else 0.3 for free in mask]
    found = riccati_step(
        p.tolist(),
        P.tolist(),
        StepSlopes(*lists),
        cost,
        lambda Qu: (list(mask), to_bound),
        damping.tolist(),
    )
    AB = np.concatenate([A, B], axis=1)
    Q, g = l + AB.T @ P @ AB, gradient + AB.T @ p
    free = np.flatnonzero(mask)
    Qux, Qu, H = Q[2 * N :, : 2 * N], g[2 * N :], Q[2 * N :, 2 * N :] + damping
    k, K = np.zeros(M), np.zeros((M, 2 * N))
    if len(free):
        inner = H[np.ix_(free, free)]
        k[free], K[free] = -np.linalg.solve(inner, Qu[free]), -np.linalg.solve(inner, Qux[free])
    np.testing.assert_allclose(found.k, k + to_bound, atol=1e-10)
    np.testing.assert_allclose(found.K, K, atol=1e-10)
    np.testing.assert_allclose(found.P, Q[: 2 * N, : 2 * N] + Qux.T @ K, atol=1e-9)
    np.testing.assert_allclose(found.p, g[: 2 * N] + Qux.T @ k, atol=1e-9)
    np.testing.assert_allclose(found.decrease, -0.5 * Qu @ k, atol=1e-10)
    slope = np.array(mask) * Qu
    scaled = slope**2 / np.diag(Q)[2 * N :]
    np.testing.assert_allclose(found.residual, scaled.max(), atol=1e-10)
