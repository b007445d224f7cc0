"""Dependent outputs without noise are always refused; estimates of all others are accurate."""

from fractions import Fraction

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, Stage, sequence
from psiphi.apps.estimation.smoother import Smoother
from tests.kalman import dense, random_model, spd


def turn(rng, n):
    """An orthogonal transition."""
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def more_outputs_than_states(rng):
    n = int(rng.integers(1, 5))
    extra = int(rng.integers(1, 3))
    return [Stage(-1, None, spd(rng, n), rng.normal(size=(n + extra, n)))], 0, n


def twice_in_one_stage(rng):
    n = int(rng.integers(2, 6))
    rows = rng.normal(size=(n - 1, n))
    return (
        [Stage(-1, None, spd(rng, n), np.vstack([rows, rng.normal(size=n - 1) @ rows]))],
        0,
        n - 1,
    )


def twice_in_a_row(rng):
    """A stage and its parent measure the same state, without noise between."""
    n = int(rng.integers(1, 5))
    F, h = turn(rng, n), rng.normal(size=(1, n))
    return [Stage(-1, None, np.zeros((n, n)), h), Stage(0, F, spd(rng, n), h @ F)], 0, 0


def known_state(rng):
    """A constant of n numbers and one output per instant: known from the n-th on."""
    n, count = int(rng.integers(1, 4)), 8
    stages = [Stage(-1, None, np.zeros((n, n)), rng.normal(size=(1, n)))]
    stages += [
        Stage(k - 1, turn(rng, n), np.zeros((n, n)), rng.normal(size=(1, n)))
        for k in range(1, count - 1)
    ]
    return (
        [*stages, Stage(count - 2, turn(rng, n), spd(rng, n), rng.normal(size=(1, n)))],
        count - 1 - n,
        0,
    )


def sum_of_children(rng):
    """Each child measures its part of the sum that the parent measures."""
    n, count = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    h, steps = rng.normal(size=(1, n)), [rng.normal(size=(n, n)) for _ in range(count)]
    return (
        [Stage(-1, None, np.zeros((n, n)), h), *(Stage(0, F, spd(rng, n), h @ F) for F in steps)],
        0,
        0,
    )


def never_moved(rng):
    n = int(rng.integers(1, 4))
    return [Stage(-1, None, np.zeros((n, n)), rng.normal(size=(1, n)))], 0, 0


FAMILIES = [
    more_outputs_than_states,
    twice_in_one_stage,
    twice_in_a_row,
    known_state,
    sum_of_children,
    never_moved,
]


