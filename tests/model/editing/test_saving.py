"""robot.save("x.urdf"), read again: the same robot to rounding, in the same order; and read by
Pinocchio."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp
from psiphi.io.urdf.ros_packages import descriptions
from psiphi.io.urdf.urdf_writer import rpy
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import from_rpy
from tests import zoo
from tests.oracles import reference

URDF_KINDS = ("revolute", "continuous", "prismatic", "spherical", "planar", "free")
NAMES = ("talos", "anymal", "ur5_robot", "tiago", "xarm7", "pr2")


def agree(ours: Model, again: Model, rtol: float = 1e-13) -> None:
    assert [j.name for j in ours.joints] == [j.name for j in again.joints]
    assert [b.name for b in ours.bodies] == [b.name for b in again.bodies]
    assert set(ours.frames) <= set(again.frames) and ours.mimics == again.mimics
    for name, frame in ours.frames.items():
        assert frame.body == again.frames[name].body
        np.testing.assert_allclose(
            again.frames[name].pose.matrix, frame.pose.matrix, rtol=0, atol=rtol, err_msg=name
        )
    for a, b in zip(ours.bodies, again.bodies, strict=True):
        assert a.mass == pytest.approx(b.mass, rel=rtol)
        np.testing.assert_allclose(b.com, a.com, rtol=0, atol=rtol)
        np.testing.assert_allclose(
            b.inertia, a.inertia, rtol=0, atol=rtol * max(1.0, np.abs(a.inertia).max())
        )
    for a, b in zip(ours.joints, again.joints, strict=True):
        np.testing.assert_allclose(b.pose.matrix, a.pose.matrix, rtol=0, atol=rtol)
        for word in (
            "axis",
            "lower",
            "upper",
            "velocity",
            "effort",
            "damping",
            "friction",
            "armature",
            "stiffness",
            "rest",
        ):
            np.testing.assert_array_equal(
                getattr(a, word), getattr(b, word), err_msg=f"{a.name} {word}"
            )
        assert a.kind == b.kind
    np.testing.assert_array_equal(ours.gravity_vector, again.gravity_vector)


def saved(robot, tmp_path, **options) -> pp.Robot:
    robot.save(tmp_path / "robot.urdf")
    return pp.load(tmp_path / "robot.urdf", **options)


@pytest.mark.parametrize("name", pp.robots.bundled())
def test_bundled_robots_come_back(name, tmp_path):
    robot = pp.load(name)
    again = saved(robot, tmp_path)
    agree(robot, again)
    assert [(s.link, s.kind, s.size, s.color) for s in again.shapes] == sorted(
        ((s.link, s.kind, s.size, s.color) for s in robot.shapes),
        key=lambda s: [x.link for x in again.shapes].index(s[0]),
    )


@pytest.mark.parametrize("name", NAMES)
def test_described_robots_come_back(name, tmp_path):
    if name not in descriptions():
        pytest.skip("example-robot-data is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = pp.load(descriptions()[name])
        agree(robot, saved(robot, tmp_path, allow_outside=True))
        agree(
            robot.with_gravity((0.1, 0, -3)),
            saved(robot.with_gravity((0.1, 0, -3)), tmp_path, allow_outside=True),
        )


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_come_back(seed, tmp_path):
    robot = pp.Robot.of(zoo.random_tree(seed, 8, URDF_KINDS, forest=True))
    again = saved(robot, tmp_path)
    agree(robot, again)
    rng = np.random.default_rng(seed)
    q, v, a = robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    tau = reference.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(
        reference.inverse_dynamics(again, q, v, a), tau, rtol=0, atol=1e-12 * np.abs(tau).max()
    )


def test_an_edited_robot_comes_back_and_pinocchio_reads_it(tmp_path):
    pin = pytest.importorskip("pinocchio")
    robot = (
        pp.load("panda")
        .lock("panda_finger_*")
        .attach(pp.Body.box(2.0, (0.1, 0.1, 0.1)), "panda_hand", (0, 0, 0.1))
    )
    agree(robot, saved(robot, tmp_path))
    peer = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    layout, q = pp.interop.pinocchio(robot, peer), robot.random(seed=0)
    theirs = pin.computeGeneralizedGravity(peer, peer.createData(), layout.to_q(q))
    np.testing.assert_allclose(layout.to_tau(robot.gravity(q)), theirs, rtol=0, atol=1e-11)


def test_pinocchio_reads_capsules(tmp_path):
    pin, robot = pytest.importorskip("pinocchio"), pp.load("ur5")
    assert any(shape.kind == "capsule" for shape in robot.shapes)
    robot.save(tmp_path / "robot.urdf")
    peer = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    seen = pin.buildGeomFromUrdf(peer, str(tmp_path / "robot.urdf"), pin.GeometryType.VISUAL)
    assert len(seen.geometryObjects) == len(robot.shapes)


def test_what_flies_in_its_file_flies_once(tmp_path):
    robot = pp.load("free_flyer")
    robot.save(tmp_path / "robot.urdf")
    for base in (None, "free"):
        agree(robot, pp.load(tmp_path / "robot.urdf", base=base))


def test_names_of_frames_and_joints_do_not_meet(tmp_path):
    robot = (
        pp.load("ur5")
        .with_frame("elbow", "forearm_link", (0, 0, 0.1))
        .with_frame("elbow_joint_", "tool")
    )
    agree(robot, saved(robot, tmp_path))


@pytest.mark.parametrize("kind", ["helical", "cylindrical", "universal"])
def test_what_urdf_cannot_say_is_refused(kind, tmp_path):
    robot = pp.robots.random_tree(1, kinds=kind)
    with pytest.raises(pp.ModelError, match=f"'joint1' is {kind}, which URDF cannot represent"):
        robot.save(tmp_path / "robot.urdf")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_what_mjcf_cannot_say_is_refused(kind, tmp_path):
    b = pp.Builder("ball")
    b.body("ball", mass=1.0, inertia=np.eye(3))
    b.joint("turn", kind, "world", "ball", effort=5.0)
    with pytest.raises(pp.ModelError, match=f"'turn' is {kind} and has an effort limit"):
        b.build().save(tmp_path / "robot.xml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", ["urdf", "xml"])
def test_a_limit_on_one_side_comes_back(end, tmp_path):
    b = pp.Builder("door")
    b.body("door", mass=1.0, inertia=np.eye(3))
    b.joint("hinge", "revolute", "world", "door", lower=-1.0, upper=np.inf)
    b.build().save(tmp_path / f"door.{end}")
    door = pp.load(tmp_path / f"door.{end}")
    assert door.lower.tolist() == [-1.0] and door.upper.tolist() == [np.inf]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(pp.ModelError, match="cannot write"):
        pp.load("ur5").save(tmp_path / "none" / "robot.urdf")


@pytest.mark.parametrize("tilt", [0.0, 1e-17, 1e-9, 1e-8, 1e-4, 1.0])
def test_angles_are_exact_where_the_pitch_is_a_quarter_turn(tilt):
    rng = np.random.default_rng(0)
    for _ in range(20):
        R = np.array(from_rpy(rng.uniform(-3, 3), np.pi / 2 - tilt, rng.uniform(-3, 3))).reshape(
            3, 3
        )
        back = np.array(from_rpy(*rpy(tuple(R.ravel())))).reshape(3, 3)
        np.testing.assert_allclose(back, R, rtol=0, atol=3e-15)


@pytest.mark.parametrize("end", ["xml", "urdf"])
def test_closed_systems_are_saved_with_their_loops(tmp_path, end):
    panda = pp.load("panda")
    q = panda.random(seed=3)
    robot = panda.with_frame("pin", "world", panda.frame_pose(q, "panda_link8"))
    v, tau = np.random.default_rng(0).standard_normal((2, robot.nv))
    for kind, words in (("hinge", {"axis": (1, 2, 0.5)}), ("ball", {})):
        system = pp.connect(robot, [pp.Loop(kind, "panda_link8", "pin", **words)])
        system.save(tmp_path / f"loop.{end}")
        again = pp.connect(
            pp.load(tmp_path / f"loop.{end}")
        )  # of a hinge MJCF has two connects, with a row that follows
        assert (
            again.nc == {"xml": {"hinge": 6, "ball": 3}, "urdf": {"hinge": 5, "ball": 3}}[end][kind]
        )
        still = system.project(q, v)[1]
        np.testing.assert_allclose(
            again.forward_dynamics(q, still, tau),
            system.forward_dynamics(q, still, tau),
            atol=1e-10,
        )
    with pytest.raises(pp.Error, match="distance"):
        pp.connect(robot, [pp.Loop("distance", "panda_link8", "pin", length=0.1)]).save(
            tmp_path / f"far.{end}"
        )
    with pytest.raises(pp.Error, match="baked"):
        pp.connect(robot.free("mass"), [pp.Loop("ball", "panda_link8", "pin")]).save(
            tmp_path / f"free.{end}"
        )


def test_joints_with_rotors_springs_or_no_motor_alone_are_read_by_others(tmp_path):
    pin = pytest.importorskip("pinocchio")
    builder = pp.Builder("arm")
    for parent, child in zip(("world", "a", "b"), "abc", strict=True):
        builder.body(child, mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        builder.joint(
            f"to {child}",
            "revolute",
            parent,
            child,
            axis=(0, 1, 0),
            **{"a": {"armature": 0.3}}.get(child, {}),
        )
    robot = builder.build().with_spring("to b", 2.0)
    robot.save(tmp_path / "arm.urdf")
    assert pin.buildModelFromUrdf(str(tmp_path / "arm.urdf")).nv == 3
    agree(robot, pp.load(tmp_path / "arm.urdf"))


def test_what_was_joined_from_several_goes_into_mjcf(tmp_path):
    arm, box = pp.load("ur5"), pp.Body.box(2.0, (0.1, 0.1, 0.4))
    hands = [(arm, None, "tool"), (arm, (1.0, 0, 0), "tool")]
    cell = pp.grasp(hands, box, at=[(0, 0, 0.2), (0, 0, -0.2)])
    cell.save(tmp_path / "cell.xml")
    again = pp.connect(pp.load(tmp_path / "cell.xml"))
    q, (v, tau) = cell.random(seed=0), np.random.default_rng(0).standard_normal((2, cell.nv))
    np.testing.assert_allclose(
        again.forward_dynamics(q, v, tau), cell.forward_dynamics(q, v, tau), rtol=1e-9, atol=1e-9
    )
    with pytest.raises(pp.Error, match="joined from several"):
        cell.save(tmp_path / "cell.urdf")
    pushed = [pp.Contact("point", friction=0.5, normal=(0, 0, 1)), "rigid"]
    with pytest.raises(pp.Error, match="one-sided"):
        pp.grasp(hands, box, at=[(0, 0, 0.2), (0, 0, -0.2)], contacts=pushed).save(
            tmp_path / "push.xml"
        )


def test_a_free_joint_whose_zero_is_elsewhere_is_told(tmp_path):
    """MuJoCo's q is the pose in the world: postures are turned, and who gives q of his own is
    warned. URDF keeps the zero."""
    b = pp.Builder("flyer")
    b.body("bus", mass=2.0, com=(0.1, 0, 0), inertia=(0.1, 0, 0, 0.2, 0, 0.25))
    b.joint("fly", "free", "world", "bus", xyz=(1, 2, 3), rpy=(0.3, -0.2, 0.5))
    robot = b.build().with_posture("there", [0.1, 0.2, 0.3, 0, 0, 0.6, 0.8])
    there = robot.frame_pose(robot.postures["there"], "bus")
    with pytest.warns(
        pp.ModelWarning,
        match="'fly': the zero of q is not at.*in MJCF q is the pose in the world",
    ):
        robot.save(tmp_path / "flyer.xml")
    again = pp.load(tmp_path / "flyer.xml")
    np.testing.assert_allclose(again.frame_pose(again.postures["there"], "bus"), there, atol=1e-14)
    np.testing.assert_allclose(again.postures["there"][:3], there[:3, 3], atol=1e-14)
    robot.save(tmp_path / "flyer.urdf")
    agree(robot, pp.load(tmp_path / "flyer.urdf"))


@pytest.mark.parametrize("end", ["urdf", "xml"])
def test_loops_of_one_name_are_told_apart(tmp_path, end):
    """Two of one linkage on a bench, a loop that is given twice, and one that ends where another
    does."""
    b = pp.Builder("linkage")
    for name, parent, x in (
        ("crank", "world", 0.0),
        ("coupler", "crank", 0.3),
        ("rocker", "world", 0.6),
    ):
        b.body(name, mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
        b.joint(f"to_{name}", "revolute", parent, name, xyz=(x, 0, 0), axis=(0, 1, 0))
    b.frame("end", "coupler", xyz=(0.3, 0, 0))
    loops = (
        pp.Loop("ball", "end", "rocker", name="ring"),
        pp.Loop("ball", "end", "rocker", name="ring"),
        pp.Loop("weld", "end", "crank"),
    )
    one = replace(pp.Robot.of(b.build()), loops=loops)
    two = one.attach(one, "world", (0, 1, 0), prefix="b_")
    assert [loop.name for loop in two.loops] == ["ring", "ring", "", "b_ring", "b_ring", ""]
    two.save(tmp_path / f"two.{end}")
    again = pp.load(tmp_path / f"two.{end}")
    again.save(tmp_path / f"again.{end}")
    for robot in (again, pp.load(tmp_path / f"again.{end}")):
        names = [loop.name for loop in robot.loops]
        assert len(names) == 6 == len(set(names)) and {"ring", "ring_", "b_ring", "b_ring_"} <= set(
            names
        )
        assert [loop.kind for loop in robot.loops] == [loop.kind for loop in two.loops]
        q = two.random(seed=0)
        for mine, theirs in zip(two.loops, robot.loops, strict=True):
            for a, b_ in ((mine.first, theirs.first), (mine.second, theirs.second)):
                np.testing.assert_allclose(
                    reference.frame_pose(robot, q, b_).translation,
                    reference.frame_pose(two, q, a).translation,
                    atol=1e-12,
                )


@pytest.mark.parametrize(
    ("words", "told"),
    [(dict(lower=0.2, upper=0.2), "limit are equal"), (dict(effort=0.0), "limit is zero")],
)
def test_limits_without_room_are_told_in_mjcf(tmp_path, words, told):
    """MuJoCo takes such a range for none; URDF keeps it."""
    b = pp.Builder("bar")
    b.body("bar", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0, 0, 0.1, 0, 0.1))
    b.joint("hinge", "revolute", "world", "bar", axis=(0, 1, 0), **words)
    robot = b.build()
    with pytest.warns(pp.ModelWarning, match=rf"'hinge': .*{told}, which MuJoCo does not support"):
        robot.save(tmp_path / "bar.xml")
    again = pp.load(tmp_path / "bar.xml")
    assert again.lower[0] == -np.inf and again.effort[0] == np.inf
    kept = saved(robot, tmp_path)
    assert all(
        (getattr(kept, word) == getattr(robot, word)).all() for word in ("lower", "upper", "effort")
    )
