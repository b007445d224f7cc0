"""Bodies that come to rest: statics, momentum and friction cones at every recorded step."""

import numpy as np
import pytest

import psiphi as pp

GRAVITY, MASS, MU = 9.81, 2.0, 0.6


@pytest.fixture(scope="module")
def stones():
    """A convex polyhedron of 12 corners that is thrown: 12 motions, which end at rest."""
    rng = np.random.default_rng(1)
    corners = rng.standard_normal((12, 3))
    corners *= np.array([0.2, 0.15, 0.1]) / np.linalg.norm(corners, axis=1)[:, None]
    builder = pp.Builder("stone")
    builder.body("stone", mass=MASS, com=(0.01, 0.02, 0), inertia=(0.02, 0.03, 0.04))
    builder.joint("root", "free", "world", "stone")
    robot = pp.Robot.of(builder.build()).with_contacts({"stone": pp.Points(corners)})
    ground = pp.Ground(friction=MU)
    turns = 3.0 * rng.standard_normal((12, 6)) * [1, 1, 1, 0, 0, 0]
    q = robot.integrate(np.tile(robot.neutral(), (12, 1)), turns, 1.0)
    q = robot.on_ground(q, ground)
    q[:, 2] += 0.1
    v = rng.standard_normal((12, 6)) * [3, 3, 3, 1, 1, 1]
    thrown = pp.simulate(robot, q, v, duration=5.0, dt=1e-3, contacts=ground)
    return robot, thrown, ground


def centre(robot, q):
    T = robot.frame_pose(q, "stone")
    return T[..., :3, :3] @ [0.01, 0.02, 0.0] + T[..., :3, 3]


def test_each_step_of_a_thrown_stone_obeys_the_laws(stones):
    """Signorini, Coulomb, momentum, and no energy from nowhere."""
    robot, motion, _ = stones
    force, normal = motion.forces, motion.forces[..., 2]
    assert (motion.contact_residual > 1e-6).mean() < 1e-4 > motion.contact_residual.max()
    assert normal.min() > -1e-9
    assert (np.hypot(force[..., 0], force[..., 1]) - MU * normal).max() < 1e-6
    pushed = normal[:, :-1] > 1e-6
    assert motion.gaps[:, 1:][pushed].max() < 1e-4  # where it has pushed, it touches
    assert motion.gaps.min() > -1e-4
    # M dv = dt (sum of forces - weight), for the centre of mass
    x = centre(robot, motion.q)
    rate = np.diff(x, axis=1) / 1e-3
    gained = MASS * np.diff(rate, axis=1) / 1e-3
    total = force[:, 1:-1].sum(axis=-2) - [0, 0, MASS * GRAVITY]
    turning = np.abs(motion.v[:, :-2, :3]).max(axis=-1)
    still = turning < 1e-3
    assert gained[still] == pytest.approx(total[still], abs=1e-2)
    in_the_air = (normal == 0.0).all(axis=-1)[:, :-1]
    gain = np.diff(motion.energy, axis=-1)
    assert gain[~in_the_air].max() < 1e-9
    assert gain.max() < 1e-3  # of 16 J: the integrator's


def test_stones_at_rest_carry_their_weight_and_do_not_creep(stones):
    robot, thrown, ground = stones
    assert np.abs(thrown.v[:, -1]).max() < 1e-9
    q, v = thrown.q[:, -1], thrown.v[:, -1]
    motion = pp.simulate(robot, q, v, duration=10.0, dt=1e-3, every=1000, contacts=ground)
    assert np.abs(motion.q[:, -1, :3] - motion.q[:, 0, :3]).max() < 1e-8
    assert np.abs(motion.v).max() < 1e-9
    force = motion.forces
    weight = np.broadcast_to([0, 0, MASS * GRAVITY], force[..., 0, :].shape)
    assert force.sum(axis=-2) == pytest.approx(weight, abs=1e-6)
    # moments about the centre of mass
    T = robot.frame_pose(motion.q, "stone")
    corners = np.array([point.center for point in robot.contact_points])
    places = np.einsum("ntij,cj->ntci", T[..., :3, :3], corners) + T[..., None, :3, 3]
    arms = places - centre(robot, motion.q)[..., None, :]
    assert np.abs(np.cross(arms, force).sum(axis=-2)).max() < 1e-6
