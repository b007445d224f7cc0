"""Springs as data of joints, and joints in series with a spring."""

import mujoco
import numpy as np
import pytest

import psiphi as pp
from psiphi.model.builder.nonlinear_springs import Spring

TABLE = {"deflection": [-1.0, 0.0, 1.0], "torque": [-2.0, 0.0, 5.0]}
RATIO, ROTOR, STIFFNESS = 50.0, 2e-5, 80.0


def bar(gravity=(0, 0, -9.81), **words) -> pp.Builder:
    b = pp.Builder("bar", gravity=gravity)
    b.body("rod", mass=2.0, com=(0.3, 0, 0), inertia=np.diag([0.001, 0.05, 0.05]))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), **words)
    return b


def elastic(gravity=(0, 0, 0), **more) -> pp.Robot:
    return pp.Robot.of(bar(gravity).build()).with_elastic(
        "hinge", STIFFNESS, rotor=ROTOR, ratio=RATIO, **more
    )


def test_springs_are_data_of_joints():
    robot = pp.Robot.of(bar(stiffness=3.0, rest=0.4, motor=False).build())
    assert (
        robot.stiffness.tolist() == [3.0]
        and robot.rest.tolist() == [0.4]
        and robot.actuated.size == 0
    )
    table = pp.Robot.of(bar(spring=TABLE).build())
    assert table.stiffness.tolist() == [5.0] and table.joints[0].spring == Spring(
        (), (-1.0, 0.0, 1.0), (-2.0, 0.0, 5.0)
    )
    digests = {
        r.digest
        for r in (
            robot,
            table,
            robot.with_spring("hinge", 4.0, 0.4),
            robot.with_spring("hinge", 3.0, 0.5),
        )
    }
    assert len(digests) == 4 and robot.with_spring("hinge", 3.0, 0.4) == robot
    assert robot.lock("hinge").nv == 0 and pp.load("ur5").stiffness.tolist() == [0.0] * 6
    arm = pp.from_dh([dict(mass=1.0, com=(0.5, 0, 0), stiffness=2.0, rest=0.1)])
    assert arm.joints[0].stiffness.tolist() == [2.0] and arm.joints[0].rest.tolist() == [0.1]


@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_saved_and_read_again(ending, tmp_path):
    robot = pp.load("ur5").with_spring("wrist_1_joint", 12.5, rest=0.25)
    robot = robot.with_elastic("elbow_joint", 400.0, 1e-4, 30.0, damping=0.5)
    robot.save(tmp_path / f"arm.{ending}")
    again = pp.load(tmp_path / f"arm.{ending}")
    for word in ("joint_names", "stiffness", "rest", "damping", "armature"):
        np.testing.assert_array_equal(getattr(again, word), getattr(robot, word), err_msg=word)
    assert again.actuated.tolist() == (
        robot.actuated.tolist() if ending == "urdf" else list(range(7))
    )
    with pytest.raises(pp.Error, match="cannot represent"):
        robot.with_spring("wrist_1_joint", spring=TABLE).save(tmp_path / f"bent.{ending}")


def test_polynomials_go_to_mujoco_and_back(tmp_path):
    if int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("MuJoCo 3 has linear springs")
    robot = pp.load("ur5").with_spring("elbow_joint", 3.0, spring={"polynomial": [0.5, 7.0]})
    robot.save(tmp_path / "arm.xml")
    assert pp.load(tmp_path / "arm.xml").joints[2].spring == Spring((0.5, 7.0))


def test_an_elastic_joint_is_two():
    robot = elastic(damping=0.3)
    assert robot.joint_names == ("hinge", "hinge_spring") and robot.actuated.tolist() == [0]
    assert robot.armature.tolist() == [RATIO**2 * ROTOR, 0.0] and robot.stiffness.tolist() == [
        0.0,
        STIFFNESS,
    ]
    assert robot.damping.tolist() == [0.0, 0.3]
    rigid = pp.Robot.of(bar().build())
    q = np.array([0.3, 0.2])
    np.testing.assert_allclose(
        robot.frame_pose(q, "rod"), rigid.frame_pose([0.5], "rod"), atol=1e-14
    )
    J, R = 0.05 + 2.0 * 0.3**2, RATIO**2 * ROTOR
    np.testing.assert_allclose(robot.mass_matrix(q), [[J + R, J], [J, J]], rtol=1e-13)


def test_its_frequency():
    """omega^2 = k (1/J + 1/(mu^2 I_r)): theory [3.sea1]. Both ends free, the total momentum
    stays."""
    robot, (J, R) = elastic(), (0.05 + 2.0 * 0.3**2, RATIO**2 * ROTOR)
    w = np.sqrt(STIFFNESS * (1.0 / J + 1.0 / R))
    motion = pp.simulate(robot, [0.0, 0.01], duration=2.0, dt=5e-4, springs=True)
    np.testing.assert_allclose(motion.q[:, 1], 0.01 * np.cos(w * motion.t), atol=1e-8)
    np.testing.assert_allclose(motion.v @ [J + R, J], 0.0, atol=1e-12)
    assert motion.drift < 1e-8
    long = pp.simulate(
        robot, [0.0, 0.01], duration=300.0 / w, dt=6.0 / w, springs=True, method="midpoint"
    )
    assert long.drift < 1e-12, "h omega = 6"


MJ = """<mujoco><option timestep="5e-4" integrator="RK4" gravity="0 0 -9.81"/><worldbody>
  <body name="rod"><joint name="link" axis="0 1 0"/><inertial pos="0.3 0 0" mass="2" diaginertia="0.001 0.05 0.05"/></body>
  <body name="rotor"><joint name="motor" axis="0 1 0"/><inertial pos="0 0 0" mass="0.1" diaginertia="2e-5 2e-5 2e-5"/></body>
  </worldbody><tendon><fixed name="spring" stiffness="80" damping="0.3" springlength="0">
  <joint joint="link" coef="1"/><joint joint="motor" coef="-0.02"/></fixed></tendon></mujoco>"""  # noqa: E501


