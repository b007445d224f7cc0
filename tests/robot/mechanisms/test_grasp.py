"""Arms around an object: forces, torques, sharing, inertia at the object, friction, and the words
for what is wrong."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.grasp_and_connect import Contact
from psiphi.robot.mechanisms.system import System
from psiphi_bench.closed_cells import (
    CONTACTS,
    ClosedState,
    dense_solution,
    elbows_up,
    facing_pumas,
    grasping_cell,
    random_cell,
)
from psiphi_bench.interpreted_robot import Interpreted, uncompiled
from tests.robot.mechanisms.cells import inertia_at_object, pair, puma_pair


@pytest.fixture(scope="module")
def both() -> ClosedState:
    """Two 7-joint arms with a box."""
    return pair("rigid", "rigid")


def object_wrench(closed: ClosedState, a: np.ndarray) -> np.ndarray:
    """What the object needs: M(C) alpha + b - weight, at its link origin in world axes."""
    cell = closed.system
    name = cell.object
    body = cell.bodies[-1]
    T = cell.frame_pose(closed.q, name)
    R, alpha = T[:3, :3], cell.robot.frame_acceleration(closed.q, closed.v, a, name)
    w = cell.robot.frame_velocity(closed.q, closed.v, name)[:3]
    c, I = R @ body.com, R @ body.inertia @ R.T
    force = body.mass * (
        alpha[3:] + np.cross(alpha[:3], c) + np.cross(w, np.cross(w, c)) - cell.robot.gravity_vector
    )
    return np.concatenate([I @ alpha[:3] + np.cross(w, I @ w) + np.cross(c, force), force])


def summed(closed: ClosedState, forces: np.ndarray) -> np.ndarray:
    """A* f: the contact wrenches moved to the object's origin."""
    cell, total = closed.system, np.zeros(6)
    origin = cell.frame_pose(closed.q, cell.object)[:3, 3]
    for c, f in zip(cell.contacts, forces, strict=True):
        arm = cell.frame_pose(closed.q, c.second)[:3, 3] - origin
        total += np.concatenate([f[:3] + np.cross(arm, f[3:]), f[3:]])
    return total


@pytest.mark.parametrize("arms", [1, 2, 3, 4])
def test_contact_forces_move_the_object(arms):
    """Newton and Euler for the object alone: A* f = M(C) alpha(C) + b(C)."""
    closed = random_cell(arms + 20, arms)
    a, forces = closed.system.forward_dynamics(
        closed.q, closed.v, closed.tau * 0 + np.r_[closed.tau[:-6], np.zeros(6)], forces=True
    )
    needed = object_wrench(closed, a)
    assert np.abs(summed(closed, forces) - needed).max() < 1e-9 * np.abs(needed).max()


@pytest.mark.parametrize("kind", CONTACTS)
def test_contacts_do_no_work(kind):
    """The power of all joint torques and weights is the rate of energy: contacts take and give
    nothing."""
    closed = pair(kind, "point", seed=11)
    cell, q, v = closed.system, closed.q, closed.v
    a, h = cell.forward_dynamics(q, v, closed.tau), 1e-5
    ahead, behind = (
        cell.energy(cell.integrate(cell.integrate(q, v, s), a, s * s / 2), v + s * a)
        for s in (h, -h)
    )
    power = closed.tau @ v
    assert abs((ahead - behind) / (2 * h) - power) < 1e-5 * (1 + abs(power))


def test_inverse_dynamics_undoes_forward_dynamics(both):
    cell, q, v = both.system, both.q, both.v
    tau = np.r_[both.tau[:-6], np.zeros(6)]
    a = cell.forward_dynamics(q, v, tau)
    torques, forces = cell.inverse_dynamics(q, v, a, forces=True)
    again, same = cell.forward_dynamics(q, v, torques, forces=True)
    assert np.allclose(again, a, atol=1e-9 * np.abs(a).max()) and np.allclose(
        same, forces, atol=1e-8
    )
    assert not torques[-6:].any()


