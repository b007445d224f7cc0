"""pp.from_pinocchio beside Pinocchio: random trees of every kind it shares with psiphi, and its own
sample models."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from tests import zoo
from tests.oracles import reference

pin = pytest.importorskip("pinocchio")
KINDS = (
    "revolute",
    "continuous",
    "prismatic",
    "helical",
    "universal",
    "spherical",
    "planar",
    "free",
)


def agree(peer, seed: int = 0) -> pp.Robot:
    robot = pp.from_pinocchio(peer)
    layout, data, rng = (
        pp.interop.pinocchio(robot, peer),
        peer.createData(),
        np.random.default_rng(seed),
    )
    q, v, a = robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    theirs = pin.rnea(peer, data, layout.to_q(q), layout.to_v(v, q), layout.to_a(a, q, v))
    ours = layout.to_tau(reference.inverse_dynamics(robot, q, v, a), q)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * max(1.0, np.abs(theirs).max()))
    pin.framesForwardKinematics(peer, data, layout.to_q(q))
    for i, frame in enumerate(peer.frames):
        if frame.name not in ("universe", "world"):
            name = f"{frame.name}_frame" if f"{frame.name}_frame" in robot.frames else frame.name
            place = reference.frame_pose(robot, q, name).matrix
            np.testing.assert_allclose(
                place, data.oMf[i].homogeneous, rtol=0, atol=1e-12, err_msg=frame.name
            )
    return robot


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed):
    from psiphi_bench.peers.pinocchio_peer import pinocchio_model

    model = zoo.random_tree(seed, 8, KINDS, armature=True)
    robot = agree(pinocchio_model(model), seed)
    assert (
        robot.joint_names == tuple(joint.name for joint in model.joints)
        and {"tool", "elbow"} <= robot.frames.keys()
    )


@pytest.mark.parametrize("model", [pin.buildSampleModelManipulator, pin.buildSampleModelHumanoid])
def test_sample_models(model):
    agree(model())


def test_limits_losses_and_postures():
    peer = pin.buildSampleModelManipulator()
    peer.upperPositionLimit[:], peer.effortLimit[:], peer.damping[:] = 1.5, np.arange(6.0), 0.3
    peer.referenceConfigurations["bent"] = np.full(6, 0.5)
    robot = pp.from_pinocchio(peer)
    assert (
        robot.upper.tolist() == [1.5] * 6
        and robot.effort.tolist() == list(range(6))
        and robot.damping.tolist() == [0.3] * 6
    )
    assert robot.postures["bent"].tolist() == [0.5] * 6


def test_limits_of_joints_with_several_coordinates():
    peer, wide = pin.Model(), np.full(2, 9.0)
    joint = pin.JointModelUniversal(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    peer.addJoint(
        0,
        joint,
        pin.SE3.Identity(),
        "knuckle",
        wide,
        wide,
        np.array([-1.0, -2.0]),
        np.array([0.5, 1.5]),
    )
    peer.appendBodyToJoint(1, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    robot = pp.from_pinocchio(peer)
    assert robot.lower.tolist() == [-1.0, -2.0] and robot.upper.tolist() == [0.5, 1.5]
    for joint, n, lengths in ((pin.JointModelPlanar(), 4, 2), (pin.JointModelFreeFlyer(), 7, 3)):
        peer, wide = pin.Model(), np.full(joint.nv, 9.0)
        peer.addJoint(
            0,
            joint,
            pin.SE3.Identity(),
            "float",
            wide,
            wide,
            -np.arange(1.0, n + 1),
            np.arange(1.0, n + 1),
        )
        peer.appendBodyToJoint(1, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
        robot = pp.from_pinocchio(peer)
        assert (
            robot.upper[:lengths].tolist() == [1.0, 2.0, 3.0][:lengths]
            and np.isinf(robot.upper[lengths:]).all()
        )
        assert (robot.lower == -robot.upper).all()


def test_what_is_refused():
    peer = pin.Model()
    peer.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "wrist")
    with pytest.raises(pp.ModelError, match="'wrist' is a JointModelSphericalZYX"):
        pp.from_pinocchio(peer)
    with pytest.raises(pp.ModelError, match="is not a pinocchio"):
        pp.from_pinocchio(3)
