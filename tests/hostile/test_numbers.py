"""Huge, tiny and impossible numbers: an answer, NaN in that batch element alone with a warning, or a refusal in words."""

import warnings

import numpy as np
import pytest

import psiphi as pp
from functions.doors import DOORS, arguments, gymnast, knock_name, parts

ZEROS = {"float": slice(3, 7), "shoulder": slice(7, 11)}  # the gymnast's two quaternions


@pytest.mark.parametrize("joint", ZEROS)
@pytest.mark.parametrize("door", DOORS, ids=knock_name)
def test_a_zero_quaternion_of_one_state_is_refused(door, joint):
    given = arguments(gymnast())
    for zero in (0.0, 1e-200, -0.0):
        given["q"][ZEROS[joint]] = zero
        for q in (given["q"], given["q"].tolist(), np.asfortranarray(given["q"])):
            for _ in range(2):  # the second call of one state has a door of its own
                with pytest.raises(pp.StateError, match=rf"{door.name}: the quaternion of joint '{joint}' is zero"):
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
    mass, length = (size if what in ("mass", "both") else 1.0), (size if what in ("length", "both") else 1.0)
    b = pp.Builder("chain", gravity=(0, 0, 0))
    try:
        for k in range(3):
            J = 0.1 * mass * length * length
            b.body(f"l{k}", mass, com=(0.3 * length, 0, 0), inertia=np.diag([J, J, J]))
            b.joint(
                f"j{k}", "revolute", f"l{k - 1}" if k else "world", f"l{k}", axis=np.eye(3)[k], xyz=(length * (k > 0), 0, 0)
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
