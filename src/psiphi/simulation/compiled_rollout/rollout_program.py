"""A compiled rollout as data: blocks of code and their order.

    start                     once, before the first step
    law, dynamics, stages     in each step, in the order of the integrator

`RolloutOptions` is everything that the code depends on besides the model. It is cheap to make, so
that a warm start traces nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

from psiphi._util.validate import robot_of
from psiphi.compiler.ir.block_frame import BlockFrame, Code, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.manifold import Manifold
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout import constraint_blocks, contact_blocks, step_blocks
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Law, Step, frame_names
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import CONTACTS, step_rules, step_sequence

SWITCHES = (
    "motors",
    "others_motors",
    "held",
    "free",
)  # numbers of a law that are 0 or 1, without derivatives
ONE_EVALUATION = ("euler", "moreau")  # methods that evaluate the dynamics once a step
# places that a law shares with the rest of a step
SHARED = ("q", "v", "tau", "ill_conditioning", PARAMETERS)


# the functions of closed chains that laws use; other quantities are those of the free mechanisms
CHAIN_FUNCTIONS = {
    "gravity": "static_torque_function",
    "inverse_dynamics": "inverse_dynamics_function",
    "shared_inverse_dynamics": "shared_inverse_dynamics_function",
    "constraint_rates": "constraint_rates_function",
    "object_torque": "object_torque_function",
}


def law_place(name: str, j: int = 0) -> str:
    """The place of a value of the law at half step j. The prefix keeps it apart from the places
    of the rest of the step."""
    place = name if name in SHARED else f"law.{name}"
    return place if j == 0 else f"{place}@{j}"


def input_name(place: str) -> str:
    """The name of an input in derivatives: "kp" of a law, "ground_friction" of the contacts."""
    kind, _, name = place.rpartition(".")
    return f"ground_{name}" if kind == "contact" else place.removeprefix("law.")


@dataclass(frozen=True)
class RolloutOptions:
    """The integrator, the control law, and the forces that act."""

    method: str
    law: Law
    time_varying: bool  # whether the reference, or the torque, changes with time
    hold: bool  # whether the torque is constant during a step
    law_numbers: tuple[str, ...] = ()  # names of the controller's numbers
    losses: tuple[str, ...] = ()  # those that act, of "damping", "friction", "floor"
    implicit: bool = False  # whether some losses or springs are implicit
    effort: bool = False  # whether torques are limited
    stops: JointStops | None = None  # the joints that stop at their limits
    records_stops: bool = False  # whether the impulses of stops are summed
    closure: str = ""  # the key of a closed chain
    project: bool = False  # whether each step ends with a projection onto the constraints
    has_parameters: bool = False  # whether the model has free parameters
    springs: tuple[str, ...] = ()  # the numbers of springs that act: "stiffness", "rest", ...
    implicit_springs: bool = False  # whether some springs are implicit
    contacts: GroundContact | None = None  # the contacts with the ground
    records_contacts: bool = False  # whether the impulses of each sample are stored
    records_margin: bool = False  # and their distances from other modes

    @property
    def key(self) -> list:
        """The part of the cache key."""
        stops = [self.stops.lower.tolist(), self.stops.upper.tolist()] if self.stops else []
        stops += [self.records_stops] if self.stops else []
        rest = [self.closure, self.project] if self.closure else []
        rest += [self.springs, self.implicit_springs] if self.springs else []
        if self.contacts:
            rest += [self.contacts.key, self.records_contacts, self.records_stops]
            rest += [self.records_margin]
        steps = [
            [step.name, step.places, step.frame, step.sizes, step.condition]
            for step in self.law.steps
        ]
        law = [steps, self.law.reference_places, self.law.key, self.law_numbers]
        options = [self.method, law, self.time_varying, self.hold, self.losses, self.implicit]
        return [*options, self.effort, stops, *rest]

    @property
    def force(self) -> str:
        """The place of the joint forces."""
        return "force" if self.losses or self.springs else "tau"

    @property
    def sampled(self) -> tuple[str, ...]:
        """The places that a sample stores."""
        if self.contacts is not None:
            more = contact_blocks.RECORDED if self.records_contacts else ()
            more += (contact_blocks.MARGIN,) * self.records_margin
            more += (constraint_blocks.STOP_SUM,) * self.records_stops
            return ("Q", "V", contact_blocks.TOTAL, *more)
        if self.records_stops:
            return "Q", "V", constraint_blocks.STOP_SUM
        return ("Q", "V", "S") if self.closure else ("Q", "V")

    @property
    def all_stops(self) -> JointStops | None:
        """The joints that stop at their limits, after a step or together with its contacts."""
        return self.stops if self.contacts is None else self.contacts.stops

    @property
    def half_steps(self) -> int:
        """The number of half steps, from 0, at which the reference is needed: 1 or 3."""
        changes = self.time_varying and not self.hold and self.law.steps
        return 3 if changes and self.method not in ONE_EVALUATION else 1

    @property
    def packed_once(self) -> tuple[str, ...]:
        """The places that are packed once, before the first step."""
        forces = (
            *self.losses,
            *["implicit_losses"] * (self.implicit and bool(self.losses)),
            *["effort"] * self.effort,
            *self.springs,
            *["implicit_springs"] * self.implicit_springs,
            *[PARAMETERS] * self.has_parameters,
            *map(contact_blocks.contact_place, self.contacts.numbers if self.contacts else ()),
            *map(contact_blocks.contact_place, self.contacts.tables if self.contacts else ()),
            *([contact_blocks.contact_place("given")] if self._has_given else []),
        )
        constant_reference = () if self.time_varying else self.law.reference_places
        return ("q", "v", "h", *forces, *map(law_place, (*self.law_numbers, *constant_reference)))

    @property
    def _has_given(self) -> bool:
        return self.contacts is not None and bool(self.contacts.given)

    @property
    def derivative_places(self) -> tuple[str, ...]:
        """The places, besides the state, that derivatives are taken with respect to: torques,
        numbers of the controller and of the ground, parameters of the robot."""
        switches = tuple(map(law_place, SWITCHES))
        numbers = self.contacts.numbers if self.contacts else ()
        contacts = tuple(map(contact_blocks.contact_place, numbers))
        constant = (
            name
            for name in self.packed_once
            if name in ("tau", PARAMETERS, *contacts) or name.startswith("law.")
        )
        return (
            *(name for name in constant if name not in switches),
            *(name for name in self.packed_per_step if name == "tau"),
        )

    @property
    def packed_per_step(self) -> tuple[str, ...]:
        """The places that are packed for each step: the reference, by name and half step."""
        if not self.time_varying:
            return ()
        return tuple(
            law_place(x, j) for j in range(self.half_steps) for x in self.law.reference_places
        )


@dataclass(frozen=True, eq=False)
class RolloutProgram:
    """The blocks of a rollout of one robot or closed chain."""

    system: Robot | System
    options: RolloutOptions

    @property
    def robot(self) -> Robot:
        return robot_of(self.system)

    @cached_property
    def manifold(self) -> Manifold:
        return self.robot.manifold

    @property
    def foreign_rules(self) -> list[str]:
        """The traced code of the rules that users wrote, for the cache key: a name does not
        identify them."""
        rules = [
            step_blocks.rule_block(self.manifold, step.operation, step.sizes)  # type: ignore[arg-type]
            for step in self.options.law.steps
            if step.is_foreign
        ]
        return [f"{code.program.outputs} {code.tape.nodes} {code.stores}" for code in rules]

    @cached_property
    def blocks(self) -> NamedBlocks:
        """All blocks."""
        options = self.options
        rules = step_rules(options.method, options.implicit, options.implicit_springs)
        blocks: NamedBlocks = {
            rule.__name__: (
                self._per_joint(partial(step_blocks.rule_block, rule=rule)),
                {"u": "v"},
            )
            for rule in rules
        }
        blocks["start"] = self._per_joint(step_blocks.start_block), {}
        force = options.force
        if isinstance(self.system, System):
            blocks |= constraint_blocks.closed_chain_blocks(
                self.system, self.manifold, force, options.project, options.implicit
            )
        elif options.contacts is None:
            dynamics = "added_inertia_dynamics" if options.implicit else "forward_dynamics"
            blocks["dynamics"] = step_blocks.quantity_block(self.robot, dynamics), {"tau": force}
        if options.stops is not None:
            records = options.records_stops
            blocks |= constraint_blocks.stop_blocks(options.stops, self.robot, records)
        if options.contacts is not None:
            blocks |= contact_blocks.contact_blocks(options.contacts, options.implicit, force)
            if options.records_stops:
                blocks |= contact_blocks.stop_sum_blocks(options.contacts)
        if options.effort:
            blocks["limit_effort"] = self._per_joint(step_blocks.effort_block), {}
        acting = {
            "losses": options.losses,
            "springs": options.springs,
            "implicit_springs": options.implicit_springs,
        }
        if options.losses or options.springs:
            total = partial(step_blocks.force_block, implicit=options.implicit, **acting)
            blocks["total"] = self._per_joint(total), {}
        if options.implicit:
            stiffen = partial(step_blocks.implicit_block, method=options.method, **acting)
            blocks["stiffen"] = self._per_joint(stiffen), {}
        return blocks | self.law_blocks

    @cached_property
    def law_blocks(self) -> NamedBlocks:
        """The blocks of the control law."""
        options, blocks = self.options, {}
        for i, step in enumerate(options.law.steps):
            code, names = self._law_step(step)
            for j in range(options.half_steps if options.law.is_timed(step) else 1):
                blocks[f"law{i}.{j}"] = (
                    code,
                    {
                        argument: law_place(name, j if name in options.law.reference_places else 0)
                        for argument, name in names.items()
                    },
                )
        return blocks

    def _law_step(self, step: Step) -> tuple[Code, dict[str, str]]:
        """The code of one step of the law, and {its argument or result: name in the law}."""
        names = step.places
        if not isinstance(step.operation, str):
            make = partial(step_blocks.rule_block, rule=step.operation, sizes=step.sizes)
            # rules of users may couple the joints
            couples = step.sizes or step.is_foreign
            code = make(self.manifold) if couples else self._per_joint(make)
        elif isinstance(self.system, System) and step.operation in CHAIN_FUNCTIONS:
            code = getattr(self.system, CHAIN_FUNCTIONS[step.operation]).source.code
            names = {"u" if name == "a" else name: place for name, place in names.items()}
        else:
            name = step.operation.removeprefix("free_")
            code = step_blocks.quantity_block(self.robot, name, frame_names(step.frame))
        arguments = (*code.program.inputs, *code.program.outputs)
        return code, {arg.name: names.get(arg.name, arg.name) for arg in arguments}

    def _per_joint(self, make_block: Callable[[Manifold], StraightCode]) -> Code:
        """A block that treats each joint by itself: straight-line code, or loops over the joints
        of a large robot."""
        loops = len(self.robot.joints) > UNROLL_LIMIT and self.robot.embedding is None
        if loops:
            return step_blocks.per_joint_block(self.manifold, make_block)
        return make_block(self.manifold)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The blocks of one step, in order."""
        options = self.options
        head = [constraint_blocks.STOP_APPROACH] * options.records_stops
        head += ["stiffen"] if options.implicit else []
        order = head.copy()
        for item in step_sequence(options.method, options.implicit, options.implicit_springs):
            if callable(item):
                order.append(item.__name__)
            elif isinstance(item, int):
                order += self._evaluation(item, order == head)
            elif item == CONTACTS and options.contacts is not None:
                order += [*contact_blocks.lookup_order(options.contacts), CONTACTS]
                order += [contact_blocks.STOP_TOTAL] * options.records_stops
        order += ["stops"] if options.stops is not None else []
        order += constraint_blocks.PROJECTION if options.project else []
        with_maxima = (
            (block, "max_conditioning") if self._reports_conditioning(block) else (block,)
            for block in order
        )
        return tuple(name for names in with_maxima for name in names)

    def _evaluation(self, j: int, first: bool) -> list[str]:
        """The blocks of torque and acceleration at half step j."""
        options, law = self.options, self.options.law
        last = min(j, options.half_steps - 1)
        torque = [f"law{i}.{last if law.is_timed(step) else 0}" for i, step in enumerate(law.steps)]
        names = [*torque, "limit_effort"] if first or not options.hold else []
        return [name for name in (*names, "total", "dynamics") if name in self.blocks]

    def _reports_conditioning(self, block: str) -> bool:
        """Whether a block has the result `ill_conditioning`, whose maximum is stored."""
        return block in self.blocks and any(
            arg.name == "ill_conditioning" for arg in self.blocks[block][0].program.outputs
        )

    @cached_property
    def rollout(self) -> Rollout:
        """The loop over steps that the back ends emit."""
        options = self.options
        only = {
            f"law{i}": step.condition for i, step in enumerate(options.law.steps) if step.condition
        }
        conditions = {
            name: law_place(only[name.split(".")[0]])
            for name in self.blocks
            if name.split(".")[0] in only
        }
        if options.contacts is not None:
            conditions |= contact_blocks.contact_conditions(options.contacts)
        return Rollout(
            BlockFrame(self.blocks),
            self.order,
            options.packed_once,
            options.packed_per_step,
            options.sampled,
            tuple(self.loops.values()),
            conditions,
            (
                "start",
                *[constraint_blocks.STOP_START] * options.records_stops,
                *[contact_blocks.START] * (options.contacts is not None),
            ),
        )

    @property
    def loops(self) -> dict[str, Repeat]:
        """The loops inside a step, by name."""
        options = self.options
        loops = [constraint_blocks.STOP_LOOP] * (options.stops is not None)
        if options.contacts is not None:
            loops.append(contact_blocks.contact_loop(options.contacts))
        return {loop.name: loop for loop in loops}

    @property
    def flops(self) -> int:
        """The operations of one step; a sine or cosine counts as forty."""
        counts = {name: code.count for name, (code, _) in self.blocks.items()}
        names = [
            part
            for name in self.order
            for part in (self.loops[name].blocks if name in self.loops else (name,))
        ]
        return sum(counts[name].flops + 40 * counts[name].trig for name in names)
