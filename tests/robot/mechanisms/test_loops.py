"""Loops of every kind against differences of their own errors: e(q) is written apart from its rows
and their bias."""

from __future__ import annotations

import numpy as np
import pytest

from psiphi._util.errors import SingularError, StateError
from psiphi.model.builder.builder import Builder
from psiphi.model.loops.closure_types import KINDS, Constants
from psiphi.model.loops.constraints import Constraint
from psiphi.model.spatial.transforms import from_rpy
from psiphi.robot.mechanisms.grasp_and_connect import Loop, connect
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi_bench.closed_cells import ClosedState, four_bar
from psiphi_bench.interpreted_robot import uncompiled
from tests.robot.mechanisms.cells import pinned_arm
from tests.zoo import random_body, random_joint, random_tree

LOOPS = {
    "weld": {},
    "ball": {},
    "hinge": {"axis": (0.3, -0.5, 0.8)},
    "universal": {"axis": (0.0, 0.6, 0.8), "axis2": (1.0, 0.2, 0.0)},
    "cylindrical": {"axis": (0.0, 0.6, 0.8)},
    "planar": {"axis": (1.0, 2.0, -0.5)},
    "sliding": {"axis": (0.5, -1.0, 0.7)},
    "rough": {"axis": (0.5, -1.0, 0.7), "friction": 1e3},
    "distance": {"length": 0.8},
}


def loop_system(kind: str, seed: int, one_tree: bool) -> ClosedState:
    """A loop inside one branching tree, or between two, closed from a random guess."""
    rng = np.random.default_rng(seed)
    if one_tree:
        system = connect(vee(rng), [Loop(kind, "left5", "right5", **LOOPS[kind])])
    else:
        trees = {
            name: Robot.of(random_tree(rng, 7, ["revolute", "universal"], branching=0.0))
            for name in ("a", "b")
        }
        ends = [f"{name}/{tree.bodies[-1].name}" for name, tree in trees.items()]
        system = connect(trees, [Loop(kind, *ends, **LOOPS[kind])])
    system = uncompiled(system)
    q = system.assemble(_near(system, rng))
    q, v = system.project(q, rng.standard_normal(system.nv))
    return ClosedState(system, q, v, rng.standard_normal(system.nv))


def vee(rng: np.random.Generator) -> Robot:
    """A trunk with two branches, whose ends meet at the nearest common ancestor of both."""
    b = Builder("vee")
    random_body(b, rng, "trunk")
    random_joint(b, rng, "revolute", "world", "trunk")
    for side in ("left", "right"):
        below = "trunk"
        for i, kind in enumerate(
            ["revolute", "universal", "revolute", "prismatic", "spherical", "revolute"]
        ):
            random_body(b, rng, f"{side}{i}")
            random_joint(b, rng, kind, below, f"{side}{i}")
            below = f"{side}{i}"
    return Robot.of(b.build())


def _near(system: System, rng: np.random.Generator) -> np.ndarray:
    """Of some random configurations the one that is least open."""
    tries = system.random(rng, 64)
    return tries[np.argmin(np.abs(system.constraint_residual(tries)).max(axis=-1))]


@pytest.mark.parametrize("one_tree", [True, False], ids=["one tree", "two trees"])
@pytest.mark.parametrize("kind", LOOPS)
def test_rows_are_the_derivative_of_the_errors(kind, one_tree):
    closed = loop_system(kind, 3, one_tree)
    system, q, h = closed.system, closed.q, 1e-6
    steps = np.eye(system.nv)
    ahead, behind = (system.constraint_residual(system.integrate(q, steps, s)) for s in (h, -h))
    assert np.abs(system.constraint_residual(q)).max() < 1e-10
    found, rows = (ahead - behind).T / (2 * h), system.constraint_jacobian(q)
    if (
        kind == "rough"
    ):  # it may rest anywhere on its plane: across it there is a speed that is held, and no error
        assert not found[1:].any() and np.linalg.matrix_rank(rows) == 3
        found, rows = found[:1], rows[:1]
    assert np.abs(found - rows).max() < 1e-8


