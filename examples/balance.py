# %% [markdown]
# # Balance
# An acrobot: two links, and a motor at the elbow alone. Upright it falls; its linearisation tells how, and an LQR gain made
# from it holds it there. Then the small oscillations of the same arm as it hangs, by the derivative of its gravity torques.

# %%
import numpy as np

import psiphi as pp

STEPS = 3000  # tests: 1500

robot = pp.load("acrobot")
up, rest = np.array([np.pi, 0.0]), np.zeros(2)
assert np.abs(robot.gravity(up)).max() < 1e-9

# %% [markdown]
# Changes of the state grow as dx/dt = A x + B tau, x = (dq, dv). An eigenvalue to the right of zero: it falls.

# %%
A, B = robot.linearize(up, rest, rest)
print("eigenvalues upright:", np.sort(np.linalg.eigvals(A).real).round(2))
assert np.linalg.eigvals(A).real.max() > 1.0

# %% [markdown]
# For a controller in steps of a hundredth of a second, A and B of just that step. The gain of least cost from Riccati's
# equation, iterated: only the elbow's column of B is used.

# %%
dt = 0.01
A, B = robot.linearize(up, rest, rest, dt, method="rk4")
B = B[:, 1:]
Q, R = np.diag([10.0, 10.0, 1.0, 1.0]), np.eye(1)
P = Q
for _ in range(2000):
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    P = Q + A.T @ P @ (A - B @ K)
print(
    "gain:", K.round(1), " largest eigenvalue:", np.abs(np.linalg.eigvals(A - B @ K)).max().round(4)
)
assert np.abs(np.linalg.eigvals(A - B @ K)).max() < 1.0

# %% [markdown]
# On the robot itself, from a few degrees off. Small torques: it is balance, not strength.

# %%
q, v, most = up + np.radians([1.0, -1.0]), rest, 0.0
for _ in range(STEPS):
    tau = np.array([0.0, float((-K @ np.concatenate([q - up, v]))[0])])
    q, v = robot.step(q, v, tau, dt)
    most = max(most, abs(tau[1]))
print(
    f"after {STEPS * dt:.0f} s off by {np.degrees(np.abs(q - up).max()):.1e} degrees; at most {most:.1f} Nm"
)
assert np.abs(q - up).max() < 1e-3

# %% [markdown]
# Hanging, it swings as M d'' = -(dg/dq) d: the stiffness is the derivative of the gravity torques. As an expression:

# %%
s, down = robot.operators, np.zeros(2)
stiffness = pp.derivative(-s.H @ s.phi @ s.M @ s.g, "q")
print(stiffness)
k = pp.function(stiffness)(down)
assert np.allclose(k, robot.function("gravity").jacobian("q")(down))
squares, shapes = np.linalg.eig(np.linalg.solve(robot.mass_matrix(down), k))
print("frequencies (Hz):", np.sort(np.sqrt(squares) / (2 * np.pi)).round(3))
A, _ = robot.linearize(down, rest, rest)
swings = np.unique(np.abs(np.linalg.eigvals(A).imag).round(9))
assert np.allclose(swings, np.sort(np.sqrt(squares)), atol=1e-6)
