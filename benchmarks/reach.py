"""Inverse kinematics of a Panda beside pink and mink: `OPENBLAS_NUM_THREADS=1 python benchmarks/reach.py`
(pip install pin-pink mink daqp).

Random reachable poses of the hand, to 1e-6 m and rad, within the joint limits, one core, all starts counted. The peers get the
same targets one by one: damped Gauss-Newton steps of their own quadratic programs with their own limits, a step a call, from
the same random starts, dropped after STEPS steps. Seconds are those of the processor.
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
    q = np.random.default_rng(seed).uniform(robot.lower, robot.upper, (count, robot.nq))
    return robot.frame_pose(q, HAND)


def met(robot: pp.Robot, q: np.ndarray, T: np.ndarray) -> np.ndarray:
    """Which q are where they should be, within the limits."""
    now = robot.frame_pose(q, HAND)
    turn = 2.0 * np.arcsin(
        np.minimum(
            np.linalg.norm(now[..., :3, :3] - T[..., :3, :3], axis=(-2, -1)) / np.sqrt(8.0), 1.0
        )
    )
    far = np.linalg.norm(now[..., :3, 3] - T[..., :3, 3], axis=-1)
    inside = ((q > robot.lower - 1e-6) & (q < robot.upper + 1e-6)).all(axis=-1)
    return (turn < 1.5 * TOLERANCE) & (far < 1.5 * TOLERANCE) & inside


def one_by_one(
    robot: pp.Robot, wanted: np.ndarray, solver: Callable[[np.ndarray], Step]
) -> tuple[float, float]:
    """Seconds a target, and the share that is solved."""
    solved, begin = 0, time.process_time()
    for T in wanted:
        step, rng = solver(T), np.random.default_rng(0)
        for _ in range(STARTS):
            q, good = rng.uniform(robot.lower, robot.upper), False
            for _ in range(STEPS):
                q = step(q)
                good = bool(met(robot, q, T))
                if good:
                    break
            if good:
                solved += 1
                break
    return (time.process_time() - begin) / len(wanted), solved / len(wanted)


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
            at = pink.Configuration(model, data, q)
            v = pink.solve_ik(
                at, [task], 1.0, solver="daqp", limits=limits, damping=1e-9, safety_break=False
            )
            return np.clip(pinocchio.integrate(model, q, v), robot.lower, robot.upper)

        return step

    return solver


def mink_steps(robot: pp.Robot, folder: Path) -> Callable[[np.ndarray], Step]:
    import mink
    import mujoco

    robot.save(folder / "panda.xml")
    model = mujoco.MjModel.from_xml_path(str(folder / "panda.xml"))
    at, limits = mink.Configuration(model), [mink.ConfigurationLimit(model, gain=1.0)]
    task = mink.FrameTask(HAND, "site", position_cost=1.0, orientation_cost=1.0, lm_damping=0.1)

    def solver(T: np.ndarray) -> Step:
        task.set_target(mink.SE3.from_matrix(T))

        def step(q: np.ndarray) -> np.ndarray:
            at.update(q)
            v = mink.solve_ik(at, [task], 1.0, solver="daqp", limits=limits, damping=1e-9)
            return np.clip(at.integrate(v, 1.0), robot.lower, robot.upper)

        return step

    return solver


def main() -> None:
    pp.set_threads(1)
    robot = pp.load("panda")
    wanted = targets(robot, MANY)
    pp.reach(robot, {HAND: wanted[:FEW]})
    begin = time.process_time()
    found = pp.reach(robot, {HAND: wanted})
    seconds = time.process_time() - begin
    assert met(robot, found.q[found.converged], wanted[found.converged]).all()
    print(
        f"psiphi, {MANY} poses at once: {MANY / seconds:,.0f} a second, {100 * found.converged.mean():.2f} % solved"
    )
    begin = time.process_time()
    alone = [pp.reach(robot, {HAND: T}) for T in wanted[:FEW]]
    ours = (time.process_time() - begin) / FEW
    print(
        f"psiphi, one by one: {1e6 * ours:.0f} us, {100 * np.mean([x.converged for x in alone]):.1f} % solved"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, steps in (("pink", pink_steps), ("mink", mink_steps)):
            if importlib.util.find_spec(name) is None:
                print(f"{name}: not installed")
                continue
            theirs, solved = one_by_one(robot, wanted[:FEW], steps(robot, Path(folder)))
            ratios = f"{theirs / ours:.0f}x one by one, {theirs * MANY / seconds:.0f}x at once"
            print(
                f"{name}, one by one: {1e6 * theirs:.0f} us, {100 * solved:.1f} % solved: psiphi is {ratios}"
            )


if __name__ == "__main__":
    main()
