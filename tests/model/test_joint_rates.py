"""dq/dt = Omega(q) v and back, S0 (b.3)-(b.5)."""

import numpy as np
import pytest

import psiphi as pp
from tests import zoo

ROBOTS = ("every_kind", "floating", "tree")


@pytest.mark.parametrize("name", ROBOTS)
def test_rates_are_those_of_motions(name):
    """rate is the derivative of integrate; velocity undoes it, whatever else changes a quaternion's
    length."""
    robot = dict(zoo.ZOO)[name]()
    rng = np.random.default_rng(0)
    q, v, step = robot.random(seed=1, size=4), rng.normal(size=(4, robot.nv)), 1e-6
    slope = (robot.integrate(q, v, step) - robot.integrate(q, v, -step)) / (2 * step)
    assert np.allclose(robot.rate(q, v), slope, atol=1e-8)
    assert np.allclose(robot.velocity_of(q, robot.rate(q, v)), v, rtol=1e-12, atol=1e-12)
    for joint in robot.joints:
        if joint.row.nq == 4:  # a ball: along q itself nothing turns
            along = np.zeros((4, robot.nq))
            along[:, joint.q_slice] = q[:, joint.q_slice]
            assert np.allclose(robot.velocity_of(q, along), 0.0, atol=1e-14)


def test_batches_that_do_not_fit_are_refused():
    robot = pp.robots.puma560()
    assert np.array_equal(robot.rate(np.zeros(6), np.ones((3, 6))), np.ones((3, 6)))
    with pytest.raises(pp.StateError):
        robot.rate(np.zeros((2, 6)), np.ones((3, 6)))
    with pytest.raises(pp.StateError):
        robot.velocity_of(np.zeros(6), np.ones(5))
