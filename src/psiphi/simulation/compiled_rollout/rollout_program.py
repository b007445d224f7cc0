"""One compiled rollout as data: which blocks run in which order.

    start                     once for each group of lanes
    law, dynamics, stages     every step, in the method's order

A `RolloutOptions` is what the code depends on besides the model; it is cheap, so that a warm start need not trace anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from psiphi._util.validate import robot_of
from psiphi.compiler.ir.block_frame import BlockFrame, Code, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.manifold import Manifold
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout import constraint_blocks, step_blocks
from psiphi.simulation.control.control_law import Law, Step, named
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import course, rules

SWITCHES = (
    "motors",
)  # of a law's numbers: those that are 0 or 1, and nothing to change by a little
SHARED = (
    "q",
    "v",
    "tau",
    "ill_conditioning",
    PARAMETERS,
)  # places a law has in common with the rest of a step


def place(name: str, j: int = 0) -> str:
    """Where a law's own value stands, of half step j: nothing else of a step has that name."""
    own = name if name in SHARED else f"law.{name}"
    return own if j == 0 else f"{own}@{j}"


@dataclass(frozen=True)
class RolloutOptions:
    """What is asked for: the method, the law of the torque, whether what it follows changes with time, whether the torque is
    held during a step, and what else acts."""

    method: str
    law: Law
    timed: bool
    hold: bool
    keeps: tuple[str, ...] = ()  # the controller's numbers
    losses: tuple[str, ...] = ()  # "damping", "friction", "floor": those that act
    implicit: bool = False  # whether some losses or springs are taken implicitly
    effort: bool = False  # whether torques are cut
    stops: JointStops | None = None  # joints that end at their limits
    closure: str = ""  # what holds a closed chain together
    project: bool = False  # back onto the constraints after each step
    free: bool = False  # whether numbers of the model are given
    springs: tuple[
        str, ...
    ] = ()  # "stiffness", "rest", ...: the numbers of springs, where these act
    implicit_springs: bool = False  # whether some springs are taken implicitly

    @property
    def key(self) -> list:
        stops = [self.stops.lower.tolist(), self.stops.upper.tolist()] if self.stops else []
        rest = [self.closure, self.project] if self.closure else []
        rest += [self.springs, self.implicit_springs] if self.springs else []
        steps = [[step.name, step.at, step.frame, step.sizes, step.only] for step in self.law.steps]
        law = [steps, self.law.followed, self.law.key, self.keeps]
        return [
            self.method,
            law,
            self.timed,
            self.hold,
            self.losses,
            self.implicit,
            self.effort,
            stops,
            *rest,
        ]

    @property
    def results(self) -> tuple[str, ...]:
        """What a sample holds."""
        return ("Q", "V", "S") if self.closure else ("Q", "V")

    @property
    def times(self) -> int:
        """At how many half steps, from 0, what the law follows is needed: 1 or 3."""
        return (
            3 if self.timed and not self.hold and self.law.steps and self.method != "euler" else 1
        )

    @property
    def given(self) -> tuple[str, ...]:
        """Packed once."""
        brakes = (
            *self.losses,
            *["implicit_losses"] * (self.implicit and bool(self.losses)),
            *["effort"] * self.effort,
        )
        brakes = (*brakes, *self.springs, *["implicit_springs"] * self.implicit_springs, *[PARAMETERS] * self.free)
        return (
            "q",
            "v",
            "h",
            *brakes,
            *map(place, (*self.keeps, *(() if self.timed else self.law.followed))),
        )

    @property
    def slopes(self) -> tuple[str, ...]:
        """The places a derivative is taken by, besides the state: torques, a controller's numbers, parameters of the robot."""
        switches = tuple(map(place, SWITCHES))
        known = (
            name for name in self.given if name in ("tau", PARAMETERS) or name.startswith("law.")
        )
        fixed = (name for name in known if name not in switches)
        return (*fixed, *(name for name in self.tables if name == "tau"))

    @property
    def tables(self) -> tuple[str, ...]:
        """Packed every step: what is followed, by name and half step."""
        return (
            tuple(place(name, j) for j in range(self.times) for name in self.law.followed)
            if self.timed
            else ()
        )


