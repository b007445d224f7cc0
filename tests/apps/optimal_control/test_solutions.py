"""Optimal motions beside Ipopt and LQR in closed form, and by their conditions of optimality."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.optimal_control import control_blocks
from tests.apps.optimal_control import robots
from tests.apps.optimal_control.robots import RUNNING, reach_batch, reach_problem


def total_cost(problem, cost_of_node, cost_of_end, start, u):
    """The cost of torques (..., N, nu), by `robot.step` and formulas of the test."""
    robot, (q, v), total = problem.robot, start, 0.0
    for k in range(problem.steps):
        total = total + problem.dt * cost_of_node(q, v, u[..., k, :])
        tau = np.zeros((*u.shape[:-2], robot.nv))
        tau[..., list(problem.motors)] = u[..., k, :]
        q, v = robot.step(q, v, tau, problem.dt, method="euler")
    return total + cost_of_end(q, v)


def gradient(cost, u, step=1e-5):
    """By central differences: all torques of a motion at once, as a batch."""
    size = u.size
    changes = step * np.eye(size).reshape(size, *u.shape)
    return ((cost(u + changes) - cost(u - changes)) / (2.0 * step)).reshape(u.shape)


def check_optimality(problem, found, cost):
    """The gradient vanishes at free torques, and points out of the bounds at the others."""
    at_bound = found.at_bounds.any()
    for u, at, row in zip(found.u, found.at_bounds, range(len(found.u)), strict=True):
        slope = gradient(lambda x, row=row: cost(x, row), u)
        scale = np.abs(u).max() * problem.dt
        assert np.abs(slope[~at]).max(initial=0.0) < 1e-4 * scale
        if at.any():
            assert (slope[at] * np.sign(u[at]) < 1e-4 * scale).all()
    return at_bound


def test_conditions_of_optimality_with_bounds():
    problem, (q, v, goal) = reach_problem(), reach_batch(6)
    torque, speed = RUNNING
    found = problem.solve(q, v, tool=goal, tolerance=1e-13)
    assert found.converged.all() and found.q.shape == (6, 21, 2) and found.K.shape == (6, 20, 2, 4)

    def cost(u, row):
        def end(q, v):
            miss = problem.robot.frame_pose(q, "tool")[..., :3, 3] - goal[row]
            return 0.5e3 * (miss**2).sum(-1) + 0.5 * (v**2).sum(-1)

        def node(q, v, u):
            return 0.5 * torque * (u**2).sum(-1) + 0.5 * speed * (v**2).sum(-1)

        lead = u.shape[:-2]
        starts = (np.broadcast_to(x[row], (*lead, 2)) for x in (q, v))
        return total_cost(problem, node, end, tuple(starts), u)

    assert check_optimality(problem, found, cost), "no torque is at its bound"
    for row in range(6):
        np.testing.assert_allclose(cost(found.u[row], row), found.cost[row], rtol=1e-9)
    parts = sum(found.costs.values())
    np.testing.assert_allclose(parts, found.cost, rtol=1e-12)
    assert set(found.costs) == {"torque", "speed", "final tool", "final speed"}


def test_conditions_of_optimality_of_a_free_base(rng):
    problem, robot = robots.turn_problem(), robots.satellite()
    q = robot.integrate(robot.neutral(), rng.uniform(-0.5, 0.5, (3, 7)))
    target = robot.integrate(robot.neutral(), rng.uniform(-0.5, 0.5, (3, 7)))
    v = rng.uniform(-0.1, 0.1, (3, 7))
    hull, tip = robot.frame_pose(target, "hull"), robot.frame_pose(target, "tip")[:, :3, 3]
    found = problem.solve(q, v, hull=hull, tip=tip, tolerance=1e-13)
    assert found.converged.all() and np.median(found.iterations) < 30

    def cost(u, row):
        def node(q, v, u):
            h = robot.centroidal_momentum(q, v)
            return 0.5e-2 * (u**2).sum(-1) + 0.5e-2 * (h**2).sum(-1)

        def end(q, v):
            T = robot.frame_pose(q, "hull")
            R = hull[row, :3, :3].T @ T[..., :3, :3]
            angle = np.arccos(np.clip((np.trace(R, axis1=-2, axis2=-1) - 1.0) / 2.0, -1.0, 1.0))
            miss = T[..., :3, 3] - hull[row, :3, 3]
            off = robot.frame_pose(q, "tip")[..., :3, 3] - tip[row]
            return 0.5 * (20.0 * angle**2 + 30.0 * (miss**2).sum(-1) + 50.0 * (off**2).sum(-1)
                          + 5.0 * (v**2).sum(-1))  # fmt: skip

        lead = u.shape[:-2]
        starts = np.broadcast_to(q[row], (*lead, 8)), np.broadcast_to(v[row], (*lead, 7))
        return total_cost(problem, node, end, tuple(starts), u)

    check_optimality(problem, found, cost)
    np.testing.assert_allclose(cost(found.u[1], 1), found.cost[1], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.q[..., 3:7], axis=-1), 1.0, atol=1e-12)


def test_conditions_of_optimality_of_an_embedded_loop():
    """The nodes satisfy the loop, and the gradient vanishes within the bounds."""
    problem, robot = robots.bar_problem(), robots.four_bar()
    q = robot.integrate(robot.neutral(), np.array([[0.0, 0.0], [0.4, 0.3]]))
    goal = robot.frame_pose(robot.integrate(q, [1.0, -0.8]), "tip")[:, :3, 3]
    v = np.array([[0.0, 0.0], [1.0, -1.0]])
    found = problem.solve(q, v, tip=goal, tolerance=1e-13, iterations=200)
    assert found.converged.all() and robot.nv == 2
    ends = [robot.frame_pose(found.q, name)[..., :3, 3] for name in ("first", "second")]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)

    def cost(u, row):
        def node(q, v, u):
            return 0.5e-3 * (u**2).sum(-1) + 0.5e-2 * (v**2).sum(-1)

        def end(q, v):
            miss = robot.frame_pose(q, "tip")[..., :3, 3] - goal[row]
            return 0.5e3 * (miss**2).sum(-1) + 0.5 * (v**2).sum(-1)

        lead = u.shape[:-2]
        start = np.broadcast_to(q[row], (*lead, robot.nq)), np.broadcast_to(v[row], (*lead, 2))
        return total_cost(problem, node, end, start, u)

    assert check_optimality(problem, found, cost), "no torque is at its bound"
    np.testing.assert_allclose(cost(found.u[1], 1), found.cost[1], rtol=1e-9)
    with pytest.raises(pp.StateError, match="embedded loops, are not implemented"):
        found.jvp(q=np.zeros(2))


def test_a_linear_problem_is_lqr():
    """A cart on a rail: the gains far from the end are those of the algebraic Riccati equation."""
    from scipy.linalg import solve_discrete_are

    builder = pp.Builder("cart")
    builder.body("cart", mass=2.0, com=(0, 0, 0), inertia=np.eye(3))
    builder.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    h, steps = 0.05, 300
    problem = pp.OptimalControl(
        builder.build(),
        dt=h,
        steps=steps,
        running=[pp.cost.posture(3.0, at=[0.0]), pp.cost.speed(0.5), pp.cost.torque(0.1)],
        torque=None,
    )
    found = problem.solve([1.0], [-0.3], tolerance=1e-12)
    A = np.array([[1.0, h], [0.0, 1.0]])
    B = np.array([[h * h / 2.0], [h / 2.0]])  # v1 = v + h u / m, q1 = q + h v1
    Q, R = h * np.diag([3.0, 0.5]), h * np.array([[0.1]])
    P = solve_discrete_are(A, B, Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    np.testing.assert_allclose(found.K[0], K, rtol=1e-9)
    x = np.array([1.0, -0.3])
    np.testing.assert_allclose(found.cost, 0.5 * x @ P @ x, rtol=1e-9)
    assert found.converged and found.iterations <= 3
    assert problem.bounds is None and not found.at_bounds.any()


def reach_for_ipopt(casadi):
    """The problem, its solution, and the costs of a node and of the end."""
    problem, (q0, v0, goals) = reach_problem(), reach_batch(1)
    found = problem.solve(q0[0], v0[0], tool=goals[0], tolerance=1e-13)
    pose, (torque, speed) = problem.robot.to_casadi("frame_pose", "tool"), RUNNING

    def node(q, v, u):
        return 0.5 * torque * casadi.sumsqr(u) + 0.5 * speed * casadi.sumsqr(v)

    def end(q, v):
        return 0.5e3 * casadi.sumsqr(pose(q)[:3, 3] - goals[0]) + 0.5 * casadi.sumsqr(v)

    return problem, found, node, end


def swing_for_ipopt(casadi):
    problem = robots.swing_problem()
    found = problem.solve([0.3, np.pi + 0.2], iterations=300, tolerance=1e-13)

    def node(q, v, u):
        weights = 0.5 * 0.02 * casadi.sumsqr(v) + 0.5 * 0.1 * casadi.sumsqr(q)
        return weights + 0.5 * 0.02 * casadi.sumsqr(u)

    def end(q, v):
        return 25.0 * q[0] ** 2 + 100.0 * q[1] ** 2 + 10.0 * casadi.sumsqr(v)

    return problem, found, node, end


def arm_for_ipopt(casadi):
    """A UR5 with 35 % of its torques reaches a point."""
    robot, weight = pp.load("ur5"), 0.3
    problem = pp.OptimalControl(
        robot,
        dt=0.04,
        steps=12,
        running=[pp.cost.torque(weight / robot.effort**2), pp.cost.speed(0.05)],
        final=[pp.cost.point("tool0", 1e3), pp.cost.speed(10.0)],
        torque=0.35 * robot.effort,
    )
    start = np.array([0.0, -1.2, 1.5, -1.8, -1.57, 0.0])
    end = start + np.array([0.7, 0.4, -0.6, 0.3, 0.2, 0.1])
    goal = robot.frame_pose(end, "tool0")[:3, 3]
    found = problem.solve(start, tool0=goal, tolerance=1e-13)
    pose, scale = robot.to_casadi("frame_pose", "tool0"), casadi.DM(weight / robot.effort**2)

    def node(q, v, u):
        return 0.5 * casadi.dot(scale, u**2) + 0.5 * 0.05 * casadi.sumsqr(v)

    def end_cost(q, v):
        return 0.5e3 * casadi.sumsqr(pose(q)[:3, 3] - goal) + 5.0 * casadi.sumsqr(v)

    assert found.at_bounds.any()
    return problem, found, node, end_cost


@pytest.mark.parametrize("make", [reach_for_ipopt, swing_for_ipopt, arm_for_ipopt])
def test_the_cost_is_that_of_ipopt(make):
    """Multiple shooting on the exported dynamics with exact Hessians, started near the solution."""
    casadi = pytest.importorskip("casadi")
    problem, found, node, end = make(casadi)
    start, guess = (found.q[0], found.v[0]), found
    assert found.converged
    fd, h, m = problem.robot.to_casadi("forward_dynamics"), problem.dt, len(problem.motors)
    opti = casadi.Opti()
    n = problem.robot.nv
    Q, V = opti.variable(n, problem.steps + 1), opti.variable(n, problem.steps + 1)
    U, J = opti.variable(m, problem.steps), 0.0
    opti.subject_to(Q[:, 0] == start[0])
    opti.subject_to(V[:, 0] == start[1])
    for k in range(problem.steps):
        tau = casadi.vertcat(U[:, k], casadi.DM.zeros(n - m))
        v1 = V[:, k] + h * fd(Q[:, k], V[:, k], tau)
        opti.subject_to(V[:, k + 1] == v1)
        opti.subject_to(Q[:, k + 1] == Q[:, k] + h * v1)
        J = J + h * node(Q[:, k], V[:, k], U[:, k])
    assert problem.bounds is not None
    low, high = (casadi.repmat(x, 1, problem.steps) for x in problem.bounds)
    opti.subject_to(opti.bounded(low, U, high))
    opti.minimize(J + end(Q[:, -1], V[:, -1]))
    opti.set_initial(Q, guess.q.T + 1e-3)
    opti.set_initial(V, guess.v.T)
    opti.set_initial(U, 0.9 * guess.u.T)
    options = {"print_level": 0, "sb": "yes", "tol": 1e-10}
    opti.solver("ipopt", {"print_time": False}, options)
    solution = opti.solve()
    np.testing.assert_allclose(found.cost, solution.value(opti.f), rtol=1e-6)
    scale = np.abs(found.u).max()
    np.testing.assert_allclose(found.u.T.squeeze(), solution.value(U), atol=1e-3 * scale)


def test_same_bits_alone_in_batches_reversed_and_gathered():
    problem, (q, v, goal) = reach_problem(), reach_batch(24)
    every = problem.solve(q, v, tool=goal)
    for index in (np.arange(24)[::-1], np.array([3]), np.arange(8), np.array([20, 1, 7])):
        some = problem.solve(q[index], v[index], tool=goal[index])
        for name in ("q", "v", "u", "k", "K", "cost", "iterations", "residual"):
            assert np.array_equal(getattr(some, name), getattr(every, name)[index]), name
    alone = problem.solve(q[5], v[5], tool=goal[5])
    assert np.array_equal(alone.u, every.u[5]) and alone.cost == every.cost[5]
    part = every.element(5)
    assert np.array_equal(part.u, alone.u) and part.batch == () and part.goals["tool"].ndim == 2
    assert part.costs["torque"] == every.costs["torque"][5]
    swing = robots.swing_problem()
    starts = np.array([0.0, np.pi]) + np.linspace(-0.4, 0.4, 9)[:, None]
    together = swing.solve(starts, iterations=300)
    assert together.converged.all() and np.ptp(together.iterations) > 3
    for row in (0, 4, 8):
        assert np.array_equal(swing.solve(starts[row], iterations=300).u, together.u[row])


def test_batches_of_goals_and_guesses_broadcast():
    problem, (q, v, goal) = reach_problem(), reach_batch(3)
    found = problem.solve(q[:, None], v[0], tool=goal)
    assert found.batch == (3, 3)
    assert np.array_equal(found.u[1, 2], problem.solve(q[1], v[0], tool=goal[2]).u)
    moved = problem.solve(q[0], tool=goal[0], torques=np.zeros((20, 2)))
    np.testing.assert_allclose(moved.cost, problem.solve(q[0], tool=goal[0]).cost, rtol=1e-6)
    empty = problem.solve(np.zeros((0, 2)), tool=goal[0])
    assert empty.batch == (0,) and empty.u.shape == (0, 20, 2)


def test_goals_along_the_motion():
    """A goal with a row for each node is that of its node; constant rows are a constant goal."""
    robot = robots.pelican()
    costs = [pp.cost.torque(1e-2), pp.cost.posture(5.0, along=True)]
    problem = pp.OptimalControl(
        robot, 0.02, 20, running=costs, final=[pp.cost.posture(1.0, along=True)]
    )
    fixed = pp.OptimalControl(
        robot, 0.02, 20, running=[pp.cost.torque(1e-2), pp.cost.posture(5.0, at=[0.3, 0.2])],
        final=[pp.cost.posture(1.0, at=[0.3, 0.2])],
    )  # fmt: skip
    rows = np.tile([0.3, 0.2], (21, 1))
    assert np.array_equal(problem.solve([0, 0], posture=rows).u, fixed.solve([0, 0]).u)
    slow = 0.3 * np.linspace(0.0, 1.0, 21)[:, None] ** 2 * np.ones(2)
    tracked = problem.solve([0, 0], posture=slow)
    nodes = np.r_[problem.dt * 5.0 * np.ones(20), 1.0]
    by_hand = 0.5 * nodes @ ((tracked.q - slow) ** 2).sum(-1)
    found = tracked.costs["posture"] + tracked.costs["final posture"]
    np.testing.assert_allclose(found, by_hand, rtol=1e-9)


def test_free_parameters_are_inputs():
    """Solutions with parameters are those of the robots that have these parameters."""
    light = robots.pelican().free("mass")
    costs = [pp.cost.torque(1e-2), pp.cost.center_of_mass(1.0, at=[0, 0, -0.3])]
    problem = pp.OptimalControl(light, 0.02, 15, running=costs)
    parameters = light.parameters() * np.array([[1.0], [1.3]])
    found = problem.solve([0.4, 0.2], parameters=parameters)
    assert found.batch == (2,) and found.converged.all()
    bound = pp.OptimalControl(light.at(parameters[0]), 0.02, 15, running=costs)
    np.testing.assert_array_equal(bound.solve([0.4, 0.2]).u, found.u[0])
    with pytest.raises(pp.StateError, match="parameters= is missing"):
        problem.solve([0.4, 0.2])
    heavier = found.element(1)
    q, v = light.at(parameters[1]).step(
        heavier.q[:-1], heavier.v[:-1], heavier.tau, 0.02, method="euler"
    )
    np.testing.assert_allclose(q, heavier.q[1:], atol=1e-12)
    np.testing.assert_allclose(v, heavier.v[1:], atol=1e-12)
    c = light.at(parameters[1]).center_of_mass(heavier.q[:-1]) - [0, 0, -0.3]
    by_hand = 0.5 * 0.02 * (c**2).sum()
    np.testing.assert_allclose(heavier.costs["center_of_mass"], by_hand, rtol=1e-9)
    assert np.abs(found.u[1] - found.u[0]).max() > 1e-3


def test_gaps_close():
    """From a guess of the states that is no motion, to a motion of the same cost."""
    problem = robots.swing_problem()
    q0 = np.array([[0.3, np.pi + 0.2], [0.0, np.pi - 0.2]])
    s = np.linspace(0.0, 1.0, 51)[:, None]
    states = q0[:, None] * (1.0 - s), np.zeros((2, 51, 2))
    found = problem.solve(q0, states=states, iterations=200)
    assert found.converged.all() and (found.gap < 1e-8).all()
    q1, v1 = problem.robot.step(found.q[:, :-1], found.v[:, :-1], found.tau, 0.05, method="euler")
    np.testing.assert_allclose(q1, found.q[:, 1:], atol=1e-8)
    np.testing.assert_allclose(v1, found.v[:, 1:], atol=1e-8)
    alone = problem.solve(q0[1], states=(states[0][1], states[1][1]), iterations=200)
    assert np.array_equal(alone.u, found.u[1])
    floating, robot = robots.turn_problem(), robots.satellite()
    start = robot.integrate(robot.neutral(), 0.4 * np.ones(7))
    T = robot.frame_pose(robot.neutral(), "hull")
    goals = {"hull": T, "tip": robot.frame_pose(robot.neutral(), "tip")[:3, 3]}
    away = robot.difference(robot.neutral(), start)
    line = robot.integrate(robot.neutral(), np.linspace(1.0, 0.0, 21)[:, None] * away)
    found = floating.solve(start, states=(line, np.zeros((21, 7))), **goals)
    rolled = floating.solve(start, **goals)
    assert found.converged and found.gap < 1e-8
    np.testing.assert_allclose(found.cost, rolled.cost, rtol=1e-5)


def test_a_warm_start_goes_on():
    problem, (q, v, goal) = reach_problem(), reach_batch(5)
    first = problem.solve(q, v, tool=goal, iterations=2)
    assert not first.converged.any() and (first.iterations == 2).all()
    more = problem.solve(q, v, tool=goal, near=first)
    whole = problem.solve(q, v, tool=goal)
    np.testing.assert_allclose(more.cost, whole.cost, rtol=1e-6)
    assert more.converged.all() and (more.iterations <= whole.iterations).all()
    again = problem.solve(q, v, tool=goal, near=more)
    assert (again.iterations <= 2).all()
    late = problem.solve(more.q[:, 4], more.v[:, 4], tool=goal, near=more, shift=4, iterations=0)
    np.testing.assert_allclose(late.q[:, :17], more.q[:, 4:], atol=1e-12)


def test_the_controller_follows_the_motion():
    problem, (q, v, goal) = reach_problem(), reach_batch(4)
    found = problem.solve(q, v, tool=goal)
    control = found.controller()
    motion = pp.simulate(
        problem.robot, q, v, tau=control, duration=0.4, dt=0.02, method="euler", hold=True
    )
    np.testing.assert_allclose(motion.q, found.q, atol=1e-12)
    assert problem.bounds is not None
    low, high = problem.bounds
    first = found.element(0)
    pushed = pp.simulate(problem.robot, q[0] + 0.02, v[0], tau=first.controller(), dt=0.02,
                         duration=0.4, method="euler")  # fmt: skip
    assert (pushed.tau <= high).all() and (pushed.tau >= low).all()
    open_loop = pp.simulate(problem.robot, q[0] + 0.02, v[0], tau=found.tau[0], dt=0.02,
                            duration=0.4, method="euler")  # fmt: skip
    tool = [problem.robot.frame_pose(x.q[-1], "tool")[:3, 3] for x in (pushed, open_loop)]
    errors = [np.linalg.norm(x - goal[0]) for x in tool]
    assert errors[0] < 0.5 * errors[1], "feedback reduces the error"
    compiled = pp.rollout(problem.robot, q, v, tau=control, steps=20, dt=0.02, method="euler")
    np.testing.assert_allclose(compiled[0], found.q, atol=1e-9)
    assert np.asarray(found.trajectory.tau).shape == (4, 21, 2)
    assert "torques at a bound" in found.summary() and "4 of 4 converged" in repr(found)


def test_nothing_is_traced_if_the_kernels_exist(monkeypatch):
    made, (q, v, goal) = reach_problem(), reach_batch(2)
    found = made.solve(q, v, tool=goal)

    def refuse(*arguments):
        raise AssertionError("traced again")

    monkeypatch.setattr(control_blocks, "trace", refuse)
    again = reach_problem.__wrapped__().solve(q, v, tool=goal)
    assert np.array_equal(again.u, found.u)
