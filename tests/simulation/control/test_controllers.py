"""The built-in controllers obey their equations, for single states and batches."""

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import StateError
from psiphi.simulation.control.task_forces import limited_feedback
from tests.model.spatial import on_arrays as quat
from tests.simulation.simulate.motions import juggler, puma, state, ur5

BENT = np.array([0.2, -1.0, 1.2, -0.8, -1.2, 0.3])  # a UR5 away from singularities


def swing(t):
    phases = np.arange(6.0)
    return np.sin(t + phases), np.cos(t + phases), -np.sin(t + phases)


def test_gravity_compensation_holds_still():
    q, _ = state(ur5(), 0, 3)
    motion = pp.simulate(ur5(), q, tau=pp.GravityCompensation(ur5()), duration=1.0)
    assert np.abs(motion.v).max() < 1e-9 and np.abs(motion.q - q[:, None]).max() < 1e-9


def test_gravity_compensation_leaves_kinetic_energy():
    robot = juggler()
    q, v = state(robot, 1)
    motion = pp.simulate(robot, q, v, pp.GravityCompensation(robot, passive=()), duration=0.3)
    kinetic = robot.kinetic_energy(motion.q, motion.v)
    np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-8)


@pytest.mark.parametrize("gravity", [True, False])
def test_pd_settles(gravity):
    """With gravity compensated at the reference itself, without it where kp (q_ref - q) = g(q)."""
    robot, goal = puma(), np.array([0.3, -0.5, 0.4, 0.2, 0.1, -0.3])
    motion = pp.simulate(
        robot, np.zeros(6), tau=pp.PD(robot, goal, 400.0, 60.0, gravity), duration=4.0
    )
    rest = motion.final
    assert np.abs(rest.v).max() < 1e-4
    np.testing.assert_allclose(
        400.0 * (goal - rest.q), 0.0 if gravity else robot.gravity(rest.q), atol=2e-2
    )


def test_pd_settles_on_quaternions():
    robot = juggler()
    goal, _ = state(robot, 5)
    weight = np.diag(robot.mass_matrix(goal))
    control = pp.PD(robot, goal, 25.0 * weight, 10.0 * weight, gravity=True, passive=())
    motion = pp.simulate(robot, robot.neutral(), tau=control, duration=4.0, dt=1e-2)
    assert np.abs(robot.difference(motion.final.q, goal)).max() < 3e-3


def test_computed_torque_tracks():
    robot = puma()
    q, v, _ = swing(0.0)
    motion = pp.simulate(robot, q, v, pp.ComputedTorque(robot, swing), duration=2.0)
    wanted = np.sin(motion.t[:, None] + np.arange(6.0))
    assert np.abs(motion.q - wanted).max() < 1e-6


def test_the_error_of_computed_torque_is_a_damped_oscillator():
    """e'' + kd e' + kp e = 0: with kd = 2 sqrt(kp), e = e0 (1 + w t) exp(-w t)."""
    robot, w = puma(), 5.0
    off = np.linspace(-0.3, 0.3, 6)
    q, v, _ = swing(0.0)
    motion = pp.simulate(
        robot, q + off, v, pp.ComputedTorque(robot, swing, kp=w * w, kd=2 * w), duration=1.0
    )
    t = motion.t[:, None]
    wanted = off * (1 + w * t) * np.exp(-w * t)
    np.testing.assert_allclose(motion.q - np.sin(t + np.arange(6.0)), wanted, atol=1e-8)


def test_operational_space_reaches_a_point_and_a_pose():
    robot = ur5()
    q = BENT
    pose = robot.frame_pose(q + 0.3, "tool0")
    motion = pp.simulate(
        robot,
        q,
        tau=pp.OperationalSpace(robot, "tool0", pose[:3, 3], posture=q),
        duration=2.0,
        dt=4e-3,
    )
    np.testing.assert_allclose(
        robot.frame_pose(motion.final.q, "tool0")[:3, 3], pose[:3, 3], atol=1e-4
    )
    motion = pp.simulate(
        robot, q, tau=pp.OperationalSpace(robot, "tool0", pose, posture=q), duration=2.0, dt=4e-3
    )
    np.testing.assert_allclose(robot.frame_pose(motion.final.q, "tool0"), pose, atol=1e-4)


