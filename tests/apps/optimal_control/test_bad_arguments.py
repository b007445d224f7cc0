"""Bad problems and bad calls: what came, what was expected, what to do."""

import numpy as np
import pytest

import psiphi as pp
from tests.apps.optimal_control import robots

COST = [pp.cost.torque(1e-2)]


def problem(**changed):
    options = {"dt": 0.02, "steps": 10, "running": COST, "final": [pp.cost.point("tool", 1.0)]}
    robot = changed.pop("robot", None) or robots.pelican()
    return pp.OptimalControl(robot, **(options | changed))


def flexible():
    beam = {"section": dict(area=1.0, Iy=1e-6, Iz=1e-6, J=2e-6)}
    builder = pp.Builder("boom")
    builder.body("boom")
    builder.joint("root", "revolute", "world", "boom", axis=(0, 1, 0))
    builder.flexible("boom", pp.Beam(1.0, **beam, material=dict(E=1e6, density=1.0), planes="z"))
    return builder.build()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"running": []}, "nothing limits the torques: Quu may be singular"),
        ({"running": [pp.cost.torque([1.0, 0.0])]}, "nothing limits the torque of elbow"),
        ({"running": [pp.cost.torque([1.0, 1.0, 1.0])]}, "has 3 weights"),
        ({"running": pp.cost.torque(1.0)}, "expected a list"),
        ({"running": ["torque"]}, "expected a cost"),
        ({"final": COST}, "a cost of torques"),
        ({"final": [pp.cost.point("tol", 1.0)]}, "tool"),
        ({"final": [pp.cost.of(lambda q, v, u: [np.arctan(q) if q[0] > 0 else q])]}, "branch"),
        ({"final": [pp.cost.point("tool", 1.0), pp.cost.pose("tool", 1.0)]}, "share the goal"),
        ({"final": [pp.cost.posture(1.0, at=[0.1])]}, "at of pp.cost.posture has shape (1,)"),
        ({"final": [pp.cost.speed(1.0, at=np.nan)]}, "at of pp.cost.speed holds numbers that"),
        ({"final": [pp.cost.pose("tool", 1.0, at=np.zeros((4, 4)))]}, "not orthonormal"),
        ({"final": [pp.cost.point("tool", 1.0, at=np.eye(3))]}, "has batch axes (3,)"),
        ({"dt": 0.0}, "expected a positive number"),
        ({"steps": 0}, "expected 1 to"),
        ({"torque": [1.0, 2.0, 3.0]}, "expected one number or 2"),
        ({"torque": (1.0, -1.0)}, "give low < high"),
        ({"torque": np.nan}, "expected one number or 2"),
        ({"limits": "hard"}, "expected one of None, kept, soft"),
        ({"limits": "kept"}, "no joint of"),
        ({"speed": -1.0}, "expected one or nv = 2 positive numbers"),
        ({"hessian": "newton"}, "expected one of auto, gauss, full"),
        ({"actuated": []}, "has no motors"),
        ({"robot": robots.satellite(), "hessian": "full", "final": []}, "quaternions"),
        ({"robot": pp.load("g1"), "final": []}, "nv = 35, expected at most 20"),
        ({"robot": "ur5"}, "expected a robot"),
        ({"robot": robots.four_bar(), "hessian": "full", "final": []}, "embedded loops"),
        ({"robot": flexible(), "final": []}, "has flexible links"),
        ({"robot": pp.scenes.load("four_bar").system}, "Remedy: embed its loops"),
    ],
)
def test_problems_that_are_refused(changed, words):
    with pytest.raises(pp.Error) as error:
        problem(**changed)
    assert words in str(error.value) and error.value.remedy


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "are missing. Remedy: give solve(q, tool=...)"),
        ({"tol": [0, 0, 0]}, "no cost has the goal 'tol'"),
        ({"tool": [0, 0]}, "expected (..., 3)"),
        ({"tool": [0, 0, np.nan]}, "not finite"),
        ({"tool": np.zeros((3, 3)), "q": np.zeros((2, 2))}, "batch axes do not fit together"),
        ({"tool": [0, 0, 0], "q": [0.0, np.nan]}, "expected finite numbers"),
        ({"tool": [0, 0, 0], "q": [0.0]}, "expected (..., 2)"),
        ({"tool": [0, 0, 0], "torques": np.zeros((9, 2))}, "expected (..., 10, 2)"),
        ({"tool": [0, 0, 0], "states": np.zeros((11, 2))}, "expected (q, v)"),
        ({"tool": [0, 0, 0], "near": 3}, "expected an OptimalMotion"),
        ({"tool": [0, 0, 0], "shift": 1}, "shift is given without near"),
        ({"tool": [0, 0, 0], "iterations": -1}, "whole number"),
        ({"tool": [0, 0, 0], "tolerance": 0.0}, "positive number"),
        ({"tool": [0, 0, 0], "parameters": [1.0]}, "no free parameters"),
        ({"tool": [0, 0, 0], "torques": 1e300 * np.ones((10, 2))}, "diverges at node"),
    ],
)
def test_calls_that_are_refused(arguments, words):
    made = problem(torque=None)
    start = {"q": np.zeros(2)} | arguments
    with pytest.raises(pp.Error) as error:
        made.solve(**start)
    assert words in str(error.value) and error.value.remedy


def test_a_pose_is_the_goal_of_a_point_by_its_position():
    """Its rotation would be a batch of three points."""
    pose = pp.Pose(np.eye(3), np.array([0.1, 0.2, 0.3]))
    for made, tool in ((problem(), {"tool": pose}), (problem(final=[_point(pose)]), {})):
        found = made.solve(np.zeros(2), iterations=1, **tool)
        same = problem().solve(np.zeros(2), iterations=1, tool=pose.translation)
        assert found.batch == () and found.cost == same.cost


def _point(at):
    return pp.cost.point("tool", 1.0, at=at)


def test_elements_are_places_of_the_batch():
    """A slice, None or a boolean is no place."""
    found = problem().solve(np.zeros((2, 2)), tool=[0, 0, 0], iterations=1)
    for wrong in ((2,), (True,), (None,), (slice(None),), (0.0,), (0, 0), ()):
        with pytest.raises(pp.StateError, match="one index per batch axis"):
            found.element(*wrong)


def test_a_start_outside_the_limits_is_named():
    made = problem(speed=1.0)
    with pytest.raises(pp.StateError, match=r"the speed of elbow by 0\.5"):
        made.solve([0, 0], [0.0, -1.5], tool=[0, 0, 0])


def test_one_diverging_element_stays_alone():
    made, (q, v, goal) = robots.reach_problem(), robots.reach_batch(3)
    fast = np.array([v[0], [1e160, 0.0], v[2]])
    found = made.solve(q, fast, tool=goal)
    assert list(found.converged) == [True, False, True]
    assert "2 of 3 converged" in repr(found)
    assert np.array_equal(found.u[2], made.solve(q[2], v[2], tool=goal[2]).u)


def test_a_problem_that_is_not_solved_says_so():
    made, (q, v, goal) = robots.reach_problem(), robots.reach_batch(1)
    found = made.solve(q[0], v[0], tool=goal[0], iterations=1)
    assert not found.converged and "not converged" in repr(found) and found.residual > 0.0