@pytest.mark.parametrize("one_tree", [True, False], ids=["one tree", "two trees"])
@pytest.mark.parametrize("kind", LOOPS)
def test_accelerations_keep_the_loop_and_obey_gauss(kind, one_tree):
    """c' = 0 along the motion, and M a = tau - bias + Jc* lambda: Gauss' principle of least
    constraint."""
    closed = loop_system(kind, 4, one_tree)
    system, q, v, h = closed.system, closed.q, closed.v, 1e-4
    found = system.forward_dynamics_details(q, v, closed.tau)
    a = found["a"]
    rate = lambda s: system.constraint_jacobian(system.integrate(q, v, s)) @ v  # noqa: E731
    bias = (rate(h) - rate(-h)) / (2 * h)
    Jc = system.constraint_jacobian(q)
    assert np.abs(Jc @ a + bias).max() < 1e-6 * (1 + np.abs(bias).max())
    robot = system.robot
    force = robot.mass_matrix(q) @ a + robot.bias(q, v) - closed.tau
    assert np.abs(force - Jc.T @ found["multipliers"]).max() < 1e-9 * (1 + np.abs(force).max())
    kkt = system.forward_dynamics(q, v, closed.tau, method="KKT")
    assert np.abs(kkt - a).max() < 1e-9 * np.abs(a).max()


def test_every_kind_is_tested():
    assert {*LOOPS, "soft"} == set(KINDS)


def test_a_loop_to_the_world():
    """A pendulum of two links whose tip is pinned to a point of the world stays a triangle: it
    cannot move in plane."""
    system = uncompiled(pinned_arm())
    q = system.assemble([0.5, 1.0])
    assert np.allclose(system.frame_pose(q, "tip")[:3, 3], (1.2, 0.4, 0.0), atol=1e-10)
    a, forces = system.forward_dynamics(q, np.zeros(2), np.zeros(2), forces=True)
    assert np.abs(a).max() < 1e-9, "a triangle is rigid"
    assert forces.shape == (1, 6) and np.abs(forces).max() > 1.0, "and its pin carries weight"


@pytest.mark.parametrize("kind", ["ball", "hinge"])
def test_a_planar_loop_with_redundant_rows_moves_as_it_must(kind):
    """The crank of a four-bar in space: one or three rows too many, accelerations all the same;
    forces of least norm."""
    system = uncompiled(four_bar(kind))
    q = system.assemble([0.9, -0.4, 1.9], hold=["motor"])
    q, v = system.project(q, np.array([1.0, 0.0, 0.0]))
    found = system.forward_dynamics_details(q, v, [2.0, 0.0, 0.0])
    assert not found["unique"] and found["rank"] == 2 and found["solvable"]
    Jc = system.constraint_jacobian(q)
    lam = found["multipliers"]
    torque = system.robot.mass_matrix(q) @ found["a"] + system.robot.bias(q, v) - [2.0, 0.0, 0.0]
    assert np.allclose(Jc.T @ lam, torque, atol=1e-9)
    assert np.allclose(lam, np.linalg.pinv(Jc.T, rcond=1e-9) @ torque, atol=1e-8), "least norm"
    plain = uncompiled(four_bar("ball")).forward_dynamics(q, v, [2.0, 0.0, 0.0])
    assert np.allclose(found["a"], plain, atol=1e-10)


def test_four_bar_in_one_coordinate():
    """The reduced equation of motion: v = S(q) q1', so that q1'' (S* M S) = S* (tau - bias - M S'
    q1')."""
    system = uncompiled(four_bar("hinge"))
    q = system.assemble([0.9, -0.4, 1.9], hold=["motor"])

    def slope(q):
        J = system.constraint_jacobian(q)
        null = np.linalg.svd(J)[2][-1]
        return null / null[0]

    v = slope(q) * 1.3
    h, tau = 1e-5, np.array([2.0, 0.0, 0.0])
    S = slope(q)
    S_dot = (slope(system.integrate(q, v, h)) - slope(system.integrate(q, v, -h))) / (2 * h)
    M, bias = system.robot.mass_matrix(q), system.robot.bias(q, v)
    expected = S @ (tau - bias - M @ S_dot * 1.3) / (S @ M @ S)
    assert abs(system.forward_dynamics(q, v, tau)[0] - expected) < 1e-7 * abs(expected)


