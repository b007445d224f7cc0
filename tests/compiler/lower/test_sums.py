"""Sweeps that end in a sum: numbers x* A y, rows x* A, and values over frames of several bodies,
beside what they mean."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.algebra.dense.rank_check import random_inputs
from psiphi.algebra.expressions.operators import Operators
from tests import zoo

v, tau, x = pp.vector("v"), pp.vector("tau"), pp.vector("x")
f, y, z = pp.vector("f", "frame"), pp.vector("y", "link"), pp.vector("z", "link")

NUMBERS = {
    "kinetic energy": lambda s, J, F: v.T @ s.mass @ v / 2,
    "energy of an impulse": lambda s, J, F: tau.T @ s.mass.inv @ tau / 2,
    "power": lambda s, J, F: v.T @ s.D @ tau - 3 * tau.T @ s.mass @ v,
    "power of wrenches": lambda s, J, F: f.T @ J @ v,
    "squared speed of a frame": lambda s, J, F: v.T @ J.T @ J @ v,
    "squared distance of speeds": lambda s, J, F: (J @ v - F @ v).T @ (J @ v - F @ v),
    "a given part": lambda s, J, F: f.T @ (f - J @ v),
    "over links": lambda s, J, F: z.T @ s.psi @ s.M @ s.phi.T @ z + y.T @ s.H.T @ x,
    "of biases": lambda s, J, F: s.a.T @ s.P @ s.a_local,
}
ROWS = {
    "a torque row": lambda s, J, F: f.T @ J,
    "momenta": lambda s, J, F: v.T @ s.mass,
    "over links": lambda s, J, F: z.T @ s.phi,
}
FRAMES = {
    "difference of frames": lambda s, J, F: J - F,
    "difference of axes": lambda s, J, F: J - s.J("tool", axes="frame"),
    "less the world": lambda s, J, F: (J - s.J("world")) @ s.mass,
    "J J*": lambda s, J, F: J @ J.T,
    "two frames": lambda s, J, F: J @ F.T,
    "J* J": lambda s, J, F: F.T @ J,
    "weighed": lambda s, J, F: J @ s.D @ F.T,
    "not symmetric inside": lambda s, J, F: J @ s.D_half @ J.T,
    "identity of frames": lambda s, J, F: 2 * s.I - J @ s.mass.inv @ J.T,
    "speeds share their sweep": lambda s, J, F: J @ v - F @ v,
    "pushed elsewhere": lambda s, J, F: s.mass.inv @ F.T @ J @ v,
    "given and made": lambda s, J, F: f - J @ v,
    "rates": lambda s, J, F: J.dot() - F.dot(),
    "four in a row": lambda s, J, F: J.T @ F @ F.T @ J @ x,
}
AT_WORLD = {
    "momentum": lambda at, A, s: A @ v,
    "its matrix": lambda at, A, s: A,
    "turned": lambda at, A, s: A.T,
    "the whole as one body": lambda at, A, s: at @ s.phi @ s.M @ s.phi.T @ at.T,
    "articulated": lambda at, A, s: at @ s.psi @ s.K,
    "wrenches on the ground": lambda at, A, s: (
        at @ s.phi @ (s.M @ s.phi.T @ s.a + s.b - s.B("tool") @ f)
    ),
    "the world moves": lambda at, A, s: s.phi.T @ at.T @ f,
    "roots alone": lambda at, A, s: at @ s.M @ at.T,
    "a number": lambda at, A, s: f.T @ A @ v,
    "beside given": lambda at, A, s: 2 * A @ v - f,
    "beside a frame": lambda at, A, s: s.J("tool") @ v - A @ v,
    "and out again": lambda at, A, s: A.T @ A @ v,
    "at rest": lambda at, A, s: A @ s.mass.inv @ A.T,
    "where a frame is": lambda at, A, s: at @ s.phi @ s.B("tool"),
    "in its own axes": lambda at, A, s: 2 * at @ s.phi @ s.B("tool", "elbow", axes="frame"),
    "seen from there": lambda at, A, s: s.B("tool", axes="frame").T @ s.phi.T @ at.T,
    "beside another": lambda at, A, s: (
        at @ s.phi @ s.B("tool") - 3 * at @ s.psi @ s.B("elbow", axes="frame")
    ),
}
ROBOTS = {
    "tree": lambda: zoo.random_tree(5, 5, armature=True),
    "chain": lambda: zoo.random_tree(11, 3, branching=0.0),
    "one body": lambda: zoo.random_tree(2, 1),
}


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("case", [*NUMBERS, *FRAMES, *(f"row: {name}" for name in ROWS)])
def test_sums_are_sweeps_and_right(case, robot):
    model = ROBOTS[robot]()
    s = Operators(model)
    J, F = s.J("tool"), s.J("elbow")
    e = {**NUMBERS, **FRAMES, **{f"row: {name}": make for name, make in ROWS.items()}}[case](
        s, J, F
    )
    function = pp.function(e)
    assert not function.dense, case
    q, values = random_inputs(e.term, model, np.random.default_rng(3), (4,))
    arrays = [values[arg.name] for arg in function.arguments[0][1:]]
    expected = e.dense(q, values.pop("v", None), **values)
    got = function(q, *arrays)
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= 1e-12 * (1.0 + np.abs(expected).max()), case


@pytest.mark.parametrize("robot", [*ROBOTS, "forest"])
@pytest.mark.parametrize("place", ["E_0", "E_c"])
@pytest.mark.parametrize("case", AT_WORLD)
def test_sums_at_the_world_are_sweeps_and_right(case, place, robot):
    model = (
        ROBOTS[robot]() if robot in ROBOTS else zoo.random_tree(5, 9, branching=0.7, forest=True)
    )
    s = Operators(model)
    at = getattr(s, place)
    e = AT_WORLD[case](at, at @ s.phi @ s.M @ s.phi.T @ s.H.T, s)
    function = pp.function(e)
    assert not function.dense, case
    q, values = random_inputs(e.term, model, np.random.default_rng(3), (4,))
    arrays = [values[arg.name] for arg in function.arguments[0][1:]]
    expected = e.dense(q, values.pop("v", None), **values)
    assert np.abs(function(q, *arrays) - expected).max() <= 1e-12 * (
        1.0 + np.abs(expected).max()
    ), case


def test_where_a_frame_is_costs_no_more_than_its_pose():
    """ℰ₀ φ B is [R, p~R; 0, R]: its own 27 operations are p~R, and in world axes nothing is left
    but p."""
    for robot in (pp.robots.puma560(), pp.robots.ur5(), pp.robots.panda()):
        s, pose = robot.operators, robot.flops("frame_pose", frames=("tool",))
        moved = pp.function(s.E_0 @ s.phi @ s.B("tool", axes="frame"))
        assert (moved.flops, moved.sweeps) == (pose + 27, 1)
        assert pp.function(s.E_0 @ s.phi @ s.B("tool")).flops < pose
    assert "φ(0,k) B(tool in own axes)" in moved.explain()


def test_the_force_on_the_ground_is_the_rate_of_momentum():
    """d/dt ℰ₀ φ M φ* H* v along forward dynamics: the weight at the centre of mass, and what the
    ground gives."""
    robot = pp.Robot.of(zoo.random_tree(5, 5))
    s, (q, rates, _, tau) = robot.operators, zoo.random_state(robot, 1)
    h = s.E_0 @ s.phi @ s.M @ s.phi.T @ s.H.T @ v
    a = robot.forward_dynamics(q, rates, tau)
    ground = pp.function(s.E_0 @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ x + s.a) + s.b))(q, rates, a)
    weight = robot.mass * robot.gravity_vector
    pull = np.concatenate([np.cross(robot.center_of_mass(q), weight), weight])
    np.testing.assert_allclose(
        pp.function(h.dot())(q, rates, a), ground + pull, atol=1e-10 * np.abs(ground).max()
    )
    with pytest.raises(pp.StateError, match="the centre of mass moves"):
        (s.E_c @ s.phi @ s.M @ s.phi.T @ s.H.T @ v).dot()


def test_accelerations_of_frames_are_derived():
    """(J v)' is rewritten to B* φ* (H* v' + a_local) + Ḃ* φ* H* v, and that is one step of Newton
    and Euler at a body."""
    robot = pp.robots.puma560()
    J = robot.operators.J("tool")
    derived = [pp.function(e).flops for e in ((J @ v).dot(), J @ x + J.dot() @ v)]
    assert [*derived, robot.function("frame_acceleration", ("tool",)).count.flops] == [246] * 3


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("factor", [1, -2, 3])
def test_accelerations_of_frames_are_right(robot, factor):
    model = ROBOTS[robot]()
    s = Operators(model)
    J, F = s.J("tool", "elbow"), s.J("elbow", axes="frame")
    cases = [
        (J @ v).dot(),
        J.dot() @ v,
        J.dot() @ v + 2 * J @ s.mass.inv @ tau,
        (F @ v).dot(),
        J.dot() @ x + J @ v,
    ]
    for e in cases:
        e = factor * e
        function = pp.function(e)
        q, values = random_inputs(e.term, model, np.random.default_rng(3), (4,))
        arrays = [values[arg.name] for arg in function.arguments[0][1:]]
        expected = e.dense(q, values.pop("v", None), **values)
        assert np.abs(function(q, *arrays) - expected).max() <= 1e-12 * (
            1.0 + np.abs(expected).max()
        ), str(e)


def test_inertial_derivatives_of_frames_in_their_own_axes():
    """J a + DJ/Dt v is the acceleration of the frame as its own axes see it; less B* g the world
    falls, as for body forces."""
    robot = pp.Robot.of(zoo.random_tree(5, 5))
    s, (q, rates, a, _) = robot.operators, zoo.random_state(robot, 1)
    J, B = s.J("tool", axes="frame"), s.B("tool", axes="frame")
    e = J @ x + J.dot("inertial") @ v
    R, A = robot.frame_pose(q, "tool")[..., :3, :3], robot.frame_acceleration(q, rates, a, "tool")
    A = A.reshape(*q.shape[:-1], 2, 3)
    np.testing.assert_allclose(
        pp.function(e)(q, rates, a), (A @ R).reshape(*q.shape[:-1], 6), atol=1e-12 * np.abs(A).max()
    )
    falling = pp.function(2 * e - 2 * B.T @ s.g)
    A = A - [[0.0, 0.0, 0.0], robot.gravity_vector]
    np.testing.assert_allclose(
        falling(q, rates, a), 2 * (A @ R).reshape(*q.shape[:-1], 6), atol=1e-12 * np.abs(A).max()
    )
    assert "- B(tool in own axes)* g, with" in falling.explain()
    back = pp.function((J.dot("inertial").T @ f).T @ v)  # the adjoint turns the other way
    np.testing.assert_allclose(
        back(q, rates, ones := np.ones(6)), pp.function(J.dot("inertial") @ v)(q, rates) @ ones
    )


def test_the_potential_energy_is_a_letter_with_a_rate():
    """E = v* M v / 2 + U; dU/dt is the power of the weights."""
    robot = pp.Robot.of(zoo.random_tree(5, 5, armature=True))
    s, (q, rates, _, _) = robot.operators, zoo.random_state(robot, 1)
    E = pp.function(v.T @ s.mass @ v / 2 + s.U)
    assert not E.dense and np.isclose(E(q, rates), robot.energy(q, rates), rtol=1e-13)
    assert np.isclose(pp.function(s.U)(q), robot.potential_energy(q), rtol=1e-13)
    assert np.isclose(pp.function(s.U.dot())(q, rates), rates @ robot.gravity(q), rtol=1e-10)
    assert pp.function(tau @ s.U).dense, "a number among vectors has no sweeps, and says so"
    long = pp.robots.chain(100)
    f = pp.function(v.T @ long.operators.mass @ v / 2 + long.operators.U)
    assert f.plan.function.program.can_loop
    q, rates = long.random(seed=0), np.linspace(-1.0, 1.0, 100)
    assert np.isclose(
        f(q, rates), long.kinetic_energy(q, rates) + long.potential_energy(q), rtol=1e-12
    )


def test_speeds_of_two_frames_share_one_sweep():
    robot = pp.robots.puma560()
    s = robot.operators
    both, one = pp.function(s.J("tool") @ v - s.J("link3") @ v), pp.function(s.J("tool") @ v)
    assert both.sweeps == 1 and both.flops < 2 * one.flops


def test_the_kinetic_energy_is_an_equation_that_runs_in_loops():
    chain = pp.robots.chain(200)
    q, rates = chain.random(seed=0), np.linspace(-1.0, 1.0, 200)
    f = pp.function(v.T @ chain.operators.mass @ v / 2)
    assert f.sweeps == 2 and f.plan.function.program.can_loop
    assert np.isclose(f(q, rates), rates @ chain.mass_matrix(q) @ rates / 2, rtol=1e-12)
    assert pp.robots.puma560().flops("kinetic_energy") == 185


@pytest.mark.parametrize("place", ["E_0", "E_c"])
def test_sums_over_no_body_are_zero(place):
    made = pp.Builder("nothing")
    made.body("rock", 2.0, inertia=np.eye(3))
    made.joint("weld", "fixed", "world", "rock")
    s = made.build().operators
    at = getattr(s, place)
    for e in (
        at @ s.phi @ s.b,
        at @ s.M @ s.H.T @ s.H @ s.b_local,
        at @ s.phi @ s.M @ s.phi.T @ at.T,
        at.T @ f,
        s.U,
    ):
        function = pp.function(e)
        assert not np.any(
            function(*(np.ones(argument.shape) for argument in function.arguments[0]))
        ), str(e)


def test_operational_compliance_costs_the_same_for_each_link():
    """J M^-1 J* of the tip of a chain of N hinges: linear in N with one constant, by Lemma 4; each
    column with a P of its own would cost 2000 flops a link."""
    counts = {}
    for n in (20, 80, 320, 1280):
        s = pp.robots.random_tree(n, 1, "revolute", 0.0).operators
        J = s.J(f"link{n}")
        counts[n] = pp.function(J @ s.mass.inv @ J.T).flops
    constant = counts[1280] / 1280
    assert constant < 460
    assert all(abs(count / n / constant - 1.0) < 0.1 for n, count in counts.items()), counts
