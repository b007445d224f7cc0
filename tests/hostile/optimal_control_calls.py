"""Calls of optimal control for `junk.py`: costs, problems, motions and model predictive control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import psiphi as pp
from tests.hostile.junk import Call


def calls(folder: Path) -> list[Call]:
    """Costs are read where a problem binds them to a robot; goals where it is solved."""
    robot = pp.load("acrobot")
    return [*_costs(robot), *_problems(robot), *_motions(robot.free("mass"), folder)]


def _problems(robot: pp.Robot) -> list[Call]:
    """Problems that are made, and not compiled."""
    given = {
        "robot": robot,
        "dt": 0.01,
        "steps": 2,
        "running": [pp.cost.torque(1.0)],
        "final": [pp.cost.posture(1.0)],
        "torque": 10.0,
        "limits": None,
        "speed": 10.0,
        "limit_weight": 10.0,
        "actuated": "elbow",
        "passive": None,
        "hessian": "auto",
        "contacts": ["tool"],
    }
    return [Call("OptimalControl", pp.OptimalControl, given)]


def _motions(robot: pp.FreeRobot, folder: Path) -> list[Call]:
    """One compiled problem, its motions, and the controller that solves it again and again."""
    start = {"q": robot.neutral(), "v": np.zeros(robot.nv)}
    bound = {"parameters": robot.parameters()}
    problem = pp.OptimalControl(
        robot,
        dt=0.01,
        steps=2,
        running=[pp.cost.torque(1.0), pp.cost.speed(1.0, along=True)],
        final=[pp.cost.point("tool", 1.0)],
        hessian="gauss",
    )
    goals = {"tool": np.zeros(3), "speed": np.zeros((3, robot.nv))}
    most = {"iterations": 1, "tolerance": 1e-7}
    found = problem.solve(**start, **bound, **goals, **most)
    batch = problem.solve(np.zeros((2, 2)), **bound, **goals, **most)
    guess = {"torques": np.zeros((2, robot.nv)), "states": (found.q, found.v)}

    held = pp.OptimalControl(
        robot, dt=0.01, steps=2, running=[pp.cost.torque(1.0)], contacts=["tool"]
    )

    def control(**options: Any) -> np.ndarray:
        return pp.MPC(**options)(0.0, **start)

    return [
        Call("OptimalControl.solve", problem.solve, {**start, **bound, **goals, **most}),
        Call(
            "OptimalControl.solve near",
            lambda **o: problem.solve(**start, **bound, **goals, **o),
            {"near": found, "shift": 1, "iterations": 1},
        ),
        Call(
            "OptimalControl.solve from a guess",
            lambda **o: problem.solve(**start, **bound, **goals, iterations=1, **o),
            guess,
        ),
        Call(
            "OptimalControl.solve with contacts",
            lambda **o: held.solve(**start, **bound, **most, **o),
            {"schedule": np.ones((2, 1))},
        ),
        Call(
            "MPC with contacts",
            lambda **o: pp.MPC(held, first=1, **bound, **o)(0.0, **start),
            {"schedule": np.ones((2, 1))},
        ),
        Call(
            "MPC",
            control,
            {"problem": problem, **most, "first": 1, "torques": None, **bound, **goals},
        ),
        Call(
            "OptimalControl.solve with a bar",
            lambda **o: problem.solve(**start, **bound, **goals, iterations=1, **o),
            {"progress": lambda iteration, costs: None},
        ),
        Call(
            "MPC.c_files",
            pp.MPC(problem, first=1, **bound, **goals).c_files,
            {"name": "arm", **start},
        ),
        Call("MPC()", pp.MPC(problem, first=1, **bound, **goals), {"t": 0.0, **start}),
        Call("OptimalMotion.element", lambda where: batch.element(where), {"where": 0}),
        Call("OptimalMotion.jvp", found.jvp, {**start, "tool": np.ones(3)}),
        Call("OptimalMotion.vjp", found.vjp, {"u": 1.0 + found.u, "q": found.q}),
        Call("OptimalMotion.plot", found.plot, {"what": "q"}),
        Call("OptimalMotion.html", found.html, {"path": folder / "optimal.html"}),
    ]


def _costs(robot: pp.Robot) -> list[Call]:
    frame, three = "tool", np.zeros(3)
    shared = {"weight": 1.0, "name": "goal", "along": False}
    rows: dict[str, dict[str, Any]] = {
        "posture": {"at": robot.neutral()},
        "speed": {"at": np.zeros(robot.nv)},
        "torque": {"at": np.zeros(robot.nv)},
        "point": {"frame": frame, "at": three},
        "orientation": {"frame": frame, "at": np.eye(3)},
        "pose": {"frame": frame, "at": np.eye(4)},
        "direction": {"frame": frame, "axis": (0, 0, 1), "at": (0, 0, 1)},
        "center_of_mass": {"at": three},
        "momentum": {"at": np.zeros(6)},
    }

    def problem(kind: str, **options: Any) -> pp.OptimalControl:
        cost = getattr(pp.cost, kind)(**options)
        return pp.OptimalControl(robot, 0.01, 2, running=[pp.cost.torque(1.0, name="u"), cost])

    costs = [
        Call(f"cost.{kind}", lambda kind=kind, **o: problem(kind, **o), own | shared)
        for kind, own in rows.items()
    ]
    held: dict[str, dict[str, Any]] = {
        "force": {"at": three},
        "friction": {"friction": 0.7},
        "ground": {"height": 0.0, "clearance": 0.1},
    }

    def held_problem(kind: str, **options: Any) -> pp.OptimalControl:
        running = [pp.cost.torque(1.0, name="u"), getattr(pp.cost, kind)(**options)]
        return pp.OptimalControl(robot, 0.01, 2, running=running, contacts=["tool"])

    weights = {"weight": 1.0, "name": "goal"}
    costs += [
        Call(f"cost.{kind}", lambda kind=kind, **o: held_problem(kind, **o), own | weights)
        for kind, own in held.items()
    ]
    function = {"function": lambda q, v, u: q, "weight": 1.0, "name": "rows"}
    return [*costs, Call("cost.of", lambda **o: problem("of", **o), function)]
