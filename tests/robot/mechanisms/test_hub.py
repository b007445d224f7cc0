"""Many arms without Omega: the hub eliminated last, against the dense system, Pinocchio, and Omega
itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.bundled_robots import random_tree
from psiphi.robot.mechanisms.dynamics import (
    closed_inverse_dynamics,
    method_choice,
    object_dynamics,
    system_stages,
)
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.constraint_solve import deficient_groups
from psiphi.robot.mechanisms.solve.rccfd_methods import HUB
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.system import System
from psiphi_bench.closed_cells import (
    ClosedState,
    dense_solution,
    grasping_cell,
    pinocchio_accelerations,
    random_cell,
)
from psiphi_bench.interpreted_robot import Interpreted, Uncompiled
from tests.robot.mechanisms.cells import inertia_at_object, puma_pair


class Around(Uncompiled):
    """A closed system that always eliminates its hub last."""

    def chosen_method(self, frames=(), axes="world", redundant=False):
        return method_choice.MethodChoice(
            system_stages.dynamics(self.algebra, HUB, frames, axes, redundant), HUB
        )


def around(system: System) -> Around:
    c = system.closure
    return Around(
        Interpreted.of(system.robot), c.constraints, c.mimics, system.passive, system.object
    )


def relative(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def solved(cell: System, closed: ClosedState, method: str, redundant: bool = False) -> tuple:
    return cell.call_function(
        system_stages.dynamics(cell.algebra, method, redundant=redundant).compiled(),
        (closed.q, closed.v, closed.tau),
    )


def few(joints: tuple[int, ...], kinds: tuple[str, ...], seed: int) -> ClosedState:
    """Arms of few hinges around a body."""
    arms = [random_tree(n, 100 * seed + i, "revolute", 0.0) for i, n in enumerate(joints)]
    return grasping_cell(arms, kinds, np.random.default_rng(seed), around)


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_random_cells_agree_with_the_dense_system_and_with_omega(arms):
    """Every contact kind, chains and trees of several joints, flying bases."""
    closed = random_cell(10 + arms, arms, around)
    cell = closed.system
    a, forces = cell.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    expected, wrenches = dense_solution(closed)
    assert relative(a, expected) < 1e-9 and relative(forces, wrenches) < 1e-9
    omega = solved(cell, closed, "free")
    for redundant in (False, True):
        ours = solved(cell, closed, HUB, redundant)
        assert relative(ours[0], omega[0]) < 1e-10 and relative(ours[1], omega[1]) < 1e-9, (
            f"redundant={redundant}"
        )


@pytest.mark.parametrize(
    ("joints", "kinds", "low"),
    [
        ((7, 6, 7), ("rigid", "rigid", "rigid"), (False, False, False)),
        (
            (4, 7),
            ("point", "rigid"),
            (False, False),
        ),  # three joints that move it suffice for a point
        ((4, 7, 3), ("rigid", "line", "rigid"), (True, False, True)),
        ((5, 4, 5), ("rigid", "rigid", "soft"), (True, True, False)),
        (
            (4, 4, 4),
            ("rigid", "rigid", "rigid"),
            (True, True, True),
        ),  # 18 coordinates, 18 rows: nothing moves
    ],
)
def test_arms_of_few_joints(joints, kinds, low):
    closed = few(joints, kinds, sum(joints))
    cell = closed.system
    assert deficient_groups(cell.algebra) == low
    expected, wrenches = dense_solution(closed)
    size = max(np.abs(expected).max(), np.abs(closed.tau).max())
    for redundant in (False, True):
        a, _, forces, ill_conditioning = solved(cell, closed, HUB, redundant)
        assert np.abs(a - expected).max() < 1e-10 * size and relative(forces, wrenches) < 1e-9
        assert ill_conditioning < 1e14


def test_forces_that_are_not_unique_are_of_least_norm():
    """Straight wrists of two PUMAs: accelerations as the dense system says, forces flagged, and
    none smaller does it."""
    straight = puma_pair([0.0, -0.8, 0.6, 0.0, 0.0, 0.0], wrap=around)
    cell, q, rest, tau = straight.system, straight.q, straight.v, np.linspace(-2.0, 3.0, 12)
    found = cell.forward_dynamics_details(q, rest, tau)
    mass, Jc, torque, right = dense_saddle.dense_terms(
        cell, cell.state_arrays(q=q, v=rest, tau=tau), (), "world"
    )
    verdict = dense_saddle.solve_gauss(mass, Jc, torque, right)
    assert np.allclose(found["a"], verdict.a, rtol=1e-9, atol=1e-9)
    assert not found["unique"] and found["rank"] == verdict.rank < cell.nc
    assert np.allclose(found["multipliers"], verdict.multipliers, rtol=1e-7, atol=1e-7)
    a = cell.call_function(
        system_stages.dynamics(cell.algebra, HUB, redundant=True).compiled(),
        (q, rest, *cell.state_arrays(tau=tau)),
    )[0]
    assert np.allclose(a, verdict.a, rtol=1e-9, atol=1e-9), (
        "rows that follow from others are left out"
    )


def test_arms_agree_with_pinocchio():
    closed = few((7, 7, 7), ("rigid", "point", "rigid"), 2)
    a = closed.system.forward_dynamics(closed.q, closed.v, closed.tau)
    assert relative(a, pinocchio_accelerations(closed, "constraintDynamics")) < 1e-8


def limbs(count: int, joints: int, seed: int = 0) -> pp.Model:
    """A body that flies, one more on it, and limbs of hinges on that."""
    rng, b = np.random.default_rng(seed), pp.Builder("torso")

    def body(name: str, kind: str, parent: str) -> str:
        mass = rng.uniform(0.5, 2.0)
        b.body(
            name,
            mass=mass,
            com=0.1 * rng.normal(size=3),
            inertia=mass * np.diag([0.05, 0.06, 0.04]),
        )
        turned = (
            {} if kind == "free" else {"axis": rng.normal(size=3), "xyz": 0.3 * rng.normal(size=3)}
        )
        b.joint(f"to {name}", kind, parent, name, **turned)
        return name

    chest = body("chest", "revolute", body("hips", "free", "world"))
    for i in range(count):
        last = chest
        for k in range(joints):
            last = body(f"limb{i}.{k}", "revolute", last)
        b.frame(f"hand{i}", last, xyz=(0.1, 0, 0.1))
    return b.build()


def hands(count: int, joints: int, kinds: list) -> System:
    at = list(np.random.default_rng(1).normal(size=(count, 3)))
    held_by = [(limbs(count, joints), None, tuple(f"hand{i}" for i in range(count)))]
    return pp.grasp(held_by, pp.Body.box(2.0, (0.3, 0.2, 0.4)), at, kinds)


@pytest.mark.parametrize(
    ("joints", "kinds", "low"),
    [
        (7, ["rigid", "rigid"], False),
        (6, ["rigid", "point", pp.Contact("soft", normal=(0, 0, 1))], False),
        (4, ["rigid", "rigid", "rigid"], True),  # of few joints each, but the torso moves them all
    ],
)
def test_hands_of_one_torso_meet_in_two_hubs(joints, kinds, low):
    """The object, and the trunk on which the arms are apart: as Omega and the dense system say."""
    cell = around(hands(len(kinds), joints, kinds))
    hub, rng = cell.algebra.hub, np.random.default_rng(4)
    assert (hub.name, hub.trunk, hub.trunk_coordinates) == (
        "box/box",
        (0, 1),
        tuple(range(7)),
    ) and len(hub.groups) == len(kinds)
    assert set(deficient_groups(cell.algebra)) == {low}
    closed = ClosedState(
        cell, cell.random(seed=3), rng.normal(size=cell.nv), rng.normal(size=cell.nv)
    )
    omega = solved(cell, closed, "free")
    for redundant in (False, True):
        ours = solved(cell, closed, HUB, redundant)
        assert (
            relative(ours[0], omega[0]) < 1e-10
            and relative(ours[1], omega[1]) < 1e-10
            and ours[3] < ILL_CONDITIONED
        )
    values = closed.q, closed.v, closed.tau
    assert (
        relative(cell.forward_dynamics(*values), cell.forward_dynamics(*values, method="KKT"))
        < 1e-10
    )


def test_the_legs_of_a_walker_are_apart_where_its_trunk_is_eliminated():
    """No object: the trunk alone is the hub, beside Omega; another robot holds on to the trunk."""
    walker, rng = limbs(6, 3), np.random.default_rng(2)
    robots = {"walker": walker, "other": random_tree(4, 3, "revolute", 0.0)}
    loops = [pp.Loop("ball", f"walker/hand{i}", "world") for i in range(6)] + [
        pp.Loop("ball", "other/link4", "walker/chest")
    ]
    cell = around(pp.connect(robots, loops))
    hub = cell.algebra.hub
    assert hub.bodies == () and hub.trunk == (0, 1) and sorted(map(len, hub.groups)) == [3] * 7
    closed = ClosedState(
        cell, cell.random(seed=3), rng.normal(size=cell.nv), rng.normal(size=cell.nv)
    )
    omega = solved(cell, closed, "free")
    for redundant in (False, True):
        ours = solved(cell, closed, HUB, redundant)
        assert relative(ours[0], omega[0]) < 1e-9 and relative(ours[1], omega[1]) < 1e-9


def test_counts_grow_with_the_hands_of_one_torso():
    systems = [hands(n, 6, ["rigid"] * n) for n in (2, 4)]
    less, more = (system_stages.dynamics(system.algebra, HUB).flops for system in systems)
    assert more < 2.1 * less
    text = systems[1].explain()
    assert (
        "Around box/box and the trunk up to torso/chest, 4 groups" in text
        and f"{more} flops (hub)" in text
    )
    with pytest.raises(
        pp.StateError, match="is not several arms around one free body"
    ):  # they are not apart from each other
        systems[0].arm_inertias(systems[0].neutral())


def thinned(system: System, mass: float, moments: tuple[float, ...]) -> Around:
    """The same cell around another body."""
    model, c = system.robot.model, system.closure
    body = replace(model.bodies[-1], mass=mass, inertia=np.diag(moments))
    robot = pp.Robot.of(replace(model, bodies=(*model.bodies[:-1], body)))
    return around(System(robot, c.constraints, c.mimics, system.passive, system.object))


@pytest.mark.parametrize(
    ("kinds", "mass", "moments"),
    [
        (("rigid", "point"), 1.0, (0.1, 0.1, 0.0)),  # a rod without thickness
        (("point", "point", "point"), 2.0, (0.0, 0.0, 0.0)),  # a point mass on three fingers
        (("rigid",), 0.0, (0.0, 0.0, 0.0)),  # nothing at all
    ],
)
def test_what_has_no_inertia_of_its_own_is_held_by_what_the_grasp_gives_it(kinds, mass, moments):
    arms = [random_tree(7, 40 + i, "revolute", 0.0) for i in range(len(kinds))]
    closed = grasping_cell(
        arms, kinds, np.random.default_rng(8), lambda cell: thinned(cell, mass, moments)
    )
    expected, wrenches = dense_solution(closed)
    cell = closed.system
    found = cell.forward_dynamics_details(closed.q, closed.v, closed.tau)
    assert found["unique"] and relative(found["a"], expected) < 1e-9
    assert np.abs(found["forces"] - wrenches).max() < 1e-8 * (1.0 + np.abs(wrenches).max())
    assert relative(solved(cell, closed, HUB, redundant=True)[0], expected) < 1e-9
    with pytest.raises(pp.StateError, match=r"the inertia of .* is singular"):
        cell.forward_dynamics(closed.q, closed.v, closed.tau, method="RCCFD1")
    tau, ill_conditioning = cell.call_function(
        cell.inverse_dynamics_function, (closed.q, closed.v, closed.tau)
    )  # a wish like any other
    wish = cell.forward_dynamics(
        closed.q, closed.v, cell.robot.inverse_dynamics(closed.q, closed.v, closed.tau)
    )
    assert (
        ill_conditioning < ILL_CONDITIONED
        and relative(cell.forward_dynamics(closed.q, closed.v, tau), wish) < 1e-7
    )


def test_the_error_speaks_of_the_object_that_nothing_gives_inertia():
    puma = pp.robots.puma560()
    arms = [(puma, None, "tool"), (puma, (1, 0, 0), "tool")]
    rod = pp.Body("rod", 1.0, np.zeros(3), np.diag([0.1, 0.1, 0.0]))
    with pytest.raises(
        pp.ModelError,
        match=r"'rod' has mass 1 and no inertia along the motion \(0, 0, 1, 0, 0, 0\)",
    ):
        pp.grasp(arms, rod, [(0, 0, 0.3), (0, 0, -0.3)], ["point", "point"])
    with pytest.raises(pp.SingularError, match="divides by the inertia of a massless body"):
        cell = pp.grasp(arms, rod, [(0, 0, 0.3), (0, 0, -0.3)])
        cell.robot.mass_matrix_inverse(cell.neutral())


def scissors() -> pp.Model:
    b = pp.Builder("scissors")
    for name in ("left", "right"):
        b.body(name, mass=0.3, com=(0.1, 0, 0), inertia=np.diag([1e-3, 4e-3, 4e-3]))
    b.joint("flies", "free", "world", "left")
    b.joint("rivet", "revolute", "left", "right")
    b.frame("ring", "left", xyz=(-0.1, 0.03, 0))
    b.frame("other ring", "right", xyz=(-0.1, -0.03, 0))
    return b.build()


def test_an_object_with_joints_of_its_own_agrees_with_pinocchio():
    """Scissors in two hands: seven coordinates, no motor among them, are the hub."""
    arms = [(random_tree(7, i, "revolute", 0.0), (0.3 * i, 0, 0), "link7") for i in range(2)]
    cell = around(pp.grasp(arms, scissors(), ["ring", "other ring"], ["rigid", "point"]))
    assert (
        cell.algebra.hub.coordinates == tuple(range(14, 21))
        and cell.na == 14
        and cell.object == "scissors/left"
    )
    q, v = cell.project(
        cell.assemble(cell.random(seed=5)), np.random.default_rng(1).normal(size=cell.nv)
    )
    closed = ClosedState(cell, q, v, np.r_[np.linspace(-2, 2, 14), np.zeros(7)])
    a = cell.forward_dynamics(q, v, closed.tau)
    assert relative(a, pinocchio_accelerations(closed, "constraintDynamics")) < 1e-8
    soft = [pp.Contact("soft", normal=(0, 1, 0)), pp.Contact("line", axis=(0, 0, 1))]
    other = around(pp.grasp(arms, scissors(), ["ring", "other ring"], soft))
    tau = closed.tau[:14]
    assert np.allclose(
        other.forward_dynamics(q, v, tau),
        other.forward_dynamics(q, v, tau, method="KKT"),
        rtol=1e-9,
    )


def test_a_door_is_held_and_motors_of_an_object_are_named():
    b = pp.Builder("door")
    b.body("leaf", mass=20.0, com=(0.4, 0, 0), inertia=np.diag([1.0, 2.0, 3.0]))
    b.joint("hinge", "revolute", "world", "leaf")
    b.frame("knob", "leaf", xyz=(0.8, 0.05, 0))
    arm = random_tree(7, 2, "revolute", 0.0)
    door = pp.grasp(
        [(arm, None, "link7"), (arm, (0, 1, 0), "link7")],
        (b.build(), (1, 0, 0)),
        ["knob", "leaf"],
        ["rigid", "point"],
    )
    assert door.passive == ("door/hinge",) and door.na == 14
    assert np.allclose(door.robot.frame_pose(np.zeros(15), "door/leaf")[:3, 3], [1, 0, 0])
    driven = pp.grasp([(arm, None, "link7")], b.build(), ["knob"], actuated=["door/hinge"])
    assert driven.actuated.tolist() == [7]
    with pytest.raises(pp.StateError, match=r"at\[0\] is .* held at its frames"):
        pp.grasp([(arm, None, "link7")], b.build(), [None])


def test_the_inertia_at_the_object_is_a_sum():
    """M(C) + sum A_i* Lambda_i A_i of S4, addend by addend; another object changes one of them."""
    closed = few((7, 7), ("rigid", "rigid"), 6)
    cell, q = closed.system, closed.q
    own, arms = cell.arm_inertias(q)
    assert np.allclose(own + arms.sum(axis=-3), inertia_at_object(cell, q), rtol=1e-9)
    assert np.allclose(own + arms.sum(axis=-3), cell.effective_inertia(q), rtol=1e-8)
    other = thinned(cell, 7.0, (1.0, 2.0, 2.5))
    heavier, same = other.arm_inertias(np.stack([q, q]))
    assert np.allclose(same, arms) and np.allclose(
        heavier[1] + same[1].sum(axis=-3), inertia_at_object(other, q), rtol=1e-9
    )
    short = few((4, 7), ("rigid", "rigid"), 6)
    assert np.isnan(short.system.arm_inertias(short.q)[1]).any(axis=(-2, -1)).tolist() == [
        True,
        False,
    ]
    with pytest.raises(pp.StateError, match="is not several arms around one free body"):
        pp.connect(
            random_tree(3, 1, "revolute", 0.0), [pp.Loop("ball", "link3", "world")]
        ).arm_inertias(np.zeros(3))


def test_the_inertia_at_the_object_is_a_sum_in_compiled_code():
    puma = pp.robots.puma560()
    at = [(0.1, 0, 0), (-0.1, 0, 0)]
    cell = pp.grasp(
        [(puma, None, "tool"), (puma, (1, 0, 0), "tool")], pp.Body.box(1.0, (0.1, 0.1, 0.1)), at
    )
    q = cell.random(seed=1, size=3)
    own, arms = cell.arm_inertias(q)
    assert arms.shape == (3, 2, 6, 6) and relative(arms, around(cell).arm_inertias(q)[1]) < 1e-9
    assert relative(own + arms.sum(axis=-3), cell.effective_inertia(q)) < 1e-7


def test_counts_grow_with_the_arms():
    """At most 2.1 times a doubling, and the form with fewer operations runs: `benchmarks/arms.py`
    counts to 64."""
    systems = {n: cell_of(n) for n in (2, 4, 8, 16)}
    flops = [system.chosen_method().flops[HUB] for system in systems.values()]
    assert all(more < 2.1 * less for less, more in pairwise(flops))
    assert systems[2].chosen_method().method != HUB and "Omega, by count" in systems[2].explain()
    assert systems[16].chosen_method().method == HUB and systems[16].flops() == flops[-1]
    text = systems[16].explain()
    assert (
        "Around box/box, 16 groups" in text
        and "factoring Omega alone takes" in text
        and f"{flops[-1]} flops (hub)" in text
    )


def test_control_grows_with_the_arms():
    """Torques to hold, to drive and to carry: at most 2.1 times a doubling, and around the hub
    those of Omega."""
    systems = [cell_of(n) for n in (4, 8)]
    carried = [
        object_dynamics.object_inverse_dynamics(s.algebra, object_dynamics.grasp_map(s)).flops
        for s in systems
    ]
    driven = [
        closed_inverse_dynamics.inverse_dynamics(s.algebra, s.idle.tolist(), method=HUB).flops
        for s in systems
    ]
    holds = [
        closed_inverse_dynamics.static_torques(s.algebra, s.idle.tolist()).flops for s in systems
    ]
    for less, more in (carried, driven, holds):
        assert more < 2.1 * less
    closed = random_cell(3, 3)
    cell, values = closed.system, (closed.q, closed.v, closed.tau)
    found = {
        method: cell.call_function(
            closed_inverse_dynamics.inverse_dynamics(
                cell.algebra, cell.idle.tolist(), method=method
            ).compiled(),
            values,
        )[0]
        for method in (HUB, "free")
    }
    assert relative(found[HUB], found["free"]) < 1e-8


def cell_of(arms: int) -> System:
    made = [random_tree(6, i, "revolute", 0.0) for i in range(arms)]
    at = np.random.default_rng(0).normal(size=(2, arms, 3))
    held_by = [(arm, at[0, i], arm.bodies[-1].name) for i, arm in enumerate(made)]
    return pp.grasp(held_by, pp.Body.box(2.0, (0.3, 0.2, 0.4)), list(at[1]))


def flat_arm(joints: int, mass: float, name: str) -> pp.Robot:
    """Hinges about z: it moves in its plane, and no further."""
    b, last = pp.Builder(name), "world"
    for i in range(joints):
        b.body(
            f"link{i}", mass=mass, com=(0.3, 0.02, 0.01), inertia=mass * np.diag([0.02, 0.03, 0.04])
        )
        b.joint(
            f"joint{i}", "revolute", last, f"link{i}", axis=(0, 0, 1), xyz=(0.5 * (i > 0), 0, 0)
        )
        last = f"link{i}"
    b.frame("tool", last, xyz=(0.5, 0, 0))
    return Interpreted.of(b.build())


def flat_door(
    joints: tuple[int, ...], kinds: list, masses: tuple[float, float], seed: int
) -> ClosedState:
    """Flat arms at a door whose hinge is across their plane, turned at random: most rows of a rigid
    grasp are none."""
    rng = np.random.default_rng(seed)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    place = lambda xyz: np.block([[R * np.linalg.det(R), (R @ xyz)[:, None]], [np.zeros(3), 1.0]])  # noqa: E731
    arms = [
        (flat_arm(n, masses[0], f"arm{i}"), place((2.0 * i, 1.0, 0.0)), "tool")
        for i, n in enumerate(joints)
    ]
    start = [rng.uniform(-1.0, 1.0, n) for n in joints]
    door, leaf = pp.Builder("door"), place((1.0, 0.5, 0.0))
    door.body(
        "leaf", mass=masses[1], com=(0.4, 0, 0), inertia=masses[1] * np.diag([0.05, 0.1, 0.15])
    )
    door.joint("hinge", "revolute", "world", "leaf", axis=(0, 0, 1))
    for i, ((arm, base, _), q) in enumerate(zip(arms, start, strict=True)):
        grip = np.linalg.inv(leaf) @ base @ arm.frame_pose(q, "tool")
        door.frame(
            f"grip{i}", "leaf", xyz=grip[:3, 3], rpy=(0, 0, np.arctan2(grip[1, 0], grip[0, 0]))
        )
    cell = around(pp.grasp(arms, (door.build(), leaf), ["grip0", "grip1"], kinds))
    q, v = cell.project(np.concatenate([*start, [0.0]]), rng.normal(size=cell.nv))
    return ClosedState(cell, q, v, 10.0 * rng.normal(size=cell.nv))


FLAT = [
    ["rigid", "rigid"],
    [pp.Contact("line", axis=(0, 0, 1)), pp.Contact("soft", normal=(0.6, 0, 0.8))],
    ["point", pp.Contact("line", axis=(0.6, 0, 0.8))],
]


@pytest.mark.parametrize("masses", [(1.0, 20.0), (1e-3, 1e3), (1e3, 1e-3)], ids=str)
@pytest.mark.parametrize("kinds", FLAT, ids=["rigid", "line and soft", "point and line"])
@pytest.mark.parametrize("joints", [(3, 3), (7, 2)], ids=str)
def test_rows_that_neither_the_arms_nor_the_hub_move_carry_nothing(joints, kinds, masses):
    """Beside the dense system by least squares; the ill_conditioning tells where digits are
    lost."""
    closed = flat_door(joints, kinds, masses, sum(joints))
    cell = closed.system
    mass, J, torque, right = dense_saddle.dense_terms(
        cell, cell.state_arrays(q=closed.q, v=closed.v, tau=closed.tau), (), "world"
    )
    U, w, Vt = np.linalg.svd(J)
    kept = w > 1e-9 * w.max()
    N, held = Vt[kept.sum() :].T, Vt[: kept.sum()].T @ ((U.T @ right)[: kept.sum()] / w[kept])
    expected = (
        held + N @ np.linalg.lstsq(N.T @ mass @ N, N.T @ (torque - mass @ held), rcond=None)[0]
        if N.size
        else held
    )
    forces = U[:, : kept.sum()] @ ((Vt @ (mass @ expected - torque))[: kept.sum()] / w[kept])
    assert kept.sum() < cell.nc
    a, multipliers, _, ill_conditioning = solved(cell, closed, HUB, redundant=True)
    assert ill_conditioning < ILL_CONDITIONED or masses[0] > masses[1]
    found = cell.forward_dynamics_details(closed.q, closed.v, closed.tau)
    assert found["rank"] == kept.sum() and not found["unique"]
    size = max(np.abs(expected).max(), 1.0)
    assert np.abs(found["a"] - expected).max() < 1e-8 * size
    assert np.abs(found["multipliers"] - forces).max() < 1e-7 * np.abs(forces).max()
    if ill_conditioning < ILL_CONDITIONED:
        assert np.abs(a - expected).max() < 1e-8 * size
        assert np.abs(multipliers).max() < 10.0 * np.abs(forces).max()
