"""The integrators: their order, what they conserve, and that configurations stay configurations."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.simulation.integration.integrators import METHODS
from psiphi_bench.rows_of.motions import distance
from tests.simulation.simulate.motions import juggler, puma, space_robot, state, ur5


def order(robot, method: str, steps=(40, 80, 160), duration: float = 0.2, **options) -> float:
    """log2 of the ratio of errors at halved steps, the error being the distance to the next finer
    motion."""
    q, v = state(robot, 3)
    ends = [
        pp.simulate(
            robot, q, v, duration=duration, dt=duration / n, method=method, every=n, **options
        ).final
        for n in steps
    ]
    coarse, fine = (distance(robot, ends[i], ends[i + 1]) for i in range(2))
    return float(np.log2(coarse / fine))


@pytest.mark.parametrize("robot", [ur5, juggler], ids=["ur5", "juggler"])
@pytest.mark.parametrize(("method", "wanted"), [("euler", 0.95), ("rk4", 3.8), ("lie", 3.8)])
def test_order(robot, method, wanted):
    assert wanted < order(robot(), method) < wanted + 0.5


@pytest.mark.parametrize("method", ["rk4", "lie"])
def test_order_with_a_controller_that_depends_on_everything(method):
    robot = ur5()
    assert order(robot, method, tau=lambda t, q, v: np.sin(30 * t) * np.cos(q) - v) > 3.8
    held = order(robot, method, tau=lambda t, q, v: np.sin(30 * t) * np.cos(q) - v, hold=True)
    assert 0.8 < held < 1.3, "a torque held during the step is of first order"


@pytest.mark.parametrize("method", list(METHODS))
def test_quaternions_stay_unit(method):
    robot = juggler()
    q, v = state(robot, 1, 3, speed=5.0)
    motion = pp.simulate(robot, q, v, duration=0.5, dt=5e-3, method=method)
    for joint in robot.joints:
        if joint.kind in ("spherical", "free"):
            norms = np.linalg.norm(motion.q[..., joint.q_slice][..., -4:], axis=-1)
            np.testing.assert_allclose(norms, 1.0, atol=4e-16)


def test_energy_of_ur5_over_ten_seconds():
    q, v = state(ur5(), 0, 32)
    motion = pp.simulate(ur5(), q, v, duration=10.0, dt=1e-3, every=20)
    assert motion.q.shape == (32, 501, 6)
    assert motion.drift.max() < 1e-7


def test_energy_of_ur5_with_steps_of_scipys_choosing():
    q, v = state(ur5(), 0, 2)
    motion = pp.simulate(
        ur5(), q, v, duration=10.0, dt=0.05, method="DOP853", rtol=1e-12, atol=1e-12
    )
    assert motion.drift.max() < 1e-10


@pytest.mark.parametrize(
    ("options", "wanted"),
    [(dict(method="rk4"), 1e-8), (dict(method="DOP853", dt=0.05, rtol=1e-13, atol=1e-13), 1e-11)],
)
def test_momentum_of_a_free_floating_robot_with_two_arms(options, wanted):
    """Motors inside the robot change neither momentum, in ten seconds of waving."""
    robot = space_robot()
    q, v = state(robot, 2, speed=0.3)
    rates = np.arange(1.0, 7.0)
    if options["method"] == "rk4":  # one row a step: compiled
        wave = np.sin(np.outer(1e-3 * np.arange(10_000), rates))
        tau = np.concatenate([np.zeros((10_000, 6)), wave], axis=-1)
    else:
        tau = lambda t, q, v: np.concatenate([np.zeros(6), np.sin(t * rates)])  # noqa: E731
    motion = pp.simulate(robot, q, v, tau, duration=10.0, **options)
    p = robot.momentum(motion.q, motion.v)
    assert np.abs(motion.q[-1, 7:] - motion.q[0, 7:]).max() > 0.5, "the arms did move"
    assert np.abs(p - p[0]).max() / np.abs(p[0]).max() < wanted


@pytest.mark.parametrize("method", ["RK45", "LSODA", "Radau"])
def test_other_integrators_agree(method):
    robot = puma()
    q, v = state(robot, 5)
    fixed = pp.simulate(robot, q, v, duration=0.2, dt=1e-3).final
    other = pp.simulate(
        robot, q, v, duration=0.2, dt=0.1, method=method, rtol=1e-8, atol=1e-8
    ).final
    assert distance(robot, fixed, other) < 1e-5


def test_torques_that_jump_are_exact_for_adaptive_steps():
    robot = puma()
    q, v = state(robot, 5)
    tau = np.random.default_rng(0).standard_normal((5, 6)) * 20
    fine = pp.simulate(robot, q, v, np.repeat(tau, 20, axis=0), duration=0.1, dt=1e-3).final
    adaptive = pp.simulate(
        robot, q, v, tau, duration=0.1, dt=0.02, method="DOP853", rtol=1e-11, atol=1e-11
    )
    assert len(adaptive) == 6
    assert distance(robot, fine, adaptive.final) < 1e-8


@pytest.mark.parametrize("method", ["euler", "rk4", "DOP853", "Radau"])
@pytest.mark.parametrize("hold", [False, True])
def test_how_many_samples_are_kept_changes_no_motion(method, hold):
    """A torque that is held is asked at every step, not at every sample."""
    robot = pp.load("pelican")
    law = pp.PD(robot, [0.5, -0.5], 30.0, 2.0)
    how = {
        "duration": 0.06,
        "dt": 0.01,
        "method": method,
        "hold": hold,
        "compiled": False if method == "euler" else None,
    }
    every, some = (pp.simulate(robot, [0.3, 0.4], [1.0, -2.0], law, every=n, **how) for n in (1, 3))
    for name in ("t", "q", "v", "a", "tau"):
        np.testing.assert_array_equal(getattr(every, name)[::3], getattr(some, name), name)


def test_rate_is_the_derivative_of_integrate():
    robot = juggler()
    q, v = state(robot, 7, 4)
    m, h = robot.manifold, 1e-5
    slope = (m.exp(q, h * v) - m.exp(q, -h * v)) / (2 * h)
    np.testing.assert_allclose(m.rate(q, v), slope, atol=1e-9)


def test_the_manifold_on_a_tape():
    """The same lines on tape scalars mean what they mean on arrays."""
    robot = juggler()
    q, v = state(robot, 9)
    m, tape = robot.manifold, Tape()
    Q, V = (
        np.array([tape.leaf(name, i) for i in range(n)])
        for name, n in (("q", robot.nq), ("v", robot.nv))
    )
    values = {"q": q, "v": v}
    pairs = [
        (m.exp(Q, V), m.exp(q, v)),
        (m.rate(Q, V), m.rate(q, v)),
        (m.unit(Q), q),
        (m.log(Q, m.exp(Q, V)), v),
    ]
    for on_tape, on_arrays in pairs:
        found = evaluate(
            tape, [tape.operand(x) for x in on_tape], lambda space, i: values[space][i]
        )
        np.testing.assert_allclose(found, on_arrays, atol=1e-14)
