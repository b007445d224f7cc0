# %% [markdown]
# # Derive an algorithm
# You write an equation of dynamics with operators; psiphi proves it, rewrites it, and derives the
# O(N) loops. The example is J M^-1 J*, the inverse of Khatib's operational-space inertia: the
# acceleration of the tool per unit force.

# %%
import numpy as np

import psiphi as pp

COUNT = 10_000  # tests: 100

robot = pp.load("panda")
s = robot.operators
J = s.B("tool").T @ s.phi.T @ s.H.T
mass = s.H @ s.phi @ s.M @ s.phi.T @ s.H.T
print("expression:", J @ mass.inv @ J.T)

# %% [markdown]
# The derivation is based on a factorization of the mass matrix whose inverse is known (Rodriguez,
# Kreutz). This is a proof, not a numerical check.

# %%
L = s.I + s.H @ s.phi @ s.K
proof = pp.prove(mass, L @ s.D @ L.T)
print(proof)
assert proof and pp.prove(L.inv, s.I - s.H @ s.psi @ s.K)

# %% [markdown]
# The derivation, the loops, and the cost on this robot:

# %%
f = pp.function(J @ mass.inv @ J.T)
print(f.explain())

# %% [markdown]
# The result is a NumPy function. The reference is a dense computation with matrices.

# %%
q = robot.random(seed=0, size=COUNT)
Jq, Mq = robot.jacobian(q, "tool"), robot.mass_matrix(q)
by_hand = Jq @ np.linalg.solve(Mq, np.swapaxes(Jq, -1, -2))
error = np.abs(f(q) - by_hand).max() / np.abs(by_hand).max()
print(
    f"{f.flops} operations per state, {f.sweeps} sweeps; difference from the dense "
    f"computation {error:.1e}"
)
assert error < 1e-9

# %% [markdown]
# A false claim is refuted by a counterexample.

# %%
wrong = pp.prove(mass, s.H @ s.psi @ s.M @ s.psi.T @ s.H.T)
print(bool(wrong), wrong.counterexample)
assert not wrong

# %% [markdown]
# Notebooks display a proof, or a refutation, step by step.

# %%
wrong
