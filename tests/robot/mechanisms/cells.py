"""More closed systems to test on; `psiphi_bench.closed_cells` has others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import psiphi as pp
from psiphi.model.builder.builder import Builder
from psiphi.robot.bundled_robots import random_tree
from psiphi.robot.mechanisms.grasp_and_connect import Loop, connect
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi_bench.closed_cells import ClosedState, grasping_cell
from psiphi_bench.interpreted_robot import Interpreted, uncompiled


def pair(*kinds: str, seed: int = 3) -> ClosedState:
    """Two arms of seven hinges with a box."""
    rng = np.random.default_rng(seed)
    arms = [random_tree(7, int(rng.integers(1 << 30)), "revolute", 0.0) for _ in kinds]
    return grasping_cell(arms, kinds, rng)


def puma_pair(
    q: list[float], lean: float = 0.0, wrap: Callable[[System], System] = uncompiled
) -> ClosedState:
    """Two PUMAs side by side in one posture, a beam across their hands."""
    puma = Interpreted.of(pp.robots.puma560())
    one, two = np.eye(4), np.eye(4)
    two[1, 3] = 1.0
    two[0, 3] = lean
    hands = [base @ puma.frame_pose(q, "tool") for base in (one, two)]
    place = np.eye(4)
    place[:3, 3] = (hands[0][:3, 3] + hands[1][:3, 3]) / 2
    at = [np.linalg.inv(place) @ hand for hand in hands]
    cell = wrap(
        pp.grasp(
            [(puma, one, "tool"), (puma, two, "tool")],
            pp.Body.box(5.0, (0.1, 1.0, 0.1), "beam"),
            at,
        )
    )
    start = np.concatenate([q, q, place[:3, 3], [0, 0, 0, 1]])
    return ClosedState(cell, start, np.zeros(cell.nv), np.zeros(cell.nv))


def pinned_arm(pin=(1.2, 0.4, 0.0), gravity=(0.0, -9.81, 0.0)) -> System:
    """Two links of one metre in the plane, the tip held to a pin."""
    b = Builder("pinned", gravity=gravity)
    for name in ("upper", "lower"):
        b.body(name, mass=1.0, com=(0.5, 0, 0), inertia=np.diag([0.01, 0.1, 0.1]))
    b.joint("shoulder", "revolute", "world", "upper")
    b.joint("elbow", "revolute", "upper", "lower", xyz=(1, 0, 0))
    b.frame("tip", "lower", xyz=(1, 0, 0))
    b.frame("pin", "world", xyz=pin)
    return connect(Robot.of(b.build()), [Loop("ball", "tip", "pin")])


def inertia_at_object(cell: System, q: np.ndarray) -> np.ndarray:
    """S4 for rigid grasps: M(C) + sum A_i* Lambda_i A_i with Lambda_i = (J_i M_i^-1 J_i*)^-1."""
    body, T = cell.bodies[-1], cell.frame_pose(q, cell.object)
    R = T[:3, :3]
    c, I = R @ body.com, R @ body.inertia @ R.T
    cx = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
    total = np.block(
        [[I - body.mass * cx @ cx, body.mass * cx], [-body.mass * cx, body.mass * np.eye(3)]]
    )
    mass = cell.robot.mass_matrix(q)
    for contact in cell.contacts:
        J = cell.robot.jacobian(q, contact.first)
        arm = np.linalg.inv(J @ np.linalg.solve(mass, J.T))
        l = cell.frame_pose(q, contact.second)[:3, 3] - T[:3, 3]
        A = np.eye(6)
        A[3:, :3] = -np.array([[0, -l[2], l[1]], [l[2], 0, -l[0]], [-l[1], l[0], 0]])
        total = total + A.T @ arm @ A
    return total
