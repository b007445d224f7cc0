"""`robot.step`: one compiled step equals that of a rollout, for single states, batches, float32,
and robots of any size."""

import time

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.integration.integrators import METHODS
from tests.simulation.simulate.motions import juggler, puma, space_robot, state, ur5
from tests.zoo import chain


def given(robot, seed: int = 0, *size):
    q, v = state(robot, seed, *size)
    return q, v, np.random.default_rng(seed).standard_normal(v.shape)


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(
    "robot", [ur5, juggler, space_robot], ids=["ur5", "juggler", "space robot"]
)
def test_a_step_is_a_rollouts(robot, method):
    """To the last bit, alone and in a batch; and a second call is as the first."""
    robot = robot()
    q, v, tau = given(robot, 1, 11)
    q1, v1 = robot.step(q, v, tau, 2e-3, method)
    wanted = pp.rollout(robot, q, v, tau[:, None], dt=2e-3, steps=1, method=method)
    if robot.quaternions:  # a rollout scales them at its start
        np.testing.assert_allclose(q1, wanted[0][:, 1], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(v1, wanted[1][:, 1], rtol=1e-11, atol=1e-12)
    else:
        assert (q1 == wanted[0][:, 1]).all() and (v1 == wanted[1][:, 1]).all()
    for _ in range(3):
        alone = robot.step(q[4], v[4], tau[4], 2e-3, method)
        assert (alone[0] == q1[4]).all() and (alone[1] == v1[4]).all()


def test_many_steps_are_a_simulation():
    robot = puma()
    q, v, tau = given(robot)
    motion = pp.simulate(robot, q, v, tau, duration=0.1)
    for _ in range(100):
        q, v = robot.step(q, v, tau, 1e-3)
    np.testing.assert_allclose(q, motion.final.q, atol=1e-12)
    np.testing.assert_allclose(v, motion.final.v, atol=1e-12)


def test_arrays_broadcast():
    robot = ur5()
    q, v, tau = given(robot, 2, 5)
    shared = robot.step(q, v, tau[0], 1e-3)
    assert (
        shared[0].shape == (5, 6)
        and (shared[1][3] == robot.step(q[3], v[3], tau[0], 1e-3)[1]).all()
    )
    many = robot.step(q[0], v[0], tau, 1e-3)
    assert many[0].shape == (5, 6) and (many[1][2] == robot.step(q[0], v[0], tau[2], 1e-3)[1]).all()
    steps = np.array([1e-3, 2e-3, 3e-3, 4e-3, 5e-3])
    mixed = robot.step(q, v, tau, steps)
    assert all(
        (mixed[1][k] == robot.step(q[k], v[k], tau[k], h)[1]).all() for k, h in enumerate(steps)
    )
    grid = robot.step(q[:, None], v[:, None], tau[0], steps)
    assert (
        grid[0].shape == (5, 5, 6)
        and (grid[0][3, 1] == robot.step(q[3], v[3], tau[0], 2e-3)[0]).all()
    )


def test_float32():
    robot = ur5()
    q, v, tau = given(robot, 3, 7)
    exact = robot.step(q, v, tau, 1e-3)
    single = robot.step(*(x.astype(np.float32) for x in (q, v, tau)), 1e-3)
    one = robot.step(*(x[0].astype(np.float32) for x in (q, v, tau)), 1e-3)
    for x, wanted in zip(single, exact, strict=True):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, wanted, rtol=1e-3, atol=1e-4)
    assert one[0].dtype == one[1].dtype == np.float32 and (one[1] == single[1][0]).all()
    mixed = robot.step(q.astype(np.float32), v, tau, 1e-3)
    assert mixed[0].dtype == np.float64
    mixed = robot.step(q[0].astype(np.float32), v[0], tau[0], 1e-3)
    assert mixed[0].dtype == np.float64


@pytest.mark.parametrize(
    "kinds",
    [["revolute"] * 70, ["free"] + ["revolute", "prismatic", "spherical"] * 25],
    ids=["arm", "mix"],
)
def test_robots_in_loops(kinds):
    robot = pp.Robot.of(chain("long", kinds, 1))
    q, v = state(robot, 1, 3, speed=0.1)
    tau = np.zeros_like(v)
    q1, v1 = robot.step(q, v, tau, 1e-4)
    wanted = pp.rollout(robot, q, v, tau[:, None], dt=1e-4, steps=1)
    np.testing.assert_allclose(q1, wanted[0][:, 1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(v1, wanted[1][:, 1], rtol=1e-9, atol=1e-9)
    assert (robot.step(q[1], v[1], tau[1], 1e-4)[0] == q1[1]).all()
    half = robot.step(*(x.astype(np.float32) for x in (q, v, tau)), 1e-4)[0]
    np.testing.assert_allclose(half, q1, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(q=np.zeros(5)), r"step: q has shape \(5,\)"),
        (dict(tau="up"), "step: tau is 'up'"),
        (dict(v=[1, 2, None, 0, 0, 0]), "step: v holds None"),
        (dict(dt=0.0), "step: dt is 0.0, expected finite numbers above 0"),
        (dict(dt=True), "step: dt is True, expected finite numbers above 0"),
        (dict(dt=-1e-3), "step: dt is -0.001"),
        (dict(dt=np.nan), "step: dt is nan"),
        (dict(dt=None), "step: dt is None"),
        (dict(q=np.zeros((2, 6)), v=np.zeros((3, 6))), "batch axes do not fit"),
        (dict(method="RK4"), "did you mean 'rk4'"),
        (dict(method="Radau"), "expected one of euler"),
        (dict(method=[]), r"step: method is \[\]"),
    ],
)
def test_refused(change, words):
    args = dict(q=np.zeros(6), v=np.zeros(6), tau=np.zeros(6), dt=1e-3) | change
    for _ in range(2):
        with pytest.raises(pp.StateError, match=words):
            ur5().step(**args)
        ur5().step(np.zeros(6), np.zeros(6), np.zeros(6), 1e-3)


def test_a_quaternion_of_zero_is_refused():
    robot = juggler()
    q, v, tau = given(robot)
    robot.step(q, v, tau, 1e-3)
    for last in robot.quaternions:
        bad = q.copy()
        bad[last - 3 : last + 1] = 0.0
        with pytest.raises(pp.StateError, match="quaternion"):
            robot.step(bad, v, tau, 1e-3)


def test_a_single_step_is_cheap():
    """About 1.5 us of a UR5 on a quiet machine; ten times that fails."""
    robot = ur5()
    q, v, tau = given(robot)
    robot.step(q, v, tau, 1e-3)
    best = np.inf
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(200):
            robot.step(q, v, tau, 1e-3)
        best = min(best, (time.perf_counter() - start) / 200)
    assert best < 15e-6
