# %% [markdown]
# # Least energy through via points
# This example uses the filter in reverse. For a system driven by noise w ~ N(0, I), of which a few
# states are measured exactly, the most likely motion minimises the sum of |w|^2. If the noise is a
# torque and the measurements are via points, the smoother computes the motion of least energy, and
# its co-states give the torques, in agreement with Pontryagin's principle.

# %%
import numpy as np

import psiphi as pp
from psiphi import estimation

STEPS = 100  # tests: 60

# %% [markdown]
# First a case with a known solution: a mass on a line, x = (position, speed), pushed from rest
# through two points to rest. The force of least energy is piecewise linear in time, the path a
# cubic spline.

# %%
dt = 1.0 / STEPS
A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[dt**2 / 2], [dt]])
via = {STEPS // 4: 1.0, STEPS // 2: -0.5, STEPS: 1.0}


def outputs(t, whole, part):
    """The measurement at instant t: the position at via points, the state at the end."""
    return whole if t == STEPS else part if t in via else np.zeros((0, whole.shape[1]))


look = [outputs(t, np.eye(2), np.eye(2)[:1]) for t in range(STEPS + 1)]
mass = estimation.sequence([A] * STEPS, [np.zeros((2, 2))] + [B @ B.T] * STEPS, look)
data = [[via[t], 0.0] if t == STEPS else [via[t]] if t in via else [] for t in range(STEPS + 1)]
found = estimation.Smoother(mass)(data[::-1])
force = np.array([B.T @ x for x in found.costates[-2::-1]])[:, 0]  # co-state after each step
curvature = np.diff(force, 2)
kinks = np.flatnonzero(np.abs(curvature) > 1e-6 * np.abs(force).max()) + 1
print("the slope of the force changes at steps", kinks, "only; via points at", list(via)[:-1])
assert all(min(abs(k - t) for t in via) <= 1 for k in kinks)

# %% [markdown]
# Now an arm, whose dynamics are nonlinear. Linearised along a motion it is such a chain, with
# different A and B at every step (`robot.linearize`, in one call); the next iteration linearises
# along the smoother's motion. The first motion is a smooth path through the same postures, with its
# torques.

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
    """One step of the nonlinear arm."""
    return np.concatenate(robot.step(x[..., :n], x[..., n:], tau, dt, method="rk4"), axis=-1)


def energy(tau):
    return dt * float((tau**2).sum())


# %% [markdown]
# The noise is the whole torque, since all of it counts as energy; the remainder of a step, besides
# A x + B tau, is a known input.

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
print("energy, every third iteration:", *(f"{e:.2f}" for e in history[::3]))

# %% [markdown]
# The nonlinear arm, driven by these torques, passes the via points. The torques are a local
# optimum: the gradient of the energy, the torques themselves, is a linear combination of the
# gradients of the via-point constraints, by A and B along the motion.

# %%
states, change, gradients = [x[0]], np.zeros((2 * n, STEPS, n)), []
for t, torque in enumerate(tau):
    A, B = robot.linearize(states[-1][:n], states[-1][n:], torque, dt, method="rk4")
    states.append(step(states[-1], torque))
    change = np.einsum("ij,jtk->itk", A, change)  # of the state, by all previous torques
    change[:, t] += B
    gradients += list((look[t + 1] @ change.reshape(2 * n, -1)).reshape(-1, STEPS * n))
missed = max(np.abs(states[t][:n] - q).max() for t, q in via.items())
print(
    f"error at the via points {missed:.1e} rad, speed at the end "
    f"{np.abs(states[-1][n:]).max():.1e} rad/s"
)
weights = np.linalg.lstsq(np.array(gradients).T, tau.reshape(-1), rcond=None)[0]
left = np.abs(weights @ np.array(gradients) - tau.reshape(-1)).max() / np.abs(tau).max()
print(f"residual of the optimality condition: {left:.1e} of the largest torque")
assert missed < 1e-6 and left < 1e-5 and abs(history[-1] - history[-2]) < 1e-6 * history[-1]