def test_an_object_is_driven_and_the_arms_follow(both):
    """complete: the object accelerates as wished, the constraints hold, and inverse dynamics finds
    the torques."""
    cell, q, v = both.system, both.q, both.v
    wish = np.zeros(cell.nv)
    wish[-6:] = [0.1, -0.2, 0.3, 1.0, -1.0, 0.5]
    a = cell.complete(q, v, wish, exactly="box/free")
    assert np.allclose(a[-6:], wish[-6:])
    assert (
        np.abs(cell.constraint_jacobian(q) @ a + cell.constraint_bias(q, v)).max()
        < 1e-9 * np.abs(a).max()
    )
    tau = cell.inverse_dynamics(q, v, a)
    assert np.allclose(cell.forward_dynamics(q, v, tau), a, atol=1e-9 * np.abs(a).max())
    with pytest.raises(
        pp.StateError, match="no acceleration of the other joints satisfies contact"
    ):
        cell.complete(q, v, wish, exactly=[joint.name for joint in cell.joints[:-3]])


def test_squeezing_moves_nothing(both):
    """Internal forces: other torques and contact forces, the same motion; split_forces finds them
    again."""
    cell, q, v = both.system, both.q, both.v
    a = cell.forward_dynamics(q, v, np.r_[both.tau[:-6], np.zeros(6)])
    plain, f0 = cell.inverse_dynamics(q, v, a, forces=True)
    squeeze = np.zeros((2, 6))
    squeeze[0, 3], squeeze[1, 3] = 20.0, -20.0
    torques, f1 = cell.inverse_dynamics(q, v, a, internal=squeeze, forces=True)
    assert np.abs(torques - plain).max() > 0.1 and np.abs(f1 - f0).max() > 1.0
    assert np.allclose(cell.forward_dynamics(q, v, torques), a, atol=1e-9 * np.abs(a).max())
    moving, internal = cell.split_forces(q, f1)
    assert np.allclose(moving + internal, f1, atol=1e-9) and np.allclose(moving, f0, atol=1e-8)
    assert np.abs(summed(both, internal)).max() < 1e-9, "internal forces cancel on the object"


def test_load_is_shared_by_weight(both):
    """The force of an arm with share 1e6 carries nearly all; equal shares of one wrench are least
    in norm."""
    cell, q, v = both.system, both.q, both.v
    a = cell.forward_dynamics(q, v, np.r_[both.tau[:-6], np.zeros(6)])
    _, f = cell.inverse_dynamics(q, v, a, share=[1e6, 1.0], forces=True)
    assert np.abs(f[1]).max() < 1e-3 * np.abs(f[0]).max()
    _, even = cell.inverse_dynamics(q, v, a, forces=True)
    assert np.linalg.norm(even) <= np.linalg.norm(f) + 1e-9
    assert np.allclose(summed(both, even), summed(both, f), atol=1e-8)
    for share in ([1.0], [1.0, -1.0], [np.nan, 1.0]):
        with pytest.raises(pp.StateError, match="2 positive numbers"):
            cell.inverse_dynamics(q, v, a, share=share)


def test_effective_inertia_is_felt_at_the_object(both):
    """S4: M(C) + sum A_i* Lambda_i A_i with Lambda_i = (J_i M_i^-1 J_i*)^-1 for rigid grasps; and a
    push is answered by it."""
    cell, q = both.system, both.q
    inertia, expected = cell.effective_inertia(q), inertia_at_object(cell, q)
    assert np.abs(inertia - expected).max() < 1e-9 * np.abs(expected).max()
    push = np.array([0.1, -0.2, 0.3, 1.0, 2.0, -1.0])
    rest = np.zeros(cell.nv)
    pushed = cell.forward_dynamics(
        q, rest, rest, f_ext={cell.object: push}
    ) - cell.forward_dynamics(q, rest, rest)
    moved = cell.robot.jacobian(q, cell.object) @ pushed
    assert np.allclose(inertia @ moved, push, atol=1e-9)


def test_batches_are_their_elements(both):
    cell = both.system
    rng = np.random.default_rng(0)
    taus = rng.standard_normal((2, 3, cell.na))
    a, forces = cell.forward_dynamics(both.q, both.v, taus, forces=True)
    assert a.shape == (2, 3, cell.nv) and forces.shape == (2, 3, 2, 6)
    one, own = cell.forward_dynamics(both.q, both.v, taus[1, 2], forces=True)
    assert np.allclose(a[1, 2], one, rtol=1e-12) and np.allclose(forces[1, 2], own, rtol=1e-12)
    assert cell.constraint_residual(np.tile(both.q, (4, 1)), both.v).shape == (4, 2, cell.nc)


