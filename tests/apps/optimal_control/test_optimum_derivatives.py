"""Derivatives of optimal motions, beside differences of two solutions."""

from functools import cache

import numpy as np
import pytest

import psiphi as pp
from tests.apps.optimal_control import robots
from tests.apps.optimal_control.robots import pelican, reach_batch, reach_problem
from tests.apps.optimal_control.test_state_limits import slow_problem

STEP, TIGHT = 1e-5, 1e-13


def differences(solve, name, value, change, step=STEP):
    """(q, v, u) by central differences of re-solved optima."""
    ahead, behind = (solve(**{name: value + sign * step * change}) for sign in (1.0, -1.0))
    assert ahead.converged.all() and behind.converged.all()
    return {x: (getattr(ahead, x) - getattr(behind, x)) / (2.0 * step) for x in "qvu"}


@cache
def posed_problem() -> pp.OptimalControl:
    """Goals of every kind, parameters, a cost that is not linear in the state."""
    robot = pelican().free("mass")
    return pp.OptimalControl(
        robot,
        dt=0.03,
        steps=12,
        running=[
            pp.cost.torque(1e-2),
            pp.cost.posture(2.0, along=True),
            pp.cost.center_of_mass(20.0),
            pp.cost.of(lambda q, v, u: [np.sin(q[0]) * v[1]], 0.3),
        ],
        final=[pp.cost.pose("tool", (10.0, 100.0)), pp.cost.speed(0.5, at=None)],
        torque=[2.0, 0.5],
    )


def inputs():
    robot, rng = pelican(), np.random.default_rng(3)
    q = np.array([0.3, -0.2])
    values = {
        "q": q,
        "v": np.array([0.2, 0.1]),
        "posture": q + 0.2 * rng.standard_normal((13, 2)),
        "center_of_mass": robot.center_of_mass(q + 0.3),
        "tool": robot.frame_pose(q + np.array([0.5, 0.4]), "tool"),
        "speed": np.array([0.1, -0.1]),
        "parameters": robot.free("mass").parameters(),
    }
    changes = {name: rng.standard_normal(x.shape) for name, x in values.items()}
    twist = rng.standard_normal(3)
    R = values["tool"][:3, :3]
    changes["tool"][:3, :3] = np.cross(np.eye(3), twist) @ R
    changes["tool"][3] = 0.0
    return values, changes


def test_jvp_and_vjp_are_those_of_differences():
    problem, (values, changes) = posed_problem(), inputs()

    def solve(**changed):
        given = values | changed
        q, v = given.pop("q"), given.pop("v")
        if "tool" in changed:
            U, _, V = np.linalg.svd(changed["tool"][:3, :3])
            given["tool"][:3, :3] = U @ V
        return problem.solve(q, v, tolerance=TIGHT, iterations=300, **given)

    found = solve()
    assert found.converged and found.at_bounds.any() and not found.at_bounds.all()
    rng = np.random.default_rng(4)
    weights = {x: rng.standard_normal(getattr(found, x).shape) for x in "qvu"}
    gradients = found.vjp(**weights)
    assert set(gradients) == set(values)
    for name, change in changes.items():
        expected = differences(solve, name, values[name], change)
        derivative = found.jvp(**{name: change})
        for x in "qvu":
            scale = np.abs(expected[x]).max() + 1e-3
            np.testing.assert_allclose(derivative[x], expected[x], atol=1e-4 * scale, err_msg=name)
        total = sum((weights[x] * expected[x]).sum() for x in "qvu")
        assert gradients[name].shape == values[name].shape
        by_gradient = (gradients[name] * change).sum()
        forward = sum((weights[x] * derivative[x]).sum() for x in "qvu")
        np.testing.assert_allclose(by_gradient, forward, rtol=1e-8, atol=1e-8, err_msg=name)
        np.testing.assert_allclose(by_gradient, total, rtol=1e-3, atol=1e-3, err_msg=name)
        assert not derivative["u"][found.at_bounds].any()


def test_batches_and_a_swing_up():
    """Derivatives with the curvature of the dynamics, of each problem of a batch."""
    problem, (q, v, goal) = reach_problem(), reach_batch(4)
    found = problem.solve(q, v, tool=goal, tolerance=TIGHT)
    weights = np.random.default_rng(0).standard_normal(found.u.shape)
    every = found.vjp(u=weights)
    alone = found.element(2).vjp(u=weights[2])
    assert every["tool"].shape == (4, 3) and every["q"].shape == (4, 2)
    for name, gradient in alone.items():
        np.testing.assert_allclose(gradient, every[name][2], rtol=1e-9, atol=1e-12)
    swing = robots.swing_problem()

    def solve(q):
        return swing.solve(q, near=best, tolerance=TIGHT, iterations=300)

    best = swing.solve([0.3, np.pi + 0.2], iterations=300, tolerance=TIGHT)
    change = np.array([0.3, -0.5])
    expected = differences(solve, "q", np.array([0.3, np.pi + 0.2]), change, 3e-4)
    derivative = best.jvp(q=change)
    scale = np.abs(expected["u"]).max()
    np.testing.assert_allclose(derivative["u"], expected["u"], atol=1e-4 * scale)
    dx = np.concatenate([derivative["q"], derivative["v"]], axis=-1)[:-1]
    approximate = np.einsum("kij,kj->ki", best.K, dx)
    assert np.abs(approximate - expected["u"]).max() > 0.05 * scale, "K is Gauss-Newton's"


