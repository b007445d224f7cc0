"""Train ANYmal to follow a velocity command: PPO in torch on `pp.environment`.

    python examples/train_walk.py [--minutes 5] [--envs 2048] [--seed 0] [--out walk.npz]

Each line is an iteration: steps so far, mean reward, mean error of the commanded velocity, and
time. At the end the policy, without noise, walks in 500 new environments for ten seconds. With
--out its weights are kept, the curve is written as walk.csv, and one episode as a page, walk.html.
The tests run two iterations of a few environments.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from trot import network, task

import psiphi as pp

HORIZON, EPOCHS, BATCHES = 24, 5, 4  # steps between updates; passes, and parts of each
DISCOUNT, TRACE, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.005
CHANGE, RATES = 0.01, (1e-5, 1e-2)  # the divergence that an update aims at; bounds of its rate
HIDDEN = (128, 64, 32)
COMMAND, VELOCITY = slice(9, 11), slice(0, 2)  # in the groups "policy" and "critic"
HEADER = "steps,reward,error,seconds"


def layers(size: int, out: int) -> nn.Sequential:
    sizes, parts = (size, *HIDDEN), []
    for a, b in zip(sizes, HIDDEN, strict=False):
        parts += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*parts, nn.Linear(HIDDEN[-1], out))


class Agent(nn.Module):
    """A Gaussian policy of the group "policy", and a value of both groups."""

    def __init__(self, env: pp.Environment):
        super().__init__()
        seen = env.observation_sizes
        self.mean = layers(seen["policy"], env.action_size)
        self.critic = layers(sum(seen.values()), 1)
        self.deviation = nn.Parameter(torch.zeros(env.action_size))  # its logarithm

    def policy(self, seen: torch.Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.mean(seen), self.deviation.exp(), False)

    def value(self, groups: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.critic(torch.cat([groups["policy"], groups["critic"]], dim=-1))[..., 0]


def collect(agent: Agent, envs, seen: dict[str, torch.Tensor]):
    """HORIZON steps: {name: (HORIZON, n, ...)}, and the next observations."""
    rows, step_time = [], envs.env.step_time
    for _ in range(HORIZON):
        policy = agent.policy(seen["policy"])
        action = policy.sample()
        row = {**seen, "action": action, "chance": policy.log_prob(action).sum(-1)}
        row |= {"mean": policy.mean, "value": agent.value(seen)}
        seen, reward, terminated, truncated, extras = envs.step(action)
        row["earned"] = reward
        row["reward"] = reward.clamp(min=0.0) * step_time  # so that no fall ends a debt
        if truncated.any():  # what a truncated episode goes on to earn
            ends = agent.value(extras["final_observations"])
            row["reward"] = row["reward"] + DISCOUNT * ends * truncated
        row["ends"] = (terminated | truncated).float()
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
    """Clipped policy gradients (Schulman et al. 2017), at a rate that the divergence of the policy
    from that of the data decides (Rudin et al. 2021)."""
    flat = {name: x.flatten(0, 1) for name, x in data.items()}
    gain = flat["advantage"]
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    before = agent.deviation.detach().exp()
    for _ in range(EPOCHS):
        for part in torch.randperm(len(gain)).chunk(BATCHES):
            policy = agent.policy(flat["policy"][part])
            old = torch.distributions.Normal(flat["mean"][part], before, False)
            adapt(adam, torch.distributions.kl_divergence(old, policy).sum(-1).mean().item())
            chance = policy.log_prob(flat["action"][part]).sum(-1)
            ratio = (chance - flat["chance"][part]).exp()
            clipped = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
            earned = torch.minimum(ratio * gain[part], clipped * gain[part]).mean()
            groups = {name: flat[name][part] for name in ("policy", "critic")}
            error = (agent.value(groups) - flat["return"][part]).square().mean()
            loss = error - earned - ENTROPY * policy.entropy().sum(-1).mean()
            adam.zero_grad()
            loss.backward()
            for weights in (agent.critic.parameters(), [*agent.mean.parameters(), agent.deviation]):
                nn.utils.clip_grad_norm_(weights, 1.0)
            adam.step()


def adapt(adam: torch.optim.Adam, change: float) -> None:
    """A lower rate if the policy changes too much, a higher one if it changes too little."""
    for group in adam.param_groups:
        if change > 2.0 * CHANGE:
            group["lr"] = max(RATES[0], group["lr"] / 1.5)
        elif change < 0.5 * CHANGE:
            group["lr"] = min(RATES[1], group["lr"] * 1.5)


def error(data: dict[str, torch.Tensor]) -> float:
    """The mean distance of the velocity from the command in m/s."""
    gap = data["critic"][..., VELOCITY] - data["policy"][..., COMMAND]
    return gap.norm(dim=-1).mean().item()


@torch.no_grad()
def trial(agent: Agent, env: pp.Environment, count: int, steps: int = 500) -> tuple[float, float]:
    """The mean error of the policy without noise in new environments, and the share that falls."""
    envs, errors, falls = env.torch(count, seed=1), [], 0
    seen, _ = envs.reset()
    for _ in range(steps):
        seen, _, terminated, _, _ = envs.step(agent.mean(seen["policy"]))
        errors.append(error(seen))
        falls += int(terminated.sum())
    return float(np.mean(errors)), falls / count


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Train; returns the mean reward of a step in each iteration."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=1500)
    parser.add_argument("--minutes", type=float, default=5.0, help="the longest time")
    parser.add_argument("--envs", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="weights; curve and page beside")
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    env = task()
    envs, agent = env.torch(given.envs, seed=given.seed), Agent(env)
    adam, started, rows = torch.optim.Adam(agent.parameters(), 1e-3), time.perf_counter(), []
    seen, _ = envs.reset()
    while len(rows) < given.iterations and time.perf_counter() - started < 60.0 * given.minutes:
        with torch.no_grad():
            data, seen = collect(agent, envs, seen)
            data["advantage"] = advantages(data, agent.value(seen))
            data["return"] = data["advantage"] + data["value"]
        update(agent, adam, data)
        steps, seconds = (len(rows) + 1) * HORIZON * given.envs, time.perf_counter() - started
        rows.append((steps, data["earned"].mean().item(), error(data), seconds))
        line = "{:10d} steps: reward {:6.3f}, error {:.3f} m/s, {:.0f} s"
        print(line.format(*rows[-1]), flush=True)
    found, falls = trial(agent, env, 500)
    print(f"500 new environments: error {found:.3f} m/s, {falls:.1%} fall")
    if given.out is not None:
        weights = [x.detach().numpy().astype(np.float16) for x in agent.mean.parameters()]
        np.savez(given.out, *weights)
        curve = given.out.with_suffix(".csv")
        np.savetxt(curve, rows, "%.5g", ",", header=HEADER, comments="")
        env.episode(network(weights), seed=1, steps=500).motion.html(given.out.with_suffix(".html"))
    return [row[1] for row in rows]


if __name__ == "__main__":
    main()
