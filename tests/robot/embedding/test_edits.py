"""Verbs of robots with embedded loops: changing and embedding commute, and what a locked joint
holds stands still."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi_bench.interpreted_robot import Interpreted
from tests.robot.embedding.mechanisms import MECHANISMS

BOX = pp.Body.box(0.7, (0.1, 0.2, 0.1), name="load")
FOURBAR = {
    "a joint outside locked": lambda r: r.lock({"to hand": 0.4}),
    "the joint below locked": lambda r: r.lock("to base", at={"to base": 0.7}),
    "a load": lambda r: r.attach(BOX, "hand", (0.1, 0, 0)),
    "a frame": lambda r: r.with_frame("tip", "coupler", (0, 0, 0.1)),
    "weightless": lambda r: r.with_gravity((0, 0, 1.0)),
    "another inertia": lambda r: r.with_inertia("rocker", mass=3.0),
    "without what a loop carries": lambda r: r.without("hand"),
    "a part of it, flying": lambda r: r.subtree("base", base="free"),
    "an elastic crank": lambda r: r.with_elastic("to crank", 50.0, rotor=1e-3, ratio=10.0),
}


def alike(one: pp.Robot, two: pp.Robot, seed: int = 0) -> None:
    """The same accelerations at a state, joints by their names; which coordinates are free need not
    be the same."""
    one, two = Interpreted.of(one), Interpreted.of(two)
    assert sorted(one.joint_names) == sorted(two.joint_names) and sorted(one.frames) == sorted(
        two.frames
    )
    assert one.velocity_names == two.velocity_names
    rng = np.random.default_rng(seed)
    q, (v, tau) = one.random(rng), rng.standard_normal((2, one.nv))
    other = two.neutral()
    for joint in one.joints:
        other[two.joint(joint.name).q_slice] = q[joint.q_slice]
    found, wanted = (r.forward_dynamics(x, v, tau) for r, x in ((one, q), (two, other)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * (1.0 + np.abs(wanted).max()))


def mechanism(name: str) -> tuple[pp.Robot, Callable[[pp.Robot], pp.Robot]]:
    tree, loops, options = MECHANISMS[name]()
    where = (
        dict(zip(tree.joint_names, options.get("at", tree.neutral()), strict=True))
        if name == "fourbar"
        else {}
    )

    def made(robot: pp.Robot) -> pp.Robot:
        at = robot.neutral()
        for joint in robot.joints:
            at[joint.q_slice] = where.get(joint.name, at[joint.q_slice])
        return pp.embed(
            robot, loops, **({"free": options["free"]} if "free" in options else {}), at=at
        )

    return tree, made


@pytest.mark.parametrize("verb", FOURBAR)
def test_changing_and_embedding_commute(verb):
    tree, made = mechanism("fourbar")
    alike(FOURBAR[verb](made(tree)), made(FOURBAR[verb](tree)))


def test_what_a_locked_joint_holds_stands_still():
    """All of a four-bar, by any of its joints; of a differential the motor, whose place is a number
    in both gears."""
    tree, made = mechanism("fourbar")
    robot = made(tree)
    whole = robot.integrate(robot.neutral(), np.array([0.0, 0.2, 0.0]))
    for name in ("to crank", "to rocker"):
        still = robot.lock(name, at=whole)
        assert still.embedding is None and still.joint_names == ("to base", "to hand")
        places = {
            n: float(whole[robot.joint(n).q_slice][0])
            for n in ("to crank", "to coupler", "to rocker")
        }
        alike(still, tree.lock(places))
    tree, made = mechanism("differential")
    robot = made(tree).lock({"to motor a": 0.5})
    pitch, roll = (
        robot.neutral()[robot.joint(name).q_slice][0] for name in ("to pitch", "to roll")
    )
    assert robot.nv == 2 and np.isclose(pitch, 0.1 * 0.5) and np.isclose(roll, 0.3 + 0.2 * 0.5)
    moved = robot.integrate(robot.neutral(), np.array([0.0, 1.0]))
    assert np.isclose(moved[robot.joint("to roll").q_slice][0], roll - 0.15)


def test_a_loop_that_is_cut_is_open_again():
    tree, made = mechanism("fourbar")
    robot = made(tree).without("rocker")
    assert robot.embedding is None and robot.nv == 4


def test_robots_with_loops_on_robots():
    tree, made = mechanism("fourbar")
    one = made(tree)
    arm = pp.load("pelican").attach(one, "tool", (0, 0, 0.1), prefix="a_")
    assert (arm.nq, arm.nv) == (7, 5)
    two = one.attach(one, "hand", prefix="b_")
    assert (two.nq, two.nv) == (10, 6)
    assert pickle.loads(pickle.dumps(two)).lock("b_to crank").nv == 5
    gripper = pp.load("panda").attach(pp.load("pelican"), "panda_hand", prefix="p_")
    assert pp.embed(gripper).lock("panda_finger_joint2").nv == 9


def test_rotors_and_postures_come_along():
    arm = pp.load("pelican").with_posture("bent", [0.2, 0.4])
    spun = pp.embed(
        arm, rotors=[pp.Rotor(name, inertia=1e-4, ratio=50.0) for name in arm.joint_names]
    )
    loaded = spun.attach(BOX, "tool")
    assert (loaded.nq, loaded.nv) == (4, 2) and np.isclose(loaded.mass - spun.mass, 0.7)
    assert np.isclose(
        loaded.postures["bent"][loaded.joint(f"{arm.joint_names[1]} rotor").q_slice][0], 20.0
    )
    kept = loaded.with_posture("zero", loaded.neutral())
    assert set(kept.postures) == {"bent", "zero"}


@pytest.mark.parametrize(("name", "ending"), [("fourbar", "urdf"), ("train", "xml")])
def test_saved_loops_come_back(name, ending, tmp_path):
    """As data of the tree it was: embedded again it is the same mechanism, and saved again the same
    file."""
    tree, loops, options = MECHANISMS[name]()
    robot = pp.embed(tree, loops, **options)
    for file in (tmp_path / f"one.{ending}", tmp_path / f"two.{ending}"):
        robot.save(file)
        back = pp.load(file)
        assert back.joint_names == tree.joint_names and len(back.loops) == sum(
            isinstance(loop, pp.Loop) for loop in loops
        )
        at = back.neutral()
        for joint in robot.joints:
            at[back.joint(joint.name).q_slice] = robot.neutral()[joint.q_slice]
        again = pp.embed(back, at=at, free=options.get("free", ()))
        one, two = Interpreted.of(robot), Interpreted.of(again)
        assert one.velocity_names == two.velocity_names
        q, (v, tau) = one.random(seed=0), np.random.default_rng(0).standard_normal((2, one.nv))
        wanted = one.forward_dynamics(q, v, tau)
        np.testing.assert_allclose(
            two.forward_dynamics(q, v, tau),
            wanted,
            rtol=0,
            atol=1e-12 * (1.0 + np.abs(wanted).max()),
        )
        robot = again


def crank() -> pp.Robot:
    """A four-bar whose last pivot is the world itself."""
    b = pp.Builder("bar")
    for i, (name, parent, x) in enumerate(
        (("crank", "world", 0.6), ("coupler", "crank", 0.3), ("rocker", "coupler", 0.8))
    ):
        b.body(name, mass=1.0 + i, com=(0.2, 0.01 * i, 0), inertia=(0.01, 0, 0, 0.02, 0, 0.03))
        b.joint(f"to {name}", "revolute", parent, name, xyz=(x, 0, 0), axis=(0, 0, 1))
    b.frame("foot", "rocker", (0.7, 0, 0))
    return replace(pp.Robot.of(b.build()), loops=(pp.Loop("ball", "foot", "world", name="pivot"),))


def test_a_loop_that_ends_on_the_world_moves_with_it(tmp_path):
    tree, pose = crank(), np.eye(4)
    pose[:3] = [[0, -0.6, 0.8, 1], [0, 0.8, 0.6, 2], [-1, 0, 0, 3]]
    bar = pp.embed(tree, at=[0.5, 1.0, 2.0])
    q, v, tau = bar.random(seed=0), [0.7], [0.3]
    host = pp.load("pelican")
    where = host.frame_pose(host.neutral(), "tool")
    carried = host.attach(bar, "tool", pose, prefix="x_")
    system = pp.connect(host.attach(tree, "tool", pose, prefix="x_"))
    assert (carried.nq, carried.nv) == (5, 3) and system.nv == 5
    for moved, T in (
        (bar.with_base(pose=pose), pose),
        (carried.lock(host.joint_names), where @ pose),
    ):
        alone = bar.with_gravity(T[:3, :3].T @ bar.gravity_vector)
        found, wanted = (
            Interpreted.of(robot).forward_dynamics(q, v, tau) for robot in (moved, alone)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    for file in (tmp_path / "bar.urdf", tmp_path / "bar.xml"):
        bar.save(file)
        back = pp.embed(pp.load(file), at=bar.neutral())
        found, wanted = (Interpreted.of(robot).forward_dynamics(q, v, tau) for robot in (back, bar))
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    for cut in (
        lambda: bar.subtree("coupler"),
        lambda: tree.subtree("coupler"),
        lambda: tree.without("rocker"),
    ):
        with pytest.warns(pp.ModelWarning, match="loop 'pivot'.*left out"):
            assert any("pivot" in line for line in cut().report)


def spun(name: str) -> pp.Robot:
    """A mechanism whose joints all have rotors."""
    tree, loops, options = MECHANISMS[name]()
    b, rng = pp.Builder(tree), np.random.default_rng(5)
    for joint in tree.joints:
        b.joints[joint.name] = replace(
            b.joints[joint.name], armature=tuple(rng.uniform(0.1, 0.5, joint.row.nv))
        )
    return pp.embed(b.build(), loops, **options)


@pytest.mark.parametrize("name", ["fourbar", "train", "differential", "rssr"])
@pytest.mark.parametrize("word", ["inertia", "mass", "com", "armature"])
def test_free_numbers_of_embedded_loops_are_those_of_the_robot_that_has_them(name, word):
    robot = spun(name)
    light = robot.free(word)
    p = light.randomised(spread=0.3, seed=1)
    assert len(light.parameter_names) == len(p) == len(light.parameters())
    baked = light.baked(p)
    q, (v, tau) = robot.random(seed=0), np.random.default_rng(2).standard_normal((2, robot.nv))
    assert baked.velocity_names == robot.velocity_names
    np.testing.assert_allclose(light.baked(light.parameters()).armature, robot.armature)
    source = light.function("forward_dynamics").source
    (found,) = interpret(source.program, source.tree, q, v, tau, p)
    wanted = Interpreted.of(baked).forward_dynamics(q, v, tau)
    assert np.abs(wanted - Interpreted.of(robot).forward_dynamics(q, v, tau)).max() > 1e-4
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * (1.0 + np.abs(wanted).max()))


def test_what_cannot_be_free_in_an_embedded_loop_is_refused():
    for word in ("stiffness", "offsets"):
        with pytest.raises(
            pp.StateError, match=rf"the {word} of joint 'to crank'.*cannot be inputs"
        ):
            spun("fourbar").free(word)
        assert spun("fourbar").free(word, links="hand").freed is not None


def test_inertias_of_embedded_loops_are_identified():
    """Postures that tell the parameters are closed ones; rotors of all joints act, as the robot has
    them."""
    robot, rng = spun("fourbar"), np.random.default_rng(0)
    q = robot.random(rng, (300,))
    v, a = rng.standard_normal((2, 300, robot.nv))
    light = robot.free("inertia")
    true = light.randomised(spread=0.2, seed=1)
    for more, losses in (((), 0.0), (("armature", "friction"), 0.4)):
        tau = (
            light.inverse_dynamics(q, v, a, parameters=true)
            + losses * np.sign(v)
            + 1e-2 * rng.standard_normal(v.shape)
        )
        found = pp.identify(robot, q, v, a, tau, more=more)
        assert found.base.rank == 28 + len(more) * robot.nv - (len(more) and 1)
        truth = np.concatenate(
            [true, *([robot.armature, np.full(robot.nv, losses)] if more else [])]
        )
        away = np.abs(found.values - found.base.matrix @ truth) / found.deviations
        assert away.max() < 4.5 and np.sqrt((away**2).mean()) < 1.5
        if more:
            np.testing.assert_allclose(found.robot.friction, losses, atol=0.02)


def test_refusals():
    tree, made = mechanism("fourbar")
    robot = made(tree)
    off = robot.neutral()
    off[robot.joint("to rocker").q_slice] += 0.1
    for call, words in (
        (lambda: robot.lock({"to rocker": -1.0}), "its loop is not closed"),
        (lambda: robot.lock("to hand", at=off), "its loop is not closed"),
        (lambda: robot.lock("to nowhere"), "no joints"),
        (
            lambda: mechanism("differential")[1](mechanism("differential")[0]).lock("to pitch"),
            "is locked, but follows",
        ),
        (lambda: pp.Builder(robot), "represents trees only"),
        (
            lambda: mechanism("differential")[1](mechanism("differential")[0]).save("x.urdf"),
            "2 leaders",
        ),
    ):
        with pytest.raises(pp.Error, match=words):
            call()
