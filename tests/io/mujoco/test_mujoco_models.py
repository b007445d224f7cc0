"""MJCF beside MuJoCo itself: forward dynamics, frames, closed loops, what is listed, and back into
a file."""

from __future__ import annotations

import glob
import os
import warnings

import numpy as np
import pytest

import psiphi as pp
from tests.io.mujoco.mjcf_scenes import FOUR_BAR, ODD, PENDULUM, SCENES, SEVERAL
from tests.oracles import reference

mujoco = pytest.importorskip("mujoco")
WHEEL = sorted(
    glob.glob(os.path.join(os.path.dirname(mujoco.__file__), "**", "*.xml"), recursive=True)
)
BIT = mujoco.mjtDisableBit
PLAIN = int(BIT.mjDSBL_CONSTRAINT | BIT.mjDSBL_ACTUATION | BIT.mjDSBL_SPRING | BIT.mjDSBL_DAMPER)


def of_file(path: str):
    try:
        return mujoco.MjModel.from_xml_path(path)
    except ValueError as error:  # a mesh that the wheel leaves out
        pytest.skip(str(error))


def plain(peer):
    """Without contacts, limits, friction, equalities, actuators, springs and dampers."""
    peer.opt.disableflags |= PLAIN
    peer.opt.density = peer.opt.viscosity = 0.0
    peer.body_gravcomp[:] = 0.0
    return peer


def load(peer) -> pp.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pp.ModelWarning)
        return pp.from_mujoco(peer)


def agree(robot: pp.Robot, peer, seeds: int = 5, forward: bool = False) -> None:
    """qacc of mj_forward, and where every body and site is."""
    layout, data, rng = (
        pp.interop.mujoco(robot, peer),
        mujoco.MjData(plain(peer)),
        np.random.default_rng(0),
    )
    for _ in range(seeds):
        q, v, push = robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
        data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
        data.qfrc_applied[:] = layout.to_tau(push, q)
        mujoco.mj_forward(peer, data)
        theirs = layout.from_a(data.qacc, data.qpos, data.qvel)
        ours = (
            robot.forward_dynamics(q, v, push)
            if forward
            else reference.forward_dynamics(robot, q, v, push)
        )
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * max(1.0, np.abs(theirs).max()))
        for i in range(1, peer.nbody):
            place = reference.frame_pose(robot, q, peer.body(i).name or f"body{i}")
            np.testing.assert_allclose(place.translation, data.xpos[i], rtol=0, atol=1e-12)
            np.testing.assert_allclose(place.rotation.ravel(), data.xmat[i], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCENES)
def test_forward_dynamics_is_mujocos(name):
    peer = mujoco.MjModel.from_xml_string(SCENES[name])
    agree(load(peer), peer, forward=name in ("several", "flying"))


@pytest.mark.parametrize("path", WHEEL, ids=os.path.basename)
def test_the_models_of_the_wheel(path):
    peer = of_file(path)
    if peer.nbody == 1:
        with pytest.raises(pp.ModelError, match="no links"):
            load(peer)
    else:
        agree(load(peer), peer, 2)


def test_what_a_joint_says():
    robot = pp.from_mujoco(PENDULUM)
    assert (
        robot.name == "pendulum"
        and robot.joint_names == ("hinge",)
        and {"rod", "tip", "hinge"} <= robot.frames.keys()
    )
    assert (robot.damping, robot.friction, robot.armature, robot.effort) == (0.1, 0.2, 0.05, 10.0)
    assert np.rad2deg(robot.lower) == pytest.approx(-90) and np.rad2deg(
        robot.upper
    ) == pytest.approx(45)
    assert robot.postures["up"] == 1.5 and np.rad2deg(robot.postures["qpos0"]) == pytest.approx(20)
    assert [shape.role for shape in robot.shapes] == ["visual", "collision"]
    for shape in robot.shapes:
        assert (shape.kind, shape.link, shape.size) == ("box", "rod", (0.2, 0.1, 0.4))


