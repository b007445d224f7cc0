# %% [markdown]
# # Fit masses to a motion
# This example identifies the masses of an arm from noisy angles along a motion. The motion is a
# rollout, its derivatives by the unknown masses are exact, and SciPy's `least_squares` needs five
# iterations.

# %%
import numpy as np
from scipy.optimize import least_squares

import psiphi as pp

STEPS = 400  # tests: 300

robot = pp.load("pelican")
light = robot.free("mass")
true = light.parameters() * [1.3, 0.7]
rng = np.random.default_rng(0)
tau = 5.0 * np.sin(0.02 * np.arange(STEPS)[:, None] * [1.0, 1.7] + [0.0, 1.0])

# %% [markdown]
# The measurements: every tenth step, with noise of half a milliradian.

# %%
seen = pp.rollout(light.at(true), np.zeros(2), None, tau, 2e-3, STEPS, every=10).q
seen = seen + 5e-4 * rng.standard_normal(seen.shape)

# %% [markdown]
# The motion for assumed masses, and its derivatives: `jvp` computes the derivatives by all masses
# in one batch.


# %%
def motion(masses):
    return pp.rollout(light.at(masses), np.zeros(masses.shape), None, tau, 2e-3, STEPS, every=10)


def misfit(masses):
    return (motion(masses).q - seen).ravel()


def slope(masses):
    states = motion(np.tile(masses, (2, 1)))  # one motion per mass
    return states.jvp(parameters=np.eye(2))[0].reshape(2, -1).T


guess = light.parameters()
found = least_squares(misfit, guess, slope, x_scale=guess)
print("masses", found.x.round(4), "true", true.round(4), "after", found.nfev, "motions")
assert np.abs(found.x / true - 1.0).max() < 0.01 and np.std(found.fun) < 6e-4
numeric = np.stack(
    [(misfit(guess + h) - misfit(guess - h)) / 2e-6 for h in 1e-6 * np.eye(2)], axis=-1
)
assert np.allclose(slope(guess), numeric, rtol=1e-5, atol=1e-6)
