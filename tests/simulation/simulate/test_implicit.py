"""Stiff damping and friction, taken implicitly: D + gamma h B in place of D."""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.forces import damping_and_friction
from psiphi.simulation.forces.damping_and_friction import MAX_EXPLICIT_LOSS, mobility
from psiphi.simulation.integration.integrators import METHODS, ORDER
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.rows_of.motions import DT, _with_steps, distance
from tests.simulation.simulate.motions import juggler, pendulum, puma, state, ur5
from tests.zoo import chain, example_robots


def wheel(damping: float = 0.0) -> pp.Robot:
    """A disc of inertia 0.01 on a hinge, weightless."""
    b = pp.Builder("wheel", gravity=(0, 0, 0))
    b.body("disc", mass=1.0, inertia=np.diag([0.01, 0.01, 0.01]))
    b.joint("axle", "revolute", parent="world", child="disc", axis=(0, 0, 1), damping=damping)
    return b.build()


@pytest.fixture
def all_implicit(monkeypatch):
    """Every loss counts as stiff."""
    monkeypatch.setattr(damping_and_friction, "MAX_EXPLICIT_LOSS", -1.0)


@pytest.mark.parametrize("robot", [ur5, juggler], ids=["ur5", "juggler"])
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(
    "brakes",
    [dict(damping=0.5), dict(damping=0.2, friction=1.0, friction_speed=2.0)],
    ids=["", "rub"],
)
def test_order(robot, method, brakes, all_implicit):
    """For any B, also if it is the secant of friction, which earlier steps have not seen."""
    robot, steps = robot(), (40, 80, 160)
    q, v = state(robot, 3)
    runs = [
        pp.simulate(robot, q, v, duration=0.2, dt=0.2 / n, method=method, every=n, **brakes)
        for n in steps
    ]
    assert all(motion.info["implicit"]["order"] == ORDER[method] for motion in runs)
    coarse, fine = (distance(robot, runs[i].final, runs[i + 1].final) for i in range(2))
    assert ORDER[method] - 0.15 < np.log2(coarse / fine) < ORDER[method] + 0.6


@pytest.mark.parametrize("method", ["rk4", "lie"])
def test_soft_losses_keep_the_order(method):
    robot, steps = ur5(), (40, 80, 160)
    q, v = state(robot, 3)
    runs = [
        pp.simulate(robot, q, v, duration=0.2, dt=0.2 / n, method=method, every=n, damping=1e-3)
        for n in steps
    ]
    coarse, fine = (distance(robot, runs[i].final, runs[i + 1].final) for i in range(2))
    assert np.log2(coarse / fine) > 3.8 and "implicit" not in runs[0].info


@pytest.mark.parametrize("z", [0.05, 1.0, 30.0, 1e4, 1e9])
def test_a_wheel_that_is_braked(z):
    """v' = -B v / I with z = h B / I: the factor of Euler is 1 / (1 + z), that of the midpoint rule
    (1 - z/2) / (1 + z/2), which changes sign; that of four stages is between 0 and 1, near e^-z."""
    robot, h, n = wheel(), 1e-3, 20
    for method in METHODS:
        motion = pp.simulate(
            robot, [0.0], [2.0], duration=n * h, dt=h, method=method, damping=0.01 * z / h
        )
        factor = motion.v[1:, 0] / motion.v[:-1, 0]
        if method in ("euler", "midpoint"):
            exact = 1.0 / (1.0 + z) if method == "euler" else (1.0 - 0.5 * z) / (1.0 + 0.5 * z)
            np.testing.assert_allclose(factor, exact, atol=1e-14)
        else:
            np.testing.assert_allclose(factor, np.exp(-z), atol={"implicit": 0.22}.get(method, 0.1))
        if method in ("rk4", "lie"):
            assert (factor >= 0.0).all() and (factor < 1.0).all()
            assert ("implicit" in motion.info) == (z > MAX_EXPLICIT_LOSS)


def test_what_is_stiff_is_said():
    motion = pp.simulate(wheel(), [0.0], [2.0], duration=0.01, damping=100.0)
    assert "implicit        damping and friction at axle, of order 3" in motion.summary()
    motion = pp.simulate(wheel(), [0.0], [2.0], duration=0.01, damping=0.01)
    assert "implicit" not in motion.summary()