def test_names_are_kept_and_made_unique():
    robot = load(SEVERAL)
    assert robot.joint_names == ("x", "y", "yaw", "roll", "a", "b", "joint6")
    assert "tool_site" in robot.frames and "tool" in robot.frames


def test_files_text_specs_and_loading(tmp_path):
    (tmp_path / "scene.xml").write_text(
        f"<?xml version='1.0'?>\n<!-- <robot> -->{FOUR_BAR}", encoding="utf-8"
    )
    by_file = pp.load(tmp_path / "scene.xml")
    assert (
        by_file == pp.load(FOUR_BAR) == pp.from_mujoco(mujoco.MjSpec.from_string(FOUR_BAR))
        and by_file.nv == 3
    )
    assert pp.load(FOUR_BAR, gravity=(0, 0, 0), lock="crank", frames={"here": "rocker"}).nv == 2
    assert pp.load(PENDULUM, base="fixed").nv == 1


def closed(name: str):
    peer = mujoco.MjModel.from_xml_string(SCENES[name])
    robot = load(peer)
    return peer, robot, pp.connect(robot, mimic=bool(robot.mimics))


@pytest.mark.parametrize("name", ["four_bar", "welded", "coupled"])
def test_loops_are_those_of_mujoco(name):
    """M a + bias + J* f = tau, J a = -dJ/dt v with MuJoCo's M, bias and J; the last by differences
    of its J along v."""
    peer, robot, system = closed(name)
    layout = pp.interop.mujoco(robot, peer)
    q = system.assemble(robot.postures["qpos0"])
    rng = np.random.default_rng(1)
    q, v = system.project(q, rng.standard_normal(system.nv))
    tau = rng.standard_normal(system.nv)
    peer.opt.disableflags |= PLAIN & ~int(BIT.mjDSBL_CONSTRAINT) | int(
        BIT.mjDSBL_CONTACT | BIT.mjDSBL_LIMIT
    )
    peer.opt.jacobian = 0  # dense

    def rows(q, v):
        data = mujoco.MjData(peer)
        data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
        mujoco.mj_forward(peer, data)
        return data, data.efc_J.reshape(data.nefc, peer.nv).copy(), data.efc_pos.copy()

    data, J, error = rows(q, v)
    assert J.size and np.abs(error).max() < 1e-10 and np.abs(J @ data.qvel).max() < 1e-10
    h = 1e-5
    there, J_there, _ = rows(robot.integrate(q, h * v), v)
    back, J_back, _ = rows(robot.integrate(q, -h * v), v)
    M = np.zeros((peer.nv, peer.nv))
    mujoco.mj_fullM(peer, data, M)
    rate = (J_there @ there.qvel - J_back @ back.qvel) / (2 * h) - J @ _free_rate(
        layout, robot, q, v
    )
    push = layout.to_tau(tau, q)
    free = np.linalg.solve(M, push - data.qfrc_bias)
    X = J @ np.linalg.solve(M, J.T)
    a = free + np.linalg.solve(M, J.T @ (np.linalg.pinv(X, rcond=1e-10) @ (-rate - J @ free)))
    np.testing.assert_allclose(
        layout.to_a(system.forward_dynamics(q, v, tau), q, v),
        a,
        rtol=0,
        atol=2e-6 * np.abs(a).max(),
    )


def _free_rate(layout, robot, q, v):
    """d/dt of MuJoCo's velocity while ours stays: what differences of J v along v hold besides
    dJ/dt v."""
    return layout.to_a(np.zeros(robot.nv), q, v)


