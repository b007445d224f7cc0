"""Robots on a ground, beside mechanics in closed form and laws of momentum and energy."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.contact.contact_state import OPEN, SLIP, STICK
from psiphi.simulation.compiled_rollout.contact_step import ground_contact
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import contact_gaps
from psiphi.simulation.control.torque_input import read_torque
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.plant import Plant

GRAVITY = 9.81
SIZE = 0.2


def free_body(shape, mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.0, 0.0, 0.0)):
    builder = pp.Builder("body")
    builder.body("link", mass=mass, inertia=inertia, com=com)
    builder.joint("root", "free", parent="world", child="link")
    return pp.Robot.of(builder.build()).with_contacts({"link": shape})


@pytest.fixture(scope="module")
def sphere():
    return free_body(pp.Sphere(0.1), inertia=(0.004, 0.004, 0.004))


@pytest.fixture(scope="module")
def cube():
    return free_body(pp.Box(SIZE), inertia=(SIZE**2 / 6,) * 3)


@pytest.fixture(scope="module")
def anymal():
    return pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})


@pytest.fixture(scope="module")
def stand(anymal):
    """ANYmal stands for ten seconds."""
    q = anymal.on_ground(anymal.neutral())
    law = pp.PD(anymal, q, kp=200.0, kd=20.0)
    return pp.simulate(anymal, q, tau=law, duration=10.0, dt=2e-3, contacts=pp.Ground())


def rolled(angle):
    """The quaternion of a turn about y."""
    return [0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)]


def test_a_sliding_block_stops_where_coulomb_stops_it(cube):
    """x = v^2 / (2 mu g) - h v / 2, and the block does not lift."""
    q, v = cube.on_ground(cube.neutral()), [0, 0, 0, 1.0, 0, 0]
    errors = []
    for dt in (2e-3, 1e-3):
        motion = pp.simulate(cube, q, v, duration=0.4, dt=dt, contacts=pp.Ground(friction=0.5))
        assert abs(motion.q[:, 2] - SIZE / 2).max() < 1e-12
        errors.append(1.0 / GRAVITY - motion.q[-1, 0])
    # of order 1; the step in which it stops is a whole one
    assert errors == pytest.approx([1e-3, 5e-4], rel=2e-2)
    assert motion.forces[-1].sum(axis=0) == pytest.approx([0, 0, GRAVITY], abs=1e-9)
    assert set(motion.modes[100].tolist()) <= {OPEN, SLIP}
    assert set(motion.modes[-1].tolist()) <= {OPEN, STICK}
    assert {event.name for event in motion.events} <= {"contact holds", "contact slides"}


def test_a_fast_block_does_not_lift(cube):
    """The convex relaxation of Coulomb's law lifts it at mu v."""
    q, v = cube.on_ground(cube.neutral()), [0, 0, 0, 6.0, 0, 0]
    motion = pp.simulate(cube, q, v, duration=0.5, contacts=pp.Ground(friction=0.3))
    assert (motion.q[:, 2] - SIZE / 2).max() < 1e-12


def test_a_sliding_sphere_rolls_at_five_sevenths_of_its_speed(sphere):
    q, v = sphere.on_ground(sphere.neutral()), [0, 0, 0, 1.0, 0, 0]
    motion = pp.simulate(sphere, q, v, duration=0.5, contacts=pp.Ground(friction=0.3))
    speed = np.diff(motion.q[-2:, 0]) / 1e-3
    assert speed == pytest.approx(5 / 7, abs=1e-12)
    assert motion.v[-1, 1] == pytest.approx(50 / 7, abs=1e-11)
    assert abs(motion.q[:, 2] - 0.1).max() < 1e-12


def test_a_ball_bounces_to_the_square_of_its_restitution(sphere):
    q = sphere.neutral()
    q[2] = 1.1
    ground = pp.Ground(restitution=0.8)
    motion = pp.simulate(sphere, q, duration=3.0, contacts=ground)
    height = motion.q[:, 2] - 0.1
    inner = height[1:-1]
    peaks = inner[(inner > height[:-2]) & (inner >= height[2:])][:4]
    assert peaks == pytest.approx(0.64 ** np.arange(1, 5), rel=1e-2)
    assert np.diff(motion.energy).max() < 1e-9


