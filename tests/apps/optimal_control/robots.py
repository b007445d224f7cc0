"""Robots and problems that the tests of optimal control share, each compiled once."""

from functools import cache

import numpy as np

import psiphi as pp
from psiphi.robot.robot import Robot

RUNNING = 1e-2, 0.1  # weights of torque and speed


@cache
def pelican() -> Robot:
    return pp.load("pelican")


@cache
def satellite() -> Robot:
    """A free base with one arm that turns."""
    builder = pp.Builder("satellite", gravity=(0, 0, 0))
    builder.body("hull", mass=4.0, com=(0.1, 0.0, 0.05), inertia=np.diag([0.3, 0.4, 0.5]))
    builder.body("arm", mass=1.0, com=(0.3, 0.0, 0.0), inertia=np.diag([0.01, 0.03, 0.03]))
    builder.joint("float", "free", "world", "hull")
    builder.joint("shoulder", "revolute", "hull", "arm", xyz=(0.2, 0.0, 0.0), axis=(0, 1, 0))
    builder.frame("tip", "arm", xyz=(0.6, 0.0, 0.0))
    return builder.build()


@cache
def cartpole() -> Robot:
    return pp.load("cartpole")


@cache
def reach_problem() -> pp.OptimalControl:
    """The pelican reaches a point within tight bounds of its torques."""
    torque, speed = RUNNING
    return pp.OptimalControl(
        pelican(),
        dt=0.02,
        steps=20,
        running=[pp.cost.torque(torque), pp.cost.speed(speed)],
        final=[pp.cost.point("tool", 1e3), pp.cost.speed(1.0)],
        torque=[4.0, 0.5],
    )