def test_what_has_no_counterpart_is_listed():
    with pytest.warns(pp.ModelWarning):
        robot = pp.from_mujoco(ODD)
    report = "\n".join(robot.report)
    for words in (
        "armature of the translations of a free joint: left out; that of its rotations "
        "is used ('fly')",
        "springs of ball and free joints (stiffness): left out ('ball')",
        "tendons, with their springs, dampers and armature: left out ('string')",
        "fluid forces",
        "gravity compensation: left out ('a')",
        "limits of ball joints: left out ('ball')",
        "mocap bodies: welded to the world ('hand')",
        "other than motors on joints: left out ('servo')",
        "joints without an actuator",
        "geoms that collide",
        "equality 'curve': couples 'bend' to 'lead' by a polynomial: it is in robot.gears",
        "equality 'still': locks joint 'lead'",
        "equality 'off': is not active",
        "equality 'taut': is an equality of tendons",
    ):
        assert words in report, words
    assert not robot.loops and not robot.mimics


@pytest.mark.parametrize("name", SCENES)
def test_saved_and_read_again(name, tmp_path):
    robot = load(SCENES[name])
    robot.save(tmp_path / "again.xml")
    again = pp.load(tmp_path / "again.xml")
    assert again.joint_names == robot.joint_names and len(again.loops) == len(robot.loops)
    assert again.mimics.keys() == robot.mimics.keys()
    for word in (
        "lower",
        "upper",
        "effort",
        "damping",
        "friction",
        "armature",
        "stiffness",
        "rest",
    ):
        np.testing.assert_allclose(getattr(again, word), getattr(robot, word), rtol=1e-12, atol=0)
    for posture, q in robot.postures.items():
        if posture != "qpos0":
            np.testing.assert_allclose(again.postures[posture], q, atol=1e-12)
    rng = np.random.default_rng(2)
    q, v, a = robot.random(rng), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    tau = reference.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(
        reference.inverse_dynamics(again, q, v, a), tau, rtol=0, atol=1e-9 * np.abs(tau).max()
    )
    peer = mujoco.MjModel.from_xml_string(SCENES[name])
    named = [peer.body(i).name for i in range(1, peer.nbody)] + [
        peer.site(i).name for i in range(peer.nsite)
    ]
    for frame in filter(None, named):
        ours, theirs = reference.frame_pose(robot, q, frame), reference.frame_pose(again, q, frame)
        np.testing.assert_allclose(theirs.matrix, ours.matrix, rtol=0, atol=1e-12, err_msg=frame)


@pytest.mark.parametrize("name", ["ur5", "panda", "g1", "free_flyer", "anymal_c"])
def test_bundled_robots_in_mujoco(name, tmp_path):
    robot = pp.load(name)
    robot.save(tmp_path / "robot.xml")
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    layout, data, rng = (
        pp.interop.mujoco(robot, peer),
        mujoco.MjData(plain(peer)),
        np.random.default_rng(3),
    )
    q, v = robot.random(rng), rng.standard_normal(robot.nv)
    data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
    mujoco.mj_forward(peer, data)
    a = layout.from_a(data.qacc, data.qpos, data.qvel)
    bias = reference.bias(robot, q, v)
    residual = reference.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(residual, 0.0, atol=1e-9 * max(1.0, np.abs(bias).max()))
    assert load(peer).joint_names == robot.joint_names


def test_kinds_of_several_coordinates_in_mujoco(tmp_path):
    robot = pp.robots.random_tree(
        6, seed=3, kinds=["planar", "universal", "cylindrical", "spherical", "prismatic"]
    )
    robot.save(tmp_path / "robot.xml")
    peer = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    agree(robot, peer, 2)


def hung(moments, turn=None):
    """One body on a hinge, of principal moments along turned axes."""
    b, R = pp.Builder("hung"), np.eye(3) if turn is None else turn
    b.body(
        "plate",
        mass=1.0,
        com=(1, 0, 0),
        inertia=R @ np.diag(np.asarray(moments, dtype=float)) @ R.T,
    )
    b.joint("hinge", "revolute", "world", "plate", axis=(0, 1, 0))
    return b.build()


def moved(kind, **words):
    """One body on a joint that slides along axes of the body."""
    b = pp.Builder("moved")
    b.body("box", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0, 0, 0.2, 0, 0.25))
    b.joint("move", kind, "world", "box", **words)
    return b.build()


