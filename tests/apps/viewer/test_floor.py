"""The floor is perpendicular to gravity on any axis; balls, cylinders and capsules are drawn as
such."""

import json
import re

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.viewer import scene
from psiphi.apps.viewer.geometry.link_poses import rotation_to_z
from psiphi.apps.viewer.geometry.solids import surface_mesh
from psiphi.apps.viewer.html_page import page, page_data
from psiphi.apps.viewer.live.live_page import live_data, read_live_page
from psiphi.apps.viewer.svg_picture import picture

AXES = [(0, 0, -9.81), (0, -9.81, 0), (9.81, 0, 0), (0, 0, 9.81), (1.0, 2.0, -3.0)]
Q = [0.3, 0.2, 0.0, -1.5, 0.0, 1.6, 0.0, 0.02, 0.02]


@pytest.mark.parametrize("gravity", AXES, ids=str)
def test_the_pages_z_is_up(gravity):
    shown = scene(pp.load("panda", gravity=gravity), q=Q)
    up = -np.array(gravity) / np.linalg.norm(gravity)
    np.testing.assert_allclose(shown.view_rotation @ up, [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(shown.view_rotation @ shown.view_rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(shown.view_rotation) > 0
    out = page_data(shown)
    places = np.array(out["poses"]).reshape(-1, 7)[:, :3]
    np.testing.assert_allclose(places, shown.position[0] @ shown.view_rotation.T, atol=1e-5)
    fixed = [piece for piece in out["pieces"] if piece["body"] < 0]
    assert fixed, "the panda's foot stands in the world, and turns with it"
    heights = shown.position[0] @ up
    assert out["ground"] <= 0.0 and heights.min() >= out["ground"] - 1e-5, (
        "nothing is below the floor"
    )


def test_the_usual_gravity_turns_nothing():
    assert (rotation_to_z([0, 0, 1.0]) == np.eye(3)).all() and (
        rotation_to_z([0, 0, -2.0]) == np.diag([1, -1, -1])
    ).all()


def test_a_column_stands_on_the_turned_floor():
    b = pp.Builder("rod", gravity=(0, 9.81, 0))
    b.body("a", 1.0, (0.2, 0, 0), np.eye(3) * 0.01)
    b.joint("j", "revolute", "world", "a", (0, -0.5, 0), axis=(0, 0, 1))
    shown = scene(b.build(), q=[0.0])
    columns = [piece for piece in shown.pieces if piece.body < 0]
    assert len(columns) == 2 and all(abs(piece.pose.rotation[1, 2]) > 0.999 for piece in columns), (
        "along -y, which is up"
    )
    ends = [
        surface_mesh(piece).vertices @ piece.pose.rotation.T + piece.pose.translation
        for piece in columns
    ]
    heights = np.concatenate(ends) @ shown.up
    assert np.isclose(heights.min(), shown.ground) and np.isclose(heights.max(), 0.5)


SOLIDS = {
    "sphere": (pp.Body.sphere(2.0, 0.1), (0.1,)),
    "cylinder": (pp.Body.cylinder(2.0, 0.1, 0.4), (0.1, 0.4)),
    "capsule": (pp.Body.capsule(2.0, 0.1, 0.4), (0.1, 0.4)),
    "box": (pp.Body.box(2.0, (0.1, 0.2, 0.3)), (0.1, 0.2, 0.3)),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_what_is_held_is_drawn_as_what_it_is(kind):
    body, size = SOLIDS[kind]
    arm = pp.load("ur5")
    cell = pp.grasp(
        [(arm, (0, -0.5, 0), "tool0"), (arm, (0, 0.5, 0), "tool0")],
        body,
        [(0, -0.1, 0), (0, 0.1, 0)],
    )
    shown = scene(cell)
    (piece,) = [piece for piece in shown.pieces if piece.body == len(cell.robot.bodies) - 1]
    assert (piece.kind, piece.size) == (kind, size)
    written = json.loads(re.search(r'id="scene">(.*?)</script>', page(shown), re.DOTALL)[1])
    assert written["pieces"][[p.body for p in shown.pieces].index(piece.body)]["kind"] == kind
    assert picture(shown).count("<polygon") == len(shown.pieces)


def test_the_inertia_of_a_capsule_is_that_of_its_shape():
    """By Monte Carlo over the solid itself."""
    rng, r, l = np.random.default_rng(0), 0.3, 0.7
    x = rng.uniform([-r, -r, -l / 2 - r], [r, r, l / 2 + r], (400_000, 3))
    ends = np.maximum(np.abs(x[:, 2]) - l / 2, 0.0)
    x = x[x[:, 0] ** 2 + x[:, 1] ** 2 + ends**2 <= r * r]
    second = (x**2).mean(axis=0)
    expected = 5.0 * (second.sum() - second)
    np.testing.assert_allclose(pp.Body.capsule(5.0, r, l).inertia.diagonal(), expected, rtol=5e-3)


def test_a_scene_holds_a_cylinder(tmp_path):
    text = (pp.scenes.scene_file.DATA / "two_arms.toml").read_text(encoding="utf-8")
    solid = re.sub(r"^box = .*$", "capsule = [0.1, 0.2]", text, count=1, flags=re.MULTILINE)
    assert solid != text
    (tmp_path / "s.toml").write_text(solid, encoding="utf-8")
    case = pp.scenes.load(tmp_path / "s.toml")
    assert case.system.robot.bodies[-1].solid == ("capsule", (0.1, 0.2))
    (tmp_path / "s.toml").write_text(solid.replace("[0.1, 0.2]", "[0.1, 0.0]"), encoding="utf-8")
    with pytest.raises(pp.ModelError, match=r"radius and its length"):
        pp.scenes.load(tmp_path / "s.toml")


def rod_on_a_plane(height=-0.3, up=(0.0, 0.0, 1.0)):
    """A rod whose two ends rest on a plane that is fixed to the world."""
    b = pp.Builder("rod", gravity=-9.81 * np.array(up))
    b.body("rod", mass=2.0, inertia=np.diag([0.001, 1 / 6, 1 / 6]))
    b.joint("free", "free", "world", "rod")
    b.frame("table", "world", xyz=height * np.array(up))
    for name, x in (("left", -0.5), ("right", 0.5)):
        b.frame(name, "rod", xyz=(x, 0, 0))
    ends = [
        pp.Loop("rough", name, "table", axis=up, friction=0.3, name=name)
        for name in ("left", "right")
    ]
    rod = pp.connect(b.build(), ends)
    start = np.concatenate([height * np.array(up), [0, 0, 0, 1]])
    return rod, start


@pytest.mark.parametrize("up", [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0)], ids=str)
def test_forces_of_the_world_are_drawn_at_the_contacts(up):
    """Both ends carry half of the weight; the drawn force acts on the rod, not on the world."""
    rod, start = rod_on_a_plane(up=up)
    motion = pp.simulate(rod, start, duration=0.01)
    shown = scene(motion)
    assert shown.motion.arrows.names == ("left", "right")
    half = np.outer([1.0, 1.0], 9.81 * np.array(up))
    np.testing.assert_allclose(shown.motion.arrows.force[0], half, atol=1e-9)
    ends = np.array([[-0.5, 0, 0], [0.5, 0, 0]]) - 0.3 * np.array(up)
    np.testing.assert_allclose(shown.motion.arrows.point[0], ends, atol=1e-9)
    assert np.isclose(shown.ground, -0.3), "the floor is the plane of contact"
    live = live_data(read_live_page(rod, q=start), scene(rod, q=start))
    assert [(row["name"], row["sign"]) for row in live["contacts"]] == [
        ("left", -1.0),
        ("right", -1.0),
    ]
    assert [row["at"] for row in live["contacts"]] == [[-0.5, 0, 0], [0.5, 0, 0]]


def test_forces_of_a_grasp_act_on_the_object():
    """The weight of a held box at rest is the sum of the drawn forces."""
    case = pp.scenes.load("two_arms")
    law = pp.GravityCompensation(case.system)
    arrows = scene(pp.simulate(case.system, case.q0, tau=law, duration=0.002)).motion.arrows
    weight = case.system.robot.bodies[-1].mass * 9.81
    assert np.isclose(arrows.force[0].sum(axis=0)[2], weight, rtol=1e-6)


def test_a_slope_is_no_floor():
    """Only a horizontal plane is the floor, not a slope through the same point."""
    for axis, height in (((0.0, 0.0, 1.0), -1.0), ((0.6, 0.0, 0.8), 0.0)):
        b = pp.Builder("ball")
        b.body("ball", mass=1.0, inertia=np.eye(3) * 1e-3)
        b.joint("free", "free", "world", "ball")
        b.frame("plane", "world", xyz=(0, 0, -1))
        plane = pp.Loop("sliding", "ball", "plane", axis=axis, friction=0.0)
        shown = scene(pp.connect(b.build(), [plane]), q=[0, 0, 1.0, 0, 0, 0, 1])
        assert shown.ground == height


@pytest.fixture(scope="module")
def crate():
    """A crate that falls 1 cm onto a slope, with the angle of the slope and its height at x = 0."""
    b = pp.Builder("crate")
    b.body("crate", mass=5.0, inertia=(0.05, 0.05, 0.05))
    b.joint("root", "free", "world", "crate")
    robot = pp.Robot.of(b.build()).with_contacts({"crate": [pp.Sphere(0.1), pp.Point((0, 0, 1))]})
    motions = {}
    for angle in (0.0, 0.25):
        normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
        ground = pp.Ground(friction=0.1, normal=normal, point=(0, 0, -0.3))
        q = robot.on_ground(robot.neutral(), ground)
        q[:3] += 0.01 * normal
        motions[angle] = pp.simulate(robot, q, duration=0.1, contacts=ground)
    return motions


def test_the_ground_of_a_motion_is_in_its_place_and_feet_light_up(crate):
    for angle, motion in crate.items():
        shown = scene(motion)
        assert (shown.ground is None) == (shown.slope is not None) == (angle > 0.0)
        out = page_data(shown)
        normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
        if angle:
            np.testing.assert_allclose(out["slope"], [normal, [0, 0, -0.3]], atol=1e-5)
        else:
            assert out["ground"] == -0.3 and out["slope"] is None
        assert out["touches"]["radii"] == [0.1, 0.0]
        np.testing.assert_allclose(out["touches"]["normal"], normal, atol=1e-5)
        modes = np.array(out["touches"]["modes"])
        assert modes[0].tolist() == [0, 0] and modes[-1, 0] in (1, 2) and not modes[:, 1].any()
        # where the sphere touches, its arrow begins on the ground
        place = np.array(out["arrows"]["at"])[-1, 0]
        assert abs((place - [0, 0, -0.3]) @ normal) < 1e-4


@pytest.mark.parametrize("name", ["ur5", "ur10"])
def test_arms_begin_in_their_posture_and_stand_on_the_floor(name):
    """Neither stretched nor above a floor that was lowered for a wrist below the base."""
    robot = pp.load(name)
    shown = scene(robot)
    assert shown.ground == 0.0
    np.testing.assert_allclose(shown.motion.q[0], robot.postures["home"], atol=1e-12)
    span = np.ptp(shown.motion.q, axis=0)
    assert (span > 0.2).all()  # all joints swing
    live = read_live_page(robot)
    np.testing.assert_array_equal(live.q0, robot.postures["home"])
    own = robot.with_posture("home", {"elbow_joint": 0.7})
    assert read_live_page(own).q0[2] == 0.7
    assert not robot.neutral().any()  # which stays the start of simulations