def test_mobility_is_the_diagonal_of_the_inverse_mass_matrix():
    robot = puma()
    q = np.concatenate(
        [robot.neutral()[None], robot.random(0, damping_and_friction.CONFIGURATIONS - 1)]
    )
    wanted = np.diagonal(robot.mass_matrix_inverse(q), axis1=-2, axis2=-1).max(axis=0)
    np.testing.assert_allclose(mobility(robot), wanted, rtol=1e-9)


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(
    "brakes", [dict(damping=50.0), dict(friction=20.0), dict(damping=1e6, friction=1e4)]
)
def test_energy_falls(method, brakes):
    """Without torque no step adds energy, however large the losses; or nearly none if of
    higher order."""
    q, v = state(ur5(), 5, 4)
    motion = pp.simulate(ur5(), q, v, duration=0.3, method=method, **brakes)
    assert "implicit" in motion.info and not motion.events
    assert (
        np.diff(motion.energy, axis=-1)
        < (1e-13 if method == "euler" else 1e-6) * np.abs(motion.energy).max()
    ).all()


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("case", ["arm", "flying", "batch", "loop", "long", "law"])
def test_kernels_take_the_same_steps(case, method):
    tau = None
    if case == "loop":
        scene = pp.scenes.load("four_bar")
        robot, q, v = scene.system, scene.q0, scene.v0
    else:
        model = chain("long", ["revolute"] * 70, 1) if case == "long" else None
        robot = pp.Robot.of(model) if model else juggler() if case == "flying" else ur5()
        q, v = state(
            robot, 2, *([5] if case == "batch" else []), speed=0.1 if case == "long" else 1.0
        )
    if case == "law":
        tau = pp.PD(robot, lambda t: np.sin(t) * np.ones(6), 20.0, 1.0, gravity=True)
    options = dict(duration=0.03, damping=40.0, friction=3.0, method=method, hold=case == "batch")
    fast, slow = (
        pp.simulate(robot, q, v, tau, compiled=compiled, **options) for compiled in (True, False)
    )
    assert "implicit" in fast.info and fast.info == slow.info
    near = (
        1e-5 if case == "loop" else 1e-9
    )  # a kernel takes one step of Newton back onto the constraints, Python more
    for name in ("q", "v", "tau", "a"):
        one, other = getattr(fast, name), getattr(slow, name)
        np.testing.assert_allclose(
            one, other, rtol=1e-7, atol=near * max(1.0, np.abs(other).max()), err_msg=name
        )
    rolled = pp.rollout(
        robot, q, v, tau, steps=30, **{k: x for k, x in options.items() if k != "duration"}
    )
    assert (rolled[0] == fast.q).all() and (rolled[1] == fast.v).all()


def test_another_step_or_brake_is_no_other_kernel():
    """h and B are numbers of the call."""
    from psiphi.simulation.compiled_rollout import rollout_runner

    q, v = state(ur5(), 1)
    pp.rollout(ur5(), q, v, steps=2, damping=50.0)
    before = set(rollout_runner._cache)
    pp.rollout(ur5(), q, v, steps=2, damping=77.0, dt=2e-3)
    assert set(rollout_runner._cache) == before


def test_without_losses_nothing_is_added():
    robot = ur5()
    assert robot.flops("forward_dynamics") < robot.flops("added_inertia_dynamics")
    q, v = state(robot, 1)
    X, tau = np.random.default_rng(0).uniform(0.0, 2.0, (2, 6))
    a = robot.function("added_inertia_dynamics").ufunc(q, v, tau, X)
    np.testing.assert_allclose(
        a, np.linalg.solve(robot.mass_matrix(q) + np.diag(X), tau - robot.bias(q, v)), rtol=1e-11
    )


@pytest.mark.parametrize("integrator", ["mjINT_EULER", "mjINT_IMPLICITFAST"])
def test_euler_is_mujocos(integrator):
    """MuJoCo's Euler takes joint damping implicitly, too; so does implicitfast. A second of UR5."""
    robot = ur5()
    rng, damping = np.random.default_rng(0), np.array([2.0, 50.0, 5.0, 0.5, 10.0, 100.0])
    q, v = robot.random(rng), 0.3 * rng.standard_normal(6)
    peer = Mj(robot)
    model = _with_steps(peer.peer, getattr(mujoco.mjtIntegrator, integrator))
    model.dof_damping[:] = damping
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = peer.layout.to_q(q), peer.layout.to_v(v, q)
    for _ in range(1000):
        mujoco.mj_step(model, data)
    ours = pp.simulate(
        robot, q, v, duration=1000 * DT, dt=DT, every=1000, method="euler", damping=damping
    ).final
    np.testing.assert_allclose(ours.q, data.qpos, atol=1e-9)
    np.testing.assert_allclose(ours.v, data.qvel, atol=1e-9)


def test_against_steps_of_scipys_choosing():
    """A pendulum in thick oil, which stops in a fraction of a step and then creeps; with Radau."""
    robot = pendulum()
    stiff = pp.simulate(robot, [0.9], [3.0], duration=0.5, damping=2000.0)
    exact = pp.simulate(
        robot,
        [0.9],
        [3.0],
        duration=0.5,
        damping=2000.0,
        method="Radau",
        rtol=1e-10,
        atol=1e-12,
        dt=0.5,
    )
    assert abs(stiff.final.q[0] - exact.final.q[0]) < 0.02 * abs(exact.final.q[0] - 0.9), (
        "what it coasted within a step"
    )
    np.testing.assert_allclose(stiff.final.v, exact.final.v, rtol=1e-4)


LOSSY = [
    file
    for file in example_robots()
    if re.search(rb"<dynamics[^>]*\"[0-9.]*[1-9]", Path(file).read_bytes())
]


def test_robots_with_losses_are_here():
    assert len(LOSSY) >= 32


@pytest.mark.parametrize("file", LOSSY, ids=lambda file: file.stem)
def test_every_robot_of_example_robot_data(file):
    """Damping and friction of the file at the default step: finite, no event, and energy falls."""
    robot = pp.load(file)
    damped = any(joint.damping.any() for joint in robot.joints)
    rubbed = any(joint.friction.any() for joint in robot.joints)
    assert damped or rubbed
    both = dict(damping=True, friction=True)
    for brakes in [dict(damping=True)] * damped + [both] * rubbed:
        motion = pp.simulate(robot, robot.random(seed=0), duration=0.1, compiled=False, **brakes)
        assert (
            not motion.events
            and len(motion) == 101
            and np.isfinite(motion.q).all()
            and np.isfinite(motion.v).all()
        )
        assert motion.energy[-1] <= motion.energy[0] + 1e-9 * np.abs(motion.energy).max(), Path(
            file
        ).stem
