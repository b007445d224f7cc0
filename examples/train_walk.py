"""Train ANYmal to follow a velocity command: PPO in torch on `pp.environment`.

    python examples/train_walk.py [--iterations 1500] [--envs 1024] [--out walk.pt]

Each line is an iteration: steps so far, mean reward of a step, mean error of the commanded
velocity, and time. At the end the policy walks one episode alone; with --out it is written as a
page, walk.html. The tests run two iterations of a few environments.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

import psiphi as pp

HORIZON, EPOCHS, BATCHES = 24, 5, 4  # steps between updates; passes over them, in so many parts
DISCOUNT, TRACE, CLIP, ENTROPY, RATE = 0.99, 0.95, 0.2, 0.003, 1e-3


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
            "critic": ["height", "contacts", ("contact_forces", {"scale": 0.003})],
        },
        rewards={
            "track_linear_velocity": 1.0,
            "track_angular_velocity": 0.5,
            "vertical_velocity": -2.0,
            "roll_and_pitch_rate": -0.05,
            "tilt": -1.0,
            "torques": -1e-5,
            "accelerations": -1e-7,
            "action_rate": -0.01,
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


def layers(size: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, 256), nn.ELU(), nn.Linear(256, 128), nn.ELU(), nn.Linear(128, out)
    )


class Agent(nn.Module):
    """A Gaussian policy of the group "policy", and a value of both groups."""

    def __init__(self, env: pp.Environment):
        super().__init__()
        seen = env.observation_sizes
        self.mean = layers(seen["policy"], env.action_size)
        self.critic = layers(sum(seen.values()), 1)
        self.deviation = nn.Parameter(torch.full((env.action_size,), -0.7))  # its logarithm

    def policy(self, seen: torch.Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.mean(seen), self.deviation.exp())

    def value(self, groups: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.critic(torch.cat([groups["policy"], groups["critic"]], dim=-1))[..., 0]


def collect(agent: Agent, envs, seen: dict[str, torch.Tensor]):
    """HORIZON steps: {name: (HORIZON, n, ...)}, and the next observations."""
    rows = []
    for _ in range(HORIZON):
        policy = agent.policy(seen["policy"])
        action = policy.sample()
        row = {**seen, "action": action, "chance": policy.log_prob(action).sum(-1)}
        row["value"] = agent.value(seen)
        seen, reward, terminated, truncated, extras = envs.step(action)
        ends = agent.value(extras["final_observations"])  # what a truncated episode goes on to earn
        row["reward"] = reward + DISCOUNT * ends * truncated
        row["ends"] = (terminated | truncated).float()
        row["log"] = reward
        rows.append(row)
    return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}, seen


def advantages(data: dict[str, torch.Tensor], last: torch.Tensor) -> torch.Tensor:
    """Generalised advantages (Schulman et al. 2016)."""
    found, trace = torch.zeros_like(data["reward"]), torch.zeros_like(last)
    for k in reversed(range(HORIZON)):
        after = last if k == HORIZON - 1 else data["value"][k + 1]
        goes_on = 1.0 - data["ends"][k]
        error = data["reward"][k] + DISCOUNT * after * goes_on - data["value"][k]
        trace = error + DISCOUNT * TRACE * goes_on * trace
        found[k] = trace
    return found


def update(agent: Agent, adam: torch.optim.Adam, data: dict[str, torch.Tensor]) -> None:
    """Clipped policy gradients (Schulman et al. 2017)."""
    flat = {name: x.flatten(0, 1) for name, x in data.items()}
    gain = flat["advantage"]
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(gain)).chunk(BATCHES):
            policy = agent.policy(flat["policy"][part])
            chance = policy.log_prob(flat["action"][part]).sum(-1)
            ratio = (chance - flat["chance"][part]).exp()
            clipped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
            earned = torch.minimum(ratio * gain[part], clipped * gain[part]).mean()
            groups = {name: flat[name][part] for name in ("policy", "critic")}
            error = (agent.value(groups) - flat["return"][part]).square().mean()
            loss = 0.5 * error - earned - ENTROPY * policy.entropy().sum(-1).mean()
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            adam.step()


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Train; returns the mean reward of a step in each iteration."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--out", type=Path, default=None, help="the weights, and a page beside")
    given = parser.parse_args(arguments)
    torch.manual_seed(0)
    env = task()
    envs, agent = env.torch(given.envs, seed=0), Agent(env)
    adam, started, curve = torch.optim.Adam(agent.parameters(), RATE), time.perf_counter(), []
    seen, _ = envs.reset()
    for iteration in range(given.iterations):
        with torch.no_grad():
            data, seen = collect(agent, envs, seen)
            data["advantage"] = advantages(data, agent.value(seen))
            data["return"] = data["advantage"] + data["value"]
        update(agent, adam, data)
        curve.append(data["log"].mean().item())
        moving, wanted = data["policy"][..., :2], data["policy"][..., 9:11]
        error = (moving - wanted).norm(dim=-1).mean().item()
        steps = (iteration + 1) * HORIZON * given.envs
        print(
            f"{steps:10d} steps: reward {curve[-1]:6.3f}, error {error:.2f} m/s, "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )

    def walk(seen: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return agent.mean(torch.tensor(seen, dtype=torch.float32)).numpy()

    found = env.episode(walk, seed=1, steps=500)
    print(f"one episode alone: {len(found.rewards)} steps, mean reward {found.rewards.mean():.3f}")
    if given.out is not None:
        torch.save(agent.state_dict(), given.out)
        found.motion.html(given.out.with_suffix(".html"))
    return curve


if __name__ == "__main__":
    main()
