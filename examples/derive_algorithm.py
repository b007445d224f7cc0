# %% [markdown]
# # Derive an algorithm
# Write an equation of dynamics with operators; psiphi proves it, rewrites it, and finds the O(N) loops behind it. Here: how the
# tool accelerates when something pushes it, J M^-1 J*, Khatib's inverse operational-space inertia.

# %%
import numpy as np

import psiphi as pp

COUNT = 10_000  # tests: 100

robot = pp.load("panda")
s = robot.operators
J = s.B("tool").T @ s.phi.T @ s.H.T
mass = s.H @ s.phi @ s.M @ s.phi.T @ s.H.T
print("what is wanted:", J @ mass.inv @ J.T)

# %% [markdown]
# The identity behind it: the mass matrix has a factor of which the inverse is known (Rodriguez, Kreutz). A proof, not a check.

# %%
L = s.I + s.H @ s.phi @ s.K
proof = pp.prove(mass, L @ s.D @ L.T)
print(proof)
assert proof and pp.prove(L.inv, s.I - s.H @ s.psi @ s.K)

# %% [markdown]
# What psiphi makes of it: the derivation, the loops, the cost on this robot.

# %%
f = pp.function(J @ mass.inv @ J.T)
print(f.explain())

# %% [markdown]
# It is a NumPy function. Beside it the same by hand, with matrices.

# %%
q = robot.random(seed=0, size=COUNT)
Jq, Mq = robot.jacobian(q, "tool"), robot.mass_matrix(q)
by_hand = Jq @ np.linalg.solve(Mq, np.swapaxes(Jq, -1, -2))
error = np.abs(f(q) - by_hand).max() / np.abs(by_hand).max()
print(f"{f.flops} operations a state, {f.sweeps} sweeps; off the dense computation by {error:.1e}")
assert error < 1e-9

# %% [markdown]
# A false claim is refuted with a state to look at.

# %%
wrong = pp.prove(mass, s.H @ s.psi @ s.M @ s.psi.T @ s.H.T)
print(bool(wrong), wrong.counterexample)
assert not wrong

# %% [markdown]
# In a notebook a proof, or a refutation, shows itself, step by step.

# %%
wrong
