"""MuJoCo: robots of example-robot-data and random trees of every joint kind it has, every function,
1e-8."""

import numpy as np
import pytest
from hypothesis import given, settings

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench import example_robots
from psiphi_bench.agreement import FUNCTIONS, compiled, errors, interpreted
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.peers.peer import Unsupported
from tests import zoo

TOLERANCE = 1e-8
DYNAMICS = [
    row
    for row in FUNCTIONS
    if row.name in ("forward_dynamics", "inverse_dynamics") and row.axes != "frame"
]
ROBOTS = [
    ("ur5_robot", "fixed"),
    ("ur5_robot", "free"),
    ("panda", "fixed"),
    ("kinova", "free"),
    ("solo12", "free"),
    ("anymal", "free"),
    ("g1_29dof_rev_1_0", "free"),
    ("talos_reduced", "free"),
    ("pr2", "fixed"),
    ("allegro_left_hand", "fixed"),
    ("tiago_dual", "fixed"),
    ("double_pendulum_continuous", "fixed"),
]
ROTORS = [
    kind for kind in zoo.MUJOCO_KINDS if kind not in ("free", "planar")
]  # its slides would need equal rotors


def agree(robot: Robot, call, functions=FUNCTIONS, size: int = 10) -> None:
    for error in errors(robot, Mj(robot), size, call, functions):
        assert error.raw <= TOLERANCE, error.label


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_robots(name, base):
    agree(pp.load(example_robots.urdf(name), base=base), interpreted)


@pytest.mark.parametrize(("name", "base"), ROBOTS[:7])
def test_robots_compiled(name, base):
    agree(pp.load(example_robots.urdf(name), base=base), compiled, DYNAMICS)


@given(model=zoo.trees(kinds=zoo.MUJOCO_KINDS, armature=False))
def test_random_trees(model):
    agree(Robot.of(model), interpreted)


@given(model=zoo.trees(kinds=ROTORS, armature=True))
def test_random_trees_with_rotors(model):
    agree(Robot.of(model), interpreted)


@settings(max_examples=6)  # each compiles four functions
@given(model=zoo.trees(max_bodies=5, kinds=zoo.MUJOCO_KINDS, armature=False))
def test_random_trees_compiled(model):
    agree(Robot.of(model), compiled, DYNAMICS)


def test_what_mujoco_cannot_hold():
    with pytest.raises(Unsupported, match="helical"):
        Mj(zoo.chain("arm", ["helical"], 1))
    with pytest.raises(Unsupported, match="rotors"):
        Mj(zoo.chain("sled", ["planar"], 1, armature=True))
    with pytest.raises(Unsupported, match="inertia"):
        Mj(pp.load(example_robots.urdf("human")))


def test_a_link_may_be_called_world():
    """UR arms with a free base have a link of that name, which MuJoCo keeps for itself."""
    robot = pp.load(example_robots.urdf("ur5_robot"), base="free")
    assert "world" in {body.name for body in robot.bodies}
    assert np.isfinite(Mj(robot).mass_matrix(robot.neutral())).all()
