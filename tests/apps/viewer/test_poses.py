"""Where links are, against the compiled poses of frames."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.viewer.geometry.link_poses import link_poses, rotation_with_z_along
from psiphi.model.spatial.rotations import quaternions


@pytest.mark.parametrize("name", ["puma560", "stanford_arm", "g1"])
def test_links_stand_where_their_frames_do(name):
    robot = pp.load(name)
    q = robot.random(seed=3, size=2)
    R, p = link_poses(robot, q)
    last = len(robot.bodies) - 1
    for k in {0, last // 2, last}:
        frame = next(f for f in robot.frames.values() if f.body == k)
        T = robot.frame_pose(q, frame.name)
        assert np.allclose(R[:, k] @ frame.pose.rotation, T[:, :3, :3], atol=1e-12)
        assert np.allclose(p[:, k] + R[:, k] @ frame.pose.translation, T[:, :3, 3], atol=1e-12)


@pytest.mark.parametrize("size", [(), (3,), (2, 9)])
def test_the_compiled_poses_of_all_links(size):
    """One state, some states, a batch wider than the lanes: all of R (..., 3, 3) is written."""
    robot = pp.load("panda")
    q = robot.random(seed=3, size=size)
    R, p = robot.function("link_poses")(q)
    right = link_poses(robot, q)
    n = len(robot.bodies)
    assert R.shape == (*size, n, 3, 3) and np.abs(R - right[0]).max() < 1e-12
    assert np.abs(p - right[1]).max() < 1e-12


@pytest.mark.parametrize("size", [(), (3,), (2, 9)])
def test_results_of_four_axes_are_written_in_full(size):
    """∂R/∂q of all links, beside what R changes by along each coordinate."""
    robot = pp.load("pelican")
    q, f = robot.random(seed=3, size=size), robot.function("link_poses")
    by_q, columns = f.jacobian("q")(q)[0], [f.jvp("q")(q, unit)[2] for unit in np.eye(2)]
    assert by_q.shape == (*size, len(robot.bodies), 3, 3, 2)
    assert (
        np.allclose(by_q, np.stack(columns, axis=-1), rtol=0, atol=1e-13)
        and np.abs(by_q).max() > 0.5
    )


def test_every_kind_of_joint(rng):
    """On a tree with every joint kind, link poses equal compiled poses of frames at the link
    origins."""
    robot = pp.robots.random_tree(9, seed=4)
    q = robot.random(rng)
    R, p = link_poses(robot, q)
    body = robot.bodies[-1]
    T = robot.frame_pose(q, body.name)
    assert np.allclose(R[-1], T[:3, :3], atol=1e-12) and np.allclose(p[-1], T[:3, 3], atol=1e-12)


def test_quaternions_are_of_the_rotation(rng):
    q = rng.standard_normal((200, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    x, y, z, w = q.T
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)]
    rows += [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)]
    rows += [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]
    R = np.stack(rows, axis=-1).reshape(-1, 3, 3)
    assert np.allclose(np.abs(np.sum(quaternions(R) * q, axis=1)), 1.0, atol=1e-12)
    half_turn = np.diag([1.0, -1.0, -1.0])
    assert np.allclose(np.abs(quaternions(half_turn)), [1, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -2), (1, 2, 3), (1, 0, 0)])
def test_turned_to_an_axis(axis):
    R = rotation_with_z_along(axis)
    assert np.allclose(R @ R.T, np.eye(3)) and np.isclose(np.linalg.det(R), 1.0)
    assert np.allclose(R[:, 2], np.array(axis) / np.linalg.norm(axis))
