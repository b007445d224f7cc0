"""`pp.reach` in order of importance, and of closed chains."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo

TIP, ELBOW = "panda_hand_tcp", "panda_link4"


@pytest.fixture(scope="module")
def panda() -> Robot:
    return pp.load("panda")


def left_over(robot: Robot, q: np.ndarray, first: np.ndarray, slope: np.ndarray) -> float:
    """Norm of a gradient outside the rows `first` and the limits: 0 at a constrained minimum."""
    low, high = q < robot.lower + 1e-7, q > robot.upper - 1e-7
    rows = [*first, *np.eye(len(q))[low], *np.eye(len(q))[high]]
    return float(
        np.linalg.norm(
            slope - np.linalg.lstsq(np.array(rows).T, slope, rcond=1e-9)[0] @ np.array(rows)
        )
    )


def test_the_first_target_is_met_and_the_second_minimized(panda, rng):
    q = rng.uniform(panda.lower, panda.upper, (2, 24, 9))
    tip, elbow = (
        panda.frame_pose(x, name)[:, :3, 3] for x, name in zip(q, (TIP, ELBOW), strict=True)
    )
    wanted = {TIP: tip, ELBOW: elbow}
    found, even = (
        pp.reach(panda, wanted, near=q[0], order=[TIP, ELBOW]),
        pp.reach(panda, wanted, near=q[0]),
    )
    peer = Pin(panda)
    now = {name: peer.frame_pose(found.q, name)[:, :3, 3] for name in wanted}
    assert np.abs(now[TIP] - tip).max() < 1e-6, "always met, by Pinocchio's kinematics"
    missed = np.linalg.norm(now[ELBOW] - elbow, axis=-1)
    np.testing.assert_allclose(missed, found.errors[f"{ELBOW} m"], atol=1e-9)
    conflict = ~found.converged
    assert conflict.sum() > 5 and (even.errors[f"{TIP} m"][conflict] > 1e-4).any(), (
        "without order neither is met"
    )
    turned = pp.reach(panda, wanted, near=q[0], order=[ELBOW, TIP])
    assert (
        turned.errors[f"{ELBOW} m"].max() < 1e-6
        and (turned.errors[f"{TIP} m"][conflict] > 1e-4).all()
    )
    assert (missed[conflict] > turned.errors[f"{ELBOW} m"][conflict]).all()
    rest = []
    for k in np.flatnonzero(conflict):
        J, slope = (panda.jacobian(found.q[k], name)[3:] for name in (TIP, ELBOW))
        rest.append(left_over(panda, found.q[k], J, slope.T @ (elbow[k] - now[ELBOW][k])))
    assert np.median(rest) < 1e-4 and max(rest) < 0.02, (
        "no motion in the null space of the first would help the second"
    )


def test_many_starts_of_the_whole_order(panda, rng):
    """No level is worse than from one start; the second is better than a local minimum."""
    q = rng.uniform(panda.lower, panda.upper, (2, 60, 9))
    wanted = {
        name: panda.frame_pose(x, name)[:, :3, 3] for x, name in zip(q, (TIP, ELBOW), strict=True)
    }
    one, many = (pp.reach(panda, wanted, near=q[0], order=[TIP, ELBOW], starts=n) for n in (1, 8))
    both = (one.errors[f"{TIP} m"] < 1e-6) & ~many.converged
    assert both.sum() > 30 and many.errors[f"{TIP} m"].max() < 1e-6
    gain = (one.errors[f"{ELBOW} m"] - many.errors[f"{ELBOW} m"])[both]
    assert gain.min() > -1e-4 and (gain > 0.01).any()
    for _ in range(3):
        other = pp.reach(
            panda,
            wanted,
            near=rng.uniform(panda.lower, panda.upper, (60, 9)),
            order=[TIP, ELBOW],
            starts=2,
        )
        met = both & (other.errors[f"{TIP} m"] < 1e-6)
        assert (many.errors[f"{ELBOW} m"] < other.errors[f"{ELBOW} m"] + 2e-3)[met].mean() > 0.95


def test_a_hand_before_the_centre_of_mass(rng):
    robot = Robot.of(zoo.free_tree(8, seed=2))
    q = robot.random(rng, size=4)
    T = robot.frame_pose(q, "tool")
    found = pp.reach(
        robot,
        {"tool": T},
        center_of_mass=(9.0, 0.0, 0.0),
        moving=robot.joint_names[1:],
        near=q,
        order=["center_of_mass"],
    )
    assert (
        found.errors["tool rad"].max() < 1e-6
        and found.errors["tool m"].max() < 1e-6
        and not found.converged.any()
    )
    even = pp.reach(
        robot, {"tool": T}, center_of_mass=(9.0, 0.0, 0.0), moving=robot.joint_names[1:], near=q
    )
    assert even.errors["tool m"].min() > 1e-3
    before = np.linalg.norm(robot.center_of_mass(q) - [9.0, 0.0, 0.0], axis=-1)
    assert (found.errors["center_of_mass m"] <= before + 1e-9).all()


def test_order_does_not_matter_if_all_can_be_met(panda, rng):
    q = rng.uniform(panda.lower, panda.upper, (20, 9))
    wanted = {TIP: panda.frame_pose(q, TIP)[:, :3, 3], ELBOW: panda.frame_pose(q, ELBOW)[:, :3, 3]}
    one, other = (
        pp.reach(panda, wanted, near=q, order=[ELBOW, TIP]),
        pp.reach(panda, wanted, near=q),
    )
    np.testing.assert_array_equal(one.q, other.q)
    assert one.converged.all()


def test_loops_close(rng):
    """Without targets this is `assemble`; with targets, loops come first."""
    four_bar = pp.scenes.load("four_bar").system
    guess = four_bar.robot.random(rng, size=20)
    closed = pp.reach(four_bar, near=guess, limits=False, starts=16, tolerance=1e-11)
    assert closed.converged.all() and (closed.tries >= 1).all()
    assembled = four_bar.assemble(guess)
    np.testing.assert_array_equal(closed.q, assembled)
    names, held = [j.name for j in four_bar.joints], four_bar.joints[0]
    kept = pp.reach(
        four_bar, near=assembled + 0.05, moving=names[1:], limits=False, starts=16, tolerance=1e-11
    )
    np.testing.assert_array_equal(kept.q, four_bar.assemble(assembled + 0.05, hold=held.name))
    np.testing.assert_array_equal(kept.q[:, held.q_slice], assembled[:, held.q_slice] + 0.05)
    far = pp.reach(four_bar, {"coupler": (5.0, 0.0, 0.0)}, near=assembled[0])
    assert not far.converged and np.abs(four_bar.constraint_residual(far.q)).max() < 1e-6


def test_loops_close_within_limits(panda, rng):
    """A hand fixed to a point: limits hold, and an open loop is as small as possible."""
    q = rng.uniform(panda.lower, panda.upper, (10, 9))
    place = panda.frame_pose(q[0], TIP)[:3, 3]
    found = pp.reach(
        pp.connect(panda.with_frame("there", "world", place), [pp.Loop("ball", TIP, "there")]),
        near=q[1:],
    )
    assert found.converged.all() and list(found.errors) == ["loop 1 m"]
    assert (found.q >= panda.lower - 1e-12).all() and (found.q <= panda.upper + 1e-12).all()
    assert np.abs(panda.frame_pose(found.q, TIP)[:, :3, 3] - place).max() < 1e-6
    far = pp.connect(
        panda.with_frame("there", "world", (3.0, 0.0, 0.5)), [pp.Loop("ball", TIP, "there")]
    )
    nearest = pp.reach(far, near=q[0], starts=4)
    alone = pp.reach(panda, {TIP: (3.0, 0.0, 0.5)}, near=q[0])
    assert not nearest.converged and abs(nearest.error - alone.error) < 1e-3


def test_loops_of_a_large_system_close():
    """Too many bodies for targets; without targets, closed as by `assemble`."""
    chain = pp.robots.chain(70)
    q = 0.1 * np.random.default_rng(1).standard_normal(chain.nq)
    place = chain.frame_pose(q, "tool")[:3, 3]
    tied = pp.connect(chain.with_frame("there", "world", place), [pp.Loop("ball", "tool", "there")])
    found = pp.reach(tied, near=q + 0.05, limits=False)
    assert found.converged and np.abs(chain.frame_pose(found.q, "tool")[:3, 3] - place).max() < 1e-6
    with pytest.raises(pp.Error, match="bodies, expected at most 64"):
        pp.reach(tied, {"tool": place})


def test_two_arms_carry_a_box_to_a_target():
    puma, facing = pp.load("puma560"), np.diag([-1.0, -1.0, 1.0, 1.0])
    facing[0, 3] = 1.2
    arms, box = (
        [(puma, None, "tool"), (puma, facing, "tool")],
        pp.Body.box(mass=3.0, size=(0.5, 0.2, 0.2)),
    )
    cell = pp.grasp(arms=arms, object=box, at=[(-0.25, 0, 0), (0.25, 0, 0)])
    posture = [0.0, -0.8, 0.6, 0.0, 0.5, 0.0]
    q = cell.assemble([*posture, *posture, 0.6, 0.0, 0.3, 0, 0, 0, 1])
    T = np.array(cell.robot.frame_pose(q, "box/box"))
    T[:3, 3] += (0.02, -0.03, 0.05)
    found = pp.reach(cell, {"box/box": T}, near=q)
    assert found.converged and np.abs(cell.constraint_residual(found.q)).max() < 1e-5
    now = {
        name: Pin(cell.robot).frame_pose(found.q, name)
        for name in ("box/box", "box/grip1", "box/grip2")
    }
    np.testing.assert_allclose(now["box/box"], T, atol=2e-6)
    assert {"contact 1 rad", "contact 2 m", "box/box m"} <= set(found.errors)


def test_joints_that_follow():
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    mass = f'<inertial><mass value="1"/>{inertia}</inertial>'
    limit = '<limit lower="0" upper="0.1" effort="1" velocity="1"/>'
    text = f"""<robot name="gripper"><link name="base"/>
      <link name="l">{mass}</link><link name="r">{mass}</link>
      <joint name="left" type="prismatic"><parent link="base"/><child link="l"/>
        <axis xyz="0 1 0"/>{limit}</joint>
      <joint name="right" type="prismatic"><parent link="base"/><child link="r"/>
        <axis xyz="0 -1 0"/>{limit}
        <mimic joint="left" multiplier="0.5" offset="0.01"/></joint></robot>"""
    system = pp.connect(pp.load(text), mimic=True)
    found = pp.reach(system, {"l": (0.0, 0.06, 0.0)})
    assert found.converged
    np.testing.assert_allclose(found.q, [0.06, 0.04], atol=1e-6)


REFUSED = {
    "not a target": lambda robot: pp.reach(robot, {TIP: (0.5, 0.0, 0.5)}, order=["nonsense"]),
    "each name once": lambda robot: pp.reach(robot, {TIP: (0.5, 0.0, 0.5)}, order=[TIP, TIP]),
    "order": lambda robot: pp.reach(robot, {TIP: (0.5, 0.0, 0.5)}, order=3),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(panda, words):
    with pytest.raises(pp.Error, match=words):
        REFUSED[words](panda)
