"""[optimal_control] in scenes: `SceneSetup.optimise`, and the controller "mpc"."""

from pathlib import Path

import numpy as np
import pytest

import psiphi as pp
from psiphi import scenes
from psiphi._util.errors import Error
from tests.apps.optimal_control import robots

EXAMPLES = Path(__file__).parents[3] / "examples"
ARM = '[robots.arm]\nrobot = "pelican"\nq = [0.6, 0.8]\n'
PROBLEM = "[optimal_control]\ndt = 0.02\nsteps = 5\n"
TORQUE = '[[optimal_control.running]]\ncost = "torque"\nweight = 1e-3\n'


def load(tmp_path, text: str) -> scenes.SceneSetup:
    file = tmp_path / "scene.toml"
    file.write_text(text, encoding="utf-8")
    return scenes.load(file)


def test_a_swing_up():
    """The scene is the problem that the same words make in Python; MPC balances the pole."""
    case = scenes.load(EXAMPLES / "swing_up.toml")
    seen = []
    found = case.optimise(progress=lambda k, cost: seen.append((k, float(cost))))
    expected = robots.swing_problem().solve([0.0, np.pi], iterations=300)
    assert found.converged and np.array_equal(found.u, expected.u)
    assert [k for k, _ in seen] == list(range(1, len(seen) + 1)) and seen[-1][1] == found.cost
    motion = case.run()
    assert isinstance(case.tau, pp.MPC) and case.tau.iterations == 1 and case.tau.first == 300
    assert np.abs(motion.final.q[1]) < 0.1 and np.abs(motion.tau).max() <= 10.0
    both = case.optimise(q0=[[0.0, 3.0], [0.0, 3.2]], iterations=2)
    assert both.q.shape == (2, 51, 2) and not both.converged.any()


def test_goals_on_a_path():
    """The tool is where the path says, with the profile of minimum jerk between its stops."""
    case = scenes.load(EXAMPLES / "tool_path.toml")
    problem, robot = case.optimal_control, case.system
    assert problem is not None
    (goal,) = problem.goals.values()
    start = robot.frame_pose(case.q0, "tool")[:3, 3]
    np.testing.assert_allclose(goal(0.0), start, atol=1e-12)
    middle = 0.5 * (start + np.array([0.36, 0.0, -0.20]))
    np.testing.assert_allclose(goal(0.25), middle, atol=1e-12)
    np.testing.assert_allclose(goal(9.0), [0.36, 0.0, -0.32], atol=1e-12)
    planned = case.optimise()
    miss = robot.frame_pose(planned.q, "tool")[:, :3, 3] - [goal(t) for t in planned.t]
    assert np.abs(miss).max() < 2e-3
    motion = case.run()
    miss = robot.frame_pose(motion.q, "tool")[:, :3, 3] - [goal(t) for t in motion.t]
    assert np.abs(miss).max() < 5e-3


def test_every_cost_and_option(tmp_path):
    """What the keys of each cost become."""
    text = f"""passive = ["elbow"]\n{ARM}
[optimal_control]
dt = 0.02
steps = 5
torque = {{ low = [-1.0], high = [2.0] }}
speed = [2.0, 3.0]
limit_weight = 10.0
hessian = "gauss"
tolerance = 1e-9
[optimal_control.paths]
sway = [{{ t = 1.0, at = [0.0, 0.5] }}]
{TORQUE}at = [0.5]
[[optimal_control.running]]
cost = "posture"
weight = [1.0, 2.0]
path = "sway"
[[optimal_control.running]]
cost = "posture"
weight = 1.0
at = {{ elbow = 0.1 }}
[[optimal_control.final]]
cost = "pose"
frame = "tool"
weight = [1.0, 10.0]
at = [0.3, 0.0, -0.3]
rpy = [0.0, 0.5, 0.0]
[[optimal_control.final]]
cost = "direction"
frame = "tool"
axis = [0, 0, 1]
at = [0, 0, -1]
weight = 1.0
[[optimal_control.final]]
cost = "orientation"
frame = "tool"
rpy = [0.0, 0.5, 0.0]
weight = 1.0
[[optimal_control.final]]
cost = "center_of_mass"
at = [0.0, 0.0, -0.3]
weight = 1.0
[[optimal_control.final]]
cost = "momentum"
weight = 1.0
"""
    case = load(tmp_path, text)
    made = case.optimal_control
    assert made is not None
    problem = made.problem
    assert problem.bounds is not None and [x.tolist() for x in problem.bounds] == [[-1.0], [2.0]]
    assert problem.motors == (0,) and problem.hessian == "gauss" and problem.limit_kind == "kept"
    assert [row[2] for row in problem.limits if row[0] > 1] == [-2.0, 2.0, -3.0, 3.0]
    assert (made.tolerance, made.iterations, problem.limit_weight) == (1e-9, 100, 10.0)
    torque, moving, posture = problem.running
    assert torque.cost.at == [0.5] and moving.has_goal and moving.cost.along
    assert posture.cost.at.tolist() == [0.6, 0.1]
    pose, direction, orientation, mass, momentum = problem.final
    assert pose.weights.tolist() == [1.0] * 3 + [10.0] * 3
    np.testing.assert_allclose(pose.cost.at.rotation, orientation.cost.at)
    assert direction.cost.at == [0.0, 0.0, -1.0] and momentum.cost.at == 0.0
    assert mass.cost.at == [0.0, 0.0, -0.3]