def test_no_acceleration_at_all_is_an_error_that_names_the_direction():
    """An arm stretched to its pin, yet turning: nothing can give its tip the inward acceleration.
    One element of a batch."""
    system = uncompiled(pinned_arm(pin=(2.0, 0.0, 0.0)))
    q, v = np.zeros(2), np.array([1.0, -2.0])
    assert np.abs(system.constraint_residual(q, v)).max() < 1e-12
    with pytest.raises(
        SingularError, match=r"loop 1 \(ball\) of tip to pin, sliding along \(1, 0, 0\)"
    ):
        system.forward_dynamics(q, v, np.zeros(2))
    batch = system.forward_dynamics(
        np.zeros((3, 2)), np.array([[0.0, 0.0], [1.0, -2.0], [0.0, 0.0]]), np.zeros(2)
    )
    assert np.isnan(batch[1]).all() and np.isfinite(batch[[0, 2]]).all()
    with pytest.raises(SingularError, match="batch element 1"):
        system.forward_dynamics(
            np.zeros((3, 2)),
            np.array([[0.0, 0.0], [1.0, -2.0], [0.0, 0.0]]),
            np.zeros(2),
            check=True,
        )


def test_mimic_joints_follow_when_asked_to():
    b = Builder("gripper")
    for name in ("palm", "left", "right"):
        b.body(name, mass=0.5, com=(0, 0, 0.1), inertia=np.eye(3) * 0.01)
    b.joint("lift", "revolute", "world", "palm", axis=(0, 1, 0))
    b.joint("finger", "prismatic", "palm", "left", axis=(1, 0, 0), xyz=(0.1, 0, 0.2))
    b.joint(
        "twin",
        "prismatic",
        "palm",
        "right",
        axis=(1, 0, 0),
        xyz=(-0.1, 0, 0.2),
        mimic=("finger", -2.0, 0.1),
    )
    b.frame("tip", "left", xyz=(0, 0, 0.2))
    b.frame("hook", "world", xyz=(0.1, 0.0, 0.4))
    robot = Robot.of(b.build())
    system = uncompiled(connect(robot, mimic=True))
    q = system.assemble([0.3, 0.05, 0.4])
    assert abs(q[2] - (-2.0 * q[1] + 0.1)) < 1e-12
    tau = np.array([0.3, 1.0, -0.4])
    a = system.forward_dynamics(q, np.zeros(3), tau)
    assert abs(a[2] + 2.0 * a[1]) < 1e-12
    S = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -2.0]])  # v = S [lift, finger]
    free = np.linalg.solve(S.T @ robot.mass_matrix(q) @ S, S.T @ (tau - robot.bias(q, np.zeros(3))))
    assert np.allclose(a, S @ free, atol=1e-10)
    both = uncompiled(connect(robot, [Loop("distance", "tip", "hook", length=0.25)], mimic=True))
    q = both.assemble([0.3, 0.05, 0.0])
    q, v = both.project(q, np.array([1.0, 0.2, 0.1]))
    ours, theirs = (both.forward_dynamics(q, v, tau, method=m) for m in (None, "KKT"))
    assert np.allclose(ours, theirs, atol=1e-9)


def test_what_cannot_close_says_what_stays_open():
    system = uncompiled(pinned_arm(pin=(3.0, 0.0, 0.0)))
    with pytest.raises(
        StateError,
        match=r"loops do not close: loop 1 \(ball\) of tip to pin, sliding along .* stays open "
        r"by 1",
    ):
        system.assemble([0.1, 0.2])


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (Loop("bal", "tip", "pin"), "of kind 'bal'"),
        (Loop("hinge", "tip", "pin"), "has no axis"),
        (Loop("distance", "tip", "pin", length=0.0), "expected a positive number"),
        (Loop("ball", "tip", "tip"), "to itself"),
        (Loop("ball", "tip", "lower"), "on one body"),
        (Loop("ball", "tipp", "pin"), "no frame 'tipp'"),
        (Loop("hinge", "tip", "pin", axis=(0, 0, 0)), "not all zero"),
        ("ball", "expected a pp.Loop"),
    ],
)
def test_bad_loops_are_refused_in_words(loop, words):
    robot = pinned_arm().robot
    with pytest.raises(StateError, match=words):
        connect(robot, [loop])
    with pytest.raises(StateError, match="no loop"):
        connect(robot)