def test_what_has_no_derivative():
    problem, (q, v, goal) = reach_problem(), reach_batch(3)
    early = problem.solve(q, v, tool=goal, iterations=1)
    with pytest.raises(pp.StateError, match="has not converged"):
        early.vjp(u=1.0)
    found = problem.solve(q, v, tool=goal)
    for call, words in (
        (lambda: found.jvp(tol=goal), "'tol' is no input"),
        (lambda: found.vjp(k=1.0), "'k' is no result"),
        (lambda: found.jvp(q=np.zeros(3)), "expected (..., 2)"),
        (lambda: found.jvp(q=np.zeros((2, 2))), "the motions (3,)"),
    ):
        with pytest.raises(pp.StateError) as error:
            call()
        assert words in str(error.value)
    fast = np.array([v[0], [1e160, 0.0], v[2]])
    partly = problem.solve(q, fast, tool=goal)
    gradient = partly.vjp(u=np.ones(partly.u.shape))["tool"]
    assert np.isnan(gradient[1]).all() and np.isfinite(gradient[[0, 2]]).all()
    turn, robot = robots.turn_problem(), robots.satellite()
    T, tip = robot.frame_pose(robot.neutral(), "hull"), robot.frame_pose(robot.neutral(), "tip")
    with pytest.raises(pp.StateError, match="quaternions"):
        turn.solve(robot.neutral(), hull=T, tip=tip[:3, 3]).vjp()


@cache
def cart(limits: str) -> pp.OptimalControl:
    """A cart that wants to pass the end of its rail."""
    builder = pp.Builder("cart")
    builder.body("cart", mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    builder.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), lower=-0.2, upper=0.5)
    return pp.OptimalControl(
        builder.build(),
        dt=0.05,
        steps=30,
        running=[pp.cost.torque(1e-3), pp.cost.posture(1.0)],
        torque=6.0,
        limits=limits,
        limit_weight=10.0,
    )


def same_set(a, b):
    """Whether the same torques are at their bounds and the same limits act: elsewhere derivatives
    are one-sided."""
    index, sign, bound = (np.array(x) for x in zip(*a.problem.limits, strict=True))

    def acts(motion):
        state = np.concatenate([motion.q, motion.v], axis=-1)[..., index.astype(int)]
        beyond = sign * (state - bound) > 0.0
        return motion.multipliers > 0.0 if a.problem.limit_kind == "kept" else beyond

    return ((a.at_bounds == b.at_bounds).all((-1, -2))) & (acts(a) == acts(b)).all((-1, -2))


@pytest.mark.parametrize("make", [slow_problem, lambda: cart("kept"), lambda: cart("soft")])
def test_derivatives_with_limits_that_act(make):
    """Of motions with limits and torques at their bounds: what a multiplier holds stays there.

    Differences have the noise of two solutions: the best of three steps counts."""
    problem, rng = make(), np.random.default_rng(6)
    if problem.robot.nv == 2:
        q, v, tool = (x[[0, 1, *range(3, 12)]] for x in reach_batch(12))  # that all converge
        values = {"q": q, "v": v, "tool": tool}
    else:
        q, v = rng.uniform(-0.1, 0.1, (6, 1)), rng.uniform(-0.5, 0.5, (6, 1))
        values = {"q": q, "v": v, "posture": rng.uniform(0.7, 0.9, (6, 1))}

    def solve(**changed):
        given = values | changed
        q, v = given.pop("q"), given.pop("v")
        return problem.solve(q, v, tolerance=TIGHT, iterations=500, **given)

    found = solve()
    kept = problem.limit_kind == "kept"
    acts = found.multipliers.max((-1, -2)) > 0.0 if kept else found.violation > 0.0
    assert found.converged.all() and found.at_bounds.any() and acts.sum() >= 3
    weights = {x: rng.standard_normal(getattr(found, x).shape) for x in "qvu"}
    gradients = found.vjp(**weights)
    for name, value in values.items():
        change = rng.standard_normal(value.shape)
        change[:, 1:2] *= name != "tool"  # out of the plane of the robot
        derivative, best = found.jvp(**{name: change}), np.full(len(q), np.inf)
        total = sum((weights[x] * derivative[x]).sum((-1, -2)) for x in "qvu")
        by_gradient = (gradients[name] * change).sum(-1)
        np.testing.assert_allclose(by_gradient, total, rtol=1e-6, atol=1e-6)
        for step in (1e-3, 1e-4, 1e-5) if problem.robot.nv == 2 else (1e-4,):
            ahead, behind = (solve(**{name: value + sign * step * change}) for sign in (1.0, -1.0))
            same = same_set(found, ahead) & same_set(found, behind)
            error = np.zeros(len(q))
            for x in "qvu":
                expected = (getattr(ahead, x) - getattr(behind, x)) / (2.0 * step)
                scale = np.abs(expected).max((-1, -2)) + 1e-2
                error = np.maximum(error, np.abs(derivative[x] - expected).max((-1, -2)) / scale)
            best = np.where(same, np.minimum(best, error), best)
        checked = np.isfinite(best)
        assert (checked & acts).sum() >= 3 and best[checked].max() < 1e-4, name