def test_a_thrown_box_never_gains_energy_and_comes_to_rest(cube):
    q = cube.neutral()
    q[2] = 0.5
    motion = pp.simulate(
        cube, q, [3.0, 2.0, 5.0, 1.0, 0.5, 0.0], duration=3.0, contacts=pp.Ground(friction=0.5)
    )
    assert np.diff(motion.energy).max() < 1e-8
    assert motion.gaps.min() > -1e-5
    assert abs(motion.v[-1]).max() < 1e-9
    assert motion.forces[-1].sum(axis=0) == pytest.approx([0, 0, GRAVITY], abs=1e-7)


def test_a_rocking_cube_comes_to_rest_under_its_weight(cube):
    q = cube.neutral()
    q[3:] = rolled(0.1)
    q = cube.on_ground(q)
    motion = pp.simulate(cube, q, duration=1.0, contacts=pp.Ground())
    assert abs(motion.v[-1]).max() < 1e-9
    assert motion.forces[-200:].sum(axis=1).mean(axis=0) == pytest.approx([0, 0, GRAVITY], abs=1e-8)
    assert motion.residual is None
    # momentum: the impulses of contacts and gravity are the change of m v, over the whole motion
    total = 1e-3 * motion.forces[:-1].sum(axis=(0, 1)) - [0, 0, GRAVITY]
    assert total == pytest.approx(np.diff(motion.q[[-2, -1], :3], axis=0)[0] / 1e-3, abs=1e-9)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_block_on_an_incline_holds_up_to_the_friction_angle(cube, side):
    angle, time = 0.3, 0.3
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    friction = np.tan(angle) * (1.0 - 0.02 * side)
    ground = pp.Ground(friction=friction, normal=normal, iterations=500)
    q = cube.neutral()
    q[3:] = rolled(angle)
    q = cube.on_ground(q, ground)
    motion = pp.simulate(cube, q, duration=time, contacts=ground)
    down = GRAVITY * (np.sin(angle) - friction * np.cos(angle)) * time
    assert motion.v[-1, 3] == pytest.approx(max(down, 0.0), abs=2e-6)
    assert abs(motion.v[-1, [0, 1, 2, 5]]).max() < 1e-6


def test_a_disc_on_its_rim_spins_down():
    """w' = -mu m g R / I for a flat disc that spins about its axis."""
    radius, inertia, friction = 0.1, 0.005, 0.2
    disc = free_body(pp.Cylinder(radius, 0.02), inertia=(0.0025, 0.0025, inertia))
    q, v = disc.on_ground(disc.neutral()), [0, 0, 10.0, 0, 0, 0]
    motion = pp.simulate(disc, q, v, duration=0.1, contacts=pp.Ground(friction=friction))
    slowing = friction * GRAVITY * radius / inertia
    assert motion.v[-1, 2] == pytest.approx(10.0 - 0.1 * slowing, rel=1e-9)
    assert motion.gaps[:, :3].min() > -1e-12


def test_a_compliant_ground_is_implicit_euler_of_its_spring(cube):
    ground = pp.Ground(stiffness=1e5, damping=100.0)
    q = cube.on_ground(cube.neutral())
    motion = pp.simulate(cube, q, duration=1.0, contacts=ground)
    assert motion.gaps[-1].min() == pytest.approx(-GRAVITY / 4e5, rel=1e-9)
    # one step of a sphere by hand: m (u - v) = h (f - m g), f = -k (x + h u) - d u
    ball = free_body(pp.Sphere(0.1), inertia=(0.004, 0.004, 0.004))
    k, d, h, x, v = 1e4, 50.0, 1e-3, -1e-3, -0.5
    u = (v - h * GRAVITY - h * k * x) / (1.0 + h * d + h * h * k)
    q = ball.neutral()
    q[2] = 0.1 + x
    _, after, contact = ball.step(
        q, [0, 0, 0, 0, 0, v], np.zeros(6), h, contacts=pp.Ground(stiffness=k, damping=d)
    )
    assert after[5] == pytest.approx(u, rel=1e-12)
    assert contact.forces[0, 2] == pytest.approx(-k * (x + h * u) - d * u, rel=1e-9)


