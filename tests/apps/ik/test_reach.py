"""`pp.reach`: solutions checked by Pinocchio, limits, nearest points, all solutions of an arm."""

from typing import Any

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo

TIP = "panda_hand_tcp"


@pytest.fixture(scope="module")
def panda() -> Robot:
    return pp.load("panda")


def within(robot: Robot, q: np.ndarray) -> bool:
    return bool(((q >= robot.lower - 1e-12) & (q <= robot.upper + 1e-12)).all())


def missed(peer: Pin, q: np.ndarray, frame: str, wanted: np.ndarray) -> float:
    """The largest error of the frame in rotation or position, by Pinocchio."""
    T = peer.frame_pose(q, frame)
    turn = 2.0 * np.arcsin(
        np.linalg.norm(T[..., :3, :3] - wanted[..., :3, :3], axis=(-2, -1)) / np.sqrt(8.0)
    )
    return float(max(turn.max(), np.linalg.norm(T[..., :3, 3] - wanted[..., :3, 3], axis=-1).max()))


def test_random_reachable_poses_of_a_panda(panda, rng):
    wanted = panda.frame_pose(rng.uniform(panda.lower, panda.upper, (2000, 9)), TIP)
    found = pp.reach(panda, {TIP: wanted})
    assert found.converged.mean() >= 0.995 and within(panda, found.q)
    assert (
        found.error[found.converged].max() <= 1e-6 < found.error[~found.converged].min(initial=1.0)
    )
    peer = Pin(panda)
    some = np.flatnonzero(found.converged)[:200]
    assert missed(peer, found.q[some], TIP, wanted[some]) < 1.5e-6
    again = pp.reach(panda, {TIP: wanted[7]})
    np.testing.assert_array_equal(
        again.q, found.q[7], "a problem's answer does not depend on the others"
    )
    assert repr(
        again
    ) == f"IKResult(converged, error {float(again.error):.2g})" and "of 2000 converged" in repr(
        found
    )


CHAINS = [
    ["revolute", "helical", "spherical"],
    ["prismatic", "universal", "planar"],
    ["cylindrical", "continuous", "free"],
]


def test_every_joint_is_in_a_chain():
    assert set(zoo.KINDS) == {kind for kinds in CHAINS for kind in kinds}


@pytest.mark.parametrize("kinds", CHAINS, ids=["-".join(kinds) for kinds in CHAINS])
def test_chains_of_every_joint_reach_two_frames(kinds, rng):
    robot = Robot.of(zoo.chain("mixed", kinds, seed=5))
    aim = robot.random(rng, size=6)
    wanted = {
        "tool": robot.frame_pose(aim, "tool"),
        "elbow": robot.frame_pose(aim, "elbow")[:, :3, 3],
    }
    found, peer = pp.reach(robot, wanted), Pin(robot)
    assert found.converged.all(), (kinds, found)
    assert missed(peer, found.q, "tool", wanted["tool"]) < 1.5e-6
    assert np.abs(peer.frame_pose(found.q, "elbow")[:, :3, 3] - wanted["elbow"]).max() < 1.5e-6


def test_a_tree_on_a_free_base_with_its_centre_of_mass(rng):
    robot = Robot.of(zoo.free_tree(8, seed=2))
    aim = robot.random(rng, size=5)
    wanted = {name: robot.frame_pose(aim, name) for name in ("tool", "elbow")}
    centre = robot.center_of_mass(aim)
    found, peer = pp.reach(robot, wanted, center_of_mass=centre), Pin(robot)
    assert found.converged.all() and set(found.errors) == {
        *("tool rad", "tool m", "elbow rad", "elbow m", "center_of_mass m")
    }
    assert max(missed(peer, found.q, name, T) for name, T in wanted.items()) < 1.5e-6
    assert np.abs(peer.center_of_mass(found.q) - centre).max() < 1.5e-6
    base = robot.joints[0].q_slice
    held = pp.reach(
        robot, {"tool": wanted["tool"][0, :3, 3]}, near=aim[0], moving=robot.joint_names[1:]
    )
    np.testing.assert_array_equal(held.q[base], robot.normalize(aim[0])[base])


