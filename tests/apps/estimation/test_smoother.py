"""The smoother is Gaussian conditioning: on random trees, against dense linear algebra."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.estimation.linear_gaussian_tree import (
    LinearTree,
    Stage,
    noise_covariance,
    sequence,
)
from psiphi.apps.estimation.smoother import Smoother
from tests import kalman
from tests.kalman import dense, random_model, spd


def outboard(tree, k, itself):
    """Stage k's descendants (and itself)."""
    inside = {k}
    for j in range(k + 1, len(tree.stages)):
        if tree.parent[j] in inside:
            inside.add(j)
    return sorted(inside if itself else inside - {k})


def places(tree, stages, what):
    """Indices of the stages' outputs "v" or states "x" among all."""
    count = np.arange(tree.nx if what == "x" else tree.nv)
    return np.concatenate([count[:0], *(count[tree.slices(j)[what]] for j in stages)]).astype(int)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noisy", [True, False])
def test_smoothing_is_conditioning(seed, noisy):
    rng = np.random.default_rng(seed)
    tree = random_model(rng, int(rng.integers(1, 8)), noisy)
    phi, C, H, R = dense(tree)
    (xi, eta), y = (
        ([rng.normal(size=n) for n in tree.sizes] for _ in range(2)),
        rng.normal(size=tree.nv),
    )
    smoother = Smoother(tree, compiled=False)
    found = smoother(np.split(y, np.cumsum(tree.widths)[:-1]), xi, eta)

    def given(stages):
        """Mean and covariance of all states, given outputs and factors exp(eta . x) of stages."""
        rows, tilt = places(tree, stages, "v"), places(tree, stages, "x")
        mean = phi @ np.concatenate(xi) + C[:, tilt] @ np.concatenate(eta)[tilt]
        S = H[rows] @ C @ H[rows].T + R[np.ix_(rows, rows)]
        gain = np.linalg.solve(S, H[rows] @ C).T if len(rows) else np.zeros((tree.nx, 0))
        return mean + gain @ (y[rows] - H[rows] @ mean), C - gain @ H[rows] @ C

    everything = range(len(tree.stages))
    for k in everything:
        x = tree.slices(k)["x"]
        cases = {
            "predicted": (
                outboard(tree, k, False),
                found.predicted[k],
                smoother.predicted_covariance[k],
            ),
            "filtered": (
                outboard(tree, k, True),
                found.filtered[k],
                smoother.filtered_covariance[k],
            ),
            "smoothed": (everything, found.smoothed[k], smoother.smoothed_covariance[k]),
        }
        for name, (stages, state, covariance) in cases.items():
            want, spread = given(stages)
            assert np.allclose(state, want[x], rtol=1e-7, atol=1e-7 * (1 + np.abs(want).max())), (
                name
            )
            assert np.allclose(
                covariance, spread[x, x], rtol=1e-7, atol=1e-7 * (1 + np.abs(C).max())
            ), name


@pytest.mark.parametrize("seed", range(8))
def test_multipliers_and_costates_are_what_they_say(seed):
    """u = Cov(y)^-1 (y - E y), lambda- = phi* (H* u + eta): dense, no recursion."""
    rng = np.random.default_rng(100 + seed)
    tree = random_model(rng, int(rng.integers(1, 8)))
    phi, C, H, R = dense(tree)
    (xi, eta), y = (
        ([rng.normal(size=n) for n in tree.sizes] for _ in range(2)),
        rng.normal(size=tree.nv),
    )
    found = Smoother(tree, compiled=False)(np.split(y, np.cumsum(tree.widths)[:-1]), xi, eta)
    u = np.linalg.solve(
        H @ C @ H.T + R, y - H @ (phi @ np.concatenate(xi) + C @ np.concatenate(eta))
    )
    lam = phi.T @ (H.T @ u + np.concatenate(eta))
    assert np.allclose(np.concatenate(found.multipliers), u, rtol=1e-8, atol=1e-8)
    assert np.allclose(np.concatenate(found.costates), lam, rtol=1e-8, atol=1e-8)
    Q = np.linalg.inv(phi) @ C @ np.linalg.inv(phi).T
    assert np.allclose(
        np.concatenate(found.smoothed), phi @ (Q @ lam + np.concatenate(xi)), rtol=1e-8, atol=1e-8
    ), "S2 (6.1)"


