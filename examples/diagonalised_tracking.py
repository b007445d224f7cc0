# %% [markdown]
# # Decoupled tracking errors
# In the velocities nu the mass matrix is the identity: nu' + C(q, nu) = eps. With eps = C + nu_r' -
# K (nu - nu_r), where nu_r is the desired motion at the arm's actual configuration, s = nu - nu_r
# obeys s' = -K s: six scalar equations with gains k_i, at every speed and in every posture.
# docs/diagonalised.md proves stability.

# %%
import numpy as np

import psiphi as pp

DURATION = 2.0  # tests: 0.4
K = np.array([6.0, 8.0, 10.0, 12.0, 15.0, 20.0])  # 1/s, one for each velocity error
PULL = 5.0  # 1/s: the decay rate of position errors

robot = pp.load("puma560")
arm = robot.diagonalised
amplitude, rate = np.array([0.6, 0.4, 0.5, 0.8, 0.7, 1.0]), 2.0


def swing(t):
    """q, v, a of the desired motion."""
    return (
        amplitude * np.sin(rate * t),
        rate * amplitude * np.cos(rate * t),
        -(rate**2) * amplitude * np.sin(rate * t),
    )


def errors(t, q, nu):
    """s = nu - nu_r, and nu_r', where nu_r = m* (v_d + PULL (q_d - q))."""
    q_d, v_d, a_d = swing(t)
    v = arm.rates(q, nu)
    nu_r, nu_r_dot = arm.reference(q, nu, v_d + PULL * (q_d - q), a_d + PULL * (v_d - v))
    return nu - nu_r, nu_r_dot


def decoupled(t, q, nu):
    """tau of nu' = nu_r' - K s: one inverse dynamics in nu."""
    s, nu_r_dot = errors(t, q, nu)
    return arm.inverse_dynamics(q, nu, nu_r_dot - K * s)


# %% [markdown]
# The arm starts with an error of 17 degrees in every joint, at rest, while the desired motion has
# its largest speed.

# %%
start = swing(0.0)[0] + 0.3
motion = pp.simulate(arm, start, np.zeros(6), decoupled, duration=DURATION)
s = np.stack([errors(t, q, nu)[0] for t, q, nu in zip(motion.t, motion.q, motion.v, strict=True)])
alone = s[0] * np.exp(-K * motion.t[:, None])  # independent decay of each error
off = np.abs(s - alone).max() / np.abs(s[0]).max()
print(f"each velocity error decays as exp(-k t): difference {off:.1e} of the largest")
assert off < 1e-6

# %%
e = np.stack([swing(t)[0] for t in motion.t]) - motion.q
print(
    "position errors at the start", np.abs(e[0]).round(3), "and at the end", np.abs(e[-1]).round(5)
)
energy = 0.5 * (s**2).sum(axis=1)  # of the velocity error: s* s / 2 = (v - v_r)* M (v - v_r) / 2
assert (np.diff(energy) < 0.0).all(), "the kinetic energy of the error decreases"
assert np.abs(e[-1]).max() < 0.6 * np.abs(e[0]).max()

# %% [markdown]
# The same law in (q, v) would be tau = M (..) + C v + g with full matrices; here no coupling terms
# are formed.

# %%
print(
    f"one step of the motion in nu: {arm.flops('motion')} operations; the law: "
    f"{arm.flops('inverse_dynamics')}"
)
