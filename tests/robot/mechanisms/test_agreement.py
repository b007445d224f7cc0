"""Closed chains against what psiphi did not compute: the dense system (2.11) of S4 in world axes,
and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

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
