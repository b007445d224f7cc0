"""Joints that follow given motions, beside the motion of a relative frame and inverse dynamics."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.robot import Robot
from tests import zoo


def sway(t):
    """The base: along a curve, turning about a fixed axis, in its own axes."""
    angle, rate, bend = 0.3 * np.sin(2 * t), 0.6 * np.cos(2 * t), -1.2 * np.sin(2 * t)
    axis = np.array([0.6, 0.0, 0.8])
    quaternion = [*(np.sin(angle / 2) * axis), np.cos(angle / 2)]
    x, v, a = 0.2 * np.sin(3 * t), 0.6 * np.cos(3 * t), -1.8 * np.sin(3 * t)
    c, s = np.cos(angle), np.sin(angle)
    K = np.array([[0, -0.8, 0], [0.8, 0, -0.6], [0, 0.6, 0]])
    R = np.eye(3) + s * K + (1 - c) * K @ K
    world, push = np.array([v, 0.0, -v]), np.array([a, 0.0, -a])
    w = rate * axis
    return (
        [x, 0.1, 1.0 - x, *quaternion],
        [*w, *(R.T @ world)],
        [*(bend * axis), *(R.T @ push - np.cross(w, R.T @ world))],
    )


@pytest.fixture(scope="module")
def robot():
    return Robot.of(zoo.free_tree(4, 6))


def start(robot):
    q0, v0, _ = sway(0.0)
    own = np.array([0.2, -0.4, 0.1])
    return np.array([*q0, *own]), np.array([*v0, *own])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_base_follows_and_the_rest_swings(robot, compiled):
    """The base is where it should be; the others move as inverse dynamics says with their
    torques."""
    base, tau = robot.joint_names[0], np.array([0.0] * 6 + [0.5, -0.3, 0.2])
    q, v = start(robot)
    law = pp.PrescribedMotion(robot, {base: sway}, tau=tau)
    motion = pp.simulate(robot, q, v, law, duration=0.3, dt=1e-3, compiled=compiled)
    for k in (0, 100, 300):
        place, speed, change = map(np.array, sway(float(motion.t[k])))
        np.testing.assert_allclose(motion.q[k, :7], place, atol=1e-9)
        np.testing.assert_allclose(motion.v[k, :6], speed, atol=1e-8)
        np.testing.assert_allclose(motion.a[k, :6], change, atol=1e-5)
        needed = robot.inverse_dynamics(motion.q[k], motion.v[k], motion.a[k])
        np.testing.assert_allclose(needed, motion.tau[k], atol=1e-8)
        np.testing.assert_allclose(motion.tau[k, 6:], tau[6:], atol=1e-12)


def test_a_law_for_the_other_joints(robot):
    """A controller and a marked law beside the same feedback written out, in Python and
    compiled."""
    base, goal = robot.joint_names[0], robot.neutral()
    goal[7:] = [0.3, 0.1, -0.2]
    q, v = start(robot)
    gains = {"kp": 20.0, "kd": 2.0}
    pd = pp.PD(robot, lambda t: goal + 0.1 * t * np.r_[np.zeros(7), 1.0, 1.0, 1.0], **gains)

    @pp.law
    def own(t, q, v):
        return [0.0] * 6 + list(20.0 * (goal[7:] + 0.1 * t - q[7:]) - 2.0 * v[6:])

    motions = [
        pp.simulate(
            robot,
            q,
            v,
            pp.PrescribedMotion(robot, {base: sway}, tau=tau),
            duration=0.1,
            compiled=compiled,
        )
        for tau, compiled in ((pd, True), (pd, False), (own, True))
    ]
    for other in motions[1:]:
        np.testing.assert_allclose(other.q, motions[0].q, atol=1e-9)
    last = motions[0]
    wanted = 20.0 * (goal[7:] + 0.01 - last.q[-1, 7:]) - 2.0 * last.v[-1, 6:]
    np.testing.assert_allclose(last.tau[-1, 6:], wanted, atol=1e-9)


def test_a_hinge_is_locked_by_a_constant_and_turned_by_a_function():
    """As the robot without the joint, locked; the torques that hold it are reactions."""
    robot = pp.load("pelican")
    first, second = robot.joint_names
    law = pp.PrescribedMotion(robot, {first: 0.4})
    motion = pp.simulate(robot, [0.4, 0.3], tau=law, duration=0.2)
    locked = robot.lock([first], at=[0.4, 0.0])
    alone = pp.simulate(locked, [0.3], duration=0.2)
    np.testing.assert_allclose(motion.q[:, 1:], alone.q, atol=1e-10)
    np.testing.assert_allclose(motion.q[:, 0], 0.4, atol=1e-12)
    needed = robot.inverse_dynamics(motion.q, motion.v, motion.a)
    np.testing.assert_allclose(motion.tau, needed, atol=1e-9)
    spin = pp.PrescribedMotion(robot, {second: lambda t: (3.0 * t, 3.0)})
    q, v = pp.rollout(robot, [[0.0, 0.0], [0.5, 0.0]], [0.0, 3.0], spin, steps=100)
    np.testing.assert_allclose(q[:, -1, 1], 0.3, atol=1e-9)


def test_motions_have_derivatives():
    """vjp of a rollout beside differences."""
    robot = pp.load("pelican")
    first, second = robot.joint_names
    law = pp.PrescribedMotion(robot, {first: lambda t: (np.sin(t), np.cos(t), -np.sin(t))})

    def last(q):
        return pp.rollout(robot, q, [1.0, 0.0], law, steps=40)[0][-1]

    q, h = np.array([0.0, 0.3]), 1e-6
    motion = pp.rollout(robot, q, [1.0, 0.0], law, steps=40)
    weights = np.zeros_like(motion.q)
    weights[-1] = [0.7, -1.3]
    got = motion.vjp(weights)["q"]
    want = [weights[-1] @ (last(q + h * e) - last(q - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("motions", "tau", "match"),
    [
        ({}, None, "by joint"),
        ({"shouder": 0.0}, None, "shoulder"),
        ({"shoulder": (0.0, 0.0, 0.0, 0.0)}, None, "one to three"),
        ({"shoulder": [0.0, 1.0]}, None, "shape"),
        ({"shoulder": lambda t: 1 / 0}, None, "failed at t = 0"),
        ({"shoulder": np.nan}, None, "shoulder"),
        ({"shoulder": 0.0}, np.zeros(3), "tau"),
        ({"shoulder": 0.0}, pp.GravityCompensation(pp.load("ur5")), "another robot"),
    ],
)
def test_what_is_refused(motions, tau, match):
    with pytest.raises(pp.Error, match=match):
        pp.PrescribedMotion(pp.load("acrobot"), motions, tau)