def test_points_and_directions(panda, rng):
    aim = rng.uniform(panda.lower, panda.upper, (50, 9))
    T = panda.frame_pose(aim, TIP)
    found = pp.reach(panda, {TIP: T[:, :3, 3]}, directions={TIP: ((0, 0, 2.0), T[:, :3, 2])})
    assert found.converged.all() and within(panda, found.q)
    now = panda.frame_pose(found.q, TIP)
    np.testing.assert_allclose(now[:, :3, 3], T[:, :3, 3], atol=1e-6)
    np.testing.assert_allclose(now[:, :3, 2], T[:, :3, 2], atol=2e-6)
    assert np.abs(now[:, :3, 0] - T[:, :3, 0]).max() > 0.1, "the turn about the axis is free"
    start = aim[0]
    turned = pp.reach(panda, directions={TIP: ((0, 0, 1), -T[0, :3, 2])}, near=start, limits=False)
    assert turned.converged, "the opposite direction: no rotation is the shortest"
    only = pp.reach(panda, {TIP: T}, weights={TIP: (1.0, 0.0)})
    np.testing.assert_allclose(panda.frame_pose(only.q, TIP)[:, :3, :3], T[:, :3, :3], atol=2e-6)
    assert set(only.errors) == {f"{TIP} rad"}


def test_out_of_reach_finds_the_nearest_and_is_not_converged():
    arm = pp.from_dh([pp.DH(a=a, mass=1.0, inertia=0.1 * np.eye(3)) for a in (0.0, 1.0)])
    arm = arm.with_frame("tip", "link2", pp.Pose(np.eye(3), np.array([0.7, 0.0, 0.0])))
    points = np.array([[3.0, 1.0, 0.0], [0.0, -2.0, 0.5], [0.1, 0.1, 0.0]])
    found = pp.reach(arm, {"tip": points})
    across = np.linalg.norm(points[:, :2], axis=1)
    outside = np.where(across > 1.7, across - 1.7, np.where(across < 0.3, 0.3 - across, 0.0))
    np.testing.assert_allclose(found.error, np.hypot(outside, points[:, 2]), rtol=1e-6)
    assert not found.converged.any() and "not converged" in repr(pp.reach(arm, {"tip": points[0]}))
    places = arm.frame_pose(found.q, "tip")[:, :3, 3]
    np.testing.assert_allclose(np.linalg.norm(places - points, axis=1), found.error, rtol=1e-9)
    near = pp.reach(arm, {"tip": points[:1]}, near=[0.1, 0.2])
    np.testing.assert_allclose(near.q[0], [np.arctan2(1.0, 3.0), 0.0], atol=1e-4)


def test_weights_decide_between_targets_that_exclude_each_other():
    arm = pp.Builder("slide")
    arm.body("cart", mass=1.0)
    arm.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    arm.frame("left", "cart")
    arm.frame("right", "cart", xyz=(1, 0, 0))
    robot = arm.build()
    wanted = {"left": [0.0, 0, 0], "right": [3.0, 0, 0]}
    for w in (1.0, 3.0):
        found = pp.reach(robot, wanted, weights={"left": w, "right": 1.0})
        np.testing.assert_allclose(found.q, [2.0 / (1.0 + w)], atol=1e-7)  # of w x^2 + (x - 2)^2
        assert not found.converged


def test_limits_on_and_off(panda):
    high = np.array(panda.upper)
    high[0] += 0.5
    wanted = panda.frame_pose(high, TIP)
    beyond = pp.reach(
        panda, {TIP: wanted}, near=np.clip(high, panda.lower, panda.upper), limits=False
    )
    assert beyond.converged and beyond.q[0] > panda.upper[0]
    kept = pp.reach(panda, {TIP: wanted}, near=high)
    assert within(panda, kept.q)


def test_a_limit_on_one_side():
    rows = [pp.DH(a=a, mass=1.0, inertia=0.1 * np.eye(3), lower=0.0) for a in (0.0, 1.0)]
    arm = pp.from_dh(rows).with_frame("tip", "link2", pp.Pose(np.eye(3), np.array([0.7, 0.0, 0.0])))
    wanted = arm.frame_pose([0.4, 1.1], "tip")[:3, 3]
    found = pp.reach(arm, {"tip": wanted}, near=[1.0, 0.0])
    np.testing.assert_allclose(found.q, [0.4, 1.1], atol=1e-6)  # the other elbow is below its limit


