"""The verbs that change a robot: each gives a new one, names what is missing, and keeps frames,
shapes and postures."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.body_matrices import spatial_inertia
from tests.oracles import reference


def hanging() -> pp.Robot:
    """A pendulum on the world itself."""
    b = pp.Builder("hanging")
    b.body("rod", mass=1.0, com=(0, 0, -0.5))
    b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    return b.build()


def torque(robot: pp.Robot, q) -> np.ndarray:
    return robot.inverse_dynamics(q, np.ones(robot.nv), np.ones(robot.nv))


def test_a_locked_robot_is_the_whole_one_held_still():
    panda = pp.load("panda")
    q, fingers = panda.random(seed=1), panda.select("panda_finger_*")
    arm = panda.lock("panda_finger_*", at=q)
    move = np.ones(9)
    move[fingers] = 0.0
    np.testing.assert_allclose(
        torque(arm, q[:7]), panda.inverse_dynamics(q, move, move)[:7], rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        arm.frame_pose(q[:7], "panda_leftfinger"),
        panda.frame_pose(q, "panda_leftfinger"),
        atol=1e-14,
    )
    assert arm.shapes == panda.shapes and panda.nv == 9
    assert panda.lock({"panda_finger_joint1": q[7], "panda_finger_joint2": q[8]}) == arm


def test_lock_of_a_floating_base_is_where_it_stood():
    g1 = pp.load("g1")
    q = g1.random(seed=2)
    stood = g1.lock("root_joint", at=q)
    assert stood.nv == 29
    np.testing.assert_allclose(
        stood.frame_pose(q[7:], "left_foot"), g1.frame_pose(q, "left_foot"), atol=1e-12
    )
    np.testing.assert_allclose(stood.gravity(q[7:]), g1.gravity(q)[6:], atol=1e-11)
    again = stood.with_base("free")
    assert again.joint_names == g1.joint_names
    np.testing.assert_allclose(again.gravity(q), g1.gravity(q), atol=1e-11)


def test_a_payload_weighs_what_it_weighs():
    ur5 = pp.load("ur5")
    load = pp.Body.box(3.0, (0.1, 0.2, 0.3), name="load", com=(0.02, 0, 0))
    heavy = ur5.attach(load, "tool", [(0, 0, 0.1), (0.3, 0.2, 0.1)])
    q = ur5.random(seed=3)
    center = heavy.frame_pose(q, "load") @ [0.02, 0, 0, 1]
    arm = center[:3] - ur5.frame_pose(q, "tool")[:3, 3]
    weight = np.array([0, 0, -3.0 * 9.81])
    held = ur5.bias(q, np.zeros(6), f_ext={"tool": np.concatenate([np.cross(arm, weight), weight])})
    np.testing.assert_allclose(heavy.gravity(q), held, atol=1e-12)
    assert heavy.shapes[-1].link == "load" and heavy.shapes[-1].size == (0.1, 0.2, 0.3)


def test_an_arm_on_a_flying_bus():
    bus = pp.Builder("bus", gravity=(0, 0, 0))
    bus.body("bus", mass=100.0, inertia=(20, 0, 0, 20, 0, 20))
    flyer = bus.build(base="free").attach(pp.load("ur5"), "bus", (0.5, 0, 0), prefix="arm_")
    assert flyer.nv == 12 and flyer.gravity_vector.tolist() == [0, 0, 0]
    a = flyer.forward_dynamics(flyer.neutral(), np.zeros(12), np.r_[np.zeros(6), np.ones(6)])
    h = flyer.momentum(flyer.neutral(), a)  # at rest: the rate of the momentum
    np.testing.assert_allclose(h, 0.0, atol=1e-9)
    assert flyer.mass == pytest.approx(
        100.0 + 18.4, abs=4.0
    )  # with the base link, which a bolted arm does not move


def test_a_robot_that_flies_beside_another():
    """A floating base stays one: its free joint hangs on the frame, and moves it as it is said."""
    both = pp.load("acrobot").attach(pp.load("ur5", base="free"), "world", (1, 0, 0), prefix="fly_")
    assert both.nv == 2 + 12 and both.joint("fly_root_joint").parent == -1
    riding = hanging().attach(hanging().with_gravity((0, 0, 0)), "rod", (0, 0, -1), prefix="b_")
    q, v, a = np.array([0.3, -0.4]), np.array([1.0, 2.0]), np.array([0.5, -1.0])
    np.testing.assert_allclose(
        riding.inverse_dynamics(q, v, a), reference.inverse_dynamics(riding, q, v, a), atol=1e-12
    )


def test_a_tool_on_a_joint_of_its_own():
    ur5 = pp.load("ur5")
    wheel = pp.Body.cylinder(0.5, 0.05, 0.02, name="wheel")
    joint = dict(kind="revolute", name="spindle", axis=(0, 0, 1), effort=2.0, armature=1e-4)
    spinning = ur5.attach(wheel, "tool", joint=joint)
    assert spinning.joint_names[-1] == "spindle" and spinning.effort[-1] == 2.0 and spinning.nv == 7
    still = spinning.lock("spindle")
    q = ur5.random(seed=4)
    np.testing.assert_allclose(torque(still, q), torque(ur5.attach(wheel, "tool"), q), atol=1e-12)


def test_cutting_and_joining_again():
    flyer = pp.load("free_flyer")
    left = flyer.subtree("left_base_link")
    ur5 = pp.load("ur5", gravity=(0, 0, 0))
    q = ur5.random(seed=5)
    np.testing.assert_allclose(torque(left, q), torque(ur5, q), atol=1e-12)
    rest = flyer.without("left_base_link")
    pose = flyer.frames["left_base_link"].pose
    whole = rest.attach(left, flyer.bodies[0].name, pose)
    assert sorted(whole.joint_names) == sorted(flyer.joint_names)
    q = flyer.random(seed=6)
    mixed = whole.neutral()
    for joint in whole.joints:
        mixed[joint.q_slice] = q[flyer.joint(joint.name).q_slice]
    np.testing.assert_allclose(whole.center_of_mass(mixed), flyer.center_of_mass(q), atol=1e-12)
    assert len(whole.shapes) == len(flyer.shapes)


def test_a_subtree_that_flies():
    hand = pp.load("panda").subtree("panda_hand", base="free")
    assert hand.nv == 8 and hand.joint_names[0] == "root_joint"
    np.testing.assert_allclose(
        spatial_inertia(hand.bodies[0])[3:, 3:], np.eye(3) * hand.bodies[0].mass
    )


def forest() -> pp.Robot:
    """A welded root with an arm, an arm on the world itself, a mark on the world, and a posture."""
    b = pp.Builder("forest")
    for name, joint, parent in (
        ("table", None, ""),
        ("left", "j1", "table"),
        ("right", "j2", "world"),
        ("tip", "j3", "left"),
    ):
        b.body(name, mass=1.0, com=(0.1, 0.2, 0.0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        if joint:
            b.joint(joint, "revolute", parent, name, xyz=(0.3, 0.1, 0.0), axis=(0, 1, 0))
    b.frame("mark", "world", (1, 2, 3))
    return pp.Robot.of(b.build()).with_posture("up", {"j1": 0.1, "j2": 0.2, "j3": 0.3})


def test_joints_keep_their_order_where_a_base_moves_flies_or_is_written(tmp_path):
    """What is added carries a root: it stands where that root stood, so that q and v mean what they
    meant."""
    robot = forest()
    assert robot.joint_names == ("j1", "j3", "j2")
    robot.save(tmp_path / "forest.urdf")
    read = pp.load(tmp_path / "forest.urdf")
    flying = robot.with_base("free")
    assert (
        read.joint_names
        == robot.with_base(pose=pp.Pose(translation=np.array([0, 0, 1]))).joint_names
        == robot.joint_names
    )
    assert flying.joint_names == ("root_joint", "j1", "j3", "j2")
    assert (
        read.with_base("free").joint_names[1:] == robot.joint_names
    )  # the mark is a link of the file, and does not fly
    np.testing.assert_array_equal(flying.postures["up"][7:], robot.postures["up"])
    assert "mark" not in robot.subtree("left").frames and "mark" in robot.without("right").frames


def test_gravity_inertia_frames_and_base():
    ur5 = pp.load("ur5")
    q = ur5.random(seed=7)
    np.testing.assert_allclose(
        ur5.with_gravity((0, 0, -1.62)).gravity(q), ur5.gravity(q) * 1.62 / 9.81, atol=1e-12
    )
    same = ur5.with_inertia("wrist_3_link", ur5.bodies[-1])
    assert "tool" in same.frames
    heavier = ur5.with_inertia("forearm_link", mass=ur5.bodies[2].mass + 1.0)
    assert heavier.mass == pytest.approx(ur5.mass + 1.0)
    turned = ur5.with_base(pose=[(1, 0, 0), (np.pi, 0, 0)])  # on the ceiling
    np.testing.assert_allclose(
        turned.gravity(q), ur5.with_gravity((0, 0, 9.81)).gravity(q), atol=1e-12
    )
    assert turned.with_base(pose=[(1, 0, 0), (np.pi, 0, 0)]).frame_pose(q, "tool")[
        0, 3
    ] == pytest.approx(ur5.frame_pose(q, "tool")[0, 3] + 2.0)
    assert (
        pp.load("g1").with_base("fixed", pose=(0, 0, 1)).frames["pelvis"].pose.translation[2] == 1.0
    )


def test_postures_come_along():
    robot = pp.load("panda").with_posture(
        "ready", {"panda_joint4": -1.5, "panda_finger_joint1": 0.03}
    )
    assert robot.postures["ready"][3] == -1.5 and robot.with_posture(
        "zero", robot.neutral()
    ).postures.keys() == {
        "ready",
        "zero",
    }
    arm = robot.lock("panda_finger_*", at="ready")
    assert arm.postures["ready"].tolist() == [0, 0, 0, -1.5, 0, 0, 0]
    pose = arm.frame_pose(arm.postures["ready"], "panda_leftfinger")
    np.testing.assert_allclose(
        pose, robot.frame_pose(robot.postures["ready"], "panda_leftfinger"), atol=1e-14
    )
    assert (
        pickle.loads(pickle.dumps(arm)).postures["ready"].tolist() == arm.postures["ready"].tolist()
    )
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(arm)).postures["ready"][0] = 1.0


def test_a_subtree_that_flies_does_not_stand_where_the_base_stood():
    """Both bases are called root_joint: the pelvis's place in a posture is none of the leg's."""
    robot = pp.load("g1")
    up = robot.with_posture("up", {"root_joint": (1, 2, 3, 0, 0, 0.6, 0.8), "left_knee_joint": 0.5})
    leg = up.subtree("left_hip_pitch_link", base="free")
    assert leg.joint_names[0] == "root_joint" and leg.postures["up"][:7].tolist() == [
        0,
        0,
        0,
        0,
        0,
        0,
        1,
    ]
    assert leg.postures["up"][leg.select("left_knee_joint", of="q")].tolist() == [0.5]


def test_a_follower_of_a_locked_joint_is_told():
    panda = pp.load("panda")
    assert panda.mimics
    (follower, mimic), *_ = panda.mimics.items()
    with pytest.warns(pp.ModelWarning, match="mimic dropped"):
        robot = panda.lock(mimic.joint)
    assert not robot.mimics and any(follower in line for line in robot.report)


def test_builder_goes_on_from_a_robot():
    b = pp.Builder(pp.load("ur5"))
    b.body("gripper", mass=0.5, inertia=(1e-3, 0, 0, 1e-3, 0, 1e-3))
    b.joint("grip", "fixed", parent="wrist_3_link", child="gripper")
    robot = b.build()
    assert (
        robot.mass == pytest.approx(pp.load("ur5").mass + 0.5)
        and robot.shapes == pp.load("ur5").shapes
    )


def test_what_cannot_be_moved_may_be_locked_as_it_is_read():
    """A finger without mass: refused, unless it is fixed before anybody asks it to move."""
    inertial = (
        '<inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" '
        'ixz="0" iyz="0"/></inertial>'
    )
    hinges = (
        '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis '
        'xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    )
    text = f"""<robot name="r"><link name="base"/><link name="hand">{inertial}</link><link name="finger"/>
        {hinges.format("wrist", "base", "hand")}{hinges.format("grip", "hand", "finger")}</robot>"""  # noqa: E501
    with pytest.raises(pp.SingularError, match=r"'grip'.*no force.*lock=joint"):
        pp.load(text)
    with pytest.raises(pp.SingularError, match="'grip'"):
        pp.load(text, lock="wrist")
    robot = pp.load(text, lock="grip")
    assert robot.joint_names == ("wrist",) and "finger" in robot.frames
    np.testing.assert_allclose(robot.mass_matrix([0.3]), [[0.1]])


def test_load_takes_the_edits():
    robot = pp.load(
        "panda",
        lock={"panda_finger_joint1": 0.01, "panda_finger_joint2": 0.01},
        gravity=(0, 0, -1.6),
        frames={"tip": ("panda_hand", (0, 0, 0.1)), "wrist": "panda_link7"},
    )
    assert (
        robot.nv == 7
        and {"tip", "wrist"} <= robot.frames.keys()
        and robot.gravity_vector[2] == -1.6
    )


def test_vectors_of_joints():
    g1 = pp.load("g1")
    assert g1.coordinate_names[:8] == (*(f"root_joint.{i}" for i in range(7)), g1.joint_names[1])
    assert len(g1.coordinate_names) == len(g1.lower) == len(g1.upper) == g1.nq
    for vector in (
        g1.velocity_names,
        g1.effort,
        g1.velocity_limit,
        g1.damping,
        g1.friction,
        g1.armature,
    ):
        assert len(vector) == g1.nv
    assert np.isinf(g1.effort[:6]).all() and np.isinf(g1.lower[:7]).all()
    with pytest.warns(DeprecationWarning, match=r"Model.velocity is now Robot.velocity_limit"):
        assert g1.velocity is g1.velocity_limit
    assert g1.lower[g1.select("left_knee_joint", of="q")] == g1.joint("left_knee_joint").lower
    with pytest.raises(ValueError, match="read-only"):
        g1.lower[0] = 0.0


REFUSED = [
    (lambda r: r.lock("elbo_joint"), "no joints 'elbo_joint'.*elbow_joint"),
    (lambda r: r.lock("arm_*"), "no joints 'arm_\\*'"),
    (lambda r: r.lock(3), "joints is 3"),
    (lambda r: r.lock("elbow_joint", at=[1.0]), "at has shape"),
    (lambda r: r.lock("elbow_joint", at="tucked"), "no posture 'tucked'.*one of 'home'"),
    (lambda r: pp.load("acrobot").lock("*", at="home"), "no posture 'home'.*with_posture"),
    (lambda r: r.lock("elbow_joint", at={"elbow": 1.0}), "no joint 'elbow'"),
    (lambda r: r.lock("elbow_joint", at=[np.nan] * 6), "not finite"),
    (lambda r: r.lock({"elbow_joint": 1.0}, at=[0] * 6), "give one of them"),
    (lambda r: r.subtree("elbow"), "no frame 'elbow'"),
    (lambda r: r.subtree("world"), "not a subtree"),
    (lambda r: r.subtree("forearm_link", base="flying"), "base is 'flying'"),
    (lambda r: r.without("base_link"), "nothing of ur5 is left"),
    (lambda r: r.without("elbow"), "no link, joint or frame 'elbow'"),
    (lambda r: r.attach(3, "tool"), "cannot be attached"),
    (lambda r: r.attach(r, "tool"), "both have .*prefix"),
    (lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tol"), "no frame 'tol'.*tool"),
    (lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tool", (1, 2)), "pose is"),
    (lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tool", joint="hinge"), "no joint kind 'hinge'"),
    (
        lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tool", joint=dict(kind="revolute", stiff=1)),
        "stiff",
    ),
    (
        lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tool", joint=dict(kind="fixed", parent="x")),
        "'parent'",
    ),
    (
        lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tool", joint=dict(name="tool")),
        "already has a 'tool'",
    ),
    (
        lambda r: r.attach(
            pp.Body.box(1, (1, 1, 1)), "tool", joint=dict(kind="revolute", name=["a"])
        ),
        "name",
    ),
    (lambda r: r.attach(pp.Body.box(1, (1, 1, 1)), "tool", prefix=3), "prefix is 3"),
    (lambda r: r.attach(hanging(), "tool", joint="revolute", prefix="a_"), "no single root link"),
    (lambda r: r.with_frame("tool", "tool"), "already has a link, joint or frame 'tool'"),
    (lambda r: r.with_frame("tip", "hand"), "no frame 'hand'"),
    (lambda r: r.with_frame("", "tool"), "name"),
    (lambda r: r.with_gravity((0, 1)), r"gravity is \(0, 1\), expected 3 numbers"),
    (lambda r: r.with_base("flying"), "base is 'flying'"),
    (lambda r: r.with_base(), "nothing to change"),
    (lambda r: r.with_base("free", pose=(0, 0, 1)), "free base"),
    (lambda r: hanging().with_base("free"), "has no base"),
    (lambda r: r.with_inertia("hand", mass=1), "no link 'hand'"),
    (lambda r: r.with_inertia("forearm_link"), "nothing to change"),
    (lambda r: r.with_inertia("forearm_link", mass=-1), "mass is -1"),
    (lambda r: r.with_inertia("wrist_3_link", mass=0, inertia=(0,) * 6), "no force is needed"),
    (lambda r: r.with_posture("x", {"elbow": 1}), "no joint 'elbow'"),
    (lambda r: r.select("elbow"), "no joints 'elbow'"),
    (lambda r: r.select("elbow_joint", of="tau"), "of is 'tau'"),
    (lambda r: replace(r, bodies=r.bodies[::-1]).lock("elbow_joint"), "replaced by hand"),
    (lambda r: pp.load("two", frames=3), "no bundled robot"),
    (lambda r: pp.load("ur5", frames=3), "frames is 3"),
    (lambda r: pp.load("ur5", frames={"a": 3}), "frames\\['a'\\]"),
    (lambda r: pp.load("ur5", srdf="<robot/>"), "group_state"),
    (lambda r: r.save("x.sdf"), "ends in"),
]


@pytest.mark.parametrize(("wrong", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(wrong, words):
    with pytest.raises(pp.Error, match=words):
        wrong(pp.load("ur5"))


def test_a_closed_system_is_edited_by_its_parts():
    with pytest.raises(pp.ModelError, match="joined"):
        pp.connect(dict(a=hanging(), b=hanging()), [pp.Loop("ball", "a/rod", "b/rod")]).robot.lock(
            "a/hinge"
        )


def test_a_builder_goes_on_with_loops_and_gears():
    """Those of the robot stay; one whose end was taken away is told."""
    b = pp.Builder("linkage")
    for name in ("crank", "rocker"):
        b.body(name, mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        b.joint(f"to_{name}", "revolute", "world", name, axis=(0, 1, 0))
    b.frame("end", "crank")
    loops, gears = (
        (pp.Loop("ball", "end", "rocker", name="ring"),),
        (pp.Gear("to_rocker", {"to_crank": (1.0, 2.0)}, name="cam"),),
    )
    robot = replace(b.build(), loops=loops, gears=gears)
    more = pp.Builder(robot)
    more.frame("tip", "rocker", (0, 0, 1))
    built = more.build()
    assert built.loops == loops and built.gears == gears and "tip" in built.frames
    assert built.with_gravity((0, 0, 0)).loops == loops
    with pytest.warns(pp.ModelWarning, match=r"gears \('cam'\) do not act in pp.connect"):
        assert pp.connect(built).nv == 2
    less = pp.Builder(robot)
    del less.frames["end"]
    with pytest.warns(pp.ModelWarning, match="loop 'ring'.*one of its frames is gone"):
        assert less.build().loops == ()
