"""A step with everything a hand can change as an input: targets, gains, gravity, damping, and a spring that pulls at a point.

    tau    = motors (kp (q_ref - q) + share g(q)) - brake v,  q_ref = home exp(aim)
    F      = stiffness (hand - x) - slowing x',              x = p(k) + R(k) grip: the point of the body that is held
    M a    = tau + (1 - weight) g(q) + J* F - losses v - s(q) - C v - g,  s the joints' springs, where they have any

Where joints end at their limits there is a second step, `blocked`: the same, and then the impact of `simulation/forces/joint_limit_impact.py`.
Of a robot some of whose numbers are free these are inputs, too: its own, and `burden` times those of a unit load.

`weight` is how much of its gravity the system feels (g is linear in it), `share` how much of g the motors carry, `brake` their
damping (kd), which is taken as losses are: implicitly where it is stiff. The blocks are those of a rollout (`rollout_program.py`), the
law that of `pp.PD` with gravity; a live page runs them (`apps/viewer/live/live_page.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.spatial.screws import cross
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout import step_blocks
from psiphi.simulation.compiled_rollout.constraint_blocks import STOP_LOOP, select_outputs
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Law, Step, Values
from psiphi.simulation.control.joint_controllers import feedback_with_gravity, mask_torque
from psiphi.simulation.forces.damping_and_friction import is_stiff_loss
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.forces.joint_springs import JointSprings, is_stiff_spring, read_springs
from psiphi.simulation.plant import Plant


def scaled_gravity(m, g, share) -> Values:
    return {"g": share * g}


LAW = (Step("gravity", {"tau": "g"}), Step(scaled_gravity), Step(feedback_with_gravity))
LAW_NUMBERS = ("kp", "kd", "share", "q_ref", "v_ref")
HAND_BLOCKS = (
    "rates",
    "pull",
    "wrench_torques",
    "weigh",
    "load",
)  # after the law, before the losses


def interactive_program(
    system: Robot | System, method: str, stops: JointStops | None = None
) -> InteractiveProgram:
    """The blocks of such a step; with `stops` also of one that ends in them (`limits="block"`)."""
    if isinstance(system, System) and system.robot.freed is not None:
        cause = (
            f"numbers of {system.name} are inputs, and a closed chain in a live page keeps its own"
        )
        raise StateError(cause, "write a page of one whose arms are baked: light.baked(parameters)")
    if len(system.joints) > UNROLL_LIMIT:
        cause = f"{system.name} has {len(system.joints)} bodies, and a live page is written for up to {UNROLL_LIMIT}"
        raise StateError(cause, "write a page of a motion: pp.simulate(...).html(path)")
    closed = isinstance(system, System)
    springs = read_springs(Plant(system), True)
    law = Law(LAW if closed else (*LAW, Step(mask_torque)), ())
    recipe = RolloutOptions(
        method,
        law,
        time_varying=False,
        hold=False,
        law_numbers=LAW_NUMBERS if closed else (*LAW_NUMBERS, "motors"),
        losses=("damping",),
        implicit=True,
        stops=stops,
        closure=system.key if closed else "",
        project=closed,
        springs=tuple(springs.active),
        implicit_springs=bool(springs.active),
    )
    return InteractiveProgram(system, recipe, springs)


@dataclass(frozen=True, eq=False)
class InteractiveProgram(RolloutProgram):
    """The machine of a rollout, with a hand at it, and with the joints' springs as they are."""

    springs: JointSprings

    @property
    def frames(self) -> tuple[str, ...]:
        """The link frames by their names."""
        return tuple(body.name for body in self.robot.bodies)

    @cached_property
    def blocks(self) -> NamedBlocks:
        m, robot, n = self.manifold, self.robot, len(self.robot.bodies)
        known = super().blocks
        bodies = {
            "R": 9 * n,
            "p": 3 * n,
            "V": 6 * n,
            "held": n,
            "stiffness": n,
            "slowing": n,
            "grip": 3,
            "hand": 3,
        }
        sizes = {"h": 1, "damping": m.nv, "mobility": m.nv}
        known |= {
            "slow": (
                trace(
                    "slow",
                    {"losses": m.nv, "brake": m.nv},
                    lambda losses, brake: {"damping": losses + brake},
                ),
                {},
            ),
            "brace": (trace("brace", sizes, self._implicit_masks), {}),
            "sprung": (trace("sprung", {}, lambda: self.springs.active), self._spring_inputs),
            "aimed": (trace("aimed", {"home": m.nq, "aim": m.nv}, self._reference), {}),
            "poses": (step_blocks.quantity_block(robot, "link_poses"), {}),
            "rates": (
                step_blocks.quantity_block(robot, "frame_velocities", self.frames),
                {"V": "rates"},
            ),
            "pull": (trace("pull", bodies, partial(hand_wrenches, n)), {"V": "rates"}),
            "wrench_torques": (
                step_blocks.quantity_block(robot, "wrench_torques", self.frames),
                {"tau": "pulled"},
            ),
            "weigh": (step_blocks.quantity_block(robot, "gravity"), {"tau": "g"}),
            "load": (
                trace(
                    "load", {"tau": m.nv, "g": m.nv, "pulled": m.nv, "weight": 1}, applied_torque
                ),
                {},
            ),
            "total": (known["total"][0], {"tau": "load"} | self._spring_inputs),
            "stiffen": (known["stiffen"][0], self._spring_inputs),
            "motor": (trace("motor", {"tau": m.nv, "brake": m.nv, "v": m.nv}, motor_torque), {}),
            "kinetic": (step_blocks.quantity_block(robot, "kinetic_energy"), {"E": "kinetic"}),
            "potential": (
                step_blocks.quantity_block(robot, "potential_energy"),
                {"E": "potential"},
            ),
            "energies": (
                trace(
                    "energies",
                    {"kinetic": 1, "potential": 1, "weight": 1, "q": m.nq},
                    self._energies,
                ),
                {},
            ),
        }
        if robot.freed is not None:
            n = robot.freed.size
            known["laden"] = (
                trace("laden", {"own": n, "unit": n, "burden": 1}, loaded_parameters),
                {},
            )
        if isinstance(self.system, System) and self.system.contacts:
            known["acting"] = (
                step_blocks.force_block(m, ("damping",), False, self.options.springs),
                {"tau": "load"} | self._spring_inputs,
            )
            known["forces"] = (
                select_outputs(self.system.redundant_dynamics_function, "forces"),
                {"tau": "force"},
            )
        return known

    @property
    def _spring_inputs(self) -> dict[str, str]:
        """Where the numbers of the springs stand: `stiffness` is the hand's."""
        return {name: f"joint.{name}" for name in self.options.springs}

    def _implicit_masks(self, h: Any, damping: Any, mobility: Any) -> Values:
        stiff = {"implicit_losses": is_stiff_loss(self.options.method, h, damping, mobility)}
        return stiff | (
            {
                "implicit_springs": is_stiff_spring(
                    self.options.method, h, self.springs.max_slope, mobility
                )
            }
            if self.options.implicit_springs
            else {}
        )

    def _energies(self, kinetic: Any, potential: Any, weight: Any, q: Any) -> Values:
        lifted = weight * potential + self.springs.energy(self.manifold, q)
        return {
            "energy": kinetic + lifted,
            "kinetic_energy": 1.0 * kinetic,
            "potential_energy": lifted,
        }

    def _reference(self, home: Any, aim: Any) -> Values:
        m = self.manifold
        return {"law.q_ref": m.unit(m.exp(home, aim))}

    @cached_property
    def order(self) -> tuple[str, ...]:
        return ("slow", "brace", *super().order)

    def _evaluation(self, j: int, first: bool) -> list[str]:
        *law, total, dynamics = super()._evaluation(j, first)
        return [*law, "poses", *HAND_BLOCKS, total, dynamics]

    @property
    def picture_blocks(self) -> tuple[str, ...]:
        """What a picture of the state needs: torques, poses, energies, contact forces."""
        law = [f"law{i}.0" for i in range(len(self.options.law.steps))]
        forces = [name for name in ("acting", "forces") if "forces" in self.blocks]
        return (*law, "poses", *HAND_BLOCKS, *forces, "motor", "kinetic", "potential", "energies")

    @cached_property
    def frame(self) -> BlockFrame:
        return BlockFrame(self.blocks)

    @property
    def entries(self) -> dict[str, tuple[str, ...]]:
        """What a page calls, by name: blocks in order."""
        set_up = ("aimed", *(["laden"] if "laden" in self.blocks else []))
        springs = ["sprung"] if self.options.springs else []
        called = {"begin": ("start", *springs, *set_up), "aim": set_up, "look": self.picture_blocks}
        free = tuple(name for name in self.order if name != STOP_LOOP.name)
        return (
            called
            | {"step": free}
            | ({} if self.options.stops is None else {"blocked": self.order})
        )

    @property
    def repeats(self) -> tuple[Repeat, ...]:
        return () if self.options.stops is None else (STOP_LOOP,)


