"""The Riccati sweep of optimal control is the covariance sweep of a filter, with time in the place
of space: the laws are proved for operators, and the numbers are those of `psiphi.estimation`.

    phi(k-1, k) = A_k*,  H(k) = B_k*,  M(k) = Q_{k+1},  R(k) = R_k,  y(k) = -r_k,  xi(k) = q_{k+1}
"""

from functools import cache

import numpy as np

import psiphi as pp
from psiphi import estimation
from psiphi.apps.optimal_control.ddp_solver import Motions
from tests.apps.optimal_control.robots import RUNNING, pelican, reach_batch, reach_problem

EXACT = 1e-12


def close(actual, expected, message=""):
    """Equal to 1e-12 of the largest number."""
    size = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=EXACT * size, err_msg=message)


@cache
def linear_quadratic_problem():
    """A motion before it is optimal, the gains of the compiled sweep, and A, B, Q, R, q, r from
    `linearize` and the formulas of the costs."""
    problem, robot = reach_problem(), pelican()
    (start, speed, goal), (w_u, w_v), h = reach_batch(3), RUNNING, problem.dt
    found = problem.solve(start[0], speed[0], tool=goal[0], iterations=2)
    assert found.at_bounds.any() and not found.converged
    q, v, u, N = found.q, found.v, found.u, problem.steps
    A, B = robot.linearize(q[:-1], v[:-1], u, dt=h, method="euler")
    Q, gradient = np.zeros((N, 4, 4)), np.zeros((N, 4))
    Q[:, 2:, 2:], gradient[:, 2:] = h * w_v * np.eye(2), h * w_v * v[1:]
    J = robot.jacobian(q[-1], "tool")[3:]
    miss = robot.frame_pose(q[-1], "tool")[:3, 3] - goal[0]
    Q[-1], gradient[-1] = 0.0, 0.0
    Q[-1, :2, :2], gradient[-1, :2] = 1e3 * J.T @ J, 1e3 * J.T @ miss
    Q[-1, 2:, 2:], gradient[-1, 2:] = np.eye(2), v[-1]
    R, r = np.broadcast_to(h * w_u * np.eye(2), (N, 2, 2)), h * w_u * u
    x = Motions(q[None], v[None], u[None], np.zeros(1))
    gains = problem.solver.gains(x, problem.numbers_of(found), np.zeros(1))
    return A, B, Q, R, gradient, r, gains.k[0], gains.K[0].reshape(N, 2, 4)


def test_the_laws_hold_for_operators():
    """Nothing in their proofs says what phi, H, M and R are: links, or instants."""
    s = pelican().operators
    phi, psi, H, D, K, one = s.phi, s.psi, s.H, s.D, s.K, s.I
    assert pp.prove(s.mass, (one + H @ phi @ K) @ D @ (one + H @ phi @ K).T)
    assert pp.prove(s.mass.inv, (one - H @ psi @ K).T @ D.inv @ (one - H @ psi @ K))
    assert pp.prove(psi @ (one + K @ H @ phi), phi)


def test_gains_are_those_of_the_filter():
    """Quu is the innovation covariance, -K the Kalman gain, k the residual; torques at bounds are
    outputs that are not seen; the corrections of all torques are the multipliers."""
    A, B, Q, R, q, r, k, K = linear_quadratic_problem()
    backwards = range(len(B) - 1, -1, -1)
    model = estimation.sequence(
        [A[i].T for i in backwards if i],
        [Q[i] for i in backwards],
        [B[i].T for i in backwards],
        [R[i] for i in backwards],
    )
    free = np.abs(K).max(axis=-1) > 0.0
    assert not free.all() and free.any(axis=1).sum() > 10
    smoother = estimation.Smoother(model.seen(list(free)), compiled=False)
    estimate = smoother(list(-r), list(q))
    for i in range(len(B)):
        close((A[i].T @ smoother.gains[i] * free[i]).T, -K[i], f"K at node {i}")
        close(estimate.residuals[i] * free[i], k[i] * free[i], f"k at node {i}")
    x, moves = np.zeros(4), np.zeros(k.shape)
    for i in range(len(B)):
        moves[i] = free[i] * (k[i] + K[i] @ x)
        x = A[i] @ x + B[i] @ moves[i]
    close(np.array(estimate.multipliers) * free, moves)


def test_the_condensed_hessian_is_the_mass_matrix():
    """H phi M phi* H* + R = (I + H phi K) D (I + H phi K)*, of matrices over the whole horizon:
    the Hessian of the cost by all torques, factored by the sweep."""
    A, B, Q, R, *_ = linear_quadratic_problem()
    N, n, m = len(B), 4, 2
    phi = np.zeros((N, n, N, n))  # from the end of the horizon to its start
    for i in range(N):
        phi[i, :, i] = np.eye(n)
        for j in range(i + 1, N):
            phi[i, :, j] = phi[i, :, j - 1] @ A[j].T
    phi = phi.reshape(N * n, N * n)

    def blocks(parts):
        rows, columns = parts[0].shape
        out = np.zeros((N, rows, N, columns))
        out[range(N), :, range(N)] = parts
        return out.reshape(N * rows, N * columns)

    H, M, noise = blocks(B.swapaxes(1, 2)), blocks(Q), blocks(R)
    model = estimation.sequence(
        [A[i].T for i in range(N - 1, 0, -1)], Q[::-1], B.swapaxes(1, 2)[::-1], R[::-1]
    )
    smoother = estimation.Smoother(model, compiled=False)
    shifts = np.zeros((N, n, N, m))
    for i in range(1, N):
        shifts[i - 1, :, i] = A[i].T @ smoother.gains[i]
    K, D = shifts.reshape(N * n, N * m), blocks(np.array(smoother.innovation_covariance))
    factor = np.eye(N * m) + H @ phi @ K
    condensed = H @ phi @ M @ phi.T @ H.T + noise
    close(factor @ D @ factor.T, condensed)
    psi = np.linalg.inv(np.linalg.inv(phi) + K @ H)
    inverse = np.eye(N * m) - H @ psi @ K
    close(inverse @ factor, np.eye(N * m))


def test_states_adjoints_and_gaps():
    """With the gaps as co-inputs: the co-states are the states x_k+1, the smoothed states the
    adjoints, by the conditions of optimality (Pontryagin)."""
    A, B, Q, R, q, r, *_ = linear_quadratic_problem()
    N, rng = len(B), np.random.default_rng(0)
    d = 0.01 * rng.standard_normal((N, 4))
    model = estimation.sequence(
        [A[i].T for i in range(N - 1, 0, -1)], Q[::-1], B.swapaxes(1, 2)[::-1], R[::-1]
    )
    found = estimation.Smoother(model, compiled=False)(list(-r), list(q), list(d))
    x, u, lam = (np.array(y) for y in (found.costates, found.multipliers, found.smoothed))
    before = np.concatenate([np.zeros((1, 4)), x[:-1]])
    close(np.einsum("kij,kj->ki", A, before) + np.einsum("kij,kj->ki", B, u) + d, x, "dynamics")
    slopes = np.einsum("kij,kj->ki", Q, x) + q
    slopes[:-1] += np.einsum("kji,kj->ki", A[1:], lam[1:])
    close(slopes, lam, "adjoints")
    close(np.einsum("kij,kj->ki", R, u) + np.einsum("kji,kj->ki", B, lam), -r, "torques")