@dataclass(frozen=True, eq=False)
class RolloutProgram:
    """A plan on one robot or closed chain, traced."""

    system: Robot | System
    plan: RolloutOptions

    @property
    def robot(self) -> Robot:
        return robot_of(self.system)

    @cached_property
    def manifold(self) -> Manifold:
        return self.robot.manifold

    @property
    def foreign(self) -> list[str]:
        """Rules that are not psiphi's own, traced: their names alone do not say what they are."""
        strange = [step for step in self.plan.law.steps if step.is_foreign]
        traced = [step_blocks.ruled(self.manifold, step.what, step.sizes) for step in strange]  # type: ignore[arg-type]
        return [f"{code.program.outputs} {code.tape.nodes} {code.stores}" for code in traced]

    @cached_property
    def blocks(self) -> NamedBlocks:
        """All blocks."""
        plan = self.plan
        between = rules(plan.method, plan.implicit, plan.implicit_springs)
        known: NamedBlocks = {
            rule.__name__: (self._over(partial(step_blocks.ruled, rule=rule)), {"u": "v"})
            for rule in between
        }
        known["start"] = self._over(step_blocks.start), {}
        force = "force" if plan.losses or plan.springs else "tau"
        if isinstance(self.system, System):
            known |= constraint_blocks.blocks(
                self.system, self.manifold, force, plan.project, plan.implicit
            )
        else:
            dynamics = "added_inertia_dynamics" if plan.implicit else "forward_dynamics"
            known["dynamics"] = step_blocks.catalogued(self.robot, dynamics), {"tau": force}
        if plan.stops is not None:
            known |= constraint_blocks.stopped(plan.stops, self.robot)
        if plan.effort:
            known["cut"] = self._over(step_blocks.cut), {}
        acting = {"losses": plan.losses, "springs": plan.springs, "implicit_springs": plan.implicit_springs}
        if plan.losses or plan.springs:
            known["total"] = (
                self._over(partial(step_blocks.total, implicit=plan.implicit, **acting)),
                {},
            )
        if plan.implicit:
            known["stiffen"] = (
                self._over(partial(step_blocks.stiffen, method=plan.method, **acting)),
                {},
            )
        return known | self.law_blocks

    @cached_property
    def law_blocks(self) -> NamedBlocks:
        """Those of the torque alone, step by step."""
        plan, known = self.plan, {}
        for i, step in enumerate(plan.law.steps):
            code, names = self._step(step)
            for j in range(plan.times if plan.law.is_timed(step) else 1):
                at = {
                    each: place(name, j if name in plan.law.followed else 0)
                    for each, name in names.items()
                }
                known[f"law{i}.{j}"] = code, at
        return known

    def _step(self, step: Step) -> tuple[Code, dict[str, str]]:
        """The code of one step of the law, and what the law calls its arguments and results."""
        names = step.at
        if not isinstance(step.what, str):
            over = (
                self._whole if step.sizes or step.is_foreign else self._over
            )  # others' rules may look at all joints
            code = over(partial(step_blocks.ruled, rule=step.what, sizes=step.sizes))
        elif isinstance(self.system, System):
            function = {
                "gravity": "static_torque_function",
                "inverse_dynamics": "inverse_dynamics_function",
                "carrying": "object_torque_function",
            }[step.what]
            code = getattr(self.system, function).source.code
            names = {"u" if name == "a" else name: own for name, own in names.items()}
        else:
            code = step_blocks.catalogued(self.robot, step.what, named(step.frame))
        return code, {
            arg.name: names.get(arg.name, arg.name)
            for arg in (*code.program.inputs, *code.program.outputs)
        }

    def _whole(self, part: Callable[[Manifold], StraightCode]) -> Code:
        return part(self.manifold)

    def _over(self, part: Callable[[Manifold], StraightCode]) -> Code:
        """A block that treats every joint by itself: written out, or, of a large robot, in loops."""
        loops = len(self.robot.joints) > UNROLL_LIMIT and self.robot.embedding is None
        return step_blocks.spread(self.manifold, part) if loops else part(self.manifold)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The blocks of one step."""
        head = ["stiffen"] if self.plan.implicit else []
        out = head.copy()
        for item in course(self.plan.method, self.plan.implicit, self.plan.implicit_springs):
            out += (
                [item.__name__]
                if callable(item)
                else []
                if item == "u"
                else self._evaluation(int(item), out == head)
            )
        out += ["stops"] if self.plan.stops is not None else []
        out += constraint_blocks.AFTER if self.plan.project else []
        return tuple(
            name
            for block in out
            for name in ((block, "strained") if self._strains(block) else (block,))
        )

    def _evaluation(self, j: int, first: bool) -> list[str]:
        """Torque and acceleration at half step j."""
        plan, law = self.plan, self.plan.law
        last = min(j, plan.times - 1)
        torque = [f"law{i}.{last if law.is_timed(step) else 0}" for i, step in enumerate(law.steps)]
        wanted = [*torque, "cut"] if first or not plan.hold else []
        return [name for name in (*wanted, "total", "dynamics") if name in self.blocks]

    def _strains(self, block: str) -> bool:
        """Whether a block answers a strain: the largest of all is kept."""
        return block in self.blocks and any(
            arg.name == "ill_conditioning" for arg in self.blocks[block][0].program.outputs
        )

    @cached_property
    def rollout(self) -> Rollout:
        """All of it, for the emitter."""
        plan = self.plan
        repeats = (constraint_blocks.STOPS,) if plan.stops is not None else ()
        rare = {f"law{i}": step.only for i, step in enumerate(plan.law.steps) if step.only}
        where = {
            name: place(rare[name.split(".")[0]])
            for name in self.blocks
            if name.split(".")[0] in rare
        }
        return Rollout(
            BlockFrame(self.blocks),
            self.order,
            plan.given,
            plan.tables,
            plan.results,
            repeats,
            where,
        )

    @property
    def flops(self) -> int:
        """Operations of one step, sines at forty each."""
        counts = {name: tape.count for name, (tape, _) in self.blocks.items()}
        every = [
            part
            for name in self.order
            for part in (constraint_blocks.STOPS.blocks if name == "stops" else (name,))
        ]
        return sum(counts[name].flops + 40 * counts[name].trig for name in every)
