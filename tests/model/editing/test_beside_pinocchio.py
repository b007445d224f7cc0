"""Fifty random edits of ten robots beside Pinocchio's own: buildReducedModel, appendModel,
addFrame, appendBodyToJoint."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import psiphi as pp
from psiphi.io.urdf.ros_packages import descriptions
from tests.oracles import reference

pin = pytest.importorskip("pinocchio")
FILES = descriptions()
ROBOTS = (
    "panda",
    "ur5_robot",
    "talos_left_arm",
    "kinova",
    "solo12",
    "a1",
    "hyq",
    "anymal",
    "double_pendulum",
    "tiago",
)
pytestmark = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")
TOLERANCE = 1e-12


def pair(name: str) -> tuple[pp.Robot, object]:
    """The same file, read by both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pp.load(FILES[name]), pin.buildModelFromUrdf(FILES[name])


def random_pose(rng) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3] = pin.Quaternion(rng.standard_normal(4)).normalized().toRotationMatrix()
    out[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return out


def random_frame(robot: pp.Robot, rng) -> str:
    """One that moves."""
    return str(rng.choice([frame.name for frame in robot.frames.values() if frame.body >= 0]))


def peer_frame(peer, name: str) -> int:
    return max(i for i, frame in enumerate(peer.frames) if frame.name == name)


def lock(robot, peer, rng):
    q = robot.random(rng)
    names = [
        str(name)
        for name in rng.choice(
            robot.joint_names, rng.integers(1, max(2, robot.nv // 2)), replace=False
        )
    ]
    theirs = pp.interop.pinocchio(robot, peer).to_q(q)
    return robot.lock(names, at=q), pin.buildReducedModel(
        peer, [peer.getJointId(name) for name in names], theirs
    )


def attach_robot(robot, peer, rng):
    other, others = pair(str(rng.choice(["ur5_robot", "panda", "double_pendulum"])))
    frame, pose = random_frame(robot, rng), random_pose(rng)
    for i in range(1, others.njoints):
        others.names[i] = f"new_{others.names[i]}"
    for i, own in enumerate(others.frames):
        others.frames[i].name = f"new_{own.name}"
    both = pin.appendModel(peer, others, peer_frame(peer, frame), pin.SE3(pose))
    return robot.attach(other, frame, pose, prefix="new_"), both


def attach_body(robot, peer, rng):
    frame, pose = random_frame(robot, rng), random_pose(rng)
    body = pp.Body.box(
        rng.uniform(0.5, 5.0), rng.uniform(0.05, 0.3, 3), com=rng.uniform(-0.1, 0.1, 3), name="load"
    )
    where = peer.frames[peer_frame(peer, frame)]
    inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
    peer.appendBodyToJoint(where.parentJoint, inertia, where.placement * pin.SE3(pose))
    return robot.attach(body, frame, pose), peer


def add_frame(robot, peer, rng):
    frame, pose = random_frame(robot, rng), random_pose(rng)
    where = peer.frames[peer_frame(peer, frame)]
    placement = where.placement * pin.SE3(pose)
    peer.addFrame(
        pin.Frame(
            "marked", where.parentJoint, peer_frame(peer, frame), placement, pin.FrameType.OP_FRAME
        )
    )
    return robot.with_frame("marked", frame, pose), peer


def move_base(robot, peer, rng):
    """Pinocchio has no word for it: appended to an empty model, on its universe."""
    pose = random_pose(rng)
    return robot.with_base(pose=pose), pin.appendModel(pin.Model(), peer, 0, pin.SE3(pose))


EDITS = (lock, attach_robot, attach_body, add_frame, move_base)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_random_edits_agree(name, edit):
    rng = np.random.default_rng([ROBOTS.index(name), EDITS.index(edit)])
    robot, peer = edit(*pair(name), rng)
    layout = pp.interop.pinocchio(robot, peer)
    q, v, a = robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    ours = layout.to_tau(reference.inverse_dynamics(robot, q, v, a), q)
    data = peer.createData()
    theirs = pin.rnea(peer, data, layout.to_q(q), layout.to_v(v, q), layout.to_a(a, q, v))
    np.testing.assert_allclose(
        ours, theirs, rtol=0, atol=TOLERANCE * max(1.0, np.abs(theirs).max())
    )
    pin.framesForwardKinematics(peer, data, layout.to_q(q))
    poses = reference.poses(robot, q)
    shared = [
        frame
        for frame in robot.frames.values()
        if frame.name != "world" and any(frame.name == own.name for own in peer.frames)
    ]
    assert len(shared) > len(robot.joints)
    for frame in shared:
        ours = frame.pose if frame.body < 0 else poses[frame.body] @ frame.pose
        theirs = data.oMf[peer_frame(peer, frame.name)].homogeneous
        np.testing.assert_allclose(ours.matrix, theirs, rtol=0, atol=TOLERANCE, err_msg=frame.name)
