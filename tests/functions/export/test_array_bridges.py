"""Functions in the operations of JAX and torch: the same numbers, traced, in forward mode, with
second derivatives."""

import numpy as np
import pytest

import psiphi as pp


@pytest.fixture(scope="module")
def arm() -> pp.Robot:
    return pp.load("acrobot")


def states(arm, size=3):
    return arm.random(seed=0, size=size), *np.random.default_rng(0).standard_normal(
        (2, size, arm.nv)
    )


def test_jax(arm):
    jax = pytest.importorskip("jax")
    q, v, tau = states(arm)
    f = arm.to_jax("forward_dynamics")
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            jax.jit(f)(q, v, tau), arm.forward_dynamics(q, v, tau), rtol=1e-10
        )
        forward = jax.jacfwd(f)(q[0], v[0], tau[0])
        np.testing.assert_allclose(
            forward, arm.function("forward_dynamics").jacobian("q")(q[0], v[0], tau[0]), rtol=1e-9
        )
        np.testing.assert_allclose(arm.to_jax("mass_matrix")(q), arm.mass_matrix(q), rtol=1e-12)


def test_torch(arm):
    torch = pytest.importorskip("torch")
    q, v, tau = (torch.tensor(x) for x in states(arm))
    f = arm.to_torch("forward_dynamics")
    np.testing.assert_allclose(f(q, v, tau), arm.forward_dynamics(q, v, tau), rtol=1e-10)
    along = torch.ones(arm.nv, dtype=torch.float64)
    value, slope = torch.func.jvp(lambda x: f(x, v[0], tau[0]), (q[0],), (along,))
    want = (
        arm.function("forward_dynamics").jacobian("q")(q[0].numpy(), v[0].numpy(), tau[0].numpy())
        @ along.numpy()
    )
    np.testing.assert_allclose(slope, want, rtol=1e-9)
    s = arm.operators
    np.testing.assert_allclose(
        pp.function(s.mass @ pp.vector("x")).to_torch()(q, v),
        (arm.mass_matrix(q.numpy()) @ v.numpy()[..., None])[..., 0],
    )


def test_refused(arm):
    pytest.importorskip("torch")
    f = arm.to_torch("gravity")
    for wrong in (
        lambda: f(),
        lambda: f(np.zeros(5)),
        lambda: f("x"),
        lambda: f(None),
        lambda: arm.to_torch("nonsense"),
    ):
        with pytest.raises(pp.Error):
            wrong()