def test_numbers_along_axes_that_turn(tmp_path, rng):
    """What MJCF can say of them is what MuJoCo does: one damping for all slides, and rotors and
    friction of the turns."""
    cases = {
        "planar": dict(damping=(0.5, 0.3, 0.3), armature=(0.2, 0, 0), friction=(0.1, 0, 0)),
        "free": dict(damping=0.3),
    }
    for kind, words in cases.items():
        robot = moved(kind, **words)
        robot.save(tmp_path / "x.xml")
        peer = mujoco.MjModel.from_xml_path(str(tmp_path / "x.xml"))
        layout, data = pp.interop.mujoco(robot, peer), mujoco.MjData(peer)
        q, v = robot.random(rng), rng.standard_normal(robot.nv)
        data.qpos[:], data.qvel[:] = layout.to_q(q), layout.to_v(v, q)
        mujoco.mj_forward(peer, data)
        ours = reference.forward_dynamics(robot, q, v, -robot.damping * v)
        np.testing.assert_allclose(
            layout.from_a(data.qacc_smooth, data.qpos, data.qvel), ours, atol=1e-12
        )


def test_friction_of_what_flies_is_of_its_turns():
    """Along its slides MuJoCo has it in the world's axes, psiphi in the body's."""
    box = (
        '<body><joint name="fly" type="free" frictionloss="0.2"/><geom size="0.1 0.2 '
        '0.3" type="box"/></body>'
    )
    with pytest.warns(pp.ModelWarning, match="frictionloss of the translations of a free joint"):
        robot = pp.load(f"<mujoco><worldbody>{box}</worldbody></mujoco>")
    assert robot.friction.tolist() == [0.2, 0.2, 0.2, 0.0, 0.0, 0.0]


def on_nothing():
    """A loop that ends on a link without mass."""
    b = pp.Builder("loop")
    rows = (
        ("none", "world", (0, 1, 0), 0.0),
        ("arm", "none", (1, 0, 0), 1.0),
        ("end", "arm", (0, 0, 1), 1.0),
    )
    for name, parent, axis, mass in rows:
        b.body(name, mass=mass, com=(0.1, 0, 0), inertia=0.1 * mass * np.eye(3))
        b.joint(f"to {name}", "revolute", parent, name, axis=axis, xyz=(0.5 * mass, 0, 0))
    return pp.connect(b.build(), [pp.Loop("ball", "end", "none")])


def test_flat_bodies_are_read_by_mujoco(tmp_path, rng):
    """A + B = C to the last digit, along any axes, where MuJoCo wants A + B >= C."""
    for _ in range(20):
        (a, b), turn = rng.uniform(0.1, 1.0, 2), np.linalg.qr(rng.standard_normal((3, 3)))[0]
        plate = hung((a, b, a + b), turn)
        plate.save(tmp_path / "plate.xml")
        np.testing.assert_allclose(
            pp.load(tmp_path / "plate.xml").bodies[0].inertia, plate.bodies[0].inertia, atol=1e-13
        )