def test_a_posture_is_a_configuration():
    """A posture with a quaternion that is not of unit length is an error, as for a reference."""
    b = pp.Builder("ball")
    b.body("top", 1.0, com=(0, 0, 0.2), inertia=np.diag([0.1, 0.2, 0.15]))
    b.joint("ball", "spherical", "world", "top")
    b.frame("tip", "top", xyz=(0, 0, 0.5))
    robot = b.build()
    for w in (0.0, 2.0):
        with pytest.raises(
            pp.StateError, match=r"posture: the quaternion of joint 'ball' has norm"
        ):
            pp.OperationalSpace(robot, "tip", np.array([0.1, 0.2, 0.4]), posture=[0.0, 0.0, 0.0, w])


def test_the_task_is_decoupled_from_the_posture():
    """The error of the frame obeys e'' + kd e' + kp e = 0 whatever the posture does."""
    robot = ur5()
    q = BENT
    start = robot.frame_pose(q, "tool0")
    target = start.copy()
    target[:3, 3] += (0.05, -0.04, 0.03)
    control = pp.OperationalSpace(robot, "tool0", target[:3, 3], kp=25.0, kd=10.0, posture=q + 1.0)
    motion = pp.simulate(robot, q, tau=control, duration=0.5)
    t = motion.t[:, None]
    wanted = (start - target)[:3, 3] * (1 + 5 * t) * np.exp(-5 * t)
    np.testing.assert_allclose(
        robot.frame_pose(motion.q, "tool0")[:, :3, 3] - target[:3, 3], wanted, atol=1e-7
    )
    assert np.abs(motion.final.q - q).max() > 0.01


def test_operational_space_follows_a_moving_target():
    robot = ur5()
    q = BENT
    start = robot.frame_pose(q, "tool0")

    def target(t):
        pose = start.copy()
        pose[:3, 3] += 0.05 * np.array([1 - np.cos(t), np.sin(t), 0.0])
        return pose, np.concatenate([np.zeros(3), 0.05 * np.array([np.sin(t), np.cos(t), 0.0])])

    motion = pp.simulate(
        robot,
        q,
        tau=pp.OperationalSpace(robot, "tool0", target, kp=400, kd=40),
        duration=1.0,
        dt=2e-3,
    )
    error = robot.frame_pose(motion.final.q, "tool0") - target(1.0)[0]
    assert np.abs(error).max() < 3e-3


def test_controllers_take_batches():
    robot = puma()
    q, v = state(robot, 2, (2, 3))
    pose = robot.frame_pose(q, "tool")
    goals, _ = state(robot, 3, (2, 3))
    for control in (
        pp.GravityCompensation(robot),
        pp.PD(robot, swing, 10.0, 1.0, gravity=True),
        pp.PD(robot, goals, 10.0, 1.0),
        pp.ComputedTorque(robot, swing),
        pp.OperationalSpace(robot, "tool", pose[..., :3, 3] + 0.01),
        pp.OperationalSpace(robot, "tool", pose),
    ):
        tau = control(0.3, q, v)
        assert tau.shape == (2, 3, 6)
        if (
            not isinstance(control, pp.OperationalSpace)
            and control(0.3, q[0, 0], v[0, 0]).ndim == 1
        ):
            np.testing.assert_allclose(
                control(0.3, q[0, 0], v[0, 0]), tau[0, 0], rtol=1e-9, atol=1e-9
            )


JOINT_LAWS = {
    "PD": lambda robot, q, **options: pp.PD(robot, q, 10.0, 1.0, **options),
    "ComputedTorque": lambda robot, q, **options: pp.ComputedTorque(robot, q, 10.0, 1.0, **options),
    "Lyapunov": lambda robot, q, **options: pp.Lyapunov(robot, q, 10.0, 1.0, pull=0.5, **options),
    "Decoupled": lambda robot, q, **options: pp.Decoupled(robot, q, 2.0, 0.5, **options),
}


@pytest.mark.parametrize("name", JOINT_LAWS)
def test_one_reference_and_any_batch_axes_of_curved_joints(name):
    """Spherical, planar and free joints; q and v with and without batch axes, each beside itself
    with all of them."""
    robot = juggler()
    (q, v), (goal, _) = state(robot, 2, 3), state(robot, 3)
    law = JOINT_LAWS[name](robot, goal, passive=())
    for x, y in ((q, v), (q, v[0]), (q[0], v)):
        tau = law(0.0, x, y)
        rows = zip(np.broadcast_to(x, q.shape), np.broadcast_to(y, v.shape), tau, strict=True)
        for one, speed, found in rows:
            np.testing.assert_allclose(found, law(0.0, one, speed), rtol=1e-12, atol=1e-12)


