"""Many arms without Omega: the hub eliminated last, against the dense system, Pinocchio, and Omega itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import psiphi as pp
from closed.cells import puma_pair
from psiphi.bench.cells import Closed, dense_answer, held, pinocchio_answer, random_cell
from psiphi.bench.interpreted import Interpreted, Uncompiled
from psiphi.closed import choosing, circuits, saddle
from psiphi.closed.methods import HUB
from psiphi.closed.solving import low_groups
from psiphi.closed.system import System
from psiphi.robots import random_tree


class Around(Uncompiled):
    """A closed system that always eliminates its hub last."""

    def _chosen(self, frames=(), axes="world", redundant=False):
        return choosing.Chosen(circuits.dynamics(self.algebra, HUB, frames, axes, redundant), HUB)


def around(system: System) -> Around:
    c = system.closure
    return Around(Interpreted.of(system.robot), c.constraints, c.follows, system.passive, system.object)


def relative(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def solved(cell: System, closed: Closed, method: str, redundant: bool = False) -> tuple:
    return cell._call(circuits.dynamics(cell.algebra, method, redundant=redundant).compiled(), (closed.q, closed.v, closed.tau))


def few(joints: tuple[int, ...], kinds: tuple[str, ...], seed: int) -> Closed:
    """Arms of few hinges around a body."""
    arms = [random_tree(n, 100 * seed + i, "revolute", 0.0) for i, n in enumerate(joints)]
    return held(arms, kinds, np.random.default_rng(seed), around)


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_random_cells_agree_with_the_dense_system_and_with_omega(arms):
    """Every contact kind, chains and trees of several joints, flying bases."""
    closed = random_cell(10 + arms, arms, around)
    cell = closed.system
    a, forces = cell.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    expected, wrenches = dense_answer(closed)
    assert relative(a, expected) < 1e-9 and relative(forces, wrenches) < 1e-9
    omega = solved(cell, closed, "free")
    for redundant in (False, True):
        ours = solved(cell, closed, HUB, redundant)
        assert relative(ours[0], omega[0]) < 1e-10 and relative(ours[1], omega[1]) < 1e-9, f"redundant={redundant}"


@pytest.mark.parametrize(
    ("joints", "kinds", "low"),
    [
        ((7, 6, 7), ("rigid", "rigid", "rigid"), (False, False, False)),
        ((4, 7), ("point", "rigid"), (False, False)),  # three joints that move it suffice for a point
        ((4, 7, 3), ("rigid", "line", "rigid"), (True, False, True)),
        ((5, 4, 5), ("rigid", "rigid", "soft"), (True, True, False)),
        ((4, 4, 4), ("rigid", "rigid", "rigid"), (True, True, True)),  # 18 coordinates, 18 rows: nothing moves
    ],
)
def test_arms_of_few_joints(joints, kinds, low):
    closed = few(joints, kinds, sum(joints))
    cell = closed.system
    assert low_groups(cell.algebra) == low
    expected, wrenches = dense_answer(closed)
    size = max(np.abs(expected).max(), np.abs(closed.tau).max())
    for redundant in (False, True):
        a, _, forces, strain = solved(cell, closed, HUB, redundant)
        assert np.abs(a - expected).max() < 1e-10 * size and relative(forces, wrenches) < 1e-9
        assert strain < 1e14


def test_forces_that_are_not_unique_are_of_least_norm():
    """Straight wrists of two PUMAs: accelerations as the dense system says, forces flagged, and none smaller does it."""
    straight = puma_pair([0.0, -0.8, 0.6, 0.0, 0.0, 0.0], wrap=around)
    cell, q, rest, tau = straight.system, straight.q, straight.v, np.linspace(-2.0, 3.0, 12)
    found = cell.forward_dynamics_details(q, rest, tau)
    mass, Jc, torque, right = saddle.pieces(cell, cell._state(q=q, v=rest, tau=tau), (), "world")
    verdict = saddle.judge(mass, Jc, torque, right)
    assert np.allclose(found["a"], verdict.a, rtol=1e-9, atol=1e-9)
    assert not found["unique"] and found["rank"] == verdict.rank < cell.nc
    assert np.allclose(found["multipliers"], verdict.multipliers, rtol=1e-7, atol=1e-7)
    a = cell._call(circuits.dynamics(cell.algebra, HUB, redundant=True).compiled(), (q, rest, *cell._state(tau=tau)))[0]
    assert np.allclose(a, verdict.a, rtol=1e-9, atol=1e-9), "rows that follow from others are left out"


def test_arms_agree_with_pinocchio():
    closed = few((7, 7, 7), ("rigid", "point", "rigid"), 2)
    a = closed.system.forward_dynamics(closed.q, closed.v, closed.tau)
    assert relative(a, pinocchio_answer(closed, "constraintDynamics")) < 1e-8


def test_two_hands_of_one_torso_are_one_group():
    """Arms that share a moving body cannot be told apart: they are one block, beside that of a third arm."""
    rng = np.random.default_rng(4)
    torso = random_tree(12, 8, "revolute", 0.6)
    leaves = [body.name for k, body in enumerate(torso.bodies) if k not in torso.parent]
    third = random_tree(7, 3, "revolute", 0.0)
    cell = around(
        pp.grasp(
            [(torso, None, tuple(leaves[:2])), (third, (1, 0, 0), third.bodies[-1].name)],
            pp.Body.box(2.0, (0.3, 0.2, 0.4)),
            [rng.normal(size=3) for _ in range(3)],
            ["point", "point", "rigid"],
        )
    )
    assert sorted(map(len, cell.algebra.hub.groups)) == [6, 6]
    closed = Closed(cell, cell.random(seed=3), rng.normal(size=cell.nv), rng.normal(size=cell.nv))
    assert relative(solved(cell, closed, HUB)[0], solved(cell, closed, "free")[0]) < 1e-10


def test_counts_grow_with_the_arms():
    """At most 2.1 times a doubling, and the form with fewer operations runs: `benchmarks/arms.py` counts to 64."""
    systems = {n: cell_of(n) for n in (2, 4, 8, 16)}
    flops = [system._chosen().flops[HUB] for system in systems.values()]
    assert all(more < 2.1 * less for less, more in pairwise(flops))
    assert systems[2]._chosen().method != HUB and "Omega, by count" in systems[2].explain()
    assert systems[16]._chosen().method == HUB and systems[16].flops() == flops[-1]
    text = systems[16].explain()
    assert "Around box/box, 16 groups" in text and "to factor Omega alone takes" in text and f"{flops[-1]} flops (hub)" in text


def cell_of(arms: int) -> System:
    made = [random_tree(6, i, "revolute", 0.0) for i in range(arms)]
    at = np.random.default_rng(0).normal(size=(2, arms, 3))
    held_by = [(arm, at[0, i], arm.bodies[-1].name) for i, arm in enumerate(made)]
    return pp.grasp(held_by, pp.Body.box(2.0, (0.3, 0.2, 0.4)), list(at[1]))
