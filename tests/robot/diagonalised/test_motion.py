"""Simulation in (q, nu): the same motion as in (q, v), energy kept to the same order, and exactly
where it is rescaled."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from tests.robot.diagonalised.test_dynamics import forms
from tests.zoo import random_tree

START = np.array([0.3, -0.7, 0.5, 1.0, 0.4, -0.2]), np.array([0.5, -0.3, 0.4, 1.0, -1.0, 0.5])


def both(robot, d, q, v, **how):
    return pp.simulate(robot, q, v, **how), pp.simulate(d, q, d.velocities(q, v), **how)


@pytest.mark.parametrize("which", (0, 1))
def test_the_same_motion(which):
    """A PUMA 560 that falls for half a second: (q, v), (q, nu) and (q, xi) end at the same
    place."""
    robot = pp.robots.puma560()
    d = forms(robot)[which]
    standard, ours = both(robot, d, *START, duration=0.5, dt=1e-3)
    assert np.abs(standard.q - ours.q).max() < 1e-10
    np.testing.assert_allclose(d.rates(ours.q[-1], ours.v[-1]), standard.v[-1], atol=1e-10)


def test_a_tree_with_quaternions():
    robot = pp.Robot.of(
        random_tree(3, 4, kinds=("spherical", "universal", "revolute"), branching=0.5)
    )
    rng = np.random.default_rng(1)
    standard, ours = both(
        robot,
        robot.diagonalised,
        robot.random(rng),
        rng.standard_normal(robot.nv),
        duration=0.2,
        dt=1e-3,
    )
    assert np.abs(standard.q - ours.q).max() < 1e-9


def test_energy_behaves_alike():
    """Runge-Kutta of order four in either coordinates: halving the step leaves a sixteenth of the
    error, and less."""
    robot = pp.robots.puma560()
    drift = []
    for dt in (0.02, 0.01):
        runs = both(robot, robot.diagonalised, *START, duration=1.0, dt=dt)
        drift.append([np.abs(run.energy - run.energy[0]).max() for run in runs])
    (v_long, nu_long), (v_short, nu_short) = drift
    assert v_long / v_short > 12 and nu_long / nu_short > 12
    assert 0.1 < nu_short / v_short < 10


def test_energy_can_be_kept_exactly():
    """In nu the energy shell is a sphere: one scaling a step keeps it to rounding, and the motion's
    order with it."""
    robot = pp.robots.puma560()
    d, (q, v) = robot.diagonalised, START
    nu, dt = d.velocities(q, v), 0.01
    E, still, zero = d.energy(q, nu), pp.simulate(robot, q, v, duration=0.5, dt=1e-3), np.zeros(6)
    for _ in range(50):
        k = [d.motion(q, nu, zero)]
        for w in (0.5, 0.5, 1.0):
            k.append(d.motion(q + w * dt * k[-1][0], nu + w * dt * k[-1][1], zero))
        step = [dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]) for i in (0, 1)]
        q, nu = q + step[0], nu + step[1]
        nu = d.at_energy(q, nu, E)
        assert abs(d.energy(q, nu) - E) < 1e-12 * abs(E) + 1e-13
    assert np.abs(q - still.q[-1]).max() < 1e-6
