"""Contacts that hold by a schedule, beside dense equations with Pinocchio's Jacobians."""

import runpy

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.optimal_control import control_blocks
from tests.apps.optimal_control import robots
from tests.apps.optimal_control.robots import hop_problem, hopper, monopod, stand_problem, standing
from tests.apps.optimal_control.test_solutions import gradient
from tests.pages import ROOT

MU = 0.2
FORWARD = np.array([0.3, 0.0, 0.0, 0.0])


def pinocchio_step(problem, q, v, u, held):
    """(v1, forces of the held rows): M (v1 - v) / h + bias = S u + J* f, J (v1) + h/2 dJ/dt v = 0,
    in Pinocchio's terms; `held`: {contact: rows of its velocity, linear first}."""
    pin = pytest.importorskip("pinocchio")
    from psiphi_bench.peers.pinocchio_peer import pinocchio_model

    robot, h = problem.robot, problem.dt
    model, layout = pinocchio_model(robot.model), None
    data, layout = model.createData(), pp.interop.pinocchio(robot, model)
    tau = np.zeros(robot.nv)
    tau[list(problem.motors)] = u
    Q, V, TAU = layout.to_q(q), layout.to_v(v), layout.to_tau(tau)
    M = pin.crba(model, data, Q)
    M = np.triu(M) + np.triu(M, 1).T
    bias = pin.nonLinearEffects(model, data, Q, V)
    pin.computeJointJacobians(model, data, Q)
    pin.forwardKinematics(model, data, Q, V, 0.0 * V)
    pin.updateFramePlacements(model, data)
    world, J, drift = pin.LOCAL_WORLD_ALIGNED, [], []
    for name, rows in held.items():
        frame = model.getFrameId(name)
        J.append(pin.getFrameJacobian(model, data, frame, world)[rows])
        drift.append(pin.getFrameClassicalAcceleration(model, data, frame, world).vector[rows])
    J, drift, n = np.concatenate(J), np.concatenate(drift), robot.nv
    zero = np.zeros((len(J), len(J)))
    A = np.block([[M / h, -J.T], [J, zero]])
    b = np.concatenate([M @ V / h + TAU - bias, -0.5 * h * drift])
    x = np.linalg.lstsq(A, b, rcond=1e-13)[0]
    return layout.from_v(x[:n]), x[n:]


def dense_step(problem, q, v, u, holds, rows):
    """(q1, v1, f) of a batch of states, f (..., contacts, 6); `rows` of each contact, angular
    first."""
    robot, h, n = problem.robot, problem.dt, problem.robot.nv
    tau = np.zeros((*u.shape[:-1], n))
    tau[..., list(problem.motors)] = u
    M, bias = robot.mass_matrix(q), robot.bias(q, v)
    J = [robot.jacobian(q, name)[..., r, :] for name, r in rows.items()]
    drift = [robot.frame_acceleration(q, v, 0.0 * v, name)[..., r] for name, r in rows.items()]
    counts = [len(r) for r in rows.values()]
    held = np.repeat(holds, counts)
    J = np.concatenate(J, axis=-2) * held[:, None]
    free = v + h * np.linalg.solve(M, (tau - bias)[..., None])[..., 0]
    MJ = np.linalg.solve(M, np.swapaxes(J, -1, -2))
    c = np.einsum("...ij,...j->...i", J, free) + 0.5 * h * held * np.concatenate(drift, axis=-1)
    impulse = -np.einsum("...ij,...j->...i", np.linalg.pinv(J @ MJ, 1e-8), c)
    v1 = free + np.einsum("...ij,...j->...i", MJ, impulse)
    f = np.zeros((*u.shape[:-1], len(rows), 6))
    parts = np.split(impulse / h, np.cumsum(counts)[:-1], axis=-1)
    for i, (r, part) in enumerate(zip(rows.values(), parts, strict=True)):
        f[..., i, r] = part
    return robot.integrate(q, h * v1), v1, f


def total_cost(problem, node, end, start, u, schedule, rows):
    (q, v), total = start, 0.0
    for k in range(problem.steps):
        q1, v1, f = dense_step(problem, q, v, u[..., k, :], schedule[k], rows)
        total = total + problem.dt * node(q, v, u[..., k, :], f, schedule[k])
        q, v = q1, v1
    return total + end(q, v)


def cone_cost(f, mu):
    """Of a pyramid within the cone."""
    rows = [s * f[..., i] - mu / np.sqrt(2.0) * f[..., 5] for i in (3, 4) for s in (1.0, -1.0)]
    return 0.5 * sum(np.maximum(row, 0.0) ** 2 for row in rows).sum(-1)


