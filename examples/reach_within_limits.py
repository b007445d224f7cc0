# %% [markdown]
# # A thousand reaches within limits
# A Panda reaches poses of its hand at rest, each in its own SIMD lane, with its torque limits
# exactly, and the limits of its joints by an augmented Lagrangian. Without these limits some of the
# motions leave the range of the joints.

# %%
import numpy as np

import psiphi as pp

REACHES = 1000  # tests: 24

# %%
panda = pp.load("panda", lock="panda_finger_*")
home, hand = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8]), "panda_hand_tcp"
costs = {
    "running": [
        pp.cost.torque(0.3 / panda.effort**2),
        pp.cost.speed(0.05),
        pp.cost.posture(0.02, at=home),
    ],
    "final": [pp.cost.pose(hand, (1e3, 1e4)), pp.cost.speed(10.0)],
}
options = {"dt": 0.02, "steps": 50, "hessian": "gauss"} | costs
reach = pp.OptimalControl(panda, limits="kept", **options)
print(reach.explain())

# %% [markdown]
# The starts, and poses of random postures within the limits.

# %%
rng = np.random.default_rng(2)
starts = home + rng.uniform(-0.3, 0.3, (REACHES, 7))
ends = np.clip(home + rng.uniform(-0.9, 0.9, (REACHES, 7)), panda.lower, panda.upper)
poses = panda.frame_pose(ends, hand)
found = reach.solve(starts, iterations=200, **{hand: poses})
print(found)
print(f"limits passed by {found.violation.max():.1e} rad at most")
assert found.converged.mean() > 0.99 and found.violation[found.converged].max() < 1e-6

# %% [markdown]
# The same reaches when the limits cost almost nothing.

# %%
loose = pp.OptimalControl(panda, limits="soft", limit_weight=1e-9, **options)
free = loose.solve(starts, iterations=200, **{hand: poses})
beyond = ((free.q < panda.lower) | (free.q > panda.upper)).any(axis=(1, 2))
print(f"{beyond.sum()} of {REACHES} leave the range of the joints without limits")
miss = panda.frame_pose(found.q[:, -1], hand)[:, :3, 3] - poses[:, :3, 3]
print(f"the hand misses by {1e3 * np.median(np.linalg.norm(miss, axis=-1)):.2f} mm (median)")
assert beyond.any() and (found.cost[beyond] > free.cost[beyond]).all()