def test_a_half_turn_is_the_shortest_way():
    """The rotation error of a pose is a rotation vector, at any angle."""
    robot = ur5()
    pose = robot.frame_pose(state(robot, 4)[0], "tool0")
    for w in np.random.default_rng(0).standard_normal((20, 3)) * 2:
        w = w / max(1.0, np.linalg.norm(w) / 3.1)
        turn = quat.exp(w)
        turned = pose.copy()
        turned[:3, :3] = np.stack([quat.rotate(turn, e) for e in np.eye(3)], axis=-1) @ pose[:3, :3]
        found = limited_feedback(
            6, pose.ravel().tolist(), turned.ravel().tolist(), [1.0, 0.0, 1e300, 0.03]
        )
        np.testing.assert_allclose(found, [*w, 0, 0, 0], atol=1e-8)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda r: pp.PD(r, np.zeros(5), 1, 1), "reference q has shape"),
        (lambda r: pp.PD(r, np.zeros(6), -1, 1), "kp is -1"),
        (lambda r: pp.PD(r, np.zeros(6), 1, [1, 2]), "kd"),
        (lambda r: pp.PD(r, lambda t: (1, 2, 3, 4), 1, 1), r"has shape \(4,\)"),
        (
            lambda r: pp.ComputedTorque(r, lambda t: (np.zeros(6), np.zeros(2))),
            "reference v has shape",
        ),
        (lambda r: pp.OperationalSpace(r, "hand", np.zeros(3)), "no frame 'hand'"),
        (lambda r: pp.OperationalSpace(r, "tool", np.zeros(4)), "expected a point"),
        (lambda r: pp.OperationalSpace(r, "tool", np.zeros(3), policy="hope"), "policy is 'hope'"),
        (
            lambda r: pp.OperationalSpace(r, "tool", lambda t: (np.zeros(3), np.zeros(6))),
            "velocity has shape",
        ),
        (lambda r: pp.OperationalSpace(r, "tool", np.zeros(3), posture=np.zeros(7)), "posture"),
    ],
)
def test_what_controllers_refuse(make, why):
    with pytest.raises(StateError, match=why):
        make(puma())


LAWS = {
    "PD": lambda robot: pp.PD(robot, np.ones(6), 1.0, 1.0),
    "ComputedTorque": lambda robot: pp.ComputedTorque(robot, np.ones(6)),
    "GravityCompensation": pp.GravityCompensation,
    "Lyapunov": lambda robot: pp.Lyapunov(robot, np.ones(6)),
    "OperationalSpace": lambda robot: pp.OperationalSpace(robot, "tool", np.ones(3)),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_state_that_does_not_fit_is_refused(law):
    """One number is not broadcast over all joints; lists are accepted."""
    robot = pp.robots.puma560()
    control, q, v = LAWS[law](robot), np.full(6, 0.3), np.ones(6)
    np.testing.assert_array_equal(control(0.0, q.tolist(), [1] * 6), control(0.0, q, v))
    wrong = [
        (0.3, v, "q is the number"),
        (q[:1], v, "q has shape"),
        (q, v[:5], "v has shape"),
        (None, v, "q is None"),
    ]
    for q0, v0, words in (
        *wrong,
        (np.tile(q, (2, 1)), np.tile(v, (3, 1)), "batch axes do not fit"),
    ):
        with pytest.raises(pp.StateError, match=f"{law}: .*{words}|{law}: the {words}"):
            control(0.0, q0, v0)


def test_tasks_in_order_of_priority():
    """Against dense algebra: the first task is exact, the second as far as the first permits, by
    the mass matrix."""
    robot = pp.load("panda")
    q, v = state(robot, 5, ())
    first, second = robot.frame_pose(q, "tool"), robot.frame_pose(q, robot.bodies[3].name)
    goals = [first, second[:3, 3] + 0.05]
    goals[0][:3, 3] += 0.1
    control = pp.OperationalSpace(
        robot, ["tool", robot.bodies[3].name], goals, policy="pseudo", speed=0.0, posture=q
    )
    tau = control(0.0, q, v)
    a = robot.forward_dynamics(q, v, tau)
    M_inv, u = robot.mass_matrix_inverse(q), -6.0 * v
    wanted = []
    for name, rows, goal in (("tool", 6, goals[0]), (robot.bodies[3].name, 3, goals[1])):
        place = robot.frame_pose(q, name)[:3, 3]
        error = np.concatenate([np.zeros(3), goal[:3, 3] - place]) if rows == 6 else goal - place
        wanted.append(100.0 * error - 20.0 * robot.frame_velocity(q, v, name)[6 - rows :])
    J1, J2 = robot.jacobian(q, "tool"), robot.jacobian(q, robot.bodies[3].name)[3:]
    drift1, drift2 = (
        robot.frame_acceleration(q, v, u, "tool"),
        robot.frame_acceleration(q, v, u, robot.bodies[3].name)[3:],
    )
    bar = M_inv @ J1.T @ np.linalg.inv(J1 @ M_inv @ J1.T)
    moved = u + bar @ (wanted[0] - drift1)
    left = np.eye(robot.nv) - bar @ J1
    S = J2 @ left @ M_inv @ J2.T  # singular: less is left than is asked for
    pushed = (
        M_inv
        @ left.T
        @ J2.T
        @ np.linalg.pinv(S, rcond=1e-9)
        @ (wanted[1] - drift2 - J2 @ (moved - u))
    )
    np.testing.assert_allclose(robot.frame_acceleration(q, v, a, "tool"), wanted[0], atol=1e-8)
    np.testing.assert_allclose(a, moved + pushed, atol=1e-7)
    assert np.abs(pushed).max() > 0.1
    same = pp.OperationalSpace(robot, ["tool", "tool"], [first, first], policy="pseudo", posture=q)
    alone = pp.OperationalSpace(robot, "tool", first, policy="pseudo", posture=q)
    np.testing.assert_allclose(
        same(0.0, q, v),
        alone(0.0, q, v),
        atol=1e-8,
        err_msg="nothing is left for the same task again",
    )
    both = pp.OperationalSpace(
        robot, ["tool", robot.bodies[3].name], [lambda t: goals[0][:3, 3], goals[1]]
    )
    fast, slow = (
        pp.simulate(robot, q, v, both, duration=4e-3, method="euler", compiled=flag)
        for flag in (True, False)
    )
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-10)
    for frames, targets, words in (
        (["tool"], [first, first], "1 frames and 2 targets"),
        ([], [], "0 frames"),
        (3, first, "list"),
    ):
        with pytest.raises(pp.StateError, match=words):
            pp.OperationalSpace(robot, frames, targets)


