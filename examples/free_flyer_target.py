# %% [markdown]
# # A satellite holds a spinning target with two arms
# A satellite with two UR5 arms has grasped a rotating target of 80 kg. Satellite, arms and target
# are one floating closed chain: momentum is conserved for any motor torques. Braking the joints
# makes all bodies rotate together.

# %%
import numpy as np

import psiphi as pp

DURATION = 4.0  # tests: 0.05
DT = 2e-3

flyer = pp.load("free_flyer")
arm = np.array([0.0, -0.9, 1.5, -0.6, -1.2, 0.0])
q_flyer = np.concatenate([flyer.neutral()[:7], arm, arm])
hands = [flyer.frame_pose(q_flyer, f"{side}_tool") for side in ("left", "right")]
middle = np.eye(4)
middle[:3, 3] = (hands[0][:3, 3] + hands[1][:3, 3]) / 2 + [0.3, 0, 0]
target = pp.Body.box(mass=80.0, size=(0.6, 0.6, 0.6), name="target")
grips = [np.linalg.inv(middle) @ hand for hand in hands]
system = pp.grasp([(flyer, None, ("left_tool", "right_tool"))], target, at=grips)
q0 = np.concatenate([q_flyer, middle[:3, 3], [0, 0, 0, 1]])
print(system)

# %% [markdown]
# Initially the target rotates relative to the satellite, as far as the grasps permit: its velocity
# is projected onto the constraints.

# %%
v_guess = np.zeros(system.nv)
v_guess[-6:] = [0.1, 0.2, 0.15, 0.0, 0.05, 0.0]
q0, v0 = system.project(q0, v_guess)
print("the target's motion", v0[-6:].round(3), "\nthe satellite's motion", v0[:6].round(3))


def momentum(q, v):
    """[angular about the world's origin; linear] of both trees: six rows of M v each."""
    M, total = system.robot.mass_matrix(q), 0.0
    for frame, rows in (
        ("free_flyer/bus", slice(0, 6)),
        ("target/target", slice(system.nv - 6, system.nv)),
    ):
        T = system.frame_pose(q, frame)
        h = np.einsum("...ij,...j->...i", M[..., rows, :], v).reshape(*v.shape[:-1], 2, 3)
        angular, linear = np.moveaxis(np.einsum("...ij,...kj->...ki", T[..., :3, :3], h), -2, 0)
        angular = angular + np.cross(T[..., :3, 3], linear)
        total = total + np.concatenate([angular, linear], axis=-1)
    return total


# %%
@pp.law  # a pure function of t, q, v: psiphi may compile it
def brake(t, q, v):
    tau = -20.0 * v
    tau[..., :6] = tau[..., -6:] = 0.0  # no thrusters, and the target has no motors
    return tau


motion = pp.simulate(system, q0, v0, brake, duration=DURATION, dt=DT)
h = momentum(motion.q, motion.v)
print(motion.summary())
print(
    f"relative change of momentum {np.abs(h - h[0]).max() / np.abs(h[0]).max():.1e}, "
    f"constraint error {motion.residual.max():.1e}"
)
joints = np.abs(motion.v[:, 6:18]).max(axis=1)
print(f"largest joint rate {joints[0]:.3f} at the start, {joints[-1]:.4f} rad/s at the end")
assert np.abs(h - h[0]).max() < 1e-8 * np.abs(h[0]).max() and motion.residual.max() < 1e-9
assert joints[-1] < joints[0] and motion.energy[-1] < motion.energy[0]