@pytest.mark.filterwarnings("ignore::psiphi.ModelWarning")
def test_what_is_refused(tmp_path):
    for wrong, words in (
        (
            lambda: on_nothing().save(tmp_path / "x.xml"),
            "'none' moves and has no mass, which MuJoCo rejects",
        ),
        (
            lambda: hung((0, 0, 0)).save(tmp_path / "x.xml"),
            "'plate' has principal moments 0, 0, 0: MuJoCo rejects",
        ),
        (
            lambda: hung((1, 2, 3.1)).save(tmp_path / "x.xml"),
            "moments 1, 2, 3.1: .* larger than the sum.*with_inertia",
        ),
        (
            lambda: moved("free", armature=0.5).save(tmp_path / "x.xml"),
            "'move' is free and has armature along axes of its link",
        ),
        (
            lambda: moved("free", friction=0.5).save(tmp_path / "x.xml"),
            "'move' is free and has friction along axes of its link",
        ),
        (
            lambda: moved("free", armature=(1, 1, 1, 0, 0, 0)).save(tmp_path / "x.xml"),
            "several values of armature",
        ),
        (
            lambda: moved("planar", armature=0.5).save(tmp_path / "x.xml"),
            "'move' is planar and has armature along",
        ),
        (
            lambda: moved("planar", friction=0.5).save(tmp_path / "x.xml"),
            "'move' is planar and has friction along",
        ),
        (
            lambda: moved("planar", effort=0.5).save(tmp_path / "x.xml"),
            "'move' is planar and has an effort limit along",
        ),
        (
            lambda: moved("planar", damping=(1, 2, 3)).save(tmp_path / "x.xml"),
            "planar and has several values of damping",
        ),
        (lambda: pp.from_mujoco(3), "not a MuJoCo model"),
        (
            lambda: pp.load("<mujoco><worldbody><bod/></worldbody></mujoco>"),
            "MuJoCo rejects it.*bod",
        ),
        (lambda: pp.load(PENDULUM, repair="all"), "'repair' applies to URDF files"),
        (lambda: pp.load("<sdf/>"), "SDF.*sdformat_urdf"),
        (
            lambda: pp.robots.random_tree(1, kinds="helical").save(tmp_path / "x.xml"),
            "helical, which MuJoCo does not support",
        ),
        (
            lambda: (
                pp.load("ur5")
                .attach(pp.Body("empty"), "tool", joint=dict(kind="revolute", armature=1))
                .save(tmp_path / "x.xml")
            ),
            "has no mass, which MuJoCo rejects",
        ),
    ):
        with pytest.raises(pp.Error, match=words):
            wrong()


CAM = """<mujoco><option timestep="1e-4" integrator="RK4"/><worldbody>
  <body><joint name="shaft" axis="0 1 0" ref="10"/><geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0.05"/></body>
  <body pos="0 1 0"><joint name="lifter" type="slide" axis="0 0 1"/><geom size="0.05"/></body></worldbody>
  <equality><joint name="cam" joint1="lifter" joint2="shaft" polycoef="0.02 0.1 0.2 -0.05 0" solref="0.0005 1"/></equality>
</mujoco>"""  # noqa: E501


def test_a_coupling_by_a_polynomial_is_a_gear(tmp_path):
    """robot.gears has it, pp.embed(robot) makes it act, as MuJoCo's soft equality does; it is
    written and read again."""
    robot = pp.load(CAM)
    (cam,) = robot.gears
    robot.save(tmp_path / "cam.xml")
    (again,) = pp.load(tmp_path / "cam.xml").gears
    assert (cam.joint, cam.name) == ("lifter", "cam") == (
        again.joint,
        again.name,
    ) and not robot.mimics
    np.testing.assert_allclose(again.leaders["shaft"][:3], cam.leaders["shaft"][:3], rtol=1e-6)
    moved = pp.embed(robot)
    assert (moved.nq, moved.nv) == (2, 1)
    peer = mujoco.MjModel.from_xml_string(CAM)
    data = mujoco.MjData(peer)
    lift = np.polynomial.Polynomial([0.02, 0.1, 0.2, -0.05])
    data.qpos[1], data.qvel[:] = lift(0.0), (1.0, lift.deriv()(0.0))
    for _ in range(1000):
        mujoco.mj_step(peer, data)
    start = np.zeros(2)
    start[moved.joint("shaft").q_slice] = peer.qpos0[0]
    motion = pp.simulate(moved, moved.normalize(start), [1.0], duration=0.1, dt=1e-3)
    assert motion.final.q[moved.joint("shaft").q_slice][0] == pytest.approx(
        float(data.qpos[0]), abs=2e-4
    )
    bare = robot.lock("shaft")
    assert (
        not bare.gears
        and robot.attach(robot, "world", (0, 3, 0), prefix="b_").gears[1].joint == "b_lifter"
    )


