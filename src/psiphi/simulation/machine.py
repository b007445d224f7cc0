"""One compiled rollout as data: which blocks run in which order, and where their values stand in the frame.

    start                     once for each group of lanes
    law_j, dynamics, stages   every step, in the method's order

A `Plan` is what the code depends on besides the model; it is cheap, so that a warm start need not trace anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from psiphi.closed.system import System
from psiphi.emitters.segments import Pieces, Segment, Store, cut
from psiphi.functions.robot import Robot
from psiphi.simulation import blocks, closing
from psiphi.simulation.manifold import Manifold
from psiphi.simulation.torques import Losses
from psiphi.sweeps.unroll import Straight

PAD = 16  # places of arguments are padded: packing moves whole tiles of lanes
WHOLE = 1 << 60  # never cut: a block that reads and writes one place is one segment


@dataclass(frozen=True)
class Plan:
    """What is asked for: the method, the law of the torque ("torque", "gravity", "pd", "pd gravity", "computed"), whether the
    torque or reference changes with time, whether it is held during a step, and the losses."""

    method: str
    law: str
    timed: bool
    hold: bool
    losses: Losses
    closure: str = ""  # what holds a closed chain together
    project: bool = False  # back onto the constraints after each step

    @property
    def key(self) -> list:
        losses = [self.losses.damping.tolist(), self.losses.friction.tolist(), self.losses.speed]
        rest = [self.closure, self.project] if self.closure else []
        return [self.method, self.law, self.timed, self.hold, losses if not self.losses.none else [], *rest]

    @property
    def results(self) -> tuple[str, ...]:
        """What a sample holds."""
        return ("Q", "V", "S") if self.closure else ("Q", "V")

    @property
    def references(self) -> tuple[str, ...]:
        """What the law follows."""
        rows = {"torque": ("tau",), "gravity": (), "computed": ("q_ref", "v_ref", "a_ref")}
        return rows.get(self.law, ("q_ref", "v_ref"))

    @property
    def times(self) -> int:
        """At how many half steps, from 0, the reference is needed: 1 or 3."""
        return 3 if self.timed and not self.hold and self.law != "torque" and self.method != "euler" else 1

    @property
    def given(self) -> tuple[str, ...]:
        """Packed once."""
        gains = ("kp", "kd") if self.law.startswith(("pd", "computed")) else ()
        return ("q", "v", "h", *gains, *(() if self.timed else self.references))

    @property
    def tables(self) -> tuple[str, ...]:
        """Packed every step: references by name and half step."""
        return tuple(place(name, j) for j in range(self.times) for name in self.references) if self.timed else ()


def place(name: str, j: int) -> str:
    """Where a reference of half step j stands."""
    return name if j == 0 else f"{name}@{j}"


@dataclass(frozen=True)
class Placed:
    """A block whose values stand in the common frame."""

    name: str
    segments: tuple[Segment, ...]
    angles: int
    angle_base: int


@dataclass(frozen=True, eq=False)
class Machine:
    """A plan on one robot or closed chain, traced."""

    system: Robot | System
    plan: Plan

    @property
    def robot(self) -> Robot:
        return self.system.robot if isinstance(self.system, System) else self.system

    @cached_property
    def manifold(self) -> Manifold:
        return Manifold(self.robot)

    @cached_property
    def straights(self) -> dict[str, tuple[Straight, dict[str, str]]]:
        """{block: (tape, {its argument: place})}, places unnamed have the argument's own name."""
        plan, m = self.plan, self.manifold
        known: dict[str, tuple[Straight, dict[str, str]]] = {"start": (blocks.start(m), {})}
        known |= {name: (tape, {}) for name, tape in blocks.STAGES[plan.method](m).items()}
        force = "tau" if plan.losses.none else "force"
        if isinstance(self.system, System):
            known |= closing.blocks(self.system, m, force, plan.project)
        else:
            known["dynamics"] = blocks.catalogued(self.robot, "forward_dynamics"), {"tau": force}
        if not plan.losses.none:
            known["total"] = blocks.total(plan.losses, m.nv), {}
        return known | self._law()

    def _law(self) -> dict[str, tuple[Straight, dict[str, str]]]:
        plan, m, law = self.plan, self.manifold, self.plan.law
        known = {}
        if "gravity" in law:
            known["gravity"] = blocks.catalogued(self.robot, "gravity"), {"tau": "tau" if law == "gravity" else "g"}
        if law.startswith(("pd", "computed")):
            tape = blocks.feedback(m, law == "computed", law == "pd gravity")
            target = {"u": "u" if law == "computed" else "tau"}
            for j in range(plan.times):
                known[f"feedback{j}"] = tape, target | {name: place(name, j) for name in plan.references}
        if law == "computed":
            known["inverse"] = blocks.catalogued(self.robot, "inverse_dynamics"), {"a": "u"}
        return known

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The blocks of one step."""
        out: list[str] = []
        for item in blocks.ORDER[self.plan.method]:
            out += [item] if isinstance(item, str) else self._evaluation(item, first=not out)
        return (*out, *(closing.AFTER if self.plan.project else ()))

    def _evaluation(self, j: int, first: bool) -> list[str]:
        """Torque and acceleration at half step j."""
        plan = self.plan
        wanted = [f"feedback{min(j, plan.times - 1)}", "inverse"]
        law = [name for name in ("gravity", *wanted) if name in self.straights]
        dynamics = [name for name in ("total", "dynamics", "strained") if name in self.straights]
        return [*(law if first or not plan.hold else []), *dynamics]

    @cached_property
    def places(self) -> dict[str, int]:
        """Offsets in the frame, by name."""
        out, at = {}, 0
        for name in self._names():
            out[name] = at
            at += -(-self.sizes[name] // PAD) * PAD
        return out | {"": at}  # where scratch begins

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {name: blocks.size(self.manifold, name.partition("@")[0]) for name in self._names()}

    def _names(self) -> list[str]:
        known = [*self.plan.given, *self.plan.tables, "tau", "a"]
        for tape, at in self.straights.values():
            known += [at.get(arg.name, arg.name) for arg in (*tape.program.inputs, *tape.program.outputs)]
        return list(dict.fromkeys(known))

    @cached_property
    def placed(self) -> dict[str, Placed]:
        return {name: self._place(name, *pair) for name, pair in self.straights.items()}

    @cached_property
    def frame(self) -> int:
        """Values in the whole frame."""
        return self.places[""] + max(pieces.frame - pieces.layout.size for pieces in self._cut.values())

    @cached_property
    def _cut(self) -> dict[str, Pieces]:
        large = ("dynamics", "gravity", "inverse", "close_q", "close_v")
        return {name: cut(tape) if name in large else cut(tape, WHOLE) for name, (tape, _) in self.straights.items()}

    def _place(self, name: str, straight: Straight, at: dict[str, str]) -> Placed:
        """The block's own layout moved: arguments to their places, everything else to the common scratch."""
        pieces, program, move = self._cut[name], straight.program, {}
        for args, offsets in ((program.inputs, pieces.layout.inputs), (program.outputs, pieces.layout.outputs)):
            for arg, offset in zip(args, offsets, strict=True):
                home = self.places[at.get(arg.name, arg.name)]
                move.update({offset + i: home + i for i in range(arg.size)})

        def moved(offset: int) -> int:
            return move[offset] if offset in move else self.places[""] + offset - pieces.layout.size

        def rebuilt(segment: Segment) -> Segment:
            stores = [Store(store.base, moved(store.offset), store.node) for store in segment.stores]
            given = {node: (base, moved(offset)) for node, (base, offset) in segment.given.items()}
            return Segment(f"{name}.{segment.name}", segment.tape, segment.nodes, stores, given)

        segments = tuple(rebuilt(s) for s in (pieces.prologue, *pieces.segments))
        return Placed(name, segments, pieces.angles, moved(pieces.angle_base) if pieces.angles else 0)

    @property
    def flops(self) -> int:
        """Operations of one step, sines at forty each."""
        counts = {name: tape.count for name, (tape, _) in self.straights.items()}
        return sum(counts[name].flops + 40 * counts[name].trig for name in self.order)
