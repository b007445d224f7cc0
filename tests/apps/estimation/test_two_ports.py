"""Two-ports of a robot's sub-chains: their meaning, associativity, depth log N, loads."""

import numpy as np
import pytest

import psiphi as pp
from psiphi.apps.estimation.two_port import TwoPort, two_ports
from tests import zoo


def block(matrix, k):
    return matrix[..., 6 * k : 6 * k + 6, 6 * k : 6 * k + 6]


@pytest.fixture(params=[False, True], ids=["plain", "rotors"])
def arm(request) -> pp.Robot:
    return pp.Robot.of(
        zoo.chain(
            "mixed",
            ["revolute", "prismatic", "spherical", "helical", "universal"],
            3,
            request.param,
        )
    )


def test_they_are_the_robots_own(arm):
    """M + Q is the articulated inertia of the carrying link, Om the compliance of the tip."""
    s, q = arm.operators, arm.random(seed=0, size=3)
    ports, n = two_ports(arm, q), len(arm.bodies)
    P, M, Om, psi = (x.dense(q) for x in (s.P, s.M, s.Om, s.psi))
    assert ports.shape == (3, n)
    for k in range(n - 1):
        outer = ports[..., : n - 1 - k].joined()
        np.testing.assert_allclose(block(M, k) + outer.Q, block(P, k), atol=1e-9 * np.abs(P).max())
    whole = ports.joined()
    np.testing.assert_allclose(whole.Om, block(Om, n - 1), atol=1e-9 * np.abs(Om).max())
    down = (
        np.swapaxes(s.Delta_psi.dense(q), -1, -2) if n == 1 else psi[..., :6, -6:]
    )  # psi(1, tip), then the first link's own
    first = block(s.Delta_psi.dense(q), 0) if n > 1 else np.eye(6)
    np.testing.assert_allclose(whole.psi, first @ down, atol=1e-9 * np.abs(psi).max())


def test_joining_is_associative(arm):
    a, b, c = (two_ports(arm, arm.random(seed=1))[i] for i in range(3))
    for one, other in zip(a.on(b).on(c).matrices, a.on(b.on(c)).matrices, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10 * max(1.0, np.abs(other).max()))


def test_a_load_is_one_small_step(arm):
    """The base inertia with a load is that of the robot with the load attached."""
    q, tip = arm.random(seed=2), arm.bodies[-1].name
    heavy = arm.attach(pp.Body.box(3.0, (0.2, 0.3, 0.4), name="load"), tip)
    heavy = (
        heavy
        if len(heavy.bodies) == len(arm.bodies)
        else heavy.lock([j.name for j in heavy.joints[len(arm.joints) :]])
    )
    load = block(heavy.operators.M.dense(q), -1 + len(arm.bodies)) - block(
        arm.operators.M.dense(q), len(arm.bodies) - 1
    )
    np.testing.assert_allclose(
        two_ports(arm, q).joined().felt(load), two_ports(heavy, q).joined().Q, rtol=1e-7, atol=1e-9
    )


def test_a_chain_in_depth_log_n(monkeypatch):
    """A thousand links take ten joins, for any angles; equal links need no array of them."""
    count, on = [], TwoPort.on
    monkeypatch.setattr(TwoPort, "on", lambda self, inner: (count.append(1), on(self, inner))[1])
    chain = pp.robots.chain(1000)
    q = 0.3 * np.random.default_rng(0).standard_normal(1000)
    ports = two_ports(chain, q)
    whole = ports.joined()
    assert len(count) == 10
    slow = ports[0]
    for k in range(1, 1000):
        slow = slow.on(ports[k])
    np.testing.assert_allclose(whole.Q, slow.Q, rtol=1e-6, atol=1e-9)
    count.clear()
    row = {
        "alpha": 0.6,
        "a": 0.4,
        "mass": 1.5,
        "com": (0.2, 0.0, 0.04),
        "inertia": np.diag([0.02, 0.09, 0.1]),
    }
    equal = two_ports(pp.from_dh([row] * 40), np.full(40, 0.3))
    np.testing.assert_allclose(
        equal[5].repeated(32).Q, equal[1:33].joined().Q, rtol=1e-9, atol=1e-9
    )
    assert len(count) == 5 + 5


def test_refused():
    ports = two_ports(pp.load("ur5"), np.zeros(6))
    for wrong in (
        lambda: two_ports(pp.Robot.of(zoo.free_tree(8, seed=2)), np.zeros(99)),
        lambda: two_ports(3, [0.0]),
        lambda: ports.on(3),
        lambda: ports[:2].on(ports[:3]),
        lambda: ports[0].joined(),
        lambda: ports[99],
        lambda: ports[0].repeated(0),
        lambda: ports[0].felt(np.arange(36.0).reshape(6, 6)),
    ):
        with pytest.raises(pp.Error):
            wrong()