@pytest.mark.parametrize("seed", range(4))
def test_coinputs_are_inputs_in_disguise(seed):
    """The same as inputs xi + M phi* eta, but for co-states, which differ by phi* eta."""
    rng = np.random.default_rng(seed)
    tree = random_model(rng, 6)
    phi, C, _, _ = dense(tree)
    Q = np.linalg.inv(phi) @ C @ np.linalg.inv(phi).T
    eta, y = (
        [rng.normal(size=n) for n in tree.sizes],
        [rng.normal(size=(3, n)) for n in tree.widths],
    )
    drift = phi.T @ np.concatenate(eta)
    folded = np.split(Q @ drift, np.cumsum(tree.sizes)[:-1])
    one, other = (
        Smoother(tree, compiled=False)(y, coinputs=eta),
        Smoother(tree, compiled=False)(y, inputs=folded),
    )
    for name in ("smoothed", "multipliers"):
        assert all(map(np.allclose, getattr(one, name), getattr(other, name))), name
    assert np.allclose(np.concatenate(one.costates, -1), np.concatenate(other.costates, -1) + drift)


@pytest.mark.parametrize("seed", range(8))
def test_the_textbook_says_the_same(seed):
    """A Kalman filter and a Rauch-Tung-Striebel smoother in NumPy, without co-states."""
    rng = np.random.default_rng(200 + seed)
    tree = random_model(rng, int(rng.integers(1, 10)))
    (xi, eta), y = (
        ([rng.normal(size=n) for n in tree.sizes] for _ in range(2)),
        [rng.normal(size=n) for n in tree.widths],
    )
    smoother = Smoother(tree, compiled=False)
    found = smoother(y, xi, eta)
    nodes = [
        kalman.Node(
            s.parent,
            s.transition,
            s.covariance,
            s.outputs,
            noise_covariance(s),
            xi[k],
            eta[k],
            y[k],
        )
        for k, s in enumerate(tree.stages)
    ]
    for k, want in enumerate(kalman.smooth_tree(nodes)):
        pairs = {
            "prior": (found.predicted[k], smoother.predicted_covariance[k]),
            "posterior": (found.filtered[k], smoother.filtered_covariance[k]),
            "smoothed": (found.smoothed[k], smoother.smoothed_covariance[k]),
            "innovation": (found.innovations[k], smoother.innovation_covariance[k]),
        }
        for name, (state, covariance) in pairs.items():
            assert np.allclose(state, getattr(want, name), rtol=1e-9, atol=1e-9), name
            assert np.allclose(covariance, getattr(want, f"{name}_cov"), rtol=1e-9, atol=1e-9), name
        assert np.allclose(smoother.gains[k], want.gain, rtol=1e-9, atol=1e-9)


def test_an_instant_without_a_measurement():
    """Outputs of shape (0, n): the same as an output with very large noise."""
    rng = np.random.default_rng(3)
    F, Q, H, R = rng.normal(size=(2, 2)), spd(rng, 2), rng.normal(size=(1, 2)), np.array([0.3])
    none, y = np.zeros((0, 2)), rng.normal(size=(5, 4, 1))
    missing = Smoother(sequence([F] * 3, [Q] * 4, [H, none, H, none], [R, np.zeros(0), R, None]))
    vague = Smoother(sequence([F] * 3, [Q] * 4, [H] * 4, [R, [1e20], R, [1e20]]))
    found = missing([np.zeros((5, 0)), y[:, 2], [], y[:, 0]])
    other = vague([y[:, t] for t in (3, 2, 1, 0)])
    for name in ("predicted", "filtered", "smoothed"):
        assert all(map(np.allclose, getattr(found, name), getattr(other, name))), name
    assert [e.shape for e in found.innovations] == [(5, 0), (5, 1), (5, 0), (5, 1)]
    assert missing.innovation_covariance[2].shape == (0, 0) and missing.gains[2].shape == (2, 0)
    assert np.array_equal(missing.filtered_covariance[2], missing.predicted_covariance[2])


