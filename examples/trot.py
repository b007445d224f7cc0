"""ANYmal that trots by a velocity command: the task of `train_walk.py`, and the policy it learnt.

    python examples/trot.py [--weights examples/train_walk.npz] [--out trot.html]

writes a live page in which the policy moves the robot.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import psiphi as pp

WEIGHTS = Path(__file__).with_name("train_walk.npz")


def task() -> pp.Environment:
    """ANYmal on a plane, with PD targets, noise, randomised numbers, pushes and a delay."""
    robot, ground = pp.load("anymal_c"), pp.Ground(friction=0.8)
    bends = {"LF": 1.0, "RF": 1.0, "LH": -1.0, "RH": -1.0}
    angles = {f"{leg}_HFE": 0.4 * bend for leg, bend in bends.items()}
    angles |= {f"{leg}_KFE": -0.8 * bend for leg, bend in bends.items()}
    q = robot.on_ground(robot.with_posture("stand", angles).postures["stand"], ground)
    relative = {"uniform": (0.9, 1.1), "relative": True}
    return pp.environment(
        robot,
        ground,
        actuation=pp.PD(robot, q, kp=80.0, kd=2.0),
        action_scale=0.5,
        action_limit=4.0,
        effort=True,
        observations={
            "policy": [
                ("linear_velocity", {"noise": (-0.1, 0.1)}),
                ("angular_velocity", {"scale": 0.25, "noise": (-0.2, 0.2)}),
                ("gravity", {"noise": (-0.05, 0.05)}),
                "command",
                ("joint_positions", {"noise": (-0.01, 0.01)}),
                ("joint_velocities", {"scale": 0.05, "noise": (-1.5, 1.5)}),
                "previous_action",
            ],
            "critic": [
                "linear_velocity",
                "height",
                "air_time",
                "contacts",
                ("contact_forces", {"scale": 0.003}),
            ],
        },
        rewards={
            "track_linear_velocity": 1.0,
            "track_angular_velocity": 0.5,
            "vertical_velocity": -2.0,
            "roll_and_pitch_rate": -0.05,
            "tilt": -5.0,
            "torques": -1e-5,
            "accelerations": -2.5e-8,
            "action_rate": -0.01,
            "air_time": 1.0,
            "trot": (0.5, trot),
        },
        terminations=["fallen", lambda s: s.height < 0.3],
        commands={"vx": (-1.0, 1.0), "vy": (-0.5, 0.5), "turn": (-1.0, 1.0)},
        command_interval=6.0,
        resets={"offset": {"yaw": (-3.14, 3.14), "z": 0.03, "*_?FE": (-0.1, 0.1)}},
        randomize={"mass": {"base": relative}, "kp": relative, "ground_friction": (0.4, 1.0)},
        pushes={"x": (-0.5, 0.5), "y": (-0.5, 0.5)},
        push_interval=7.0,
        action_delay=0.005,
        episode_length=20.0,
    )


def trot(s):
    """1 where the robot stands on two diagonal feet, if it is to move."""
    lf, lh, rf, rh = s.contacts
    moves = (s.command[:2] * s.command[:2]).sum() > 0.01
    return moves * (lf * rh * (1.0 - lh) * (1.0 - rf) + lh * rf * (1.0 - lf) * (1.0 - rh))


def network(weights: Sequence[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The mean of a policy, of its weights and biases, for the arrays of NumPy and laws."""
    parts = [np.asarray(x, dtype=float) for x in weights]

    def policy(seen: np.ndarray) -> np.ndarray:
        for k in range(0, len(parts), 2):
            seen = parts[k] @ seen + parts[k + 1]
            if k + 2 < len(parts):
                seen = np.maximum(seen, 0.0) + np.exp(np.minimum(seen, 0.0)) - 1.0  # ELU
        return seen

    return policy


def main(arguments: Sequence[str] | None = None) -> Path:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--out", type=Path, default=Path("trot.html"))
    given = parser.parse_args(arguments)
    policy = network(list(np.load(given.weights).values()))
    title, command = "ANYmal trots by command", (0.7, 0.0, 0.0)
    return task().html(given.out, policy, command, title=title)


if __name__ == "__main__":
    print(main())
