"""One step of a robot on the ground, with what its contacts do: `robot.step(..., contacts=ground)`,
the samples of a trajectory, and steps with torques from Python."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import one_of
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.contact.contact_state import ContactState
from psiphi.model.contact.ground import Ground
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_runner import rollout_kernel
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.contact.placement import check_above_ground, contact_gaps, frame_poses
from psiphi.simulation.control.torque_input import read_torque
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction
from psiphi.simulation.integration.integrators import CONTACT_METHOD, METHODS
from psiphi.simulation.plant import Plant, parameters_of

DEFAULT_METHOD = "rk4"


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
    if not isinstance(ground, Ground):
        raise StateError(f"{of}: contacts is {shown(ground)}", "give a pp.Ground")
    if not plant.is_robot:
        raise StateError(
            f"{of}: contacts with a ground are for robots, and {plant.name} is "
            f"{shown(plant.system)}",
            "give the robot itself; use pp.embed for mechanisms with loops",
        )
    if limits == "block":
        raise StateError(
            f'{of}: limits="block" does not work with contacts=pp.Ground(...)',
            'use limits="record" or "stop"',
        )
    contacts = GroundContact(plant.robot, ground)
    if q is not None:
        check_above_ground(contacts, q, of)
    return contacts


class ContactStep:
    """(q, v, tau) -> the state after one step of `dt`, and its contacts; arrays (..., n)."""

    def __init__(self, plant: Plant, losses: DampingAndFriction, contacts: GroundContact):
        self.robot, self.contacts = plant.robot, contacts
        self.sampled_robot = plant.with_sample_axis().robot
        torque = read_torque(None, plant, (), 1)
        rollout_input = RolloutInput(torque, losses, None, None, contacts)
        options = rollout_input.options(plant, CONTACT_METHOD, True)
        self.options = replace(options, records_contacts=True)
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
    ) -> tuple[np.ndarray, np.ndarray, ContactState]:
        """The state after a step of dt. With `samples`, the states are (..., samples, n), and
        numbers with batch axes belong to the axes before that."""

        def of_motion(x: np.ndarray) -> np.ndarray:
            return x[..., None, :] if samples and x.ndim > 1 else x

        numbers = {name: of_motion(np.asarray(x, float)) for name, x in self.numbers.items()}
        values = {"q": q, "v": v, "tau": tau, "h": dt[..., None], **numbers}
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in values.values()))
        count = math.prod(lead)

        def rows(x: np.ndarray) -> np.ndarray:
            return np.broadcast_to(x, (*lead, x.shape[-1])).reshape(count, 1, x.shape[-1])

        inputs = [rows(values[name]) for name in self.options.packed_once]
        c = self.contacts.count
        sizes = self.robot.nq, self.robot.nv, c, 3 * c, c
        out = [np.zeros((count, 1, size)) for size in sizes]
        if count:
            self.kernel.run([*inputs, *out], 1, 1)
        q1, v1, total, impulse, mode = (x.reshape(*lead, x.shape[-1]) for x in out)
        robot = self.sampled_robot if samples else self.robot
        forces = self.contacts.forces(impulse, self.axes(q, samples), dt[..., None, None])
        gaps = np.broadcast_to(contact_gaps(self.contacts, q, robot), mode.shape)
        modes = np.nan_to_num(mode).astype(np.int8)
        return q1, v1, ContactState(forces, gaps, modes, np.sqrt(total))

    def axes(self, q: np.ndarray, samples: bool = False) -> np.ndarray:
        """(..., c, 3, 3): normal, tangent, tangent of each contact, in world axes."""
        robot = self.sampled_robot if samples else self.robot
        return self.contacts.axes(frame_poses(self.contacts, q, robot))
