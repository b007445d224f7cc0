"""One initial state and a table of torques for each of many motions, as samplers of controls give
them."""

import numpy as np
import pytest

import psiphi as pp

ROBOT = pp.load("pelican")
START = np.array([0.3, -0.2])
TABLES = np.random.default_rng(0).standard_normal((4, 10, 2))


def test_tables_of_many_motions_start_from_one_state():
    motions = pp.rollout(ROBOT, START, tau=TABLES, steps=10)
    assert motions.q.shape == (4, 11, 2)
    for k in range(4):
        alone = pp.rollout(ROBOT, START, tau=TABLES[k], steps=10)
        np.testing.assert_array_equal(motions.q[k], alone.q)
    together = pp.simulate(ROBOT, START, tau=TABLES, duration=0.01, compiled=False)
    np.testing.assert_allclose(together.q, motions.q, atol=1e-13)
    gradient = motions.vjp(np.ones_like(motions.q))["tau"]
    assert gradient.shape == TABLES.shape and abs(gradient).max() > 0.0


@pytest.mark.parametrize(
    ("tau", "q", "batch"),
    [
        ((5, 1, 2), (2,), (5,)),
        ((4, 10, 2), (1, 2), (4,)),
        ((3, 1, 10, 2), (4, 2), (3, 4)),
        ((10, 2), (4, 2), (4,)),
        ((4, 10, 2), (4, 2), (4,)),
        ((4, 10, 2), (4, 10, 2), (4, 10)),  # one constant torque each, as before
    ],
)
def test_axes_broadcast(tau, q, batch):
    assert pp.rollout(ROBOT, np.zeros(q), tau=np.ones(tau), steps=10).q.shape == (*batch, 11, 2)


@pytest.mark.parametrize(("tau", "q"), [((9, 2), (2,)), ((4, 9, 2), (2,)), ((4, 10, 2), (3, 2))])
def test_tables_that_do_not_fit_are_refused(tau, q):
    """Nine rows for ten steps are no nine motions."""
    with pytest.raises(pp.StateError, match=r"expected .* for 10 steps.*one row per step"):
        pp.rollout(ROBOT, np.zeros(q), tau=np.ones(tau), steps=10)


def test_tensors():
    torch = pytest.importorskip("torch")
    start = torch.tensor(START, requires_grad=True)
    motions = pp.rollout(ROBOT, start, tau=torch.tensor(TABLES), steps=10)
    assert motions.q.shape == (4, 11, 2)
    motions.q[:, -1, 0].sum().backward()
    alone = [pp.rollout(ROBOT, START, tau=table, steps=10) for table in TABLES]
    weights = np.zeros((11, 2))
    weights[-1, 0] = 1.0
    want = sum(motion.vjp(weights)["q"] for motion in alone)
    np.testing.assert_allclose(start.grad.numpy(), want, atol=1e-10)