def reach_batch(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, speeds and goals of the pelican."""
    rng, robot = np.random.default_rng(5), pelican()
    q = rng.uniform(-0.5, 0.5, (count, 2))
    goal = robot.frame_pose(q + rng.uniform(-0.5, 0.5, (count, 2)), "tool")[:, :3, 3]
    return q, rng.uniform(-0.5, 0.5, (count, 2)), goal


@cache
def swing_problem() -> pp.OptimalControl:
    """The cart-pole swings up."""
    return pp.OptimalControl(
        cartpole(),
        dt=0.05,
        steps=50,
        running=[pp.cost.speed(0.02), pp.cost.posture(0.1, at=[0, 0]), pp.cost.torque(0.02)],
        final=[pp.cost.posture([50.0, 200.0], at=[0, 0]), pp.cost.speed(20.0)],
        torque=10.0,
        actuated=cartpole().joint_names[0],
    )


@cache
def turn_problem() -> pp.OptimalControl:
    """The satellite moves to a pose of its hull and a point of its arm's tip."""
    return pp.OptimalControl(
        satellite(),
        dt=0.1,
        steps=20,
        running=[pp.cost.torque(1e-2), pp.cost.momentum(0.01)],
        final=[
            pp.cost.pose("hull", (20.0, 30.0)),
            pp.cost.point("tip", 50.0),
            pp.cost.speed(5.0),
        ],
        torque=2.0,
        passive=(),
    )


def _leg(builder, y):
    """Thigh and shank, and the frame of a foot."""
    builder.body("thigh", mass=0.6, com=(0.01, 0, -0.15), inertia=np.diag([5, 5, 0.5]) * 1e-3)
    builder.body("shank", mass=0.3, com=(0, 0, -0.15), inertia=np.diag([3, 3, 0.3]) * 1e-3)
    builder.joint("hip", "revolute", "trunk", "thigh", xyz=(0, y, 0), axis=(0, 1, 0),
                  effort=60)  # fmt: skip
    builder.joint("knee", "revolute", "thigh", "shank", xyz=(0, 0, -0.3),
                  axis=(0, 1, 0), effort=60)  # fmt: skip
    builder.frame("foot", "shank", xyz=(0, 0, -0.3))


@cache
def hopper() -> Robot:
    """A leg whose trunk moves along x and z and does not turn."""
    builder = pp.Builder("hopper")
    builder.body("rail", mass=0.1, com=(0, 0, 0), inertia=np.eye(3) * 1e-3)
    builder.body("trunk", mass=5.0, com=(0, 0, 0), inertia=np.eye(3) * 0.1)
    builder.joint("x", "prismatic", "world", "rail", axis=(1, 0, 0))
    builder.joint("z", "prismatic", "rail", "trunk", axis=(0, 0, 1))
    _leg(builder, 0.0)
    return builder.build()


@cache
def monopod() -> Robot:
    """A free trunk with a hand and a leg of two joints."""
    builder = pp.Builder("monopod")
    builder.body("trunk", mass=5.0, com=(0.02, 0, 0.1), inertia=np.diag([0.1, 0.08, 0.05]))
    builder.joint("float", "free", "world", "trunk")
    builder.frame("hand", "trunk", xyz=(0.2, 0.1, 0.2))
    _leg(builder, 0.1)
    return builder.build()


def standing(robot: Robot, posture: list[float], foot: str) -> np.ndarray:
    """q of the hopper at these joint angles, its foot at height 0."""
    q = robot.neutral()
    q[-len(posture) :] = posture
    q[1] -= robot.frame_pose(q, foot)[2, 3]
    return q


@cache
def hop_problem() -> pp.OptimalControl:
    """The hopper jumps."""
    return pp.OptimalControl(
        hopper(),
        dt=0.02,
        steps=40,
        running=[
            pp.cost.torque(1e-3),
            pp.cost.speed(1e-2),
            pp.cost.force(1e-5),
            pp.cost.friction(0.1, friction=0.2),
            pp.cost.ground(1e4, clearance=0.02),
        ],
        final=[pp.cost.posture([1e3, 1e3, 10.0, 10.0]), pp.cost.speed(1.0)],
        torque=True,
        actuated=["hip", "knee"],
        contacts=["foot"],
    )


@cache
def stand_problem() -> pp.OptimalControl:
    """The monopod is held by its flat foot or at a point of its hand."""
    return pp.OptimalControl(
        monopod(),
        dt=0.02,
        steps=6,
        running=[pp.cost.torque(1e-3), pp.cost.speed(0.1), pp.cost.friction(1e-2, friction=0.3)],
        final=[pp.cost.posture(10.0, at=monopod().neutral())],
        torque=None,
        contacts={"foot": "pose", "hand": "point"},
    )


@cache
def four_bar() -> Robot:
    """A crank that turns a rocker by an embedded loop, with an arm on its coupler."""
    builder, turn = pp.Builder("four_bar"), np.array([0.0, 1.0, 0.0])
    bodies = {"crank": 0.3, "coupler": 0.8, "rocker": 0.6, "arm": 0.3}
    for name, length in bodies.items():
        inertia = np.diag([1e-3, length**2 / 12, length**2 / 12])
        builder.body(name, mass=1.0, com=(length / 2, 0, 0), inertia=inertia)
    builder.joint("motor", "revolute", "world", "crank", axis=turn, effort=20)
    builder.joint("pin", "revolute", "crank", "coupler", xyz=(0.3, 0, 0), axis=turn)
    builder.joint("pivot", "revolute", "world", "rocker", xyz=(0.7, 0, 0), axis=turn)
    builder.joint("elbow", "revolute", "coupler", "arm", xyz=(0.4, 0, 0), axis=turn, effort=5)
    builder.frame("first", "coupler", xyz=(0.8, 0, 0))
    builder.frame("second", "rocker", xyz=(0.6, 0, 0))
    builder.frame("tip", "arm", xyz=(0.3, 0, 0))
    loop = pp.Loop("ball", "first", "second")
    return pp.embed(builder.build(), [loop], at=[-0.5, 0.2, -1.2, 0.4], free="motor")


@cache
def bar_problem() -> pp.OptimalControl:
    """The tip of the arm moves to a point."""
    return pp.OptimalControl(
        four_bar(),
        dt=0.02,
        steps=20,
        running=[pp.cost.torque(1e-3), pp.cost.speed(0.01)],
        final=[pp.cost.point("tip", 1e3), pp.cost.speed(1.0)],
        torque=[20.0, 2.0],
    )
