# %% [markdown]
# # Stewart platform
# Six legs, each with a universal and a prismatic joint, carry a platform on six ball joints: six
# loops. `pp.Builder` builds an open forest (six legs and a free platform), `pp.connect` closes the
# loops.

# %%
import numpy as np

import psiphi as pp

DURATION = 2.0  # tests: 0.04
DT = 2e-3
HEIGHT, LOW, HIGH, WEIGHT = 0.8, 0.6, 0.4, 20.0

angles = np.radians([0, 120, 240])
below = np.concatenate([[a - 0.3, a + 0.3] for a in angles])  # anchors in pairs, on two circles
above = np.concatenate([[a - 0.8, a + 0.8] for a in angles])
foot = np.stack([LOW * np.cos(below), LOW * np.sin(below), np.zeros(6)], axis=1)
head = np.stack([HIGH * np.cos(above), HIGH * np.sin(above), np.zeros(6)], axis=1)

b = pp.Builder("stewart")
for k in range(6):
    b.body(f"cylinder{k}", mass=2.0, com=(0, 0, 0.2), inertia=(0.02, 0, 0, 0.02, 0, 0.001))
    b.body(f"piston{k}", mass=1.0, com=(0, 0, -0.2), inertia=(0.01, 0, 0, 0.01, 0, 0.0005))
    b.joint(
        f"gimbal{k}",
        "universal",
        "world",
        f"cylinder{k}",
        xyz=foot[k],
        axis=(1, 0, 0),
        axis2=(0, 1, 0),
    )
    b.joint(f"leg{k}", "prismatic", f"cylinder{k}", f"piston{k}", axis=(0, 0, 1))
    b.frame(f"top{k}", f"piston{k}")
b.body("platform", mass=WEIGHT, inertia=(0.8, 0, 0, 0.8, 0, 1.6))
b.joint("free", "free", "world", "platform")
for k in range(6):
    b.frame(f"socket{k}", "platform", xyz=head[k])
passive = [f"gimbal{k}" for k in range(6)] + ["free"]
stewart = pp.connect(
    b.build(), [pp.Loop("ball", f"top{k}", f"socket{k}") for k in range(6)], passive=passive
)
print(stewart, "motors:", stewart.na)

# %% [markdown]
# Assemble it with the platform fixed in a horizontal pose.

# %%
guess = stewart.neutral()
place = stewart.robot.joint("free").q_slice
guess[place] = [0, 0, HEIGHT, 0, 0, 0, 1]
for k in range(6):
    guess[stewart.robot.joint(f"leg{k}").q_slice] = np.linalg.norm(
        head[k] + [0, 0, HEIGHT] - foot[k]
    )
q0 = stewart.assemble(guess, hold=("free",))
lengths = np.array([q0[stewart.robot.joint(f"leg{k}").q_slice][0] for k in range(6)])
print("leg lengths", lengths.round(4))
assert np.allclose(lengths, lengths[0])

# %% [markdown]
# The motor forces at rest: the six motors carry the weight of the platform and of the legs.

# %%
still = np.zeros(stewart.nv)
hold = stewart.inverse_dynamics(q0, still, still)
print("motor forces", hold[stewart.actuated].round(2))
assert np.abs(stewart.forward_dynamics(q0, still, hold)).max() < 1e-8
assert np.allclose(hold[stewart.actuated], hold[stewart.actuated][0])

# %% [markdown]
# Control: choose the acceleration of the platform; `complete` computes the accelerations of the
# legs from the constraints, inverse dynamics the forces.

# %%
plate = stewart.robot.joint("free").v_slice
RATE = 2 * np.pi


def heave(t):
    return (
        0.03 * (1 - np.cos(RATE * t)),
        0.03 * RATE * np.sin(RATE * t),
        0.03 * RATE**2 * np.cos(RATE * t),
    )


def drive(t, q, v):
    height, rate, acceleration = heave(t)
    target = np.array(q0)
    target[place] = [0, 0, HEIGHT + height, 0, 0, 0, 1]
    a = np.zeros(stewart.nv)
    a[plate] = 100.0 * stewart.difference(q, target)[plate]
    a[plate] += 20.0 * (np.array([0, 0, 0, 0, 0, rate]) - v[plate])
    a[plate] += np.array([0, 0, 0, 0, 0, acceleration])
    return stewart.inverse_dynamics(q, v, stewart.complete(q, v, a, exactly="free"))


motion = pp.simulate(stewart, q0, tau=drive, duration=DURATION, dt=DT, hold=True)
error = np.abs(motion.q[:, place][:, 2] - HEIGHT - np.array([heave(t)[0] for t in motion.t])).max()
print(motion.summary())
print(
    f"platform within {error * 1e3:.3f} mm of its path, loops closed to {motion.residual.max():.1e}"
)
assert error < 2e-4 and motion.residual.max() < 1e-9
