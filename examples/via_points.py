# %% [markdown]
# # Least energy through via points
# Read the filter the other way round. A system driven by noise w ~ N(0, I), of which a few states are measured exactly, has
# most likely moved so that the sum of |w|^2 is least. Call the noise torques and the measurements via points: the same smoother
# finds the motion of least energy, and its co-states give the torques, as Pontryagin's principle says they must.

# %%
import numpy as np

import psiphi as pp
from psiphi import estimation

STEPS = 100  # tests: 60

# %% [markdown]
# First where the answer is known: a mass on a line, x = (position, speed), pushed from rest through two points to rest. The
# force of least energy is piecewise linear in time, the path a cubic spline.

# %%
dt = 1.0 / STEPS
A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[dt**2 / 2], [dt]])
via = {STEPS // 4: 1.0, STEPS // 2: -0.5, STEPS: 1.0}


def outputs(t, whole, part):
    """What is measured at instant t: at a via point the position, at the end all, else nothing."""
    return whole if t == STEPS else part if t in via else np.zeros((0, whole.shape[1]))


look = [outputs(t, np.eye(2), np.eye(2)[:1]) for t in range(STEPS + 1)]
mass = estimation.sequence([A] * STEPS, [np.zeros((2, 2))] + [B @ B.T] * STEPS, look)
data = [[via[t], 0.0] if t == STEPS else [via[t]] if t in via else [] for t in range(STEPS + 1)]
found = estimation.Smoother(mass)(data[::-1])
force = np.array([B.T @ x for x in found.costates[-2::-1]])[:, 0]  # co-state after each step
bend = np.diff(force, 2)
bent = np.flatnonzero(np.abs(bend) > 1e-6 * np.abs(force).max()) + 1
print("the force bends at steps", bent, "and nowhere else; via points at", list(via)[:-1])
assert all(min(abs(k - t) for t in via) <= 1 for k in bent)

# %% [markdown]
# Now an arm, whose dynamics are not linear. Linearised along a motion it is such a chain, with A and B of its own at every step
# (`robot.linearize`, all at once); the smoother's motion is the next to linearise along. The first is a smooth path through
# the same postures, with the torques it needs.

# %%
robot = pp.load("pelican")
via = {STEPS // 2: np.array([0.6, 1.2]), STEPS: np.array([2.0, -0.4])}
dt, n = 0.4 / STEPS, robot.nv
way = pp.path(robot, np.array([np.zeros(n), *via.values()]), kind="smooth", acceleration=10.0)
q, v, a = way(np.linspace(0.0, way.duration, STEPS + 1))
faster = way.duration / (STEPS * dt)
v, a = faster * v, faster**2 * a
tau = robot.inverse_dynamics(q, v, a)[:-1]
x = np.concatenate([q, v], axis=-1)


def step(x, tau):
    """One step of the arm itself."""
    return np.concatenate(robot.step(x[..., :n], x[..., n:], tau, dt, method="rk4"), axis=-1)


def energy(tau):
    return dt * float((tau**2).sum())


# %% [markdown]
# The noise is the whole torque, since all of it costs; what a step does besides A x + B tau is a known input.

# %%
look = [outputs(t, np.eye(2 * n), np.eye(2 * n)[:n]) for t in range(STEPS + 1)]
print(f"the smooth path: energy {energy(tau):.1f}")
history = []
for _ in range(24):
    A, B = robot.linearize(x[:-1, :n], x[:-1, n:], tau, dt, method="rk4")
    drive = np.concatenate([np.zeros((1, 2 * n, 2 * n)), B @ B.swapaxes(-1, -2)])
    rest = step(x[:-1], tau) - (A @ x[:-1, :, None] + B @ tau[..., None])[..., 0]
    known = np.concatenate([x[:1], rest])
    goal = [
        np.concatenate([via[t], np.zeros(n)])[: len(H)] if len(H) else []
        for t, H in enumerate(look)
    ]
    found = estimation.Smoother(estimation.sequence(A, drive, look))(goal[::-1], known[::-1])
    tau = np.array([b.T @ costate for b, costate in zip(B, found.costates[-2::-1], strict=True)])
    x = np.array(found.smoothed[::-1])
    history.append(energy(tau))
print("energy, every third round:", *(f"{e:.2f}" for e in history[::3]))

# %% [markdown]
# The arm itself, driven by these torques, passes the via points. And no torques nearby that do so cost less: the gradient of
# the energy, the torques themselves, is a combination of the gradients of what the via points ask, by A and B along the motion.

# %%
states, change, asked = [x[0]], np.zeros((2 * n, STEPS, n)), []
for t, push in enumerate(tau):
    A, B = robot.linearize(states[-1][:n], states[-1][n:], push, dt, method="rk4")
    states.append(step(states[-1], push))
    change = np.einsum("ij,jtk->itk", A, change)  # of the state now, by every torque so far
    change[:, t] += B
    asked += list((look[t + 1] @ change.reshape(2 * n, -1)).reshape(-1, STEPS * n))
missed = max(np.abs(states[t][:n] - q).max() for t, q in via.items())
print(
    f"via points missed by {missed:.1e} rad, speed at the end {np.abs(states[-1][n:]).max():.1e} rad/s"
)
weights = np.linalg.lstsq(np.array(asked).T, tau.reshape(-1), rcond=None)[0]
left = np.abs(weights @ np.array(asked) - tau.reshape(-1)).max() / np.abs(tau).max()
print(f"torques that the via points do not ask for: {left:.1e} of the largest")
assert missed < 1e-6 and left < 1e-5 and abs(history[-1] - history[-2]) < 1e-6 * history[-1]
