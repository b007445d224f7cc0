# %% [markdown]
# # Train a policy through the optimum
# A two-link arm throws a ball at a target on the floor. A small network chooses the state at which
# the arm releases the ball; `pp.OptimalControl` finds the motion of least cost towards it, within
# the torques of the motors. The loss is where the ball lands, and gradients propagate through the
# optimal motion: `solve` accepts and returns tensors.

# %%
import numpy as np
import torch

import psiphi as pp

EPOCHS = 80  # tests: 25

torch.manual_seed(0)
torch.set_num_threads(1)  # the network is small
robot = pp.load("pelican")
throw = pp.OptimalControl(
    robot,
    dt=0.02,
    steps=20,
    running=[pp.cost.torque(1e-3)],
    final=[pp.cost.posture(100.0), pp.cost.speed(2.0, at=None)],
    torque=[60.0, 15.0],
)

# %% [markdown]
# The network maps the distance of the target to a posture and a speed. The arm does not reach them
# exactly: its torques are limited, and cost something. So the loss depends on the motion.

# %%
policy = torch.nn.Sequential(
    torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)
).double()
middle = torch.tensor([1.2, 0.4, 3.0, 3.0], dtype=torch.float64)
FLOOR, GRAVITY = -0.6, 9.81


def motion_to(target):
    """The optimal motions from rest for targets (batch, 1)."""
    release = middle + policy(target - 1.2)
    return throw.solve(torch.zeros(2), posture=release[:, :2], speed=release[:, 2:])


def landing(found):
    """Where the balls meet the floor, (batch,)."""
    q, v = found.q[:, -1], found.v[:, -1]
    p, speed = robot.frame_pose(q, "tool")[:, :3, 3], robot.frame_velocity(q, v, "tool")[:, 3:]
    fall = speed[:, 2] ** 2 + 2.0 * GRAVITY * (p[:, 2] - FLOOR)
    return p[:, 0] + speed[:, 0] * (speed[:, 2] + torch.sqrt(fall)) / GRAVITY


# %%
targets = torch.linspace(0.8, 1.6, 12, dtype=torch.float64)[:, None]
adam = torch.optim.Adam(policy.parameters(), 2e-2)
for epoch in range(EPOCHS):
    adam.zero_grad()
    found = motion_to(targets)
    miss = torch.where(found.converged, landing(found) - targets[:, 0], 0.0)
    loss = (miss**2).mean() + 1e-5 * (found.u**2).mean()
    loss.backward()
    adam.step()
    if epoch == 0:
        first = loss.item()
    if epoch % 20 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch:3d}: loss {loss.item():.5f}")
assert loss.item() < 0.2 * first

# %% [markdown]
# Targets that were not used in training:

# %%
with torch.no_grad():
    fresh = torch.rand(50, 1, dtype=torch.float64) * 0.7 + 0.85
    miss = (landing(motion_to(fresh)) - fresh[:, 0]).abs()
print(f"balls land {100 * miss.mean():.1f} cm from their targets, on average")
assert np.median(miss) < 0.1