POINT = '[[optimal_control.final]]\ncost = "point"\nframe = "tool"\nweight = 1.0\n'
MISTAKES = [
    (PROBLEM + TORQUE + POINT, "optimal_control.final[0].at: is missing"),
    (PROBLEM + TORQUE + POINT + "at = [0, 1]\n", "final[0].at: is [0, 1], expected a list of 3"),
    (PROBLEM + TORQUE + POINT + 'path = "way"\n', "final[0].path: is 'way', and there are no"),
    (PROBLEM + TORQUE.replace("torque", "torqe"), "running[0].cost: is 'torqe', expected one of"),
    (PROBLEM + TORQUE.replace("1e-3", "[1, 2, 3]"), "running[0].weight: pp.cost.torque has 3"),
    (PROBLEM + TORQUE.replace("1e-3", "-1"), "running[0].weight: is -1.0, expected positive"),
    (PROBLEM + TORQUE + "wieght = 1\n", "running[0].wieght: no such key"),
    (PROBLEM, "optimal_control: OptimalControl: nothing limits the torques"),
    (PROBLEM.replace("5", "0.5") + TORQUE, "optimal_control.steps: is 0.5, expected a positive"),
    (PROBLEM.replace("0.02", "-1") + TORQUE, "optimal_control.dt: is -1, expected more than 0"),
    (PROBLEM + "torque = [1, 2, 3]\n" + TORQUE, "optimal_control.torque: torque is [1.0, 2.0, 3"),
    (PROBLEM + 'limits = "hard"\n' + TORQUE, "optimal_control.limits: is 'hard', expected one of"),
    (PROBLEM + 'speed = "fast"\n' + TORQUE, "optimal_control.speed: is 'fast', expected one of"),
    (PROBLEM + "iterations = true\n" + TORQUE, "optimal_control.iterations: is True, expected"),
    (PROBLEM + "paths = { way = [{ t = 1.0, at = [1.0] }] }\n" + TORQUE, "paths.way: is not used"),
    (
        PROBLEM + "paths = { way = [{ t = 1.0, at = [1.0] }] }\n" + POINT + 'path = "way"\n',
        "paths.way[0].at: has 1 numbers, and the cost point expects 3",
    ),
    (
        PROBLEM + "paths = { w = [{ t = 1.0, at = [1] }, { t = 1.0, at = [1] }] }\n",
        "paths.w: its times do not increase",
    ),
    (PROBLEM + TORQUE + "[ground]\n", "optimal_control: is given, and so is [ground]"),
    ('[controller]\nkind = "mpc"\n', "controller.kind: mpc solves a problem, and there is none"),
    (PROBLEM + TORQUE + '[controller]\nkind = "mpc"\nfirst = 0\n', "controller.first: is 0"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES)
def test_mistakes_name_their_key(text, words, tmp_path):
    with pytest.raises(Error) as error:
        load(tmp_path, ARM + text)
    assert words in str(error.value) and "scene.toml" in str(error.value)


def test_what_cannot_be_optimised(tmp_path):
    with pytest.raises(Error, match="has no problem of optimal control"):
        load(tmp_path, ARM).optimise()
    with pytest.raises(Error, match="damping = true, and problems of optimal control have no"):
        load(tmp_path, "damping = true\n" + ARM + PROBLEM + TORQUE).optimise()
    with pytest.raises(Error, match=r"scene.toml: passive: no joint 'tail'"):
        load(tmp_path, 'passive = ["tail"]\n' + ARM + PROBLEM + TORQUE)
    with pytest.raises(Error, match="closed chain is not implemented"):
        bars = '[robots.arm]\nrobot = "pelican"\n'
        loops = '[[loops]]\nkind = "distance"\nfirst = "tool"\nsecond = "world"\nlength = 0.3\n'
        load(tmp_path, bars + loops + PROBLEM + TORQUE)
