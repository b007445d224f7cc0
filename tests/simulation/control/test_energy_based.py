"""Laws based on the energy of the error: Lyapunov and Decoupled, on arrays and in rollouts."""

import numpy as np
import pytest

import psiphi as pp

ARM = pp.robots.puma560()
RATE, AMPLITUDE = 2.0, np.array([0.6, 0.4, 0.5, 0.8, 0.7, 1.0])


def swing(t):
    """q, v, a of the reference."""
    return (
        AMPLITUDE * np.sin(RATE * t),
        RATE * AMPLITUDE * np.cos(RATE * t),
        -(RATE**2) * AMPLITUDE * np.sin(RATE * t),
    )


def errors(q, v, t, pull):
    q_ref, v_ref, a_ref = swing(t)
    e = q_ref - q
    return e, v - v_ref - pull * e, v_ref + pull * e, a_ref + pull * (v_ref - v)


@pytest.mark.parametrize(("kp", "pull"), [(200.0, 0.0), (0.0, 5.0), (150.0, 4.0)])
def test_the_law_is_its_equation(kp, pull):
    """Against C by Christoffel symbols, (dM_ij/dq_k + dM_ik/dq_j - dM_kj/dq_i) / 2, from
    differences of M."""
    q, v, t, kd = ARM.random(seed=1), np.linspace(-1.0, 2.0, 6), 0.3, np.arange(10.0, 16.0)
    e, s, v_r, a_r = errors(q, v, t, pull)
    step = 1e-5
    slope = np.stack(
        [(ARM.mass_matrix(q + d) - ARM.mass_matrix(q - d)) / (2 * step) for d in step * np.eye(6)],
        axis=-1,
    )
    C = 0.5 * np.einsum("ijk,k->ij", slope + slope.transpose(0, 2, 1) - slope.transpose(2, 1, 0), v)
    want = ARM.mass_matrix(q) @ a_r + C @ v_r + ARM.gravity(q) + kp * e - kd * s
    assert np.allclose(pp.Lyapunov(ARM, swing, kp, kd, pull)(t, q, v), want, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(("kp", "pull"), [(200.0, 0.0), (0.0, 5.0), (150.0, 4.0)])
def test_the_energy_of_the_error_falls_as_said(kp, pull):
    kd = 30.0
    control = pp.Lyapunov(ARM, swing, kp, kd, pull)
    motion = pp.simulate(ARM, swing(0.0)[0] + 0.3, np.zeros(6), control, duration=0.8, dt=1e-3)
    pairs = [errors(q, v, t, pull) for t, q, v in zip(motion.t, motion.q, motion.v, strict=True)]
    e, s = (np.stack([pair[i] for pair in pairs]) for i in range(2))
    M = ARM.mass_matrix(motion.q)
    energy = 0.5 * np.einsum("ti,tij,tj->t", s, M, s) + 0.5 * kp * (e**2).sum(-1)
    rate = -kd * (s**2).sum(-1) - pull * kp * (e**2).sum(-1)
    assert (np.diff(energy) < 0.0).all()
    gone = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(motion.t))])
    assert np.allclose(energy, energy[0] + gone, atol=2e-4 * energy[0])


def test_each_velocity_error_fades_by_itself():
    k, pull = np.array([6.0, 8.0, 10.0, 12.0, 15.0, 20.0]), 5.0
    control = pp.Decoupled(ARM, swing, k, pull)
    motion = pp.simulate(ARM, swing(0.0)[0] + 0.3, np.zeros(6), control, duration=0.5, dt=5e-4)
    missing = np.stack(
        [errors(q, v, t, pull)[1] for t, q, v in zip(motion.t, motion.q, motion.v, strict=True)]
    )
    s = ARM.diagonalised.velocities(motion.q, missing)
    assert np.allclose(s, s[0] * np.exp(-k * motion.t[:, None]), atol=1e-6 * np.abs(s[0]).max())


@pytest.mark.parametrize("law", [pp.Lyapunov, pp.Decoupled])
def test_a_compiled_rollout_says_the_same(law):
    """Batches of states, in a kernel and in steps of Python."""
    robot = pp.load("pelican")
    still = np.array([0.7, -0.4])
    control = law(robot, still)
    q = robot.random(seed=3, size=3)
    whole = pp.simulate(robot, q, tau=control, duration=0.05, dt=1e-3, method="rk4")
    steps = pp.simulate(
        robot, q, tau=lambda t, q, v: control(t, q, v), duration=0.05, dt=1e-3, method="rk4"
    )
    assert np.allclose(whole.q, steps.q, rtol=1e-12, atol=1e-12) and np.allclose(
        whole.v, steps.v, rtol=1e-10, atol=1e-10
    )
    rolled = pp.rollout(robot, q, np.zeros((3, 2)), control, dt=1e-3, steps=50)
    assert np.allclose(rolled.q[..., -1, :], whole.final.q, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("law", [pp.Lyapunov, pp.Decoupled])
def test_what_they_cannot_drive_is_refused(law):
    with pytest.raises(pp.StateError, match="a q that is not a vector"):
        law(pp.load("free_flyer"), pp.load("free_flyer").neutral())
    with pytest.raises(pp.StateError, match="every joint"):
        law(ARM, np.zeros(6), passive=[ARM.joint_names[2]])
    with pytest.raises(pp.StateError, match="expected a robot"):
        law(pp.scenes, np.zeros(6))