@pytest.fixture(scope="module")
def walker():
    """A free body with two legs; each leg has two frames, toe and heel, with a ball on each."""
    builder = pp.Builder("walker")
    builder.body("hull", mass=4.0, inertia=(0.04, 0.05, 0.06))
    builder.joint("root", "free", "world", "hull")
    for side, y in (("left", 0.15), ("right", -0.15)):
        builder.body(side, mass=0.5, com=(0, 0, -0.15), inertia=(0.004, 0.004, 0.001))
        builder.joint(f"{side} hip", "revolute", "hull", side, xyz=(0, y, -0.05), axis=(0, 1, 0))
        builder.frame(f"{side} toe", side, xyz=(0.05, 0, -0.3))
        builder.frame(f"{side} heel", side, xyz=(-0.05, 0, -0.3), rpy=(0.2, 0.1, -0.4))
    return pp.Robot.of(builder.build()).with_contacts(
        dict.fromkeys(("*toe", "*heel"), pp.Sphere(0.02))
    )


def test_contacts_on_two_frames_of_a_link_obey_the_law(walker):
    """Springs, dampers and Coulomb's law at each contact, from poses and Jacobians."""
    rng, h, k, d, mu = np.random.default_rng(3), 2e-3, 2e4, 50.0, 0.7
    turns = rng.uniform(-0.3, 0.3, (60, walker.nv)) * np.where(np.arange(60) % 2, 0.1, 1)[:, None]
    q = walker.on_ground(walker.integrate(walker.neutral(), turns, 1.0))
    q[:, 2] -= 0.003
    v, tau = rng.uniform(-1, 1, (2, 60, walker.nv))
    ground = pp.Ground(friction=mu, stiffness=k, damping=d)
    moved, after, contact = walker.step(q, v, 3.0 * tau, h, contacts=ground)
    assert contact.residual.max() < 1e-6  # sweeps alone leave up to 4e-4
    old, new = (walker.frame_pose(x, "hull")[:, :3, :3] for x in (q, moved))
    for rows in (slice(0, 3), slice(3, 6)):  # v after the step in the axes at its start
        after[:, rows] = np.einsum("nji,njk,nk->ni", old, new, after[:, rows])
    left, right, *heels = contact.forces[..., 2].T > 0.0
    assert (left & heels[0]).any() and (right & heels[1]).any()
    for i, point in enumerate(walker.contact_points):
        T, J = walker.frame_pose(q, point.frame), walker.jacobian(q, point.frame)
        w, p = np.moveaxis(np.einsum("nij,nj->ni", J, after).reshape(-1, 2, 3), 1, 0)
        u, force, gap = p + np.cross(w, [0, 0, -0.02]), contact.forces[:, i], contact.gaps[:, i]
        assert gap == pytest.approx(T[:, 2, 3] - 0.02, abs=1e-12)
        spring = -k * (gap + h * u[:, 2]) - d * u[:, 2]
        on = gap < 0.0
        assert force[on, 2] == pytest.approx(np.maximum(spring, 0.0)[on], abs=1e-3)
        slip, pull = u[:, :2], force[:, :2]
        size = np.linalg.norm(slip, axis=-1)
        assert (np.linalg.norm(pull, axis=-1) <= mu * force[:, 2] + 1e-9).all()
        slides = size > 1e-6
        assert (size * mu * force[:, 2] + (slip * pull).sum(axis=-1))[slides].max() < 1e-3