def test_a_tuple_of_numbers_is_a_posture():
    robot = pp.load("pelican")
    run = dict(q0=[0.1, 0.2], duration=0.01)
    expected = pp.simulate(robot, tau=pp.PD(robot, [0.3, 0.4], 10.0, 1.0), **run)
    for source in ((0.3, 0.4), lambda t: (0.3, 0.4), ((0.3, 0.4),), ((0.3, 0.4), (0.0, 0.0))):
        motion = pp.simulate(robot, tau=pp.PD(robot, source, 10.0, 1.0), **run)
        np.testing.assert_allclose(motion.q, expected.q, rtol=0, atol=1e-15)
    with pytest.raises(pp.StateError, match=r"reference q has shape \(3,\), expected \(..., 2\)"):
        pp.PD(robot, (0.3, 0.4, 0.5), 10.0, 1.0)


REFERENCES = {
    "q": lambda q, t: np.array(q) + 0.1 * t,
    "q, v": lambda q, t: (q + 0.1 * t, np.full(len(q), 0.1)),
    "q, v, a": lambda q, t: (q + t * t, np.full(len(q), 2 * t), np.full(len(q), 2.0)),
    "list": lambda q, t: [float(x) for x in q],
    "batch": lambda q, t: (np.array([q, q + t]), np.full(len(q), t)),
    "batch from then on": lambda q, t: q if t < 0.4 else np.array([q, q]),
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_a_reference_read_at_many_times_is_that_of_each_time(kind):
    arm = ur5()
    array, q = np.zeros(arm.nq), arm.random(seed=0)

    def overwritten(t):  # the same array at each call
        array[:] = q + t
        return array

    for source in (lambda t: REFERENCES[kind](q, t), overwritten):
        reference, times = pp.PD(arm, source, 1.0, 1.0).reference, np.linspace(0, 1, 5)
        found, single = reference.along(times), [tuple(map(np.array, reference(t))) for t in times]
        if found is None:
            assert kind in ("list", "batch from then on")
            continue
        for part, rows in zip(found, zip(*single, strict=True), strict=True):
            np.testing.assert_array_equal(part, np.stack(rows, axis=-2))


def test_a_reference_that_is_wrong_at_a_later_time():
    flyer = juggler()
    start = flyer.neutral()
    last = flyer.model.quaternions[0]
    law = pp.PD(flyer, lambda t: start * np.where(np.arange(flyer.nq) == last, 1 + t, 1), 1.0, 1.0)
    with pytest.raises(pp.StateError, match=r"reference q: the quaternion of joint .* norm 1\.0"):
        pp.rollout(flyer, start, tau=law, steps=20, dt=1e-3)
