# %% [markdown]
# # PUMA 560 under computed torque
# With tau = M(q) (a_ref + kd e' + kp e) + C v + g the error obeys e'' + kd e' + kp e = 0 in each
# joint, for any motion of the arm. The whole law is one evaluation of inverse dynamics: O(N),
# without a mass matrix.

# %%
import numpy as np

import psiphi as pp

DURATION = 3.0  # tests: 0.5
KP, KD = 100.0, 20.0  # critically damped: e(t) = e(0) (1 + 10 t) exp(-10 t)

robot = pp.load("puma560")
amplitude, rate = np.array([0.6, 0.4, 0.5, 0.8, 0.7, 1.0]), 2.0


def swing(t):
    """q, v, a of the desired motion."""
    return (
        amplitude * np.sin(rate * t),
        rate * amplitude * np.cos(rate * t),
        -(rate**2) * amplitude * np.sin(rate * t),
    )


# %%
control = pp.ComputedTorque(robot, swing, kp=KP, kd=KD)
q0, v0, _ = swing(0.0)
start = q0 + 0.3  # 17 degrees off in every joint
motion = pp.simulate(robot, start, v0, control, duration=DURATION)
error = np.stack([swing(t)[0] for t in motion.t]) - motion.q
wanted = -0.3 * (1 + 10 * motion.t) * np.exp(-10 * motion.t)
print(
    f"final error {np.abs(error[-1]).max():.2e} rad, difference from its equation "
    f"{np.abs(error - wanted[:, None]).max():.2e}"
)
assert np.abs(error - wanted[:, None]).max() < 1e-5

# %% [markdown]
# PD control without the model leaves an error due to gravity and coupling.

# %%
plain = pp.simulate(robot, start, v0, pp.PD(robot, swing, kp=2000.0, kd=200.0), duration=DURATION)
late = plain.t > 0.8 * DURATION
left = np.abs(np.stack([swing(t)[0] for t in plain.t[late]]) - plain.q[late]).max()
print(f"error of PD with twenty times the stiffness: {left:.3f} rad")
print("largest torques", np.abs(motion.tau).max(axis=0).round(1))
assert left > 100 * np.abs(error[-1]).max() or DURATION < 1.0

# %% [markdown]
# Notebooks display a motion: its final state, events, curves.

# %%
motion
