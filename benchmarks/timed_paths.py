"""Time-optimal paths of a Panda by psiphi and toppra, in CPU time.

    OPENBLAS_NUM_THREADS=1 python benchmarks/timed_paths.py        (pip install toppra)

100 random paths through five postures with limits of speed, acceleration and torque, 200 steps.
Both use the same natural cubic splines and steps, one path per call; psiphi also computes all in
one call. toppra uses pinocchio.rnea for torques and the solver seidel.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np

import psiphi as pp
from psiphi_bench.peers.pinocchio_peer import Pin

COUNT, POINTS, ACCELERATION = 100, 200, 15.0


def run_toppra(robot: pp.Robot, paths: list, postures: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds per path, and the durations of the motions."""
    import pinocchio
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    peer = Pin(robot)
    model, data = peer.peer, peer.peer.createData()
    both = constraint.DiscretizationType.Interpolation
    accelerations = np.full(robot.nv, ACCELERATION)
    durations, begin = [], time.process_time()
    for path, through in zip(paths, postures, strict=True):
        curve = toppra.SplineInterpolator(path.curve.knots, through, bc_type="natural")
        rows = [
            constraint.JointVelocityConstraint(
                np.stack([-robot.velocity_limit, robot.velocity_limit], axis=1)
            ),
            constraint.JointAccelerationConstraint(
                np.stack([-accelerations, accelerations], axis=1), both
            ),
            constraint.JointTorqueConstraint(
                lambda q, v, a: pinocchio.rnea(model, data, q, v, a),
                np.stack([-robot.effort, robot.effort], axis=1),
                np.zeros(robot.nv),
                discretization_scheme=both,
            ),
        ]
        solver = algorithm.TOPPRA(rows, curve, gridpoints=path.s, solver_wrapper="seidel")
        motion = solver.compute_trajectory(0, 0)
        durations.append(np.nan if motion is None else motion.duration)
    return (time.process_time() - begin) / COUNT, np.array(durations)


def main() -> None:
    pp.set_threads(1)
    robot = pp.load("panda", lock="panda_finger_*")
    middle, half = 0.5 * (robot.lower + robot.upper), 0.4 * (robot.upper - robot.lower)
    postures = middle + half * np.random.default_rng(0).uniform(-1.0, 1.0, (COUNT, 5, robot.nq))
    options = {"acceleration": ACCELERATION, "points": POINTS}
    pp.path(robot, postures[0], **options)
    begin = time.process_time()
    paths = [pp.path(robot, through, **options) for through in postures]
    alone = (time.process_time() - begin) / COUNT
    begin = time.process_time()
    pp.path(robot, postures, **options)
    together = (time.process_time() - begin) / COUNT
    print(
        f"psiphi: {1e3 * alone:.2f} ms per path one by one, {1e3 * together:.2f} ms {COUNT} at once"
    )
    if importlib.util.find_spec("toppra") is None:
        print("toppra: not installed")
        return
    seconds, durations = run_toppra(robot, paths, postures)
    ratio = np.array([path.duration for path in paths]) / durations
    print(
        f"toppra: {1e3 * seconds:.2f} ms per path: "
        f"psiphi is {seconds / alone:.1f}x faster one by one, {seconds / together:.1f}x at once"
    )
    print(
        f"durations, psiphi / toppra: {np.nanmin(ratio):.4f} to {np.nanmax(ratio):.4f}, "
        f"{np.isnan(ratio).sum()} without a result of toppra"
    )


if __name__ == "__main__":
    main()
