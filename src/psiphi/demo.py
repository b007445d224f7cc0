"""`psiphi demo`: a PUMA 560, its dynamics, and what they cost."""

from __future__ import annotations

import time

import numpy as np

import psiphi as pp

BATCH = 4096


def main() -> int:
    """Print a small table: one state, then a batch."""
    robot = pp.robots.puma560()
    pp.set_threads(1)
    q, v = robot.random(0, BATCH), np.random.default_rng(1).normal(size=(BATCH, robot.nv))
    tau = robot.gravity(q)
    print(f"{robot.name}: {len(robot.bodies)} bodies, nv = {robot.nv}; batch of {BATCH} random states, one core\n")
    print(f"{'function':22}{'flops':>7}{'compile':>11}{'one call':>12}{'in a batch':>13}{'a second':>12}")
    calls = {
        "forward_dynamics": lambda s: robot.forward_dynamics(q[s], v[s], tau[s]),
        "inverse_dynamics": lambda s: robot.inverse_dynamics(q[s], v[s], tau[s]),
        "mass_matrix": lambda s: robot.mass_matrix(q[s]),
        "mass_matrix_inverse": lambda s: robot.mass_matrix_inverse(q[s]),
        "gravity": lambda s: robot.gravity(q[s]),
        "energy": lambda s: robot.energy(q[s], v[s]),
    }
    for name, call in calls.items():
        first = _seconds(lambda c=call: c(0), 1)
        single, batch = _seconds(lambda c=call: c(0), 2000), _seconds(lambda c=call: c(slice(None)), 10) / BATCH
        row = f"{robot.flops(name):>7}{first * 1e3:>8.0f} ms{single * 1e6:>9.2f} us{batch * 1e6:>10.4f} us{1 / batch:>12.2g}"
        print(f"{name:22}{row}")
    a = robot.forward_dynamics(q, v, tau)
    error = np.abs(robot.inverse_dynamics(q, v, a) - tau).max() / np.abs(tau).max()
    print(f"\ninverse dynamics of forward dynamics gives the torques back to {error:.0e} relative")
    return 0


def _seconds(call, repeat: int) -> float:
    """The best of several runs, per call."""
    best = float("inf")
    for _ in range(1 if repeat == 1 else 5):
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best
