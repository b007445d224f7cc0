"""The parts of a compiled step that closed chains add, their own dynamics and the way back onto the constraints; and those of
`limits="block"`, the rules of `simulation/forces/joint_limit_impact.py`, which run where a lane needs them.

dynamics     a, and the strain of Omega
strained     S = max(S, strain): where it stays below STRAIN, no step met a singular Omega
close_q      dq = -M^-1 Jc* Omega^-1 e(q);    put_q    q = q exp(dq)
close_v      dv = -M^-1 Jc* Omega^-1 Jc v;    put_v    v = v + dv
"""

from __future__ import annotations

from dataclasses import replace

from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.functions.compiled_function import Function
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import maximum
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.step_blocks import catalogued, trace
from psiphi.simulation.forces.joint_limit_impact import SWEEPS, JointStops

STOPS = Repeat("stops", "touch", "hit", ("mass", "impact"), "sweep", "done", SWEEPS, "bounce")
AFTER = ("close_q", "put_q", "close_v", "put_v")  # once the step is made


def blocks(system: System, m: Manifold, force: str, project: bool, implicit: bool) -> NamedBlocks:
    """{block: (tape, {its argument: place})}."""
    known: NamedBlocks = {
        "start": (
            trace("start", {"q": m.nq, "v": m.nv}, lambda q, v: {"Q": q, "V": v, "S": [0.0]}),
            {},
        ),
        "dynamics": (
            only(
                system.added_inertia_dynamics_function
                if implicit
                else system.redundant_dynamics_function,
                "a",
                "ill_conditioning",
            ),
            {"tau": force},
        ),
        "strained": (
            trace(
                "strained",
                {"S": 1, "ill_conditioning": 1},
                lambda S, ill_conditioning: {"S": [maximum(ill_conditioning[0], S[0])]},
            ),
            {},
        ),
    }
    return known | (_projection(system, m) if project else {})


def _projection(system: System, m: Manifold) -> NamedBlocks:
    def put_q(q, dq):
        closed = m.unit(m.exp(q, dq))
        return {"Q": closed, "q": closed}

    def put_v(v, dv):
        return {"V": v + dv, "v": v + dv}

    return {
        "close_q": (only(system.redundant_projection_function, "dq", "ill_conditioning"), {}),
        "put_q": (trace("put_q", {"q": m.nq, "dq": m.nv}, put_q), {}),
        "close_v": (only(system.redundant_projection_function, "dv"), {}),
        "put_v": (trace("put_v", {"v": m.nv, "dv": m.nv}, put_v), {}),
    }


def only(function: Function, *names: str) -> StraightCode:
    """The tape of a function, with these results alone: what the others need is not computed."""
    code = function.source.code
    assert isinstance(code, StraightCode)
    kept = [i for i, arg in enumerate(code.program.outputs) if arg.name in names]
    program = replace(code.program, outputs=tuple(code.program.outputs[i] for i in kept))
    stores = tuple(
        (kept.index(number), index, node) for number, index, node in code.stores if number in kept
    )
    return StraightCode(program, code.tape, stores)


def stopped(stops: JointStops, robot: Robot) -> NamedBlocks:
    """The blocks of joint stops."""
    nq, nv, n = robot.nq, robot.nv, len(stops.q)
    sizes = {
        stops.touch: {"q": nq, "v": nv},
        stops.impact: {"v": nv, "M_inv": nv * nv, "side": n},
        stops.sweep: {"compliance": n * n, "speed": n, "side": n, "impulse": n, "done": 1},
        stops.bounce: {"v": nv, "M_inv": nv * nv, "side": n, "impulse": n},
    }
    traced: NamedBlocks = {
        rule.__name__: (trace(rule.__name__, each, rule), {}) for rule, each in sizes.items()
    }
    return traced | {"mass": (catalogued(robot, "mass_matrix_inverse"), {})}
