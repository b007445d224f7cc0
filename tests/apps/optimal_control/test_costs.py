"""Costs: their values by formulas written here, their slopes by differences of these values."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.optimal_control.cost_terms import Variables, bind_cost, slopes
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from tests.apps.optimal_control import robots


def rotation_vector(R: np.ndarray) -> np.ndarray:
    angle = np.arccos(np.clip((np.trace(R) - 1.0) / 2.0, -1.0, 1.0))
    w = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return w * (angle / (2.0 * np.sin(angle)) if angle > 1e-8 else 0.5)


def user_rows(q, v, u):
    return [q[0] * np.sin(q[7]), v[1] * u[2] + np.maximum(u[0], 0.1), np.exp(-v[6])]


def cases(robot, rng):
    """(cost, rows(q, v, u) with their weights, goal numbers)."""
    far = robot.random(rng)
    T = robot.frame_pose(far, "tip")
    d = rng.standard_normal(3)
    d /= np.linalg.norm(d)
    axis, w7 = np.array([0.0, 0.6, 0.8]), rng.uniform(0.5, 2.0, 7)

    def placed(q):
        return robot.frame_pose(q, "tip")

    def pose_rows(q, v, u):
        now = placed(q)
        turn = rotation_vector(T[:3, :3] @ now[:3, :3].T)
        return np.r_[np.sqrt(3.0) * turn, np.sqrt(5.0) * (now[:3, 3] - T[:3, 3])]

    def direction_rows(q, v, u):
        return [2.0 * np.arccos(np.clip(placed(q)[:3, :3] @ axis @ d, -1.0, 1.0))]

    def momentum_rows(q, v, u):
        return 0.5 * robot.centroidal_momentum(q, v)

    p = pp.cost
    flat = T[:3, :4].reshape(-1)
    return [
        (p.posture(w7, at=far), lambda q, v, u: np.sqrt(w7) * robot.difference(far, q), far),
        (p.speed(2.0), lambda q, v, u: np.sqrt(2.0) * v, np.zeros(7)),
        (p.torque(3.0), lambda q, v, u: np.sqrt(3.0) * u, np.zeros(7)),
        (p.point("tip", 4.0), lambda q, v, u: 2.0 * (placed(q)[:3, 3] - d), d),
        (p.pose("tip", (3.0, 5.0)), pose_rows, flat),
        (p.orientation("tip", 3.0), lambda *x: pose_rows(*x)[:3], flat),
        (p.pose("tip", (0.0, 5.0)), lambda *x: pose_rows(*x)[3:], flat),
        (p.direction("tip", axis, 4.0), direction_rows, d),
        (p.center_of_mass(9.0), lambda q, v, u: 3.0 * (robot.center_of_mass(q) - d), d),
        (p.momentum(0.25), momentum_rows, np.zeros(6)),
        (p.of(user_rows, 4.0), lambda q, v, u: 2.0 * np.array(user_rows(q, v, u)), []),
    ]


def traced(robot, term):
    """A function of the state, the goal and the weights: value, gradient, Gauss-Newton Hessian."""
    tape = Tape()
    sizes = robot.nq, robot.nv, term.motor_count, term.goal_size, len(term.kept)
    q, v, u, goal, weights = (
        np.array([tape.leaf(str(i), j) for j in range(n)], object) for i, n in enumerate(sizes)
    )
    found = slopes(robot, [term], Variables(q, v, u), list(goal), list(weights))
    H = np.block(
        [[np.array(found.xx), np.array(found.ux).T], [np.array(found.ux), np.array(found.uu)]]
    )
    every = [found.value, *found.x, *found.u, *H.ravel()]
    nodes = [tape.operand(x) for x in every]

    def call(*values):
        row = evaluate(tape, nodes, lambda place, j: float(values[int(place)][j]))
        n = len(found.x) + len(found.u)
        return row[0], np.array(row[1 : 1 + n]), np.array(row[1 + n :]).reshape(n, n)

    return call


def test_values_and_slopes_of_every_cost(rng):
    robot = robots.satellite()
    n, step = robot.nv, 1e-6
    kinds = set()
    for cost, rows, goal in cases(robot, rng):
        kinds.add(cost.kind)
        term = bind_cost(cost, robot, n)
        call = traced(robot, term)
        q = robot.random(rng)
        v, u = rng.standard_normal((2, n))
        value, gradient, hessian = call(q, v, u, goal, term.weights)
        r = np.asarray(rows(q, v, u), float)
        np.testing.assert_allclose(value, 0.5 * r @ r, rtol=1e-9, err_msg=cost.kind)
        J = []
        for k in range(3 * n):
            change = step * np.eye(3 * n)[k]
            ahead, behind = (
                np.asarray(
                    rows(
                        robot.integrate(q, sign * change[:n]),
                        v + sign * change[n : 2 * n],
                        u + sign * change[2 * n :],
                    ),
                    float,
                )
                for sign in (1.0, -1.0)
            )
            J.append((ahead - behind) / (2.0 * step))
        J = np.array(J)
        scale = 1.0 + np.abs(J).max() * (1.0 + np.abs(r).max())
        np.testing.assert_allclose(gradient, J @ r, atol=1e-7 * scale, err_msg=cost.kind)
        if cost.kind not in ("direction", "pose", "orientation"):  # other rows of the same length
            np.testing.assert_allclose(hessian, J @ J.T, atol=1e-6 * scale, err_msg=cost.kind)
        assert (np.linalg.eigvalsh(hessian) > -1e-9 * scale).all()
    assert kinds >= {"posture", "speed", "torque", "point", "orientation", "momentum", "of"}


def test_slopes_are_finite_where_the_goal_is_met(rng):
    robot = robots.satellite()
    q = robot.random(rng)
    T, rest = robot.frame_pose(q, "tip"), np.zeros(robot.nv)
    flat, z = T[:3].reshape(-1), T[:3, 2]
    for cost, goal in (
        (pp.cost.pose("tip", 1.0), flat),
        (pp.cost.posture(1.0), q),
        (pp.cost.direction("tip", (0, 0, 1), 1.0), z),
        (pp.cost.point("tip", 1.0), T[:3, 3]),
    ):
        term = bind_cost(cost, robot, robot.nv)
        value, gradient, hessian = traced(robot, term)(q, rest, rest, goal, term.weights)
        assert value < 1e-20 and np.abs(gradient).max() < 1e-9
        rank = {"pose": 6, "posture": 7, "direction": 2, "point": 3}[cost.kind]
        assert np.linalg.matrix_rank(hessian, tol=1e-6) == rank


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pp.cost.torque(-1.0), "expected numbers of at least 0"),
        (lambda: pp.cost.torque(np.nan), "expected numbers of at least 0"),
        (lambda: pp.cost.torque(0.0), "leave the cost out"),
        (lambda: pp.cost.direction("tip", (0, 0, 0), 1.0), "expected one axis"),
        (lambda: pp.cost.point("tip", 1.0, at=[0, 0, 0], along=True), "along=True"),
        (lambda: pp.cost.of(3.0), "function of (q, v, u)"),  # type: ignore[arg-type]
        (lambda: pp.cost.posture(1.0, name=""), "expected text"),
        (lambda: pp.cost.speed(1.0, at=[0.0, 0.0], along=True), "along=True"),
        (lambda: pp.cost.torque(True), "expected numbers of at least 0"),
        (lambda: pp.cost.point(3, 1.0), "the frame of pp.cost.point is 3"),  # type: ignore[arg-type]
    ],
)
def test_costs_that_make_no_sense(make, words):
    with pytest.raises(pp.StateError) as error:
        make()
    assert words in str(error.value)
