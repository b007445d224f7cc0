"""Huge, tiny and impossible numbers: an answer, NaN in that batch element alone with a warning, or
a refusal in words."""

import warnings
from functools import cache

import numpy as np
import pytest

import psiphi as pp
from tests.functions.call_cases import DOORS, arguments, gymnast, knock_name, parts

ZEROS = {"float": slice(3, 7), "shoulder": slice(7, 11)}  # the gymnast's two quaternions


@pytest.mark.parametrize("joint", ZEROS)
@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_a_zero_quaternion_of_one_state_is_refused(door, joint):
    given = arguments(gymnast())
    for zero in (0.0, 1e-200, -0.0):
        given["q"][ZEROS[joint]] = zero
        for q in (given["q"], given["q"].tolist(), np.asfortranarray(given["q"])):
            for _ in range(2):  # the second call of one state has a door of its own
                with pytest.raises(
                    pp.StateError, match=rf"{door.name}: the quaternion of joint '{joint}' is zero"
                ):
                    door(gymnast(), given | {"q": q})


@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_a_zero_quaternion_in_a_batch_stays_there(door):
    given = arguments(gymnast(), (3,))
    expected = parts(door(gymnast(), given))
    given["q"][1, ZEROS["float"]] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for ours, theirs in zip(parts(door(gymnast(), given)), expected, strict=True):
            np.testing.assert_array_equal(ours[::2], theirs[::2])
    with pytest.raises(pp.StateError, match="joint 'float' in batch element 1"):
        door(gymnast(), given, check=True)


def _weighed(expression, *vectors):
    function = pp.function(expression)
    return lambda q, **options: function(q, *vectors, **options)


@cache
def _turned_doors() -> dict:
    """Ways to ask about one q, besides the methods of `DOORS`."""
    robot = gymnast()
    v, s, light = np.ones(robot.nv), robot.operators, gymnast().free("mass")
    forward, frame, p = robot.function("forward_dynamics"), "tool", light.parameters()
    return {
        "function": lambda q: forward(q, v, v),
        "jacobian": lambda q: forward.jacobian("q", "v", "tau")(q, v, v),
        "jacobian by tau": lambda q: forward.jacobian("tau")(q, v, v),
        "jvp": lambda q: forward.jvp("q")(q, v, v, v),
        "vjp": lambda q: forward.vjp("q")(q, v, v, v),
        "hessian": lambda q: robot.function("gravity").hessian("q")(q, v),
        "expression": _weighed(s.J(frame) @ s.mass.inv @ s.J(frame).T),
        "expression of a vector": _weighed(s.mass @ pp.vector("x"), v),
        "its derivative": lambda q: pp.function(s.mass @ pp.vector("x")).jacobian("q")(q, v),
        "around an inverse": _weighed((s.mass + s.mass @ s.mass).inv @ pp.vector("x"), v),
        "dense": lambda q: s.mass.dense(q),
        "parameters": lambda q: light.bias(q, v, parameters=p),
        "function of parameters": lambda q: light.function("bias").jacobian("parameters")(q, v, p),
        "wrench_regressor": lambda q: robot.wrench_regressor(q, v, v, robot.bodies[-1].name),
        "energy_regressor": lambda q: robot.energy_regressor(q, v),
        "operational_space_inertia": lambda q: robot.operational_space_inertia(q, frame),
        "damped": lambda q: robot.operational_space_inertia(q, frame, policy="damped"),
        "step": lambda q: robot.step(q, v, v, 1e-3),
        "linearize": lambda q: robot.linearize(q, v, v),
        "linearize a step": lambda q: robot.linearize(q, v, v, 1e-3),
        "rate": lambda q: robot.rate(q, v),
        "velocity_of": lambda q: robot.velocity_of(q, np.ones(robot.nq)),
    }


