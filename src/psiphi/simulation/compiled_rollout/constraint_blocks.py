"""Blocks of constraints: the dynamics of closed chains, the projection onto their constraints, and
the stops of `limits="block"` (`simulation/forces/joint_limit_impact.py`).

    dynamics           a, and ill_conditioning of Omega
    max_conditioning   S = max(S, ill_conditioning); below ILL_CONDITIONED no Omega was singular
    close_q, move_q    dq = -M^-1 Jc* Omega^-1 e(q),      q = q exp(dq)
    close_v, move_v    dv = -M^-1 Jc* Omega^-1 Jc v,      v = v + dv
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.functions.compiled_function import Function
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import maximum
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.step_blocks import quantity_block, trace
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.forces.joint_limit_impact import SWEEPS, JointStops

STOP_LOOP = Repeat(
    "stops", "touch", "hit", ("mass", "impact"), ("sweep",), "done", SWEEPS, "bounce"
)
STOP_START, STOP_APPROACH, STOP_SUM = "stops.start", "stops.approach", "stop_sum"
PROJECTION = ("close_q", "move_q", "close_v", "move_v")  # at the end of a step


def closed_chain_blocks(
    system: System, m: Manifold, force: str, project: bool, implicit: bool
) -> NamedBlocks:
    """{block: (tape, {argument: place})}; `force` is the place of the torques."""
    dynamics = (
        system.added_inertia_dynamics_function if implicit else system.redundant_dynamics_function
    )

    def start(q: np.ndarray, v: np.ndarray) -> Values:
        return {"Q": q, "V": v, "S": [0.0]}

    def max_conditioning(S: np.ndarray, ill_conditioning: np.ndarray) -> Values:
        return {"S": [maximum(ill_conditioning[0], S[0])]}

    sizes = {"S": 1, "ill_conditioning": 1}
    blocks: NamedBlocks = {
        "start": (trace("start", {"q": m.nq, "v": m.nv}, start), {}),
        "dynamics": (select_outputs(dynamics, "a", "ill_conditioning"), {"tau": force}),
        "max_conditioning": (trace("max_conditioning", sizes, max_conditioning), {}),
    }
    return blocks | (_projection_blocks(system, m) if project else {})


def _projection_blocks(system: System, m: Manifold) -> NamedBlocks:
    def move_q(q: np.ndarray, dq: np.ndarray) -> Values:
        closed = m.unit(m.exp(q, dq))
        return {"Q": closed, "q": closed}

    def move_v(v: np.ndarray, dv: np.ndarray) -> Values:
        return {"V": v + dv, "v": v + dv}

    projection = system.redundant_projection_function
    return {
        "close_q": (select_outputs(projection, "dq", "ill_conditioning"), {}),
        "move_q": (trace("move_q", {"q": m.nq, "dq": m.nv}, move_q), {}),
        "close_v": (select_outputs(projection, "dv"), {}),
        "move_v": (trace("move_v", {"v": m.nv, "dv": m.nv}, move_v), {}),
    }


def select_outputs(function: Function, *names: str) -> StraightCode:
    """The tape of a function with only these results; what they do not need is not computed."""
    code = function.source.code
    assert isinstance(code, StraightCode)
    selected = [i for i, arg in enumerate(code.program.outputs) if arg.name in names]
    program = replace(code.program, outputs=tuple(code.program.outputs[i] for i in selected))
    stores = tuple(
        (selected.index(number), index, node)
        for number, index, node in code.stores
        if number in selected
    )
    return StraightCode(program, code.tape, stores)


def stop_blocks(stops: JointStops, robot: Robot, records: bool) -> NamedBlocks:
    """The blocks of joint stops. With `records`, their impulses and work are summed."""
    nq, nv, n = robot.nq, robot.nv, len(stops.q)
    sums = {"speed_before": n, STOP_SUM: stops.sum_size} if records else {}
    sizes = {
        stops.touch: {"q": nq, "v": nv},
        stops.impact: {"v": nv, "M_inv": nv * nv, "side": n},
        stops.sweep: {"compliance": n * n, "speed": n, "side": n, "impulse": n, "done": 1},
        stops.bounce: {"v": nv, "M_inv": nv * nv, "side": n, "impulse": n, **sums},
    }
    blocks: NamedBlocks = {
        rule.__name__: (trace(rule.__name__, each, rule), {}) for rule, each in sizes.items()
    }
    if records:
        blocks[STOP_START] = stop_start(stops), {}
        blocks[STOP_APPROACH] = trace("approach", {"v": nv}, stops.approach), {}
    return blocks | {"mass": (quantity_block(robot, "mass_matrix_inverse"), {})}


def stop_start(stops: JointStops) -> StraightCode:
    """The block that sets the sums of stops to zero."""
    return trace("start", {"h": 1}, lambda h: {STOP_SUM: np.repeat(0.0 * h, stops.sum_size)})