def test_noise_of_outputs_may_be_correlated():
    """S2 (9.7) with a full R, against conditioning; the same numbers as a vector are variances."""
    R, H, y = np.array([[1.0, 0.5], [0.5, 2.0]]), np.eye(3)[:2], np.array([1.0, -2.0])

    def estimates(noise):
        smoother = Smoother(LinearTree([Stage(-1, None, np.eye(3), H, noise)]))
        return smoother([y]).filtered[0], smoother.filtered_covariance[0]

    def conditioned(R):
        gain = np.linalg.solve(H @ H.T + R, H).T
        return y @ gain.T, np.eye(3) - gain @ H

    for noise, covariance in ((R, R), (R[0], np.diag(R[0])), (np.zeros((2, 2)), np.zeros((2, 2)))):
        for found, want in zip(estimates(noise), conditioned(covariance), strict=True):
            np.testing.assert_allclose(found, want, atol=1e-12)
    batch, (_, P) = np.stack([R, 3 * R]), estimates(np.stack([R, 3 * R]))
    assert P.shape == (2, 3, 3), "what is a batch stands before the matrices"
    for k in range(2):
        np.testing.assert_allclose(P[k], conditioned(batch[k])[1], atol=1e-12)
    with pytest.warns(DeprecationWarning, match=r"batch of 2 variances.*np.eye"):
        np.testing.assert_allclose(estimates(np.ones((3, 2)))[1][2], conditioned(np.eye(2))[1])


def test_a_measurement_that_is_missing_takes_its_correlations_with_it():
    """`seen` removes rows and columns of R."""
    R, H, y = np.array([[1.0, 0.9], [0.9, 2.0]]), np.eye(2), np.array([1.0, np.nan])
    found = Smoother(LinearTree([Stage(-1, None, np.eye(2), H, R)]).seen([~np.isnan(y)]))([y])
    np.testing.assert_allclose(found.smoothed[0], [0.5, 0.0], atol=1e-14)


def test_a_model_without_stages():
    found = Smoother(LinearTree([]))([])
    assert found.smoothed == found.multipliers == []


def test_models_keep_copies():
    M = np.eye(2)
    tree = LinearTree([Stage(-1, np.eye(1), M, np.eye(2))])
    M[0, 0] = -5.0
    assert tree.stages[0].covariance[0, 0] == 1.0 and not tree.stages[0].covariance.flags.writeable


def test_a_time_series_is_a_chain():
    rng = np.random.default_rng(0)
    F, Q, H, R = rng.normal(size=(2, 2)), spd(rng, 2), rng.normal(size=(1, 2)), np.array([0.3])
    walk = sequence([F] * 4, [Q] * 5, [H] * 5, [R] * 5)
    y = rng.normal(size=(3, 5))
    found = Smoother(walk)([y[:, t, None] for t in (4, 3, 2, 1, 0)])
    z, P = np.zeros((3, 2)), Q
    for t in range(5):
        S = H @ P @ H.T + R
        gain = P @ H.T / S
        z, P = z + (y[:, t, None] - z @ H.T) @ gain.T, P - gain @ H @ P
        assert np.allclose(found.filtered[4 - t], z)
        z, P = z @ F.T, F @ P @ F.T + Q


