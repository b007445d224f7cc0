"""Gains without covariances beside the Riccati recursion, and what is refused."""

import numpy as np
import pytest

from psiphi.apps.estimation import LinearTree, Stage, fast_gains, sequence


def riccati(Phi, M, H, R, P, count):
    """D and Phi P H* D^-1 of every instant."""
    D, gains = [], []
    for _ in range(count):
        S = H @ P @ H.T + R
        K = Phi @ P @ H.T @ np.linalg.inv(S)
        D.append(S)
        gains.append(K)
        P = M + Phi @ P @ Phi.T - K @ S @ K.T
    return np.array(D), np.array(gains)


def model(rng, n=5, m=2, start="known"):
    Phi = 0.6 * rng.standard_normal((n, n))
    B = rng.standard_normal((n, 1))
    M, H = B @ B.T, rng.standard_normal((m, n))
    R = np.diag(rng.uniform(0.5, 2.0, m)) + 0.1
    P = {"known": np.zeros((n, n)), "M": M, "any": np.cov(rng.standard_normal((n, 9)))}[start]
    return Phi, M, H, R, P


def chain(Phi, M, H, R, P, count):
    return sequence([Phi] * (count - 1), [P, *[M] * (count - 1)], [H] * count, [R] * count)


@pytest.mark.parametrize(("start", "rank"), [("known", 1), ("M", 3), ("any", 5)])
def test_gains_are_those_of_the_riccati_recursion(start, rank):
    """One source of noise and a known start: one column, an eighth of the operations."""
    rng = np.random.default_rng(3)
    for count in (2, 12):
        parts = model(rng, start=start)
        found = fast_gains(chain(*parts, count))
        D, gains = riccati(*parts, count)
        scale = np.abs(gains).max()
        np.testing.assert_allclose(found.innovation_covariances, D, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.gains, gains, rtol=0, atol=1e-9 * scale)
        assert found.rank <= rank
    big = fast_gains(chain(*model(rng, n=30), 3))
    assert big.rank == 1 and 8 * big.flops < big.riccati_flops


def test_what_is_refused():
    """Stages that differ, however little; trees; batches."""
    rng = np.random.default_rng(0)
    Phi, M, H, R, P = model(rng)
    lists = {"transitions": [Phi] * 3, "covariances": [P, M, M, M], "outputs": [H] * 4}
    lists["noise"] = [R] * 4
    for name, k in (("transitions", 1), ("covariances", 2), ("outputs", 3), ("noise", 1)):
        changed = {key: list(value) for key, value in lists.items()}
        changed[name][k] = 1.001 * changed[name][k]
        with pytest.raises(ValueError, match="differs by"):
            fast_gains(sequence(*changed.values()))
    leaf = Stage(0, np.eye(2), np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="branches"):
        fast_gains(LinearTree([Stage(-1, np.eye(2), np.eye(2), np.eye(2)), leaf, leaf]))
    with pytest.raises(ValueError, match="batch"):
        fast_gains(LinearTree([Stage(-1, np.eye(2), np.ones((3, 1, 1)) * np.eye(2), np.eye(2))]))
    with pytest.raises(ValueError, match="LinearTree"):
        fast_gains([])
    still = sequence([Phi], [0 * P, M], [H] * 2)
    with pytest.raises(ValueError, match="no variance"):
        fast_gains(still)
