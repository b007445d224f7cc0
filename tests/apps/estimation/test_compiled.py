"""The compiled smoother is the interpreted one, for every model of a shape, in batches."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, sequence
from psiphi.apps.estimation.robot_as_filter import of
from psiphi.apps.estimation.smoother import Smoother
from psiphi.apps.estimation.stage_compilation import compiled
from tests.kalman import dense, random_model, spd

FIELDS = (
    "predicted",
    "filtered",
    "smoothed",
    "innovations",
    "residuals",
    "costates",
    "inboard_costates",
    "multipliers",
)
KNOWN = (
    "predicted_covariance",
    "filtered_covariance",
    "smoothed_covariance",
    "innovation_covariance",
    "gains",
)


def near(one, other, names, rtol=1e-11):
    for name in names:
        for x, y in zip(getattr(one, name), getattr(other, name), strict=True):
            assert x.shape == y.shape and np.allclose(
                x, y, rtol=rtol, atol=rtol * (1 + np.abs(y).max(initial=0.0))
            ), name


def walk(rng, count, lead=(), n=2, m=1):
    """A time series with different numbers at every instant."""
    F, Q, H = (
        rng.normal(size=(count - 1, *lead, n, n)),
        spd(rng, n),
        rng.normal(size=(count, *lead, m, n)),
    )
    return sequence(F, [Q] * count, H, rng.uniform(0.1, 1.0, (count, *lead, m, 1)) * np.eye(m))


@pytest.mark.parametrize("seed", [1, 4])
def test_code_says_what_the_interpreter_says(seed):
    """A random tree: stages of several sizes, some without measurements; data in batches."""
    rng = np.random.default_rng(seed)
    tree = random_model(rng, 6)
    one, other = Smoother(tree), Smoother(tree, compiled=False)
    y = [rng.normal(size=(5, 3, m)) for m in tree.widths]
    xi, eta = ([rng.normal(size=(3, n)) for n in tree.sizes] for _ in range(2))
    near(one, other, KNOWN)
    near(one(y, xi, eta), other(y, xi, eta), FIELDS)


def test_a_batch_of_models_is_each_of_them():
    """Time-varying systems, one per element: a filter linearised along seven motions."""
    rng = np.random.default_rng(0)
    many = walk(rng, 6, (7,))
    smoother, y = Smoother(many), rng.normal(size=(6, 7, 1))
    found = smoother(list(y))
    assert many.lead == (7,) and smoother.smoothed_covariance[0].shape == (7, 2, 2)
    for b in range(7):
        numbers = [(s.transition, s.covariance, s.outputs, s.noise) for s in many.stages]
        pick = [
            [a[b] if a.ndim > base else a for a, base in zip(four, (2, 2, 2, 2), strict=True)]
            for four in numbers
        ]
        alone = Smoother(LinearTree([Stage(k - 1, *four) for k, four in enumerate(pick)]))
        near(alone, Smoother(alone.model, compiled=False), KNOWN)
        own = alone(list(y[:, b]))
        for name in FIELDS:
            for x, z in zip(getattr(found, name), getattr(own, name), strict=True):
                assert np.array_equal(x[b], z), "batches do not change a bit"


def test_a_tree_that_changes_with_time():
    """Two series become one; sizes and numbers vary in time, measurements are missing."""
    rng = np.random.default_rng(3)
    parents, sizes = (
        [-1, 0, 1, 2, 3, 4, 2, 6, 7],
        [2, 2, 4, 3, 3, 3, 1, 2, 2],
    )  # stage 2: where they meet
    lead, stages = 5, []
    for p, n in zip(parents, sizes, strict=True):
        step, look = rng.normal(size=(lead, sizes[max(p, 0)], n)), rng.normal(size=(lead, 1, n))
        stages.append(Stage(p, step, spd(rng, n), look, rng.uniform(0.1, 1.0, (lead, 1, 1))))
    seen, y = rng.random((len(sizes), lead, 1)) < 0.7, rng.normal(size=(len(sizes), lead, 1))
    found = Smoother(LinearTree(stages).seen(list(seen)))(list(np.where(seen, y, np.nan)))
    for b in range(lead):
        own = LinearTree(
            [
                Stage(s.parent, s.transition[b], s.covariance, s.outputs[b], s.noise[b])
                for s in stages
            ]
        )
        _, C, H, R = dense(own)
        there = seen[:, b, 0]
        mean = (
            C
            @ H[there].T
            @ np.linalg.solve(H[there] @ C @ H[there].T + R[np.ix_(there, there)], y[there, b, 0])
        )
        np.testing.assert_allclose(
            np.concatenate([x[b] for x in found.smoothed]),
            mean,
            rtol=1e-7,
            atol=1e-7 * np.abs(mean).max(),
        )


def test_what_was_not_seen_changes_its_own_record_alone():
    """Each record misses other measurements: the dense answer from the others."""
    rng = np.random.default_rng(2)
    model, (records, count) = walk(rng, 8, m=2), (20, 8)
    y = rng.normal(size=(count, records, 2))
    seen = rng.random((count, records, 2)) < 0.6
    smoother = Smoother(model.seen(list(seen)))
    found = smoother([np.where(see, x, np.nan) for see, x in zip(seen, y, strict=True)])
    phi, C, H, R = dense(model)
    for b in range(records):
        rows = np.flatnonzero(seen[:, b].reshape(-1))
        gain = np.linalg.solve(H[rows] @ C @ H[rows].T + R[np.ix_(rows, rows)], H[rows] @ C).T
        mean, spread = gain @ y[:, b].reshape(-1)[rows], C - gain @ H[rows] @ C
        for k in range(count):
            x = model.slices(k)["x"]
            assert np.allclose(
                found.smoothed[k][b], mean[x], rtol=1e-8, atol=1e-8 * np.abs(mean).max()
            )
            assert np.allclose(
                smoother.smoothed_covariance[k][b],
                spread[x, x],
                rtol=1e-8,
                atol=1e-8 * np.abs(C).max(),
            )
    for e, see in zip(found.innovations, seen, strict=True):
        assert not e[~see].any() and e[see].all()


def test_nothing_seen_and_seen_twice():
    """Without measurements states are as predicted; two masks combine."""
    rng = np.random.default_rng(3)
    model = walk(rng, 3)
    blind = Smoother(model.seen([[False]] * 3))
    assert all(map(np.allclose, blind.smoothed_covariance, blind.predicted_covariance))
    both = model.seen([[True], [False], [True]]).seen([[[True], [False]], [True], [True]])
    assert [x.tolist() for x in both.mask] == [
        [[True], [False]],
        [False],
        [True],
    ] and both.lead == (2,)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([[True]], "1 entries.*2 stages"),
        ([[1.0], [0.0]], r"mask\[0\].*True or False"),
        ([[True, True], [True]], r"\(..., 1\)"),
    ],
)
def test_masks_that_mean_nothing_are_refused(mask, words):
    with pytest.raises(pp.ModelError, match=words):
        walk(np.random.default_rng(0), 2).seen(mask)


def test_what_is_refused_in_a_batch_is_named():
    one, none = np.eye(1), np.zeros((1, 1))
    still = sequence([one], [one, np.stack([one, none, one])], [one, one])
    with pytest.raises(
        pp.SingularError, match=r"stage 0: output 0 of batch element \[1\] is determined"
    ):
        Smoother(still)
    with pytest.raises(pp.StateError, match=r"batch axes do not fit.*the model \(3,\)"):
        Smoother(sequence([one], [one, np.stack([one, 2 * one, one])], [one, one]))(
            [np.zeros((2, 1)), [0.0]]
        )
    with pytest.raises(pp.ModelError, match="batch axes do not fit"):
        sequence([one], [np.stack([one] * 2), np.stack([one] * 3)], [one, one])
    with pytest.raises(pp.StateError, match="compiled is 'yes'"):
        Smoother(still, compiled="yes")


def test_a_long_series_has_the_code_of_a_short_one():
    """First, middle and last instants: few classes of stages per sweep, for any length."""
    long = walk(np.random.default_rng(1), 300)
    for name in ("covariances", "smoother"):
        loops = compiled(long.shape, name).code
        assert max(len(sweep.classes) for sweep in loops.sweeps) <= 4
    again = walk(np.random.default_rng(2), 300)
    assert compiled(again.shape, "smoother") is compiled(long.shape, "smoother"), "numbers are data"


def test_a_robot_compiled():
    robot = pp.robots.chain(2)
    q, v, tau = np.random.default_rng(5).normal(size=(3, 2))
    found = of(robot, q, v, compiled=True)(tau)
    assert np.allclose(
        np.concatenate(found.multipliers), robot.forward_dynamics(q, v, tau), rtol=1e-11
    )


def test_the_filters_own_quantities():
    """Covariances and slopes of co-states and multipliers against dense algebra, S2 (10.3)."""
    rng = np.random.default_rng(7)
    tree = random_model(rng, 6)
    phi, C, H, R = dense(tree)
    smoother, weight = Smoother(tree, compiled=False), np.linalg.inv(H @ C @ H.T + R)
    costates = phi.T @ H.T @ weight @ H @ phi  # lambda- = phi* H* u, Cov(u) = Cov(y)^-1
    y, zero = [np.zeros(m) for m in tree.widths], [np.zeros(n) for n in tree.sizes]
    for k, (stage, n) in enumerate(zip(tree.stages, tree.sizes, strict=True)):
        x, out = tree.slices(k)["x"], tree.slices(k)["v"]
        near_to = dict(rtol=1e-9, atol=1e-9 * np.abs(costates).max())
        assert np.allclose(smoother.multiplier_covariance[k], weight[out, out], **near_to), "c"
        assert np.allclose(smoother.costate_covariance[k], costates[x, x], **near_to), "Lam-"
        inside = np.zeros((n, n))
        if stage.parent >= 0:
            above = tree.slices(stage.parent)["x"]
            inside = stage.transition.T @ costates[above, above] @ stage.transition
        assert np.allclose(smoother.inboard_costate_covariance[k], inside, **near_to), "Lam+"
        for i in range(n):
            pushed = [part.copy() for part in zero]
            pushed[k][i] = 1.0
            assert np.allclose(
                smoother.multiplier_slopes[k][:, i],
                smoother(y, pushed).multipliers[k],
                rtol=1e-7,
                atol=1e-9,
            ), "d"


def test_a_robot_at_many_states():
    """A batch of states is a batch of models: c and Lam- are diagonal blocks of M^-1 and Omega."""
    robot, rng = pp.load("pelican"), np.random.default_rng(8)
    q, v, tau = (
        robot.random(seed=1, size=4),
        rng.normal(size=(4, robot.nv)),
        rng.normal(size=(4, robot.nv)),
    )
    many = of(robot, q, v)
    found = many(tau)
    assert many.model.lead == (4,)
    assert np.allclose(
        np.concatenate(found.multipliers, axis=-1), robot.forward_dynamics(q, v, tau), rtol=1e-10
    )
    inverse = np.linalg.inv(robot.mass_matrix(q))
    for joint, c in zip(robot.joints, many.smoother.multiplier_covariance, strict=True):
        assert np.allclose(c, inverse[:, joint.v_slice, joint.v_slice], rtol=1e-10)
    for b in range(4):
        Om = robot.operators.Om.dense(q[b])
        for k, Lam in enumerate(many.smoother.costate_covariance):
            assert np.allclose(
                Lam[b],
                Om[6 * k : 6 * k + 6, 6 * k : 6 * k + 6],
                rtol=1e-9,
                atol=1e-9 * np.abs(Om).max(),
            )
    with pytest.raises(pp.StateError, match="batch axes"):
        of(robot, q, v[:3])
