"""Every robot of example-robot-data, fixed and free, every function, 100 random states: within
1e-10 of Pinocchio.

All functions of all robots run through the interpreter of the sweeps, which is what the compiled
code means; forward and inverse dynamics of all robots, and all functions of a handful, run
compiled. (`psiphi bench` compiles nearly everything.)
"""

import numpy as np
import pytest

import psiphi as pp
from psiphi_bench import example_robots
from psiphi_bench.agreement import (
    FUNCTIONS,
    TOLERANCE,
    compiled,
    condition,
    errors,
    interpreted,
    relative_error,
    states,
)
from psiphi_bench.peers.pinocchio_peer import Pin
from psiphi_bench.rows_of.gradients import deviations

ROBOTS = example_robots.loadable()
DYNAMICS = [
    row
    for row in FUNCTIONS
    if row.name in ("forward_dynamics", "inverse_dynamics") and not row.where
]
ILL_CONDITIONED = (
    "icub",
)  # robots with states in which rounding alone exceeds 1e-10: light links between aligned axes
COMPILED = [
    ("ur5_robot", "free"),
    ("panda", "fixed"),
    ("solo12", "free"),
    ("kinova", "fixed"),
    ("tiago_dual", "fixed"),
]

SLOPED = [
    ("double_pendulum_continuous", "free"),
    ("kinova", "fixed"),
    ("panda", "free"),
    ("hyq_no_sensors", "free"),
]


def ids(value) -> str:
    return value if isinstance(value, str) else getattr(value, "stem", "")


EACH = pytest.mark.parametrize(("file", "base", "robot"), ROBOTS, ids=ids)
ONCE = pytest.mark.parametrize(
    ("file", "base", "robot"), [row for i, row in enumerate(ROBOTS) if i % 4 in (0, 3)], ids=ids
)


def agree(file, base, robot, call, functions=FUNCTIONS) -> None:
    for error in errors(robot, Pin.from_urdf(file, base, robot), 100, call, functions):
        assert error.value <= TOLERANCE, error.label
        assert error.raw <= TOLERANCE or file.stem in ILL_CONDITIONED, (
            f"{error.label}, nothing allowed for"
        )


def test_all_robots_are_here():
    assert len(ROBOTS) == 132, (
        "70 files, of which 4 differ from another in nothing that moves; fixed and free"
    )


@EACH
def test_every_function_interpreted(file, base, robot):
    agree(file, base, robot, interpreted)


@ONCE
def test_dynamics_compiled(file, base, robot):
    """Each file once, fixed and free in turn; the interpreter had both."""
    agree(file, base, robot, compiled, DYNAMICS)


@pytest.mark.parametrize(("name", "base"), COMPILED)
def test_every_function_compiled(name, base):
    """tiago_dual has 101 joints: its sweeps are loops, its matrices made of columns."""
    file = example_robots.urdf(name)
    agree(file, base, pp.load(file, base=base), compiled)


@ONCE
def test_factors_have_their_form(file, base, robot):
    """L is unit triangular along the tree, D a block a joint: with L D L* = M there is only one
    such pair."""
    L, D = interpreted(robot, "mass_matrix_factors", states(robot, 2)["q"])
    joint_of = np.repeat(np.arange(len(robot.joints)), [joint.row.nv for joint in robot.joints])
    same = joint_of[:, None] == joint_of
    above = np.zeros_like(same)
    for k, j in enumerate(joint_of):
        while j >= 0:
            above[joint_of == j, k] = True
            j = robot.parent[j]
    assert np.all(L[:, same] == np.eye(robot.nv)[same]), "unit blocks on the diagonal"
    assert np.all(L[:, ~above] == 0.0), "zero off the path to the base"
    assert np.all(D[:, ~same] == 0.0)


@pytest.mark.parametrize(("name", "base"), SLOPED)
def test_derivatives_of_dynamics(name, base):
    """d FD/d(q, v, tau) and d ID/d(q, v, a) of a few; `psiphi bench --only agreement-slopes` has
    all of up to 64 bodies."""
    file = example_robots.urdf(name)
    robot = pp.load(file, base=base)
    for error in deviations(robot, Pin.from_urdf(file, base, robot), 3):
        assert error.raw <= 1e-9, error.label


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_ill_conditioned_states_are_hard_for_everyone(base):
    """Where iCub needs the allowance, two algorithms of Pinocchio's own differ by more than 1e-10,
    too."""
    file = example_robots.urdf("icub")
    robot = pp.load(file, base=base)
    peer, state = Pin.from_urdf(file, base, robot), states(robot, 100)
    q, v, tau = state["q"], state["v"], state["tau"]
    M = peer.mass_matrix(q)
    solved = np.linalg.solve(M, (tau - peer.bias(q, v))[..., None])[..., 0]
    ours, theirs = (x.forward_dynamics(q, v, tau) for x in (robot, peer))
    hard = relative_error(ours, theirs) > TOLERANCE
    assert hard.sum() <= 10
    assert np.all(condition(M[hard]) > 1e6)
    assert relative_error(solved, theirs)[hard].max() > TOLERANCE


@pytest.mark.parametrize("name", ["bluevolta", "quadrotor_base", "iris_simple"])
def test_robots_without_joints(name):
    """Bolted down, nothing of them moves: no centre of mass, where Pinocchio answers NaN."""
    robot = pp.load(example_robots.urdf(name))
    assert robot.nv == 0
    with pytest.raises(pp.SingularError, match="no moving body"):
        robot.center_of_mass(np.zeros(0))
