"""Every law, on every robot of the zoo (the smaller ones compiled), and on random trees as the
interpreter understands them."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psiphi.robot.robot import Robot
from psiphi_bench.interpreted_robot import Interpreted
from tests.theorems.laws import LAWS, holds, state
from tests.zoo import ZOO, random_state, trees

NIGHTLY = os.environ.get("PSIPHI_HYPOTHESIS") == "nightly"


COMPILED = [name for name, make in ZOO if make().nv <= 8 or name == "floating"]


@cache
def robot_of(name: str) -> Robot:
    return (Robot if name in COMPILED else Interpreted).of(dict(ZOO)[name]())


@pytest.mark.parametrize("name", dict(ZOO))
@pytest.mark.parametrize("law", LAWS)
def test_law_on_the_zoo(law, name):
    holds(LAWS[law], robot_of(name), state(robot_of(name), len(law)))


@pytest.mark.parametrize("law", LAWS)
def test_law_on_random_trees(law):
    @given(trees(max_bodies=60 if NIGHTLY else 7), st.integers(0, 2**32 - 1))
    def law_holds(model, seed):
        holds(LAWS[law], Interpreted.of(model), state(model, seed))

    law_holds()


@pytest.mark.parametrize("name", COMPILED)
def test_a_batch_is_its_elements(name):
    """Bit for bit: a batch of states is answered as each state alone."""
    robot = robot_of(name)
    q, v, a, tau = random_state(robot, 4, (9,))
    f = np.random.default_rng(4).standard_normal((9, 6))
    for call in (
        lambda k: robot.forward_dynamics(q[k], v[k], tau[k]),
        lambda k: robot.forward_dynamics(q[k], v[k], tau[k], f_ext={"tool": f[k]}),
        lambda k: robot.inverse_dynamics(q[k], v[k], a[k]),
        lambda k: robot.mass_matrix(q[k]),
        lambda k: robot.mass_matrix_inverse(q[k]),
        lambda k: robot.mass_matrix_factors(q[k])[0],
        lambda k: robot.jacobian(q[k], "tool"),
        lambda k: robot.frame_pose(q[k], "tool"),
        lambda k: robot.energy(q[k], v[k]),
    ):
        np.testing.assert_array_equal(call(slice(None)), np.stack([call(k) for k in range(9)]))


def test_there_are_enough_laws():
    assert len(LAWS) >= 40
