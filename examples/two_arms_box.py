# %% [markdown]
# # Two arms and a box
# Two UR5 arms hold a box: a closed chain. psiphi solves it in O(N): each arm separately, then one
# small system for the contact forces. The box moves up and down along a path while the arms squeeze
# it.

# %%
import numpy as np

import psiphi as pp

DURATION = 2.0  # tests: 0.04
DT = 2e-3

arm = pp.load("ur5")
q_arm = np.array([0.0, -1.0, 1.6, -0.6, -np.pi / 2, 0.0])
hand = arm.frame_pose(q_arm, "tool")
half = np.array([0.2, 0.0, 0.0])  # the centre of the box is 20 cm beyond the first hand
middle = hand[:3, 3] + half

# %% [markdown]
# The second arm is the first one, rotated by 180 degrees about the vertical axis of the box, so
# that the same q closes the chain.

# %%
turn = np.diag([-1.0, -1.0, 1.0, 1.0])  # Rz(180 degrees)
shift = np.eye(4)
shift[:3, 3] = middle
second_base = shift @ turn @ np.linalg.inv(shift)
box = pp.Body.box(mass=3.0, size=(0.4, 0.25, 0.2))
# poses of the hands in the box
grips = [np.linalg.inv(shift) @ hand, np.linalg.inv(shift) @ second_base @ hand]
cell = pp.grasp([(arm, None, "tool"), (arm, second_base, "tool")], box, at=grips)
q0 = np.concatenate([q_arm, q_arm, middle, [0, 0, 0, 1]])
print(cell, "constraint error", np.abs(cell.constraint_residual(q0)).max())
assert np.abs(cell.constraint_residual(q0)).max() < 1e-12

# %% [markdown]
# Forward dynamics returns accelerations and contact wrenches. Four other algorithms give the same
# result: RCCFD1 to RCCFD3 of the papers, and a dense solution of the whole system (KKT).

# %%
v0, tau0 = np.zeros(cell.nv), np.zeros(cell.nv)
a, forces = cell.forward_dynamics(q0, v0, tau0, forces=True)
for method in ("RCCFD1", "RCCFD2", "RCCFD3", "KKT"):
    other = cell.forward_dynamics(q0, v0, tau0, method=method)
    print(method, "differs by", np.abs(other - a).max() / np.abs(a).max())
    assert np.allclose(other, a, rtol=1e-8, atol=1e-8)
print("operations of one forward dynamics:", cell.flops())

# %% [markdown]
# Control: choose the acceleration of the box (a path with feedback); `complete` computes the
# accelerations of the arms from the constraints, inverse dynamics the torques. The load is shared
# evenly; a squeeze force of 20 N is added, which does not affect the motion.

# %%
SQUEEZE = np.zeros((2, 6))
SQUEEZE[:, 3:] = [[20.0, 0, 0], [-20.0, 0, 0]]  # along +x by the first hand, -x by the second
box_v, box_q = slice(cell.nv - 6, cell.nv), slice(cell.nq - 7, cell.nq)


def path(t):
    """Height, velocity and acceleration: up by 10 cm and down again."""
    w = 2 * np.pi / 2.0
    return 0.05 * (1 - np.cos(w * t)), 0.05 * w * np.sin(w * t), 0.05 * w**2 * np.cos(w * t)


def carry(t, q, v):
    height, rate, acceleration = path(t)
    target = np.array(q0)
    target[box_q] = [*(middle + np.array([0, 0, height])), 0, 0, 0, 1]
    a = np.zeros(cell.nv)
    a[box_v] = 100.0 * cell.difference(q, target)[box_v]
    a[box_v] += 20.0 * (np.array([0, 0, 0, 0, 0, rate]) - v[box_v])
    a[box_v] += np.array([0, 0, 0, 0, 0, acceleration])
    a = cell.complete(q, v, a, exactly="box/free")
    return cell.inverse_dynamics(q, v, a, internal=SQUEEZE)


motion = pp.simulate(cell, q0, tau=carry, duration=DURATION, dt=DT, hold=True)
print(motion.summary())
height = motion.q[:, box_q][:, 2] - middle[2]
wanted = np.array([path(t)[0] for t in motion.t])
off = np.abs(height - wanted).max()
print(f"tracking error {off * 1e3:.2f} mm, constraint error {motion.residual.max():.0e}")
assert off < 1e-3 and motion.residual.max() < 1e-9
squeeze = motion.forces[1:, 0, 3] - motion.forces[1:, 1, 3]
print("squeeze along x:", (squeeze / 2).min().round(2), "to", (squeeze / 2).max().round(2), "N")

# %% [markdown]
# Notebooks display a motion: its final state, events, curves.

# %%
motion
