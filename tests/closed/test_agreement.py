"""Closed chains against what psiphi.closed did not compute: the dense system (2.11) of S4 in world axes, and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from closed.cells import CONTACTS, Closed, four_bar, held, random_arm, random_cell, uncompiled

from psiphi.bench.peers import Pin

MAPS = {"weld": lambda h: np.zeros((3, 0)), "hinge": lambda h: h[:, None], "ball": lambda h: np.eye(3)}


def _free_turns(kind: str, axis: np.ndarray) -> np.ndarray:
    """h (3 x n_g): the turns a contact leaves free, in object axes; a soft finger rolls about its two tangents."""
    if kind != "soft":
        return MAPS[kind](axis)
    return np.linalg.svd(axis[None, :])[2][1:].T


def kkt(closed: Closed) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """(2.11) of S4 with the non-rigid grasps of its appendix: unknowns a of the forest, f(0) on the object, W'.

    J a + dJ/dt v + H*(0) W' + dH*/dt W = A alpha(C) + a(C) at every contact, H(0) f = 0; all in world axes.
    """
    cell, q, v, tau = closed.system, closed.q, closed.v, closed.tau
    robot = cell.robot
    mass, bias = robot.mass_matrix(q), robot.bias(q, v)
    nv, rows, right, columns, turns = cell.nv, [], [], [], []
    for c in cell.contacts:
        hand, grip = c.first, c.second
        rows.append(robot.jacobian(q, hand) - robot.jacobian(q, grip))
        still = np.zeros(nv)
        gap = robot.frame_acceleration(q, v, still, hand) - robot.frame_acceleration(q, v, still, grip)
        axes = robot.frame_pose(q, grip)[:3, :3]
        h = axes @ _free_turns(c.kind, np.array(c.shape.axis))
        spin = robot.frame_velocity(q, v, hand)[:3] - robot.frame_velocity(q, v, grip)[:3]
        W, w_C = h.T @ spin, robot.frame_velocity(q, v, grip)[:3]
        turns.append(W)
        # V(hand) = A V(C) + H* W: the relative motion is h W, and h W' + w_C x h W its derivative
        right.append(np.concatenate([np.cross(w_C, h @ W), np.zeros(3)]) - gap)
        columns.append(np.vstack([h, np.zeros((3, h.shape[1]))]))
    J, count = np.vstack(rows), len(rows)
    H = np.zeros((6 * count, sum(c.shape[1] for c in columns)))
    start = 0
    for i, c in enumerate(columns):
        H[6 * i : 6 * i + 6, start : start + c.shape[1]] = c
        start += c.shape[1]
    m, n_g = J.shape[0], H.shape[1]
    K = np.block(
        [[mass, J.T, np.zeros((nv, n_g))], [J, np.zeros((m, m)), -H], [np.zeros((n_g, nv)), H.T, np.zeros((n_g, n_g))]]
    )
    x = np.linalg.solve(K, np.concatenate([tau - bias, *right, np.zeros(n_g)]))
    return x[:nv], x[nv : nv + m].reshape(count, 6), turns


def relative(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("arms", range(1, 7))
@pytest.mark.parametrize("seed", range(3))
def test_random_cells_agree_with_the_dense_system(arms, seed):
    closed = random_cell(10 * seed + arms, arms)
    a, forces = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    expected, wrenches, _ = kkt(closed)
    assert relative(a, expected) < 1e-9, "a"
    assert relative(forces, wrenches) < 1e-9, "forces"


@pytest.mark.parametrize("method", ["RCCFD1", "RCCFD2", "RCCFD3", "KKT"])
@pytest.mark.parametrize("arms", [1, 2, 3])
def test_the_papers_algorithms_agree(method, arms):
    closed = random_cell(arms, arms)
    a, forces = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    theirs, wrenches = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True, method=method)
    assert relative(a, theirs) < 1e-9
    assert relative(forces, wrenches) < 1e-9


@pytest.mark.parametrize("kind", CONTACTS)
def test_acceleration_keeps_the_constraint_velocity(kind):
    """d/dt (Jc v) = 0 along the motion, by central differences of the residual: the law the rows were made for."""
    rng = np.random.default_rng(7)
    closed = held([random_arm(rng, 7) for _ in range(2)], [kind, "rigid"], rng)
    cell, q, v = closed.system, closed.q, closed.v
    a, h = cell.forward_dynamics(q, v, closed.tau), 1e-5
    ahead, behind = (
        cell.constraint_residual(cell.integrate(cell.integrate(q, v, s), a, 0.5 * s * s), v + s * a)[1] for s in (h, -h)
    )
    assert np.abs(ahead - behind).max() / (2 * h) < 1e-4 * (1 + np.abs(a).max())


def pin_constraints(peer: Pin, system):
    import pinocchio as pin

    models, kinds = pin.StdVec_RigidConstraintModel(), {"weld": pin.ContactType.CONTACT_6D, "ball": pin.ContactType.CONTACT_3D}
    for c in system.contacts:
        ends = [peer.peer.frames[peer.frame_id(name)] for name in (c.first, c.second)]
        (one, two) = ((f.parentJoint, f.placement) for f in ends)
        models.append(pin.RigidConstraintModel(kinds[c.kind], peer.peer, *one, *two, pin.ReferenceFrame.LOCAL))
    datas = pin.StdVec_RigidConstraintData()
    for m in models:
        datas.append(m.createData())
    return models, datas


def pinocchio_answer(closed: Closed, algorithm: str) -> np.ndarray:
    import pinocchio as pin

    peer = Pin(closed.system.robot._model)
    models, datas = pin_constraints(peer, closed.system)
    c = peer.layout
    q, v, tau = c.to_q(closed.q), c.to_v(closed.v, closed.q), c.to_tau(closed.tau, closed.q)
    if algorithm == "lcaba":
        data = peer.peer.createData()
        pin.computeJointMinimalOrdering(peer.peer, data, models)
        settings = pin.ProximalSettings(1e-14, 1e-4, 50)
        a = pin.lcaba(peer.peer, data, q, v, tau, models, datas, settings)
    else:
        pin.initConstraintDynamics(peer.peer, peer.data, models, datas)
        a = pin.constraintDynamics(peer.peer, peer.data, q, v, tau, models, datas, pin.ProximalSettings(1e-14, 1e-8, 50))
    return c.from_a(np.array(a), q, v)


def two_arms(kinds=("rigid", "rigid")) -> Closed:
    rng = np.random.default_rng(3)
    return held([random_arm(rng, 7) for _ in range(2)], list(kinds), rng)


@pytest.mark.parametrize("algorithm", ["constraintDynamics", "lcaba"])
@pytest.mark.parametrize("kinds", [("rigid", "rigid"), ("rigid", "point")])
def test_two_arms_agree_with_pinocchio(algorithm, kinds):
    closed = two_arms(kinds)
    a = closed.system.forward_dynamics(closed.q, closed.v, closed.tau)
    assert relative(a, pinocchio_answer(closed, algorithm)) < 1e-8


@pytest.mark.parametrize("algorithm", ["constraintDynamics", "lcaba"])
def test_a_four_bar_agrees_with_pinocchio(algorithm):
    """A ball closes the planar loop: one of its three rows is redundant, the accelerations are unique all the same."""
    system = uncompiled(four_bar("ball"))
    rng = np.random.default_rng(5)
    q = system.assemble([0.9, -0.4, 1.9], hold=["motor"])
    q, v = system.project(q, rng.standard_normal(3))
    tau = rng.standard_normal(3)
    a = system.forward_dynamics(q, v, tau)
    assert relative(a, pinocchio_answer(Closed(system, q, v, tau), algorithm)) < 1e-8