def lifted(kind: str = "revolute", **limits: Any) -> pp.Robot:
    """A prismatic joint whose limits exclude zero, on a joint of some kind."""
    b = pp.Builder("lifted")
    b.body("turret", mass=1.0, inertia=np.eye(3))
    b.joint("turn", kind, parent="world", child="turret", axis=(0, 0, 1), **limits)
    b.body("mast", mass=1.0, inertia=np.eye(3))
    b.joint(
        "lift", "prismatic", parent="turret", child="mast", axis=(0, 0, 1), lower=0.5, upper=1.0
    )
    b.frame("tip", "mast", xyz=(0.2, 0, 0))
    return b.build()


def test_joints_that_no_target_depends_on_keep_their_limits():
    robot = lifted()
    T = robot.frame_pose([0.3, 0.7], "tip")
    for near, lift in ((None, 0.5), ([0.0, 0.6], 0.6), ([0.0, 5.0], 1.0)):
        for wanted in (
            {"targets": {"tip": T}, "weights": {"tip": (1, 0)}},
            {"directions": {"tip": ((1, 0, 0), T[:3, 0])}},
        ):
            np.testing.assert_allclose(
                pp.reach(robot, near=near, **wanted).q, [0.3, lift], atol=1e-6
            )
    still = pp.reach(robot, {"tip": T}, weights={"tip": (1, 0)}, moving=["turn"], near=[0.0, 5.0])
    assert still.q[1] == 5.0, "a joint that may not move stays at near"


def test_limits_of_planar_joints_are_refused():
    robot = lifted("planar", lower=(-0.1, -0.1, -np.inf), upper=(0.1, 0.1, np.inf))
    with pytest.raises(pp.StateError, match="limits of the planar joint 'turn' cannot be enforced"):
        pp.reach(robot, {"tip": (1.0, 0.5, 0.7)})
    assert pp.reach(robot, {"tip": (1.0, 0.5, 0.7)}, limits=False).converged
    assert pp.reach(robot, {"tip": (0.2, 0.0, 0.7)}, moving=["lift"]).converged
    with pytest.raises(pp.StateError, match="does not support turn, a planar joint"):
        pp.simulate(robot, [0.0, 0.0, 0.0, 0.6], duration=0.01, limits="block")


def test_all_solutions_of_a_puma():
    """Shoulder left or right, elbow up or down, wrist flipped or not: eight (Pieper 1968)."""
    robot = pp.load("puma560")
    wanted = robot.frame_pose([0.4, -0.6, 0.5, 0.7, 0.9, -0.4], "tool")
    found = pp.reach(robot, {"tool": wanted}, limits=False, distinct=True, starts=48)
    assert found.solutions.shape == (8, 6)
    np.testing.assert_allclose(
        robot.frame_pose(found.solutions, "tool"), np.broadcast_to(wanted, (8, 4, 4)), atol=2e-6
    )
    parted = np.abs(np.exp(1j * found.solutions)[:, None] - np.exp(1j * found.solutions)).max(
        axis=-1
    )
    assert (parted + 9 * np.eye(8)).min() > 0.1


def test_a_posture_is_held_where_the_target_leaves_freedom(panda, rng):
    middle = 0.5 * (panda.lower + panda.upper)
    aim = middle + 0.3 * rng.standard_normal((20, 9)).clip(-1, 1) * (np.arange(9) < 7)
    wanted = {TIP: panda.frame_pose(aim, TIP)}
    free, held = (
        pp.reach(panda, wanted, near=panda.lower, **more) for more in ({}, {"posture": middle})
    )
    assert held.converged.all() and free.converged.all()
    away = [np.linalg.norm(x.q - middle, axis=-1) for x in (free, held)]
    assert (away[1] <= np.linalg.norm(aim - middle, axis=-1) + 1e-6).mean() > 0.8 and away[
        1
    ].mean() < away[0].mean()
    # at the nearest solution the difference to the posture has no part in the null space of J
    at_a_limit = (np.minimum(held.q - panda.lower, panda.upper - held.q)[:, :7] < 1e-6).any(axis=1)
    for q in held.q[~at_a_limit][:5]:
        J = panda.jacobian(q, TIP)[:, :7]
        inside = np.linalg.svd(J)[2][-1] @ (middle - q)[:7]
        assert abs(inside) < 1e-3