@pytest.mark.parametrize("name", _turned_doors())
def test_every_door_refuses_a_zero_quaternion_of_one_state_and_keeps_it_in_a_batch(name):
    """However its numbers came: as a list, whole, of float32; at first and later."""
    door, robot = _turned_doors()[name], gymnast()
    good = robot.neutral()
    for joint, own in ZEROS.items():
        zero = good.copy()
        zero[own] = 0.0
        for q in (zero, zero.tolist(), zero.astype(int), zero.astype(np.float32)):
            for _ in range(2):
                with pytest.raises(
                    pp.StateError, match=rf"the quaternion of joint '{joint}' is zero"
                ):
                    door(q)
                door(good)
        with np.errstate(all="ignore"):
            found, right = parts(door(np.stack([good, zero, good]))), parts(door(good))
        for ours, theirs in zip(found, right, strict=True):
            np.testing.assert_array_equal(ours[::2], np.stack([theirs, theirs]))


def test_the_configuration_space_has_no_zero_quaternion():
    robot, q = gymnast(), gymnast().random(seed=0)
    v, bad = np.ones(robot.nv), q.copy()
    bad[7:11] = 0.0
    calls = [
        lambda q: robot.integrate(q, v),
        lambda q: robot.normalize(q),
        lambda x: robot.difference(q, x),
        lambda x: robot.difference(x, q),
        lambda q: robot.diagonalised.velocities(q, v),
        lambda q: robot.diagonalised.integrate(q, v),
    ]
    for call in calls:
        call(q)
        with pytest.raises(pp.StateError, match="quaternion of joint 'shoulder' is zero"):
            call(bad)
    bad[3:7] = 0.0
    with np.errstate(all="ignore"):
        moved = robot.integrate(np.stack([q, bad]), v)
    assert np.isfinite(moved[0]).all() and np.isnan(moved[1]).any()


def test_a_quaternion_that_only_looks_like_zero():
    """w = 0 is half a turn; NaN is no zero."""
    robot, given = gymnast(), arguments(gymnast())
    given["q"][3:7] = (0.0, 1.0, 0.0, 0.0)
    assert np.isfinite(robot.forward_dynamics(given["q"], given["v"], given["tau"])).all()
    given["q"][3:7] = (np.nan, 0.0, 0.0, 0.0)
    with np.errstate(all="ignore"):
        assert np.isnan(robot.forward_dynamics(given["q"], given["v"], given["tau"])).any()


SIZES = [1e-320, 1e-200, 1e-100, 1e-30, 1e-9, 1.0, 1e9, 1e30, 1e100, 1e150, 1e300]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("what", ["mass", "length", "both"])
def test_robots_of_any_size_answer_or_are_refused(size, what):
    """A chain of three links, its masses and lengths of that size."""
    mass, length = (
        (size if what in ("mass", "both") else 1.0),
        (size if what in ("length", "both") else 1.0),
    )
    b = pp.Builder("chain", gravity=(0, 0, 0))
    try:
        for k in range(3):
            J = 0.1 * mass * length * length
            b.body(f"l{k}", mass, com=(0.3 * length, 0, 0), inertia=np.diag([J, J, J]))
            b.joint(
                f"j{k}",
                "revolute",
                f"l{k - 1}" if k else "world",
                f"l{k}",
                axis=np.eye(3)[k],
                xyz=(length * (k > 0), 0, 0),
            )
        robot = b.build()
    except pp.Error as error:
        assert error.remedy
        return
    q, v = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, 0.5])
    with np.errstate(all="ignore"):
        tau = robot.inverse_dynamics(q, v, v)
        a = robot.forward_dynamics(q, v, tau)
    if np.isfinite(a).all() and np.isfinite(tau).all() and 1e-100 <= size <= 1e100:
        np.testing.assert_allclose(a, v, rtol=1e-6)
    else:
        with np.errstate(all="ignore"), pytest.raises(pp.Error):
            robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, v, check=True), check=True)
            np.testing.assert_allclose(a, v, rtol=1e-6)
            raise pp.Error("the answer is right")
