"""The parts of a compiled step: straight-line tapes over named places of one frame.

Rules of integrators and laws, effort limits, losses and stops are traced on arrays of tape expressions; dynamics, gravity and
the like come from the catalogue. Places of size nq are named in CONFIGURATIONS, of one number in NUMBERS, all others have nv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from psiphi.compiler.ir.block_frame import Code, PerJointBlock
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.model.manifold import Manifold
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import LawRule, Values, reads
from psiphi.simulation.control.torque_input import within
from psiphi.simulation.forces.damping_and_friction import opposed
from psiphi.simulation.forces.embedded_loop_forces import SWITCHES
from psiphi.simulation.integration.integrators import GAMMA, hindrance, stiffened

NUMBERS = ("h", "floor", *SWITCHES)
CONFIGURATIONS = ("Q", "K", "P", "q", "q_ref", "posture")


def trace(name: str, sizes: dict[str, int], rule: Callable[..., Values]) -> StraightCode:
    """The tape of `rule(**inputs)`, arrays of tape expressions in, named arrays of them out."""
    return trace_rule(name, [_argument(key, size) for key, size in sizes.items()], rule, _argument)


def ruled(m: Manifold, rule: LawRule, sizes: dict[str, int] | None = None) -> StraightCode:
    """The tape of a rule of an integrator or a law."""
    name = getattr(rule, "__name__", type(rule).__name__)
    return trace(name, sizes or sizes_of(m, reads(rule)), partial(rule, m))


def start(m: Manifold) -> StraightCode:
    """The first stage's state becomes the step's."""
    return trace("start", sizes_of(m, "qv"), lambda q, v: {"Q": q, "V": v})


def cut(m: Manifold) -> StraightCode:
    """The torque within the effort limits."""
    return trace(
        "cut", sizes_of(m, ("tau", "effort")), lambda tau, effort: {"tau": within(tau, effort)}
    )


def total(
    m: Manifold,
    losses: tuple[str, ...],
    implicit: bool,
    springs: tuple[str, ...] = (),
    firm: bool = False,
) -> StraightCode:
    """The torque less the losses and springs there are, and less what the stages before ask for where some are implicit."""

    def force(v, push=None, F=None, q=None, **at) -> Values:
        left = opposed(m, q=q, v=v, **at)
        return {"force": left if push is None else left - hindrance(push, v, F)}

    more = (
        *["push"] * implicit,
        *["F"] * firm,
        *["q"] * bool(springs or set(losses) & set(SWITCHES)),
    )
    return trace("total", sizes_of(m, ("tau", "v", *losses, *springs, *more)), force)


def stiffen(
    m: Manifold,
    method: str,
    losses: tuple[str, ...],
    springs: tuple[str, ...] = (),
    firm: bool = False,
) -> StraightCode:
    """h B and h S of the step's begin."""
    where = ["q"] * bool(firm or set(losses) & set(SWITCHES)) + ["v"] * bool(
        losses or "stretch" in springs
    )
    names = (
        "h",
        *where,
        *(("stiff", *losses) if losses else ()),
        *(("firm", *springs) if firm else ()),
    )
    return trace("stiffen", sizes_of(m, names), partial(stiffened, GAMMA[method], m))


def spread(m: Manifold, part: Callable[[Manifold], StraightCode]) -> PerJointBlock:
    """A block that treats every joint by itself, in loops over the joints of a kind."""
    kinds = tuple((part(alone), places) for alone, places in m.kinds)
    first = kinds[0][0].program

    def whole(group: tuple[Argument, ...]) -> tuple[Argument, ...]:
        return tuple(
            _argument(name, n) for name, n in sizes_of(m, (arg.name for arg in group)).items()
        )

    return PerJointBlock(Program(first.name, whole(first.inputs), whole(first.outputs), ()), kinds)


def catalogued(robot: Robot, name: str, frames: tuple[str, ...] = ()) -> Code:
    """A quantity of the catalogue."""
    return robot.function(name, frames).source.code


def sizes_of(m: Manifold, names: Iterable[str]) -> dict[str, int]:
    return {
        name: 1 if name in NUMBERS else m.nq if name in CONFIGURATIONS else m.nv for name in names
    }


def _argument(name: str, size: int) -> Argument:
    return Argument(
        name, (size,), "" if name in NUMBERS else "q" if name in CONFIGURATIONS else "v"
    )
