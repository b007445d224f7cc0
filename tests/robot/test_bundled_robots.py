"""The bundled robots against what was published about them; chains and trees: deterministic,
possible, quick."""

import gc
import time
from math import radians

import numpy as np
import pytest

import psiphi as pp
from psiphi import robots
from psiphi._util.errors import ModelError
from psiphi.apps.viewer.geometry.solids import surface_mesh
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import WORLD, Model
from tests.oracles import reference

INCH = 0.0254

# Armstrong, Khatib & Burdick (1986), appendix: inertial (kg m^2) and gravitational (N m) constants
# as printed. I1 and I3
# are left out: Tables 4 to 6 of the same paper give 1.55 and 1.60 for them (printed: 1.43 and
# 1.38).
PRINTED = dict(
    I2=1.75,
    I4=0.690,
    I5=0.372,
    I6=0.333,
    I7=0.298,
    I8=-0.134,
    I9=2.38e-2,
    I10=-2.13e-2,
    I11=-1.42e-2,
    I12=-1.10e-2,
    I13=-3.79e-3,
    I14=1.64e-3,
    I15=1.25e-3,
    I16=1.24e-3,
    I17=6.42e-4,
    I18=4.31e-4,
    I19=3.00e-4,
    I20=-2.02e-4,
    I21=-1.00e-4,
    I22=-5.80e-5,
    I23=4.00e-5,
    g1=-37.2,
    g2=-8.44,
    g3=1.02,
    g4=0.249,
    g5=-2.82e-2,
)
MOTORS = (1.14, 4.71, 0.827, 0.200, 0.179, 0.193)


def puma_terms(q) -> tuple[dict, dict]:
    """What multiplies each constant in the entries of the paper's kinetic energy matrix and gravity
    vector."""
    (_, C2, C3, C4, C5, _), (_, S2, S3, S4, S5, _) = np.cos(q), np.sin(q)
    C23, S23 = np.cos(q[1] + q[2]), np.sin(q[1] + q[2])
    reach = S23 * C5 + C23 * C4 * S5
    swing = dict(
        I8=C23, I13=S23, I15=-C23 * S4 * S5, I18=S23 * C4 * S5 - C23 * C5, I19=S23 * S4 * C4
    )
    swing |= dict(I20=S4 * (S23 * C4 * C5**2 + C23 * S5 * C5), I22=S23 * S4 * S5)
    fore = dict(I6=1, I15=2 * C5, I20=S4**2 * S5**2, I21=S4**2, I22=2 * C4 * S5)
    upper = dict(I5=S3, I12=C3, I16=S3 * C5 + C3 * C4 * S5)
    waist = dict(
        I1=1,
        I3=C2**2,
        I7=S23**2,
        I10=S23 * C23,
        I11=S2 * C2,
        I21=S23**2 * C4**2,
        I5=2 * C2 * S23,
        I12=2 * C2 * C23,
    )
    waist |= dict(I15=2 * S23 * reach, I16=2 * C2 * reach, I18=2 * S4 * S5, I22=2 * C23 * reach)
    waist |= dict(I20=S5**2 * (S23**2 * (1 + C4**2) - 1) - 2 * S23 * C23 * C4 * S5 * C5)
    inertia = {
        (0, 0): waist,
        (0, 1): swing | dict(I4=S2, I9=C2, I16=S2 * S4 * S5),
        (0, 2): swing,
        (1, 1): fore | dict(I2=1) | {name: 2 * term for name, term in upper.items()},
        (1, 2): fore | upper,
        (2, 2): fore,
        (2, 4): dict(I15=C4 * C5, I17=C4, I22=S5),
        (3, 3): dict(I14=1, I20=-(S5**2)),
        (4, 4): dict(I17=1),
        (5, 5): dict(I23=1),
    }
    elbow = dict(g2=S23, g4=C23, g5=reach)
    return inertia, {
        0: {},
        1: elbow | dict(g1=C2, g3=S2),
        2: elbow,
        4: dict(g5=C23 * S5 + S23 * C4 * C5),
    }


def fitted(equations: list[tuple[dict, float]]) -> tuple[dict[str, float], float]:
    """The constants that solve sum(constant * term) = value, and the largest residual."""
    names = sorted({name for terms, _ in equations for name in terms})
    A = np.array([[terms.get(name, 0.0) for name in names] for terms, _ in equations])
    b = np.array([value for _, value in equations])
    x, _, rank, _ = np.linalg.lstsq(A, b)
    assert rank == len(names)
    return dict(zip(names, x, strict=True)), float(np.abs(A @ x - b).max())


