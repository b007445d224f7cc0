# %% [markdown]
# # Three arms, three kinds of contact
# Three PUMA arms hold one object: the first by a rigid contact; the second by a line contact, about
# whose axis it can rotate; the third by a point contact, which transmits forces but no moments.
# (Rodriguez and Kreutz 1988, part II, appendix B: grasps that are not rigid.)

# %%
import numpy as np

import psiphi as pp

DURATION = 0.5  # tests: 0.03

arm = pp.load("puma560")
q_arm = np.array([0.0, -0.6, 0.4, 0.3, 0.5, 0.2])
hand = arm.frame_pose(q_arm, "tool")
middle = np.eye(4)
middle[:3, 3] = hand[:3, 3] + [0.25, 0.0, 0.0]


def turned(angle):
    """The rotation by `angle` about the vertical axis through the centre of the object."""
    c, s = np.cos(angle), np.sin(angle)
    R = np.eye(4)
    R[:2, :2] = [[c, -s], [s, c]]
    return middle @ R @ np.linalg.inv(middle)


bases = [turned(k * 2 * np.pi / 3) for k in range(3)]
grips = [np.linalg.inv(middle) @ base @ hand for base in bases]
contacts = ["rigid", pp.Contact("line", axis=(0, 0, 1)), "point"]
ball = pp.Body.sphere(mass=5.0, radius=0.25, name="ball")
cell = pp.grasp([(arm, base, "tool") for base in bases], ball, at=grips, contacts=contacts)
q0 = np.concatenate([q_arm, q_arm, q_arm, middle[:3, 3], [0, 0, 0, 1]])
print(cell)
assert cell.nc == 6 + 5 + 3 and np.abs(cell.constraint_residual(q0)).max() < 1e-12

# %% [markdown]
# Torques that hold the object at rest, with the load shared by the three arms; then a force on the
# object.

# %%
still = np.zeros(cell.nv)
hold, forces = cell.inverse_dynamics(q0, still, still, forces=True)
print(
    "vertical forces of the contacts on the ball:",
    forces[:, 5].round(3),
    "N; together",
    forces[:, 5].sum().round(6),
)
assert np.isclose(forces[:, 5].sum(), 5.0 * 9.81)
assert np.abs(cell.forward_dynamics(q0, still, hold)).max() < 1e-9

# %%
a, forces = cell.forward_dynamics(
    q0, still, hold, forces=True, f_ext={"ball/ball": [0, 0, 0, 30.0, 0, 0]}
)
print("the ball's acceleration under a push of 30 N:", a[-6:].round(3))
print("moments the point contact carries:", np.abs(forces[2, :3]).max())
assert np.abs(forces[2, :3]).max() < 1e-9
dense = cell.forward_dynamics(
    q0, still, hold, method="KKT", f_ext={"ball/ball": [0, 0, 0, 30.0, 0, 0]}
)
print("difference from the dense solution of the whole system", np.abs(a - dense).max())
assert np.allclose(a, dense, rtol=1e-7, atol=1e-7)

# %% [markdown]
# Reduce the motor torques to one half, and compare the relative motion in each grasp, [angular;
# linear] in its own axes, with its free motions.

# %%
motion = pp.simulate(cell, q0, tau=0.5 * hold, duration=DURATION)
rates = cell.contact_rates(motion.q[-1], motion.v[-1])
print("relative motion in the grasps after", motion.t[-1], "s\n", rates.round(6) + 0.0)
assert np.abs(rates[0]).max() < 1e-9, "rigid: none"
assert np.abs(rates[1][[0, 1, 3, 4, 5]]).max() < 1e-9, "line: rotation about its axis"
assert np.abs(rates[2][3:]).max() < 1e-9, "point: any rotation, no sliding"
print(motion.summary())

# %% [markdown]
# Notebooks display a closed chain.

# %%
cell
