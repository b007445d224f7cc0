"""User-defined laws: rules that run in steps of Python and in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.spatial.branch_free import maximum, minimum
from psiphi.simulation.control.control_law import Controller, Law, Step
from tests.simulation.rollout.test_rollout import agree, both
from tests.simulation.simulate.motions import juggler, puma, state


class Own(Controller):
    """Gravity, then one rule."""

    def __init__(self, robot, rule, **numbers):
        super().__init__(robot)
        self.law = Law((Step("gravity", {"tau": "g"}), Step(rule)), ())
        self.numbers = {name: np.full(robot.nv, x) for name, x in numbers.items()}


def pull(m, q, v, stiffness, g):
    return {"tau": g - stiffness * np.sin(v) + np.sqrt(v * v + 1.0)}


def held(m, q, v, most_of, g):
    return {"tau": g + minimum(maximum(-3.0 * v, -most_of), most_of)}


class Two(Controller):
    """Two frames, a rule that couples all joints, and place names that integrators use as well."""

    def __init__(self, robot, *frames):
        super().__init__(robot)
        poses = [
            Step("frame_pose", {"T": name}, frame) for name, frame in zip("AK", frames, strict=True)
        ]
        self.law = Law((Step("gravity", {"tau": "h"}), *poses, Step(self.rule, sizes=SIZES)), ())
        self.numbers = {"side": np.full(6, 3.0)}

    @staticmethod
    def rule(m, v, h, A, K, side):
        return {"tau": h - side * v.sum(axis=-1, keepdims=True) + (A[..., 3:4] - K[..., 7:8])}


SIZES = {"v": 6, "h": 6, "A": 16, "K": 16, "side": 6}


def test_names_of_a_law_are_its_own():
    robot = puma()
    q, v = state(robot, 3)
    frames = list(robot.frames)[3], list(robot.frames)[-1]
    first, second = (both(robot, q, v, Two(robot, *which)) for which in (frames, frames[::-1]))
    agree(*first)
    agree(*second)
    assert np.abs(first[0].tau - second[0].tau).max() > 1e-3, "another frame is another kernel"


def test_a_rule_may_look_at_all_joints_of_a_large_robot():
    robot = pp.robots.chain(66)
    q, v = state(robot, 1)

    def rule(m, v, g):
        return {"tau": g - 1e-3 * v.sum(axis=-1, keepdims=True)}

    agree(*both(robot, q, v, Own(robot, rule), duration=2e-4, dt=1e-4))


@pytest.mark.parametrize("robot", [puma, juggler], ids=["puma", "juggler"])
def test_a_law_of_ones_own_compiles(robot):
    q, v = state(robot(), 3, 4)
    for control in (Own(robot(), pull, stiffness=4.0), Own(robot(), held, most_of=0.5)):
        agree(*both(robot(), q, v, control))


def test_two_laws_of_one_name_are_two_kernels():
    """The trace of a rule is part of the kernel's key: names of users' rules are not unique."""

    def law(sign):
        def rule(m, q, v, g):
            return {"tau": g + sign * v}

        return rule

    robot = puma()
    q, v = state(robot, 3)
    ends = [pp.rollout(robot, q, v, Own(robot, law(sign)), steps=20)[1][-1] for sign in (1.0, -1.0)]
    assert np.abs(ends[0]).sum() > np.abs(ends[1]).sum()
