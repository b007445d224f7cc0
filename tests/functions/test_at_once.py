"""One state at a time, as control loops ask: after the first call a function goes at once, and answers as before."""

from functools import lru_cache

import numpy as np
import pytest

import psiphi as pp
import zoo
from psiphi.functions.robot import Robot

CALLS = {
    "forward_dynamics": lambda robot, q, v, a, **more: robot.forward_dynamics(q, v, a, **more),
    "inverse_dynamics": lambda robot, q, v, a, **more: robot.inverse_dynamics(q, v, a, **more),
    "gravity": lambda robot, q, v, a, **more: robot.gravity(q, **more),
    "mass_matrix": lambda robot, q, v, a, **more: robot.mass_matrix(q, **more),
    "jacobian": lambda robot, q, v, a, **more: robot.jacobian(q, "tool", **more),
    "function": lambda robot, q, v, a, **more: robot.function("bias")(q, v, **more),
    "gradient": lambda robot, q, v, a, **more: robot.function("forward_dynamics").vjp("q")(q, v, a, v, **more)[1],
    "expression": lambda robot, q, v, a, **more: _compliance(robot)(q, **more),
}
ROBOTS = {
    "no quaternion": ["revolute", "prismatic", "universal"],
    "one": ["free", "revolute"],
    "two": ["free", "spherical", "revolute"],
}


@lru_cache(maxsize=4)
def _compliance(robot: Robot):
    s = robot.operators
    return pp.function(s.J("tool") @ s.mass.inv @ s.J("tool").T)


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request) -> Robot:
    return Robot.of(zoo.chain("chain", ROBOTS[request.param], seed=3))


@pytest.fixture
def state(robot):
    rng = np.random.default_rng(1)
    return robot.random(seed=1), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_calls_after_the_first_answer_as_the_first_and_as_a_batch(robot, state, call):
    first = call(robot, *state)
    wide = [np.column_stack([x, x]).ravel()[::2] for x in state]  # numbers that do not follow each other
    backwards = [x[::-1].copy()[::-1] for x in state]
    for given in (state, wide, backwards, [x.tolist() for x in state]):
        assert np.array_equal(call(robot, *given), first)
    assert np.array_equal(call(robot, *(np.stack([x, x]) for x in state))[1], first), "a batch, behind single states"
    assert call(robot, *(x.astype(np.float32) for x in state)).dtype == np.float32
    assert call(robot, *state, dtype=np.float32).dtype == np.float32
    lost = call(robot, np.full(robot.nq, np.nan), *state[1:])
    assert np.isnan(lost).any() and np.array_equal(call(robot, *state), first)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_what_is_refused_at_first_is_refused_later(robot, state, call):
    q, v, a = state
    call(robot, q, v, a)
    with pytest.raises(pp.Error, match="q has"):
        call(robot, q[:-1], v, a)
    with pytest.raises(pp.Error, match="q "):
        call(robot, ["a"] * robot.nq, v, a)
    for last in robot.quaternions:
        zero = q.copy()
        zero[last - 3 : last + 1] = 0.0
        if call is CALLS["expression"]:  # it may be finite there: of no turn
            assert np.array_equal(call(robot, zero, v, a), call(robot, zero[None], v, a)[0], equal_nan=True)
        else:
            with pytest.raises(pp.Error, match="quaternion of joint"):
                call(robot, zero, v, a)
        half = q.copy()  # half a turn: its last number is zero, and it is a rotation
        half[last - 3 : last + 1] = [1.0, 0.0, 0.0, 0.0]
        assert np.array_equal(call(robot, half, v, a), call(robot, half[None], v[None], a[None])[0])


def test_results_that_share_memory_are_refused():
    robot = pp.robots.puma560()
    q, v, tau, room = robot.random(seed=0, size=3), np.ones((3, 6)), np.zeros((3, 6)), np.empty((3, 6, 6))
    slopes = robot.function("forward_dynamics").jacobian("q", "v")
    right, whole = slopes(q, v, tau), np.empty((3, 6, 12))
    for out in ((room, room), (room, room[::-1]), (room.swapaxes(1, 2), room)):
        with pytest.raises(pp.Error, match="share memory"):
            slopes(q, v, tau, out=out)
    with pytest.raises(pp.Error, match="share memory"):
        robot.mass_matrix_factors(q, out=(room, room))
    slopes(q, v, tau, out=(whole[..., :6], whole[..., 6:]))
    assert np.array_equal(whole, np.concatenate(right, axis=-1)), "two parts of one matrix are two arrays"
