# %% [markdown]
# # Speeds from encoders
# A robot's encoders measure angles in coarse steps, and some readings are missing. What are its
# speeds, its accelerations and its joint torques? Finite differences amplify the quantization. A
# smoother uses the inertia of the joints: it models each joint as a system driven by white jerk,
# and computes the most likely motion given all readings.

# %%
import numpy as np

import psiphi as pp
from psiphi import estimation

STEPS = 1000  # tests: 300
dt = 2e-3
robot = pp.load("ur5")
rng = np.random.default_rng(0)

times = dt * np.arange(STEPS)
rates, phases = rng.uniform(2.0, 6.0, robot.nv), rng.uniform(0.0, 6.0, robot.nv)
angle = np.outer(times, rates) + phases
q, v, a = 0.5 * np.sin(angle), 0.5 * rates * np.cos(angle), -0.5 * rates**2 * np.sin(angle)
torques = robot.inverse_dynamics(q, v, a)

# %% [markdown]
# The measurements have 4096 steps per turn, and 20 % of the readings are missing, independently for
# each joint.

# %%
step = 2 * np.pi / 4096
read = np.round(q / step) * step
read[rng.random(read.shape) < 0.2] = np.nan

# %% [markdown]
# Each joint is a chain: x = (angle, speed, acceleration), x(t + dt) = F x(t) + w, where w results
# from white jerk of 300 rad/s^3 over 10 ms. Quantization acts like noise of variance step^2 / 12.
# In a time series the last instant is stage 0. The six joints are one batch; each has its own
# gains, because different readings are missing.

# %%
F = np.array([[1, dt, dt**2 / 2], [0, 1, dt], [0, 0, 1]])
white = np.array(
    [
        [dt**5 / 20, dt**4 / 8, dt**3 / 6],
        [dt**4 / 8, dt**3 / 3, dt**2 / 2],
        [dt**3 / 6, dt**2 / 2, dt],
    ]
)
start = np.diag([10.0, 100.0, 1000.0])
look, noise = np.array([[1.0, 0.0, 0.0]]), [step**2 / 12]
model = estimation.sequence(
    [F] * (STEPS - 1),
    [start] + [300.0**2 * 0.01 * white] * (STEPS - 1),
    [look] * STEPS,
    [noise] * STEPS,
)
data = [read[t, :, None] for t in reversed(range(STEPS))]
smoother = estimation.Smoother(model.seen([~np.isnan(y) for y in data]))
found = np.array(smoother(data).smoothed[::-1])
print("states (instants, joints, 3):", found.shape)

# %% [markdown]
# For comparison, the usual method: linear interpolation of missing readings, then finite
# differences.

# %%
filled = np.stack([np.interp(times, times[~np.isnan(y)], y[~np.isnan(y)]) for y in read.T], axis=-1)
speed = np.gradient(filled, dt, axis=0)
plain = [filled, speed, np.gradient(speed, dt, axis=0)]
inner = slice(STEPS // 10, -STEPS // 10)
for name, true, smooth, difference in zip(
    ("angle", "speed", "acceleration"), (q, v, a), found.transpose(2, 0, 1), plain, strict=True
):
    errors = [np.sqrt(np.mean((x - true)[inner] ** 2)) for x in (smooth, difference)]
    print(f"{name:13s} error of the smoother {errors[0]:.2e}, of differences {errors[1]:.2e}")
    assert errors[0] < errors[1] / (1.3 if name == "angle" else 5)

# %% [markdown]
# The smoother also gives standard deviations, and its accelerations are accurate enough to compute
# torques.

# %%
spread = np.sqrt(np.array(smoother.smoothed_covariance[::-1])[..., 1, 1])
outside = np.mean(np.abs(found[..., 1] - v)[inner] > 3 * spread[inner])
print(f"speed errors beyond three standard deviations: {100 * outside:.1f} %")
assert outside < 0.05
smooth, rough = (robot.inverse_dynamics(*x) - torques for x in (np.moveaxis(found, 2, 0), plain))
error, other = (np.sqrt(np.mean(x[inner] ** 2)) for x in (smooth, rough))
print(
    f"torque error: {error:.2f} N m by the smoother, {other:.0f} N m by differences, of "
    f"{np.abs(torques).max():.0f} N m"
)
assert error < other / 20
