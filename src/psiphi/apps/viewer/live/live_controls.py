"""Slider ranges, initial gains and pull stiffness of a live page, stable for its step size.

The mobility of a joint is (M^-1)_kk, and that of a point is the largest eigenvalue of J M^-1 J*. A
spring k oscillates at sqrt(k mobility). An explicit step is stable if h sqrt(k mobility) is below
about 2.7 for springs k, and if h c mobility is for dampers c. The damping of motors and joints is
implicit where it is stiff, so only springs and the pull damping have bounds.
"""

from __future__ import annotations

import numpy as np

from psiphi.apps.viewer.geometry.solids import DrawnSolid
from psiphi.apps.viewer.live.interactive_step import InteractiveProgram
from psiphi.apps.viewer.svg_plots import coordinate_labels
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.model.body_matrices import stack_scalars
from psiphi.model.model import WORLD
from psiphi.robot.robot import Robot
from psiphi.simulation.control.standing_gains import largest_gains, standing_gains
from psiphi.simulation.forces.damping_and_friction import mobility

KP, KD = 100.0, 20.0  # 1/s^2 and 1/s, times the diagonal of M, as in the law "pd" of scenes
MAX_GAINS = {"kp": 400.0, "kd": 60.0}
MOTOR_STEP_LIMIT = 1.0  # largest h sqrt(k mobility) of the motors
PULL_STEP_LIMIT = 0.3  # largest h sqrt(k mobility) of the pull spring
SAMPLES = 6  # configurations at which mobilities are computed
PULL_STRETCH = 0.15  # of the robot's size: stretch of the pull spring under the robot's weight
STANDING_RANGE = 4.0  # of the sliders for the gains of a robot on its feet, times the initial gain
TURN_RANGE, SLIDE_RANGE = np.pi, 0.5  # of the slider of a joint without limits, rad and m


def joint_sliders(robot: Robot, motors: np.ndarray, q0: np.ndarray) -> list[dict]:
    """A slider for each coordinate with a motor.

    Its value is q for a joint with one coordinate, else the displacement from q0.
    """
    rows = []
    names = {i: name for name, i in coordinate_labels(robot, "v")}
    for joint in robot.joints:
        for i, slides in zip(joint.coordinates, joint.row.slides, strict=False):
            if not motors[i]:
                continue
            wide, is_scalar = SLIDE_RANGE if slides else TURN_RANGE, joint.row.nq == 1
            here = float(q0[joint.q_slice.start]) if is_scalar else 0.0
            low, high = -wide / 2, wide / 2
            if is_scalar:
                low, high = float(joint.lower[0]), float(joint.upper[0])
            low = min(low if np.isfinite(low) else here - wide, here)
            high = max(high if np.isfinite(high) else here + wide, here)
            rows.append(
                {
                    "name": names[i],
                    "v": i,
                    "q": joint.q_slice.start if is_scalar else None,
                    "low": low,
                    "high": high,
                }
            )
            rows[-1]["unit"] = "m" if slides else "rad"
    return rows


def control_bounds(
    robot: Robot,
    program: InteractiveProgram,
    motors: np.ndarray,
    q0: np.ndarray,
    h: float,
    pieces: tuple[DrawnSolid, ...],
) -> dict:
    """Inertias and bounds at the start, from which the page computes gains and springs."""
    q = np.concatenate([q0[None], robot.random(0, SAMPLES - 1)])
    mass = robot.mass_matrix(q)
    inertia = np.diagonal(mass[0]).copy()
    free = np.linalg.inv(mass)
    quick = float(np.abs(np.linalg.eigvals(free * (inertia * motors))).max(initial=1e-9))
    return {
        "inertia": inertia.tolist(),
        "scale": inertia.tolist(),
        "most": None,
        "mobility": mobility(robot).tolist(),
        "kd": [KD, MAX_GAINS["kd"]],
        "kp": [
            min(KP, (MOTOR_STEP_LIMIT / h) ** 2 / quick),
            min(MAX_GAINS["kp"], (MOTOR_STEP_LIMIT / h) ** 2 / quick),
        ],
        "light": (1.0 / _point_mobility(program, q, free, pieces)).tolist(),
        "quick": PULL_STEP_LIMIT / h,
    }


def standing_controls(robot: Robot, q0: np.ndarray, h: float) -> dict:
    """Gains in N m/rad and N m s/rad of a robot on its feet, and the largest kp of each joint."""
    kp, kd = standing_gains(robot, q0)
    return {
        "scale": [1.0] * robot.nv,
        "most": largest_gains(robot, q0, h)[0].tolist(),
        "kp": [kp, STANDING_RANGE * kp],
        "kd": [kd, STANDING_RANGE * kd],
    }


def _point_mobility(
    program: InteractiveProgram, q: np.ndarray, free: np.ndarray, pieces: tuple[DrawnSolid, ...]
) -> np.ndarray:
    """(bodies,): the largest mobility of a point on each body, 1/kg. `free` is M^-1 at q."""
    robot = program.robot
    n, nv = len(robot.bodies), robot.nv
    code = program.blocks["link_velocities"][0]
    assert isinstance(code, StraightCode)
    # V of unit velocities, (..., nv, 6 n)
    J = _evaluate_code(code, q[:, None, :], np.broadcast_to(np.eye(nv), (len(q), nv, nv)))
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
        # |v + w x r| <= |v| + |w| |r|
        most[k] = max(most[k], (np.sqrt(moving) + far[k] * np.sqrt(turning)) ** 2)
    return most


def _evaluate_code(code: StraightCode, *arrays: np.ndarray) -> np.ndarray:
    """The first result of straight-line code, flattened, on arrays (..., n)."""
    nodes = [node for _, _, node in sorted(code.stores)]
    found = evaluate(code.tape, nodes, lambda place, i: arrays[int(place)][..., i])
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    return stack_scalars(found, lead)
