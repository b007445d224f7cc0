"""`check=True` refuses states of closed chains that violate the constraints."""

import numpy as np
import pytest

import psiphi as pp


def chain():
    system = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
    q = system.assemble([0.5, 1.0])
    return system, q, system.project(q, [0.3, -0.2])[1]


CALLS = {
    "forward_dynamics": lambda s, q, v, **o: s.forward_dynamics(q, v, 0 * v, **o),
    "by KKT": lambda s, q, v, **o: s.forward_dynamics(q, v, 0 * v, method="KKT", **o),
    "inverse_dynamics": lambda s, q, v, **o: s.inverse_dynamics(q, v, s.complete(q, v, 0 * v), **o),
    "complete": lambda s, q, v, **o: s.complete(q, v, 0 * v, **o),
    "linearize": lambda s, q, v, **o: s.linearize(q, v, 0 * v, **o)[0],
    "linearized step": lambda s, q, v, **o: s.linearize(q, v, 0 * v, dt=1e-3, **o)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_open_loops_are_refused(name):
    system, q, v = chain()
    call = CALLS[name]
    np.testing.assert_array_equal(call(system, q, v, check=True), call(system, q, v))
    for bad_q, bad_v, words in (
        (q + np.array([0.0, 0.1]), v, r"is open by 0\.0\d+ \(m or rad\)"),
        (q, v + np.array([0.0, 1.0]), r"opens at 0\.\d+ \(m/s or rad/s\)"),
    ):
        with pytest.raises(pp.StateError, match=words) as error:
            call(system, bad_q, bad_v, check=True)
        assert "system.project(q, v)" in str(error.value)
    batch = np.stack([q, q, q + np.array([0.0, 0.1])]), np.stack([v, v, v])
    with pytest.raises(pp.StateError, match=r"2.* is open by"):
        call(system, *batch, check=True)


def test_small_errors_of_a_motion_pass():
    """A motion without projection drifts by less than the tolerance."""
    system, q, v = chain()
    motion = pp.simulate(system, q, v, duration=0.1, dt=1e-3, projection=False)
    system.forward_dynamics(motion.q, motion.v, 0 * motion.v, check=True)


def test_fast_motions_are_judged_by_their_speed():
    system, q, v = chain()
    fast = 1e9 * v
    rounding = 1e-9 * np.abs(fast).max()
    system.forward_dynamics(q, fast + np.array([rounding, 0.0]), 0 * v, check=True)
