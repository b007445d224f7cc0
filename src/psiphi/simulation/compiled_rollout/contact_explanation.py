"""`robot.explain(contacts=ground)`: how the contacts of a step are solved, and at which cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from psiphi._util.text import count_of
from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.tape.tape import Count
from psiphi.model.contact.ground import Ground
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_step import ground_contact
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutProgram
from psiphi.simulation.contact import ground_contact as contact_rules
from psiphi.simulation.contact.contact_solver import CYCLE, MAX_OPERATIONS, ContactSolver
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.torque_input import read_torque
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.integration.integrators import CONTACT_METHOD, CONTACTS
from psiphi.simulation.plant import Plant

WHEN = "in each step", f"in each {CYCLE}th iteration", "in the other iterations"
Line = tuple[str, str, str, str]  # block, flops, when it runs, what it does


def explain(robot: Robot, contacts: Ground) -> str:
    """The step of a robot on a ground as text: its equations, its contact points, the solver, and
    the operations of each part.

    >>> import psiphi as pp
    >>> text = explain(pp.load("anymal_c"), pp.Ground())
    >>> [line for line in text.splitlines() if line.startswith("contacts")]
    ['contacts   4 points on 4 links, 1 on each: 12 rows of J']
    """
    plant = Plant(robot)
    contact = ground_contact(plant, contacts, "ignore", "explain")
    program = _step_program(plant, contact)
    loop = program.loops[CONTACTS]
    blocks = program.blocks
    return "\n".join(
        [
            f"{robot.name} on {contacts}",
            "",
            *_equations(),
            "",
            f"contacts   {_points(contact)}",
            f"solver     {_solver(contact)}, at most {count_of(loop.limit, 'time')}",
            "",
            *_aligned(_lines(program, loop, blocks)),
            "",
            *_totals(program, loop, blocks),
        ]
    )


def _step_program(plant: Plant, contact: GroundContact) -> RolloutProgram:
    """The blocks of a step with a given torque and without losses."""
    losses = read_losses(plant, False, False, None, False)
    step = RolloutInput(read_torque(None, plant, (), 1), losses, None, None, contact)
    return RolloutProgram(plant.system, step.options(plant, CONTACT_METHOD, True))


def _equations() -> list[str]:
    """The equations at the head of the rules."""
    return (contact_rules.__doc__ or "").split("\n\n")[1].splitlines()


def _points(contact: GroundContact) -> str:
    """How many contacts there are on how many links. Those of one link share the six rows of its
    velocity: with more, the contacts depend on each other, and take more iterations."""
    each = Counter(k for frames in contact.space.members for k in frames)
    sizes = sorted(set(each.values()))
    span = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    counts = (len(contact.points), "point"), (len(contact.pairs), "pair")
    parts = " and ".join(count_of(n, noun) for n, noun in counts if n)
    links = count_of(len(each), "link")
    rows, rank = 3 * contact.count, sum(min(3 * n, 6) for n in each.values())
    dependent = f", at most {rank} of them independent" if rank < rows else ""
    return f"{parts} on {links}, {span} on each: {rows} rows of J{dependent}"


def _solver(contact: GroundContact) -> str:
    """The solver of the contacts, and why it is used."""
    solver = contact.solver
    if solver.uses_newton:
        unknowns = f"{solver.space.size} unknowns"
        if solver.by_joints:
            unknowns = (
                "each step is a sweep over the joints, M + J* K J = H phi (M + B K B*) phi* H*"
            )
        if not solver.uses_sweeps:
            law = "smoothed" if solver.law.smooth else "convex"
            return f"Newton's method for all contacts, because the law is {law}: {unknowns}"
        why = "contacts share a link" if solver.space.has_patches else "joints stop"
        return f"Newton's method for all contacts, and sweeps, because {why}: {unknowns}"
    if solver.space.has_patches:
        return (
            "sweeps over the contacts: contacts share a link, but a step of Newton's method would "
            f"take more than {MAX_OPERATIONS} products"
        )
    return "sweeps over the contacts, because no link has two of them"


def _rule(block: str) -> str:
    """What a block does: the first sentence of its rule."""
    name = block.rpartition(".")[2]
    rule = getattr(GroundContact, name, None) or getattr(ContactSolver, name, None)
    about = " ".join(((rule and rule.__doc__) or "").split())
    return about.partition(". ")[0].rstrip(".") or block


def _lines(program: RolloutProgram, loop: Repeat, blocks: NamedBlocks) -> Iterator[Line]:
    when = {loop.test: "in each step"} | dict.fromkeys(loop.body, "in each iteration")
    if len(loop.body) > 1:
        when = dict(zip((loop.test, *loop.body), WHEN, strict=True))
    acting = "if a contact acts"
    yield "part", "flops", "runs", ""
    for name in program.order:
        for part in loop.blocks if name == loop.name else (name,):
            runs = when.get(part, acting if name == loop.name else "in each step")
            about = _rule(part) if name == loop.name else ""
            yield part, str(_flops(blocks[part][0].count)), runs, about


def _totals(program: RolloutProgram, loop: Repeat, blocks: NamedBlocks) -> list[str]:
    flops = {name: _flops(code.count) for name, (code, _) in blocks.items()}
    others = sum(flops[name] for name in program.order if name != loop.name)
    once = sum(flops[name] for name in loop.blocks if name not in (loop.test, *loop.body))
    air = others + flops[loop.test]
    each = " or ".join(str(flops[name]) for name in loop.body)
    ground = f"on the ground: {air + once} flops, and {each} in each iteration"
    return [
        f"a step in the air: {air} flops; {ground}",
        "(a sine or cosine counts as 40)",
    ]


def _flops(count: Count) -> int:
    return count.flops + 40 * count.trig


def _aligned(lines: Iterator[Line]) -> list[str]:
    rows = list(lines)
    a, b, c = (max(len(row[i]) for row in rows) for i in range(3))
    return [f"{w:<{a}}  {x:>{b}}  {y:<{c}}  {z}".rstrip() for w, x, y, z in rows]
