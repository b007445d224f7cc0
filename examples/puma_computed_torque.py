# %% [markdown]
# # PUMA 560 under computed torque
# tau = M(q) (a_ref + kd e' + kp e) + C v + g makes the error obey e'' + kd e' + kp e = 0, joint by joint, whatever the arm
# does. The whole law is one inverse dynamics: O(N), no mass matrix.

# %%
import numpy as np

import psiphi as pp

DURATION = 3.0  # tests: 0.5
KP, KD = 100.0, 20.0  # critically damped: e(t) = e(0) (1 + 10 t) exp(-10 t)

robot = pp.load("puma560")
amplitude, rate = np.array([0.6, 0.4, 0.5, 0.8, 0.7, 1.0]), 2.0


def swing(t):
    """q, v, a of the motion wanted."""
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
    f"error at the end {np.abs(error[-1]).max():.2e} rad, off its own equation by {np.abs(error - wanted[:, None]).max():.2e}"
)
assert np.abs(error - wanted[:, None]).max() < 1e-5

# %% [markdown]
# Without the model, PD alone leaves the error that gravity and the couplings make.

# %%
plain = pp.simulate(robot, start, v0, pp.PD(robot, swing, kp=2000.0, kd=200.0), duration=DURATION)
late = plain.t > 0.8 * DURATION
left = np.abs(np.stack([swing(t)[0] for t in plain.t[late]]) - plain.q[late]).max()
print(f"PD with twenty times the stiffness still errs by {left:.3f} rad")
print("largest torques", np.abs(motion.tau).max(axis=0).round(1))
assert left > 100 * np.abs(error[-1]).max() or DURATION < 1.0

# %% [markdown]
# In a notebook a motion shows itself: how it ended, what happened, its curves.

# %%
motion