def jump_schedule():
    schedule = np.ones((40, 1))
    schedule[15:25] = 0.0
    return schedule


def jump(**changed):
    q = standing(hopper(), [0.6, -1.2], "foot")
    arguments = {"posture": q + FORWARD, "schedule": jump_schedule(), "iterations": 300}
    return hop_problem().solve(q, **(arguments | changed))


def test_a_step_is_that_of_pinocchio(rng):
    """Impacts too: the frames move before the step."""
    problem, robot = stand_problem(), monopod()
    q, v = robot.random(rng), rng.standard_normal(robot.nv)
    u = rng.uniform(-20.0, 20.0, (6, 2))
    schedule = np.array([[1, 0], [1, 0], [0, 1], [0, 0], [0, 1], [1, 0]])
    found = problem.solve(q, v, torques=u, schedule=schedule, iterations=0)
    rows = {"foot": [0, 1, 2, 3, 4, 5], "hand": [0, 1, 2]}
    for k, holds in enumerate(schedule):
        held = {name: r for (name, r), x in zip(rows.items(), holds, strict=True) if x}
        if not held:
            assert not found.wrenches[k].any()
            q1, v1 = robot.step(found.q[k], found.v[k], found.tau[k], 0.02, method="euler")
            np.testing.assert_allclose(found.v[k + 1], v1, atol=1e-9)
            continue
        v1, f = pinocchio_step(problem, found.q[k], found.v[k], u[k], held)
        np.testing.assert_allclose(found.v[k + 1], v1, atol=1e-6 * np.abs(v1).max())
        mine = [
            w[[3, 4, 5, 0, 1, 2]][rows[name]]
            for (name, _), w in zip(rows.items(), found.wrenches[k], strict=True)
            if name in held
        ]
        np.testing.assert_allclose(np.concatenate(mine), f, atol=1e-5 * np.abs(f).max())
        q1 = robot.integrate(found.q[k], 0.02 * v1)
        np.testing.assert_allclose(robot.difference(q1, found.q[k + 1]), 0.0, atol=1e-6)


def test_redundant_contacts():
    """At rest, the flat foot and the hand together: nine equations, eight unknowns. The motion is
    unique, the forces balance it."""
    problem, robot = stand_problem(), monopod()
    q = robot.random(np.random.default_rng(3))
    schedule, u = np.ones((6, 2)), np.full((6, 2), 5.0)
    found = problem.solve(q, torques=u, schedule=schedule, iterations=0)
    v1, _ = pinocchio_step(problem, q, np.zeros(8), u[0], {"foot": [*range(6)], "hand": [0, 1, 2]})
    np.testing.assert_allclose(found.v[1], v1, atol=1e-5)
    foot, hand = found.wrenches[0]
    a = robot.forward_dynamics(q, np.zeros(8), found.tau[0], f_ext={"foot": foot, "hand": hand})
    np.testing.assert_allclose(problem.dt * a, found.v[1], atol=1e-5)
    assert np.abs(found.wrenches).max() < 1e3 and found.q.shape == (7, 9)


def test_conditions_of_optimality_with_contacts():
    """Impact, forces, friction and ground: the gradient of the dense cost vanishes."""
    problem, found = hop_problem(), jump(tolerance=1e-13)
    q0, rows = found.q[0], {"foot": [3, 4, 5]}
    robot, goal = problem.robot, found.q[0] + FORWARD

    def node(q, v, u, f, holds):
        z = robot.frame_pose(q, "foot")[..., 2, 3]
        height = z if holds[0] else np.maximum(0.02 - z, 0.0)
        cone = 0.1 * cone_cost(f, MU) + 0.5e-5 * (f**2).sum((-1, -2))
        return 0.5e-3 * (u**2).sum(-1) + 0.5e-2 * (v**2).sum(-1) + cone + 0.5e4 * height**2

    def end(q, v):
        return 0.5 * ((q - goal) ** 2 @ [1e3, 1e3, 10.0, 10.0] + (v**2).sum(-1))

    def cost(u):
        lead = u.shape[:-2]
        start = np.broadcast_to(q0, (*lead, 4)), np.zeros((*lead, 4))
        return total_cost(problem, node, end, start, u, jump_schedule(), rows)

    np.testing.assert_allclose(cost(found.u), found.cost, rtol=1e-6)
    slope, before = gradient(cost, found.u), gradient(cost, jump(iterations=0).u)
    assert np.abs(slope[~found.at_bounds]).max() < 1e-5 * np.abs(before).max()
    assert found.converged and found.costs["friction"] > 0.0 and found.costs["ground"] > 0.0
    parts = sum(found.costs.values())
    np.testing.assert_allclose(parts, found.cost, rtol=1e-9)