def test_points_of_two_frames_of_a_link_are_moved_to_one():
    """Spheres, corners and rims are where they were."""
    rng = np.random.default_rng(0)
    builder = pp.Builder("body")
    builder.body("link", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("root", "free", parent="world", child="link")
    for name in ("one", "two"):
        builder.frame(name, "link", xyz=rng.uniform(-1, 1, 3), rpy=rng.uniform(-2, 2, 3))
    shapes = [pp.Sphere(0.1), pp.Box(0.2), pp.Cylinder(0.1, 0.3)]
    robot = pp.Robot.of(builder.build()).with_contacts({"one": pp.Point(), "two": shapes})
    alone = robot.with_contacts({"two": shapes})
    q = robot.integrate(robot.neutral(), rng.uniform(-2, 2, (20, 6)), 1.0)
    together, own = (GroundContact(x, pp.Ground()) for x in (robot, alone))
    assert together.frames == ("one",) and own.frames == ("two",)
    assert contact_gaps(together, q)[:, 1:] == pytest.approx(contact_gaps(own, q), abs=1e-14)


def test_painleve_rod_gets_a_blow():
    """A rod that slides on its tip with large friction: no force is consistent, an impulse is."""
    builder = pp.Builder("rod")
    builder.body("link", mass=1.0, inertia=(1 / 12, 1 / 12, 1e-3))
    builder.joint("root", "free", parent="world", child="link")
    tips = pp.Points([[0, 0, -0.5]])
    rod = pp.Robot.of(builder.build()).with_contacts({"link": tips})
    q = rod.neutral()
    q[3:] = rolled(0.6)
    q = rod.on_ground(q)
    world = np.array([-1.0, 0.0, 0.0])  # slides so that friction presses the tip into the ground
    lean = 0.6
    turn = np.array([[np.cos(lean), 0, np.sin(lean)], [0, 1, 0], [-np.sin(lean), 0, np.cos(lean)]])
    for sign in (-1.0, 1.0):
        v = np.concatenate([np.zeros(3), turn.T @ (sign * world)])
        motion = pp.simulate(rod, q, v, duration=0.02, dt=1e-4, contacts=pp.Ground(friction=3.0))
        assert np.isfinite(motion.q).all()
        assert motion.contact_residual.max() < 1e-6
        assert np.diff(motion.energy).max() < 1e-9


def test_anymal_stands_without_creep_under_its_weight(anymal, stand):
    mass = sum(body.mass for body in anymal.bodies)
    total = stand.forces[-1].sum(axis=0)
    assert total[2] == pytest.approx(mass * GRAVITY, rel=1e-8)
    assert abs(total[:2]).max() < 1.0  # the legs still settle
    assert (stand.modes == STICK).all()
    assert abs(stand.gaps).max() < 1e-7  # legs that turn, to second order in dt
    assert abs(stand.gaps[-1]).max() < 1e-10
    feet = [
        np.array([anymal.frame_pose(stand.q[k], foot)[:3, 3] for foot in stand.info["contacts"]])
        for k in (500, -1)
    ]
    # a foot is a sphere: its centre rolls by its radius times the turn of the shank
    rolling = 0.03 * abs(stand.q[-1] - stand.q[500])[3:].sum()
    assert abs(feet[1] - feet[0]).max() < rolling + 1e-8
    assert stand.contact_residual.max() < 1e-9


def test_recorded_accelerations_are_those_of_the_motion(stand):
    a = np.diff(stand.v, axis=0) / 2e-3
    assert a == pytest.approx(stand.a[:-1], abs=1e-7)


def test_the_equation_of_motion_holds_at_each_sample(anymal, stand):
    """M a + bias = tau + J* f, with the accelerations and forces of the record."""
    for k in (0, 3, 100):
        q, v = stand.q[k], stand.v[k]
        f_ext = {}
        for name, force in zip(stand.info["contacts"], stand.forces[k], strict=True):
            lever = np.array([0.0, 0.0, -0.03])
            f_ext[name] = np.concatenate([np.cross(lever, force), force])
        # a of the record is in the axes after the step; at these speeds the turn is small
        tau = anymal.inverse_dynamics(q, v, stand.a[k], f_ext=f_ext)
        assert tau == pytest.approx(stand.tau[k], abs=5e-2)


def test_all_ways_to_run_a_motion_agree(anymal):
    """Kernel, rollout, steps, steps in Python, batches and threads give the same motion."""
    q = anymal.on_ground(anymal.neutral())
    ground, law = pp.Ground(friction=0.6), pp.PD(anymal, q, kp=200.0, kd=5.0)
    rng = np.random.default_rng(0)
    batch = np.tile(q, (11, 1))
    speeds = 0.4 * rng.normal(size=(11, anymal.nv))
    options = {"tau": law, "dt": 2e-3, "contacts": ground}
    Q, V = states = pp.rollout(anymal, batch, speeds, steps=60, **options)
    assert states.contact_residual.shape == (11, 61)
    again = pp.rollout(anymal, batch[::-1], speeds[::-1], steps=60, **options)
    assert np.array_equal(again.q[::-1], Q)
    alone = pp.rollout(anymal, q, speeds[7], steps=60, **options)
    assert np.array_equal(alone.q, Q[7])
    before = pp.get_threads()
    try:
        pp.set_threads(1)
        assert np.array_equal(pp.rollout(anymal, batch, speeds, steps=60, **options).q, Q)
    finally:
        pp.set_threads(before)
    motion = pp.simulate(anymal, batch, speeds, duration=0.12, **options)
    assert np.array_equal(motion.q, Q)
    assert np.array_equal(motion.contact_residual, states.contact_residual)
    in_python = pp.simulate(anymal, batch, speeds, duration=0.12, compiled=False, **options)
    assert in_python.q == pytest.approx(Q, abs=1e-9)
    assert in_python.a == pytest.approx(motion.a, abs=1e-4)
    element = motion.element(7)
    assert element.forces.shape == (61, 4, 3)
    tau = law(0.0, Q[:, 0], V[:, 0])
    q1, v1, contact = anymal.step(Q[:, 0], V[:, 0], tau, 2e-3, contacts=ground)
    assert q1 == pytest.approx(Q[:, 1], abs=1e-12)
    assert np.array_equal(contact.modes, motion.modes[:, 0])
    assert contact.forces == pytest.approx(motion.forces[:, 0], abs=1e-6)
    assert {STICK, SLIP, OPEN} <= set(motion.modes.astype(int).flat)


def test_a_step_of_float32_gives_float32(sphere):
    q, v = sphere.on_ground(sphere.neutral()), np.array([0, 0, 0, 1.0, 0, -0.2])
    state = [x.astype(np.float32) for x in (q, v, np.zeros(6))]
    narrow = sphere.step(*state, 1e-3, contacts=pp.Ground())
    wide = sphere.step(*(x.astype(float) for x in state), 1e-3, contacts=pp.Ground())
    for x, y in zip((*narrow[:2], *narrow[2]), (*wide[:2], *wide[2]), strict=True):
        assert x.dtype == (np.int8 if y.dtype == np.int8 else np.float32)
        assert np.array_equal(x, y.astype(x.dtype))
    mixed = sphere.step(state[0], v, np.zeros(6), 1e-3, contacts=pp.Ground())
    assert mixed[0].dtype == mixed[2].forces.dtype == np.float64


def test_the_margin_is_the_distance_from_another_mode():
    """Of a point at the centre of mass, whose y is v before the step: A lambda = -c_n, y_t = v."""
    puck, h, mu = free_body(pp.Point(), inertia=(0.01, 0.01, 0.01)), 2e-3, 0.5
    ground, weight = pp.Ground(friction=mu), GRAVITY * h
    v_t = np.array([0.0, 0.4 * mu * weight, 0.9 * mu * weight, 1.2 * mu * weight, 0.3])
    q, v = np.tile(puck.neutral(), (6, 1)), np.zeros((6, 6))
    v[:5, 3], q[5, 2], v[5, 5] = v_t, 0.01, 0.1
    contact = puck.step(q, v, np.zeros(6), h, contacts=ground)[2]
    air = 0.1 - weight + 0.01 / h
    expected = [*np.minimum(weight, abs(v_t - mu * weight)), air]
    assert contact.margin[:, 0] == pytest.approx(expected, rel=1e-9)
    # a change of v by a little more than the margin changes the mode
    for k, direction in ((2, 3), (3, 3), (5, 5)):
        for share in (0.99, 1.01):
            moved = v[k].copy()
            moved[direction] -= share * contact.margin[k, 0] * (-1 if k == 2 else 1)
            mode = puck.step(q[k], moved, np.zeros(6), h, contacts=ground)[2].modes
            assert (mode[0] == contact.modes[k, 0]) == (share < 1), (k, share)


def test_a_batch_of_grounds(cube):
    """Friction has an entry for each motion, without another kernel."""
    frictions = np.array([[0.2], [0.4], [0.8]])
    q, v = np.tile(cube.on_ground(cube.neutral()), (3, 1)), [0, 0, 0, 1.0, 0, 0]
    ground = pp.Ground(friction=frictions)
    motion = pp.simulate(cube, q, np.tile(v, (3, 1)), duration=0.1, contacts=ground)
    assert motion.v[:, -1, 3] == pytest.approx(1.0 - frictions[:, 0] * GRAVITY * 0.1, abs=1e-9)


def test_losses_are_implicit_with_contacts(anymal):
    """Stiff damping does not disturb the contacts, whose G has the damping in its inertia."""
    q = anymal.on_ground(anymal.neutral())
    damping = np.concatenate([np.zeros(6), np.full(12, 1e4)])
    motion = pp.simulate(anymal, q, duration=0.1, dt=2e-3, damping=damping, contacts=pp.Ground())
    assert motion.contact_residual.max() < 1e-6
    mass = sum(body.mass for body in anymal.bodies)
    assert motion.forces[-1].sum(axis=0)[2] == pytest.approx(mass * GRAVITY, rel=1e-3)


def test_trajectories_with_contacts_are_written_and_read(stand, tmp_path):
    short = stand[:5]
    for name in ("motion.npz", "motion.csv"):
        short.save(tmp_path / name)
        read = pp.Trajectory.load(tmp_path / name, short.system)
        for field in ("forces", "gaps", "modes", "contact_residual"):
            assert np.array_equal(getattr(read, field), getattr(short, field))
    (tmp_path / "motion.csv.json").unlink()
    bare = pp.Trajectory.load(tmp_path / "motion.csv")
    assert np.array_equal(bare.forces, short.forces)
    middle = stand.at(0.001)
    assert middle.gaps.shape == (4,)
    assert "contact residual" in stand.summary()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda robot: {"friction": -0.1}, "friction is -0.1"),
        (lambda robot: {"friction": np.nan}, "friction is nan"),
        (lambda robot: {"restitution": 1.5}, "from 0 to 1"),
        (lambda robot: {"stiffness": 0.0}, "stiffness is 0"),
        (lambda robot: {"damping": 1.0}, "ground is rigid"),
        (lambda robot: {"normal": (0, 0, 0)}, "no direction"),
        (lambda robot: {"iterations": 0}, "iterations"),
    ],
)
def test_bad_grounds_are_refused(change, words):
    with pytest.raises(pp.ModelError, match=words):
        pp.Ground(**change(None))


