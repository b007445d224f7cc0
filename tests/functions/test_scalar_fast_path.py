"""One state at a time, as in control loops: after the first call the fast path is used, with the
same results and errors."""

from functools import lru_cache

import numpy as np
import pytest

import psiphi as pp
from psiphi.robot.operational_inertia import inverse
from psiphi.robot.robot import Robot
from tests import zoo
from tests.robot.embedding.mechanisms import fourbar

CALLS = {
    "forward_dynamics": lambda robot, q, v, a, **more: robot.forward_dynamics(q, v, a, **more),
    "inverse_dynamics": lambda robot, q, v, a, **more: robot.inverse_dynamics(q, v, a, **more),
    "gravity": lambda robot, q, v, a, **more: robot.gravity(q, **more),
    "mass_matrix": lambda robot, q, v, a, **more: robot.mass_matrix(q, **more),
    "jacobian": lambda robot, q, v, a, **more: robot.jacobian(q, "tool", **more),
    "function": lambda robot, q, v, a, **more: robot.function("bias")(q, v, **more),
    "gradient": lambda robot, q, v, a, **more: robot.function("forward_dynamics").vjp("q")(
        q, v, a, v, **more
    )[1],
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
    wide = [
        np.column_stack([x, x]).ravel()[::2] for x in state
    ]  # numbers that do not follow each other
    backwards = [x[::-1].copy()[::-1] for x in state]
    for given in (state, wide, backwards, [x.tolist() for x in state]):
        assert np.array_equal(call(robot, *given), first)
    assert np.array_equal(call(robot, *(np.stack([x, x]) for x in state))[1], first), (
        "a batch, behind single states"
    )
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
        with pytest.raises(pp.Error, match="quaternion of joint"):
            call(robot, zero, v, a)
        half = q.copy()  # half a turn: its last number is zero, and it is a rotation
        half[last - 3 : last + 1] = [1.0, 0.0, 0.0, 0.0]
        assert np.array_equal(call(robot, half, v, a), call(robot, half[None], v[None], a[None])[0])


LAWS = {
    "integrate": lambda robot, q, v, a: robot.integrate(q, v),
    "integrate for a time": lambda robot, q, v, a: robot.integrate(q, v, 0.1),
    "difference": lambda robot, q, v, a: robot.difference(q, robot.neutral()),
    "difference to": lambda robot, q, v, a: robot.difference(robot.neutral(), q),
    "rate": lambda robot, q, v, a: robot.rate(q, v),
    "velocity_of": lambda robot, q, v, a: robot.velocity_of(q, np.arange(1.0, robot.nq + 1.0)),
    "normalize": lambda robot, q, v, a: robot.normalize(2.0 * np.asarray(q)),
    "linearize": lambda robot, q, v, a: np.concatenate(robot.linearize(q, v, a), axis=-1),
    "inertia": lambda robot, q, v, a: robot.operational_space_inertia(q, "tool"),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_after_the_first_answer_as_the_first_and_as_a_batch(robot, state, name):
    call = LAWS[name]
    first = call(robot, *state)
    wide = [np.column_stack([x, x]).ravel()[::2] for x in state]
    for given in (state, wide, [x[::-1].copy()[::-1] for x in state], [x.tolist() for x in state]):
        assert np.array_equal(call(robot, *given), first)
    batch = [np.stack([robot.neutral() if x is state[0] else 0.0 * x, x]) for x in state]
    assert np.array_equal(call(robot, *batch)[1], first), "a batch, behind single states"
    assert call(robot, *(x[:0] for x in batch)).shape == (0, *first.shape)
    single = call(robot, *(x.astype(np.float32) for x in state))
    np.testing.assert_allclose(single, first, rtol=1e-3, atol=1e-4 * np.abs(first).max())
    lost = call(robot, np.full(robot.nq, np.nan), *state[1:])
    assert np.isnan(lost).any() or (robot.manifold.is_flat and name in ("rate", "velocity_of")), (
        "dq/dt = v, wherever it is"
    )
    assert np.array_equal(call(robot, *state), first)


@pytest.mark.parametrize("name", list(LAWS)[:7])
def test_laws_are_the_models_own(robot, state, name):
    """The manifold's laws, run by NumPy: what the code is traced from."""
    np.testing.assert_allclose(
        LAWS[name](robot, *state), LAWS[name](robot.model, *state), rtol=0.0, atol=1e-14
    )


@pytest.mark.parametrize("name", LAWS)
def test_laws_refuse_a_quaternion_of_zeros_at_first_and_later(robot, state, name):
    call, (q, v, a) = LAWS[name], state
    for last in robot.quaternions:
        zero = q.copy()
        zero[last - 3 : last + 1] = 0.0
        for _ in range(2):
            with pytest.raises(pp.Error, match="quaternion of joint"):
                call(robot, zero, v, a)
            call(robot, q, v, a)
        with np.errstate(all="ignore"):
            found = call(
                robot, *(np.stack([x, y]) for x, y in zip((zero, v, a), state, strict=True))
            )
        assert np.isnan(found[0]).any(), "in a batch, NaN where it is"
        assert np.array_equal(found[1], call(robot, q, v, a))


def test_configurations_of_embedded_loops_are_moved_by_code():
    tree, loops, options = fourbar()
    robot, rng = pp.embed(tree, loops, **options), np.random.default_rng(0)
    q, v = robot.random(rng, size=(3,)), rng.standard_normal((3, robot.nv))
    moved = robot.integrate(q, v, 0.1)
    np.testing.assert_allclose(moved, robot.model.integrate(q, v, 0.1), atol=1e-13)
    assert np.array_equal(robot.integrate(q[1], v[1], 0.1), moved[1])


def test_steps_of_any_kind_of_dt(robot, state):
    q, v, _ = state
    right = robot.integrate(q, v, 0.5)
    for dt in (np.float64(0.5), np.array(0.5), np.float32(0.5)):
        assert np.array_equal(robot.integrate(q, v, dt), right)
    assert np.array_equal(robot.integrate(q, v, [0.5, 1.0]), [right, robot.integrate(q, v)])
    assert np.array_equal(robot.integrate(q, v, 1), robot.integrate(q, v)), "a whole number"


DTS = [
    1.0,
    1,
    np.float32(1),
    np.array(1.0),
    np.array([1.0]),
    [1.0],
    np.ones((2, 1)),
    True,
    np.array([True]),
    "1",
    1j,
    None,
]
DTS += [-1.0, np.array([-1.0]), np.array([np.nan]), np.inf]


@pytest.mark.parametrize("method", ["step", "linearize"])
def test_any_dt_is_taken_after_a_first_call_as_at_first(method):
    """A scalar dt uses the fast path; an array is a batch, and an invalid dt is an error, whatever
    the earlier calls were."""
    known = pp.load("pelican")

    def answer(robot, dt):
        try:
            return [
                (type(x), x.shape, x.tolist())
                for x in getattr(robot, method)(np.ones(2), np.ones(2), np.ones(2), dt)
            ]
        except pp.Error as error:
            return str(error)

    for dt in DTS:
        _ = [answer(known, 1.0) for _ in range(2)]
        assert answer(known, dt) == answer(pp.load("pelican"), dt), dt


@pytest.mark.parametrize("policy", ["pseudo", "exact", "damped"])
def test_inertias_at_singular_postures_beside_regular_ones(policy):
    """Each element by itself: compiled code if there is an inverse, eigenvalues otherwise; float32
    rounding is no measure."""
    robot = pp.load("ur5")
    q = robot.random(seed=1, size=40)
    q[::3, 4] = 0.0
    found = robot.operational_space_inertia(q, "tool0", policy=policy)
    right = inverse(robot.operational_compliance(q, "tool0"), policy)
    assert np.array_equal(np.isnan(found), np.isnan(right)) and np.isnan(found).any() == (
        policy == "exact"
    )
    size = np.abs(right).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found / size, right / size, atol=1e-8)
    for k in (0, 1, 2, 3):
        assert np.array_equal(
            robot.operational_space_inertia(q[k], "tool0", policy=policy), found[k], equal_nan=True
        )
    single = robot.operational_space_inertia(q.astype(np.float32), "tool0", policy=policy)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single / size, right / size, atol=1e-3)


def test_results_that_share_memory_are_refused():
    robot = pp.robots.puma560()
    q, v, tau, room = (
        robot.random(seed=0, size=3),
        np.ones((3, 6)),
        np.zeros((3, 6)),
        np.empty((3, 6, 6)),
    )
    slopes = robot.function("forward_dynamics").jacobian("q", "v")
    right, whole = slopes(q, v, tau), np.empty((3, 6, 12))
    for out in ((room, room), (room, room[::-1]), (room.swapaxes(1, 2), room)):
        with pytest.raises(pp.Error, match="share memory"):
            slopes(q, v, tau, out=out)
    with pytest.raises(pp.Error, match="share memory"):
        robot.mass_matrix_factors(q, out=(room, room))
    slopes(q, v, tau, out=(whole[..., :6], whole[..., 6:]))
    assert np.array_equal(whole, np.concatenate(right, axis=-1)), (
        "two parts of one matrix are two arrays"
    )
