"""The contacts of a step as equations, for its derivatives (`contact/contact_modes.py`).

A differentiated step has two parts. The first one runs the step itself, with the loop that solves
its contacts, and then MODES: the matrix A of their equations, factored. The second part is one tape
that is differentiated: the step without the loop. It reads the impulses lambda, the factors of A,
and what CORRECT needs, as numbers without derivatives:

    IMPLICIT   v1 = v_f + M^-1 J* lambda, and the correction -A^-1 F(J v1, ...), which is zero
    CORRECT    M^-1 J* times the correction, with the M and J of the first part
    ADVANCE    v+ = v1 + that

The first part runs in the places of the frame. It must not change what the second part reads, and
has other places (HELD) where the step overwrites its own inputs. MODES and CORRECT are stages of
one tape, which depends on the solution only, not on how it was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import count_of
from psiphi.compiler.ir.block_frame import BlockFrame, Code, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.ir.stage_split import split_stages
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.screws import add, dot
from psiphi.simulation.compiled_rollout.contact_blocks import (
    START,
    ContactDynamics,
    contact_place,
    lookup_order,
)
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.contact.contact_modes import (
    contact_velocities,
    find_modes,
    impulse_change,
    mode_sizes,
)
from psiphi.simulation.contact.contact_space import StepPlaces, gram
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.integration.integrators import CONTACTS

COPY, MODES, CLEAR = "contact.copy", "contact.modes", "contact.clear"
IMPLICIT, CORRECT, ADVANCE = "contact.implicit", "contact.correct", "contact.advance"
BEFORE, CORRECTION, CHANGE = "contact.before", "contact.correction", "contact.change"
NEAR, KEPT = "contact.near", "stored"
HELD = "held."  # of places of the first part
FIXED = "fixed."  # of inputs of the second part that have no derivatives
MOST_ROWS = 54  # of A, which is factored without loops: 18 contacts, or 8 and 29 stops


class ImplicitContacts:
    """The blocks of both parts of a differentiated step with contacts."""

    def __init__(self, program: RolloutProgram):
        assert program.options.contacts is not None
        self.contact: GroundContact = program.options.contacts
        rows, stops = self.contact.space.impulse_size, self.contact.stop_count
        if rows > MOST_ROWS:
            raise StateError(
                f"{program.robot.name} has {count_of(self.contact.count, 'contact point')}"
                f"{f' and {stops} joint stops' if stops else ''}, and motions with derivatives "
                f"have up to {(MOST_ROWS - stops) // 3}",
                "give fewer or simpler shapes, spheres instead of boxes for instance",
            )
        self.program, self.options = program, program.options

    # -- the first part: the step itself -----------------------------------------------------------

    @cached_property
    def solve_blocks(self) -> NamedBlocks:
        """The blocks of the step, in places that leave its inputs intact, and MODES."""
        blocks: NamedBlocks = {}
        for name, (code, at) in self.program.blocks.items():
            places = {x: self._held(at.get(x, x)) for x in _arguments(code)}
            blocks[HELD + name if name == "start" else name] = code, places
        cleared = {x: size for x, size in self._modes_sizes.items() if x != "change"}

        def copy(**values: np.ndarray) -> Values:
            return {HELD + name: x for name, x in values.items()}

        def clear(h: np.ndarray) -> Values:
            return {name: np.repeat(0.0 * h, size) for name, size in cleared.items()}

        clearing, modes = trace("clear", {"h": 1}, clear), self._stages[MODES]
        sizes = {name: self._sizes[name] for name in self.overwritten}
        return blocks | {
            COPY: (trace("copy", sizes, copy), {}),
            CLEAR: (clearing, {x: contact_place(x) for x in _arguments(clearing)}),
            MODES: (modes, {x: self._place_at_start(x) for x in _arguments(modes)}),
        }

    @cached_property
    def overwritten(self) -> tuple[str, ...]:
        """The inputs of the step that its blocks overwrite."""
        packed = (*self.options.packed_once, *self.options.packed_per_step)
        written = {
            at.get(arg.name, arg.name)
            for code, at in self.program.blocks.values()
            for arg in code.program.outputs
        }
        return tuple(name for name in packed if name in written)

    @property
    def solve_order(self) -> tuple[str, ...]:
        return (COPY, HELD + "start", *self.program.order, MODES)

    @property
    def prologue(self) -> tuple[str, ...]:
        return START, CLEAR

    @property
    def loops(self) -> tuple[Repeat, ...]:
        return tuple(self.program.loops.values())

    @property
    def conditions(self) -> dict[str, str]:
        """{block: place}: the modes are found if a contact is near."""
        conditions = self.program.rollout.conditions
        return {name: self._held(x) for name, x in conditions.items()} | {MODES: NEAR}

    # -- the second part: the step without the loop ------------------------------------------------

    @cached_property
    def step_blocks(self) -> NamedBlocks:
        """The blocks of the tape that is differentiated."""
        names = [*self._dynamic_inputs, *self._solution, *self._mode_names, "near"]
        known = self._sizes | {contact_place(x): n for x, n in self._modes_sizes.items()}
        places = {name: self._place(name) for name in dict.fromkeys(names)}
        sizes = {name: known[place] for name, place in places.items()}
        nv, correct = self.program.robot.nv, self._stages[CORRECT]
        advance = trace(
            "advance", {"before": nv, "change": nv}, lambda before, change: {"v": before + change}
        )
        at = {x: FIXED + x for x in _arguments(correct)}
        return self.program.blocks | {
            IMPLICIT: (
                trace("implicit", sizes, self._implicit),
                places | {"before": BEFORE, "correction": CORRECTION},
            ),
            CORRECT: (correct, at | {"correction": CORRECTION, "change": CHANGE}),
            ADVANCE: (advance, {"before": BEFORE, "change": CHANGE}),
        }

    @property
    def step_order(self) -> tuple[str, ...]:
        parts = {CONTACTS: (IMPLICIT, CORRECT, ADVANCE)}
        parts |= dict.fromkeys(lookup_order(self.contact), ())
        return tuple(x for name in self.program.order for x in parts.get(name, (name,)))

    @cached_property
    def held_inputs(self) -> dict[str, str]:
        """{input of the tape without derivatives: its place}."""
        read = [*self._solution, *self._mode_names, *self._cells, "near"]
        fixed = {FIXED + name: self._place_at_start(name) for name in self._correct_inputs}
        return {contact_place(name): contact_place(name) for name in read} | fixed

    # -- what both parts compute -------------------------------------------------------------------

    @cached_property
    def _stages(self) -> dict[str, StraightCode]:
        """MODES and CORRECT."""
        names = [*self._dynamic_inputs, *self._solution]
        sizes = {name: self._sizes[self._place(name)] for name in names}
        sizes["correction"] = self.contact.space.impulse_size
        whole = trace("modes", sizes, self._modes)
        return split_stages(whole, {MODES: self._mode_names, CORRECT: ("change",)}, KEPT)

    @cached_property
    def _modes_sizes(self) -> dict[str, int]:
        """{name: size} of the results of MODES."""
        return {arg.name: arg.size for arg in self._stages[MODES].program.outputs}

    @cached_property
    def _correct_inputs(self) -> list[str]:
        """The names of what CORRECT reads, besides the correction."""
        code = self._stages[CORRECT]
        nodes = (code.tape.nodes[i] for i in code.live)
        used = {int(a) for op, a, _ in nodes if op is Op.LEAF}
        names = [arg.name for i, arg in enumerate(code.program.inputs) if i in used]
        return [name for name in names if name != "correction"]

    def _modes(
        self,
        friction: np.ndarray,
        impulse: np.ndarray,
        correction: np.ndarray,
        **places: np.ndarray,
    ) -> Values:
        solved, space = _SolvedStep(self, impulse, places), self.contact.space
        Y = [solved.half_wrench(wrench) for wrench in space.test_wrenches(solved.place)]
        Y += [solved.half_torque(unit) for unit in self.dynamics.stop_units]
        v = solved.free_velocity + solved.response(Y, impulse)
        G = space.delassus(space.rows(solved.place), gram(Y))
        speeds, compliance = solved.speeds(v)
        for i, x in enumerate(compliance):
            G[3 * i][3 * i] = G[3 * i][3 * i] + x
        change, law = solved.response(Y, correction), self.contact.law
        return {**find_modes(G, speeds, friction, impulse, law, space.locked), "change": change}

    def _implicit(
        self, friction: np.ndarray, impulse: np.ndarray, near: np.ndarray, **places: np.ndarray
    ) -> Values:
        solved, space = _SolvedStep(self, impulse, places), self.contact.space
        tests, count = space.test_wrenches(solved.place), space.contact_size
        w = space.wrench(space.rows(solved.place), entries(impulse))
        wrench = [dot(w[:count], column) for column in zip(*tests, strict=True)]
        y = solved.half_wrench(wrench)
        if space.stop_count:
            torque = [dot(w[count:], x) for x in zip(*self.dynamics.stop_units, strict=True)]
            y = add(y, solved.half_torque(torque))
        before = solved.free_velocity + solved.half(y)
        speeds, _ = solved.speeds(before)
        correction = impulse_change(speeds, friction, impulse, near, places, self.contact.law)
        return {"before": before, "correction": correction}

    @cached_property
    def dynamics(self) -> ContactDynamics:
        return ContactDynamics(self.contact, self.options.implicit)

    @property
    def _dynamic_inputs(self) -> list[str]:
        """The names of what a step with known impulses reads."""
        names = ["Q", "V", "h", "force", *sorted(self.dynamics.inputs), *self.contact.numbers]
        return [*names, *self._cells]

    @property
    def _cells(self) -> list[str]:
        """The name of what a step reads of the ground's heights: numbers without derivatives."""
        return ["cells"] * (self.contact.lookup is not None)

    @property
    def _mode_names(self) -> tuple[str, ...]:
        """The names of what MODES finds."""
        return tuple(mode_sizes(self.contact))

    @property
    def _solution(self) -> list[str]:
        """The names of what both stages read of the solution."""
        return ["impulse", *["speed", "still"] * self.contact.ground.rebounds]

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return BlockFrame(self.program.blocks).sizes

    def _place(self, name: str) -> str:
        """The place of a value in a step."""
        return self.options.force if name == "force" else contact_place(name)

    def _place_at_start(self, name: str) -> str:
        """The place of a value of the first part, after the step."""
        return {"Q": "q", "V": "v"}.get(name) or self._held(self._place(name))

    def _held(self, place: str) -> str:
        return HELD + place if place in self.overwritten else place