def test_beside_mujoco_with_a_rotor_and_a_tendon():
    """There rotor and link both hang on the world, and a tendon of length theta - theta_m / mu is
    the spring: half a second under gravity and a motor's torque, at the rotor there, and mu times
    it at the joint here."""
    peer = mujoco.MjModel.from_xml_string(MJ)
    data, torque = mujoco.MjData(peer), 0.2
    data.qpos[:] = 0.4, 0.3 * RATIO
    robot = elastic((0, 0, -9.81), damping=0.3)
    for _ in range(1000):
        data.qfrc_applied[:] = 0.0, torque
        mujoco.mj_step(peer, data)
    tau = np.array([RATIO * torque, 0.0])
    ours = pp.simulate(
        robot, [0.3, 0.1], tau=tau, duration=0.5, dt=5e-4, springs=True, damping=True
    ).final
    link, motor = data.qpos
    np.testing.assert_allclose([ours.q.sum(), RATIO * ours.q[0]], [link, motor], atol=1e-9 * RATIO)


def test_an_elastic_arm_holds_its_load():
    """The motor side is held by a PD law, the deflection settles where the spring carries the load:
    k delta = -g(q)."""
    robot = pp.load("ur5").with_elastic("*_joint", 3e3, rotor=1e-4, ratio=100.0, damping=30.0)
    q = robot.neutral()
    law = pp.PD(robot, q, 2e3, 200.0, gravity=True)
    motion = pp.simulate(
        robot, q, tau=law, duration=3.0, dt=2e-3, every=100, springs=True, damping=True
    )
    assert (
        not motion.events
        and np.abs(motion.final.v).max() < 1e-6
        and not motion.tau[..., 1::2].any()
    )
    np.testing.assert_allclose(
        robot.stiffness[1::2] * motion.final.q[1::2],
        -robot.gravity(motion.final.q)[1::2],
        atol=1e-4,
    )
    assert "no motor" in motion.summary()


def test_a_builder_makes_them_too():
    b = bar()
    b.elastic("hinge", rotor=1e-4, ratio=10.0, spring=TABLE)
    model = b.build()
    assert [j.name for j in model.joints] == ["hinge", "hinge_spring"] and model.joints[
        1
    ].spring is not None
    b = bar()
    b.spring("hinge", 2.0, rest=1.0)
    assert b.build().joints[0].rest.tolist() == [1.0]


def test_in_a_scene(tmp_path):
    text = """duration = 0.05
springs = true
[robots.arm]
robot = "acrobot"
[[robots.arm.springs]]
joints = "shoulder"
stiffness = 5.0
rest = 0.1
[[robots.arm.elastic]]
joints = "elbow"
rotor = 1e-4
ratio = 30.0
spring = { deflection = [-1.0, 0.0, 1.0], torque = [-200.0, 0.0, 300.0] }
"""
    (tmp_path / "arm.toml").write_text(text, encoding="utf-8")
    case = pp.scenes.load(tmp_path / "arm.toml")
    assert (
        case.system.joint_names == ("shoulder", "elbow", "elbow_spring")
        and case.options["springs"] is True
    )
    assert case.system.stiffness.tolist() == [5.0, 0.0, 300.0]
    assert case.run().drift < 1e-3
    (tmp_path / "bad.toml").write_text(
        text.replace('joints = "elbow"', 'joints = "elbov"'), encoding="utf-8"
    )
    with pytest.raises(pp.Error, match="elbow"):
        pp.scenes.load(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (dict(stiffness=-1.0), "0 or more"),
        (dict(stiffness="soft"), "expected numbers"),
        (dict(stiffness=1.0, spring=TABLE), "one of them"),
        (dict(spring={"polynomial": []}), "polynomial"),
        (dict(spring={"deflection": [0.0, 0.0], "torque": [0.0, 1.0]}), "increasing"),
        (dict(spring={"deflection": [0.0, 1.0], "torque": [0.0]}), "as many"),
        (dict(spring={"deflection": [0.0, np.inf], "torque": [0.0, 1.0]}), "finite"),
        (dict(spring=[[0, 1], [0, 1]]), "table or a polynomial"),
        (dict(motor=1), "True or False"),
        (dict(rest=np.nan), "rest"),
    ],
)
def test_what_is_refused(words, cause):
    with pytest.raises(pp.Error, match=cause):
        bar(**words)


def test_joints_that_turn_in_space_have_none():
    b = pp.Builder("ball")
    b.body("rod", mass=1.0, inertia=np.eye(3))
    with pytest.raises(pp.Error, match="rotates in space"):
        b.joint("ball", "spherical", "world", "rod", stiffness=1.0)


@pytest.mark.parametrize(
    ("joint", "words", "cause"),
    [
        ("knee", dict(stiffness=1.0, rotor=1.0), "no such joint"),
        ("hinge", dict(stiffness=1.0), "rotor is 0"),
        ("hinge", dict(rotor=1.0), "neither stiffness nor spring"),
        ("hinge", dict(stiffness=1.0, rotor=1.0, ratio=-1.0), "ratio"),
        ("hinge", dict(stiffness=-1.0, rotor=1.0), "0 or more"),
    ],
)
def test_what_cannot_be_elastic(joint, words, cause):
    with pytest.raises(pp.Error, match=cause):
        bar().elastic(joint, **words)
    b = bar()
    b.elastic("hinge", 1.0, 1.0)
    with pytest.raises(pp.Error, match="joint without"):
        b.elastic("hinge_spring", 1.0, 1.0)