def test_conditions_of_optimality_of_a_monopod(rng):
    """A flat foot and a point of the hand, on a base with a quaternion."""
    problem, robot = stand_problem(), monopod()
    q0 = robot.integrate(robot.neutral(), rng.uniform(-0.3, 0.3, robot.nv))
    v0, schedule = rng.uniform(-0.3, 0.3, robot.nv), np.array([[1, 0], [1, 0], [0, 1]] * 2)
    found = problem.solve(q0, v0, schedule=schedule, iterations=300, tolerance=1e-13)
    rows = {"foot": [0, 1, 2, 3, 4, 5], "hand": [3, 4, 5]}

    def node(q, v, u, f, holds):
        return 0.5e-3 * (u**2).sum(-1) + 0.05 * (v**2).sum(-1) + 1e-2 * cone_cost(f, 0.3)

    def end(q, v):
        away = robot.difference(robot.neutral(), q)
        return 5.0 * (away**2).sum(-1)

    def cost(u):
        lead = u.shape[:-2]
        start = np.broadcast_to(q0, (*lead, robot.nq)), np.broadcast_to(v0, (*lead, robot.nv))
        return total_cost(problem, node, end, start, u, schedule, rows)

    np.testing.assert_allclose(cost(found.u), found.cost, rtol=1e-6)
    assert found.converged and found.costs["friction"] > 0.0
    before = gradient(cost, np.zeros(found.u.shape))
    assert np.abs(gradient(cost, found.u)).max() < 1e-4 * np.abs(before).max()


def test_a_jump():
    """The foot rests, flies, stops within a step where it lands, and rests again."""
    found, robot, holds = jump(), hopper(), jump_schedule()[:, 0] > 0.0
    foot = robot.frame_pose(found.q, "foot")[:, :3, 3]
    assert found.converged and np.abs(found.q[-1] - found.q[0] - FORWARD).max() < 2e-2
    for part in (slice(0, 16), slice(25, 41)):
        assert (np.ptp(foot[part], axis=0) < [1e-3, 1e-9, 5e-3]).all(), "the foot slides"
    assert foot[16:25, 2].max() > 0.015 and np.abs(foot[25, 2]) < 2e-3
    fast = np.abs(robot.frame_velocity(found.q, found.v, "foot")[:, 3:]).max(-1)
    assert fast[25] > 0.1 and fast[27:40].max() < 0.05 * fast[25], "an impact stops the foot"
    assert not found.forces[~holds].any() and not found.friction_needed[~holds].any()
    assert (found.forces[holds, 0, 2] > 0.0).all() and not found.pulls.any()
    needed = np.abs(found.forces[holds, 0, 0]) / found.forces[holds, 0, 2]
    np.testing.assert_allclose(found.friction_needed[holds, 0], needed, rtol=1e-9)
    assert f"contact foot: needs a friction of {needed.max():.2f}" in found.summary()
    assert hop_problem().contact_names == ("foot",) and "foot point" in hop_problem().explain()


def test_a_foot_that_pulls_is_named():
    """A leg that throws its trunk up and is held."""
    u = np.zeros((40, 2))
    found = jump(torques=u, iterations=0, v=[0.0, 3.0, 0.0, 0.0], schedule=np.ones((40, 1)))
    assert found.pulls.any() and np.isinf(found.friction_needed[found.pulls]).all()
    assert f"pulls in {found.pulls.sum()} steps" in found.summary()


def test_schedules_are_data(monkeypatch):
    """A batch of schedules in one call, with the bits of each alone; nothing is compiled again."""
    one, late = jump_schedule(), np.roll(jump_schedule(), 3, axis=0)
    jump(iterations=1)

    def refuse(*arguments):
        raise AssertionError("traced again")

    monkeypatch.setattr(control_blocks, "trace", refuse)
    both = jump(schedule=np.stack([one, late]))
    assert both.batch == (2,) and both.converged.all() and both.forces.shape == (2, 40, 1, 3)
    for i, schedule in enumerate((one, late)):
        alone, part = jump(schedule=schedule), both.element(i)
        assert np.array_equal(alone.u, both.u[i]) and np.array_equal(alone.forces, part.forces)
        assert np.array_equal(part.schedule, schedule)
    named = jump(schedule={"foot": one[:, 0].astype(bool)})
    assert np.array_equal(named.u, both.u[0])
    more = jump(near=both.element(0))
    np.testing.assert_allclose(more.cost, both.cost[0], rtol=1e-6)


