"""The simulation step of a live page. All that the user can change is an input.

    tau = motors (kp (q_ref - q) + gravity_share g(q)) - motor_damping v
    F   = pull_stiffness (pull_target - x) - pull_damping x'
    M a = tau + (1 - gravity_scale) g(q) + J* F - losses v - s(q) - C v - g(q)

q_ref = home exp(aim); s(q) are the joint springs; x = p(k) + R(k) pull_point is the point of body k
that the user pulls with a spring. The damping of motors and joints is implicit where it is stiff.

On a ground the step is that of `pp.simulate(..., contacts=ground)` (`contact_blocks.py`): contacts
change velocities abruptly, and are solved in a loop.

If joints have limits and there is no ground, there is a second step, `blocked`: the same step, then
the impact of `simulation/forces/joint_limit_impact.py`. On a ground, stops are solved together with
the contacts if the page is made with limits="block".

If a link carries a payload, the robot's free parameters
are base_parameters + payload_mass unit_payload, where `unit_payload` is the change by 1 kg.

With a policy (`policy_page.py`), `act` computes the aim of the motors from the state.

The blocks are those of a rollout (`rollout_program.py`), and the law is `pp.PD` with gravity.
`live_page.py` compiles them to WebAssembly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from psiphi._util.array_types import AnyArray, AnyScalar
from psiphi._util.errors import StateError
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.lane_blocks import GRID_POINTS
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.scalar_arrays import stack_entries
from psiphi.model.spatial.screws import cross
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout import contact_blocks, step_blocks
from psiphi.simulation.compiled_rollout.constraint_blocks import STOP_LOOP, select_outputs
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Law, Step, Values
from psiphi.simulation.control.joint_controllers import feedback_with_gravity, mask_torque
from psiphi.simulation.forces.damping_and_friction import is_stiff_loss
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.forces.joint_springs import JointSprings, is_stiff_spring, read_springs
from psiphi.simulation.plant import Plant


def scaled_gravity(m: Manifold, g: AnyScalar, gravity_share: AnyScalar) -> Values:
    """share g(q), the gravity torque of the motors."""
    return {"g": gravity_share * g}


LAW = (Step("gravity", {"tau": "g"}), Step(scaled_gravity), Step(feedback_with_gravity))
PICTURE = "picture."  # of the places of heights that a picture needs
ACTIONS = ("env.action", "env.previous_action")  # of an environment, the last one first
LAW_NUMBERS = ("kp", "kd", "gravity_share", "q_ref", "v_ref")
# between law and losses
PULL_BLOCKS = ("link_velocities", "pull", "wrench_torques", "gravity_torque", "applied_torque")


def interactive_program(
    system: Robot | System,
    method: str,
    stops: JointStops | None = None,
    ground: GroundContact | None = None,
    policy: PagePolicy | None = None,
) -> InteractiveProgram:
    """The blocks of a step. With `stops`, also those of a step that stops at joint limits; with
    `ground`, those of the contacts of a robot with it."""
    if isinstance(system, System) and system.robot.freed is not None:
        raise StateError(
            f"{system.name} has free parameters, which a live page of a closed chain does not "
            "support",
            "build the closed chain from robot.baked(parameters)",
        )
    if len(system.joints) > UNROLL_LIMIT:
        raise StateError(
            f"{system.name} has {len(system.joints)} bodies; live pages support up to "
            f"{UNROLL_LIMIT}",
            "write a page of a motion: pp.simulate(...).html(path)",
        )
    closed = isinstance(system, System)
    springs = read_springs(Plant(system), True)
    law = Law(LAW if closed else (*LAW, Step(mask_torque)), ())
    options = RolloutOptions(
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
        contacts=ground,
    )
    return InteractiveProgram(system, options, springs, policy)


@dataclass(frozen=True, eq=False)
class PagePolicy:
    """A policy that moves the robot of a page: aim = scale action for the joints with motors.

    `code` computes the action from the state, the command and the last two actions; it acts for
    `every` steps, from `delay` steps later on. `commands` are names, ranges and first values.
    """

    RESULT: ClassVar[str] = "policy.action"
    code: StraightCode
    posture: np.ndarray
    motors: np.ndarray
    scale: np.ndarray
    every: int
    delay: int
    commands: tuple[tuple[str, float, float, float], ...]
    kp: np.ndarray
    kd: np.ndarray

    def blocks(self, nv: int) -> NamedBlocks:
        """The policy, and the block that makes its action the aim."""
        sizes = dict.fromkeys((self.RESULT, *ACTIONS), len(self.motors))

        def rule(**places: np.ndarray) -> Values:
            action, aim = places[self.RESULT], np.zeros(nv, dtype=object)
            aim[self.motors] = action * self.scale
            last, before = ACTIONS
            return {last: 1.0 * action, before: 1.0 * places[last], "aim": aim}

        return {
            "policy": (self.code, {}),
            "policy_action": (trace("policy_action", sizes, rule), {}),
        }


@dataclass(frozen=True, eq=False)
class InteractiveProgram(RolloutProgram):
    """The program of a rollout with user inputs, and with the joint springs as constants."""

    springs: JointSprings
    policy: PagePolicy | None = None

    @property
    def frames(self) -> tuple[str, ...]:
        """The names of all link frames."""
        return tuple(body.name for body in self.robot.bodies)

    @cached_property
    def blocks(self) -> NamedBlocks:
        m, robot, n = self.manifold, self.robot, len(self.robot.bodies)
        known = super().blocks
        bodies = {
            "R": 9 * n,
            "p": 3 * n,
            "V": 6 * n,
            "pulled": n,
            "pull_stiffness": n,
            "pull_damping": n,
            "pull_point": 3,
            "pull_target": 3,
        }
        sizes = {"h": 1, "damping": m.nv, "mobility": m.nv}
        known |= {
            "total_damping": (
                trace(
                    "total_damping",
                    {"losses": m.nv, "motor_damping": m.nv},
                    lambda losses, motor_damping: {"damping": losses + motor_damping},
                ),
                {},
            ),
            "implicit_masks": (trace("implicit_masks", sizes, self._implicit_masks), {}),
            "springs": (trace("springs", {}, lambda: self.springs.active), self._spring_inputs),
            "reference": (trace("reference", {"home": m.nq, "aim": m.nv}, self._reference), {}),
            "poses": (step_blocks.quantity_block(robot, "link_poses"), {}),
            "link_velocities": (
                step_blocks.quantity_block(robot, "frame_velocities", self.frames),
                {"V": "link_velocities"},
            ),
            "pull": (trace("pull", bodies, partial(pull_wrenches, n)), {"V": "link_velocities"}),
            "wrench_torques": (
                step_blocks.quantity_block(robot, "wrench_torques", self.frames),
                {"tau": "pull_torque"},
            ),
            "gravity_torque": (step_blocks.quantity_block(robot, "gravity"), {"tau": "g"}),
            "applied_torque": (
                trace(
                    "applied_torque",
                    {"tau": m.nv, "g": m.nv, "pull_torque": m.nv, "gravity_scale": 1},
                    applied_torque,
                ),
                {},
            ),
            "total": (known["total"][0], {"tau": "applied_torque"} | self._spring_inputs),
            "stiffen": (known["stiffen"][0], self._spring_inputs),
            "motor": (
                trace("motor", {"tau": m.nv, "motor_damping": m.nv, "v": m.nv}, motor_torque),
                {},
            ),
            "kinetic": (step_blocks.quantity_block(robot, "kinetic_energy"), {"E": "kinetic"}),
            "potential": (
                step_blocks.quantity_block(robot, "potential_energy"),
                {"E": "potential"},
            ),
            "energies": (
                trace(
                    "energies",
                    {"kinetic": 1, "potential": 1, "gravity_scale": 1, "q": m.nq},
                    self._energies,
                ),
                {},
            ),
        }
        if robot.freed is not None:
            n = robot.freed.size
            known["payload"] = (
                trace(
                    "payload",
                    {"base_parameters": n, "unit_payload": n, "payload_mass": 1},
                    loaded_parameters,
                ),
                {},
            )
        if self.options.contacts is not None:
            known |= self._ground_blocks(self.options.contacts)
        if self.policy is not None:
            known |= self.policy.blocks(m.nv)
        if isinstance(self.system, System) and self.system.contacts:
            known["applied_force"] = (
                step_blocks.force_block(m, ("damping",), False, self.options.springs),
                {"tau": "applied_torque"} | self._spring_inputs,
            )
            known["forces"] = (
                select_outputs(self.system.redundant_dynamics_function, "forces"),
                {"tau": "force"},
            )
        return known

    def _ground_blocks(self, ground: GroundContact) -> NamedBlocks:
        """The contact points and the forces on them, for a picture; zero before the first step."""
        n = len(self.robot.bodies)
        sizes = {"impulse": ground.space.impulse_size, "mode": ground.count}
        places: dict[str, str] = dict(zip(sizes, contact_blocks.RECORDED, strict=True))
        places["place"] = contact_blocks.contact_place("place")
        bodies, heights = {"R": 9 * n, "p": 3 * n}, {}
        if ground.lookup is not None:
            heights = {"cells": ground.lookup.size}
            places |= {name: PICTURE + name for name in ("cells", GRID_POINTS)}
        rules = {
            "no_touch": ({}, lambda: {name: np.zeros(size) for name, size in sizes.items()}),
            "touching_points": (bodies | heights, partial(touching_points, self.robot, ground)),
            "ground_forces": (
                {"impulse": sizes["impulse"], "place": ground.space.place_size, "h": 1},
                partial(ground_forces, ground),
            ),
        }
        if ground.lookup is not None:
            rules["picture_points"] = bodies, partial(picture_points, self.robot, ground)
        found: NamedBlocks = {name: (trace(name, *rule), places) for name, rule in rules.items()}
        if ground.lookup is not None:
            code, at = contact_blocks.lookup_block(ground.lookup)
            found["picture_lookup"] = code, at | places
        return found

    @property
    def _spring_inputs(self) -> dict[str, str]:
        """The inputs of joint springs: name in a block -> name of the input."""
        return {name: f"joint.{name}" for name in self.options.springs}

    def _implicit_masks(self, h: AnyArray, damping: AnyArray, mobility: AnyArray) -> Values:
        """Masks of the losses and springs that are so stiff that the step must be implicit."""
        method, slope = self.options.method, self.springs.max_slope
        masks = {"implicit_losses": is_stiff_loss(method, h, damping, mobility)}
        if self.options.implicit_springs:
            masks["implicit_springs"] = is_stiff_spring(method, h, slope, mobility)
        return masks

    def _energies(
        self, kinetic: AnyScalar, potential: AnyScalar, gravity_scale: AnyScalar, q: np.ndarray
    ) -> Values:
        lifted = gravity_scale * potential + self.springs.energy(self.manifold, q)
        return {
            "energy": kinetic + lifted,
            "kinetic_energy": 1.0 * kinetic,
            "potential_energy": lifted,
        }

    def _reference(self, home: np.ndarray, aim: np.ndarray) -> Values:
        """q_ref = home exp(aim)."""
        m = self.manifold
        return {"law.q_ref": m.unit(m.exp(home, aim))}

    @cached_property
    def order(self) -> tuple[str, ...]:
        return ("total_damping", "implicit_masks", *super().order)

    def _evaluation(self, j: int, first: bool) -> list[str]:
        names = super()._evaluation(j, first)
        law = [name for name in names if name.startswith("law")]
        return [*law, "poses", *PULL_BLOCKS, *names[len(law) :]]

    @property
    def picture_blocks(self) -> tuple[str, ...]:
        """The blocks that a picture needs: torques, poses, energies, contact forces."""
        law = [f"law{i}.0" for i in range(len(self.options.law.steps))]
        names = (
            *law,
            "poses",
            *PULL_BLOCKS,
            *("applied_force", "forces"),  # of a closed chain
            *("picture_points", "picture_lookup", "touching_points", "ground_forces"),
            *("motor", "kinetic", "potential", "energies"),
        )
        return tuple(name for name in names if name in self.blocks)

    @cached_property
    def frame(self) -> BlockFrame:
        return BlockFrame(self.blocks)

    @property
    def entries(self) -> dict[str, tuple[str, ...]]:
        """The functions that a page calls: name -> blocks in order."""
        set_up = ("reference", *(["payload"] if "payload" in self.blocks else []))
        springs = ["springs"] if self.options.springs else []
        ground = [contact_blocks.START, "no_touch"] if self.options.contacts is not None else []
        begin = ("start", *ground, *springs, *set_up)
        called = {"begin": begin, "aim": set_up, "look": self.picture_blocks}
        free = tuple(name for name in self.order if name != STOP_LOOP.name)
        if self.policy is not None:
            called["act"] = ("policy", "policy_action")
        return (
            called
            | {"step": free}
            | ({} if self.options.stops is None else {"blocked": self.order})
        )

    @property
    def conditions(self) -> Mapping[str, str]:
        """{block: value}: the blocks that run only if the value is not 0."""
        contacts = self.options.contacts
        return {} if contacts is None else contact_blocks.contact_conditions(contacts)


def pull_wrenches(
    n: int,
    R: AnyArray,
    p: AnyArray,
    V: AnyArray,
    pulled: AnyArray,
    pull_stiffness: AnyArray,
    pull_damping: AnyArray,
    pull_point: AnyArray,
    pull_target: AnyArray,
) -> Values:
    """The user's wrenches [x F; F] on all links; `pulled` is 1 for pulled links, else 0."""
    wrenches, point, force = [], np.zeros(3), np.zeros(3)
    for k in range(n):
        arm = R[9 * k : 9 * k + 9].reshape(3, 3) @ pull_point
        x, (w, u) = p[3 * k : 3 * k + 3] + arm, V[6 * k : 6 * k + 6].reshape(2, 3)
        velocity = np.add(u, cross(w, arm))
        F = pulled[k] * (pull_stiffness[k] * (pull_target - x) - pull_damping[k] * velocity)
        wrenches += [cross(arm, F), F]
        point, force = point + pulled[k] * x, force + F
    return {"f_ext": np.concatenate(wrenches), "point": point, "pull": force}


