# %% [markdown]
# # Identify an unknown load
# The parameters of a robot can be inputs (`robot.free`), so that a thousand robots with different
# loads run in one kernel. First: the position error of the hand under a controller that ignores the
# load, for all loads. Then: identify the load from the torques of one motion (`pp.identify`), which
# gives the robot with its load.

# %%
import numpy as np

import psiphi as pp

LOADS = 1000  # tests: 50

robot = pp.load("puma560")
last = robot.bodies[-1].name
light = robot.free("inertia", links=last)
mass = np.linspace(0.0, 3.0, LOADS)
loads = light.payload(last, mass, com=(0.0, 0.0, 0.1), inertia=1e-3 * np.eye(3))

# %%
home = np.array([0.0, -0.8, 0.6, 0.0, 0.5, 0.0])
control = pp.PD(robot, home, kp=200.0, kd=40.0, gravity=True)  # for the robot without a load
steady = pp.simulate(light.at(loads), home, tau=control, duration=2.0, dt=2e-3, every=1000)
hands = light.frame_pose(steady.final.q, last, parameters=loads)[:, :3, 3]
sag = 1e3 * np.linalg.norm(hands - robot.frame_pose(home, last)[:3, 3], axis=-1)
half = LOADS // 2
print(
    f"with {mass[-1]:g} kg the hand is displaced by {sag[-1]:.1f} mm, with "
    f"{mass[half]:.2g} kg by {sag[half]:.1f} mm"
)

# %%
loaded, rng = light.at(loads[2 * LOADS // 3]), np.random.default_rng(0)
q = home + rng.uniform(-1.0, 1.0, (400, 6))
v, a = rng.standard_normal((2, 400, 6))
tau = loaded.inverse_dynamics(q, v, a) + 0.05 * rng.standard_normal((400, 6))
found = pp.identify(robot, q, v, a, tau)
print(found.report().split("\n\n")[0])

# %%
before, after = (
    np.sqrt(((x.inverse_dynamics(q, v, a) - tau) ** 2).mean()) for x in (robot, found.robot)
)
print(f"torque error {before:.3g} N m before, {after:.3g} N m after; the noise is 0.05")
assert after < 0.06 < before