def test_every_question_takes_batches(both):
    """Two elements at once, or one after the other."""
    cell = both.system
    q, v = np.stack([both.q, both.q]), np.stack([both.v, 0.5 * both.v])
    a = cell.forward_dynamics(q, v, np.zeros(cell.nv))
    _, forces = cell.inverse_dynamics(q, v, a, forces=True)
    wish = np.zeros(cell.nv)
    questions = {
        "inverse_dynamics": lambda i: cell.inverse_dynamics(q[i], v[i], a[i]),
        "squeezed": lambda i: cell.inverse_dynamics(q[i], v[i], a[i], internal=np.ones((2, 6))),
        "split_forces": lambda i: np.stack(cell.split_forces(q[i], forces[i])),
        "complete": lambda i: cell.complete(q[i], v[i], wish, exactly="box/free"),
        "effective_inertia": lambda i: cell.effective_inertia(q[i]),
        "constraint_jacobian": lambda i: cell.constraint_jacobian(q[i]),
        "contact_configuration": lambda i: cell.contact_configuration(q[i], 1),
        "contact_configuration_rate": lambda i: cell.contact_configuration_rate(q[i], v[i], 1),
        "contact_rates": lambda i: cell.contact_rates(q[i], v[i]),
        "project": lambda i: np.concatenate(cell.project(q[i], v[i]), axis=-1),
        "KKT": lambda i: cell.forward_dynamics(q[i], v[i], wish, method="KKT"),
    }
    for name, ask in questions.items():
        together, axis = ask(slice(None)), 1 if name == "split_forces" else 0
        for i in range(2):
            assert np.allclose(np.take(together, i, axis), ask(i), rtol=1e-9, atol=1e-9), name