def test_bad_contacts_are_refused(cube, sphere):
    bare = pp.load("ur5")
    with pytest.raises(pp.StateError, match="no contact points"):
        pp.simulate(bare, bare.neutral(), contacts=pp.Ground())
    with pytest.raises(pp.StateError, match="frames"):
        bare.with_contacts({"no_such_foot": pp.Sphere(0.1)})
    with pytest.raises(pp.ModelError, match="no contact points"):
        bare.with_contacts({})
    with pytest.raises(pp.ModelError, match="radius"):
        bare.with_contacts({"tool0": pp.Sphere(-1.0)})
    with pytest.raises(pp.ModelError, match="fixed to the world"):
        bare.with_contacts({"base_link": pp.Sphere(0.1)})
    with pytest.raises(pp.ModelError, match="shape of"):
        bare.with_contacts({"tool0": 0.03})
    with pytest.raises(pp.ModelError, match="links"):
        bare.with_contacts({"tool0": pp.Point()}, links="x")
    with pytest.raises(pp.ModelError, match="contacts is"):
        bare.with_contacts(3)
    with pytest.raises(pp.StateError, match="inside the ground"):
        pp.simulate(cube, cube.neutral(), contacts=pp.Ground())
    with pytest.raises(pp.StateError, match="inside the ground in batch element 1"):
        q = np.stack([cube.on_ground(cube.neutral()), cube.neutral()])
        pp.rollout(cube, q, steps=2, contacts=pp.Ground())
    q = cube.on_ground(cube.neutral())
    for wrong in (True, 0.8, pp.Ground):
        with pytest.raises(pp.StateError, match=r"expected a ground or hold.*contacts=pp\.Ground"):
            pp.simulate(cube, q, contacts=wrong)
    with pytest.raises(pp.StateError, match=r"on_ground: ground is 0\.8"):
        cube.on_ground(q, 0.8)
    with pytest.raises(pp.StateError, match="give the robot itself"):
        pp.simulate(cube.diagonalised, q, contacts=pp.Ground())
    with pytest.raises(pp.StateError, match="moreau"):
        pp.simulate(cube, q, contacts=pp.Ground(), method="rk4")
    with pytest.raises(pp.StateError, match=r"contacts=pp\.Ground"):
        pp.simulate(cube, q, method="moreau")
    with pytest.raises(pp.StateError, match=r"give a pp\.Ground"):
        pp.rollout(cube, q, contacts="open")
    with pytest.raises(pp.StateError, match=r"2 contact points|8 contact points"):
        pp.simulate(cube, q, contacts=pp.Ground(friction=[0.1, 0.2]))
    with pytest.raises(pp.StateError, match="stop has unknown"):
        pp.simulate(cube, q, contacts=pp.Ground(), stop="contact made")
    with pytest.raises(pp.StateError, match="cannot move along the normal"):
        cart = pp.load("cartpole").with_contacts({"cart": pp.Sphere(0.1)})
        pp.simulate(cart, [0.0, 0.1], contacts=pp.Ground(point=(0, 0, -0.2)))
    with pytest.raises(pp.StateError, match="free base"):
        fixed = pp.load("ur5").with_contacts({"tool0": pp.Sphere(0.02)})
        fixed.on_ground(fixed.neutral())