def test_innovations_are_white():
    rng = np.random.default_rng(1)
    tree = random_model(rng, 5)
    _, C, H, R = dense(tree)
    smoother = Smoother(tree, compiled=False)
    root = np.linalg.cholesky(H @ C @ H.T + R)
    y = rng.standard_normal((200_000, tree.nv)) @ root.T
    e = np.concatenate(
        smoother(np.split(y, np.cumsum(tree.widths)[:-1], axis=-1)).innovations, axis=-1
    )
    want = np.zeros((tree.nv, tree.nv))
    for k in range(len(tree.stages)):
        own = tree.slices(k)["v"]
        want[own, own] = smoother.innovation_covariance[k]
    assert np.abs(np.cov(e.T) - want).max() <= 0.03 * np.abs(want).max()


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([Stage(0, np.eye(1), np.eye(1), np.eye(1))], "parent"),
        ([Stage(-1, np.eye(1), -np.eye(1), np.eye(1))], "covariance"),
        ([Stage(-1, np.eye(1), np.eye(1), np.eye(2))], "outputs"),
        (
            [Stage(-1, np.eye(1), np.eye(1), np.eye(1)), Stage(0, np.eye(2), np.eye(1), np.eye(1))],
            "transition",
        ),
        ([Stage(-1, np.eye(1), np.eye(1), np.array([[np.nan]]))], "finite"),
        ([Stage(-1, np.eye(1), np.eye(1), np.eye(1), np.array([-1.0]))], "noise"),
        ([Stage(-1, None, np.eye(2), np.eye(2), [[0.1, 0.2], [0.3, 0.4]])], r"batch of variances"),
        ([Stage(-1, None, np.eye(2), np.eye(2), [[1.0, 2.0], [2.0, 1.0]])], "negative variances"),
    ],
)
def test_broken_models_are_refused(stages, words):
    with pytest.raises(pp.ModelError, match=words):
        LinearTree(stages)


def test_data_of_the_wrong_shape_are_refused():
    smoother = Smoother(sequence([np.eye(1)], [np.eye(1)] * 2, [np.eye(1)] * 2))
    with pytest.raises(pp.StateError, match="2 stages"):
        smoother([np.zeros(1)])
    with pytest.raises(pp.StateError, match="shape"):
        smoother([np.zeros(1), np.zeros(2)])
    with pytest.raises(pp.StateError, match="batch axes"):
        smoother([np.zeros((2, 1)), np.zeros((3, 1))])
    with pytest.raises(pp.StateError, match=r"finite.*model.seen\(mask\) for missing"):
        smoother([np.zeros(1), np.array([np.nan])])


@pytest.mark.parametrize("vague", [1e4, 1e8, 1e12])
def test_what_a_vague_beginning_leaves_unknown(vague):
    """Smoothed covariances against the inverse of the whole information matrix."""
    count, step, Q, R = 30, np.array([[1.0, 0.1], [0.0, 1.0]]), 0.01 * np.eye(2), 0.5
    first = [vague * np.eye(2), *[Q] * (count - 1)]
    smoother = Smoother(
        sequence([step] * (count - 1), first, [np.eye(1, 2)] * count, [[R]] * count), compiled=False
    )
    information = np.zeros((2 * count, 2 * count))
    information[:2, :2] = np.eye(2) / vague
    for t in range(count - 1):
        both, change = slice(2 * t, 2 * t + 4), np.hstack([-step, np.eye(2)])
        information[both, both] += change.T @ np.linalg.inv(Q) @ change
    information[::2, ::2] += np.eye(count) / R
    want = np.linalg.inv(information)
    for t in range(count):
        own = slice(2 * t, 2 * t + 2)
        assert np.allclose(
            smoother.smoothed_covariance[count - 1 - t], want[own, own], rtol=1e-4
        ), t


def test_siblings_tell_of_each_other():
    """Two states with an accurate sum: the diffuse one gets the variance of the other."""
    vague, known = (
        Stage(0, np.eye(1), [[1e10]], np.zeros((0, 1))),
        Stage(0, np.eye(1), [[0.3]], np.zeros((0, 1))),
    )
    tree = LinearTree([Stage(-1, np.zeros((0, 1)), [[0.1]], np.eye(1), [0.1]), vague, known, known])
    found = [S.item() for S in Smoother(tree, compiled=False).smoothed_covariance]
    assert np.allclose(found, [0.1, 0.8, 0.3, 0.3], rtol=1e-6)
