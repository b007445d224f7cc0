# %% [markdown]
# # Swing-up
# `pp.OptimalControl` finds motions of least cost. A cart-pole swings up from a hundred starts at
# once, with at most 10 N; an acrobot, whose only motor is at the elbow, takes one swing more. Then
# model predictive control keeps the pole upright after a kick.

# %%
import numpy as np

import psiphi as pp

STARTS = 100  # tests: 24

# %% [markdown]
# The costs are w |r|^2 / 2 of rows r: postures, speeds, torques. Bounds of the torques are exact.

# %%
pole = pp.load("cartpole")
up = [0.0, 0.0]
swing = pp.OptimalControl(
    pole,
    dt=0.025,
    steps=100,
    running=[pp.cost.torque(0.02), pp.cost.speed(0.02), pp.cost.posture(0.1, at=up)],
    final=[pp.cost.posture([50.0, 200.0], at=up), pp.cost.speed(20.0)],
    torque=10.0,
    actuated=pole.joint_names[0],
)
rng = np.random.default_rng(0)
starts = np.c_[rng.uniform(-1, 1, STARTS), np.pi + rng.uniform(-0.6, 0.6, STARTS)]
found = swing.solve(starts, iterations=300)
print(found)
print("at the end", np.abs(found.q[:, -1]).max(axis=0).round(3))
assert found.converged.all() and np.abs(found.q[:, -1, 1]).max() < 0.1
assert np.abs(found.u).max() <= 10.0

# %% [markdown]
# The acrobot needs a first guess that moves: from rest, no torque means no motion.

# %%
acrobot = pp.load("acrobot")
upright = np.array([np.pi, 0.0])
stand = pp.OptimalControl(
    acrobot,
    dt=0.025,
    steps=160,
    running=[pp.cost.torque(0.02), pp.cost.speed(0.01)],
    final=[pp.cost.posture(1000.0, at=upright), pp.cost.speed(100.0)],
    torque=15.0,
    actuated=acrobot.joint_names[1],
)
guess = 2.0 * np.sin(4.0 * 0.025 * np.arange(160))[:, None]
motion = stand.solve([0.0, 0.0], torques=guess, iterations=300)
print(motion)
assert motion.converged and np.abs(motion.q[-1] - upright).max() < 0.05

# %% [markdown]
# `controller()` is u + K dx about the motion, for simulations with a finer integrator. The model of
# the problem takes steps of 25 ms; the feedback corrects its error.

# %%
first = found.element(0)
exact = pp.simulate(pole, starts[0], tau=first.controller(), duration=2.5)
alone = pp.simulate(pole, starts[0], tau=first.tau, dt=0.025, duration=2.5)
print("with feedback", exact.final.q.round(3), "torques alone", alone.final.q.round(3))
assert np.abs(exact.final.q[1]) < 0.2 < np.abs(alone.final.q[1])

# %% [markdown]
# `pp.MPC` solves the problem again at every node, with one iteration from the last motion. After
# two seconds the pole gets a kick.

# %%
control = pp.MPC(swing, iterations=1, first=200)
before = pp.simulate(pole, [0.2, np.pi], tau=control, dt=0.025, duration=2.5)
kick = np.array([0.0, 1.5])
control.reset()
after = pp.simulate(pole, before.final.q, before.final.v + kick, control, dt=0.025, duration=5.0)
print("after the kick", after.final.q.round(4))
assert np.abs(after.final.q[1]) < 0.05
