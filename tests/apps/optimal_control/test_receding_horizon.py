"""`pp.MPC` in `pp.simulate`."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import psiphi as pp
from tests.apps.optimal_control import robots


@cache
def upright_problem() -> pp.OptimalControl:
    return pp.OptimalControl(
        robots.cartpole(),
        dt=0.05,
        steps=40,
        running=[pp.cost.speed(0.02), pp.cost.posture([0.1, 0.5], at=[0, 0]), pp.cost.torque(0.02)],
        final=[pp.cost.posture([50.0, 200.0], at=[0, 0]), pp.cost.speed(20.0)],
        torque=15.0,
        actuated=robots.cartpole().joint_names[0],
    )


def simulated_cost(motion):
    """The mean running cost of motions, by the formula of the problem."""
    terms = 0.02 * motion.v**2 + [0.1, 0.5] * motion.q**2
    return 0.5 * (terms.sum(-1) + 0.02 * (motion.tau**2).sum(-1)).mean(-1)


def test_one_iteration_a_step_swings_up_and_stays_up():
    """20 of 20 starts, on a plant that rk4 integrates, at a cost close to the converged one."""
    offset = np.linspace(-0.5, 0.5, 20)
    q0, costs = np.c_[offset, np.pi + offset], []
    for iterations in (1, 20):
        control = pp.MPC(upright_problem(), iterations=iterations, first=200)
        motion = pp.simulate(robots.cartpole(), q0, tau=control, dt=0.0125, duration=4.0)
        upright = (np.abs(motion.final.q[:, 1]) < 0.1) & (np.abs(motion.final.v).max(-1) < 0.3)
        assert upright.all()
        tau = np.asarray(motion.tau)
        assert np.abs(tau).max() <= 15.0 and not tau[..., 1].any()
        assert (np.diff(tau[:, :4, 0], axis=1) == 0.0).all(), "constant between the nodes"
        costs.append(simulated_cost(motion).mean())
    assert costs[0] < 1.05 * costs[1]


def test_a_batch_is_its_motions_alone():
    q0 = np.array([[0.0, 0.3], [0.2, -0.2], [-0.1, 0.1]])
    options: dict[str, Any] = {"dt": 0.05, "duration": 0.5}
    plant, problem = robots.cartpole(), upright_problem()
    together = pp.simulate(plant, q0, tau=pp.MPC(problem), **options)
    for row in range(3):
        alone = pp.simulate(plant, q0[row], tau=pp.MPC(problem), **options)
        np.testing.assert_array_equal(np.asarray(alone.tau), np.asarray(together.tau)[row])


def test_goals_may_be_functions_of_time():
    """A point on a circle, tracked by a goal for each node."""
    robot = robots.pelican()
    center = robot.frame_pose([0.6, 0.8], "tool")[:3, 3]

    def circle(t):
        return center + 0.05 * np.array([np.cos(3.0 * t), 0.0, np.sin(3.0 * t)])

    problem = pp.OptimalControl(
        robot,
        dt=0.02,
        steps=15,
        running=[pp.cost.torque(1e-5), pp.cost.point("tool", 1e3, along=True)],
        final=[pp.cost.point("tool", 1e2, along=True)],
        torque=None,
    )
    q0 = pp.reach(robot, {"tool": circle(0.0)}, near=[0.6, 0.8]).q
    control = pp.MPC(problem, tool=circle)
    motion = pp.simulate(robot, q0, tau=control, dt=0.02, duration=1.0)
    miss = robot.frame_pose(motion.q, "tool")[:, :3, 3] - [circle(t) for t in motion.t]
    assert np.linalg.norm(miss[25:], axis=-1).max() < 5e-3
    assert control.plan is not None and control.plan.problem is problem
    np.testing.assert_allclose(control.plan.goals["tool"][3], circle(1.0 + 3 * 0.02), atol=1e-9)
    first = control(0.0, q0, np.zeros(2))  # an earlier time: starts again
    control.reset()
    np.testing.assert_array_equal(control(0.0, q0, np.zeros(2)), first)


def moved(goal):
    """The torque of a controller whose goal is a function of time."""
    final = [pp.cost.point("tool", 1.0, along=True)]
    problem = pp.OptimalControl(
        robots.pelican(), dt=0.2, steps=5, running=[pp.cost.torque(1.0)], final=final
    )
    return pp.MPC(problem, tool=goal)(0.0, np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pp.MPC(robots.pelican()), "expected a problem"),  # type: ignore[arg-type]
        (lambda: pp.MPC(robots.reach_problem()), "the goals are tool="),
        (lambda: pp.MPC(upright_problem(), tool=[0, 0, 0]), "the goals are none"),
        (lambda: pp.MPC(upright_problem(), iterations=0), "iterations is 0, expected 1 to"),
        (lambda: pp.MPC(upright_problem())(np.nan, [0.0], [0.0]), "not finite"),
        (lambda: pp.MPC(upright_problem())("0", [0.0], [0.0]), "t is '0'"),
        (lambda: moved(lambda t: 1.0 / t), "the goal 'tool' failed at t = 0: ZeroDivisionError"),
        (lambda: moved(lambda t: [0.0, 0.0, 0.0][: 2 + (t > 0.5)]), "do not fit together"),
        (lambda: moved(lambda t: 1.0), "the goal 'tool' has shape ()"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(pp.StateError) as error:
        make()
    assert words in str(error.value)
