# %% [markdown]
# # Train a policy through the simulator
# A small torch network moves an arm to a target posture and holds it there. The loss depends on the
# motion, and gradients propagate through every step: `pp.rollout` accepts and returns tensors.

# %%
import numpy as np
import torch

import psiphi as pp

EPOCHS = 150  # tests: 15

torch.manual_seed(0)
torch.set_num_threads(1)  # the network is small
robot = pp.load("pelican")
goal = torch.tensor([1.0, -0.5], dtype=torch.float64)
policy = torch.nn.Sequential(
    torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)
).double()
scale = torch.tensor([60.0, 15.0], dtype=torch.float64)

# %% [markdown]
# Control at 50 Hz, physics at 1 kHz: the network outputs a torque, which is constant for twenty
# steps.


# %%
def closed_loop(q, v, times):
    """The states after each torque, (times, batch, 4)."""
    states = []
    for _ in range(times):
        seen = torch.cat([torch.sin(q), torch.cos(q), 0.2 * v], dim=-1)
        Q, V = pp.rollout(
            robot,
            q,
            v,
            scale * torch.tanh(policy(seen)),
            dt=1e-3,
            steps=20,
            every=20,
            method="euler",
        )
        q, v = Q[:, -1], V[:, -1]
        states.append(torch.cat([q, v], dim=-1))
    return torch.stack(states)


def loss(states):
    return ((states[..., :2] - goal) ** 2).mean() + 1e-3 * (states[..., 2:] ** 2).mean()


# %%
q0 = goal + 0.6 * torch.randn(64, 2, dtype=torch.float64)
v0 = torch.zeros_like(q0)
adam = torch.optim.Adam(policy.parameters(), 1e-2)
for epoch in range(EPOCHS):
    adam.zero_grad()
    value = loss(closed_loop(q0, v0, 40))
    value.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    adam.step()
    if epoch == 0:
        first = value.item()
    if epoch % 30 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch:3d}: loss {value.item():.4f}")
assert value.item() < 0.5 * first

# %% [markdown]
# From initial states that were not used in training:

# %%
with torch.no_grad():
    fresh = goal + 0.4 * torch.randn(100, 2, dtype=torch.float64)
    end = closed_loop(fresh, torch.zeros_like(fresh), 80)[-1]
off = np.degrees((end[:, :2] - goal).abs().mean().item())
print(f"after 1.6 s the joints are {off:.1f} degrees from the goal, on average")
assert off < 15.0