def test_puma_has_the_constants_armstrong_printed(rng):
    puma, equations = robots.puma560(), []
    for q in rng.uniform(-3, 3, (30, 6)):
        M, g = (
            reference.mass_matrix(puma, q) - np.diag(MOTORS),
            reference.gravity(puma, q) * 9.8 / 9.81,
        )  # the paper's g
        inertia, gravity = puma_terms(q)
        equations += [(terms, M[entry]) for entry, terms in inertia.items()]
        equations += [(terms, g[entry]) for entry, terms in gravity.items()]
    constants, residual = fitted(equations)
    assert residual < 1e-12, "the model has the form of the paper's equations"
    assert (constants["I1"], constants["I3"]) == pytest.approx((1.553, 1.602), abs=1e-3)
    assert {name: constants[name] for name in PRINTED} == pytest.approx(PRINTED, rel=0.01)


def test_puma_s_wrist_centre_stands_where_the_paper_s_lengths_put_it():
    pose = reference.frame_pose(robots.puma560(), np.zeros(6), "tool")
    assert np.allclose(pose.rotation, np.eye(3), atol=1e-15)
    assert np.allclose(pose.translation, [0.4318 - 0.0203, 0.2435 - 0.0934, 0.4331], atol=1e-15)


def test_stanford_arm_reaches_paul_s_worked_example():
    # AIM-177, Table 2.1: two decimals, inches
    q = [*np.radians([-95.7, -112.4]), 22.16 * INCH, *np.radians([-38.2, 80.4, 68.9])]
    hand = reference.frame_pose(robots.stanford_arm(), q, "tool")
    assert np.allclose(hand.translation / INCH, [0.00, 19.78, 1.30], atol=0.01)
    assert np.allclose(
        hand.rotation, [[-0.63, 0.00, -0.78], [0.00, 1.00, 0.00], [0.78, 0.00, -0.63]], atol=0.01
    )


def test_stanford_arm_slides_and_weighs_what_is_printed():
    arm = robots.stanford_arm()
    assert [joint.kind for joint in arm.joints] == ["revolute"] * 2 + ["prismatic"] + [
        "revolute"
    ] * 3
    assert arm.report == (), "every inertia is one that a body can have"
    boom = 4.25 + 1.08 + 0.63 + 0.51  # the slide carries links 3 to 6
    for q in arm.random(seed=3, size=4):
        assert reference.mass_matrix(arm, q)[2, 2] == pytest.approx(boom + 0.782)
        assert reference.gravity(arm, q)[2] == pytest.approx(boom * 9.81 * np.cos(q[1]))


def test_stanford_arm_s_moments_about_its_link_frames_are_paul_s():
    printed = (
        np.array(
            [[276, 255, 71], [108, 18, 100], [2510, 2510, 6], [2, 1, 1], [3, 3, 0.4], [13, 13, 0.3]]
        )
        / 1000
    )
    arm = robots.stanford_arm()
    for index, (body, moments) in enumerate(zip(arm.bodies, printed, strict=True), start=1):
        end = arm.frame(f"link{index}_end").pose
        c = body.com - end.translation
        I = (
            end.rotation.T
            @ (body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c)))
            @ end.rotation
        )
        assert np.allclose(I, np.diag(moments), atol=1e-15)


