"""One compiled rollout as data: which blocks run in which order, and where their values stand in the frame.

    start                     once for each group of lanes
    law, dynamics, stages     every step, in the method's order

A `Plan` is what the code depends on besides the model; it is cheap, so that a warm start need not trace anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi.closed.system import System
from psiphi.emitters.segments import CUT, Pieces, Segment, Store, cut
from psiphi.functions.robot import Robot
from psiphi.simulation import blocks, closing, stopping
from psiphi.simulation.blocks import Named
from psiphi.simulation.laws import Torque, place
from psiphi.simulation.manifold import Manifold
from psiphi.simulation.stops import Stops
from psiphi.simulation.torques import Losses
from psiphi.sweeps.unroll import Straight

PAD = 16  # places of arguments are padded: packing moves whole tiles of lanes
WHOLE = 1 << 60  # never cut


@dataclass(frozen=True)
class Plan:
    """What is asked for: the method, the law of the torque, whether what it follows changes with time, whether the torque is
    held during a step, the losses, and the effort limits and stops (None: there are none)."""

    method: str
    law: Torque
    timed: bool
    hold: bool
    losses: Losses
    effort: np.ndarray | None = None
    stops: Stops | None = None  # joints that end at their limits
    closure: str = ""  # what holds a closed chain together
    project: bool = False  # back onto the constraints after each step

    @property
    def key(self) -> list:
        losses = [self.losses.damping.tolist(), self.losses.friction.tolist(), self.losses.speed]
        effort = None if self.effort is None else self.effort.tolist()
        stops = [self.stops.lower.tolist(), self.stops.upper.tolist()] if self.stops else []
        rest = [self.closure, self.project] if self.closure else []
        return [self.method, self.law.key, self.timed, self.hold, losses if not self.losses.none else [], effort, stops, *rest]

    @property
    def results(self) -> tuple[str, ...]:
        """What a sample holds."""
        return ("Q", "V", "S") if self.closure else ("Q", "V")

    @property
    def times(self) -> int:
        """At how many half steps, from 0, what the law follows is needed: 1 or 3."""
        return 3 if self.timed and not self.hold and self.law.timed and self.method != "euler" else 1

    @property
    def given(self) -> tuple[str, ...]:
        """Packed once."""
        return ("q", "v", "h", *self.law.keeps, *(() if self.timed else self.law.follows))

    @property
    def tables(self) -> tuple[str, ...]:
        """Packed every step: what is followed, by name and half step."""
        return tuple(place(name, j) for j in range(self.times) for name in self.law.follows) if self.timed else ()


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
    def straights(self) -> Named:
        """All blocks."""
        plan, m = self.plan, self.manifold
        known: Named = {"start": (blocks.start(m), {})}
        known |= {name: (tape, {}) for name, tape in blocks.STAGES[plan.method](m).items()}
        force = "tau" if plan.losses.none else "force"
        if isinstance(self.system, System):
            known |= closing.blocks(self.system, m, force, plan.project)
        else:
            known["dynamics"] = blocks.catalogued(self.robot, "forward_dynamics"), {"tau": force}
        if plan.stops is not None:
            known |= stopping.blocks(plan.stops, self.robot)
        if plan.effort is not None:
            known["cut"] = blocks.cut(plan.effort), {}
        if not plan.losses.none:
            known["total"] = blocks.total(plan.losses, m.nv), {}
        for name, (tape, at) in plan.law.blocks(self.system, m).items():
            for j in range(plan.times if name in plan.law.timed else 1):
                known[f"{name}{j or ''}"] = tape, at | {each: place(each, j) for each in plan.law.follows if j}
        return known

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The blocks of one step."""
        out: list[str] = []
        for item in blocks.ORDER[self.plan.method]:
            out += [item] if isinstance(item, str) else self._evaluation(item, first=not out)
        out += ["stops"] if self.plan.stops is not None else []
        out += closing.AFTER if self.plan.project else []
        return tuple(name for block in out for name in ((block, "strained") if self._strains(block) else (block,)))

    def _evaluation(self, j: int, first: bool) -> list[str]:
        """Torque and acceleration at half step j."""
        plan, law = self.plan, self.plan.law
        last = min(j, plan.times - 1)
        torque = [f"{name}{last or ''}" if name in law.timed else name for name in law.order]
        wanted = [*torque, "cut"] if first or not plan.hold else []
        return [name for name in (*wanted, "total", "dynamics") if name in self.straights]

    def _strains(self, block: str) -> bool:
        """Whether a block answers a strain, to be added to the sum of all."""
        return block in self.straights and any(arg.name == "strain" for arg in self.straights[block][0].program.outputs)

    @cached_property
    def places(self) -> dict[str, int]:
        """Offsets in the frame, by name."""
        out, at = {}, 0
        for name, size in self.sizes.items():
            out[name] = at
            at += -(-size // PAD) * PAD
        return out | {"": at}  # where scratch begins

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Numbers in each place, by name."""
        out: dict[str, int] = {}
        for tape, at in self.straights.values():
            out |= {at.get(arg.name, arg.name): arg.size for arg in (*tape.program.inputs, *tape.program.outputs)}
        return out

    @cached_property
    def placed(self) -> dict[str, Placed]:
        return {name: self._place(name, *pair) for name, pair in self.straights.items()}

    @cached_property
    def frame(self) -> int:
        """Values in the whole frame."""
        return self.places[""] + max(pieces.frame - pieces.layout.size for pieces in self._cut.values())

    @cached_property
    def _cut(self) -> dict[str, Pieces]:
        """A block that reads and writes one place is one segment: a later one would read what an earlier one wrote."""
        out = {}
        for name, (tape, at) in self.straights.items():
            read, written = (
                {at.get(arg.name, arg.name) for arg in group} for group in (tape.program.inputs, tape.program.outputs)
            )
            out[name] = cut(tape, WHOLE if read & written else CUT)
        return out

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
        parts = [part for name in self.order for part in (stopping.PARTS if name == "stops" else (name,))]
        return sum(counts[name].flops + 40 * counts[name].trig for name in parts)