def contact_poses(robot: Robot, ground: GroundContact, R: AnyArray, p: AnyArray) -> np.ndarray:
    """The 4 x 4 poses of the frames of contacts, from the rotations and origins of the bodies."""
    poses = []
    for name in ground.frames:
        frame = robot.frame(name)
        rotation = R[9 * frame.body : 9 * frame.body + 9].reshape(3, 3)
        origin = p[3 * frame.body : 3 * frame.body + 3] + rotation @ frame.pose.translation
        turned = rotation @ frame.pose.rotation
        poses += [x for i in range(3) for x in (*turned[i], origin[i])] + [0.0, 0.0, 0.0, 1.0]
    return stack_entries(poses)


def picture_points(robot: Robot, ground: GroundContact, R: AnyArray, p: AnyArray) -> Values:
    """Where the contacts are on the grid of a ground with heights."""
    return {GRID_POINTS: ground.grid_points(contact_poses(robot, ground, R, p))}


def touching_points(
    robot: Robot,
    ground: GroundContact,
    R: AnyArray,
    p: AnyArray,
    cells: np.ndarray | None = None,
) -> Values:
    """The point of each contact where its force acts, in world axes."""
    poses = contact_poses(robot, ground, R, p)
    places, _ = ground.geometry(poses, cells)
    points: list[AnyScalar] = []
    for place, frames in zip(places, ground.space.members, strict=True):
        k = 16 * frames[0]
        points += [poses[k + 4 * i + 3] + x for i, x in enumerate(place.levers[0])]
    return {"touching_points": points}