class _SolvedStep:
    """The dynamics of a step whose impulses are known."""

    def __init__(
        self, contacts: ImplicitContacts, impulse: np.ndarray, places: Mapping[str, np.ndarray]
    ):
        self.contacts, self.dynamics = contacts, contacts.dynamics
        self.impulse, self.places = impulse, places
        self.given = {"q": places["Q"], "v": places["V"], "tau": places["force"]}
        self.given |= {name: places[name] for name in self.dynamics.inputs}
        poses = (code.on(**self.given)["T"] for code in self.dynamics.poses)
        self.poses = np.array([x for T in poses for x in T])
        found, _ = contacts.contact.geometry(self.poses, places.get("cells"))
        sides = contacts.contact.stop_sides(places["Q"])
        self.place = np.array(contacts.contact.space.pack(StepPlaces(found, sides)))

    @property
    def free_velocity(self) -> np.ndarray:
        """v_f, in the axes at the start of the step."""
        a = np.array(self.dynamics.dynamics.on(**self.given)["a"])
        V, manifold = self.places["V"], self.contacts.program.manifold
        return V + self.places["h"] * (a + manifold.turning(V))

    def half_wrench(self, wrench: Sequence[Any]) -> list[Any]:
        """m^-1 J* w."""
        return list(self.dynamics.half_wrench.on(**self.given, f_ext=wrench)["y"])

    def half_torque(self, tau: Sequence[Any] | np.ndarray) -> list[Any]:
        """m^-1 tau."""
        (code,) = self.dynamics.half_torque
        return list(code.on(**self.given | {"tau": tau})["y"])

    def response(self, Y: Sequence[Sequence[Any]], impulse: np.ndarray) -> np.ndarray:
        """M^-1 J* lambda."""
        return self.half(self.contacts.contact.half_response(Y, self.place, impulse))

    def half(self, y: Sequence[Any] | np.ndarray) -> np.ndarray:
        """m^-* y."""
        return np.array(self.dynamics.half.on(**self.given, y=y)["a"])

    def twists(self, v: np.ndarray) -> np.ndarray:
        return np.array(self.dynamics.velocities.on(**self.given | {"v": v})["V"])

    def speeds(self, v: np.ndarray) -> tuple[list[Any], list[Any]]:
        """c + b of the contacts at this velocity, and R."""
        contact, places = self.contacts.contact, self.places
        numbers = {name: places[name] for name in contact.numbers if name in places}
        before = self.twists(places["V"]) if contact.ground.rebounds else None
        return contact_velocities(
            contact,
            self.poses,
            self.twists(v),
            places["h"],
            self.impulse,
            before,
            places,
            places["Q"],
            v,
            cells=places.get("cells"),
            **numbers,
        )


def _arguments(code: Code) -> list[str]:
    return [arg.name for arg in (*code.program.inputs, *code.program.outputs)]
