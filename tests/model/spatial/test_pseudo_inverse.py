"""What is answered where X has no inverse: with eigenvalues, and without them where none is
small."""

import numpy as np
import pytest

from psiphi.model.spatial.pseudo_inverse import INVERSE_POLICIES, solve, solve_if_definite

NUMBERS = {"faded": 0.03, "pseudo": 1e-9, "exact": 1e-9}


def compliance(rng, n, smallest):
    """A symmetric matrix with one eigenvalue of `smallest` times the others."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return Q @ np.diag([smallest, *rng.uniform(0.5, 2.0, n - 1)]) @ Q.T


@pytest.mark.parametrize("policy", INVERSE_POLICIES)
@pytest.mark.parametrize("n", [3, 6])
def test_without_eigenvalues_the_same_answer(policy, n):
    """Where it says that it is sure it says what the policy says; it is sure well above the bound,
    and not below."""
    rng, seen = np.random.default_rng(0), set()
    for smallest in 10.0 ** np.linspace(-14, 0, 57):
        X, b = compliance(rng, n, smallest), rng.normal(size=n)
        x, sure = solve_if_definite(policy, X.tolist(), b.tolist(), NUMBERS[policy])
        seen.add(float(sure))
        assert np.isfinite(x).all()
        if sure:
            want = np.array(solve(policy, X.tolist(), b.tolist(), NUMBERS[policy]), dtype=float)
            assert np.allclose(
                np.array(x, dtype=float), want, rtol=1e-5 if smallest < 1e-6 else 1e-9
            )
        assert sure or smallest < 0.2 * (1.0 if policy == "faded" else 1e-6)
        assert not sure or smallest > 0.001 * NUMBERS[policy]
    assert seen == {0.0, 1.0}


def test_what_is_no_number_is_not_sure():
    X = np.full((3, 3), np.nan)
    assert float(solve_if_definite("faded", X.tolist(), [1.0, 1.0, 1.0], 0.03)[1]) == 0.0
