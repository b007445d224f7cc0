# %% [markdown]
# # Learn to swing up
# A cart pushes a pole from hanging down to upright and balances it there. `pp.environment` makes
# the task, and evolution strategies in torch learn it: each of 256 environments runs a policy of
# its own, and the policy moves towards those that earned more.

# %%
import time

import numpy as np
import torch

import psiphi as pp

GENERATIONS = 300  # tests: 12

torch.manual_seed(0)
torch.set_num_threads(1)  # the policies are small
cart = pp.load("cartpole")
env = pp.environment(
    cart,
    observations=[
        lambda s: [s.q[0], np.sin(s.q[1]), np.cos(s.q[1])],
        ("v", {"scale": [0.5, 0.2]}),
    ],
    rewards={
        "upright": (1.0, lambda s: np.cos(s.q[1])),
        "centre": (-0.1, lambda s: s.q[0] ** 2),
        "slow": (-0.005, lambda s: s.v[1] ** 2),
    },
    terminations={"off the track": lambda s: np.abs(s.q[0]) > 2.4},
    q0=[0.0, np.pi],
    resets={"offset": {"slide": (-0.2, 0.2), "hinge": (-0.2, 0.2)}},
    episode_length=5.0,
    dt=0.01,
    actuated="slide",
    action_scale=20.0,
)
print(env)

# %% [markdown]
# A population of policies: one layer of 16 neurons each, all in one product.

# %%
COUNT, HIDDEN, SEEN = 256, 16, env.observation_sizes["policy"]
SHAPES = ((SEEN, HIDDEN), (1, HIDDEN), (HIDDEN, 1))
SIZE = sum(a * b for a, b in SHAPES)


def act(weights, seen):
    """Actions (n, 1) of policies (n, SIZE) for observations (n, SEEN)."""
    parts = weights.split([a * b for a, b in SHAPES], dim=-1)
    first, bias, second = (x.unflatten(-1, shape) for x, shape in zip(parts, SHAPES, strict=True))
    return torch.tanh((torch.tanh(seen[:, None] @ first + bias) @ second)[:, 0])


def returns(weights, envs, seed):
    """The mean reward per step of each policy in one episode; none after its end."""
    seen, _ = envs.reset(seed=seed)
    total, alive = torch.zeros(len(weights)), torch.ones(len(weights), dtype=torch.bool)
    for _ in range(envs.max_episode_length):
        seen, reward, terminated, _, _ = envs.step(act(weights, seen["policy"]))
        total += torch.where(alive, reward + 1.0, torch.zeros(()))  # staying on the track pays
        alive &= ~terminated
    return total / envs.max_episode_length - 1.0


# %% [markdown]
# Evolution strategies (Salimans et al. 2017): the gradient of the expected return of N(mean, s^2)
# is that of the ranks of samples, in pairs with opposite noise.

# %%
envs = env.torch(COUNT)
mean, started = 0.1 * torch.randn(SIZE), time.perf_counter()
SPREAD, RATE = 0.2, 0.05
adam = torch.optim.Adam([mean], RATE)
for generation in range(GENERATIONS):
    half = torch.randn(COUNT // 2, SIZE)
    noise = torch.cat([half, -half])
    earned = returns(mean + SPREAD * noise, envs, seed=generation)
    ranks = earned.argsort().argsort() / (COUNT - 1.0) - 0.5
    gradient = ranks @ noise / (COUNT * SPREAD)
    mean.grad = -gradient
    adam.step()
    if generation == 0:
        first = earned.mean().item()
    if generation % 50 == 49:
        print(
            f"generation {generation + 1}: mean reward {earned.mean():.2f}, best {earned.max():.2f}"
        )
steps = GENERATIONS * COUNT * envs.max_episode_length
print(f"{steps} environment steps in {time.perf_counter() - started:.0f} s")
last = earned.mean().item()
assert last > first + 0.1

# %% [markdown]
# The mean policy in an episode that it has not seen, recorded; `motion.html("swing_up.html")`
# writes a page of it.


# %%
def policy(seen):
    return act(mean[None], torch.tensor(seen, dtype=torch.float32)[None])[0].numpy()


found = env.episode(policy, number=3, seed=10_000)
angle = np.degrees(np.arccos(np.cos(found.motion.q[:, 1])))
print(f"the pole leans by {angle[0]:.0f} degrees at the start, at least by {angle.min():.0f}")
print(f"in the last second by {angle[-25:].mean():.1f} degrees")
assert GENERATIONS < 300 or angle[-25:].mean() < 10.0
