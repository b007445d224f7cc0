"""CPU time per RK4 step of rollouts of a UR5: operational-space control and computed torque.

python benchmarks/task_space.py
"""

from __future__ import annotations

import time

import numpy as np

import psiphi as pp

COUNT, STEPS, ROUNDS = 4096, 100, 7


if __name__ == "__main__":
    pp.set_threads(1)
    robot, middle = pp.load("ur5"), np.array([0.0, -1.0, 1.0, 0.2, 1.0, 0.0])
    q = middle + 0.05 * np.random.default_rng(0).standard_normal((COUNT, 6))
    laws = {
        "operational space": pp.OperationalSpace(robot, "tool", robot.frame_pose(middle, "tool")),
        "computed torque": pp.ComputedTorque(robot, middle),
    }
    best = dict.fromkeys(laws, np.inf)
    for law in laws.values():
        pp.rollout(robot, q, tau=law, steps=2)
    for _ in range(ROUNDS):
        for name, law in laws.items():
            start = time.process_time()
            pp.rollout(robot, q, tau=law, steps=STEPS, every=STEPS)
            best[name] = min(best[name], (time.process_time() - start) / COUNT / STEPS * 1e6)
    for name, us in best.items():
        print(f"{name}: {us:.3f} us per RK4 step")
    print(f"ratio: {best['operational space'] / best['computed torque']:.2f}")
