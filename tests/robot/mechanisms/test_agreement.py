"""Closed chains against what psiphi did not compute: the dense system (2.11) of S4 in world axes,
and Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from psiphi.compiler import passes
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi_bench.closed_cells import (
    CONTACTS,
    ClosedState,
    dense_solution,
    four_bar,
    pinocchio_accelerations,
    random_cell,
)
from psiphi_bench.interpreted_robot import uncompiled
from tests.robot.mechanisms.cells import pair
from tests.soundness.oracle import STEP, Oracle


def relative(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("arms", range(1, 7))
@pytest.mark.parametrize("seed", range(3))
def test_random_cells_agree_with_the_dense_system(arms, seed):
    closed = random_cell(10 * seed + arms, arms)
    a, forces = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    expected, wrenches = dense_solution(closed)
    assert relative(a, expected) < 1e-9, "a"
    assert relative(forces, wrenches) < 1e-9, "forces"


@pytest.mark.parametrize("method", ["RCCFD1", "RCCFD2", "RCCFD3", "KKT"])
@pytest.mark.parametrize("arms", [1, 2, 3])
def test_the_papers_algorithms_agree(method, arms):
    closed = random_cell(arms, arms)
    a, forces = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    theirs, wrenches = closed.system.forward_dynamics(
        closed.q, closed.v, closed.tau, forces=True, method=method
    )
    assert relative(a, theirs) < 1e-9
    assert relative(forces, wrenches) < 1e-9


def coordinates_of_object(cell) -> slice:
    names = [body.name for body in cell.bodies]
    return cell.joints[names.index(cell.object)].v_slice


def by_the_paper(closed) -> dict[str, np.ndarray]:
    """S4 (6.11), (6.22) for rigid grasps, with the letters of an oracle that shares no code: f(0),
    and of the arms theta_f, Delta theta, theta_1, theta_2."""
    cell, tau = closed.system, closed.tau
    o = Oracle(cell.robot, closed.q, closed.v)
    H, phi, psi, D, K, M, a, b = (o[x].m for x in ("H", "phi", "psi", "D", "K", "M", "a", "b"))
    free = coordinates_of_object(cell)
    arms = np.delete(np.arange(cell.nv), free)
    hands, grips = (tuple(getattr(c, side) for c in cell.contacts) for side in ("first", "second"))

    def jacobian(names):
        """J and dJ/dt v, world axes."""
        here, there = ((x["H"].m @ x["phi"].m @ x.B(names, "world").m).T for x in (o, o.moving))
        return here, there.imag @ closed.v / STEP

    (J, J_rate), (A, A_rate) = jacobian(hands), jacobian(grips)
    torque = tau - (H @ phi @ (M @ phi.T @ a + b)).ravel()
    J, A, B = J[:, arms], A[:, free], o.B(hands, "world").m
    W = np.eye(cell.nv) - H @ psi @ K
    D_inv, tips = np.linalg.inv(D), B.T @ psi.T @ H.T
    M_C = (H @ phi @ M @ phi.T @ H.T)[free, free]
    own = A @ np.linalg.solve(M_C, torque[free])
    of_arms = np.isin(np.arange(cell.nv), arms) * torque  # T' without the object
    Omega = tips @ D_inv @ tips.T + A @ np.linalg.solve(M_C, A.T)
    theta_f = W.T @ D_inv @ W @ of_arms
    f = np.linalg.solve(Omega, J @ theta_f[arms] + J_rate - own - A_rate)  # (6.11f)
    zeta = np.linalg.solve(Omega, own + A_rate - J_rate)  # (6.22d)
    again = np.linalg.solve(Omega, tips @ D_inv @ W @ of_arms) - zeta  # (6.22e)
    assert relative(again, f) < 1e-8
    middle = D_inv - D_inv @ tips.T @ np.linalg.solve(Omega, tips @ D_inv)
    return {
        "f": f,
        "theta_f": theta_f[arms],
        "change": -(W.T @ D_inv @ tips.T @ f)[arms],  # (6.11g), with its sign and H
        "theta_1": (W.T @ middle @ W @ of_arms)[arms],  # (6.22f)
        "theta_2": (W.T @ D_inv @ tips.T @ zeta)[arms],  # (6.22g)
    }


def staged(closed, method: str, *places: str) -> list[np.ndarray]:
    """What a method leaves in places of nv numbers."""
    code = system_stages.dynamics(closed.system.algebra, method)
    code = replace(code, outputs=tuple(Argument(x, (closed.system.nv,), "v") for x in places))
    tree = passes.tree_of(code)
    return interpret(code.program(tree), tree, closed.q, closed.v, closed.tau)


@pytest.mark.parametrize("arms", [1, 2, 3])
def test_the_papers_algorithms_take_the_papers_steps(arms):
    """RCCFD1 forms theta_f and its correction, RCCFD3 zeta, theta_1 and theta_2."""
    closed = pair(*["rigid"] * arms, seed=arms)
    cell, paper = closed.system, by_the_paper(closed)
    free = coordinates_of_object(cell)
    own = lambda x: np.delete(x, free)  # noqa: E731
    for method in ("RCCFD1", "RCCFD2", "RCCFD3"):
        a, forces = cell.forward_dynamics(
            closed.q, closed.v, closed.tau, forces=True, method=method
        )
        assert relative(own(a), paper["theta_f"] + paper["change"]) < 1e-8, method
        assert relative(forces.ravel(), paper["f"]) < 1e-8, method
    steps = {"RCCFD1": ("a", "da"), "RCCFD3": ("a 1", "a 2")}
    for method, names in {
        "RCCFD1": ("theta_f", "change"),
        "RCCFD3": ("theta_1", "theta_2"),
    }.items():
        found = dict(zip(steps[method], staged(closed, method, *steps[method]), strict=True))
        if method == "RCCFD1":
            found["a"] = found["a"] - found["da"]
        for x, name in zip(found.values(), names, strict=True):
            assert relative(own(x), paper[name]) < 1e-8, name


def test_the_papers_algorithms_are_three():
    """RCCFD3 solves twice and sweeps twice, and so takes more operations than RCCFD1."""
    algebra = pair("rigid", "rigid").system.algebra
    flops = [system_stages.dynamics(algebra, f"RCCFD{i}").flops for i in (1, 2, 3)]
    assert len(set(flops)) == 3 and flops[2] > flops[0]


@pytest.mark.parametrize("kind", CONTACTS)
def test_acceleration_keeps_the_constraint_velocity(kind):
    """d/dt (Jc v) = 0 along the motion, by central differences of the residual: the law the rows
    were made for."""
    closed = pair(kind, "rigid", seed=7)
    cell, q, v = closed.system, closed.q, closed.v
    a, h = cell.forward_dynamics(q, v, closed.tau), 1e-5
    ahead, behind = (
        cell.constraint_residual(
            cell.integrate(cell.integrate(q, v, s), a, 0.5 * s * s), v + s * a
        )[1]
        for s in (h, -h)
    )
    assert np.abs(ahead - behind).max() / (2 * h) < 1e-4 * (1 + np.abs(a).max())


@pytest.mark.parametrize("algorithm", ["constraintDynamics", "lcaba"])
@pytest.mark.parametrize("kinds", [("rigid", "rigid"), ("rigid", "point")])
def test_two_arms_agree_with_pinocchio(algorithm, kinds):
    closed = pair(*kinds)
    a = closed.system.forward_dynamics(closed.q, closed.v, closed.tau)
    assert relative(a, pinocchio_accelerations(closed, algorithm)) < 1e-8


@pytest.mark.parametrize("algorithm", ["constraintDynamics", "lcaba"])
def test_a_four_bar_agrees_with_pinocchio(algorithm):
    """A ball closes the planar loop: one of its three rows is redundant, the accelerations are
    unique all the same."""
    system = uncompiled(four_bar("ball"))
    rng = np.random.default_rng(5)
    q = system.assemble([0.9, -0.4, 1.9], hold=["motor"])
    q, v = system.project(q, rng.standard_normal(3))
    tau = rng.standard_normal(3)
    a = system.forward_dynamics(q, v, tau)
    assert relative(a, pinocchio_accelerations(ClosedState(system, q, v, tau), algorithm)) < 1e-8
