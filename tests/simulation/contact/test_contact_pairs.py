"""Links that touch each other, beside MuJoCo's distances, closed forms and laws of mechanics."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.contact.closest_points import contact_axes
from psiphi.model.contact.contact_pairs import ContactPair, ContactSolid
from psiphi.model.contact.contact_state import OPEN, SLIP, STICK
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import contact_gaps

GRAVITY, DT = 9.81, 1e-3
BALL, CAPSULE, BOX = pp.Sphere(0.1), pp.Capsule(0.05, 0.3), pp.Box((0.2, 0.3, 0.15))
KINDS = {
    "sphere-sphere": (BALL, pp.Sphere(0.07)),
    "sphere-capsule": (BALL, CAPSULE),
    "capsule-sphere": (CAPSULE, BALL),
    "capsule-capsule": (CAPSULE, pp.Capsule(0.08, 0.2)),
    "sphere-box": (BALL, BOX),
    "box-sphere": (BOX, BALL),
}
MASS, INERTIA = (1.0, 2.0), 0.005 * np.ones(3)


def two_bodies(first, second, **options):
    """Two free bodies that can touch each other."""
    builder = pp.Builder("two")
    for name, mass in zip("ab", MASS, strict=True):
        builder.body(name, mass=mass, inertia=mass * INERTIA)
        builder.joint(f"root_{name}", "free", parent="world", child=name)
    robot = pp.Robot.of(builder.build())
    return robot.with_contacts({"a": first, "b": second}, pairs=[("a", "b")], **options)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_of_mujoco(kind):
    """Of the cores: with small radii, so that most of them do not overlap."""
    mujoco = pytest.importorskip("mujoco")
    rng, small = np.random.default_rng(0), 1e-4
    shapes = KINDS[kind]
    pair = ContactPair.of(
        "", *(ContactSolid.of("", x, y) for x, y in zip("ab", shapes, strict=True))
    )
    spec = mujoco.MjSpec()
    kinds = {pp.Sphere: "SPHERE", pp.Capsule: "CAPSULE", pp.Box: "BOX"}
    for shape in shapes:
        body = spec.worldbody.add_body()
        body.add_freejoint()
        size = [small, shape.length / 2, 0] if isinstance(shape, pp.Capsule) else [small, 0, 0]
        size = [x / 2 for x in shape.size] if isinstance(shape, pp.Box) else size
        geom_type = getattr(mujoco.mjtGeom, f"mjGEOM_{kinds[type(shape)]}")
        body.add_geom(type=geom_type, size=size, mass=1.0)
    model = spec.compile()
    data = mujoco.MjData(model)
    radii = sum(getattr(shape, "radius", 0.0) for shape in shapes)
    cores = small * sum(not isinstance(shape, pp.Box) for shape in shapes)
    checked = 0
    for _ in range(60):
        data.qpos[:] = rng.standard_normal(14) * ([0.2, 0.2, 0.2, 1, 1, 1, 1] * 2)
        mujoco.mj_kinematics(model, data)
        ends = np.zeros(6)
        found = mujoco.mj_geomDistance(model, data, 0, 1, 10.0, ends)
        places = [(data.xmat[i].reshape(3, 3), data.xpos[i]) for i in (1, 2)]
        at = pair.approach(*places)
        if found > 1e-3:
            checked += 1
            assert at.gap == pytest.approx(found + cores - radii, abs=2e-6)
            # the closest points; those of parallel segments are not unique
            surface = (ends[3:] - ends[:3]) / found
            assert np.array(at.normal) == pytest.approx(-surface, abs=1e-3)
    assert checked > 30


def test_a_centre_inside_a_box_leaves_by_the_nearest_face():
    rng, half = np.random.default_rng(1), 0.5 * np.array(BOX.size)
    pair = ContactPair.of(
        "", ContactSolid.of("", "a", pp.Sphere(0.01)), ContactSolid.of("", "b", BOX)
    )
    eye, zero = np.eye(3), np.zeros(3)
    for point in rng.uniform(-half, half, (20, 3)):
        at = pair.approach((eye, point), (eye, zero))
        depths = half - abs(point)
        k = int(depths.argmin())
        assert at.gap == pytest.approx(-depths[k] - 0.01, abs=1e-15)
        assert np.array(at.normal) == pytest.approx(np.sign(point[k]) * eye[k])


def test_axes_of_any_normal_are_orthonormal():
    normals = np.random.default_rng(0).standard_normal((3, 200))
    normals[:, :6] = np.hstack([np.eye(3), -np.eye(3)])
    normals /= np.linalg.norm(normals, axis=0)
    axes = np.array([np.broadcast_arrays(*row) for row in contact_axes(list(normals))])
    gram = np.einsum("ian,jan->nij", axes, axes)
    assert gram == pytest.approx(np.broadcast_to(np.eye(3), gram.shape), abs=1e-14)


def momenta(robot, q, v):
    """The momentum, and the moment of momentum about the origin, in world axes."""
    P = L = 0.0
    for name, mass, part in zip("ab", MASS, (slice(0, 6), slice(6, 12)), strict=True):
        T, twist = robot.frame_pose(q, name), v[..., part]
        R, p = T[..., :3, :3], T[..., :3, 3]
        own = mass * np.einsum("...ij,...j->...i", R, twist[..., 3:])
        spin = mass * INERTIA[0] * np.einsum("...ij,...j->...i", R, twist[..., :3])
        P, L = P + own, L + spin + np.cross(p, own)
    return P, L


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_that_meet_keep_their_momentum(kind):
    """Forces of a pair are opposite and on one line: they have no sum and no moment. Each step
    obeys the laws of contact."""
    robot = two_bodies(*KINDS[kind], ground=())
    rng, n = np.random.default_rng(2), 40
    turns = rng.standard_normal((n, 12)) * ([1, 1, 1, 0, 0, 0] * 2)
    q = robot.integrate(np.tile(robot.neutral(), (n, 1)), turns, 1.0)
    q[:, 7:10] += np.array([0.5, 0.0, 0.0]) + 0.05 * rng.standard_normal((n, 3))
    v, h = rng.standard_normal((n, 12)), DT
    v[:, 3:6] += np.einsum("nji,j->ni", robot.frame_pose(q, "a")[:, :3, :3], [3.0, 0.0, 0.0])
    ground = pp.Ground(friction=0.5)
    motion = pp.simulate(robot, q, v, duration=0.3, dt=h, contacts=ground)
    assert ((motion.modes > OPEN).any(axis=(1, 2))).sum() > n / 3
    assert {STICK, SLIP} <= set(motion.modes.ravel().tolist())
    assert motion.contact_residual.max() < 1e-9
    assert np.diff(motion.energy).max() < 1e-2  # of 20 J; steps of first order
    weights = np.outer(MASS, [0.0, 0.0, -GRAVITY])
    P, L = momenta(robot, motion.q, motion.v)
    falls = h * np.cumsum(np.tile(weights.sum(axis=0), (motion.q.shape[1] - 1, 1)), axis=0)
    assert P[:, 1:] - P[:, :1] == pytest.approx(np.tile(falls, (n, 1, 1)), abs=1e-10)
    places = np.stack([motion.q[..., 0:3], motion.q[..., 7:10]], axis=-2)
    moments = h * np.cumsum(np.cross(places, weights).sum(axis=-2), axis=1)
    assert L[:, 1:] - L[:, :1] == pytest.approx(moments[:, :-1], abs=1e-10)


def test_balls_that_meet_head_on_rebound():
    """c+ = -e c-, and the momentum stays."""
    robot, e, u = two_bodies(BALL, pp.Sphere(0.07), ground=()), 0.6, 2.0
    q = robot.neutral()
    q[7] = 0.17 + 1e-3
    v = np.zeros(12)
    v[3] = u
    motion = pp.simulate(
        robot, q, v, duration=2e-3, dt=DT, contacts=pp.Ground(restitution=e, friction=0.0)
    )
    (m, M), end = MASS, motion.v[-1]
    assert end[[3, 9]] == pytest.approx([u * (m - e * M) / (m + M), u * m * (1 + e) / (m + M)])


def test_a_ball_rolls_on_a_fixed_box_as_on_the_ground():
    """And on each of its faces, as on a wall."""
    builder = pp.Builder("ball")
    builder.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    builder.joint("root", "free", parent="world", child="ball")
    builder.frame("table", "world", xyz=(0.2, 0.1, -0.5), rpy=(0, 0, 0.4))
    bare = pp.Robot.of(builder.build())
    shapes = {"ball": BALL, "table": pp.Box((4.0, 4.0, 1.0))}
    on_table = bare.with_contacts(shapes, pairs=[("ball", "table")], ground=())
    alone = bare.with_contacts({"ball": BALL})
    ground = pp.Ground(friction=0.3)
    q, v = alone.on_ground(alone.neutral()), [0.5, 0.2, 3.0, 1.0, 0.3, 0.0]
    run = {"duration": 0.5, "dt": DT, "contacts": ground}
    motion, expected = (pp.simulate(robot, q, v, **run) for robot in (on_table, alone))
    assert motion.q == pytest.approx(expected.q, abs=1e-9)
    assert motion.v == pytest.approx(expected.v, abs=1e-9)
    assert motion.forces == pytest.approx(expected.forces, abs=1e-6)
    assert motion.events[0].what == "ball|table"
    with pytest.raises(pp.StateError, match="no shape of ball can touch the ground"):
        on_table.on_ground(q)
    q[2] -= 0.01
    with pytest.raises(pp.StateError, match=r"solids of ball\|table overlap by 0.01 m"):
        pp.simulate(on_table, q, **run)


@pytest.fixture(scope="module")
def gripper():
    """Two fingers that slide, each with two spheres, and a box of 1 kg between them."""
    builder = pp.Builder("gripper")
    for side, sign in (("left", -1.0), ("right", 1.0)):
        builder.body(side, mass=0.2, inertia=(1e-4, 1e-4, 1e-4))
        builder.joint(side, "prismatic", "world", side, xyz=(sign * 0.06, 0, 1), axis=(-sign, 0, 0))
        builder.frame(f"{side}_tip", side)
    builder.body("box", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    builder.joint("box", "free", "world", "box", xyz=(0, 0, 1))
    tips = [pp.Sphere(0.01, pose=(0, y, 0)) for y in (-0.02, 0.02)]
    shapes = {"left_tip": tips, "right_tip": tips, "box": pp.Box(0.1)}
    pairs = [("*_tip", "box")]
    return pp.Robot.of(builder.build()).with_contacts(shapes, pairs=pairs, ground=())


def squeeze(gripper, force, **options):
    tau = np.zeros(gripper.nv)
    tau[:2] = force
    run = {"duration": 0.5, "dt": DT, "contacts": pp.Ground(friction=0.5)}
    return pp.simulate(gripper, gripper.neutral(), tau=tau, **(run | options))


def test_a_grip_holds_or_slides_as_coulomb_says(gripper):
    """The box falls with g - 2 mu N / m, or holds if that is negative, and does not creep."""
    names = [pair.name for pair in gripper.contact_pairs]
    assert names == ["left_tip|box", "left_tip#2|box", "right_tip|box", "right_tip#2|box"]
    slow, strong = squeeze(gripper, 5.0, duration=0.1), squeeze(gripper, 20.0)
    fall = (GRAVITY - 2 * 0.5 * 5.0) * 0.1
    assert slow.v[-1, -1] == pytest.approx(-fall, abs=1e-5)
    assert abs(np.diff(strong.q[:, -5])).max() < 1e-9 * DT
    up = strong.forces[-1].sum(axis=0)
    assert up == pytest.approx([0, 0, -GRAVITY], abs=1e-6), "on the fingers, the first of each pair"
    pressing = strong.forces[-1, :, 0].reshape(2, 2).sum(axis=1)
    assert pressing == pytest.approx([-20.0, 20.0], rel=1e-9)
    assert strong.contact_residual.max() < 1e-6


def test_bits_of_pairs_do_not_depend_on_the_batch(gripper):
    rng = np.random.default_rng(0)
    v = 0.2 * rng.standard_normal((11, gripper.nv))
    q, tau = np.tile(gripper.neutral(), (11, 1)), np.zeros(gripper.nv)
    tau[:2] = 10.0
    run = {"steps": 60, "dt": DT, "contacts": pp.Ground(friction=0.4)}
    found = pp.rollout(gripper, q, v, tau, **run)
    again = pp.rollout(gripper, q[::-1], v[::-1], tau, **run)
    assert np.array_equal(found.q, again.q[::-1])
    assert np.array_equal(pp.rollout(gripper, q[4], v[4], tau, **run).q, found.q[4])
    motion = pp.simulate(
        gripper, q, v, tau=tau, duration=0.06, dt=DT, contacts=run["contacts"], compiled=False
    )
    assert motion.q == pytest.approx(found.q, abs=1e-9)


def test_pairs_have_derivatives():
    """Beside central differences, for a ball that slides over a capsule and the ground."""
    robot = two_bodies(pp.Sphere(0.1), CAPSULE)
    q = robot.neutral()
    q[[2, 9]] = 0.1, 0.2  # the capsule stands on the ground, beside the ball
    q[7] = 0.15 - 1e-4
    q[[2, 9]] -= 1e-4
    rng = np.random.default_rng(0)
    dq, dv = rng.standard_normal((2, robot.nv))
    v = 0.3 * rng.standard_normal(robot.nv)
    v[3] += 1.0
    run = {"steps": 3, "dt": DT}

    def motion(s):
        ground = pp.Ground(friction=0.3 + 0.1 * s)
        return pp.rollout(robot, robot.integrate(q, dq, s), v + s * dv, contacts=ground, **run)

    here, ahead, behind = (motion(s) for s in (0.0, 1e-6, -1e-6))
    assert robot.step(q, v, np.zeros(12), DT, contacts=pp.Ground())[2].modes[-1] != OPEN
    _, found = here.jvp(q=dq, v=dv, ground_friction=0.1)
    expected = (ahead.v - behind.v) / 2e-6
    assert found == pytest.approx(expected, abs=1e-5 * abs(expected).max())
    weights = rng.standard_normal(here.v.shape)
    bars = here.vjp(None, weights)
    reverse = bars["q"] @ dq + bars["v"] @ dv + 0.1 * bars["ground_friction"].sum()
    assert reverse == pytest.approx((weights * found).sum(), rel=1e-9)


def test_pairs_follow_edits():
    legs = {"*_FOOT": pp.Sphere(0.03)}
    robot = pp.load("anymal_c").with_contacts(legs, pairs=[("LF_FOOT", "*F_FOOT")])
    assert [pair.name for pair in robot.contact_pairs] == ["LF_FOOT|RF_FOOT"]
    assert np.isnan(robot.contact_friction).tolist() == [True] * 5
    assert not robot.without("LF_HAA").contact_pairs
    both = pp.load("ur5").attach(robot, "tool0", prefix="dog_")
    (pair,) = both.contact_pairs
    assert (pair.name, pair.second.frame) == ("dog_LF_FOOT|dog_RF_FOOT", "dog_RF_FOOT")
    assert not robot.lock("*", at=robot.neutral()).contact_pairs, "one body is left"
    # solids on two frames of a link move together
    builder = pp.Builder("two")
    for name in "ab":
        builder.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        builder.joint(name, "free", "world", name)
    builder.frame("tip", "a", xyz=(0.1, 0.2, 0.3), rpy=(0.4, 0.5, 0.6))
    solids = {"a": pp.Sphere(0.1), "tip": pp.Capsule(0.1, 0.3, pose=(0.1, 0, 0)), "b": BALL}
    bare = pp.Robot.of(builder.build())
    together = bare.with_contacts(solids, pairs=[("a", "b"), ("tip", "b")])
    alone = bare.with_contacts(solids, pairs=[("tip", "b")], ground="tip")
    q = bare.random(seed=0, size=9)
    gaps = [contact_gaps(GroundContact(x, pp.Ground()), q) for x in (together, alone)]
    assert gaps[0][:, -1] == pytest.approx(gaps[1][:, -1], abs=1e-14)


def test_bad_pairs_are_refused():
    legs = {"*_FOOT": pp.Sphere(0.03), "base": [pp.Box(0.3), pp.Capsule(0.1, 0.2)]}
    robot, ur5 = pp.load("anymal_c"), pp.load("ur5")
    for pairs, words in {
        (("LF_FOOT", "LF_FOOT"),): "on one body",
        (("LF_FOOT", "nose"),): "no contact shapes on",
        ("LF_FOOT",): "pairs has 'LF_FOOT'",
        "LF_FOOT": "pairs is 'LF_FOOT'",
    }.items():
        with pytest.raises(pp.Error, match=words):
            robot.with_contacts(legs, pairs=pairs)
    boxes = {"tool0": pp.Box(0.1), "forearm_link": [pp.Box(0.1)], "wrist_1_link": CAPSULE}
    for pair, words in {
        ("tool0", "forearm_link"): "a box with a box",
        ("tool0", "wrist_1_link"): "a box with a capsule",
    }.items():
        with pytest.raises(pp.ModelError, match=words):
            ur5.with_contacts(boxes, pairs=[pair])
    for shape in (pp.Point(), pp.Cylinder(0.1, 0.2), pp.Points([(0, 0, 0)])):
        with pytest.raises(pp.ModelError, match="cannot be in a pair"):
            ur5.with_contacts({"tool0": shape, "forearm_link": BALL}, pairs=[("tool0", "fore*")])
    with pytest.raises(pp.ModelError, match="fixed to the world"):
        ur5.with_contacts({"tool0": BALL, "base_link": BALL})
    with pytest.raises(pp.ModelError, match="no contact points"):
        ur5.with_contacts({"tool0": BALL}, ground=())
    with pytest.raises(pp.Error, match="no contact shapes on"):
        ur5.with_contacts({"tool0": BALL}, ground="forearm_link")
