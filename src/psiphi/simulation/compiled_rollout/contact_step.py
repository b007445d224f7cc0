"""One step of a robot on the ground, with what its contacts do: `robot.step(..., contacts=ground)`,
the samples of a trajectory, and steps with torques from Python."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import one_of
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.contact.contact_state import ContactState
from psiphi.model.contact.given_contacts import GivenContacts
from psiphi.model.contact.ground import Ground, check_ground
from psiphi.simulation.compiled_rollout.contact_blocks import contact_place
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_runner import rollout_kernel
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import check_above_ground, frame_poses
from psiphi.simulation.control.torque_input import read_torque
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import CONTACT_METHOD, METHODS
from psiphi.simulation.plant import Plant, parameters_of

DEFAULT_METHOD = "rk4"
GIVEN_IN = ("simulate", "step", "explain")  # what takes given contacts


def choose_method(method: str | None, ground: Ground | None, of: str = "simulate") -> str:
    """The integrator: the user's, or the one that suits the contacts."""
    if method is None:
        return DEFAULT_METHOD if ground is None else CONTACT_METHOD
    if not isinstance(method, str):
        return one_of("method", method, (*METHODS, CONTACT_METHOD))
    if (ground is not None) != (method == CONTACT_METHOD):
        given = f"{of}: method is {method!r}"
        if ground is None:
            cause = f"{given}, which is for contacts with a ground"
            raise StateError(cause, "give contacts=pp.Ground(...), or leave method out")
        cause = f"{given}, but contacts change velocities abruptly"
        raise StateError(cause, f'leave method out: contacts imply "{CONTACT_METHOD}"')
    return method


def ground_contact(
    plant: Plant, ground: Ground, limits: str, of: str, q: np.ndarray | None = None
) -> GroundContact:
    """The contacts of a simulation from q; an error for what does not go with them."""
    check_ground(f"{of}: contacts", ground)
    if isinstance(ground, GivenContacts) and of not in GIVEN_IN:
        raise StateError(
            f"{of}: given contacts are found by Python, step by step",
            "use pp.simulate, or robot.step in a loop",
        )
    if isinstance(ground, GivenContacts) and of == "simulate" and not ground.is_function:
        raise StateError(
            "simulate: given contacts are those of one configuration",
            "give pp.GivenContacts(find=...), a function q -> points, normals, gaps",
        )
    if not plant.is_robot:
        raise StateError(
            f"{of}: contacts with a ground are for robots, and {plant.name} is "
            f"{shown(plant.system)}",
            "give the robot itself; use pp.embed for mechanisms with loops",
        )
    contacts = GroundContact(
        plant.robot, ground, JointStops(plant) or None if limits == "block" else None
    )
    if q is not None:
        if contacts.stops is not None:
            contacts.stops.check_start(q)
        check_above_ground(contacts, q, of)
    return contacts


class GroundStep(NamedTuple):
    """The state after a step, what its contacts do, the residuals (..., n) of contacts and stops,
    and what the stops add to `JointStops.sum_size` sums."""

    q: np.ndarray
    v: np.ndarray
    contacts: ContactState
    residual: np.ndarray
    stops: np.ndarray


class ContactStep:
    """(q, v, tau) -> the step of `dt` on the ground; arrays (..., n)."""

    def __init__(self, plant: Plant, losses: DampingAndFriction, contacts: GroundContact):
        self.robot, self.contacts = plant.robot, contacts
        self.sampled_robot = plant.with_sample_axis().robot
        torque = read_torque(None, plant, (), 1)
        rollout_input = RolloutInput(torque, losses, None, None, contacts)
        options = rollout_input.options(plant, CONTACT_METHOD, True)
        records_stops = contacts.stops is not None
        self.options = replace(
            options, records_contacts=True, records_margin=True, records_stops=records_stops
        )
        self.numbers = rollout_input.force_values
        self.numbers |= dict(zip((PARAMETERS,), parameters_of(plant.robot), strict=False))
        self.kernel = rollout_kernel(plant.system, self.options)

    def __call__(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        dt: np.ndarray,
        samples: bool = False,
        ground: Ground | None = None,
    ) -> GroundStep:
        """A step of dt; `ground` has the given contacts of this step, if they differ. With
        `samples`, the states are (..., samples, n), and numbers with batch axes belong to the axes
        before that."""

        def of_motion(x: np.ndarray) -> np.ndarray:
            return x[..., None, :] if samples and x.ndim > 1 else x

        numbers = {name: of_motion(np.asarray(x, float)) for name, x in self.numbers.items()}
        found = self.contacts.found(q, ground)
        numbers |= {contact_place(name): x for name, x in found.items()}
        values = {"q": q, "v": v, "tau": tau, "h": dt[..., None], **numbers}
        axes = {name.rpartition(".")[2]: x.shape[:-1] for name, x in values.items()}
        try:
            lead = np.broadcast_shapes(*axes.values())
        except ValueError:
            named = ", ".join(f"{name} {shape}" for name, shape in axes.items() if shape)
            raise StateError(
                f"step: the batch axes do not fit together: {named}",
                "give the state all batch axes",
            ) from None
        count = math.prod(lead)

        def rows(x: np.ndarray) -> np.ndarray:
            if x.ndim == 1:  # without copies
                return np.broadcast_to(x, (count, 1, *x.shape))
            return np.broadcast_to(x, (*lead, x.shape[-1])).reshape(count, 1, x.shape[-1])

        inputs = [rows(values[name]) for name in self.options.packed_once]
        contacts, stops = self.contacts, self.contacts.stops
        residuals, impulses = contacts.residual_count, contacts.space.impulse_size
        sizes = [self.robot.nq, self.robot.nv, residuals, impulses]
        sizes += [contacts.count] * 2
        sizes += [] if stops is None else [stops.sum_size]
        out = [np.zeros((count, 1, size)) for size in sizes]
        if count:
            self.kernel.run([*inputs, *out], 1, 1)
        shaped = [x.reshape(*lead, x.shape[-1]) for x in out]
        q1, v1, total, impulse, mode, margin, *sums = shaped
        robot = self.sampled_robot if samples else self.robot
        poses, given = frame_poses(contacts, q, robot), found.get("given")
        axes = contacts.axes(poses, samples, given)
        forces = contacts.forces(impulse, axes, dt[..., None, None])
        each = contacts.geometry(poses, contacts.cells(poses, samples), given)[1]
        gaps = np.stack(np.broadcast_arrays(*each, mode[..., 0])[:-1], axis=-1)
        modes = np.nan_to_num(mode).astype(np.int8)
        residual = np.sqrt(total)
        state = ContactState(forces, gaps, modes, residual[..., : contacts.count], margin)
        return GroundStep(q1, v1, state, residual, sums[0] if sums else np.zeros((*lead, 0)))

    def axes(self, q: np.ndarray, samples: bool = False) -> np.ndarray:
        """(..., c, 3, 3): normal, tangent, tangent of each contact, in world axes."""
        robot = self.sampled_robot if samples else self.robot
        given = self.contacts.found(q).get("given")
        return self.contacts.axes(frame_poses(self.contacts, q, robot), samples, given)
