"""Momentum beside Pinocchio's: computeCentroidalMomentum and computeCentroidalMap, on random trees
and example-robot-data."""

import numpy as np
import pytest
from hypothesis import given

import psiphi as pp
from psiphi_bench import example_robots
from psiphi_bench.agreement import TOLERANCE, compiled, interpreted, relative_error
from psiphi_bench.peers.lazy_import import pinocchio as pin
from psiphi_bench.peers.pinocchio_peer import Pin
from tests import zoo

ROBOTS = [row for row in example_robots.loadable() if row[2].nv]
COMPILED = [
    ("ur5_robot", "free"),
    ("panda", "fixed"),
    ("solo12", "free"),
    ("tiago_dual", "fixed"),
]  # the last: 101 joints


def theirs(peer: Pin, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    """Pinocchio's, moments first; about the world's origin by moving its moment there."""
    Q, V = peer.layout.to_q(q), peer.layout.to_v(v, q)
    found = [
        pin.computeCentroidalMomentum(peer.peer, peer.data, *x) for x in zip(Q, V, strict=True)
    ]
    h = np.array([[*x.angular, *x.linear] for x in found])
    A = np.array(
        [
            pin.computeCentroidalMap(peer.peer, peer.data, x).copy().reshape(6, peer.peer.nv)
            for x in Q
        ]
    )
    c = peer.center_of_mass(q)
    moved = np.concatenate([h[:, :3] + np.cross(c, h[:, 3:]), h[:, 3:]], axis=-1)
    return {
        "centroidal_momentum": h,
        "centroidal_momentum_matrix": peer.layout.from_jacobian(A, Q),
        "momentum": moved,
    }


def agree(robot: pp.Robot, peer: Pin, size: int, call) -> None:
    q, v, *_ = zoo.random_state(robot, 0, (size,))
    for name, expected in theirs(peer, q, v).items():
        ours = call(robot, name, *((q,) if name.endswith("matrix") else (q, v)))
        assert relative_error(ours, expected).max() <= TOLERANCE, name


@given(model=zoo.trees())
def test_random_trees(model):
    agree(pp.Robot.of(model), Pin(model), 4, interpreted)


@pytest.mark.parametrize(
    ("file", "base", "robot"),
    ROBOTS,
    ids=lambda x: x if isinstance(x, str) else getattr(x, "stem", ""),
)
def test_example_robots(file, base, robot):
    agree(robot, Pin.from_urdf(file, base, robot), 3, interpreted)


@pytest.mark.parametrize(("name", "base"), COMPILED)
def test_example_robots_compiled(name, base):
    file = example_robots.urdf(name)
    robot = pp.load(file, base=base)
    agree(robot, Pin.from_urdf(file, base, robot), 20, compiled)


def test_a_robot_without_mass_has_no_centre():
    made = pp.Builder("ghost")
    made.body("shade", 0.0, inertia=np.eye(3))
    made.joint("hinge", "revolute", "world", "shade", axis=(0, 0, 1), armature=0.1)
    ghost = made.build()
    q, v = np.zeros(1), np.ones(1)
    np.testing.assert_allclose(
        ghost.momentum(q, v), [0, 0, 1, 0, 0, 0], err_msg="an inertia without mass spins"
    )
    for ask in (
        lambda: ghost.centroidal_momentum(q, v),
        lambda: ghost.centroidal_momentum_matrix(q),
    ):
        with pytest.raises(pp.SingularError, match="no moving body of ghost has mass"):
            ask()
    s = ghost.operators
    with pytest.raises(pp.SingularError, match="no centre of mass"):
        pp.function(s.E_c @ s.phi @ s.M @ s.phi.T @ s.H.T)(q)
    with pytest.raises(pp.SingularError, match="no centre of mass"):
        s.E_c.dense(q)
