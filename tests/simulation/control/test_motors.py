"""Joints without motors get no torque: floating bases by default, and joints named passive."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.control.control_law import Controller
from psiphi.simulation.simulate.simulate import simulate
from tests.simulation.simulate.motions import puma, space_robot, state


def rest(robot):
    return robot.neutral(), np.zeros(robot.nv)


def test_a_floating_base_falls():
    """Free fall of the centre of mass, whatever the joints do: no outer force but gravity."""
    robot = pp.load("g1", base="free")
    q, v = rest(robot)
    weight = np.diag(robot.mass_matrix(q))
    for law in (
        pp.GravityCompensation(robot),
        pp.PD(robot, q, 25.0 * weight, 10.0 * weight),
        pp.PD(robot, q, 25.0 * weight, 10.0 * weight, gravity=True),
        pp.ComputedTorque(robot, q),
    ):
        motion = simulate(robot, q, v, law, duration=0.1, every=10)
        assert (
            motion.tau[:, :6] == 0.0
        ).all() and "no motor         root_joint: no torque" in motion.summary()
        fall = robot.center_of_mass(motion.q) - robot.center_of_mass(q)
        np.testing.assert_allclose(fall[:, 2], -0.5 * 9.81 * motion.t**2, atol=1e-9)
        np.testing.assert_allclose(fall[:, :2], 0.0, atol=1e-9)


def test_told_to_it_hovers():
    robot = pp.load("g1", base="free")
    q, _ = rest(robot)
    for law in (
        pp.GravityCompensation(robot, passive=()),
        pp.GravityCompensation(robot, actuated=[joint.name for joint in robot.joints]),
    ):
        motion = simulate(robot, q, tau=law, duration=0.1)
        assert np.abs(motion.v).max() < 1e-12
    assert "root_joint: torque up to 327" in motion.summary()


@pytest.mark.parametrize("compiled", [True, False])
def test_computed_torque_of_a_robot_whose_base_is_free(compiled):
    """The joints obey e'' + kd e' + kp e = 0, and the base conserves momentum."""
    robot = space_robot()
    q, v = state(robot, 3, speed=0.2)
    goal = robot.integrate(q, np.concatenate([np.zeros(6), 0.3 * np.ones(robot.nv - 6)]))
    motion = simulate(
        robot,
        q,
        v,
        pp.ComputedTorque(robot, goal, kp=25.0, kd=10.0),
        duration=0.5,
        compiled=compiled,
    )
    assert (motion.tau[:, :6] == 0.0).all()
    e0, t = robot.difference(q, goal)[6:], motion.t[:, None]
    wanted = (e0 + (5.0 * e0 - v[6:]) * t) * np.exp(
        -5.0 * t
    )  # kd^2 = 4 kp: e = (e0 + (e0' + 5 e0) t) e^-5t
    np.testing.assert_allclose(robot.difference(motion.q, goal)[:, 6:], wanted, atol=1e-9)


def test_passive_joints_of_a_robot():
    robot = puma()
    q, _ = rest(robot)
    law = pp.PD(robot, q, 100.0, 10.0)
    motion = simulate(robot, q, tau=law, passive="elbow", duration=0.05)
    assert (motion.tau[:, 2] == 0.0).all() and np.abs(motion.tau[:, 1]).max() > 1.0
    others = [joint.name for joint in robot.joints if joint.name != "elbow"]
    for same in (
        simulate(robot, q, tau=law, actuated=others, duration=0.05),
        simulate(robot, q, tau=law, passive=["elbow"], duration=0.05, compiled=False),
        simulate(robot, q, tau=pp.PD(robot, q, 100.0, 10.0, passive="elbow"), duration=0.05),
    ):
        np.testing.assert_allclose(same.q, motion.q, atol=1e-12)
    five = simulate(robot, q, tau=np.ones(5), passive="elbow", duration=0.01)
    assert five.tau[0].tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    rolled = pp.rollout(robot, q, tau=law, passive="elbow", steps=50)[0]
    np.testing.assert_allclose(rolled, motion.q, atol=1e-12)


def test_motors_alone_of_a_floating_robot():
    robot = space_robot()
    q, _ = rest(robot)
    motion = simulate(robot, q, tau=np.ones(robot.nv - 6), duration=0.01)
    assert (motion.tau[:, :6] == 0.0).all() and (motion.tau[:, 6:] == 1.0).all()
    assert robot.actuated.tolist() == list(range(6, robot.nv))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(passive="elbw"), "did you mean 'elbow'"),
        (dict(passive="elbow", actuated="elbow"), "both actuated and passive"),
        (dict(passive="elbow", tau=np.ones(6)), "tau acts on elbow, which have no motor"),
        (dict(passive=[3]), "passive holds 3, expected names of joints"),
        (dict(actuated=7), "actuated is 7, expected a list"),
    ],
)
def test_refused(options, words):
    with pytest.raises(pp.Error, match=words):
        simulate(puma(), np.zeros(6), duration=0.01, **options)


def test_operational_space_wants_all_motors():
    robot = pp.load("g1", base="free")
    with pytest.raises(pp.StateError, match="some have no motor"):
        pp.OperationalSpace(robot, "pelvis", np.zeros(3))
    pp.OperationalSpace(robot, "pelvis", np.zeros(3), passive=())


def test_closed_chains_say_it_themselves():
    scene = pp.scenes.load("four_bar")
    with pytest.raises(pp.StateError, match=r"the motors of .* are fixed"):
        simulate(scene.system, scene.q0, passive=scene.system.joints[0].name)
    with pytest.raises(pp.StateError, match="are fixed"):
        pp.GravityCompensation(scene.system, passive=())


def test_a_flying_base_of_a_closed_chain_has_no_motor():
    robot = space_robot()
    hands = [
        next(name for name, frame in robot.frames.items() if frame.body == k)
        for k in (2, len(robot.bodies) - 1)
    ]
    make = lambda **motors: pp.connect(robot, [pp.Loop("ball", *hands)], **motors)  # noqa: E731
    assert make().idle.tolist() == list(range(6)) and make(passive=()).na == robot.nv
    assert make(actuated=[robot.joints[1].name]).actuated.tolist() == [6]


SCENE = """
duration = 0.05
passive = ["elbow"]
[robots.arm]
robot = "puma560"
[controller]
kind = "pd"
"""


def test_scenes(tmp_path):
    file = tmp_path / "arm.toml"
    file.write_text(SCENE, encoding="utf-8")
    case = pp.scenes.load(file)
    assert isinstance(case.tau, Controller) and (case.run().tau[:, 2] == 0.0).all()
    file.write_text(SCENE.replace('["elbow"]', "3"), encoding="utf-8")
    with pytest.raises(pp.Error, match="expected names of joints"):
        pp.scenes.load(file)


def test_hold_keeps_the_joints_of_a_robot_that_falls():
    from psiphi.apps.scenes.scene_controllers import law

    robot = pp.load("g1", base="free")
    q, v = rest(robot)
    motion = simulate(robot, q, v, law("hold", robot, q), duration=0.2, every=50)
    np.testing.assert_allclose(
        motion.q[:, 7:], np.broadcast_to(q[7:], motion.q[:, 7:].shape), atol=1e-10
    )
    np.testing.assert_allclose(motion.q[-1, 2], -0.5 * 9.81 * 0.04, atol=1e-9)
