"""Motions start at unit(q): derivatives with respect to the coordinates of q, with quaternions and
embedded loops, are those of the motion that runs."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.compiled_rollout.initial_state import InitialState
from tests.robot.embedding.mechanisms import fourbar

torch = pytest.importorskip("torch")
NEAR = 5e-7  # a step after which quaternions still count as normalized


def ball():
    b = pp.Builder("ball")
    b.body("arm", mass=1.0, com=(0.3, 0.1, 0.05), inertia=(0.3, 0, 0, 0.2, 0, 0.4))
    b.joint("socket", "spherical", parent="world", child="arm")
    return b.build()


def linkage():
    robot, loops, options = fourbar()
    return pp.embed(robot, loops, **options)


def asked(robot):
    rng = np.random.default_rng(0)
    q, v = robot.random(rng), torch.tensor(rng.standard_normal(robot.nv))
    return torch.tensor(q, requires_grad=True), v


@pytest.mark.parametrize("method", ["euler", "rk4", "implicit", "midpoint", "lie"])
def test_quaternions(method):
    """First and second derivatives, forward and reverse, including the first sample."""
    robot = ball()
    q, v = asked(robot)
    run = lambda q: pp.rollout(robot, q, v, dt=0.02, steps=2, method=method)  # noqa: E731
    assert torch.autograd.gradcheck(run, (q,), eps=NEAR, atol=1e-6, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, (q,), eps=NEAR, atol=1e-5, check_fwd_over_rev=True)
    assert torch.autograd.gradcheck(
        run, (q.detach().expand(2, 1, 4).clone().requires_grad_(),), eps=NEAR, atol=1e-6
    )


def test_every_order_of_two_modes():
    robot = ball()
    q, v = asked(robot)
    weights = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)

    def loss(q):
        return (pp.rollout(robot, q, v, dt=0.02, steps=2, method="euler")[0] * weights).sum()

    forward, reverse = torch.func.jacfwd, torch.func.jacrev
    bends = [
        one(other(loss))(q.detach()) for one in (forward, reverse) for other in (forward, reverse)
    ]
    assert all(torch.allclose(bend, bends[0], atol=1e-12) for bend in bends)
    assert abs(torch.func.grad(loss)(q.detach()) @ q) < 1e-12, "a quaternion's length moves nothing"


def test_loops_that_are_embedded():
    """Changes of dependent coordinates have no effect: unit(q) closes the loop."""
    robot = linkage()
    q, v = asked(robot)
    run = lambda q: pp.rollout(robot, q, v, dt=0.005, steps=1, method="euler")  # noqa: E731
    assert torch.autograd.gradcheck(run, (q,), eps=3e-7, atol=1e-5)


@pytest.mark.parametrize("make", [ball, linkage])
def test_the_map_itself(make):
    """Derivatives for random changes, one per element of a batch, agree with differences."""
    robot, rng = make(), np.random.default_rng(1)
    q = robot.random(rng, 3)
    dq, eq, w = rng.standard_normal((3, 3, robot.nq))
    start, h = InitialState(robot.manifold, q), 1e-6
    there, back = (robot.manifold.unit(q + s * h * dq) for s in (1.0, -1.0))
    np.testing.assert_allclose(start.jvp(dq), (there - back) / (2 * h), atol=1e-8)
    np.testing.assert_allclose((start.vjp(w) * dq).sum(-1), (w * start.jvp(dq)).sum(-1), atol=1e-12)
    np.testing.assert_allclose(
        (start.vjp_derivative(w, eq) * dq).sum(-1),
        (w * start.second_derivative(dq, eq)).sum(-1),
        atol=1e-9,
    )
    there, back = (InitialState(robot.manifold, q + s * h * eq).jvp(dq) for s in (1.0, -1.0))
    np.testing.assert_allclose(start.second_derivative(dq, eq), (there - back) / (2 * h), atol=1e-6)
