"""The bundled robots: what they promise to have, their sources, their shapes, and the same robots
in other hands."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

import psiphi as pp
from psiphi import robots
from psiphi.model.model import Model
from psiphi.model.shapes import SIZES
from psiphi_bench import example_robots as examples
from psiphi_bench.agreement import FUNCTIONS, errors, interpreted
from tests.oracles import reference

NAMES = robots.bundled()
ROLES = ("visual", "collision")
EACH = pytest.mark.parametrize("name", NAMES)
TIPS = {
    "anymal_c": "LF_FOOT",
    "g1": "left_hand",
    "free_flyer": "left_tool",
}  # where the tip is not called "tool"
PLAIN = [row for row in FUNCTIONS if not row.where]
SAME = {
    "ur5": "ur5_robot",
    "ur10": "ur10_robot",
    "panda": "panda",
    "g1": "g1_29dof_rev_1_0",
}  # as in example-robot-data


def pole_sums(robot: Model) -> np.ndarray:
    """S = tr(I)/2 - I of every body with mass: positive semidefinite exactly when some body has
    this inertia."""
    I = np.array([body.inertia for body in robot.bodies])
    return np.trace(I, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - I


def test_there_are_enough_and_they_are_small():
    data = list((files("psiphi.io.robots") / "data").iterdir())
    assert len(NAMES) == len(data) >= 8
    assert sum(len(file.read_bytes()) for file in data) < 300_000


@EACH
def test_every_bundled_robot_is_one_function(name):
    robot = getattr(robots, name)()
    assert isinstance(robot, pp.Robot) and robot.name == name and name in robots.__all__
    assert robot == pp.load(name) and TIPS.get(name, "tool") in robot.frames
    q = robot.random(seed=0)
    lower, upper = (
        np.concatenate([getattr(j, key) for j in robot.joints]) for key in ("lower", "upper")
    )
    assert ((lower <= q) & (q <= upper)).all()
    assert np.linalg.eigvalsh(reference.mass_matrix(robot, q)).min() > 0


@EACH
def test_every_figure_has_a_source(name):
    source = robots.source(name)
    assert all(len(source[key]) > 2 for key in ("title", "source", "licence"))
    text = (files("psiphi.io.robots") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    assert text.startswith("#") and "metres" in text[:200].lower()


@EACH
def test_bodies_are_possible(name):
    robot = pp.load(name)
    assert (robot.report == ()) == (name != "puma560"), (
        "the PUMA's link 3 is as measured, and its report says so"
    )
    if name != "puma560":
        assert np.linalg.eigvalsh(pole_sums(robot)).min() > -1e-12
    assert all(0.0 < body.mass < 300.0 for body in robot.bodies[robot.name == "puma560" :])


@EACH
def test_the_base_may_be_free_or_fixed(name):
    free, fixed = pp.load(name, base="free"), pp.load(name, base="fixed")
    assert free.nv == fixed.nv + 6 and free.joints[0].kind == "free"
    assert np.linalg.eigvalsh(free.mass_matrix(free.random(seed=1))).min() > 0
    still = np.concatenate([free.neutral()[:7], q := fixed.random(seed=2)])
    assert np.allclose(
        free.mass_matrix(still)[6:, 6:], fixed.mass_matrix(q), rtol=1e-12, atol=1e-14
    )


@EACH
def test_shapes_stand_on_frames_and_near_the_bodies(name):
    robot = pp.load(name)
    assert {shape.kind for shape in robot.shapes} <= set(SIZES)
    for shape in robot.shapes:
        assert shape.link in robot.frames and shape.role in ROLES and min(shape.size) > 0.0
        assert len(shape.size) == sum(count for _, count in SIZES[shape.kind])
        assert np.allclose(shape.pose.rotation @ shape.pose.rotation.T, np.eye(3), atol=1e-9)
        assert np.linalg.norm(shape.pose.translation) < 2.5
    visuals = [shape for shape in robot.shapes if shape.role == "visual"]
    drawn = {robot.frames[shape.link].body for shape in visuals}
    assert len(drawn - {-1}) >= 0.75 * len(robot.bodies), "nearly every body is drawn"
    tip = robot.frame(TIPS.get(name, "tool"))
    assert tip.body in drawn


def test_a_free_base_takes_its_pedestal_along():
    assert {shape.link for shape in pp.load("puma560").shapes} >= {"world", "link6"}
    assert {shape.link for shape in pp.load("puma560", base="free").shapes} >= {"base", "link6"}


def test_options():
    assert (
        pp.load("acrobot").gravity_vector[2] == -9.8
        and not pp.load("free_flyer").gravity_vector.any()
    )
    assert pp.load("panda", gravity=(0, 0, -1.62)).gravity_vector[2] == -1.62
    assert [j.armature[0] for j in pp.load("ur5", armature={"elbow_joint": 0.3}).joints] == [
        0,
        0,
        0.3,
        0,
        0,
        0,
    ]
    assert [j.armature[0] for j in pp.load("puma560", armature=0.5).joints] == [0.5] * 6


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (lambda: pp.load("ur5", base="floating"), "base is 'floating'"),
        (lambda: pp.load("ur5", gravty=1), "no option 'gravty'.*did you mean 'gravity'"),
        (lambda: pp.load("ur5", packages={}), "no option 'packages'"),
        (lambda: pp.load("ur5", armature={"elbow": 1}), "did you mean 'elbow_joint'"),
        (lambda: pp.load("ur5", gravity="down"), "gravity"),
        (lambda: robots.source("ur6"), "did you mean 'ur5'"),
    ],
)
def test_impossible_wishes_are_refused_in_words(wish, words):
    with pytest.raises(pp.ModelError, match=words):
        wish()


# -- against others --------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", [*SAME, "anymal_c"])
def test_the_same_robot_of_example_robot_data_moves_the_same(name, base):
    """Read by Pinocchio from the URDF file; the tables keep ten digits of what was added up."""
    pytest.importorskip("pinocchio")
    from psiphi_bench.peers.pinocchio_peer import Pin

    stem = SAME.get(name, "anymal")
    file = next(
        file
        for file in examples.urdf_files()
        if file.stem == stem and ("anymal" not in stem or "_c_" in str(file))
    )
    robot = pp.load(name, base=base)
    for error in errors(robot, Pin.from_urdf(file, base, robot), 10, interpreted, PLAIN):
        assert error.raw < 2e-8, error.label


def test_pelican_has_the_book_s_equations(rng):
    """Kelly, Santibáñez & Loría (2005), section 5.3: M and g of the two-link arm."""
    m1, m2, l1, c1, c2, I1, I2, g = 6.5225, 2.0458, 0.26, 0.0983, 0.0229, 0.1213, 0.0116, 9.81
    arm = robots.pelican()
    for q in rng.uniform(-3, 3, (5, 2)):
        c = np.cos(q[1])
        off = m2 * (c2**2 + l1 * c2 * c) + I2
        M = [
            [m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * c) + I1 + I2, off],
            [off, m2 * c2**2 + I2],
        ]
        lower = m2 * c2 * g * np.sin(q.sum())
        assert np.allclose(arm.mass_matrix(q), M, rtol=1e-12)
        assert np.allclose(
            arm.gravity(q), [(m1 * c1 + m2 * l1) * g * np.sin(q[0]) + lower, lower], rtol=1e-12
        )


def test_cartpole_has_the_paper_s_equations(rng):
    """Barto, Sutton & Anderson (1983), appendix, without friction."""
    M, m, l, g = 1.1, 0.1, 0.5, 9.8
    cart = robots.cartpole()
    for x, th, dx, dth, F in rng.uniform(-1, 1, (5, 5)):
        ddth = (g * np.sin(th) + np.cos(th) * (-F - m * l * dth**2 * np.sin(th)) / M) / (
            l * (4 / 3 - m * np.cos(th) ** 2 / M)
        )
        ddx = (F + m * l * (dth**2 * np.sin(th) - ddth * np.cos(th))) / M
        assert np.allclose(
            cart.forward_dynamics(np.array([x, th]), np.array([dx, dth]), np.array([F, 0.0])),
            [ddx, ddth],
        )


def test_acrobot_has_the_paper_s_inertias():
    """Spong (1995): d11 = m1 lc1^2 + m2 (l1^2 + lc2^2 + 2 l1 lc2 cos q2) + I1 + I2, d22 = m2 lc2^2
    + I2."""
    M = robots.acrobot().mass_matrix(np.zeros(2))
    assert np.allclose(M, [[0.25 + 4 + 0.083 + 0.33, 2 + 0.33], [2 + 0.33, 1 + 0.33]])


def test_iiwa_stands_upright_at_zero():
    """KUKA: 360 mm to the shoulder, 420 to the elbow, 400 to the wrist, 126 to the flange."""
    T = robots.iiwa14().frame_pose(np.zeros(7), "tool")
    assert np.allclose(T[:3, 3], [0, 0, 0.36 + 0.42 + 0.4 + 0.126], atol=1e-12)


def test_the_free_flyer_is_two_ur5_on_a_bus():
    flyer, arm = robots.free_flyer(), robots.ur5()
    q = arm.random(seed=3)
    both = np.concatenate([flyer.neutral()[:7], q, q])
    assert flyer.mass == pytest.approx(200 + 2 * (arm.mass + 4.0))
    M = flyer.mass_matrix(both)
    assert np.allclose(M[6:12, 6:12], arm.mass_matrix(q)) and np.allclose(
        M[12:, 12:], arm.mass_matrix(q)
    )
    assert not M[6:12, 12:].any()
    left, right = (flyer.frame_pose(both, f"{side}_tool") for side in ("left", "right"))
    assert np.allclose(left[:3, 3] - right[:3, 3], [0, 0.6, 0]) and np.allclose(
        left[:3, :3], right[:3, :3]
    )