def test_explain_counts_what_runs(anymal, cube):
    """Its parts are all blocks of a step; points of one body are dependent."""
    text = anymal.explain(contacts=pp.Ground(friction=0.6))
    assert text.startswith("anymal_c on Ground(friction=0.6)") and "G = J M^-1 J*" in text
    assert "4 points on 4 links, 1 on each: 12 rows of J\n" in text
    table = text[text.index("part ") : text.index("a step in the air")].split("\n")[1:]
    flops = [int(line.split()[1]) for line in table if line]
    losses = read_losses(Plant(anymal), False, False, None, False)
    contact = ground_contact(Plant(anymal), pp.Ground(friction=0.6), "ignore", "test")
    step = RolloutInput(read_torque(None, Plant(anymal), (), 1), losses, None, None, contact)
    options = step.options(Plant(anymal), "moreau", True)
    assert sum(flops) == RolloutProgram(anymal, options).flops
    text = cube.explain(contacts=pp.Ground(iterations=7))
    assert "8 points on 1 link, 8 on each: 24 rows of J, at most 6 of them" in text
    assert "at most 7 times" in text
    with pytest.raises(pp.StateError, match=r"explain: contacts is 0\.8"):
        cube.explain(contacts=0.8)
    with pytest.raises(pp.StateError, match="no contact points"):
        pp.load("ur5").explain(contacts=pp.Ground())


