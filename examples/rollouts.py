# %% [markdown]
# # A hundred thousand rollouts
# All functions take batches, and so does `pp.simulate`: if the torques are an array, every step of
# every rollout runs in one compiled kernel, eight robots per SIMD instruction. The example applies
# random torques to a UR5 and finds those that bring the hand nearest to a target.

# %%
import time

import numpy as np

import psiphi as pp

COUNT = 100_000  # tests: 500
STEPS, DT = 50, 0.01
PLACE = np.array([0.4, 0.3, 0.5])

robot = pp.load("ur5")
rng = np.random.default_rng(0)
q0 = np.array([0.0, -1.2, 1.5, -0.5, 0.3, 0.0])
hold = robot.gravity(q0)
spread = np.array([20.0, 20.0, 10.0, 1.0, 1.0, 1.0])
tau = hold + spread * rng.standard_normal((COUNT, 6))  # one constant torque per rollout

# %%
options = {"duration": STEPS * DT, "dt": DT, "every": STEPS}
pp.simulate(robot, np.tile(q0, (8, 1)), tau=tau[:8], **options)  # compiles
begin = time.perf_counter()
motion = pp.simulate(robot, np.tile(q0, (COUNT, 1)), tau=tau, **options)
seconds = time.perf_counter() - begin
steps = COUNT * STEPS
print(
    f"{COUNT} rollouts of {STEPS} RK4 steps in {seconds:.2f} s: "
    f"{steps / seconds / 1e6:.1f} million steps per second"
)

# %%
ends = robot.frame_pose(motion.q[:, -1], "tool")[:, :3, 3]
distance = np.linalg.norm(ends - PLACE, axis=1)
best = np.argsort(distance)[:5]
print("nearest five:", distance[best].round(3), "of", distance.mean().round(3), "on average")
again = pp.simulate(robot, q0, tau=tau[best[0]], duration=STEPS * DT, dt=DT)
print(
    "the best one, simulated alone, differs by "
    f"{np.abs(again.q[-1] - motion.q[best[0], -1]).max():.1e} rad"
)
assert np.abs(again.q[-1] - motion.q[best[0], -1]).max() < 1e-9
