"""`system.step`: one step of a closed chain equals that of a rollout, for one state and for batches
that broadcast, in every library."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.simulation.integration.integrators import METHODS

CASE = pp.scenes.load("four_bar")
SYSTEM = CASE.system


def given(size: int):
    """States on the constraints, and torques."""
    rng = np.random.default_rng(0)
    tau = rng.standard_normal((size, SYSTEM.nv))
    q, v = pp.rollout(SYSTEM, np.tile(CASE.q0, (size, 1)), tau=tau[:, None], steps=20)
    return q[:, -1], v[:, -1], tau


@pytest.mark.parametrize("method", list(METHODS))
def test_a_step_is_a_rollouts(method):
    q, v, tau = given(4)
    q1, v1 = SYSTEM.step(q, v, tau, 2e-3, method)
    Q, V = pp.rollout(SYSTEM, q, v, tau[:, None], dt=2e-3, steps=1, method=method)
    assert (q1 == Q[:, 1]).all() and (v1 == V[:, 1]).all()
    assert np.abs(SYSTEM.constraint_residual(q1, v1)).max() < 1e-9
    one = SYSTEM.step(q[2], v[2], tau[2], 2e-3, method)
    assert one[0].shape == (SYSTEM.nq,) and (one[0] == q1[2]).all() and (one[1] == v1[2]).all()


def test_many_steps_are_a_simulation():
    (q,), (v,), (tau,) = given(1)
    motion = pp.simulate(SYSTEM, q, v, tau, duration=0.05, compiled=False)
    for _ in range(50):
        q, v = SYSTEM.step(q, v, tau, 1e-3)
    np.testing.assert_allclose(q, motion.q[-1], atol=1e-9)
    np.testing.assert_allclose(v, motion.v[-1], atol=1e-7)


def test_batch_axes_broadcast():
    """One state and many torques; torques of the motors alone; a batch of one."""
    q, v, tau = given(3)
    q1, v1 = SYSTEM.step(q[0], v[0], tau, 1e-3)
    for k in range(3):
        one = SYSTEM.step(q[0], v[0], tau[k], 1e-3)
        assert (one[0] == q1[k]).all() and (one[1] == v1[k]).all()
    q1, v1 = SYSTEM.step(q[:, None], v[:, None], tau, 1e-3)
    assert q1.shape == (3, 3, SYSTEM.nq) and v1.shape == (3, 3, SYSTEM.nv)
    assert SYSTEM.step(q[:1], v[:1], tau[:1], 1e-3)[0].shape == (1, SYSTEM.nq)


def test_gradients_of_torch():
    torch = pytest.importorskip("torch")
    q, v, tau = given(2)
    wanted = SYSTEM.step(q, v, tau, 1e-3)
    U = torch.tensor(tau, requires_grad=True)
    q1, v1 = SYSTEM.step(torch.tensor(q), torch.tensor(v), U, 1e-3)
    np.testing.assert_allclose(q1.detach().numpy(), wanted[0], atol=1e-14)
    v1.sum().backward()
    B = SYSTEM.linearize(q, v, tau, dt=1e-3)[1]
    np.testing.assert_allclose(U.grad.numpy(), B[:, SYSTEM.nv :].sum(-2), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dt": [1e-3, 2e-3]}, "step: dt is an array.*single dt"),
        ({"dt": -1.0}, "step: dt is -1.0"),
        ({"method": "RK45"}, "step: method"),
        ({"tau": np.zeros(SYSTEM.nv + 5)}, "tau has shape"),
        ({"q": CASE.q0 + 0.3}, "constraint|loop"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    arguments = {"q": CASE.q0, "v": np.zeros(SYSTEM.nv), "tau": np.zeros(SYSTEM.nv), "dt": 1e-3}
    with pytest.raises(pp.StateError, match=message):
        SYSTEM.step(**{**arguments, **change})