def test_mobile_bases_hold_objects_too():
    """A base that rolls in the plane, and one that flies, beside the dense system."""
    builder = pp.Builder("rover")
    builder.body("deck", mass=8.0, com=(0, 0, 0.1), inertia=np.diag([0.3, 0.3, 0.4]))
    builder.joint("wheels", "planar", "world", "deck")
    below = "deck"
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)]):
        builder.body(f"l{i}", mass=1.0, com=(0, 0, 0.15), inertia=np.eye(3) * 0.02)
        builder.joint(f"j{i}", "revolute", below, f"l{i}", xyz=(0, 0, 0.3), axis=axis)
        below = f"l{i}"
    flyer = pp.robots.random_tree(8, 3, "revolute", 0.0, base="free")
    closed = grasping_cell([builder.build(), flyer], ["soft", "rigid"], np.random.default_rng(8))
    a, forces = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
    expected, wrenches = dense_solution(closed)
    assert np.allclose(a, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert np.allclose(forces, wrenches, rtol=1e-9, atol=1e-9 * np.abs(wrenches).max())


def test_nan_stays_in_its_element(both):
    cell = both.system
    taus = np.zeros((3, cell.nv))
    taus[1, 0] = np.nan
    a = cell.forward_dynamics(both.q, both.v, taus)
    assert np.isnan(a[1]).any() and np.isfinite(a[[0, 2]]).all()


def test_parallel_arms_at_a_singularity():
    """Both wrists straight: no joint moves either hand along one direction, the squeeze in it is
    free. Accelerations stand."""
    straight = puma_pair([0.0, -0.8, 0.6, 0.0, 0.0, 0.0])
    cell = straight.system
    details = cell.forward_dynamics_details(straight.q, straight.v, np.ones(12))
    near = puma_pair([0.0, -0.8, 0.6, 0.0, 1e-3, 0.0])
    assert not details["unique"] and details["solvable"] and details["rank"] < cell.nc
    assert np.isfinite(details["a"]).all() and np.isfinite(details["forces"]).all()
    assert np.abs(cell.constraint_jacobian(straight.q) @ details["a"]).max() < 1e-9, (
        "at rest: Jc a = 0"
    )
    mass, bias = cell.robot.mass_matrix(straight.q), cell.robot.bias(straight.q, straight.v)
    tau = np.r_[np.ones(12), np.zeros(6)]
    left = (
        mass @ details["a"]
        + bias
        - tau
        - cell.constraint_jacobian(straight.q).T @ details["multipliers"]
    )
    assert np.abs(left).max() < 1e-8
    regular = near.system.forward_dynamics_details(near.q, near.v, np.ones(12))
    assert regular["rank"] == near.system.nc and regular["unique"]


def test_friction_is_watched():
    """A ball between two fingers: the ratio |f_t| / (mu f_n), infinite when a finger would have to
    pull."""
    rng = np.random.default_rng(2)
    fingers = [Interpreted.of(pp.robots.random_tree(6, seed, "revolute", 0.0)) for seed in (1, 2)]
    qs = [finger.random(rng) for finger in fingers]
    bases = []
    for finger, q, side in zip(fingers, qs, (-1, 1), strict=True):
        target = np.eye(4)
        target[0, 3] = 0.1 * side
        bases.append(target @ np.linalg.inv(finger.frame_pose(q, "link6")))
    grips = [pp.Contact("point", normal=(-side, 0, 0), friction=0.5) for side in (-1, 1)]
    at = [(-0.1, 0, 0), (0.1, 0, 0)]
    arms = [(finger, base, "link6") for finger, base in zip(fingers, bases, strict=True)]
    cell = uncompiled(pp.grasp(arms, pp.Body.sphere(1.0, 0.1), at, grips))
    q = np.concatenate([*qs, [0, 0, 0, 0, 0, 0, 1]])
    q, v = cell.project(q, np.zeros(cell.nv))
    squeeze = np.zeros((2, 6))
    squeeze[0, 3], squeeze[1, 3] = 30.0, -30.0
    tau, forces = cell.inverse_dynamics(q, v, np.zeros(cell.nv), internal=squeeze, forces=True)
    normal = forces[:, 3] * [1, -1]
    sideways = np.hypot(forces[:, 4], forces[:, 5])
    assert (normal > 29.0).all()
    assert np.allclose(cell.contact_ratio(q, forces), sideways / (0.5 * normal))
    assert (cell.contact_ratio(q, forces) < 1).all(), "thirty newtons hold one kilogram at mu = 0.5"
    assert np.isinf(cell.contact_ratio(q, -forces)).all(), "fingers do not pull"
    assert (cell.contact_ratio(q, forces * [[1, 1, 1, 0.1, 1, 1]]) > 1).all(), (
        "three newtons do not"
    )
    assert np.allclose(cell.contact_rates(q, v)[:, 3:], 0, atol=1e-9)
    assert cell.contact_configuration(q, "contact 2").shape == (4,)


@pytest.mark.parametrize("kind", CONTACTS)
def test_contact_rates_and_accelerations(kind):
    """W is free where the contact leaves it free, and W' its derivative along the motion."""
    closed = pair(kind, "rigid", seed=5)
    cell, q, v = closed.system, closed.q, closed.v
    a, h = cell.forward_dynamics(q, v, closed.tau), 1e-5
    W = cell.contact_rates(q, v)
    free = {"rigid": 0, "line": 1, "soft": 2, "point": 3}[kind]
    assert np.abs(W[1]).max() < 1e-9 and np.abs(W[0, 3:]).max() < 1e-9
    assert (np.abs(W[0]).max() > 1e-3) == (free > 0)
    c, robot = cell.contacts[0], cell.robot
    tip, object_ = (robot.frame_velocity(q, v, name)[:3] for name in (c.first, c.second))
    axes = robot.frame_pose(q, c.second)[:3, :3]
    assert np.allclose(axes @ W[0, :3], object_ - tip, atol=1e-9), (
        "(a.1) of S4: the object's turning less the tip's"
    )
    ahead, behind = (
        cell.contact_rates(cell.integrate(cell.integrate(q, v, s), a, 0.5 * s * s), v + s * a)
        for s in (h, -h)
    )
    turned = [cell.contact_configuration(cell.integrate(q, v, s)) for s in (h, -h)]
    turned[1] = turned[1] * np.sign(turned[0] @ turned[1])  # q and -q are the same
    rate = cell.contact_configuration_rate(q, v) * np.sign(
        turned[0] @ cell.contact_configuration(q)
    )
    assert np.allclose(
        (turned[0] - turned[1]) / (2 * h), rate, atol=1e-6 * (1 + np.abs(v).max())
    ), "(a.4) of S4"
    W_dot = cell.contact_accelerations(q, v, a)
    assert np.abs((ahead - behind) / (2 * h) - W_dot).max() < 1e-4 * (1 + np.abs(a).max())


def test_a_batch_of_regular_and_singular_elements():
    """Each element by itself: the straight wrists get least-norm forces and a flag, the bent ones
    are unique."""
    bent, straight = (
        puma_pair([0.0, -0.8, 0.6, 0.0, 0.4, 0.0]),
        puma_pair([0.0, -0.8, 0.6, 0.0, 0.0, 0.0]),
    )
    cell = straight.system
    q = np.stack([straight.q, cell.assemble(bent.q), straight.q])
    found = cell.forward_dynamics_details(q, np.zeros(cell.nv), np.ones(12))
    assert found["unique"].tolist() == [False, True, False] and found["solvable"].all()
    one = cell.forward_dynamics_details(q[1], np.zeros(cell.nv), np.ones(12))
    assert np.allclose(found["a"][1], one["a"], rtol=1e-10) and np.allclose(
        found["a"][0], found["a"][2]
    )


def cell_of(arms: int, links: int) -> System:
    chain = pp.robots.chain(links)
    places = [(0.1 * i, 0.05 * i * i, 0.0) for i in range(arms)]
    return pp.grasp(
        [(chain, (float(i), 0, 0), "tool") for i in range(arms)],
        pp.Body.box(1.0, (1, 1, 1)),
        places,
    )


def test_cost_is_linear_in_links_and_at_most_cubic_in_arms():
    links = [system_stages.dynamics(cell_of(2, n).algebra, "free").flops for n in (6, 12, 24, 48)]
    assert links[2] - links[1] == 2 * (links[1] - links[0]), "exactly linear"
    assert all(more < 2.15 * less for less, more in pairwise(links))
    arms = [system_stages.dynamics(cell_of(n, 6).algebra, "free").flops for n in (2, 4, 8)]
    assert all(more < 8 * less for less, more in pairwise(arms))


def test_compiled_is_interpreted(both):
    """The gufunc gives what the program means; the default is the cheapest of the compiler's forms,
    and explains itself."""
    c = both.system.closure
    compiled = System(
        pp.Robot.of(both.system.robot),
        c.constraints,
        c.mimics,
        both.system.passive,
        both.system.object,
    )
    a, forces = compiled.forward_dynamics(both.q, both.v, both.tau, forces=True)
    ours, wrenches = both.system.forward_dynamics(both.q, both.v, both.tau, forces=True)
    assert np.allclose(a, ours, rtol=1e-11) and np.allclose(forces, wrenches, rtol=1e-11)
    costs = {
        name: system_stages.dynamics(compiled.algebra, name).flops
        for name in ("hub", "free", "whole")
    }
    least = min(costs, key=lambda name: costs[name])
    assert compiled.flops() == costs[least]
    text = compiled.explain()
    assert (
        f"{costs[least]} flops ({least})" in text
        and ("P d = " if least == "hub" else "Ω λ") in text
    )


def test_a_system_travels_to_other_processes(both):
    again = pickle.loads(pickle.dumps(both.system))
    assert repr(again) == repr(both.system)
    assert np.allclose(
        again.forward_dynamics(both.q, both.v, both.tau),
        both.system.forward_dynamics(both.q, both.v, both.tau),
    )


ONE = np.eye(4)
BOX = pp.Body.box(1.0, (1, 1, 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(arms=[]), "arms is empty"),
        (dict(arms=[("puma", None, "tool")]), r"arms\[0\] is"),
        (dict(arms=[(pp.robots.puma560(), None, "tol")]), "no frame 'tol'"),
        (dict(arms=[(pp.robots.puma560(), np.ones((4, 4)), "tool")]), "the base of arms"),
        (dict(arms=[(pp.robots.puma560(), 2 * np.eye(3), "tool")]), "the base of arms"),
        (dict(object="box"), "expected a pp.Body"),
        (
            dict(object=pp.Body("feather", 1.0), contacts=["point"]),
            "object .feather. has mass 1 and no inertia",
        ),
        (dict(at=[]), "0 grasp poses"),
        (dict(at=[np.diag([1.0, 1.0, 2.0, 1.0])]), "not orthonormal"),
        (dict(contacts=["rigit"]), "of kind 'rigit'"),
        (dict(contacts=["line"]), "line contact without axis"),
        (dict(contacts=["soft"]), "soft contact without normal"),
        (
            dict(contacts=[pp.Contact("point", friction=0.3)]),
            "needs the normal along which it pushes",
        ),
        (dict(contacts=[pp.Contact("line", axis=(0, 0, 0))]), "not all zero"),
        (dict(contacts=["rigid", "rigid"]), "2 contacts"),
    ],
)
def test_bad_cells_are_refused_in_words(change, words):
    good = dict(
        arms=[(pp.robots.puma560(), None, "tool")], object=BOX, at=[ONE], contacts=["rigid"]
    )
    with pytest.raises(pp.Error, match=words):
        pp.grasp(**good | change)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda c, q, v: c.forward_dynamics(q[:-1], v, v),
            r"q has shape \(20,\), expected \(\.\.\., 21\)",
        ),
        (
            lambda c, q, v: c.forward_dynamics(q, v, v[:5]),
            r"tau has shape \(5,\), expected \(\.\.\., 20\) \(or 14",
        ),
        (lambda c, q, v: c.forward_dynamics(q, v, "none"), "expected real numbers"),
        (lambda c, q, v: c.forward_dynamics(q, v, v, method="RCCFD4"), "no method 'RCCFD4'"),
        (lambda c, q, v: c.contact_ratio(q, np.zeros((3, 6))), r"forces has shape \(3, 6\)"),
        (lambda c, q, v: c.contact_configuration(q, "contact 9"), "no contact"),
        (lambda c, q, v: c.assemble(q, hold=["elbo"]), "no joint 'elbo'"),
        (lambda c, q, v: c.effective_inertia(q, "nowhere"), "no frame 'nowhere'"),
    ],
)
def test_bad_calls_are_refused_in_words(both, call, words):
    with pytest.raises(pp.Error, match=words):
        call(both.system, both.q, both.v)