def ground_forces(ground: GroundContact, impulse: AnyArray, place: AnyArray, h: AnyArray) -> Values:
    """The mean force of each contact in the step, in world axes; of a pair, on its first link."""
    forces: list[AnyScalar] = []
    for i, at in enumerate(ground.space.unpack(np.asarray(place)).contacts):
        own, axes = impulse[3 * i : 3 * i + 3], at.axes or ground.ground.axes
        forces += [
            sum(x * axis[k] for x, axis in zip(own, axes, strict=True)) / h[0] for k in range(3)
        ]
    return {"ground_forces": forces}


def applied_torque(
    tau: AnyScalar, g: AnyScalar, pull_torque: AnyScalar, gravity_scale: AnyScalar
) -> Values:
    """tau + (1 - gravity_scale) g(q) + J* F."""
    return {"applied_torque": tau + (1.0 - gravity_scale) * g + pull_torque}


def motor_torque(tau: AnyScalar, motor_damping: AnyScalar, v: AnyScalar) -> Values:
    """The torque of the motors with their damping."""
    return {"torque": tau - motor_damping * v}


def loaded_parameters(
    base_parameters: AnyScalar, unit_payload: AnyScalar, payload_mass: AnyScalar
) -> Values:
    """The parameters with a payload: mass, m c and inertia are linear in the payload's mass."""
    return {PARAMETERS: base_parameters + payload_mass * unit_payload}
