# %% [markdown]
# # Sample from N(0, M^-1)
# At temperature kT the joint velocities of a mechanism are Gaussian with covariance kT M(q)^-1;
# molecular dynamics and Hamiltonian Monte Carlo sample them in every step. With M = L D L* (L = I +
# H phi K, D block diagonal) a sample is v = L^-* D^-1/2 z, and L^-1 = I - H psi K is one sweep:
# O(N), without a matrix or a Cholesky factorization.

# %%
import numpy as np

import psiphi as pp

COUNT = 200_000  # tests: 20_000

robot = pp.load("panda")
s = robot.operators
z = pp.vector("z", "joint")
draw = pp.function(s.mass_half.inv.T @ z)
print(draw.explain())

# %%
q = robot.random(seed=1)
rng = np.random.default_rng(0)
v = draw(q, rng.standard_normal((COUNT, robot.nv)))
covariance = v.T @ v / COUNT
wanted = robot.mass_matrix_inverse(q)
scale = np.sqrt(np.diag(wanted))
error = np.abs((covariance - wanted) / np.outer(scale, scale)).max()
print(
    f"{COUNT} samples: error of correlations {error:.4f}, compared with 1 / sqrt(n) = "
    f"{1 / np.sqrt(COUNT):.4f}"
)
assert error < 6 / np.sqrt(COUNT)

# %% [markdown]
# The kinetic energy of such samples is half a chi-squared variable with nv degrees of freedom: its
# mean is nv / 2.

# %%
energy = robot.kinetic_energy(q, v)
print(f"mean kinetic energy {energy.mean():.3f}, expected {robot.nv / 2}")
assert abs(energy.mean() - robot.nv / 2) < 6 * np.sqrt(robot.nv / 2 / COUNT)

# %% [markdown]
# Exact to rounding: the operator is a square root of M^-1, which also gives the determinant.

# %%
R = pp.function(s.mass_half.inv.T)(q)
assert np.allclose(R @ R.T, wanted, rtol=1e-9, atol=1e-12)
print("log det M =", float(robot.mass_log_det(q)), "=", -2 * np.linalg.slogdet(R)[1])
