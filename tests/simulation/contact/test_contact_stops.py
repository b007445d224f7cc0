"""Joints that stop at their limits, in one solve with the contacts of the robot."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.simulation.contact.cone_solver import ContactBlock
from psiphi.simulation.contact.contact_newton import (
    NewtonOptions,
    Problem,
    coordinate_operations,
    joint_operations,
    newton_step,
)
from psiphi.simulation.contact.contact_space import StepPlaces
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.plant import Plant

GRAVITY, DT = 9.81, 1e-3
GROUND = pp.Ground(friction=1.0)


def hopper(**knee):
    """A leg of two links under a mass that slides up and down."""
    builder = pp.Builder("hopper")
    builder.body("hip", mass=2.0, inertia=(0.01, 0.01, 0.01))
    builder.joint("slide", "prismatic", "world", "hip", axis=(0, 0, 1))
    limb = {"mass": 0.5, "com": (0, 0, -0.1), "inertia": (2e-3, 2e-3, 1e-3)}
    for name, parent, z, limits in (
        ("thigh", "hip", 0.0, {"lower": -0.6, "upper": 0.6}),
        ("shank", "thigh", -0.2, {"lower": -1.2, "upper": 0.0} | knee),
    ):
        builder.body(name, **limb)
        builder.joint(name, "revolute", parent, name, xyz=(0, 0, z), axis=(0, 1, 0), **limits)
    builder.frame("foot", "shank", xyz=(0, 0, -0.2))
    return pp.Robot.of(builder.build()).with_contacts({"foot": pp.Sphere(0.02)})


@pytest.fixture(scope="module")
def leg():
    return hopper()


@pytest.fixture(scope="module")
def fall(leg):
    """The leg folds until its hip is at the limit, and then stands on it."""
    run = {"duration": 2.0, "dt": DT, "contacts": GROUND, "limits": "block"}
    return pp.simulate(leg, [0.42, 0.3, -0.6], **run), run


def test_a_leg_comes_to_rest_at_its_limit_and_on_its_foot(leg, fall):
    motion, _ = fall
    assert motion.final.q[1] == pytest.approx(0.6, abs=1e-12)
    assert abs(motion.final.v).max() < 1e-9
    assert motion.contact_residual.max() < 1e-9
    assert np.diff(motion.energy).max() < 1e-9
    assert motion.q[:, 1].max() < 0.6 + 1e-9
    assert motion.q[:, 2].min() > -1.2 - 1e-9
    assert motion.forces[-1, 0, 2] == pytest.approx(3.0 * GRAVITY, rel=1e-9)
    # statics: the torque of the stop carries what gravity and the ground leave
    force, arm = motion.forces[-1, 0], np.array([0.0, 0.0, -0.02])
    wrench = np.concatenate([np.cross(arm, force), force])
    left = leg.inverse_dynamics(motion.final.q, np.zeros(3), np.zeros(3), f_ext={"foot": wrench})
    assert motion.stop_forces[-1] == pytest.approx(left, abs=1e-7)
    assert motion.stop_forces[-1, 1] < -1.0
    # the recorded work of the stops is what they take from the motion in impacts
    assert motion.stop_work[-1] < 0.0 and np.diff(motion.stop_work).max() < 1e-12


def test_all_ways_to_run_agree(leg, fall):
    motion, run = fall
    in_python = pp.simulate(leg, [0.42, 0.3, -0.6], compiled=False, **run)
    assert in_python.q == pytest.approx(motion.q, abs=1e-9)
    assert in_python.stop_forces == pytest.approx(motion.stop_forces, abs=1e-4)
    assert in_python.stop_work == pytest.approx(motion.stop_work, abs=1e-9)
    q = np.tile([0.42, 0.3, -0.6], (9, 1))
    v = np.random.default_rng(0).standard_normal((9, 3))
    options = {"steps": 500, "dt": DT, "contacts": GROUND, "limits": "block"}
    found = pp.rollout(leg, q, v, **options)
    assert np.array_equal(pp.rollout(leg, q[::-1], v[::-1], **options).q[::-1], found.q)
    assert np.array_equal(pp.rollout(leg, q[5], v[5], **options).q, found.q[5])
    every = pp.rollout(leg, q, v, every=50, **options)
    assert np.array_equal(every.q, found.q[:, ::50])


@pytest.mark.parametrize(
    "ground", [GROUND, pp.Ground(friction=0.8, smooth=0.05)], ids=["rigid", "smooth"]
)
def test_motions_have_derivatives(leg, ground):
    """jvp beside central differences, and vjp beside jvp, while stops stay open or closed."""
    rng, step, closed = np.random.default_rng(1), 1e-6, 0
    for hip, knee in ((0.6, -1.2), (0.6, -0.5), (0.2, 0.0), (-0.6, -1.2), (0.2, -0.5)):
        q = np.array([0.0, hip, knee])
        q[0] -= leg.frame_pose(q, "foot")[2, 3] - 0.02 + 2e-4
        q[1:] -= 1e-4 * np.sign([hip, knee + 0.6])  # the first step passes the limits
        v, tau = np.array([-0.3, 0.5 * hip, 0.5 * knee + 0.3]), rng.standard_normal((3, 3))
        dq, dv = rng.standard_normal((2, 3))
        dtau = rng.standard_normal((3, 3))

        def motion(s, q=q, v=v, tau=tau, dq=dq, dv=dv, dtau=dtau):
            start = q + s * dq, v + s * dv, tau + s * dtau
            options = {"steps": 3, "contacts": ground, "limits": "block"}
            return pp.rollout(leg, *start, DT, **options)

        here, ahead, behind = motion(0.0), motion(step), motion(-step)
        found = here.jvp(q=dq, v=dv, tau=dtau)
        for change, a, b in zip(found, ahead, behind, strict=True):
            expected = (a - b) / (2 * step)
            np.testing.assert_allclose(change, expected, atol=2e-6 * max(1, abs(expected).max()))
        weights = rng.standard_normal((2, *here.q.shape))
        bars = here.vjp(*weights)
        forward = sum(np.sum(w * x) for w, x in zip(weights, found, strict=True))
        reverse = bars["q"] @ dq + bars["v"] @ dv + np.sum(bars["tau"] * dtau)
        assert reverse == pytest.approx(forward, rel=1e-9)
        recorded = {"duration": 3 * DT, "dt": DT, "contacts": ground, "limits": "block"}
        same = pp.simulate(leg, q, v, tau=tau, **recorded)
        assert same.vjp(*weights)["v"] == pytest.approx(bars["v"], rel=1e-9, abs=1e-12)
        closed += int((abs(same.stop_forces) > 0).any())
    assert closed >= 3


def test_each_step_obeys_the_laws(leg):
    """M (v+ - v) = h (tau - bias) + J* lambda + S* mu, with both complementarities."""
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(40):
        q = np.array([0.0, rng.choice([-0.6, 0.6, 0.2]), rng.choice([-1.2, 0.0, -0.5])])
        q[0] -= leg.frame_pose(q, "foot")[2, 3] - 0.02
        v, tau = rng.standard_normal(3), 20.0 * rng.standard_normal(3)
        run = {"duration": 2 * DT, "dt": DT, "contacts": GROUND, "limits": "block"}
        motion = pp.simulate(leg, q, v, tau=tau, **run)
        after, force = motion.v[1], motion.forces[0, 0]
        stop = motion.stop_forces[1]  # since the sample before
        J = leg.jacobian(q, "foot")
        J = J[3:] + np.cross(J[:3].T, [0.0, 0.0, -0.02]).T
        bias = leg.inverse_dynamics(q, v, np.zeros(3))
        total = DT * (tau - bias + J.T @ force + stop)
        assert leg.mass_matrix(q) @ (after - v) == pytest.approx(total, abs=1e-9)
        u, push = J @ after, DT * force
        assert u[2] > -1e-9 and push[2] > -1e-12 and abs(u[2] * push[2]) < 1e-9
        assert np.hypot(*push[:2]) <= push[2] + 1e-9
        for k in (1, 2):
            low, high = q[k] - leg.lower[k], leg.upper[k] - q[k]
            side = 1.0 if low < high else -1.0
            rate, mu = side * after[k] + min(low, high) / DT, side * DT * stop[k]
            assert rate > -1e-9 and mu > -1e-12 and abs(rate * mu) < 1e-9
            seen |= {mu > 1e-6} if min(low, high) == 0.0 else set()
    assert seen == {True, False}


def test_a_pendulum_without_ground_below_stops_as_in_the_air():
    """Where no foot touches, the stops of both kinds of simulation agree to first order."""
    builder = pp.Builder("pendulum")
    builder.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    builder.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), lower=-0.5, upper=1.5)
    tip = pp.Sphere(0.1, pose=(0, 0, -1))
    robot = pp.Robot.of(builder.build()).with_contacts({"rod": tip})
    run = {"duration": 1.0, "dt": DT, "limits": "block"}
    low = pp.simulate(robot, [1.0], contacts=pp.Ground(point=(0, 0, -2.0)), **run)
    air = pp.simulate(robot, [1.0], method="euler", **run)
    assert low.q.min() == pytest.approx(-0.5, abs=1e-9)
    assert low.q == pytest.approx(air.q, abs=2e-2)
    assert low.stop_forces.sum() == pytest.approx(air.stop_forces.sum(), rel=1e-2)


@pytest.mark.parametrize("stops", [False, True], ids=["contacts", "with stops"])
def test_both_systems_of_newtons_method_agree(stops):
    """(1 + Omega K) V = Omega g for the contacts, (1 + Y* K Y) y = Y* g for the joints."""
    shapes = {"*_FOOT": pp.Sphere(0.03), "base": pp.Box((0.8, 0.3, 0.2))}
    robot = pp.load("anymal_c").with_contacts(shapes)
    contact = GroundContact(robot, GROUND, JointStops(Plant(robot)) if stops else None)
    space, rng = contact.space, np.random.default_rng(0)
    supports = contact.solver.supports
    Y = np.zeros((space.size, robot.nv))
    for row, support in zip(Y, supports, strict=True):
        row[list(support)] = rng.standard_normal(len(support))
    levers = 0.2 * rng.standard_normal(space.place_size - space.stop_count)
    place = np.concatenate([levers, np.sign(rng.standard_normal(space.stop_count))])
    assert isinstance(space.unpack(place), StepPlaces)
    omega, rows = Y @ Y.T, space.rows(place)
    G = space.delassus(rows, omega.tolist())
    blocks = [
        ContactBlock.of([row[3 * i : 3 * i + 3] for row in G[3 * i : 3 * i + 3]])
        for i in range(contact.count)
    ]
    speed, friction = rng.standard_normal(space.impulse_size), np.full(contact.count, 0.7)
    problem = Problem(space, omega.tolist(), rows, blocks, entries(speed), entries(friction))
    half = [{k: row[k] for k in support} for row, support in zip(Y, supports, strict=True)]
    lam = entries(abs(rng.standard_normal(space.impulse_size)))
    V = entries(omega @ np.array(space.wrench(rows, lam)))
    for x, y in zip(
        newton_step(problem, lam, V, NewtonOptions()),
        newton_step(problem._replace(half=half), lam, V, NewtonOptions()),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)
    assert joint_operations(space, supports) < coordinate_operations(space)
    assert contact.solver.uses_newton and contact.solver.by_joints


def test_a_quadruped_falls_within_its_limits():
    """Feet, belly and stops in one solve."""
    belly = [pp.Sphere(0.1, pose=(x, 0, 0)) for x in (-0.3, 0.3)]
    robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03), "base": belly})
    text = robot.explain(contacts=GROUND)
    assert "6 points on 5 links, 1 to 2 on each" in text
    q = robot.on_ground(robot.neutral())
    q = np.tile(q, (4, 1))
    v = np.zeros((4, robot.nv))
    v[:, :6] = np.random.default_rng(0).standard_normal((4, 6))
    damping = np.repeat([0.0, 0.5], [6, 12])
    run = {"dt": 2e-3, "steps": 400, "contacts": GROUND, "damping": damping}
    states = pp.rollout(robot, q, v, limits="block", **run)
    beyond = np.maximum(robot.lower - states.q, states.q - robot.upper)
    assert beyond[..., 7:].max() < 1e-6
    assert states.contact_residual.max() < 1e-6
    free = pp.rollout(robot, q, v, **run)
    assert np.maximum(robot.lower - free.q, free.q - robot.upper)[..., 7:].max() > 0.1


def test_bad_limits_are_refused(leg):
    run = {"duration": 0.01, "contacts": GROUND, "limits": "block"}
    with pytest.raises(pp.StateError, match=r"q0 of thigh is 0\.7"):
        pp.simulate(leg, [0.5, 0.7, -0.5], **run)


@pytest.mark.parametrize("ground", [GROUND, pp.Ground(smooth=0.01)], ids=["rigid", "smooth"])
def test_a_joint_with_equal_limits_is_locked(ground):
    """The motion, its forces and derivatives are those of the robot without the joint."""
    held = hopper(lower=-0.5, upper=-0.5)
    alone = hopper().lock("shank", at=[0.0, 0.0, -0.5])
    run = {"duration": 0.3, "dt": DT, "contacts": ground, "limits": "block"}
    motion = pp.simulate(held, [0.45, 0.3, -0.5], [0, 1.0, 0], **run)
    expected = pp.simulate(alone, [0.45, 0.3], [0, 1.0], **run)
    assert motion.q[:, :2] == pytest.approx(expected.q, abs=1e-9)
    assert abs(motion.q[:, 2] + 0.5).max() < 1e-12
    assert motion.forces == pytest.approx(expected.forces, abs=1e-5)
    assert motion.stop_forces[:, :2] == pytest.approx(expected.stop_forces, abs=1e-5)
    assert motion.forces.max() > 10.0 and motion.contact_residual.max() < 1e-9
    if not ground.smooth:  # the torque of the lock in the air, where it is the only force
        torque = held.inverse_dynamics(motion.q[0], motion.v[0], motion.a[0])
        assert motion.stop_forces[1, 2] == pytest.approx(torque[2], rel=1e-2)
    options = {"steps": 20, "dt": DT, "contacts": ground, "limits": "block"}
    start = np.array([0.0, 0.3, -0.5])
    start[0] -= held.frame_pose(start, "foot")[2, 3] - 0.02 + 2e-4
    weights = np.zeros((21, 3))
    weights[-1, :2] = 1.0
    bars = pp.rollout(held, start, [0, 1.0, 0], **options).vjp(weights)
    known = pp.rollout(alone, start[:2], [0, 1.0], **options).vjp(weights[:, :2])
    for name in ("q", "v"):
        assert bars[name][:2] == pytest.approx(known[name], rel=1e-6, abs=1e-9)