def test_a_guess_of_the_states():
    """Gaps between a guess that stands still and the motion close."""
    q = standing(hopper(), [0.6, -1.2], "foot")
    guess = q + np.linspace(0.0, 1.0, 41)[:, None] * FORWARD
    found = jump(states=(guess, np.zeros((41, 4))))
    assert found.converged and found.gap < 1e-8
    np.testing.assert_allclose(found.cost, jump().cost, rtol=1e-3)


def test_mpc_with_a_schedule():
    """A contact schedule that moves with the horizon: the same torques as solve's."""
    problem, q = hop_problem(), standing(hopper(), [0.6, -1.2], "foot")

    def holds(t):
        return [float(t < 0.3 or t >= 0.5)]

    control = pp.MPC(problem, iterations=2, posture=q, schedule=holds)
    first = control(0.0, q, np.zeros(4))
    times = 0.02 * np.arange(40)
    expected = np.array([holds(t) for t in times + 1e-9])
    assert np.array_equal(control.plan.schedule, expected)
    assert np.array_equal(first, jump(posture=q, schedule=expected, iterations=100).tau[0])
    control(0.02, control.plan.q[1], control.plan.v[1])
    assert np.array_equal(control.plan.schedule, [holds(t) for t in times + 0.02 + 1e-9])
    with pytest.raises(pp.StateError, match="schedule of the contacts foot is missing"):
        pp.MPC(problem, posture=q)(0.0, q, np.zeros(4))


def problem(**changed):
    options = {"contacts": ["foot"], "actuated": ["hip", "knee"]} | changed
    return pp.OptimalControl(hopper(), 0.02, 40, running=[pp.cost.torque(1.0)], **options)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"contacts": ["fot"]}, "foot"),
        ({"contacts": ["world"]}, "belongs to the world"),
        ({"contacts": []}, "contacts is empty"),
        ({"contacts": 3}, "expected a list"),
        ({"contacts": ["foot", "foot"]}, "twice"),
        ({"contacts": {"foot": "line"}}, "expected point or pose"),
        ({"contacts": {x: "pose" for x in hopper().frames if x != "world"}}, "at most 24"),
        ({"hessian": "full"}, "with contacts is not implemented"),
        ({"final": [pp.cost.friction(1.0)]}, "a cost of contacts"),
        ({"contacts": None, "final": [pp.cost.ground(1.0)]}, "the problem has no contacts"),
    ],
)
def test_contacts_that_are_refused(changed, words):
    with pytest.raises(pp.Error, match=words) as error:
        problem(**changed)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (None, "the schedule of the contacts foot is missing"),
        (np.ones((41, 1)), "expected (..., 40, 1)"),
        (np.ones(40), "expected (..., 40, 1)"),
        (np.full((40, 1), 0.5), "numbers other than 0 and 1"),
        (np.full((40, 1), np.nan), "numbers other than 0 and 1"),
        ({"fot": np.ones(40)}, "'fot' is no contact"),
        ({}, "foot is missing"),
        ({"foot": np.ones(41)}, "expected (..., 40)"),
        (np.ones((3, 40, 1)), "batch axes do not fit together"),
    ],
)
def test_schedules_that_are_refused(schedule, words):
    q = np.zeros((2, 4))
    with pytest.raises(pp.Error) as error:
        problem().solve(q, schedule=schedule)
    assert words in str(error.value) and error.value.remedy
    with pytest.raises(pp.StateError, match="has no contacts"):
        robots.reach_problem().solve(np.zeros(2), tool=np.zeros(3), schedule=np.ones((20, 1)))


def test_the_example(capsys):
    """`examples/jump_by_schedule.py`, with the hopper in place of ANYmal."""
    example = runpy.run_path(str(ROOT / "examples" / "jump_by_schedule.py"))
    stand = standing(hopper(), [0.6, -1.2], "foot")
    schedules = np.stack([example["flight"](15, end, ["foot"]) for end in (23, 25)])
    found = example["jump"](hopper(), ["foot"], 2, stand, 0.2, schedules)
    example["report"](found, 0.2)
    assert "2 of 2 converged" in capsys.readouterr().out
