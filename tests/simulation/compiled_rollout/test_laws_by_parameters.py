"""Laws that use the parameters of the simulated robot: derivatives of motions, compared with finite
differences, include those of the law. A law of another robot is constant, even if its numbers are
equal."""

import numpy as np
import pytest

import psiphi as pp

ARM = pp.load("pelican")
LIGHT = ARM.free("mass")
OWN = LIGHT.parameters()
Q, V = np.random.default_rng(0).standard_normal((2, 3, 2))
SETS = OWN + np.array([[0.0], [0.1], [0.3]])
BATCHES = {
    "one": (Q[0], OWN),
    "shared": (Q, OWN),
    "each its own": (Q, SETS),
    "of one start": (Q[0], SETS),
}
LAWS = {
    "a law of one's own": lambda robot: (
        lambda t, q, v: robot.gravity(q) + robot.mass_product(q, np.cos(v)) - v + np.sin(t)
    ),
    "gravity": lambda robot: pp.GravityCompensation(robot),
    "computed torque": lambda robot: pp.ComputedTorque(
        robot, [0.1, 0.2], 30.0, 2.0, passive=["elbow"]
    ),
}


def rolled(p, q, law, **options):
    robot = LIGHT.at(p)
    return pp.rollout(robot, q, V[0], LAWS[law](robot), 0.02, 4, "euler", **options)


def slope(f, p, change, h=1e-5):
    there, back = f(p + h * change), f(p - h * change)
    return [(x - y) / (2.0 * h) for x, y in zip(there, back, strict=True)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("batch", BATCHES)
def test_first_and_second_derivatives(law, batch):
    q, p = BATCHES[batch]
    change, motion = np.random.default_rng(1).standard_normal(p.shape), rolled(p, q, law)
    for own, want in zip(
        motion.jvp(parameters=change), slope(lambda p: rolled(p, q, law), p, change), strict=True
    ):
        np.testing.assert_allclose(own, want, atol=1e-7)
    w = np.random.default_rng(2).standard_normal(motion.q.shape)
    gradient = motion.vjp(w)
    assert np.sum(gradient["parameters"] * change) == pytest.approx(
        np.sum(w * motion.jvp(parameters=change)[0]), rel=1e-9
    )
    turns = motion.hvp(w, parameters=change)
    (want,) = slope(lambda p: [rolled(p, q, law).vjp(w)["parameters"]], p, change)
    np.testing.assert_allclose(turns["parameters"], want, atol=1e-7)


@pytest.mark.parametrize("batch", BATCHES)
def test_a_law_of_ones_own_runs_as_in_python(batch):
    q, p = BATCHES[batch]
    robot = LIGHT.at(p)
    law = LAWS["a law of one's own"](robot)
    fast, slow = (
        pp.simulate(robot, q, V[0], law, duration=0.05, dt=0.01, compiled=way)
        for way in (True, False)
    )
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-12)
    np.testing.assert_allclose(fast.tau, slow.tau, atol=1e-12)  # type: ignore[arg-type]
    assert sorted(fast.vjp()) == ["parameters", "q", "v"]


@pytest.mark.parametrize("p", [OWN, SETS])
def test_a_law_of_a_closed_chain(p):
    """A law of a closed chain uses the quantities of its robot."""
    loop = pp.connect(LIGHT, [pp.Loop("distance", "tool", "world", length=0.3)])
    q, v = loop.at(OWN).project(loop.at(OWN).assemble([0.5, 1.0]), np.ones(2))

    def run(p, way=pp.rollout, **options):
        chain = loop.at(p)
        return way(
            chain,
            q,
            v,
            lambda t, q, v: 0.5 * chain.robot.gravity(q) - v,
            dt=0.01,
            method="euler",
            **options,
        )

    change = np.random.default_rng(3).standard_normal(p.shape)
    (want, _), own = (
        slope(lambda p: run(p, steps=3), p, change, 1e-4),
        run(p, steps=3).jvp(parameters=change)[0],
    )
    np.testing.assert_allclose(own, want, atol=1e-6 * np.abs(want).max())
    fast, slow = (run(p, pp.simulate, duration=0.03, compiled=way) for way in (True, False))
    np.testing.assert_allclose(fast.tau, slow.tau, atol=1e-12)  # type: ignore[arg-type]


def test_a_law_of_another_robot_stays_as_it_is():
    nominal = LIGHT.at(OWN.copy())  # equal numbers, but not the parameters of the moving robot
    law = lambda t, q, v: nominal.gravity(q) - v  # noqa: E731
    run = lambda p: pp.rollout(LIGHT.at(p), Q, V, law, 0.02, 4, "euler")  # noqa: E731
    change = np.array([1.0, -0.5])
    np.testing.assert_allclose(
        run(OWN).jvp(parameters=change)[0], slope(run, OWN, change)[0], atol=1e-7
    )


def rolled_by_torch(p, q, law):
    torch = pytest.importorskip("torch")
    p = torch.tensor(p, requires_grad=True)
    return torch.autograd.grad(rolled(p, torch.tensor(q), law)[0].sum(), p)[0].numpy()


def rolled_by_jax(p, q, law):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return np.asarray(
        jax.grad(lambda p: rolled(p, jax.numpy.asarray(q), law)[0].sum())(jax.numpy.asarray(p))
    )


@pytest.mark.parametrize("rolled_by", [rolled_by_torch, rolled_by_jax])
@pytest.mark.parametrize("batch", BATCHES)
def test_controllers_of_tensors(rolled_by, batch):
    q, p = BATCHES[batch]
    for law in ("gravity", "computed torque"):
        motion = rolled(p, q, law)
        np.testing.assert_allclose(
            rolled_by(p, q, law), motion.vjp(np.ones_like(motion.q))["parameters"], rtol=1e-9
        )
    with pytest.raises(
        pp.StateError,
        match=r"gravity: its robot has parameters of (torch|jax).*psiphi's controllers accept any",
    ):
        rolled_by(p, q, "a law of one's own")


def test_a_controller_of_numbers_beside_a_tensor_is_refused():
    """The numbers of another robot do not change with the tensor, even if they are equal."""
    torch = pytest.importorskip("torch")
    robot = LIGHT.at(torch.tensor(OWN, requires_grad=True))
    with pytest.raises(
        pp.StateError,
        match="controller is made for another robot than the one with parameters of torch",
    ):
        pp.rollout(robot, Q[0], tau=pp.GravityCompensation(LIGHT.at(OWN)), steps=2)
