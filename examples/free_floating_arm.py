# %% [markdown]
# # Momentum of a free-floating robot
# When the arms of a satellite move, its body rotates in the opposite direction. Without external
# forces the momentum [angular; linear] about a fixed point is constant, for any motor torques.

# %%
import numpy as np

import psiphi as pp

DURATION = 5.0  # tests: 0.2
DT = 1e-3

robot = pp.load("free_flyer")  # a satellite of 200 kg, two UR5 arms, no gravity
print(f"{robot.name}: {len(robot.bodies)} bodies, {robot.mass:.1f} kg, nv = {robot.nv}")


def momentum(q, v):
    """h = [angular about the world's origin; linear]: the first six rows of M v, in world axes."""
    T = robot.frame_pose(q, "bus")
    # about the bus's origin, in its axes
    h = np.einsum("...ij,...j->...i", robot.mass_matrix(q)[..., :6, :], v)
    angular = np.einsum("...ij,...j->...i", T[..., :3, :3], h[..., :3])
    linear = np.einsum("...ij,...j->...i", T[..., :3, :3], h[..., 3:])
    return np.concatenate([angular + np.cross(T[..., :3, 3], linear), linear], axis=-1)


# %% [markdown]
# The motors move the arms; the satellite is free. Only joint torques act: tau[:6] = 0.


# %%
def wave(t, q, v):
    tau = np.zeros(np.shape(v))
    tau[..., 6:] = 4.0 * np.sin(3.0 * t + np.arange(12)) - 1.0 * v[..., 6:]
    return tau


q0 = robot.neutral()
q0[7:] = np.tile([0.0, -0.8, 1.2, -0.4, 0.5, 0.0], 2)
v0 = np.concatenate([[0.02, -0.03, 0.05, 0.1, 0.0, 0.0], np.zeros(12)])
motion = pp.simulate(robot, q0, v0, wave, duration=DURATION, dt=DT)
h = momentum(motion.q, motion.v)
drift = np.abs(h - h[0]).max() / np.abs(h[0]).max()
turned = np.abs(robot.difference(q0, motion.q[-1])[:3]).max()
print(
    f"the satellite rotated by {np.degrees(turned):.1f} degrees; relative change of "
    f"momentum {drift:.1e}"
)
assert drift < 1e-8

# %% [markdown]
# The generalized Jacobian of Umetani and Yoshida: the velocity of the hand including the reaction
# of the base. From M = [Mb, Mbm; Mbm*, Mm] and zero momentum, v_base = -Mb^-1 Mbm v_arm.

# %%
M, J = robot.mass_matrix(q0), robot.jacobian(q0, "left_tool")
generalized = J[:, 6:] - J[:, :6] @ np.linalg.solve(M[:6, :6], M[:6, 6:])
rates = np.zeros(12)
rates[1] = 1.0
print("hand speed, base fixed:   ", (J[3:, 6:] @ rates).round(4))
print("hand speed, base floating:", (generalized[3:] @ rates).round(4))
assert np.linalg.norm(generalized[3:] @ rates) < np.linalg.norm(J[3:, 6:] @ rates)
