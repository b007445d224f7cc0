"""Choices without branches, the arctangent, rotations and spectra of any scalar: against NumPy, on
numbers and on a tape."""

import numpy as np
import pytest

from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.spatial.branch_free import angle, choose, less, maximum, minimum, sign
from psiphi.model.spatial.eigenvalues import (
    EQUAL_TOLERANCE,
    SWEEPS,
    apply_in_eigenbasis,
    diagonalize,
)
from psiphi.model.spatial.rotations import (
    exponential,
    inverse_left_jacobian_product,
    left_jacobian_product,
    logarithm,
    multiply,
    quaternion,
)
from tests.model.spatial import on_arrays as quat

NUMBERS = [-np.inf, -2.0, -1e-320, -0.0, 0.0, 1e-320, 1.5, 3.0]


def traced(rule, *values):
    """rule(*values) by way of a tape."""
    tape = Tape()
    out = rule(*(tape.leaf("x", i) for i in range(len(values))))
    return evaluate(tape, [tape.operand(x) for x in out], lambda _, i: values[i])


@pytest.mark.parametrize("a", NUMBERS)
@pytest.mark.parametrize("b", NUMBERS)
def test_comparisons(a, b):
    for found in (
        less(a, b),
        *traced(lambda x, y: [less(x, y)], a, b),
        *traced(lambda x: [less(x, b)], a),
    ):
        assert found == float(a < b)
    assert traced(lambda y: [less(a, y)], b) == [float(a < b)]
    if np.isfinite([a, b]).all():
        assert traced(lambda x, y: [minimum(x, y), maximum(x, y), sign(x)], a, b) == [
            min(a, b),
            max(a, b),
            -1.0 if a < 0 else 1.0,
        ]


def test_what_is_no_number_stays_so():
    assert np.isnan(
        traced(lambda x, y: [minimum(x, y), maximum(x, y), choose(less(x, y), x, y)], np.nan, 1.0)
    ).all()
    assert less(np.nan, 1.0) == less(1.0, np.nan) == 0.0


def test_the_arctangent():
    """To a few roundings, from the smallest angles to a right one."""
    meant = np.concatenate([np.linspace(0.0, np.pi / 2, 10_001), 10.0 ** -np.arange(0.0, 300.0)])
    found = angle(np.sin(meant), np.cos(meant))
    assert np.abs(found - meant).max() < 1e-15
    assert (np.abs(found - meant) <= 8e-16 * meant).all()
    assert angle(1.0, 0.0) == pytest.approx(np.pi / 2, rel=1e-15)


def test_logarithms(rng):
    """Of any length and either sign; of half a turn, and of none."""
    p = quat.random(rng, (1000,))
    p[:300, :3] *= 10.0 ** rng.uniform(-14, 0, (300, 1))
    p[300:400, 3] *= 1e-14
    p = quat.normalize(p)
    w, spread = logarithm(list((p * rng.uniform(0.1, 9.0, (1000, 1))).T))
    np.testing.assert_allclose(np.stack(w, -1), quat.log(p), rtol=1e-14, atol=1e-300)
    half = np.linalg.norm(quat.log(p), axis=-1) / 2
    np.testing.assert_allclose(spread, half / np.tan(half), atol=1e-14)
    assert (
        logarithm([0.0, 0.0, 0.0, 1.0])[0] == logarithm([0.0, 0.0, 0.0, -1.0])[0] == [0.0, 0.0, 0.0]
    )
    assert logarithm([0.0, 1.0, 0.0, 0.0])[0] == pytest.approx([0.0, np.pi, 0.0])
    np.testing.assert_allclose(
        exponential([0.3, -0.2, 0.5]), quat.exp(np.array([0.3, -0.2, 0.5])), atol=1e-16
    )


def test_unswept_undoes_swept(rng):
    for scale in (0.0, 1e-160, 1e-9, 1e-3, 1.0, 3.0):
        w, v = rng.standard_normal((2, 3))
        w *= scale / np.linalg.norm(w)
        there = left_jacobian_product(w.tolist(), v.tolist())
        spread = logarithm(exponential(w.tolist()))[1]
        np.testing.assert_allclose(
            inverse_left_jacobian_product(w.tolist(), spread, there), v, rtol=1e-12, atol=1e-13
        )


def test_quaternions_of_matrices(rng):
    p = np.concatenate(
        [quat.random(rng, (200,)), np.eye(4), -np.eye(4), quat.normalize(np.eye(4) + 1e-9)]
    )
    R = np.stack([quat.rotate(p, np.eye(3)[k]) for k in range(3)], axis=-1)
    found = np.stack(quaternion([[R[:, r, c] for c in range(3)] for r in range(3)]), axis=-1)
    assert np.linalg.norm(found, axis=-1).min() > 1.0, "never by a small row"
    same = np.stack(
        multiply([-p[:, 0], -p[:, 1], -p[:, 2], p[:, 3]], list(quat.normalize(found).T)), -1
    )
    np.testing.assert_allclose(
        np.abs(same), np.broadcast_to([0.0, 0.0, 0.0, 1.0], same.shape), atol=1e-15
    )


def symmetric(rng, n: int) -> np.ndarray:
    """Hard cases: any condition number, low rank, equal eigenvalues, diagonal matrices, zeros."""
    Q = np.linalg.qr(rng.standard_normal((500, n, n)))[0]
    w = 10.0 ** rng.uniform(-12, 0, (500, n))
    w[100:200, 0] = 0.0
    w[200:300] = np.round(w[200:300])
    some = Q * w[:, None, :] @ Q.swapaxes(-1, -2)
    A = np.concatenate(
        [
            some,
            np.ones((1, n, n)),
            np.eye(n)[None],
            np.zeros((1, n, n)),
            1e-100 * some[:5],
            1e100 * some[:5],
        ]
    )
    return (A + A.swapaxes(-1, -2)) / 2


@pytest.mark.parametrize("n", SWEEPS)
def test_spectra(n, rng):
    A, b = symmetric(rng, n), rng.standard_normal(n)
    w, left, planes = diagonalize([[A[:, r, c] for c in range(n)] for r in range(n)])
    top = np.abs(A).max(axis=(-2, -1))
    top = np.where(top > 0.0, top, 1.0)
    bare = np.zeros_like(A)
    for r in range(n):
        for c in range(n):
            bare[:, r, c] = w[r] if r == c else left[r][c]
    size = np.abs(np.einsum("...ii->...i", bare))
    assert (
        np.abs(bare)
        <= np.where(
            np.eye(n) > 0.0,
            np.inf,
            EQUAL_TOLERANCE * (size[:, :, None] + size[:, None, :]) + 1e-16 * top[:, None, None],
        )
    ).all()
    off = np.abs(np.linalg.eigvalsh(bare) - np.linalg.eigvalsh(A)).max(axis=-1)
    assert (off < 1e-13 * top).all()
    ones = [np.full(len(A), x) for x in b]
    back = np.stack(
        apply_in_eigenbasis(
            planes, lambda x: list((bare @ np.stack(x, -1)[..., None])[..., 0].T), ones
        ),
        -1,
    )
    assert (np.abs(back - A @ b).max(axis=-1) < 1e-13 * top * np.abs(b).max()).all()
    np.testing.assert_allclose(
        np.stack(apply_in_eigenbasis(planes, list, ones), -1)[0], b, rtol=1e-13
    )
