"""The same motion as MuJoCo's, contacts off, over a second of a thousand steps."""

import mujoco
import numpy as np
import pytest

import psiphi as pp
from psiphi_bench import example_robots
from psiphi_bench.rows_of.motions import MUJOCO_ROBOTS, difference_from_mujoco


@pytest.mark.parametrize(("name", "base"), MUJOCO_ROBOTS)
def test_same_motion_as_mujoco(name, base):
    assert difference_from_mujoco(name, base) < 1e-6


def test_euler_is_mujocos_euler():
    """Semi-implicit: velocities first."""
    assert difference_from_mujoco("UR5", "fixed", "euler", mujoco.mjtIntegrator.mjINT_EULER) < 1e-9


def test_the_comparison_notices():
    """Half a step of difference is seen."""
    robot = pp.load(example_robots.urdf("UR5"))
    q, v = robot.random(seed=0), np.ones(6)
    one, other = (pp.simulate(robot, q, v, duration=1.0, dt=dt).final for dt in (1e-3, 2e-3))
    assert np.abs(one.q - other.q).max() > 1e-13
