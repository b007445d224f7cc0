# %% [markdown]
# # Two PUMAs move a beam
# Two PUMA 560 arms carry a beam of one metre along a path, each at one end: eighteen coordinates,
# twelve constraints, six degrees of freedom. The acceleration of the beam is chosen, the arms
# follow, and the load is shared.

# %%
import numpy as np

import psiphi as pp

DURATION = 2.0  # tests: 0.04
DT = 2e-3

puma = pp.load("puma560")
posture = np.array([0.0, 0.0, 0.0, 0.0, 1.2, 0.0])  # elbow at a right angle, wrist bent
second_base = np.eye(4)
second_base[1, 3] = 1.0  # the second arm is one metre to the left
hands = [base @ puma.frame_pose(posture, "tool") for base in (np.eye(4), second_base)]
middle = (hands[0][:3, 3] + hands[1][:3, 3]) / 2
place = np.eye(4)
place[:3, 3] = middle
beam = pp.Body.box(mass=4.0, size=(0.05, 1.0, 0.05), name="beam")
cell = pp.grasp(
    [(puma, None, "tool"), (puma, second_base, "tool")],
    beam,
    at=[np.linalg.inv(place) @ hand for hand in hands],
)
q0 = np.concatenate([posture, posture, middle, [0, 0, 0, 1]])
assert np.abs(cell.constraint_residual(q0)).max() < 1e-12
print(cell)

# %% [markdown]
# The effective inertia of the beam with both arms attached, compared with the beam alone.

# %%
inertia = cell.effective_inertia(q0, axes="world")
print(
    "effective mass along x, y, z:",
    inertia.diagonal()[3:].round(2),
    "kg; the beam alone:",
    beam.mass,
    "kg",
)
assert (inertia.diagonal()[3:] > beam.mass).all()

# %% [markdown]
# The path: up by 12 cm and forward by 6 cm, and back. `complete` computes joint accelerations for
# the chosen acceleration of the beam; the first arm carries twice the load of the second.

# %%
beam_v, amplitude = slice(cell.nv - 6, cell.nv), np.array([0.06, 0.0, 0.12])
w = np.pi


def path(t):
    """Desired position, velocity and acceleration of the beam's centre."""
    s, rate, acceleration = 1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)
    half = amplitude / 2
    return middle + s * half, rate * half, acceleration * half


def carry(t, q, v):
    x, rate, acceleration = path(t)
    target = np.concatenate([q[:12], x, [0, 0, 0, 1]])
    a = np.zeros(cell.nv)
    a[beam_v] = 100.0 * cell.difference(q, target)[beam_v] - 20.0 * v[beam_v]
    a[cell.nv - 3 :] += acceleration + 20.0 * rate
    return cell.inverse_dynamics(
        q, v, cell.complete(q, v, a, exactly="beam/free"), share=[2.0, 1.0]
    )


motion = pp.simulate(cell, q0, tau=carry, duration=DURATION, dt=DT, hold=True)
print(motion.summary())
off = np.abs(motion.q[:, 12:15] - [path(t)[0] for t in motion.t]).max()
lift = motion.forces[1:, :, 5]
print(
    f"tracking error {off * 1e3:.2f} mm; vertical forces of the arms {lift.mean(axis=0).round(1)} N"
)
assert off < 1e-3 and np.abs(motion.residual).max() < 1e-9
assert (lift[:, 0] > lift[:, 1]).all()
