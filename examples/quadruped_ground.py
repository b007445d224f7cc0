# %% [markdown]
# # A quadruped on the ground
# ANYmal stands on its feet, is pushed so that two of them lift off, and trots. The ground is a
# plane with Coulomb friction; a PD controller holds the legs.

# %%
import numpy as np

import psiphi as pp

DURATION = 3.0  # tests: 1.5

robot = pp.load("anymal_c")  # its feet are spheres: robot.contact_points
ground = pp.Ground(friction=0.8)
bends = {"LF": 1.0, "RF": 1.0, "LH": -1.0, "RH": -1.0}  # front knees forward, hind knees back
angles = {f"{leg}_HFE": 0.5 * bend for leg, bend in bends.items()}
angles |= {f"{leg}_KFE": -bend for leg, bend in bends.items()}
q = robot.with_posture("stand", angles).postures["stand"]
q = robot.on_ground(q, ground)
options = {"dt": 2e-3, "contacts": ground}

# %% [markdown]
# Standing: the feet carry the weight, and none of them slides.

# %%
stand = pp.PD(robot, q, kp=300.0, kd=8.0)
still = pp.simulate(robot, q, tau=stand, duration=2.0, **options)
weight = 9.81 * sum(body.mass for body in robot.bodies)
print(f"the feet carry {still.forces[-1, :, 2].sum():.2f} N of {weight:.2f} N")
assert np.isclose(still.forces[-1, :, 2].sum(), weight, rtol=1e-3)
assert (still.modes[1:] == 1).all(), "all stick, once the legs carry the trunk"

# %% [markdown]
# Pushed: 400 N sideways for 0.2 s, a force on the free joint. The right feet lift off, the left
# ones hold; then ANYmal stands again.

# %%
push = np.zeros(robot.nv)
push[4] = 400.0
pushed = pp.law(lambda t, q, v: stand(t, q, v) + push)
kick = pp.simulate(robot, q, tau=pushed, duration=0.2, **options)
after = pp.simulate(robot, kick.final.q, kick.final.v, stand, duration=2.0, **options)
for event in (event for event in kick.events if event.name == "contact lost"):
    print(event)
print(f"at most {kick.v[:, 4].max():.2f} m/s sideways, at the end {after.final.v[4]:.4f} m/s")
assert {event.what for event in kick.events if event.name == "contact lost"} == {
    "RF_FOOT",
    "RH_FOOT",
}
assert abs(after.final.v).max() < 0.05 and after.final.q[2] > 0.5

# %% [markdown]
# Trotting: two feet at a time swing forward while the other two push back. The reference is a
# function of time; nothing measures the ground.


# %%
def trot(t, period=0.5, lift=0.3, stride=0.15):
    """q of the reference: feet on a diagonal lift together, the other pair half a period later."""
    reference, ramp = q.copy(), min(t / period, 1.0)
    for leg, bend in bends.items():
        phase = 2 * np.pi * t / period + (0.0 if leg in ("LF", "RH") else np.pi)
        up = ramp * lift * max(0.0, np.sin(phase))
        reference[robot.joint(f"{leg}_HFE").q_slice] += bend * up + ramp * stride * np.cos(phase)
        reference[robot.joint(f"{leg}_KFE").q_slice] -= 2 * bend * up
    return reference


walk = pp.simulate(robot, q, tau=pp.PD(robot, trot, 300.0, 8.0), duration=DURATION, **options)
print(f"{walk.q[-1, 0]:.2f} m in {DURATION:g} s; each foot is in the air for")
print((walk.modes == 0).mean(axis=0).round(2), "of the time")
assert walk.q[-1, 0] > 0.3 * DURATION - 0.3 and walk.q[-1, 2] > 0.45
assert ((walk.modes == 0).mean(axis=0) > 0.3).all(), "each foot steps"

# %% [markdown]
# The law of contact holds at every step: no foot enters the ground, forces stay in the friction
# cone, and feet in the air feel none.

# %%
normal, tangent = walk.forces[..., 2], np.linalg.norm(walk.forces[..., :2], axis=-1)
print(f"residual of all steps: at most {walk.contact_residual.max():.0e} m/s")
assert walk.contact_residual.max() < 1e-6 and walk.gaps.min() > -1e-9
assert (tangent <= 0.8 * normal + 1e-6).all() and not normal[walk.modes == 0].any()