def test_what_has_a_name_keeps_it_beside_what_has_none():
    """Bodies, joints and sites without a name are numbered; none of them takes the name of
    another."""
    rod = '<geom type="capsule" size="0.02" fromto="0 0 0 {} 0 -1"/>'
    scene = f"""<mujoco><worldbody><body pos="1 0 0"><joint axis="0 1 0"/>{rod.format(0)}<site pos="0 0 1"/></body>
      <body name="body1" pos="2 0 0"><joint name="joint0" axis="0 1 0"/>{rod.format(1)}<site name="site0" pos="0 0 2"/></body>
      </worldbody></mujoco>"""  # noqa: E501
    robot = pp.load(scene)
    assert (
        robot.joint_names == ("joint0_", "joint0")
        and {"body1", "body1_", "site0", "site0_"} <= robot.frames.keys()
    )
    q = robot.neutral()
    assert robot.frame_pose(q, "body1")[0, 3] == 2.0 and robot.frame_pose(q, "site0")[2, 3] == 2.0
    agree(
        robot, mujoco.MjModel.from_xml_string(scene.replace("<body pos", '<body name="body1_" pos'))
    )


BLOCKS = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1" friction="0.1"/>
  <geom type="box" size="1 1 0.01" pos="9 9 0"/>
  <body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <geom type="sphere" size="0.1" pos="0.3 0 0" friction="0.7" margin="0.02" gap="0.005"/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0.1 0.2 0.3" condim="1"/>
    <geom type="box" size="0.1 0.2 0.3" pos="-0.4 0 0" euler="10 20 30" condim="6" margin="0.01"/>
    <geom type="cylinder" size="0.1 0.2" pos="0 0.5 0" euler="40 0 0"/>
    <geom type="sphere" size="0.4" contype="0" conaffinity="0" group="2"/>
    <geom type="ellipsoid" size="0.1 0.2 0.3" pos="0 -0.6 0"/></body></worldbody></mujoco>"""


def test_collision_shapes_are_those_that_mujoco_lets_touch_the_floor():
    """The gap of each shape is MuJoCo's distance of its nearest contact, less the margin."""
    peer = mujoco.MjModel.from_xml_string(BLOCKS)
    with pytest.warns(pp.ModelWarning, match="torsional and rolling friction left out"):
        robot = pp.from_mujoco(peer).with_contacts("collision")
    assert "ellipsoids that collide" in "\n".join(robot.report)
    shapes = [point.name.split(".")[0] for point in robot.contact_points]
    assert len(set(shapes)) == 4, "not the drawn sphere, not the ellipsoid, nothing of the world"
    kinds = dict(zip(dict.fromkeys(shapes), range(2, 6), strict=True))  # {shape: geom}
    friction = dict(zip(shapes, robot.contact_friction, strict=True))
    assert list(friction.values()) == [0.7, 0.0, 1.0, 1.0]
    data, rng, ground = mujoco.MjData(peer), np.random.default_rng(0), pp.Ground(stiffness=1e3)
    for _ in range(5):
        q = robot.on_ground(robot.random(rng))
        q[2] -= 2.0  # all shapes are in the floor
        data.qpos[:] = [*q[:3], q[6], *q[3:6]]
        mujoco.mj_forward(peer, data)
        theirs = dict.fromkeys(range(peer.ngeom), np.inf)
        for contact in data.contact:
            gap, geom = contact.dist - contact.includemargin, int(contact.geom[1])
            theirs[geom] = min(theirs[geom], gap)
        ours = dict.fromkeys(kinds, np.inf)
        state = robot.step(q, np.zeros(6), np.zeros(6), 1e-3, contacts=ground)[2]
        for shape, gap in zip(shapes, state.gaps, strict=True):
            ours[shape] = min(ours[shape], gap)
        for shape, geom in kinds.items():
            assert ours[shape] == pytest.approx(theirs[geom], abs=1e-9), shape