def test_a_contact_that_slides():
    """One row: it pushes along its normal and does nothing else; where friction=0 says it is
    one-sided, pulling is told."""
    cell = uncompiled(facing_pumas(["rigid", Contact("sliding", normal=(-1, 0, 0), friction=0.0)]))
    assert cell.nc == 7
    q = elbows_up(cell)
    rng = np.random.default_rng(2)
    q, v = cell.project(q, rng.standard_normal(cell.nv))
    normal = -cell.frame_pose(q, cell.contacts[1].second)[:3, 0]
    for sign in (1.0, -1.0):
        push = {cell.contacts[1].first: np.concatenate([np.zeros(3), 1e3 * sign * normal])}
        a, forces = cell.forward_dynamics(q, v, np.zeros(12), forces=True, f_ext=push)
        assert np.allclose(
            a,
            cell.forward_dynamics(q, v, np.zeros(12), f_ext=push, method="KKT"),
            atol=1e-7 * np.abs(a).max(),
        )
        size = normal @ forces[1, 3:]
        np.testing.assert_allclose(forces[1], [0, 0, 0, *(size * normal)], atol=1e-9 * abs(size))
        assert size * sign > 0 and cell.contact_ratio(q, forces)[1] == (0.0 if sign > 0 else np.inf)
    for wrong in ({"friction": 0.5}, {"friction": 0.0, "torsion": 0.1}):
        with pytest.raises(pp.StateError, match="no tangential force"):
            facing_pumas(["rigid", Contact("sliding", normal=(1, 0, 0), **wrong)])
    with pytest.raises(pp.StateError, match="a sliding contact without normal"):
        facing_pumas(["rigid", "sliding"])