@pytest.mark.parametrize("turned", [False, True], ids=["along the axes", "turned"])
def test_rows_that_are_nothing_but_rounding_carry_nothing(turned, rng):
    """A plane four-bar on a turning base, closed by a hinge: three of its five rows are zero, or
    what rounding leaves of zero. Two are felt; forces are those of least norm, and the same as of
    the dense system."""
    rpy = tuple(rng.uniform(-1.0, 1.0, 3)) if turned else (0.0, 0.0, 0.0)
    b = Builder("bar on a base")
    for name in ("base", "crank", "coupler", "rocker"):
        b.body(name, mass=1.0, com=(0.3, 0.0, 0.0), inertia=np.diag([0.02, 0.03, 0.04]))
    b.joint("turn", "revolute", "world", "base", axis=(0.6, 0.0, 0.8), rpy=rpy)
    b.joint("motor", "revolute", "base", "crank", axis=(0, 1, 0), rpy=rpy)
    b.joint("elbow", "revolute", "crank", "coupler", axis=(0, 1, 0), xyz=(0.4, 0, 0))
    b.joint(
        "wrist",
        "revolute",
        "base",
        "rocker",
        axis=(0, 1, 0),
        rpy=rpy,
        xyz=np.reshape(from_rpy(*rpy), (3, 3)) @ (1.0, 0, 0),
    )
    b.frame("one", "coupler", xyz=(0.9, 0, 0))
    b.frame("two", "rocker", xyz=(0.7, 0, 0))
    system = uncompiled(connect(b.build(), [Loop("hinge", "one", "two", axis=(0, 1, 0))]))
    q = system.assemble([0.3, 0.9, -0.6, 1.4], hold=["turn", "motor"])
    q, v = system.project(q, rng.standard_normal(4))
    tau = rng.standard_normal(4)
    found = system.forward_dynamics_details(q, v, tau)
    J, M = system.constraint_jacobian(q), system.robot.mass_matrix(q)
    torque = tau - system.robot.bias(q, v)
    held = np.linalg.pinv(J, rcond=1e-8)
    lam = held.T @ (M @ found["a"] - torque)
    assert found["rank"] == 2 and not found["unique"] and found["solvable"]
    np.testing.assert_allclose(J @ found["a"], -system.constraint_bias(q, v), rtol=0, atol=1e-9)
    np.testing.assert_allclose(M @ found["a"] - torque, J.T @ lam, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["multipliers"], lam, rtol=0, atol=1e-9)


def test_a_hinge_that_is_there_already_carries_nothing(rng):
    """All rows are rounding: the robot moves as it did."""
    b, axis = Builder("twice"), np.array([0.2, -0.4, 0.9]) / np.sqrt(1.01)
    for name in ("a", "b"):
        b.body(name, mass=1.0, com=(0.3, 0.1, 0.2), inertia=np.diag([0.1, 0.2, 0.15]))
    b.joint("first", "revolute", "world", "a", axis=(0.3, 0.5, 0.8))
    b.joint("second", "revolute", "a", "b", axis=axis, xyz=(0.5, 0.2, 0.1), rpy=(0.3, 0.2, 0.7))
    b.frame("here", "a", xyz=(0.5, 0.2, 0.1), rpy=(0.3, 0.2, 0.7))
    b.frame("there", "b")
    robot = b.build()
    system = uncompiled(connect(robot, [Loop("hinge", "here", "there", axis=tuple(axis))]))
    q, v, tau = rng.standard_normal((3, 2))
    found = system.forward_dynamics_details(q, v, tau)
    assert found["rank"] == 0 and np.abs(found["forces"]).max() < 1e-6
    np.testing.assert_allclose(
        found["a"], system.robot.forward_dynamics(q, v, tau), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_bias_is_that_of_any_velocities(kind):
    """dJc/dt v beside differences of Jc, between two bodies that fly, open and opening."""
    b, rng = Builder("two"), np.random.default_rng(7)
    for name in ("one", "two"):
        b.body(name, mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.diag([0.2, 0.3, 0.4]))
        b.joint(f"free {name}", "free", "world", name)
    shape = Constants.of(axis=(0.0, 0.6, 0.8), axis2=(1.0, 0.0, 0.0), length=0.7)
    system = uncompiled(
        System(Robot.of(b.build()), [Constraint("held", kind, "one", "two", shape)])
    )
    q, v, h = system.random(rng), rng.standard_normal(system.nv), 1e-5
    ahead, back = (system.constraint_jacobian(system.integrate(q, x * v)) @ v for x in (h, -h))
    np.testing.assert_allclose(system.constraint_bias(q, v), (ahead - back) / (2 * h), atol=1e-8)
    q, v = system.project(
        system.assemble(q), v
    )  # the same where v keeps the constraint: so dynamics take it
    a = system.forward_dynamics(q, v, np.zeros(system.nv))
    assert np.abs(system.constraint_jacobian(q) @ a + system.constraint_bias(q, v)).max() < 1e-10