def test_contacts_follow_edits(anymal):
    """Contact points keep their frames through edits, and get the prefix of an attached robot."""
    cut = anymal.without("LF_HAA")
    assert {point.frame for point in cut.contact_points} == {"LH_FOOT", "RF_FOOT", "RH_FOOT"}
    arm = pp.load("ur5").with_contacts({"tool0": pp.Sphere(0.02)})
    both = anymal.attach(arm, "base", prefix="arm_")
    assert both.contact_points[-1].frame == "arm_tool0"
    assert len(both.contact_points) == 5
    assert len(pp.Robot.of(anymal).contact_points) == 4
    assert len(anymal.free("mass").contact_points) == 4


def test_collision_shapes_of_a_file(tmp_path):
    urdf = """<robot name="puck"><link name="puck">
      <inertial><mass value="2"/><inertia ixx="0.01" iyy="0.01" izz="0.02" ixy="0" ixz="0" iyz="0"/>
      </inertial>
      <collision><origin xyz="0 0 0.1"/><geometry><sphere radius="0.2"/></geometry></collision>
      <collision><geometry><box size="0.2 0.4 0.6"/></geometry></collision></link></robot>"""
    path = tmp_path / "puck.urdf"
    path.write_text(urdf, encoding="utf-8")
    puck = pp.load(path, base="free").with_contacts("collision")
    names = [point.name for point in puck.contact_points]
    assert names == ["puck", *(f"puck#2.{i}" for i in range(8))]
    assert puck.contact_points[0].radius == 0.2
    assert puck.contact_points[0].center == (0.0, 0.0, 0.1)
    corners = np.array([point.center for point in puck.contact_points[1:]])
    assert np.ptp(corners, axis=0) == pytest.approx([0.2, 0.4, 0.6])
    with pytest.raises(pp.ModelError, match="collision shapes"):
        pp.robots.chain(3).with_contacts("collision")


