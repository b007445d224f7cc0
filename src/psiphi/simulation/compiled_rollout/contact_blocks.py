"""Blocks of contacts with the ground (`simulation/contact/ground_contact.py`).

    contact.approach   geometry and velocities without contact forces
    contact.delassus   G = J M^-1 J*, if a contact of some lane acts
    contact.sweep      one sweep over the contacts, until all lanes are done
    contact.apply      v+ = v_f + M^-1 J* lambda, and the residual

The places of contacts have the prefix "contact.", apart from q, v, V, h.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat, SingleStep
from psiphi.compiler.ir.tape_fusion import fuse_blocks
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.simulation.compiled_rollout.step_blocks import quantity_block, trace
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.integration.integrators import CONTACTS

START, APPROACH, DELASSUS = "contact.start", "contact.approach", "contact.delassus"
SWEEP, APPLY = "contact.sweep", "contact.apply"
TOTAL = "contact.total"
RECORDED = ("contact.impulse", "contact.mode")
SHARED = ("q", "v", "V", "h", "added", PARAMETERS)
REBOUND = ("still", "free", "again")


def contact_place(name: str) -> str:
    """The place of a value of the contacts."""
    return name if name in SHARED else f"contact.{name}"


def contact_loop(contact: GroundContact) -> Repeat:
    """The solution of the contacts of a step."""
    return Repeat(
        CONTACTS,
        APPROACH,
        "contact.near",
        (DELASSUS,),
        SWEEP,
        "contact.done",
        contact.ground.iterations,
        APPLY,
    )


def contact_blocks(contact: GroundContact, implicit: bool) -> NamedBlocks:
    """The blocks of the contacts. With `implicit`, the inertia of the joints includes the implicit
    losses and springs of the step."""
    count = contact.count
    numbers = dict.fromkeys(contact.numbers, count)
    speeds = {"speed": 3 * count, "friction": count}
    state = {"impulse": 3 * count, "slip": count, "done": 1}
    rebound = dict(zip(REBOUND, (count, count, 1), strict=True)) if contact.ground.rebounds else {}
    solved = {"G": 9 * count * count, "block": 6 * count}
    start = trace("start", {"h": 1}, lambda h: {"total": np.repeat(0.0 * h, count)})
    sweep = trace("sweep", {**solved, **speeds, **state, **rebound}, contact.sweep)
    blocks = {
        START: start,
        APPROACH: _approach(contact, numbers),
        DELASSUS: _delassus(contact, numbers, implicit),
        SWEEP: sweep,
        APPLY: _apply(contact, implicit),
    }
    return {name: (code, _places(code)) for name, code in blocks.items()}


def _places(code: StraightCode) -> dict[str, str]:
    arguments = (*code.program.inputs, *code.program.outputs)
    return {arg.name: contact_place(arg.name) for arg in arguments}


def _approach(contact: GroundContact, numbers: dict[str, int]) -> StraightCode:
    robot, frames = contact.robot, contact.frames
    poses = [f"T{i}" for i in range(len(frames))]
    named: NamedBlocks = {
        name: (quantity_block(robot, "frame_pose", (frame,)), {"T": name})
        for name, frame in zip(poses, frames, strict=True)
    }
    velocities = quantity_block(robot, "frame_velocities", frames)
    named["velocities"] = velocities, {"V": "twists"}
    sizes = dict.fromkeys(poses, 16) | {"twists": 6 * len(frames), "h": 1}
    sizes |= {name: size for name, size in numbers.items() if name != "friction"}
    if contact.ground.rebounds:
        named["before"] = velocities, {"v": "V", "V": "twists_before"}
        sizes["twists_before"] = 6 * len(frames)

    def rule(h: np.ndarray, twists: np.ndarray, **places: np.ndarray) -> Values:
        T = np.concatenate([places.pop(name) for name in poses])
        before = places.pop("twists_before", None)
        return contact.approach(T, twists, h, before, **places)

    return _fused("approach", named, sizes, rule)


def _delassus(contact: GroundContact, numbers: dict[str, int], implicit: bool) -> StraightCode:
    compliance = "added_inertia_compliance" if implicit else "operational_compliance"
    size = 6 * len(contact.frames)
    named: NamedBlocks = {
        "compliance": (quantity_block(contact.robot, compliance, contact.frames), {})
    }
    sizes = {"X": size * size, "lever": 3 * contact.count, "h": 1}
    sizes |= {name: n for name, n in numbers.items() if name in ("stiffness", "damping")}
    return _fused("delassus", named, sizes, contact.delassus)


def _apply(contact: GroundContact, implicit: bool) -> StraightCode:
    name = "added_inertia_wrench_acceleration" if implicit else "wrench_acceleration"
    count, nv = contact.count, contact.robot.nv
    levers = {"lever": 3 * count, "impulse": 3 * count}
    wrenches = trace("wrenches", levers, contact.wrenches)
    named: NamedBlocks = {
        "wrenches": (wrenches, {}),
        "response": (quantity_block(contact.robot, name, contact.frames), {}),
    }
    sizes = {"v": nv, "a": nv, "G": 9 * count * count, "block": 6 * count}
    sizes |= {"speed": 3 * count, "friction": count, "impulse": 3 * count}
    sizes["total"] = count
    return _fused("apply", named, sizes, contact.apply)


def _fused(
    name: str, named: NamedBlocks, sizes: dict[str, int], rule: Callable[..., Values]
) -> StraightCode:
    """One tape of the blocks and, last, the rule; its inputs are those that no block computes."""
    last = trace(name, sizes, rule)
    named = {**named, name: (last, {})}
    made: set[str] = set()
    inputs: dict[str, Argument] = {}
    for code, place in named.values():
        program = code.program
        for arg in program.inputs:
            key = place.get(arg.name, arg.name)
            if key not in made:
                inputs.setdefault(key, Argument(key, (arg.size,)))
        made |= {place.get(arg.name, arg.name) for arg in program.outputs}
    outputs = tuple(Argument(arg.name, (arg.size,)) for arg in last.program.outputs)
    return fuse_blocks(SingleStep(BlockFrame(named), tuple(named), tuple(inputs.values()), outputs))
