"""Closed chains in motion: constraints stay closed, energy stays, grasps are watched."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi_bench.closed_cells import elbows_up, facing_pumas, four_bar


@pytest.fixture(scope="module")
def cell():
    return facing_pumas()


@pytest.fixture(scope="module")
def start(cell):
    return elbows_up(cell)


def test_two_arms_drop_a_box_and_keep_it(cell, start):
    """Free fall and swing: the residual stays at rounding, energy drifts by RK4's error alone."""
    motion = pp.simulate(cell, start, duration=1.0, dt=1e-3)
    assert np.abs(motion.q[-1] - start).max() > 0.5, "it moved"
    assert np.abs(motion.residual).max() < 1e-11
    assert abs(float(motion.drift)) < 1e-8
    assert motion.forces.shape[-2:] == (2, 6)


def test_without_projection_it_drifts_apart(cell, start):
    """Why there is a projection: index-1 accelerations alone let the loops open."""
    with_it, without = (
        pp.simulate(cell, start, duration=0.5, dt=5e-3, projection=p) for p in (True, False)
    )
    assert np.abs(without.residual).max() > 1e3 * np.abs(with_it.residual).max()


def test_inverse_dynamics_holds_the_box(cell, start):
    tau = cell.inverse_dynamics(start, np.zeros(cell.nv), np.zeros(cell.nv))
    motion = pp.simulate(cell, start, tau=tau, duration=0.2)
    assert np.abs(motion.q - start).max() < 1e-9


def test_a_four_bar_turns_over_with_redundant_rows():
    """A hinge closes the plane loop three times too often; a driven crank turns all the same,
    forces of least norm."""
    bar = four_bar("hinge")
    q = bar.assemble([0.9, -0.4, 1.9], hold=["motor"])
    motion = pp.simulate(bar, q, tau=[3.0, 0.0, 0.0], duration=0.6, dt=2e-3)
    assert np.abs(motion.residual).max() < 1e-10 and abs(motion.q[-1, 0] - q[0]) > 1.0
    work = 3.0 * (motion.q[-1, 0] - q[0])
    assert abs(motion.energy[-1] - motion.energy[0] - work) < 1e-5 * abs(work), (
        "the motor's work is the energy"
    )


def test_a_lost_grasp_is_an_event_with_its_ratio(cell, start):
    """A box gripped by friction alone slips when nobody squeezes it."""
    grips = [pp.Contact("rigid", normal=(side, 0, 0), friction=0.5) for side in (1, -1)]
    held = facing_pumas(grips)
    tau = held.inverse_dynamics(start, np.zeros(held.nv), np.zeros(held.nv))
    motion = pp.simulate(held, start, tau=tau, duration=0.05)
    lost = [event for event in motion.events if event.name == "grasp lost"]
    assert lost and "contact 1" in str(lost[0])
    squeeze = np.zeros((2, 6))
    axis = held.frame_pose(start, "box/grip1")[:3, 0]
    squeeze[0, 3:], squeeze[1, 3:] = 200.0 * axis, -200.0 * axis
    tau = held.inverse_dynamics(start, np.zeros(held.nv), np.zeros(held.nv), internal=squeeze)
    assert not pp.simulate(held, start, tau=tau, duration=0.05).events
