"""Closed chains of robots whose loops are embedded, or whose links bend: beside the dense system of
all their parts."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.bundled_robots import random_tree
from psiphi.robot.mechanisms.system import System
from psiphi_bench.interpreted_robot import Interpreted, uncompiled
from tests.model.flexible import flexible_robots
from tests.robot.embedding import mechanisms
from tests.robot.mechanisms import worldly

BOX = pp.Body.box(2.0, (0.3, 0.2, 0.4))
AT = [(0.1, 0, 0), (-0.1, 0.05, 0)]
KNOB = np.array([0.3, 0.0, 0.1])


def relative(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("name", ["fourbar", "ankle", "differential", "train"])
def test_embedded_robots_in_a_loop_are_their_spanning_trees_in_all_of_them(name):
    tree, loops, options = getattr(mechanisms, name)()
    robot = Interpreted.of(pp.embed(tree, loops, **options))
    q, rng = robot.random(seed=2), np.random.default_rng(3)
    outer = pp.Loop(
        "distance",
        "tool",
        "world",
        length=float(np.linalg.norm(robot.frame_pose(q, "tool")[:3, 3])),
    )
    system = uncompiled(pp.connect(robot, [outer]))
    v, tau = rng.normal(size=(2, robot.nv))
    v = v - np.linalg.pinv(system.constraint_jacobian(q)) @ system.constraint_jacobian(q) @ v
    spanning = mechanisms.Spanning(Interpreted.of(tree), loops, robot, q, v)
    spanning.loops = [*loops, outer]
    assert np.abs(system.constraint_residual(q, v)).max() < 1e-12
    assert relative(system.forward_dynamics(q, v, tau), spanning.acceleration(tau)) < 1e-10
    point = uncompiled(pp.connect(robot, [pp.Loop("ball", "tool", "world")]))
    Jc = point.constraint_jacobian(q)
    np.testing.assert_allclose(Jc @ v, robot.frame_velocity(q, v, "tool")[3:], rtol=0, atol=1e-10)
    rise = robot.frame_acceleration(q, v, tau, "tool")[3:]
    np.testing.assert_allclose(Jc @ tau + point.constraint_bias(q, v), rise, atol=1e-9)


def test_gradients_by_the_numbers_of_q_are_those_along_velocities():
    """Of two cranks that turn one foot the rates are not at right angles: dq/dt = T v, and a
    tangent gradient is T* of one."""
    tree, loops, options = mechanisms.ankle()
    robot = pp.embed(tree, loops, **options)
    q, (x, tau, w) = robot.neutral(), np.random.default_rng(3).normal(size=(3, robot.nv))
    rates = np.array([robot.rate(q, unit) for unit in np.eye(robot.nv)])
    gram = rates @ rates.T
    assert np.abs(gram - np.diag(np.diag(gram))).max() > 0.1
    np.testing.assert_allclose(robot.velocity_of(q, robot.rate(q, x)), x, rtol=0, atol=1e-12)
    reach = float(np.linalg.norm(robot.frame_pose(q, "tool")[:3, 3]))
    system = pp.connect(robot, [pp.Loop("distance", "tool", "world", length=reach)])
    f, state = system.function("forward_dynamics"), (q, np.zeros(robot.nv), tau)
    _, change = f.jvp("q")(*state, x)
    assert relative(f.pushforward("q")(*state, x @ rates), change) < 1e-11
    assert relative(rates @ f.pullback("q")(*state, w), f.vjp("q")(*state, w)[1]) < 1e-11


def four_bars(kinds: list) -> tuple[System, System]:
    """Two four-bars that hold a box, embedded, and as loops of the cell."""
    tree, loops, options = mechanisms.fourbar()
    robot = pp.embed(tree, loops, **options)
    made = []
    for one, inner in (
        (robot, []),
        (tree, [(f"four-bar_{i}/one", f"four-bar_{i}/two") for i in (1, 2)]),
    ):
        more = [pp.Loop("hinge", *pair, axis=mechanisms.Y) for pair in inner]
        made.append(
            uncompiled(
                pp.grasp(
                    [(one, None, "tool"), (one, (0.5, 0.3, 0), "tool")], BOX, AT, kinds, loops=more
                )
            )
        )
    return made[0], made[1]


def test_embedded_arms_hold_an_object_as_their_spanning_trees_do():
    cell, whole = four_bars(["point", pp.Contact("soft", normal=(0, 0, 1))])
    rng, places = np.random.default_rng(1), {joint.name: joint for joint in whole.joints}
    q, v = cell.project(cell.assemble(cell.neutral()), rng.normal(size=cell.nv))
    assert np.abs(cell.constraint_residual(q, v)).max() < 1e-10
    tau, Q = rng.normal(size=cell.nv), np.zeros(whole.nq)
    V, T, rates = np.zeros(whole.nv), np.zeros(whole.nv), cell.robot.rate(q, v)
    for joint in cell.joints:
        at, is_free = places[joint.name], joint.kind == "free"
        Q[at.q_slice], V[at.v_slice] = (
            q[joint.q_slice],
            v[joint.v_slice] if is_free else rates[joint.q_slice],
        )
        if joint.v_slice.stop > joint.v_slice.start:
            T[at.v_slice] = tau[joint.v_slice]
    mine = [i for joint in cell.joints for i in range(joint.v_slice.start, joint.v_slice.stop)]
    theirs = [
        i
        for j in cell.joints
        if j.v_slice.stop > j.v_slice.start
        for i in range(*places[j.name].v_slice.indices(99))
    ]
    a, forces = cell.forward_dynamics(q, v, tau, forces=True)
    b, others = whole.forward_dynamics(Q, V, T, forces=True)
    assert relative(a[mine], b[theirs]) < 1e-9 and relative(forces, others[:2]) < 1e-9
    assert relative(a, cell.forward_dynamics(q, v, tau, method="KKT")) < 1e-10
    with pytest.raises(pp.StateError, match="four-bar_1/to rocker, which has no coordinate"):
        cell.assemble(q, hold=["four-bar_1/to rocker"])


def test_links_that_bend_are_held_as_the_dense_system_says():
    bent, stiff = Interpreted.of(flexible_robots.arm()), random_tree(7, 3, "revolute", 0.0)
    cell = uncompiled(
        pp.grasp(
            [(bent, None, "tool"), (stiff, (0.5, 0.3, 0), "link7")], BOX, AT, ["point", "rigid"]
        )
    )
    rng = np.random.default_rng(1)
    q, v = cell.project(cell.assemble(cell.random(seed=2)), rng.normal(size=cell.nv))
    tau = rng.normal(size=cell.nv)
    a = cell.forward_dynamics(q, v, tau)
    assert relative(a, worldly.accelerations(cell, q, v, tau)) < 1e-10
    assert relative(a, cell.forward_dynamics(q, v, tau, method="KKT")) < 1e-10


def test_a_beam_that_leans_on_a_pin_keeps_its_energy_and_its_pin():
    robot = flexible_robots.arm()
    place = robot.frame_pose(robot.neutral(), "tool")[:3, 3] - KNOB
    b = pp.connect(
        {"arm": robot, "pin": (pin(), tuple(place))}, [pp.Loop("ball", "arm/tool", "pin/knob")]
    )
    q, v = b.project(b.neutral(), np.full(b.nv, 0.3))
    motion = pp.simulate(b, q, v, duration=0.1, dt=2.5e-4, springs=True)
    assert np.ptp(motion.energy) < 1e-7 * np.abs(motion.energy).max()
    apart = b.robot.frame_pose(motion.q, "arm/tool") - b.robot.frame_pose(motion.q, "pin/knob")
    assert np.abs(apart[:, :3, 3]).max() < 1e-8


def pin() -> pp.Model:
    b = pp.Builder("pin")
    b.body("stick", mass=1.0, com=(0.2, 0, 0), inertia=0.01 * np.eye(3))
    b.joint("hinge", "revolute", "world", "stick", axis=(0.2, 1, 0.3))
    b.frame("knob", "stick", xyz=KNOB)
    return b.build()
