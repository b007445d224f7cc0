"""Optimal control of arms: psiphi beside crocoddyl, one problem and a batch, on one core.

    OPENBLAS_NUM_THREADS=1 python benchmarks/optimal_control.py [--crocoddyl PYTHON]

PYTHON is an interpreter that has crocoddyl and pinocchio 4.0 (which may not be this one).

Each arm reaches a point in 100 steps of 10 ms with the costs below and bounds on its torques, from
random postures. Both programs take the same step, v' = v + h FD, q' = q + h v', and the same costs,
w |r|^2 / 2 times h, and start with the torques of gravity at the start. Times are processor time of
one thread per iteration (derivatives, backward sweep, line search), the least of RUNS; crocoddyl's
solver is BoxFDDP. Costs are compared where both converged: equal to SAME, or those of two minima.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import psiphi as pp

STEPS, DT, RUNS, BATCH, COMPARED, ITERATIONS, SAME = 100, 0.01, 5, 256, 32, 100, 1e-5
TORQUE, SPEED, FINAL_SPEED, POINT = 1e-4, 5e-2, 10.0, 1e4
ARMS = {"ur5": (150.0, 150.0, 150.0, 28.0, 28.0, 28.0), "panda": (87.0,) * 4 + (12.0,) * 3}
PEER = """
import json, sys, time
import crocoddyl, numpy as np, pinocchio
given = json.loads(sys.stdin.read())
model = pinocchio.buildModelFromUrdf(given["file"])
state = crocoddyl.StateMultibody(model)
actuation = crocoddyl.ActuationModelFull(state)
nv, high = model.nv, np.array(given["bound"])
weights = crocoddyl.ActivationModelWeightedQuad(np.r_[np.zeros(nv), np.ones(nv)])

def cost(residual, *activation):
    return crocoddyl.CostModelResidual(state, *activation, residual)

def problem(q, goal):
    running, final = crocoddyl.CostModelSum(state, nv), crocoddyl.CostModelSum(state, nv)
    at_rest = crocoddyl.ResidualModelState(state, state.zero(), nv)
    point = crocoddyl.ResidualModelFrameTranslation(
        state, model.getFrameId(given["tool"]), np.array(goal), nv)
    running.addCost("u", cost(crocoddyl.ResidualModelControl(state, nv)), given["torque"])
    running.addCost("v", cost(at_rest, weights), given["speed"])
    final.addCost("v", cost(at_rest, weights), given["final_speed"])
    final.addCost("p", cost(point), given["point"])
    models = [crocoddyl.IntegratedActionModelEuler(
        crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs), h)
        for costs, h in ((running, given["dt"]), (final, 0.0))]
    models[0].u_lb, models[0].u_ub = -high, high
    x = np.r_[q, np.zeros(nv)]
    made = crocoddyl.ShootingProblem(x, [models[0]] * given["steps"], models[1])
    made.nthreads = 1
    return made, [x] * (given["steps"] + 1), made.quasiStatic([x] * given["steps"])

costs, seconds, count = [], [], 0
for q, goal in zip(given["q"], given["goals"]):
    made, xs, us = problem(q, goal)
    best = np.inf
    for _ in range(given["runs"]):
        solver = crocoddyl.SolverBoxFDDP(made)
        start = time.process_time()
        ok = solver.solve(xs, us, given["iterations"], False)
        best = min(best, (time.process_time() - start) / max(1, solver.iter))
    costs.append(solver.cost if ok else None)
    seconds.append(best)
print(json.dumps({"version": crocoddyl.__version__, "costs": costs, "seconds": seconds}))
"""


def problem_of(name: str) -> tuple[pp.OptimalControl, np.ndarray, np.ndarray]:
    """The problem of an arm, and BATCH starts and goals."""
    robot = pp.load(name)
    if name == "panda":
        robot = robot.lock("*finger*")
    q = 0.4 * robot.random(seed=0, size=BATCH)
    goals = robot.frame_pose(0.4 * robot.random(seed=1, size=BATCH), tool(robot))[:, :3, 3]
    problem = pp.OptimalControl(
        robot,
        dt=DT,
        steps=STEPS,
        running=[pp.cost.torque(TORQUE), pp.cost.speed(SPEED)],
        final=[pp.cost.point(tool(robot), POINT, name="goal"), pp.cost.speed(FINAL_SPEED)],
        torque=ARMS[name],
    )
    return problem, q, goals


def tool(robot: pp.Robot) -> str:
    """The last frame of an arm."""
    return "tool0" if robot.name.startswith("ur5") else "panda_link8"


def best(problem: pp.OptimalControl, q: np.ndarray, goals: np.ndarray) -> tuple[float, Any]:
    """Seconds for an iteration of one problem, and the solution."""
    found = problem.solve(q, goal=goals, iterations=ITERATIONS)
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        problem.solve(q, goal=goals, iterations=ITERATIONS)
        times.append(time.process_time() - start)
    return min(times) / int(np.sum(found.iterations)), found


def crocoddyl_result(
    python: str, problem: pp.OptimalControl, q: np.ndarray, goals: np.ndarray, name: str
) -> dict[str, Any]:
    """What crocoddyl finds, and its seconds for an iteration, for each problem."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        problem.robot.save(path)
        given = {"file": str(path), "tool": tool(problem.robot), "bound": ARMS[name]}
        given |= {"q": q.tolist(), "goals": goals.tolist(), "dt": DT, "steps": STEPS}
        given |= {"torque": TORQUE, "speed": SPEED, "final_speed": FINAL_SPEED, "point": POINT}
        given |= {"runs": RUNS, "iterations": ITERATIONS}
        environment = {x: y for x, y in os.environ.items() if x != "PYTHONPATH"}
        done = subprocess.run(
            [python, "-c", PEER],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=True,
            env=environment | {"OMP_NUM_THREADS": "1"},
        )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--crocoddyl", metavar="PYTHON", help="an interpreter with crocoddyl")
    python = parser.parse_args().crocoddyl
    pp.set_threads(1)
    for name in ARMS:
        begin = time.process_time()
        problem, q, goals = problem_of(name)
        problem.solve(q[0], goal=goals[0], iterations=1)
        first = time.process_time() - begin
        batch, many = best(problem, q, goals)
        alone = [best(problem, x, goal) for x, goal in zip(q[:4], goals[:4], strict=True)]
        single = float(np.median([seconds for seconds, _ in alone]))
        line = (
            f"{name}: {1e6 * batch:.0f} us an iteration in a batch of {BATCH}, "
            f"{1e6 * single:.0f} us alone; first call {first:.1f} s; "
            f"{int(many.converged.sum())} of {BATCH} converged"
        )
        if python is not None:
            peer = crocoddyl_result(python, problem, q[:COMPARED], goals[:COMPARED], name)
            theirs = float(np.median(peer["seconds"]))
            pairs = [
                (x, y)
                for x, y, ok in zip(peer["costs"], many.cost, many.converged, strict=False)
                if ok and x is not None
            ]
            same = sum(abs(x - y) <= SAME * abs(x) for x, y in pairs)
            lower = sum(y < (1.0 - SAME) * x for x, y in pairs)
            line += (
                f"; crocoddyl {peer['version']} {1e6 * theirs:.0f} us: {theirs / batch:.1f}x and "
                f"{theirs / single:.1f}x; of {len(pairs)} costs {same} equal, {lower} lower, "
                f"{len(pairs) - same - lower} higher than crocoddyl's"
            )
        print(line, flush=True)


if __name__ == "__main__":
    main()
