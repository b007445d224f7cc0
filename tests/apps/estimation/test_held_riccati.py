"""S1 section 7: forward dynamics with an old solution of the Riccati equation."""

import numpy as np
import pytest

import psiphi as pp
from tests import zoo

NAMES = ("every_kind", "tree", "rotors", "floating_pair")
MODELS = {name: make for name, make in zoo.ZOO if name in NAMES}


def tilde(p):
    return np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])


def shift(robot, q, k, parent):
    """Forces on body k in its axes as forces on its parent in the parent's axes."""
    poses = [
        np.eye(4) if name is None else robot.frame_pose(q, name)
        for name in (robot.bodies[parent].name if parent >= 0 else None, robot.bodies[k].name)
    ]
    T = np.linalg.inv(poses[0]) @ poses[1]
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, tilde(p) @ R], [np.zeros((3, 3)), R]])


def inertia(body):
    c = tilde(body.com)
    I = body.inertia - body.mass * c @ c
    return np.block([[I, body.mass * c], [-body.mass * c, body.mass * np.eye(3)]])


def own_residual(robot, P, q):
    """M + R of each body, P - (M + R) = sum over the children of X (P - P H* D^-1 H P) X*, with
    poses of frames and columns of Jacobians."""
    blocks = [P[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(len(robot.bodies))]
    own = [block.copy() for block in blocks]
    for k, body in enumerate(robot.bodies):
        parent = robot.parent[k]
        if parent < 0:
            continue
        J = robot.jacobian(q, body.name, axes="frame")[:, robot.joints[k].v_slice].T  # H
        D = J @ blocks[k] @ J.T + np.diag(robot.armature[robot.joints[k].v_slice])
        inside = blocks[k] - blocks[k] @ J.T @ np.linalg.solve(D, J @ blocks[k])
        X = shift(robot, q, k, parent)
        own[parent] -= X @ inside @ X.T
    return own


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_exact_dynamics_of_other_links(name):
    """The inverse with a held P is that of sum J* (M + R) J, the links' inertias M + R."""
    robot = pp.Robot.of(MODELS[name]())
    rng = np.random.default_rng(4)
    q0 = robot.random(rng)
    held = pp.estimation.held_riccati(robot, q0)
    q = robot.integrate(q0, 0.4 * rng.standard_normal(robot.nv))
    own = own_residual(robot, held.P, q)
    mass = np.diag(robot.armature)
    for k, body in enumerate(robot.bodies):
        J = robot.jacobian(q, body.name, axes="frame")
        mass = mass + J.T @ own[k] @ J
        seen = held.residual(q)[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        assert np.allclose(seen, own[k] - inertia(body), atol=1e-9 * np.abs(held.P).max())
    assert np.allclose(held.mass_matrix(q), mass, atol=1e-9 * np.abs(mass).max())
    assert np.allclose(held.mass_matrix_inverse(q) @ mass, np.eye(robot.nv), atol=1e-8)
    assert np.linalg.eigvalsh(held.mass_matrix(q)).min() > 0.0
    assert held.sensitivity(q0) < 1e-9


def test_errors_are_bounded_grow_with_the_motion_and_are_corrected():
    robot = pp.Robot.of(MODELS["tree"]())
    rng = np.random.default_rng(5)
    q0, v, tau, x = robot.random(rng), *rng.standard_normal((3, robot.nv))
    held = pp.estimation.held_riccati(robot, q0)
    q = robot.integrate(q0, np.array([0.01, 0.02, 0.1])[:, None] * x)
    X = held.sensitivity(q)
    assert 1.8 < X[1] / X[0] < 2.2
    a, norm = robot.forward_dynamics(q, v, tau), held.mass_matrix(q)

    def size(y):
        return np.sqrt(np.einsum("ti,tij,tj->t", y, norm, y))

    before = size(a)
    for corrections in range(4):
        error = size(held.forward_dynamics(q, v, tau, corrections) - a)
        assert (error <= X * before * (1 + 1e-9) + 1e-12 * size(a)).all()
        before = error
    energy = np.einsum("i,tij,j->t", v, norm, v)
    exact = np.einsum("i,tij,j->t", v, robot.mass_matrix(q), v)
    assert (np.abs(exact - energy) <= X * energy * (1 + 1e-9)).all()
    with pytest.raises(pp.StateError, match="expected a robot"):
        pp.estimation.held_riccati("arm", q0)
