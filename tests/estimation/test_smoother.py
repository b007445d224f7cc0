"""The smoother is Gaussian conditioning: on random trees, against dense linear algebra."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.estimation import LinearTree, Smoother, Stage, sequence


def spd(rng, n):
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n)


def random_tree(rng, count, noisy=True):
    sizes, widths = rng.integers(1, 5, count), rng.integers(1, 3, count)
    widths = np.minimum(widths, sizes)
    parents = [-1] + [int(rng.integers(-1 if rng.random() < 0.2 else 0, k)) for k in range(1, count)]
    stages = []
    for k, p in enumerate(parents):
        step = rng.normal(size=(sizes[p] if p >= 0 else 0, sizes[k]))
        noise = rng.uniform(0.1, 1.0, widths[k]) if noisy else None
        stages.append(Stage(p, step, spd(rng, sizes[k]), rng.normal(size=(widths[k], sizes[k])), noise))
    return LinearTree(stages)


def dense(tree):
    """(prior map, covariance, outputs, noise) of all states stacked."""
    where = [tree.slices(k) for k in range(len(tree.stages))]
    E, Q = np.zeros((tree.nx, tree.nx)), np.zeros((tree.nx, tree.nx))
    H, R = np.zeros((tree.nv, tree.nx)), np.zeros((tree.nv, tree.nv))
    for k, stage in enumerate(tree.stages):
        x, y = where[k]["x"], where[k]["v"]
        Q[x, x], H[y, x] = stage.covariance, stage.outputs
        R[y, y] = np.diag(stage.noise) if stage.noise is not None else 0.0
        if stage.parent >= 0:
            E[where[stage.parent]["x"], x] = stage.transition
    phi = np.linalg.inv(np.eye(tree.nx) - E)
    return phi, phi @ Q @ phi.T, H, R


def below(tree, k, itself):
    """The outputs of stage k's descendants (and its own)."""
    inside = {k}
    for j in range(k + 1, len(tree.stages)):
        if tree.parent[j] in inside:
            inside.add(j)
    return np.concatenate(
        [np.arange(tree.nv)[tree.slices(j)["v"]] for j in sorted(inside - (set() if itself else {k}))] or [[]]
    ).astype(int)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("noisy", [True, False])
def test_smoothing_is_conditioning(seed, noisy):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 8)), noisy)
    phi, C, H, R = dense(tree)
    xi, y = [rng.normal(size=n) for n in tree.sizes], rng.normal(size=tree.nv)
    mean = phi @ np.concatenate(xi)
    smoother = Smoother(tree)
    found = smoother(np.split(y, np.cumsum(tree.widths)[:-1]), xi)

    def given(rows):
        S = H[rows] @ C @ H[rows].T + R[np.ix_(rows, rows)]
        gain = np.linalg.solve(S, H[rows] @ C).T if len(rows) else np.zeros((tree.nx, 0))
        return mean + gain @ (y[rows] - H[rows] @ mean), C - gain @ H[rows] @ C

    for k in range(len(tree.stages)):
        x = tree.slices(k)["x"]
        cases = {
            "predicted": (below(tree, k, False), found.predicted[k], smoother.predicted_covariance[k]),
            "filtered": (below(tree, k, True), found.filtered[k], smoother.filtered_covariance[k]),
            "smoothed": (np.arange(tree.nv), found.smoothed[k], smoother.smoothed_covariance[k]),
        }
        for name, (rows, state, covariance) in cases.items():
            want, spread = given(rows)
            assert np.allclose(state, want[x], rtol=1e-7, atol=1e-7 * (1 + np.abs(want).max())), name
            assert np.allclose(covariance, spread[x, x], rtol=1e-7, atol=1e-7 * (1 + np.abs(C).max())), name


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
    tree = random_tree(rng, 5)
    _, C, H, R = dense(tree)
    smoother = Smoother(tree)
    root = np.linalg.cholesky(H @ C @ H.T + R)
    y = rng.standard_normal((200_000, tree.nv)) @ root.T
    e = np.concatenate(smoother(np.split(y, np.cumsum(tree.widths)[:-1], axis=-1)).innovations, axis=-1)
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
        ([Stage(-1, np.eye(1), np.eye(1), np.eye(1)), Stage(0, np.eye(2), np.eye(1), np.eye(1))], "transition"),
        ([Stage(-1, np.eye(1), np.eye(1), np.array([[np.nan]]))], "finite"),
        ([Stage(-1, np.eye(1), np.eye(1), np.eye(1), np.array([-1.0]))], "noise"),
    ],
)
def test_broken_models_are_refused(stages, words):
    with pytest.raises(pp.ModelError, match=words):
        LinearTree(stages)


def test_an_output_known_beforehand_is_refused():
    with pytest.raises(pp.SingularError, match="innovation"):
        Smoother(LinearTree([Stage(-1, np.eye(1), np.zeros((1, 1)), np.eye(1))]))


def test_data_of_the_wrong_shape_are_refused():
    smoother = Smoother(sequence([np.eye(1)], [np.eye(1)] * 2, [np.eye(1)] * 2))
    with pytest.raises(pp.StateError, match="2 stages"):
        smoother([np.zeros(1)])
    with pytest.raises(pp.StateError, match="shape"):
        smoother([np.zeros(1), np.zeros(2)])