REFUSED = [
    ({"targets": {}}, "there is no target"),
    ({"targets": {"hand": np.eye(4)}}, "hand"),
    ({"targets": {"tool": np.zeros((3, 4))}}, r"expected \(\.\.\., 4, 4\) or \(\.\.\., 3\)"),
    ({"targets": {"tool": 2 * np.eye(4)}}, "is not a pose"),
    ({"targets": {"tool": [0, 0, np.nan]}}, "not finite"),
    ({"targets": {"tool": np.zeros((2, 3))}, "near": np.zeros((3, 6))}, "batch axes do not fit"),
    ({"targets": {"tool": np.zeros(3)}, "weights": {"tol": 1.0}}, "did you mean 'tool'"),
    ({"targets": {"tool": np.zeros(3)}, "weights": {"tool": -1.0}}, "at least 0"),
    ({"directions": {"tool": ((0, 0, 0), (0, 0, 1))}}, "no vector of length 0"),
    ({"targets": {"tool": np.zeros(3)}, "moving": "knee"}, "knee"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_bad_arguments(given, words):
    with pytest.raises(pp.Error, match=words):
        pp.reach(pp.load("puma560"), **given)


def test_empty_batches_and_batch_axes(panda):
    assert pp.reach(panda, {TIP: np.zeros((0, 3))}).q.shape == (0, 9)
    T = panda.frame_pose(panda.random(seed=3, size=(2, 3)), TIP)
    found = pp.reach(panda, {TIP: T}, near=panda.neutral())
    assert found.q.shape == (
        2,
        3,
        9,
    ) and found.converged.shape == found.error.shape == found.tries.shape == (2, 3)


def test_a_large_robot_is_refused():
    with pytest.raises(pp.Error, match="at most 64"):
        pp.reach(pp.robots.chain(80), {"tool": np.zeros(3)})


def test_a_rotation_is_an_orientation_and_other_matrices_are_points():
    """np.eye(3) was read as three points."""
    robot = pp.load("ur5")
    poses = robot.frame_pose(robot.random(seed=3, size=4), "tool")
    found = pp.reach(robot, {"tool": poses[:, :3, :3]})
    assert found.converged.shape == (4,) and found.converged.all()
    assert list(found.errors) == ["tool rad"]
    R = robot.frame_pose(found.q, "tool")[:, :3, :3]
    np.testing.assert_allclose(R, poses[:, :3, :3], atol=3e-6)
    assert pp.reach(robot, {"tool": np.eye(3)}).converged.shape == ()
    points = pp.reach(robot, {"tool": poses[:3, :3, 3]})
    assert points.converged.shape == (3,) and list(points.errors) == ["tool m"]
    with pytest.raises(pp.StateError, match=r"there is no target"):
        pp.reach(robot, {"tool": np.eye(3)}, weights={"tool": (0.0, 1.0)})


def test_a_matrix_that_is_almost_a_rotation_is_refused():
    """One such matrix in a batch made three points of each rotation."""
    arm = pp.load("ur5")
    turns = arm.frame_pose(arm.random(seed=0, size=4), "tool")[:, :3, :3]
    spoiled = turns.copy()
    spoiled[2] *= 1.002
    for target in (spoiled, 1.01 * turns[0], np.diag([1.0, 1.0, -1.0]), np.eye(3) + 0.02):
        with pytest.raises(pp.StateError, match=r"almost a rotation.*one at a time"):
            pp.reach(arm, {"tool": target})
    assert pp.reach(arm, {"tool": turns}).q.shape == (4, 6)
    assert pp.reach(arm, {"tool": 0.3 * np.eye(3)}).q.shape == (3, 6)  # points
