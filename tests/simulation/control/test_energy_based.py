"""Laws based on the energy of the error: Lyapunov and Decoupled, on arrays and in rollouts."""

import numpy as np
import pytest

import psiphi as pp
from tests.robot.embedding.mechanisms import slider_crank

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
    with pytest.raises(pp.StateError, match="every joint"):
        law(pp.load("free_flyer"), pp.load("free_flyer").neutral())
    with pytest.raises(pp.StateError, match="embedded"):
        law(slider_crank("to crank"), slider_crank("to crank").neutral())
    with pytest.raises(pp.StateError, match="every joint"):
        law(ARM, np.zeros(6), passive=[ARM.joint_names[2]])
    with pytest.raises(pp.StateError, match="expected a robot"):
        law(pp.scenes, np.zeros(6))


@pytest.fixture(scope="module")
def satellite():
    """Joints whose q is not a vector, and one whose is: a hull, a ball joint, a hinge, a sled."""
    b = pp.Builder("satellite")
    for name in ("hull", "arm", "hand", "sled"):
        b.body(name, 1.5, com=(0.1, -0.05, 0.2), inertia=np.diag([0.3, 0.2, 0.25]))
    b.joint("fly", "free", "world", "hull")
    b.joint("ball", "spherical", "hull", "arm", xyz=(0, 0.2, 0.1))
    b.joint("hinge", "revolute", "arm", "hand", xyz=(0.3, 0, 0), axis=(0, 1, 0))
    b.joint("slip", "planar", "hull", "sled", xyz=(0, -0.3, 0), axis=(0.6, 0, 0.8))
    return b.build()


def tumble(robot):
    """t -> q, v, a along q exp(x sin t)."""
    x = 0.6 * np.random.default_rng(5).standard_normal(robot.nv)
    start = robot.random(seed=4)
    return lambda t: (robot.integrate(start, x * np.sin(t)), x * np.cos(t), -x * np.sin(t))


def measured_errors(robot, motion, reference, pull):
    """e = log(q, q_ref) and s = v - v_r, with v_d by differences: the velocity of q = q_ref exp(-e)
    for constant e."""
    found, step = [], 1e-6
    for t, q, v in zip(motion.t, motion.q, motion.v, strict=True):
        q_ref, v_ref, _ = reference(t)
        e = robot.difference(q, q_ref)
        ahead, behind = (
            robot.integrate(robot.integrate(q_ref, h * v_ref), -e) for h in (step, -step)
        )
        v_d = robot.difference(behind, ahead) / (2 * step)
        found.append((e, v - v_d - pull * e))
    return (np.stack([pair[i] for pair in found]) for i in range(2))


@pytest.mark.parametrize(("kp", "pull"), [(50.0, 0.0), (30.0, 3.0)])
def test_attitudes_are_errors_on_the_manifold(satellite, kp, pull):
    """The energy of the error falls at the same rate with quaternions: Wen and Kreutz."""
    reference, kd = tumble(satellite), 6.0
    control = pp.Lyapunov(satellite, reference, kp, kd, pull, passive=())
    start = satellite.integrate(reference(0.0)[0], 0.5 * np.cos(np.arange(13.0)))
    motion = pp.simulate(satellite, start, tau=control, duration=0.2, dt=5e-4, compiled=True)
    e, s = measured_errors(satellite, motion, reference, pull)
    M = satellite.mass_matrix(motion.q)
    energy = 0.5 * np.einsum("ti,tij,tj->t", s, M, s) + 0.5 * kp * (e**2).sum(-1)
    rate = -kd * (s**2).sum(-1) - pull * kp * (e**2).sum(-1)
    gone = np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(motion.t))])
    assert (np.diff(energy) < 0.0).all()
    assert np.allclose(energy, energy[0] + gone, atol=2e-4 * energy[0])


def test_decoupled_errors_of_attitudes(satellite):
    """Each entry of m* s fades at its own rate, in a kernel as in Python."""
    reference, k, pull = tumble(satellite), np.linspace(6.0, 12.0, 13), 2.0
    control = pp.Decoupled(satellite, reference, k, pull, passive=())
    start = satellite.integrate(reference(0.0)[0], 0.4 * np.sin(np.arange(13.0)))
    motion, kernel = (
        pp.simulate(satellite, start, tau=control, duration=0.1, dt=1e-3, compiled=compiled)
        for compiled in (False, True)
    )
    assert np.allclose(kernel.q, motion.q, atol=1e-10)
    _, s = measured_errors(satellite, motion, reference, pull)
    seen = satellite.diagonalised.velocities(motion.q, s)
    fades = seen[0] * np.exp(-k * motion.t[:, None])
    assert np.allclose(seen, fades, atol=1e-5 * np.abs(seen[0]).max())


def test_a_law_on_a_manifold_is_its_gradient(satellite):
    """At rest, far from rest: M a_r + C v_r + g + grad + kd (v_r - v), with matrices."""
    rng = np.random.default_rng(6)
    reference, t = tumble(satellite), 0.4
    q, v = satellite.random(rng), rng.standard_normal(13)
    kp, kd, pull, h = 20.0, 3.0, 1.5, 1e-6
    q_ref = reference(t)[0]
    control = pp.Lyapunov(satellite, reference, kp, kd, pull, passive=())

    def potential(x):
        return 0.5 * kp * (satellite.difference(satellite.integrate(q, x), q_ref) ** 2).sum(-1)

    slope = np.array([(potential(h * x) - potential(-h * x)) / (2 * h) for x in np.eye(13)])

    def reference_velocity(s):
        state = pp.Trajectory(
            [t + s], satellite.integrate(q, s * v)[None], v[None], system=satellite
        )
        e, missing = measured_errors(satellite, state, reference, pull)
        return (v - missing)[0]

    a_r = (reference_velocity(1e-4) - reference_velocity(-1e-4)) / 2e-4
    v_r = reference_velocity(0.0)
    want = satellite.mass_matrix(q) @ a_r + satellite.coriolis(q, v) @ v_r
    want = want + satellite.gravity(q) - slope + kd * (v_r - v)
    assert np.allclose(control(t, q, v), want, atol=1e-3 * np.abs(want).max())
