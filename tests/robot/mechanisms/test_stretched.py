"""All rows of a mechanism may be nothing but rounding: an arm stretched out, on the end of its
rope. They hold nothing there; where the motion pulls on the rope all the same, no acceleration
satisfies it, and the error says so."""

import numpy as np
import pytest

import psiphi as pp
from psiphi._util.errors import SingularError

Q = np.array([[0.3, 0.0], [-1.1, 0.0], [2.5, 0.0]])  # stretched out
REST, PULL = np.zeros((3, 2)), np.tile([0.0, 1.0], (3, 1))
TAU = np.array([[1.0, -2.0], [0.0, 0.5], [3.0, 0.0]])


@pytest.fixture(scope="module")
def rope():
    return pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.52)])


def test_what_no_acceleration_keeps_has_none(rope):
    found = rope.forward_dynamics_details(Q, PULL, TAU)
    assert np.isnan(found["a"]).all() and not found["solvable"].any()
    for q, tau in zip(Q, TAU, strict=True):
        with pytest.raises(SingularError, match="no acceleration satisfies"):
            rope.forward_dynamics(q, PULL[0], tau)


def test_at_rest_the_rope_holds_nothing(rope):
    found, robot = rope.forward_dynamics_details(Q, REST, TAU), rope.robot
    assert np.allclose(found["a"], robot.forward_dynamics(Q, REST, TAU), rtol=1e-12)
    assert (
        not found["rank"].any()
        and not found["unique"].any()
        and np.allclose(found["multipliers"], 0.0)
    )
    whole = robot.operational_compliance(Q, "tool")
    assert np.allclose(
        rope.effective_compliance(Q, "tool"), whole, atol=1e-12 * np.abs(whole).max()
    )
    wanted = np.array([[0.5, -1.0]])
    tau = rope.inverse_dynamics(Q, REST, wanted)
    assert np.allclose(tau, robot.inverse_dynamics(Q, REST, wanted), rtol=1e-12)
    assert np.allclose(rope.complete(Q, REST, wanted), wanted)


def test_derivatives_there_are_none_or_small(rope):
    """The rank changes beside such a state: what is given may not be made of rounding."""
    f = rope.function("forward_dynamics")
    for name in ("q", "tau"):
        slopes = f.jacobian(name)(Q, REST, TAU)
        assert (np.isnan(slopes) | (np.abs(slopes) < 1e4)).all(), name
