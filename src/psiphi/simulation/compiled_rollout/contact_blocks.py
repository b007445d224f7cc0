"""Blocks of contacts with the ground (`simulation/contact/ground_contact.py`).

    contact.locate     where the contacts are on the grid of a ground with heights, and
    contact.lookup     the heights about them
    contact.approach   forward dynamics, geometry, and velocities without contact forces
    contact.responses  Omega = J M^-1 J* of the frames, if a contact of some lane acts
    contact.sweep      one sweep over the contacts, and
    contact.newton     a step of Newton's method, until all lanes are done
    contact.apply      v+ = v_f + M^-1 J* lambda, and the residual
    contact.stop_total the sums of the impulses of joint stops, and of their work

Those around the loop are stages of one tape (`ir/stage_split.py`): the articulated inertias of the
forward dynamics also serve Omega and the response. The places of contacts have the prefix
"contact.", apart from those in SHARED.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import first_names
from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.lane_blocks import GRID_POINTS, TABLE, GridLookup
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.ir.stage_split import split_stages
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.contact.given_contacts import NUMBERS
from psiphi.model.spatial.branch_free import less, max_magnitude
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import square_root
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.constraint_blocks import (
    STOP_APPROACH,
    STOP_START,
    STOP_SUM,
    stop_start,
)
from psiphi.simulation.compiled_rollout.step_blocks import quantity_block, trace
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import MAX_DEPTH
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.integration.integrators import CONTACTS

LOCATE, LOOKUP = "contact.locate", "contact.lookup"
START, APPROACH, RESPONSES = "contact.start", "contact.approach", "contact.responses"
SWEEP, NEWTON, APPLY = "contact.sweep", "contact.newton", "contact.apply"
TOTAL = "contact.total"
LARGEST = "contact.largest"  # of the contacts: the root of the sum of the squares of residuals
DEPTH_CHECK = "contact.depth_check"  # of the start
RECORDED = ("contact.impulse", "contact.mode")
MARGIN = "contact.margin"
STOP_TOTAL = "contact.stop_total"
SHARED = ("Q", "V", "v", "h", "force", "added", PARAMETERS)
SOLVED = "solved_"  # of values that the sweeps have changed since the approach


def contact_place(name: str) -> str:
    """The place of a value of the contacts."""
    name = name.removeprefix(SOLVED)
    return name if name in SHARED else f"contact.{name}"


def contact_loop(contact: GroundContact) -> Repeat:
    """The solution of the contacts of a step."""
    return Repeat(
        CONTACTS,
        APPROACH,
        "contact.near",
        (RESPONSES,),
        iterations(contact),
        "contact.done",
        contact.ground.iterations,
        APPLY,
    )


def lookup_order(contact: GroundContact) -> tuple[str, ...]:
    """The blocks before the loop."""
    return (LOCATE, LOOKUP) if contact.lookup is not None else ()


def iterations(contact: GroundContact) -> tuple[str, ...]:
    """The blocks of an iteration."""
    solver = contact.solver
    return (SWEEP,) * solver.uses_sweeps + (NEWTON,) * solver.uses_newton


def contact_conditions(contact: GroundContact) -> dict[str, str]:
    """{block: value} of the blocks that not every iteration runs."""
    found = {SWEEP: contact_place("sweeps"), NEWTON: contact_place("steps")}
    blocks = iterations(contact)
    return {name: found[name] for name in blocks} if len(blocks) > 1 else {}


def contact_blocks(contact: GroundContact, implicit: bool, force: str) -> NamedBlocks:
    """The blocks of the contacts; `force` is the place of the joint forces. With `implicit`, the
    inertia of the joints includes the implicit losses and springs of the step."""
    solver = contact.solver
    sizes = solver.problem | solver.state
    residuals = contact.residual_count
    blocks = {
        START: trace("start", {"h": 1}, lambda h: {"total": np.repeat(0.0 * h, residuals)}),
        **({SWEEP: trace("sweep", sizes, solver.sweep)} if solver.uses_sweeps else {}),
        **({NEWTON: trace("newton", sizes, solver.newton)} if solver.uses_newton else {}),
        **ContactDynamics(contact, implicit).stages(),
    }
    found: NamedBlocks = {
        name: (code, _places(code) | {"force": force}) for name, code in blocks.items()
    }
    return found if contact.lookup is None else found | {LOOKUP: lookup_block(contact.lookup)}


def lookup_block(lookup: GridLookup) -> tuple[GridLookup, dict[str, str]]:
    """The block that reads the heights about the contacts."""
    at = {TABLE: contact_place("height"), "cells": contact_place("cells")}
    return lookup, at | {GRID_POINTS: contact_place(GRID_POINTS)}


def stop_sum_blocks(contact: GroundContact) -> NamedBlocks:
    """The blocks of kernels that sum what the joint stops do."""
    stops, space = contact.stops, contact.space
    assert stops is not None
    n, nv = contact.stop_count, contact.robot.nv

    def total(
        impulse: np.ndarray,
        place: np.ndarray,
        speed_before: np.ndarray,
        v: np.ndarray,
        stop_sum: np.ndarray,
    ) -> Values:
        force = impulse[3 * contact.count :] * np.array(space.unpack(place).sides)
        return {"stop_sum": stops.add_impulse(stop_sum, force, speed_before, v)}

    sizes = {"impulse": space.impulse_size, "place": space.place_size}
    sizes |= {"speed_before": n, "v": nv, STOP_SUM: stops.sum_size}
    at = {name: contact_place(name) for name in ("impulse", "place")}
    return {
        STOP_START: (stop_start(stops), {}),
        STOP_APPROACH: (trace("approach", {"v": nv}, stops.approach), {}),
        STOP_TOTAL: (trace("total", sizes, total), at),
    }


def sample_blocks(contact: GroundContact) -> NamedBlocks:
    """Blocks of kernels that check the start themselves, and sum residuals from sample to sample:
    the largest residual of the contacts, and a start that is NaN if it is deep inside the ground.
    """

    def largest(total: np.ndarray) -> Values:
        return {"largest": [max_magnitude(map(square_root, entries(total)))]}

    codes = [_straight(contact.robot, "frame_pose", (frame,)) for frame in contact.frames]
    sizes = {"Q": contact.robot.nq, "V": contact.robot.nv}
    sizes |= {x.name: x.size for y in codes for x in y.program.inputs if x.name == PARAMETERS}

    def check(
        Q: np.ndarray, V: np.ndarray, cells: np.ndarray | None = None, **given: np.ndarray
    ) -> Values:
        T = np.array([x for code in codes for x in code.on(q=Q, **given)["T"]])
        is_above: Any = 1.0
        for gap in contact.geometry(T, cells)[1]:
            is_above = is_above * (1.0 - less(gap, -MAX_DEPTH))
        factor = is_above / is_above  # 1 or NaN
        return {"Q": Q * factor, "V": V * factor}

    sizes |= {} if contact.lookup is None else {"cells": contact.lookup.size}
    blocks = {LARGEST: trace("largest", {"total": contact.residual_count}, largest)}
    if contact.ground.is_rigid:
        blocks[DEPTH_CHECK] = trace("depth_check", sizes, check)
    return {name: (code, _places(code)) for name, code in blocks.items()}


def _places(code: StraightCode) -> dict[str, str]:
    arguments = (*code.program.inputs, *code.program.outputs)
    return {arg.name: contact_place(arg.name) for arg in arguments}


class ContactDynamics:
    """The dynamics of a step with contacts: what is computed before and after the sweeps."""

    def __init__(self, contact: GroundContact, implicit: bool):
        self.contact, self.robot, frames = contact, contact.robot, contact.frames
        added = "added_inertia_" if implicit else ""
        dynamics = "added_inertia_dynamics" if implicit else "forward_dynamics"
        self.dynamics = _straight(self.robot, dynamics)
        self.poses = [_straight(self.robot, "frame_pose", (frame,)) for frame in frames]
        self.velocities = _straight(self.robot, "frame_velocities", frames)
        self.half_wrench = _straight(self.robot, f"{added}half_wrench_response", frames)
        self.half = _straight(self.robot, f"{added}half_response")
        self.half_torque: list[StraightCode] = []
        if contact.stop_count:
            self.half_torque.append(_straight(self.robot, f"{added}half_torque_response"))
        self.inputs = {PARAMETERS, "added"} & {
            arg.name
            for code in (self.dynamics, self.half_wrench, self.half, *self.poses)
            for arg in code.program.inputs
        }

    @property
    def stop_units(self) -> Sequence[np.ndarray]:
        """The torques of joints with stops, one each."""
        stops = self.contact.stops
        return [] if stops is None else list(np.eye(self.robot.nv)[stops.v])

    def stages(self) -> dict[str, StraightCode]:
        """The three stages. What the sweeps change, the last stage reads as `solved_...`."""
        contact, count = self.contact, self.contact.count
        sizes = {"Q": self.robot.nq, "V": self.robot.nv, "force": self.robot.nv, "h": 1}
        for name in sorted(self.inputs):
            own = (arg for arg in self.dynamics.program.inputs if arg.name == name)
            sizes[name] = next(own).size
        sizes |= dict.fromkeys(contact.numbers, count)
        sizes |= {"given": NUMBERS * len(contact.given)} if contact.given else {}
        impulses = contact.space.impulse_size
        sizes |= {"solved_impulse": impulses, "solved_speed": impulses}
        sizes |= {"total": contact.residual_count}
        sizes |= {"solved_best": impulses} if contact.solver.uses_newton else {}
        stages: dict[str, Sequence[str]] = {}
        if contact.lookup is not None:
            sizes["cells"], stages[LOCATE] = contact.lookup.size, (GRID_POINTS,)
        approach: list[str] = []
        whole = trace(CONTACTS, sizes, lambda **places: self._rule(approach, **places))
        return split_stages(
            whole,
            stages
            | {
                APPROACH: approach,
                RESPONSES: ("omega", "block", *["half"] * (contact.solver.half_size > 0)),
                APPLY: (
                    "solved_v",
                    "solved_residual",
                    "total",
                    *(SOLVED + x for x in ("mode", "margin", "impulse")),
                ),
            },
            "kept",
        )

    def _rule(
        self,
        approach: list[str],
        Q: np.ndarray,
        V: np.ndarray,
        force: np.ndarray,
        h: np.ndarray,
        solved_impulse: np.ndarray,
        solved_speed: np.ndarray,
        total: np.ndarray,
        friction: np.ndarray,
        **places: np.ndarray,
    ) -> Values:
        """The outputs of all stages; the names of those of the first are added to `approach`."""
        contact, m = self.contact, self.robot.manifold
        given = {"q": Q, "v": V, "tau": force}
        given |= {name: places[name] for name in self.inputs}
        numbers = {name: places[name] for name in contact.numbers if name in places}
        a = np.array(self.dynamics.on(**given)["a"])
        v = V + h * (a + m.turning(V))  # without contacts, in the axes at the start of the step
        T = np.array([x for code in self.poses for x in code.on(**given)["T"]])
        twists = self._twists(given, v)
        before = self._twists(given, V) if contact.ground.rebounds else None
        world = {name: places[name] for name in ("cells", "given") if name in places}
        found = contact.approach(T, twists, h, before, Q, v, **world, **numbers)
        located = {} if contact.lookup is None else {GRID_POINTS: contact.grid_points(T)}
        place, yielding = found["place"], {}
        if "compliance" in found:
            yielding = {"compliance": found["compliance"]}
        approach += ["v", *found]
        Y = [
            self.half_wrench.on(**given, f_ext=wrench)["y"]
            for wrench in contact.space.test_wrenches(place)
        ]
        Y += [
            code.on(**given | {"tau": unit})["y"]
            for code in self.half_torque
            for unit in self.stop_units
        ]
        try:
            response = contact.responses(Y, place, **yielding)
        except ZeroDivisionError:  # A_nn of a contact is zero, whatever q is
            raise StateError(
                f"a contact point of {self.robot.name} cannot move along the normal of the ground: "
                f"one of {first_names(contact.names)}",
                "put contact shapes on links that can leave the ground, or give it stiffness=",
            ) from None
        impulse = contact.solver.result(places.get("solved_best", solved_impulse), friction)
        known = {name: response[name] for name in ("omega", "block")} | yielding
        after = contact.apply(
            place, speed=solved_speed, friction=friction, impulse=impulse, total=total, **known
        )
        y = contact.half_response(Y, place, impulse)
        after |= {"v": v + np.array(self.half.on(**given, y=y)["a"]), "impulse": impulse}
        last = {name if name == "total" else SOLVED + name: x for name, x in after.items()}
        return {"v": v, **located, **found, **response, **last}

    def _twists(self, given: dict[str, Any], v: np.ndarray) -> np.ndarray:
        return np.array(self.velocities.on(**given | {"v": v})["V"])


def _straight(robot: Robot, name: str, frames: Sequence[str] = ()) -> StraightCode:
    """The code of a quantity; an error if it has loops."""
    code = quantity_block(robot, name, tuple(frames))
    if not isinstance(code, StraightCode):
        raise StateError(
            f"contacts of {robot.name} are not implemented: its {name} runs in loops",
            "lock joints that matter less: robot.lock(...)",
        )
    return code
