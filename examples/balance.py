# %% [markdown]
# # Balance
# An acrobot has two links and a motor at the elbow only. Upright it is unstable; this example
# linearises it and stabilises it with an LQR gain. Then it computes the small oscillations of the
# hanging arm from the derivative of the gravity torques.

# %%
import numpy as np

import psiphi as pp

STEPS = 3000  # tests: 1500

robot = pp.load("acrobot")
up, rest = np.array([np.pi, 0.0]), np.zeros(2)
assert np.abs(robot.gravity(up)).max() < 1e-9

# %% [markdown]
# Small deviations obey dx/dt = A x + B tau, x = (dq, dv). An eigenvalue with positive real part
# means that the arm falls.

# %%
A, B = robot.linearize(up, rest, rest)
print("eigenvalues upright:", np.sort(np.linalg.eigvals(A).real).round(2))
assert np.linalg.eigvals(A).real.max() > 1.0

# %% [markdown]
# For a digital controller with steps of 10 ms, A and B are those of one step. Riccati's equation,
# iterated, gives the LQR gain; it uses only the elbow's column of B.

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
# The gain on the nonlinear robot, from an initial deviation of one degree per joint. The torques
# are small.

# %%
q, v, largest = up + np.radians([1.0, -1.0]), rest, 0.0
for _ in range(STEPS):
    tau = np.array([0.0, float((-K @ np.concatenate([q - up, v]))[0])])
    q, v = robot.step(q, v, tau, dt)
    largest = max(largest, abs(tau[1]))
print(
    f"after {STEPS * dt:.0f} s off by {np.degrees(np.abs(q - up).max()):.1e} degrees; at "
    f"most {largest:.1f} Nm"
)
assert np.abs(q - up).max() < 1e-3

# %% [markdown]
# The hanging arm oscillates as M d'' = -(dg/dq) d: the stiffness is the derivative of the gravity
# torques. As an expression:

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
