"""The open chain beyond the spine: Coriolis matrix, link accelerations, joint forces, frame
accelerations, log det."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo

SMALL = [name for name, make in zoo.ZOO if make().nv <= 13]


def robot_and_state(name, seed=0):
    robot = Robot.of(dict(zoo.ZOO)[name]())
    return robot, *zoo.random_state(robot, np.random.default_rng(seed))


@pytest.mark.parametrize("name", SMALL)
def test_coriolis_gives_the_bias_and_leaves_a_skew_rest(name):
    robot, q, v, *_ = robot_and_state(name)
    C, h = robot.coriolis(q, v), 1e-5
    bias = robot.bias(q, v) - robot.gravity(q)
    assert np.allclose(C @ v, bias, rtol=1e-10, atol=1e-10 * (1 + np.abs(bias).max()))
    rate = (
        robot.mass_matrix(robot.integrate(q, v, h)) - robot.mass_matrix(robot.integrate(q, v, -h))
    ) / (2 * h)
    rest = rate - 2 * C
    assert np.abs(rest + rest.T).max() <= 1e-6 * (1 + np.abs(rate).max()), "dM/dt - 2 C is skew"


def test_coriolis_of_a_long_chain_is_made_of_columns():
    robot = pp.robots.chain(70)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 70))
    bias = robot.bias(q, v) - robot.gravity(q)
    assert np.abs(robot.coriolis(q, v) @ v - bias).max() <= 1e-9 * np.abs(bias).max()


@pytest.mark.parametrize("name", SMALL)
def test_joint_forces_carry_the_joint_torques(name):
    robot, q, v, a, _ = robot_and_state(name, 1)
    f = robot.joint_forces(q, v, a)
    H = robot.operators.H.dense(q)
    rotors = np.concatenate([j.armature for j in robot.joints]) * a
    tau = robot.inverse_dynamics(q, v, a)
    assert np.allclose(H @ f.ravel() + rotors, tau, rtol=1e-9, atol=1e-9 * np.abs(tau).max())


@pytest.mark.parametrize("name", SMALL)
def test_frame_acceleration_is_the_rate_of_frame_velocity(name):
    robot, q, v, a, _ = robot_and_state(name, 2)
    h = 1e-5
    ahead, behind = (
        robot.frame_velocity(robot.integrate(q, v + s * h * a / 2, s * h), v + s * h * a, "tool")
        for s in (1, -1)
    )
    got = robot.frame_acceleration(q, v, a, "tool")
    assert np.abs(got - (ahead - behind) / (2 * h)).max() <= 1e-5 * (1 + np.abs(got).max())


@pytest.mark.parametrize("name", SMALL)
def test_link_accelerations_are_those_of_the_link_frames(name):
    robot, q, v, a, _ = robot_and_state(name, 3)
    alpha, g = robot.link_accelerations(q, v, a), robot.gravity_vector
    for k, body in enumerate(robot.bodies):
        R = robot.frame_pose(q, body.name)[:3, :3]
        seen = np.concatenate([R @ alpha[k, :3], R @ alpha[k, 3:] + g])
        want = robot.frame_acceleration(q, v, a, body.name)
        assert np.allclose(seen, want, rtol=1e-9, atol=1e-9 * (10 + np.abs(want).max()))


@pytest.mark.parametrize("name", ["serial_arm", "floating", "tree"])
def test_operational_space_equation_holds(name):
    robot, q, v, _, tau = robot_and_state(name, 4)
    if robot.nv < 6:
        pytest.skip("too few joints")
    a = robot.forward_dynamics(q, v, tau)
    x = robot.frame_acceleration(q, v, a, "tool")
    X = robot.operational_compliance(q, "tool")
    if np.linalg.cond(X) > 1e8:
        pytest.skip("singular here")
    J, M = robot.jacobian(q, "tool"), robot.mass_matrix(q)
    wrench = np.linalg.solve(X, J @ np.linalg.solve(M, tau))
    got = robot.operational_space_inertia(q, "tool") @ x + robot.operational_space_bias(
        q, v, "tool"
    )
    assert np.allclose(got, wrench, rtol=1e-6, atol=1e-6 * np.abs(wrench).max())


@pytest.mark.parametrize("name", SMALL)
def test_log_det_is_the_sum_over_joints(name):
    robot, q, *_ = robot_and_state(name, 5)
    assert np.allclose(robot.mass_log_det(q), np.linalg.slogdet(robot.mass_matrix(q))[1], atol=1e-9)


def test_pinocchio_agrees_on_the_coriolis_torques_of_a_tree():
    robot, q, v, *_ = robot_and_state("tree", 6)
    peer = Pin(robot)
    want = peer.bias(q, v) - peer.gravity(q)
    assert np.abs(robot.coriolis(q, v) @ v - want).max() <= 1e-9 * np.abs(want).max()
