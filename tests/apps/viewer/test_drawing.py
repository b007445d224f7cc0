"""Robots without shapes: what is drawn out of kinematics and inertias."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.viewer import scene
from psiphi.apps.viewer.geometry.solids import surface_mesh
from psiphi.apps.viewer.geometry.stick_figure import inertia_box, stick_figure_solids, tree_numbers
from psiphi.model.model import WORLD, Body
from tests.apps.viewer.robots import volume


def test_every_body_is_drawn():
    robot = pp.robots.random_tree(12, seed=2)
    assert {piece.body for piece in stick_figure_solids(robot)} >= set(range(12))


@pytest.mark.parametrize("name", ["puma560", "ur5", "panda", "g1"])
def test_rods_lead_to_the_next_joints(name):
    robot = pp.Robot.of(pp.load(name))
    for joint in robot.joints:
        if joint.parent != WORLD and np.linalg.norm(joint.pose.translation) > 0.05:
            ends = [
                _ends(piece)
                for piece in stick_figure_solids(robot)
                if piece.body == joint.parent and piece.kind == "capsule"
            ]
            near = min(
                np.linalg.norm(end - joint.pose.translation) for pair in ends for end in pair
            )
            assert near < 1e-9, f"a rod of {robot.bodies[joint.parent].name} ends at {joint.name}"


def _ends(piece):
    along = piece.pose.rotation[:, 2] * piece.size[1] / 2
    return piece.pose.translation + along, piece.pose.translation - along


def test_a_flying_body_is_the_box_of_its_inertia():
    size, pose = inertia_box(Body.box(3.0, (0.4, 0.2, 0.1), com=(1.0, 0.0, 0.0)))
    assert np.allclose(sorted(size), [0.1, 0.2, 0.4]) and np.allclose(
        pose.translation, [1.0, 0.0, 0.0]
    )
    assert np.isclose(np.linalg.det(pose.rotation), 1.0)


def test_no_box_has_no_mass():
    assert inertia_box(Body("nothing", 0.0, np.zeros(3), np.zeros((3, 3)))) is None


def test_each_tree_of_a_forest_has_its_number():
    b = pp.Builder("two")
    for name in ("a", "b"):
        b.body(name, mass=1.0, com=(0.1, 0, 0))
        b.joint(f"j{name}", "revolute", parent="world", child=name)
    b.body("c", mass=1.0, com=(0.1, 0, 0))
    b.joint("jc", "revolute", parent="a", child="c", xyz=(0.3, 0, 0))
    robot = b.build()
    tree = dict(zip([body.name for body in robot.bodies], tree_numbers(robot), strict=True))
    assert tree["a"] == tree["c"] != tree["b"]


def test_the_ground_is_under_everything_and_absent_without_weight():
    hanging = scene(pp.Robot.of(pp.load("acrobot")))
    assert hanging.ground is not None and hanging.ground < -0.5
    assert scene(pp.load("free_flyer")).ground is None
    assert scene(pp.load("ur5"), q=[0, -1.5, 0, 0, 0, 0]).ground == 0.0


@pytest.mark.parametrize("kind", ["box", "cylinder", "capsule", "sphere"])
def test_solids_are_closed_and_face_outward(kind):
    """Volume by the divergence theorem, against the formula."""
    pieces = {
        piece.kind: piece
        for name in ("ur5", "panda", "g1")
        for piece in scene(pp.load(name)).pieces
    }
    piece = pieces[kind]
    r, *rest = piece.size
    exact = {
        "box": lambda: np.prod(piece.size),
        "sphere": lambda: 4 / 3 * np.pi * r**3,
        "cylinder": lambda: np.pi * r**2 * rest[0],
        "capsule": lambda: np.pi * r**2 * rest[0] + 4 / 3 * np.pi * r**3,
    }[kind]()
    assert abs(volume(surface_mesh(piece)) / exact - 1.0) < 0.03
