"""Inverse kinematics of a Panda by psiphi, pink and mink, in CPU time on one core.

    OPENBLAS_NUM_THREADS=1 python benchmarks/reach.py        (pip install pin-pink mink daqp)

Random reachable poses of the hand, to 1e-6 m and rad, within the joint limits; all starts count.
pink and mink solve the same targets one by one: damped Gauss-Newton steps of their quadratic
programs with their limits, from the same random starts, at most STEPS steps each.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import psiphi as pp

HAND = "panda_hand_tcp"
MANY, FEW, STEPS, STARTS = 100_000, 100, 60, 10
TOLERANCE = 1e-6
Step = Callable[[np.ndarray], np.ndarray]


def targets(robot: pp.Robot, count: int, seed: int = 1) -> np.ndarray:
    """Poses of the hand at random configurations within the limits."""
    q = np.random.default_rng(seed).uniform(robot.lower, robot.upper, (count, robot.nq))
    return robot.frame_pose(q, HAND)


def reached(robot: pp.Robot, q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Whether each q reaches its target within the limits."""
    now = robot.frame_pose(q, HAND)
    angle = 2.0 * np.arcsin(
        np.minimum(
            np.linalg.norm(now[..., :3, :3] - T[..., :3, :3], axis=(-2, -1)) / np.sqrt(8.0), 1.0
        )
    )
    distance = np.linalg.norm(now[..., :3, 3] - T[..., :3, 3], axis=-1)
    inside = ((q > robot.lower - 1e-6) & (q < robot.upper + 1e-6)).all(axis=-1)
    return (angle < 1.5 * TOLERANCE) & (distance < 1.5 * TOLERANCE) & inside


def one_by_one(
    robot: pp.Robot, goals: np.ndarray, solver: Callable[[np.ndarray], Step]
) -> tuple[float, float]:
    """Seconds per target, and the share of solved targets."""
    solved, begin = 0, time.process_time()
    for T in goals:
        step, rng = solver(T), np.random.default_rng(0)
        for _ in range(STARTS):
            q, good = rng.uniform(robot.lower, robot.upper), False
            for _ in range(STEPS):
                q = step(q)
                good = bool(reached(robot, q, T))
                if good:
                    break
            if good:
                solved += 1
                break
    return (time.process_time() - begin) / len(goals), solved / len(goals)


def pink_steps(robot: pp.Robot, folder: Path) -> Callable[[np.ndarray], Step]:
    import pink
    import pinocchio

    robot.save(folder / "panda.urdf")
    model = pinocchio.buildModelFromUrdf(str(folder / "panda.urdf"))
    data, limits = (
        model.createData(),
        [pink.limits.ConfigurationLimit(model, config_limit_gain=1.0)],
    )
    task = pink.tasks.FrameTask(HAND, position_cost=1.0, orientation_cost=1.0, lm_damping=0.1)

    def solver(T: np.ndarray) -> Step:
        task.set_target(pinocchio.SE3(T))

        def step(q: np.ndarray) -> np.ndarray:
            configuration = pink.Configuration(model, data, q)
            v = pink.solve_ik(
                configuration,
                [task],
                1.0,
                solver="daqp",
                limits=limits,
                damping=1e-9,
                safety_break=False,
            )
            return np.clip(pinocchio.integrate(model, q, v), robot.lower, robot.upper)

        return step

    return solver


def mink_steps(robot: pp.Robot, folder: Path) -> Callable[[np.ndarray], Step]:
    import mink
    import mujoco

    robot.save(folder / "panda.xml")
    model = mujoco.MjModel.from_xml_path(str(folder / "panda.xml"))
    configuration, limits = mink.Configuration(model), [mink.ConfigurationLimit(model, gain=1.0)]
    task = mink.FrameTask(HAND, "site", position_cost=1.0, orientation_cost=1.0, lm_damping=0.1)

    def solver(T: np.ndarray) -> Step:
        task.set_target(mink.SE3.from_matrix(T))

        def step(q: np.ndarray) -> np.ndarray:
            configuration.update(q)
            v = mink.solve_ik(
                configuration, [task], 1.0, solver="daqp", limits=limits, damping=1e-9
            )
            return np.clip(configuration.integrate(v, 1.0), robot.lower, robot.upper)

        return step

    return solver


def main() -> None:
    pp.set_threads(1)
    robot = pp.load("panda")
    goals = targets(robot, MANY)
    pp.reach(robot, {HAND: goals[:FEW]})
    begin = time.process_time()
    result = pp.reach(robot, {HAND: goals})
    seconds = time.process_time() - begin
    assert reached(robot, result.q[result.converged], goals[result.converged]).all()
    print(
        f"psiphi, {MANY} poses at once: {MANY / seconds:,.0f} per second, "
        f"{100 * result.converged.mean():.2f} % solved"
    )
    begin = time.process_time()
    alone = [pp.reach(robot, {HAND: T}) for T in goals[:FEW]]
    ours = (time.process_time() - begin) / FEW
    print(
        f"psiphi, one by one: {1e6 * ours:.0f} us, "
        f"{100 * np.mean([x.converged for x in alone]):.1f} % solved"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, steps in (("pink", pink_steps), ("mink", mink_steps)):
            if importlib.util.find_spec(name) is None:
                print(f"{name}: not installed")
                continue
            theirs, solved = one_by_one(robot, goals[:FEW], steps(robot, Path(folder)))
            ratios = (
                f"{theirs / ours:.0f}x faster one by one, {theirs * MANY / seconds:.0f}x at once"
            )
            print(
                f"{name}, one by one: {1e6 * theirs:.0f} us, {100 * solved:.1f} % solved: "
                f"psiphi is {ratios}"
            )


if __name__ == "__main__":
    main()
