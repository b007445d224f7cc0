"""A joint is one row: a kind that is added as a row moves, simulates and compiles at once."""

from __future__ import annotations

import numpy as np
import pytest

import psiphi as pp
from psiphi.model.joint_types import JOINTS, JointKind, unit_rows
from psiphi.model.spatial.rotations import logarithm
from psiphi.model.spatial.rotations import unit as scaled
from psiphi.model.spatial.screws import Screw, cosine, sine


def turned(q, v):
    c, s = cosine(v[0]), sine(v[0])
    return [c * q[0] - s * q[1], s * q[0] + c * q[1]]


def angle(p, q):
    c, s = p[0] * q[0] + p[1] * q[1], p[0] * q[1] - p[1] * q[0]
    r = scaled([c, s])
    return logarithm([0.0, 0.0, *half(*r)])[0][2:]


def half(c, s):
    """The point of half the angle of a point on the circle, (sin, cos): (s, 1 + c) is on its
    ray."""
    return [s, 1.0 + c]


# a hinge with q = (cos, sin): a curved configuration space that is in no table but here
WHEEL = JointKind(
    2,
    1,
    lambda q, j: [Screw("z", (q[0], q[1]), 0.0)],
    lambda q, j: unit_rows(2),
    (False,),
    neutral=(1.0, 0.0),
    rate=lambda q, v: [-q[1] * v[0], q[0] * v[0]],
    exp=turned,
    log=angle,
    unit=scaled,
    random=lambda rng, size, lower, upper: np.moveaxis(
        [np.cos(t := rng.uniform(-3, 3, size)), np.sin(t)], 0, -1
    ),
)


def arm(kind: str) -> pp.Robot:
    """Two links; the first joint of this kind."""
    b = pp.Builder("arm")
    for name, parent, own in (("upper", "world", kind), ("fore", "upper", "revolute")):
        b.body(name, mass=2.0, com=(0.3, 0.1, 0.0), inertia=np.diag([0.02, 0.1, 0.1]))
        b.joint(f"to {name}", own, parent=parent, child=name, xyz=(0.5, 0, 0), axis=(0, 1, 1))
    return pp.Robot.of(b.build())


@pytest.fixture
def pair(monkeypatch) -> tuple[pp.Robot, pp.Robot]:
    """The same arm on a wheel and on a hinge."""
    monkeypatch.setitem(JOINTS, "wheel", WHEEL)
    return arm("wheel"), arm("revolute")


def test_a_new_row_moves(pair):
    wheeled, _ = pair
    q, v = wheeled.random(seed=0, size=20), np.random.default_rng(1).uniform(-1, 1, (20, 2))
    moved = wheeled.integrate(q, v)
    np.testing.assert_allclose(np.linalg.norm(moved[:, :2], axis=-1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(wheeled.difference(q, moved), v, atol=1e-13)
    np.testing.assert_allclose(wheeled.normalize(3.0 * q)[:, :2], q[:, :2], atol=1e-15)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["euler", "rk4", "lie"])
def test_a_new_row_simulates(pair, method, compiled):
    """As the hinge does, whose motion it is."""
    wheeled, hinged = pair
    q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    ends = [
        pp.simulate(
            robot, start, v, pp.PD(robot, goal, 30.0, 5.0), 0.5, 0.01, method, compiled=compiled
        ).final
        for robot, start, goal in (
            (hinged, q, np.zeros(2)),
            (wheeled, np.array([np.cos(0.3), np.sin(0.3), -0.5]), np.array([1.0, 0.0, 0.0])),
        )
    ]
    where = ends[1].q
    near = 1e-6 if method == "rk4" else 1e-12  # rk4 steps in the coordinates, which are others
    np.testing.assert_allclose([np.arctan2(where[1], where[0]), where[2]], ends[0].q, atol=near)
    np.testing.assert_allclose(ends[1].v, ends[0].v, atol=10 * near)


def test_a_new_row_simulates_by_steps_of_scipys_choosing(pair):
    wheeled, hinged = pair
    options = dict(duration=0.5, dt=0.1, method="DOP853", rtol=1e-11, atol=1e-11)
    one = pp.simulate(hinged, [0.3, -0.5], [1.0, 2.0], **options).final
    other = pp.simulate(wheeled, [np.cos(0.3), np.sin(0.3), -0.5], [1.0, 2.0], **options).final
    np.testing.assert_allclose(other.v, one.v, atol=1e-8)
    assert np.arctan2(other.q[1], other.q[0]) == pytest.approx(one.q[0], abs=1e-8)
