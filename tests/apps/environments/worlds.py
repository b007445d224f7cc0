"""Environments that several tests share: each is traced and compiled once in a process."""

from functools import cache

import numpy as np

import psiphi as pp

REWARDS = {"alive": 1.0, "upright": (-1.0, lambda s: s.q[1] * s.q[1])}
DOWN = {"down": lambda s: np.abs(s.q[1]) > 0.3}


def two_numbers(s):
    """A reset by a function."""
    return {"q": s.uniform(-0.2, 0.2, size=2), "v": s.normal(0.0, [0.1, 0.3])}


@cache
def cart_pole(groups=False, random=False):
    """A cart-pole that starts with a push, or at random; with two groups of observations."""
    return pp.environment(
        pp.load("cartpole"),
        observations={"policy": ["q"], "critic": ["v", "time"]} if groups else ["q", "v"],
        rewards=REWARDS,
        terminations=DOWN,
        v0=(0.0, 0.5),
        resets=two_numbers if random else None,
        episode_length=0.5,
        actuated="slide",
    )


@cache
def stand():
    """ANYmal with bent knees, and the ground that it stands on."""
    robot, ground = pp.load("anymal_c"), pp.Ground(friction=0.8)
    bends = {"LF": 1.0, "RF": 1.0, "LH": -1.0, "RH": -1.0}  # front knees forward, hind knees back
    angles = {f"{leg}_HFE": 0.5 * bend for leg, bend in bends.items()}
    angles |= {f"{leg}_KFE": -bend for leg, bend in bends.items()}
    q = robot.with_posture("stand", angles).postures["stand"]
    return robot, ground, robot.on_ground(q, ground)


TASK = dict(
    action_scale=0.25,
    effort=True,
    dt=0.005,
    decimation=4,
    observations={
        "policy": [
            "linear_velocity",
            "angular_velocity",
            "gravity",
            "command",
            ("joint_positions", {"noise": (-0.01, 0.01)}),
            ("joint_velocities", {"scale": 0.05, "noise": {"normal": (0.0, 0.5)}}),
            "previous_action",
        ],
        "critic": ["q", "v", "specific_force", "contact_forces", "contacts", "time", "height"],
    },
    rewards={
        "track_linear_velocity": 1.0,
        "track_angular_velocity": 0.5,
        "vertical_velocity": -2.0,
        "torques": -1e-5,
        "accelerations": -2.5e-7,
        "action_rate": -0.01,
        "power": (-1e-4, "power"),
        "lateral": (-0.1, lambda s: np.abs(s.linear_velocity[1])),
    },
    terminations=["fallen", lambda s: s.height < 0.3],
    commands={"vx": (-1.0, 1.0), "vy": (-0.5, 0.5), "turn": {"choice": (-1.0, 0.0, 1.0)}},
    resets={
        "offset": {"yaw": (-3.14, 3.14), "z": 0.05, "*_?FE": {"normal": (0.0, 0.02)}},
        "v": {"x": (-0.5, 0.5)},
    },
    episode_length=1.0,
)


@cache
def anymal():
    """ANYmal that walks by command, with groups, noise, commands and random resets."""
    robot, ground, q = stand()
    return pp.environment(robot, ground, actuation=pp.PD(robot, q, kp=80.0, kd=2.0), **TASK)