def hand_wrenches(
    n: int, R: Any, p: Any, V: Any, held: Any, stiffness: Any, slowing: Any, grip: Any, hand: Any
) -> Values:
    """The wrenches [x F; F] on all links: of those that are held (1, others 0)."""
    wrenches, point, force = [], np.zeros(3), np.zeros(3)
    for k in range(n):
        arm = R[9 * k : 9 * k + 9].reshape(3, 3) @ grip
        x, (w, u) = p[3 * k : 3 * k + 3] + arm, V[6 * k : 6 * k + 6].reshape(2, 3)
        F = held[k] * (stiffness[k] * (hand - x) - slowing[k] * np.add(u, cross(w, arm)))
        wrenches += [cross(arm, F), F]
        point, force = point + held[k] * x, force + F
    return {"f_ext": np.concatenate(wrenches), "point": point, "pull": force}


def applied_torque(tau: Any, g: Any, pulled: Any, weight: Any) -> Values:
    return {"load": tau + (1.0 - weight) * g + pulled}


def motor_torque(tau: Any, brake: Any, v: Any) -> Values:
    return {"torque": tau - brake * v}


def loaded_parameters(own: Any, unit: Any, burden: Any) -> Values:
    """Mass and moments are sums over what there is: linear in the mass of a load whose shape stays."""
    return {PARAMETERS: own + burden * unit}
