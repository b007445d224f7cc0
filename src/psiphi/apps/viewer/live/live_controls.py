"""The numbers a live page begins with: sliders of joints, gains, how strong a hand is, all within what a step of h can follow.

A joint or a point that moves x' under a force has a mobility: (M^-1)_kk, or the largest eigenvalue of J M^-1 J* at the point. A
spring k on it swings at sqrt(k mobility), which a step follows while h times it stays below 2.7, and so it is with a damper
while h c mobility does; the motors' damping and the joints' losses are implicit where they are stiff, and have no such bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.apps.viewer.geometry.solids import DrawnSolid
from psiphi.apps.viewer.live.interactive_step import InteractiveProgram
from psiphi.apps.viewer.svg_plots import coordinate_labels
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.body_matrices import stack_scalars
from psiphi.model.model import WORLD
from psiphi.robot.robot import Robot
from psiphi.simulation.forces.damping_and_friction import mobility

KP, KD = 100.0, 20.0  # 1/s^2 and 1/s, of the diagonal of M: as the "pd" of a scene
MAX_GAINS = {"kp": 400.0, "kd": 60.0}
MOTOR_STEP_LIMIT = 1.0  # h sqrt(k mobility) of the motors' springs at most
HAND_STEP_LIMIT = 0.3  # and of the hand's
SAMPLES = 6  # configurations at which mobilities are looked at
HAND_STRETCH = 0.15  # of the robot's size: so far the hand's spring must stretch to carry all of it
TURN_RANGE, SLIDE_RANGE = np.pi, 0.5  # how far a slider goes where a joint has no limits


def joint_sliders(robot: Robot, motors: np.ndarray, q0: np.ndarray) -> list[dict]:
    """A row for each coordinate with a motor: of a joint with one coordinate q itself, of others a displacement."""
    rows = []
    words = {i: name for name, i in coordinate_labels(robot, "v")}
    for joint in robot.joints:
        for i, slides in zip(joint.coordinates, joint.row.slides, strict=False):
            if not motors[i]:
                continue
            wide, own = SLIDE_RANGE if slides else TURN_RANGE, joint.row.nq == 1
            here = float(q0[joint.q_slice.start]) if own else 0.0
            low, high = (
                (float(joint.lower[0]), float(joint.upper[0])) if own else (-wide / 2, wide / 2)
            )
            low = min(low if np.isfinite(low) else here - wide, here)
            high = max(high if np.isfinite(high) else here + wide, here)
            rows.append(
                {
                    "name": words[i],
                    "v": i,
                    "q": joint.q_slice.start if own else None,
                    "low": low,
                    "high": high,
                }
            )
            rows[-1]["unit"] = "m" if slides else "rad"
    return rows


def control_bounds(
    robot: Robot,
    machine: InteractiveProgram,
    motors: np.ndarray,
    q0: np.ndarray,
    h: float,
    pieces: tuple[DrawnSolid, ...],
) -> dict:
    """Inertias and bounds of the robot as it starts: what gains and springs are made from, in the page."""
    q = np.concatenate([q0[None], robot.random(0, SAMPLES - 1)])
    mass = robot.mass_matrix(q)
    inertia = np.diagonal(mass[0]).copy()
    free = np.linalg.inv(mass)
    quick = float(np.abs(np.linalg.eigvals(free * (inertia * motors))).max(initial=1e-9))
    return {
        "inertia": inertia.tolist(),
        "mobility": mobility(robot).tolist(),
        "kd": [KD, MAX_GAINS["kd"]],
        "kp": [
            min(KP, (MOTOR_STEP_LIMIT / h) ** 2 / quick),
            min(MAX_GAINS["kp"], (MOTOR_STEP_LIMIT / h) ** 2 / quick),
        ],
        "light": (1.0 / _point_mobility(machine, q, free, pieces)).tolist(),
        "quick": HAND_STEP_LIMIT / h,
    }


def _point_mobility(
    machine: InteractiveProgram, q: np.ndarray, free: np.ndarray, pieces: tuple[DrawnSolid, ...]
) -> np.ndarray:
    """(bodies,): the largest mobility of a point on each, 1/kg."""
    robot = machine.robot
    n, nv = len(robot.bodies), robot.nv
    code = machine.blocks["rates"][0]
    assert isinstance(code, StraightCode)
    J = _evaluate_code(
        code, q[:, None, :], np.broadcast_to(np.eye(nv), (len(q), nv, nv))
    )  # V of unit velocities, (..., nv, 6 n)
    J = np.moveaxis(J.reshape(len(q), nv, n, 6), 1, -1)  # (..., n, 6, nv)
    X = J @ free[:, None] @ np.swapaxes(J, -1, -2)
    most = np.full(n, 1e-9)
    far = [0.0] * n
    for piece in pieces:
        if piece.body != WORLD:
            far[piece.body] = max(
                far[piece.body],
                float(np.linalg.norm(piece.pose.translation)) + piece.bounding_radius,
            )
    for k in range(n):
        turning = np.linalg.eigvalsh(X[:, k, :3, :3])[:, -1].max()
        moving = np.linalg.eigvalsh(X[:, k, 3:, 3:])[:, -1].max()
        most[k] = max(
            most[k], (np.sqrt(moving) + far[k] * np.sqrt(turning)) ** 2
        )  # |v + w x r|, by the triangle
    return most


def _evaluate_code(code: Any, *arrays: np.ndarray) -> np.ndarray:
    """The first result of straight-line code on arrays (..., n), flat."""
    nodes = [node for _, _, node in sorted(code.stores)]
    found = evaluate(code.tape, nodes, lambda place, i: arrays[int(place)][..., i])
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    return stack_scalars(found, lead)
