"""The blocks of a compiled step: tapes whose arguments are named places of one frame.

Rules of integrators and laws, effort limits and losses are traced on arrays of tape expressions.
Dynamics and other quantities come from the catalogue. Places in CONFIGURATION_PLACES have size nq,
those in SCALAR_PLACES size 1, all others nv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from psiphi.compiler.ir.block_frame import Code, PerJointBlock
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.model.manifold import Manifold
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import OTHERS, LawRule, Values, rule_places
from psiphi.simulation.control.torque_input import limit_torque
from psiphi.simulation.forces.damping_and_friction import net_torque_with_loops
from psiphi.simulation.forces.embedded_loop_forces import LOOP_SWITCHES
from psiphi.simulation.integration.integrators import GAMMA, implicit_force, implicit_terms

SCALAR_PLACES = ("h", "floor", *LOOP_SWITCHES)
CONFIGURATION_PLACES = ("Q", "K", "P", "q", "q_ref", "posture")


def trace(name: str, sizes: dict[str, int], rule: Callable[..., Values]) -> StraightCode:
    """The tape of `rule(**inputs)`: arrays of tape expressions in, named arrays of them out."""
    return trace_rule(name, [_argument(key, size) for key, size in sizes.items()], rule, _argument)


def rule_block(m: Manifold, rule: LawRule, sizes: dict[str, int] | None = None) -> StraightCode:
    """A rule of an integrator or a law."""
    name = getattr(rule, "__name__", type(rule).__name__)
    return trace(name, sizes or place_sizes(m, rule_places(rule)), partial(rule, m))


def start_block(m: Manifold) -> StraightCode:
    """(Q, V) = (q, v): the state of the step is that of its first stage."""
    return trace("start", place_sizes(m, "qv"), lambda q, v: {"Q": q, "V": v})


def effort_block(m: Manifold) -> StraightCode:
    """The torque within the effort limits."""
    sizes = place_sizes(m, ("tau", "effort"))
    return trace("limit_effort", sizes, lambda tau, effort: {"tau": limit_torque(tau, effort)})


def force_block(
    m: Manifold,
    losses: tuple[str, ...],
    implicit: bool,
    springs: tuple[str, ...] = (),
    implicit_springs: bool = False,
) -> StraightCode:
    """The torque less losses and springs, and less the force of earlier stages if some of them are
    implicit."""

    def force(
        v: np.ndarray,
        stage_force: np.ndarray | None = None,
        F: np.ndarray | None = None,
        q: np.ndarray | None = None,
        **places: np.ndarray,
    ) -> Values:
        net = net_torque_with_loops(m, q=q, v=v, **places)
        return {"force": net if stage_force is None else net - implicit_force(stage_force, v, F)}

    more = (
        *["stage_force"] * implicit,
        *["F"] * implicit_springs,
        *["q"] * bool(springs or set(losses) & set(LOOP_SWITCHES)),
    )
    return trace("total", place_sizes(m, ("tau", "v", *losses, *springs, *more)), force)


def implicit_block(
    m: Manifold,
    method: str,
    losses: tuple[str, ...],
    springs: tuple[str, ...] = (),
    implicit_springs: bool = False,
) -> StraightCode:
    """h B and h S at the start of the step."""
    needs_q = implicit_springs or set(losses) & set(LOOP_SWITCHES)
    needs_v = losses or "loop_springs" in springs
    names = (
        "h",
        *["q"] * bool(needs_q),
        *["v"] * bool(needs_v),
        *(("implicit_losses", *losses) if losses else ()),
        *(("implicit_springs", *springs) if implicit_springs else ()),
    )
    return trace("stiffen", place_sizes(m, names), partial(implicit_terms, GAMMA[method], m))


def per_joint_block(m: Manifold, make_block: Callable[[Manifold], StraightCode]) -> PerJointBlock:
    """A block that treats each joint by itself, as a loop over the joints of each type."""
    kinds = tuple((make_block(joint), places) for joint, places in m.by_kind)
    first = kinds[0][0].program

    def of_robot(arguments: tuple[Argument, ...]) -> tuple[Argument, ...]:
        sizes = place_sizes(m, (arg.name for arg in arguments))
        return tuple(_argument(name, size) for name, size in sizes.items())

    program = Program(first.name, of_robot(first.inputs), of_robot(first.outputs), ())
    return PerJointBlock(program, kinds)


def quantity_block(robot: Robot, name: str, frames: tuple[str, ...] = ()) -> Code:
    """A quantity of the catalogue."""
    return robot.unbound_function(name, frames).source.code


def place_sizes(m: Manifold, names: Iterable[str]) -> dict[str, int]:
    """{place: size}."""
    return {name: _place_size(m, name.removeprefix(OTHERS)) for name in names}


def _place_size(m: Manifold, place: str) -> int:
    return 1 if place in SCALAR_PLACES else m.nq if place in CONFIGURATION_PLACES else m.nv


def _argument(name: str, size: int) -> Argument:
    own = name.removeprefix(OTHERS)
    per_joint = "" if own in SCALAR_PLACES else "q" if own in CONFIGURATION_PLACES else "v"
    return Argument(name, (size,), per_joint)
