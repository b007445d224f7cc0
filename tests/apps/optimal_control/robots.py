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
