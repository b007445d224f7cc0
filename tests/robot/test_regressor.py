"""robot.regressor and robot.base_parameters, beside Pinocchio's computeJointTorqueRegressor and its
numerical rank."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.io.urdf.ros_packages import descriptions
from psiphi.robot.identification.base_parameters import independent_columns
from tests import zoo
from tests.oracles import reference


def interpreted(robot: pp.Robot, *state, name: str = "regressor") -> np.ndarray:
    source = robot.function(name).source
    (Y,) = interpret(source.program, source.tree, *state)
    return Y


def spread(robot: pp.Robot, blocks: np.ndarray) -> np.ndarray:
    """Y, with zeros where no block stands."""
    rows, bodies = robot.regressor_places.T
    Y = np.zeros((*blocks.shape[:-2], robot.nv, len(robot.bodies), 10))
    Y[..., rows, bodies, :] = blocks
    return Y.reshape(*Y.shape[:-2], -1)


def states(robot: pp.Robot, size: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return robot.random(rng, (size,)), *rng.standard_normal((2, size, robot.nv))


@pytest.mark.parametrize("kind", zoo.KINDS)
def test_torques_are_linear_in_the_parameters(kind):
    robot = pp.Robot.of(zoo.random_tree(3, 5, [kind, "revolute"], armature=True))
    q, v, a = states(robot, 2)
    Y = interpreted(robot, q, v, a)
    np.testing.assert_array_equal(
        spread(robot, interpreted(robot, q, v, a, name="regressor_blocks")), Y
    )
    tau = Y @ robot.inertial_parameters + robot.armature * a
    for i in range(2):
        np.testing.assert_allclose(
            tau[i], reference.inverse_dynamics(robot, q[i], v[i], a[i]), rtol=0, atol=1e-11
        )


def test_compiled_it_is_the_same_and_has_more_columns():
    robot = pp.load("panda")
    q, v, a = states(robot, 20)
    Y = robot.regressor(q, v, a)
    np.testing.assert_allclose(Y, interpreted(robot, q, v, a), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        Y @ robot.inertial_parameters, robot.inverse_dynamics(q, v, a), rtol=0, atol=1e-11
    )
    np.testing.assert_array_equal(spread(robot, robot.regressor_blocks(q, v, a)), Y)
    wide = robot.regressor(q, v, a, more=("armature", "damping", "friction"))
    assert wide.shape == (20, 9, 90 + 27)
    np.testing.assert_array_equal(wide[..., :90], Y)
    losses = wide[..., 90:] @ np.repeat([1.0, 2.0, 3.0], 9)
    np.testing.assert_allclose(losses, a + 2.0 * v + 3.0 * np.sign(v), rtol=1e-13)
    for wrong, words in (
        ({"more": "spring"}, "no columns of 'spring'"),
        ({"more": "damping", "out": Y}, "out and more are both given"),
    ):
        with pytest.raises(pp.StateError, match=words):
            robot.regressor(q, v, a, **wrong)


def test_a_large_robot_has_one():
    robot = pp.robots.chain(70)
    q, v, a = states(robot, 1)
    Y = robot.regressor(q, v, a)
    tau = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        Y @ robot.inertial_parameters, tau, rtol=0, atol=1e-10 * np.abs(tau).max()
    )


@pytest.mark.parametrize("name", ["ur5", "panda", "g1"])
def test_beside_pinocchio(name):
    pin = pytest.importorskip("pinocchio")
    from psiphi_bench.peers.pinocchio_peer import link_rotation, pinocchio_model

    robot = pp.load(name)
    peer = pinocchio_model(robot)
    layout = pp.interop.pinocchio(robot, peer)
    assert all(np.array_equal(link_rotation(joint).rotation, np.eye(3)) for joint in robot.joints)
    q, v, a = (x[0] for x in states(robot, 1))
    theirs = pin.computeJointTorqueRegressor(
        peer, peer.createData(), layout.to_q(q), layout.to_v(v, q), layout.to_a(a, q, v)
    )
    theirs = np.array([layout.from_tau(column, layout.to_q(q)) for column in theirs.T]).T
    order = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # Pinocchio: Ixx Ixy Iyy Ixz Iyz Izz
    ours = interpreted(robot, q, v, a).reshape(robot.nv, -1, 10)
    np.testing.assert_allclose(
        ours, theirs.reshape(robot.nv, -1, 10)[..., order], rtol=0, atol=1e-10
    )


def test_base_parameters_of_a_pendulum():
    """About y at the origin: m c_x, m c_z and I_yy, and nothing else."""
    b = pp.Builder("pendulum")
    b.body("rod", mass=2.0, com=(0.1, 0.2, -0.5), inertia=(0.3, 0.01, 0.02, 0.4, 0.03, 0.5))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0), damping=0.7)
    robot = b.build()
    base = robot.base_parameters(more="damping")
    assert base.combinations == ("rod.mx", "rod.mz", "rod.Iyy", "hinge.damping")
    np.testing.assert_allclose(base.values, [0.2, -1.0, 0.4 + 2.0 * (0.01 + 0.25), 0.7])
    assert set(base.unseen) == {
        f"rod.{word}" for word in ("m", "my", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")
    }


@pytest.mark.parametrize("name", ["puma560", "ur5", "panda", "anymal_c", "free_flyer"])
def test_base_parameters_carry_the_torques(name):
    robot = pp.load(name)
    base = robot.base_parameters()
    q, v, a = states(robot, 3, seed=5)
    Y = interpreted(robot, q, v, a)
    tau = Y @ robot.inertial_parameters
    np.testing.assert_allclose(
        Y[..., base.columns] @ base.values, tau, rtol=0, atol=1e-10 * np.abs(tau).max()
    )
    np.testing.assert_allclose(
        Y[..., base.columns] @ base.matrix, Y, rtol=0, atol=1e-9 * np.abs(Y).max()
    )
    assert base.gap[0] < 1e-12 and base.gap[1] > 1e-3


def test_the_puma_has_36_base_parameters():
    """As Mayeda, Yoshida and Osuka (1990) count them: 7 n less what parallel axes and gravity along
    the first hide."""
    assert pp.load("puma560").base_parameters().rank == 36


@pytest.mark.parametrize("name", ["kinova", "talos_left_arm", "double_pendulum", "solo12"])
def test_the_rank_is_that_of_pinocchios_regressor(name):
    pin = pytest.importorskip("pinocchio")
    if name not in descriptions():
        pytest.skip("example-robot-data is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = pp.load(descriptions()[name])
    peer = pin.buildModelFromUrdf(descriptions()[name])
    data, rng = peer.createData(), np.random.default_rng(1)
    count = 2 + 20 * peer.njoints // peer.nv
    rows = [
        pin.computeJointTorqueRegressor(
            peer, data, pin.integrate(peer, pin.neutral(peer), x), v, a
        ).copy()
        for x, v, a in rng.standard_normal((count, 3, peer.nv))
    ]
    stacked = np.concatenate(rows)
    assert robot.base_parameters().rank == np.linalg.matrix_rank(
        stacked, tol=1e-10 * np.linalg.norm(stacked, 2)
    )


def test_columns_that_are_combinations():
    rng = np.random.default_rng(0)
    free, mix = rng.standard_normal((40, 5)), rng.standard_normal((5, 12))
    mix[:, 3] = 0.0
    columns, K, _ = independent_columns(free @ mix)
    assert len(columns) == 5 and 3 not in columns
    np.testing.assert_allclose((free @ mix)[:, columns] @ K, free @ mix, atol=1e-10)
