# %% [markdown]
# # Model predictive control of an arm
# The tool of a UR5 follows a circle. `pp.MPC` looks half a second ahead, takes one iteration every
# 20 ms, and keeps the torques within their bounds. The goal is a function of time.

# %%
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import psiphi as pp

SECONDS = 3.0  # tests: 1.2

# %%
arm = pp.load("ur5")
start = np.array([0.0, -1.2, 1.2, -1.0, -1.5, 0.0])
center = arm.frame_pose(start, "tool")[:3, 3]


def circle(t):
    """Where the tool should be at time t; it starts at rest."""
    angle = 2.0 * np.pi * t**2 / (t + 1.0) / 2.0
    return center + 0.1 * np.array([0.0, np.sin(angle), 1.0 - np.cos(angle)])


track = pp.OptimalControl(
    arm,
    dt=0.02,
    steps=25,
    running=[
        pp.cost.torque(1e-2 / arm.effort**2),
        pp.cost.speed(1e-3),
        pp.cost.point("tool", 1e3, along=True),
    ],
    final=[pp.cost.point("tool", 1e3, along=True), pp.cost.speed(0.1)],
    hessian="gauss",
)
control = pp.MPC(track, iterations=1, tool=circle)
motion = pp.simulate(arm, start, tau=control, dt=0.005, duration=SECONDS)

# %%
wanted = np.array([circle(t) for t in motion.t])
miss = np.linalg.norm(arm.frame_pose(motion.q, "tool")[:, :3, 3] - wanted, axis=-1)
share = np.abs(motion.tau / arm.effort).max()
print(f"the tool is within {1e3 * miss.max():.2f} mm; torques use {100 * share:.0f} % of limits")
assert miss.max() < 5e-3 and share <= 1.0

# %% [markdown]
# `control.plan` is the motion that it looks ahead at.

# %%
print(control.plan)
print(f"an iteration takes {sum(track.flops.values()) * track.steps / 1e6:.2f} million operations")
assert control.plan.q.shape == (26, 6)

# %% [markdown]
# The same controller as C99 for the robot's computer: fixed iterations, no allocation, so that
# every step takes the same time. Its test program compares the torques with those of Python.

# %%
files = control.c_files("track", start)
print(files["track.h"].partition("typedef")[0])
compiler = shutil.which("cc")
if compiler is not None:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        words = [compiler, "-std=c99", "-O1", "track.c", "track_test.c", "-o", "track", "-lm"]
        subprocess.run(words, cwd=folder, check=True)
        done = subprocess.run([Path(folder) / "track"], capture_output=True)
    assert done.returncode == 0, "the torques of the C differ"