def test_free_masses_on_a_ground():
    """Parameters of each element: heavier copies press harder, with the same kernel."""
    robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
    q = robot.on_ground(robot.neutral())
    masses = robot.free("mass")
    p = np.stack([masses.parameters(), 1.5 * masses.parameters()])
    heavy = masses.at(p)
    law = pp.PD(heavy, q, kp=300.0, kd=10.0)
    motion = pp.simulate(
        heavy, np.stack([q, q]), tau=law, duration=0.6, dt=2e-3, contacts=pp.Ground()
    )
    weight = motion.forces[:, -100:].sum(axis=-2).mean(axis=-2)[:, 2]
    assert weight == pytest.approx(p.sum(axis=-1) * GRAVITY, rel=1e-2)


@pytest.mark.parametrize("feet", [[(0, 0, 0)], [(0, 0, 0), (0, 0.1, 0)]])
def test_the_foot_of_a_straight_leg_cannot_be_pushed_out(feet):
    """A contact whose normal is along the leg has A_nn = 0: a depth stays, and is reported; one of
    rounding does nothing. A slider, whose contact can never leave the ground, is refused."""
    builder = pp.Builder("leg")
    builder.body("leg", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    builder.joint("hip", "revolute", "world", "leg", xyz=(0, 0, 1), axis=(0, 1, 0))
    builder.frame("foot", "leg", xyz=(0, 0, -1))
    leg = builder.build().with_contacts({"foot": pp.Points(feet)})
    for depth, tolerance in ((1e-12, 1e-6), (0.0, 1e-12)):
        motion = pp.simulate(
            leg, [0.0], [0.1], duration=0.05, dt=1e-3, contacts=pp.Ground(point=(0, 0, depth))
        )
        free = pp.simulate(leg, [0.0], [0.1], duration=0.05, dt=1e-3, method="euler")
        np.testing.assert_allclose(motion.q, free.q, atol=1e-4)
        assert motion.contact_residual.max() <= tolerance
        assert "contact not solved" not in {event.name for event in motion.events}
    deep = pp.simulate(
        leg, [0.0], [0.1], duration=0.05, dt=1e-3, contacts=pp.Ground(point=(0, 0, 5e-4))
    )
    assert np.isfinite(deep.v).all() and np.abs(deep.v).max() <= 0.1 + 1e-9
    assert {event.name for event in deep.events} >= {"contact not solved"}
    builder = pp.Builder("slider")
    builder.body("slider", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("x", "prismatic", "world", "slider", axis=(1, 0, 0))
    slider = builder.build().with_contacts({"slider": pp.Point()})
    with pytest.raises(pp.Error, match="cannot move along the normal"):
        slider.step([0.0], [1.0], [0.0], 1e-3, contacts=pp.Ground())
