"""Damping, friction and springs of joints that move together: beside the same loops closed by
multipliers, where each joint has its own."""

import numpy as np
import pytest

import psiphi as pp


def linkage(**joints: dict) -> pp.Robot:
    """A crank-rocker as a tree, with what its joints have."""
    b = pp.Builder("four-bar")
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        b.body(name, mass=length, com=(length / 2, 0, 0), inertia=np.diag([1e-4, 0.01, 0.01]))
    b.joint("a", "revolute", "world", "crank", axis=(0, 1, 0), **joints.get("a", {}))
    b.joint(
        "b", "revolute", "crank", "coupler", axis=(0, 1, 0), xyz=(0.2, 0, 0), **joints.get("b", {})
    )
    b.joint(
        "c", "revolute", "world", "rocker", axis=(0, 1, 0), xyz=(0.5, 0, 0), **joints.get("c", {})
    )
    b.frame("coupler end", "coupler", xyz=(0.5, 0, 0))
    b.frame("rocker end", "rocker", xyz=(0.4, 0, 0))
    return b.build()


LOOP = pp.Loop("hinge", "coupler end", "rocker end", axis=(0, 1, 0))
TABLE = {"deflection": [-1.0, -0.2, 0.1, 0.6], "torque": [-2.0, -0.3, 0.2, 1.0]}


def both(**joints: dict) -> tuple[pp.Robot, np.ndarray, pp.System, np.ndarray]:
    tree = linkage(**joints)
    robot = pp.embed(tree, [LOOP], free="a", at=[-1.2, 1.0, -1.5])
    q, closed = robot.neutral(), pp.connect(tree, [LOOP])
    order = [robot.joint(name).q_slice.start for name in ("a", "b", "c")]
    return robot, q, closed, q[order]


@pytest.mark.parametrize(
    ("joints", "acts"),
    [
        (
            {"a": {"damping": 0.02}, "b": {"damping": 0.03}, "c": {"damping": 0.05}},
            {"damping": True},
        ),
        ({"b": {"friction": 0.04}, "c": {"damping": 0.02}}, {"damping": True, "friction": True}),
        (
            {
                "a": {"stiffness": 0.5, "rest": -1.0},
                "b": {"spring": TABLE, "rest": 0.8},
                "c": {"stiffness": 0.4, "rest": -1.2},
            },
            {"springs": True},
        ),
        (
            {"b": {"stiffness": 0.5, "spring": {"polynomial": [0.2, 1.0]}}, "c": {"damping": 0.1}},
            {"springs": True, "damping": True},
        ),
    ],
)
def test_an_embedded_loop_moves_as_one_of_multipliers(joints, acts):
    robot, q, closed, q_tree = both(**joints)
    v = closed.project(q_tree, np.array([2.0, 0.0, 0.0]))[1]
    start = v[:1] * 0 + v[0]
    ours = pp.simulate(robot, q, start, duration=0.1, dt=1e-3, compiled=False, **acts)
    theirs = pp.simulate(closed, q_tree, v, duration=0.1, dt=1e-3, compiled=False, **acts)
    order = [robot.joint(name).q_slice.start for name in ("a", "b", "c")]
    np.testing.assert_allclose(ours.final.q[order], theirs.final.q, atol=1e-7)
    if len(acts) > 1:
        kernel = pp.simulate(robot, q, start, duration=0.1, dt=1e-3, compiled=True, **acts)
        np.testing.assert_allclose(kernel.final.q, ours.final.q, atol=1e-9)
    np.testing.assert_allclose(ours.energy, theirs.energy, atol=1e-7)
    if set(acts) == {"springs"} and "spring" not in joints["b"]:
        assert ours.drift < 1e-7


def test_stiff_damping_of_a_joint_that_follows_is_implicit():
    """A damper a thousand times too stiff for the step: the loop creeps, beside the same damper at
    the free joint alone."""
    robot, q, *_ = both(b={"damping": 50.0})
    motion = pp.simulate(robot, q, duration=0.2, dt=1e-2, damping=True, compiled=False)
    assert motion.info["implicit"]["joints"] == ["a"] and not motion.events
    fine = pp.simulate(robot, q, duration=0.2, dt=1e-2, damping=True, method="Radau")
    np.testing.assert_allclose(motion.final.q, fine.final.q, atol=1e-5)


def test_springs_of_ones_own_are_refused():
    robot, q, *_ = both(b={"stiffness": 1.0})
    with pytest.raises(pp.StateError, match="springs=True"):
        pp.simulate(robot, q, duration=0.1, springs=[3.0])
