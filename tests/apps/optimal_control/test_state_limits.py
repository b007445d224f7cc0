"""Limits of positions and speeds: kept, at the cost that Ipopt finds with the same limits."""

from functools import cache

import numpy as np
import pytest

import psiphi as pp
from tests.apps.optimal_control.robots import RUNNING, pelican, reach_batch, reach_problem

SPEED = 1.0


def limited(**options) -> pp.OptimalControl:
    base = reach_problem()
    return pp.OptimalControl(
        options.pop("robot", pelican()),
        base.dt,
        base.steps,
        running=[term.cost for term in base.running],
        final=[term.cost for term in base.final],
        torque=[4.0, 0.5],
        **options,
    )


@cache
def slow_problem() -> pp.OptimalControl:
    return limited(speed=SPEED)

    """Limits of positions that some reaches pass without them."""
    builder = pp.Builder.of(pelican()) if hasattr(pp.Builder, "of") else None
    assert builder is None
    robot = pelican()
    return limited(robot=robot, limits=None, speed=[SPEED, np.inf])


def test_kept_limits_are_kept():
    (q, v, goal), free = reach_batch(12), reach_problem()
    slow = slow_problem()
    before = free.solve(q, v, tool=goal)
    assert (np.abs(before.v).max((-1, -2)) > SPEED).sum() >= 4, "the limit acts in some problems"
    found = slow.solve(q, v, tool=goal, iterations=200)
    good = found.converged
    assert good.sum() >= 11, "one problem has most torques at their bounds"
    assert found.violation[good].max() < 1e-6 and np.abs(found.v[good]).max() < SPEED + 1e-6
    assert (found.cost >= before.cost * (1.0 - 1e-6)).all()
    inactive = np.abs(before.v).max((-1, -2)) < SPEED
    np.testing.assert_allclose(found.cost[inactive], before.cost[inactive], rtol=1e-6)
    assert found.multipliers.shape == (12, 21, 4) and (found.multipliers >= 0.0).all()
    at_limit = np.abs(found.v) > SPEED - 1e-4
    assert not found.multipliers.max((-1, -2))[~at_limit.any((-1, -2))].any()
    assert slow.limit_names[1] == "shoulder speed < 1" and "kept" in slow.explain()
    row = int(np.argmax(before.cost - found.cost))
    alone = slow.solve(q[row], v[row], tool=goal[row], iterations=200)
    assert np.array_equal(alone.u, found.u[row])
    again = slow.solve(q, v, tool=goal, near=found)
    np.testing.assert_allclose(again.cost[good], found.cost[good], rtol=1e-5)
    assert np.median(again.iterations) <= 3


def test_the_limited_cost_is_that_of_ipopt():
    casadi = pytest.importorskip("casadi")
    (q, v, goal), slow = reach_batch(12), slow_problem()
    free = reach_problem().solve(q, v, tool=goal)
    row = int(np.argmax(np.abs(free.v).max((-1, -2))))
    found = slow.solve(q[row], v[row], tool=goal[row], iterations=300, tolerance=1e-10)
    fd, pose = (slow.robot.to_casadi(*x) for x in (("forward_dynamics",), ("frame_pose", "tool")))
    N, h, (torque, speed) = slow.steps, slow.dt, RUNNING
    opti = casadi.Opti()
    Q, V, U = opti.variable(2, N + 1), opti.variable(2, N + 1), opti.variable(2, N)
    opti.subject_to(Q[:, 0] == q[row])
    opti.subject_to(V[:, 0] == v[row])
    J = 0.5e3 * casadi.sumsqr(pose(Q[:, N])[:3, 3] - goal[row]) + 0.5 * casadi.sumsqr(V[:, N])
    for k in range(N):
        v1 = V[:, k] + h * fd(Q[:, k], V[:, k], U[:, k])
        opti.subject_to(V[:, k + 1] == v1)
        opti.subject_to(Q[:, k + 1] == Q[:, k] + h * v1)
        J = J + h * 0.5 * (torque * casadi.sumsqr(U[:, k]) + speed * casadi.sumsqr(V[:, k]))
    bound = casadi.repmat(casadi.DM([4.0, 0.5]), 1, N)
    opti.subject_to(opti.bounded(-bound, U, bound))
    opti.subject_to(opti.bounded(-SPEED, casadi.vec(V[:, 1:]), SPEED))
    opti.minimize(J)
    opti.set_initial(V, 0.5 * found.v.T)
    opti.set_initial(Q, found.q.T)
    options = {"print_level": 0, "sb": "yes", "tol": 1e-10}
    opti.solver("ipopt", {"print_time": False}, options)
    solution = opti.solve()
    assert found.converged and np.abs(found.v).max() > SPEED - 1e-4
    np.testing.assert_allclose(found.cost, solution.value(opti.f), rtol=1e-4)
    np.testing.assert_allclose(found.v.T, solution.value(V), atol=1e-3)


def test_limits_of_positions_are_those_of_the_joints():
    builder = pp.Builder("cart")
    builder.body("cart", mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    builder.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), lower=-0.2, upper=0.5)
    options = {
        "dt": 0.05,
        "steps": 30,
        "running": [pp.cost.torque(1e-3), pp.cost.posture(1.0, at=[0.8])],
        "torque": None,
    }
    robot = builder.build()
    free = pp.OptimalControl(robot, **options).solve([0.0])
    kept = pp.OptimalControl(robot, limits="kept", **options).solve([0.0], iterations=200)
    soft = pp.OptimalControl(robot, limits="soft", limit_weight=10.0, **options).solve([0.0])
    assert free.q.max() > 0.7 and kept.q.max() < 0.5 + 1e-6 and kept.converged
    assert 0.5 < soft.q.max() < 0.7 and soft.converged and soft.violation > 1e-3
    assert free.cost < kept.cost
    for weight in (1e-2, 1e6):  # the first penalty; it grows as far as the costs ask for
        other = pp.OptimalControl(robot, limits="kept", limit_weight=weight, **options)
        found = other.solve([0.0], iterations=200)
        assert found.converged and found.violation < 1e-6
        np.testing.assert_allclose(found.cost, kept.cost, rtol=1e-5)
