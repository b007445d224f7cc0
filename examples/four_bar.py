# %% [markdown]
# # Four-bar linkage
# Crank, coupler and rocker, closed by a hinge. Three revolute joints and a loop leave one degree of
# freedom. A spatial hinge has five constraint rows, of which a planar linkage needs two: psiphi
# determines the rank and returns the forces of least norm.

# %%
import numpy as np

import psiphi as pp

DURATION = 3.0  # tests: 0.3
# Grashof: 1.0 + 0.3 < 0.9 + 0.7, so the crank makes full turns
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.3, 0.9, 0.7

b = pp.Builder("fourbar")


def rod(name, parent, joint, at, length, mass):
    """A uniform rod along x, on a hinge about y."""
    inertia = (1e-4, 0, 0, mass * length**2 / 12, 0, mass * length**2 / 12)
    b.body(name, mass=mass, com=(length / 2, 0, 0), inertia=inertia)
    b.joint(joint, "revolute", parent=parent, child=name, xyz=at, axis=(0, -1, 0))
    b.frame(f"{name} end", name, xyz=(length, 0, 0))


rod("crank", "world", "a", (0, 0, 0), CRANK, 1.0)
rod("coupler", "crank", "b", (CRANK, 0, 0), COUPLER, 2.0)
rod("rocker", "world", "d", (GROUND, 0, 0), ROCKER, 1.5)
linkage = pp.connect(
    b.build(), [pp.Loop("hinge", "coupler end", "rocker end", axis=(0, 1, 0))], passive=("b", "d")
)
print(linkage)

# %% [markdown]
# Assemble the linkage from an initial guess with the crank fixed, and let it fall.

# %%
q0 = linkage.assemble([0.8, 0.2, 1.8], hold=("a",))
details = linkage.forward_dynamics_details(q0, np.zeros(3), np.zeros(3))
print(
    "assembled at", q0.round(4), "rank of the constraints", int(details["rank"]), "of", linkage.nc
)
assert details["rank"] == 2
motion = pp.simulate(linkage, q0, duration=DURATION)
print(motion.summary())

# %% [markdown]
# Freudenstein's equation holds between the angles of crank and rocker, and energy is conserved.

# %%
crank, rocker = motion.q[:, 0], motion.q[:, 2]
K1, K2 = GROUND / CRANK, GROUND / ROCKER
K3 = (CRANK**2 - COUPLER**2 + ROCKER**2 + GROUND**2) / (2 * CRANK * ROCKER)
freudenstein = K1 * np.cos(rocker) - K2 * np.cos(crank) + K3 - np.cos(crank - rocker)
print(
    f"Freudenstein's equation holds to {np.abs(freudenstein).max():.1e}; energy drifts "
    f"by {float(motion.drift):.1e}"
)
assert np.abs(freudenstein).max() < 1e-9 and motion.drift < 1e-6

# %% [markdown]
# The effective inertia of the closed linkage at the crank, from the kinetic energy at unit crank
# speed.

# %%
J = linkage.constraint_jacobian(q0)
_, sizes, rows = np.linalg.svd(J)
free = rows[-1] / rows[-1][0]  # the free motion, with the crank at 1 rad/s
inertia = free @ linkage.robot.mass_matrix(q0) @ free
a = linkage.forward_dynamics(q0, np.zeros(3), [1.0, 0, 0]) - linkage.forward_dynamics(
    q0, np.zeros(3), np.zeros(3)
)
print(
    f"inertia at the crank {inertia:.4f}, and one newton metre accelerates it by "
    f"{a[0]:.4f} = 1 / {1 / a[0]:.4f}"
)
assert np.isclose(inertia * a[0], 1.0, rtol=1e-8)
