"""`estimation.of`: a robot's smoother is its forward dynamics, on every robot of the zoo."""

from functools import lru_cache

import numpy as np
import pytest

import psiphi as pp
from psiphi import estimation
from psiphi.robot.robot import Robot
from tests import zoo

NAMES = [name for name, _ in zoo.ZOO]


@lru_cache
def robot_of(name):
    return Robot.of(dict(zoo.ZOO)[name]())


def near(got, want, what, rtol=1e-12):
    assert np.abs(got - want).max(initial=0.0) <= rtol * np.abs(want).max(initial=0.0) + 1e-14, what


@pytest.mark.parametrize("name", NAMES)
def test_the_smoother_is_the_kalman_form(name):
    robot = robot_of(name)
    q, v, _, tau = zoo.random_state(robot, np.random.default_rng(0))
    bridge, want = estimation.of(robot, q, v), robot.forward_dynamics_details(q, v, tau, "kalman")
    found, smoother = bridge(tau), bridge.smoother
    pairs = {
        "a": np.concatenate(found.multipliers),
        "z_minus": np.array(found.predicted),
        "z_plus": np.array(found.filtered),
        "innovations": np.concatenate(found.innovations),
        "residuals": np.concatenate(found.residuals),
        "lambda_minus": np.array(found.costates),
        "lambda_plus": np.array(found.inboard_costates),
        "forces": np.array(found.smoothed),
        "eta": np.array(bridge.coinputs),
        "xi": np.array(bridge.inputs),
        "P_minus": np.array(smoother.predicted_covariance),
        "P_plus": np.array(smoother.filtered_covariance),
        "gains": np.concatenate(smoother.gains, axis=1),
    }
    assert pairs.keys() == want.keys()
    for key, value in pairs.items():
        near(value, want[key], key)
    near(pairs["a"], robot.forward_dynamics(q, v, tau), "forward dynamics", 1e-11)
    _, D = robot.mass_matrix_factors(q)
    for joint, block in zip(robot.joints, smoother.innovation_covariance, strict=True):
        near(block, D[joint.v_slice, joint.v_slice], "D")


@pytest.mark.parametrize("name", ["rotors", "forest", "floating", "every_kind"])
def test_the_covariances_are_the_robots(name):
    """The covariance of the measurements is the mass matrix, P - P Om P that of the forces.

    docs/mathematics.md section 12.
    """
    robot = robot_of(name)
    q, v, _, _ = zoo.random_state(robot, np.random.default_rng(1))
    bridge, s = estimation.of(robot, q, v), robot.operators
    stages = bridge.model.stages
    phi, M, H = (x.dense(q) for x in (s.phi, s.M, s.H))
    near(
        H @ phi @ M @ phi.T @ H.T + np.diag(np.concatenate([k.noise for k in stages])),
        robot.mass_matrix(q),
        "mass matrix",
    )
    S = s.P.dense(q) - s.P.dense(q) @ s.Om.dense(q) @ s.P.dense(q)
    for k, block in enumerate(bridge.smoother.smoothed_covariance):
        own = slice(6 * k, 6 * k + 6)
        assert np.abs(block - S[own, own]).max() <= 1e-11 * np.abs(M).max()


def test_torques_in_batches_and_wrenches():
    robot = robot_of("tree")
    q, v, _, _ = zoo.random_state(robot, np.random.default_rng(2))
    tau, wrench = np.random.default_rng(3).normal(size=(4, 5, robot.nv)), np.arange(6.0)
    for axes in ("world", "frame"):
        bridge = estimation.of(robot, q, v, f_ext={"tool": wrench, "elbow": -wrench}, axes=axes)
        want = robot.forward_dynamics(
            q, v, tau, f_ext={"tool": wrench, "elbow": -wrench}, axes=axes
        )
        near(np.concatenate(bridge(tau).multipliers, axis=-1), want, axes, 1e-11)


def test_at_rest_a_model_and_no_joints():
    model = dict(zoo.ZOO)["rotors"]()
    q = model.random(seed=0)
    near(
        np.array(estimation.of(model, q).coinputs), np.zeros((len(model.bodies), 6)), "eta at rest"
    )
    builder = pp.Builder("stone")
    builder.body("stone", mass=1.0)
    assert estimation.of(builder.build(), [])([]).multipliers == []


def test_a_long_chain():
    robot = pp.robots.chain(120)
    q, v, tau = np.random.default_rng(4).normal(size=(3, 120))
    near(
        np.concatenate(estimation.of(robot, q, v)(tau).multipliers),
        robot.forward_dynamics(q, v, tau),
        "120 links",
        1e-10,
    )