def second_moments(model: Model) -> np.ndarray:
    """S = tr(I)/2 - I of every body: positive definite exactly when some full body has this
    inertia."""
    I = np.array([body.inertia for body in model.bodies])
    return np.trace(I, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - I


MAKERS = {
    "chain": lambda n, seed: robots.chain(n, seed=seed),
    "planar chain": lambda n, seed: robots.chain(n, planar=True, seed=seed),
    "equal links": lambda n, seed: robots.chain(n, seed=seed, equal=True),
    "tree": lambda n, seed: robots.random_tree(n, seed=seed),
    "floating tree": lambda n, seed: robots.random_tree(n, seed=seed, base="free"),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_seed_makes_the_same_possible_model(make, rng):
    model = make(12, 3)
    assert model == make(12, 3) and model != make(12, 4)
    assert len(model.bodies) == 12 and model.report == ()
    assert np.linalg.eigvalsh(second_moments(model)).min() > 0
    assert np.linalg.eigvalsh(reference.mass_matrix(model, model.random(rng))).min() > 0
    assert len(make(1, 0).bodies) == 1


def test_a_general_chain_has_modified_denavit_hartenberg_frames():
    for joint in robots.chain(20).joints:
        R, p = joint.pose
        assert R[0].tolist() == [1, 0, 0] and joint.axis.tolist() == [0, 0, 1]
        assert np.allclose(np.cross(R[:, 2], [0.0, p[1], p[2]]), 0.0, atol=1e-15), "p = a x + d z"


def test_a_planar_chain_swings_in_the_vertical_plane(rng):
    arm = robots.chain(5, planar=True)
    tip = reference.frame_pose(arm, rng.uniform(-3, 3, 5), "tool")
    assert (
        np.allclose(tip.rotation[:, 2], [0, -1, 0], atol=1e-15) and abs(tip.translation[1]) < 1e-15
    )
    assert np.count_nonzero([joint.pose.translation for joint in arm.joints]) == 4
    assert np.count_nonzero([body.com for body in arm.bodies]) == 5
    assert np.abs(reference.gravity(arm, np.full(5, 0.3))).min() > 0.01


@pytest.mark.parametrize("planar", [False, True])
def test_equal_links_are_equal(planar):
    first, *rest = robots.chain(6, planar=planar, equal=True).joints[1:]
    assert all(np.array_equal(joint.pose.matrix, first.pose.matrix) for joint in rest)
    bodies = robots.chain(6, planar=planar, equal=True).bodies
    assert len({(b.mass, b.com.tobytes(), b.inertia.tobytes()) for b in bodies}) == 1


def test_ten_thousand_links_are_made_in_linear_time():
    """Ten times the links, about ten times the time: quadratic growth would show as a hundred."""

    def seconds(n: int) -> float:
        gc.freeze()  # what other tests left behind is not looked at
        start = time.process_time()
        assert robots.chain(n).nv == n
        gc.unfreeze()
        return time.process_time() - start

    assert seconds(10_000) < 40.0 * min(seconds(1_000) for _ in range(3))
    assert robots.chain(10_000).parent[-1] == 9_998


def test_a_tree_s_shape_follows_its_options():
    assert robots.random_tree(40, branching=0.0).parent == tuple(range(-1, 39))
    assert len(set(robots.random_tree(40, branching=1.0).parent)) < 35
    assert {j.kind for j in robots.random_tree(80).joints} == set(JOINTS) - {"free"}
    assert {j.kind for j in robots.random_tree(9, kinds="revolute").joints} == {"revolute"}
    assert {j.kind for j in robots.random_tree(30, kinds=["free", "helical"]).joints} == {
        "free",
        "helical",
    }
    floating = robots.random_tree(9, base="free", kinds=("prismatic",))
    assert (
        floating.joints[0].kind == "free"
        and floating.joints[0].parent == WORLD
        and floating.nv == 6 + 8
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: robots.chain(0), "n is 0"),
        (lambda: robots.chain(2.5), "n is 2.5"),  # type: ignore[arg-type]
        (lambda: robots.random_tree(-1), "n is -1"),
        (lambda: robots.random_tree(True), "n is True"),
        (lambda: robots.random_tree(3, kinds=["revolut"]), "did you mean 'revolute'"),
        (lambda: robots.random_tree(3, kinds=[]), "no joint kind"),
        (lambda: robots.random_tree(3, base="floating"), "base is 'floating'"),
    ],
)
def test_impossible_wishes_are_refused_in_words(make, words):
    with pytest.raises(ModelError, match=words):
        make()


def test_angles_of_the_tables_are_degrees():
    assert robots.puma560().joint("elbow").upper[0] == radians(225)
    assert robots.stanford_arm().joint("boom").upper[0] == 1.27


@pytest.mark.parametrize(("name", "points"), [("anymal_c", 4), ("g1", 8)])
def test_legged_robots_stand_on_the_feet_that_are_drawn(name, points):
    """With its contact points on the ground, the lowest drawn point is at its height, to 1 cm."""
    robot = pp.load(name)
    q = robot.on_ground(robot.neutral())
    assert len(robot.contact_points) == points
    shown = pp.viewer.scene(robot, q=q)
    lowest = np.inf
    for piece in shown.pieces:
        in_link = surface_mesh(piece).vertices @ piece.pose.rotation.T + piece.pose.translation
        heights = in_link @ shown.rotation[0, piece.body, 2] + shown.position[0, piece.body, 2]
        lowest = min(lowest, heights.min())
    assert lowest == pytest.approx(0.0, abs=1e-2)
