"""Small dense algebra of any scalar: factors and solves against NumPy."""

import numpy as np
import pytest

from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.spatial import small_matrices

SIZES = pytest.mark.parametrize("n", range(1, 7))


def positive(rng, n: int) -> np.ndarray:
    B = rng.standard_normal((n, n))
    return B @ B.T + n * np.eye(n)


@SIZES
def test_factors_make_the_matrix(n, rng):
    A = positive(rng, n)
    below, d_inv = (np.array(x) for x in small_matrices.factor(A.tolist()))
    assert np.array_equal(np.tril(below, -1), below), (
        "what is stored is strictly lower: the diagonal is one"
    )
    L = below + np.eye(n)
    np.testing.assert_allclose(L @ np.diag(1 / d_inv) @ L.T, A, rtol=1e-12, atol=1e-13)
    assert (d_inv > 0).all()


@SIZES
def test_solve(n, rng):
    A, b = positive(rng, n), rng.standard_normal(n)
    np.testing.assert_allclose(
        small_matrices.solve(small_matrices.factor(A.tolist()), b.tolist()),
        np.linalg.solve(A, b),
        rtol=1e-12,
    )


@SIZES
def test_unit_triangles(n, rng):
    """L x, L* x, and their inverses, of a unit lower triangular L whose diagonal is not stored."""
    below, x = np.tril(rng.standard_normal((n, n)), -1), rng.standard_normal(n)
    L = below + np.eye(n)
    for found, meant in (
        (small_matrices.multiply_lower(below.tolist(), x.tolist()), L @ x),
        (small_matrices.multiply_upper(below.tolist(), x.tolist()), L.T @ x),
        (small_matrices.forward(below.tolist(), x.tolist()), np.linalg.solve(L, x)),
        (small_matrices.backward(below.tolist(), x.tolist()), np.linalg.solve(L.T, x)),
    ):
        np.testing.assert_allclose(found, meant, rtol=1e-11, atol=1e-12)


@SIZES
def test_only_the_lower_half_is_read(n, rng):
    A, b = positive(rng, n), rng.standard_normal(n)
    spoiled = np.where(np.triu(np.ones((n, n)), 1) > 0, np.nan, A)
    assert small_matrices.solve(
        small_matrices.factor(spoiled.tolist()), b.tolist()
    ) == small_matrices.solve(small_matrices.factor(A.tolist()), b.tolist())


@SIZES
def test_the_same_on_a_tape(n, rng):
    A, b = positive(rng, n), rng.standard_normal(n)
    tape = Tape()
    handles = small_matrices.solve(
        small_matrices.factor([[tape.leaf("A", n * i + j) for j in range(n)] for i in range(n)]),
        [tape.leaf("b", i) for i in range(n)],
    )
    outputs = [tape.operand(h) for h in handles]
    x = evaluate(tape, outputs, lambda space, i: A.ravel()[i] if space == "A" else b[i])
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-12)
    assert tape.count(outputs).div == n, "one division a pivot"


def test_matrix_functions(rng):
    A, B, x = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal(3)
    np.testing.assert_allclose(small_matrices.apply(A, x), A @ x)
    np.testing.assert_allclose(small_matrices.product(A, B), A @ B)
    assert np.array_equal(small_matrices.transpose(A), A.T)