def in_other_units(rng, stages):
    """The same model in other units of states and outputs, nine orders of magnitude apart."""
    units = [10.0 ** rng.integers(-4, 6, len(s.covariance)) for s in stages]
    out = []
    for k, s in enumerate(stages):
        u, scale = units[k], 10.0 ** rng.integers(-4, 6, len(s.outputs))
        F = None if s.parent < 0 else np.asarray(s.transition) * units[s.parent][:, None] / u
        out.append(
            Stage(
                s.parent, F, s.covariance * np.outer(u, u), scale[:, None] * s.outputs / u, s.noise
            )
        )
    return out


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_follows_without_noise_is_refused(family, scaled):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        stages, k, i = family(rng)
        stages = in_other_units(rng, stages) if scaled else stages
        with pytest.raises(
            pp.SingularError, match=rf"stage {k}: output {i} is determined.*give it noise"
        ):
            Smoother(LinearTree(stages), compiled=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_with_noise_it_is_answered(family):
    """The same models with noise: the dense answer, consistent data or not."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        stages, k, _ = family(rng)
        for j in range(k + 1):  # the stages inboard are determined, too
            s = stages[j]
            stages[j] = Stage(
                s.parent,
                s.transition,
                s.covariance,
                s.outputs,
                rng.uniform(0.1, 1.0, len(s.outputs)),
            )
        tree = LinearTree(stages)
        _, C, H, R = dense(tree)
        y = rng.normal(size=tree.nv)
        found = Smoother(tree, compiled=False)(np.split(y, np.cumsum(tree.widths)[:-1]))
        want = C @ H.T @ np.linalg.solve(H @ C @ H.T + R, y)
        assert np.allclose(
            np.concatenate(found.smoothed), want, rtol=1e-6, atol=1e-6 * np.abs(want).max()
        )


def test_what_does_not_follow_is_never_refused():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        Smoother(random_model(rng, int(rng.integers(1, 8)), noisy=False), compiled=False)


def test_nearly_the_same_output_twice():
    """Accurate if ten digits of a variance cancel, refused if thirteen do."""

    def twice(gap):
        return LinearTree([Stage(-1, None, np.eye(2), np.array([[1.0, 0.5], [1.0, 0.5 + gap]]))])

    found = Smoother(twice(1e-5))([np.array([1.0, 1.0 + 1e-5])])
    assert np.allclose(found.smoothed[0], [0.5, 1.0], rtol=1e-4)
    with pytest.raises(pp.SingularError, match="output 1"):
        Smoother(twice(1e-7))


def test_a_vague_beginning_costs_no_digits():
    """Variance 1e8 before, 1e-4 after every measurement: compared with exact rationals."""
    count, start, noise, walk = 20, Fraction(10**8), Fraction(1, 10**4), Fraction(1, 10**6)
    prior, after = start, []
    for _ in range(count):
        after.append(prior * noise / (prior + noise))
        prior = after[-1] + walk
    smoothed = [after[-1]]
    for own in reversed(after[:-1]):
        smoothed.append(own + (own / (own + walk)) ** 2 * (smoothed[-1] - own - walk))
    one = np.eye(1)
    model = sequence(
        [one] * (count - 1),
        [float(start) * one] + [float(walk) * one] * (count - 1),
        [one] * count,
        [[1e-4]] * count,
    )
    found = Smoother(model)
    for got, want in zip(found.filtered_covariance, reversed(after), strict=True):
        assert abs(got[0, 0] / float(want) - 1) < 1e-12
    for got, want in zip(found.smoothed_covariance, smoothed, strict=True):
        assert abs(got[0, 0] / float(want) - 1) < 1e-11
    data = np.cos(np.arange(count))
    estimate = found([data[t, None] for t in reversed(range(count))])
    assert (
        np.abs(np.array(estimate.smoothed)[-1] - _by_least_squares(data, walk, noise)[0]).max()
        < 1e-9
    )


def _by_least_squares(data, walk, noise):
    """The smoothed positions, by the normal equations of all of them at once."""
    n = len(data)
    step = np.diff(np.eye(n), axis=0)
    A = step.T @ step / float(walk) + np.eye(n) / float(noise)
    A[0, 0] += 1e-8
    return np.linalg.solve(A, data / float(noise))


def contradicted():
    """A state known to 1e-13 by stage 2, measured by stage 1 five orders of magnitude away."""
    walk = np.array([[10.0, -8.0, -9.0], [-8.0, 8.0, 6.0], [-9.0, 6.0, 9.0]]) * 1e8
    rows = [
        [1.00003734, 1.00288467, -0.99962714],
        [1.00090916, 2.00007705, -1.99950357],
        [0.99797582, 1.00124297, 2.00003792],
    ]
    turns = [[-2.0, 0.0, 1.0], [-1.0, -1.0, 0.0], [2.0, 1.0, 2.0]]
    return [
        Stage(-1, None, np.zeros((3, 3)), [[1.0, -1.0, 0.0]], [1e-11]),
        Stage(0, turns, walk, rows, [0.0, 0.0, 1e-10]),
        Stage(
            1,
            [[1.0, 2.0], [1.0, 0.0], [-1.0, -2.0]],
            [[180000.0, 30000.0], [30000.0, 10000.0]],
            np.zeros((0, 2)),
        ),
    ]


def test_data_that_contradict_the_model_are_refused():
    """A difference of 1e11 standard deviations: co-states of 1e11 cancel to rounding."""
    smoother, rng = Smoother(LinearTree(contradicted())), np.random.default_rng(0)
    wild = [rng.normal(size=1), rng.normal(size=3), []]
    with pytest.raises(
        pp.StateError,
        match=r"contradict the model: output 0 of stage 0 is .* standard deviations.*more noise",
    ):
        smoother(wild)
    with pytest.raises(pp.StateError, match=r"output 0 of stage 0 of batch element \[1\]"):
        smoother([np.stack([0 * wild[0], wild[0]]), np.stack([0 * wild[1], wild[1]]), []])
    tame = np.array([3.0, -2.0, 1.0])
    seen = contradicted()[1].outputs @ tame
    found = smoother(
        [np.array(contradicted()[1].transition)[:2] @ tame @ [[1.0], [-1.0]], seen, []]
    )
    assert np.allclose(found.smoothed[1], tame, rtol=1e-6)


def test_what_overflows_is_refused():
    big = 1e30 * np.eye(1)
    with pytest.raises(pp.SingularError, match=r"stage .: its covariance overflows"):
        Smoother(sequence([big] * 7, [big] * 8, [np.zeros((0, 1))] * 8))
