"""The right-hand side of the equations of motion: joint velocity and acceleration at a time and a
state."""

from __future__ import annotations

import numpy as np

from psiphi.simulation.control.torque_input import TorqueInput, limit_torque
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction, net_torque_with_loops
from psiphi.simulation.forces.external_forces import ExternalForces
from psiphi.simulation.plant import Plant

State = tuple[np.ndarray, np.ndarray]


class StateDerivative:
    """(t, q, v) -> (joint velocity, a). `start_step` stores the values that a sample of the step
    records: `tau`, `a`, `forces`."""

    def __init__(
        self,
        plant: Plant,
        torque: TorqueInput,
        losses: DampingAndFriction,
        effort: np.ndarray | None,
        hold: bool,
        push: ExternalForces | None = None,
    ):
        self.push, self.t = push, 0.0  # t: of the start of the step
        self.plant, self.torque, self.effort, self.hold = plant, torque, effort, hold
        self.losses, self.active = losses, losses.active | losses.springs.active
        self.step = 0
        self.tau = self.a = np.zeros(plant.nv)
        self.forces: np.ndarray | None = None

    def __call__(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        added: np.ndarray | None = None,
        force: np.ndarray | float = 0.0,
    ) -> State:
        """The value at a stage. In a step with implicit forces, `added` is added to the rotor
        inertias and `force` is subtracted from the torque."""
        tau, u = self.tau if self.hold else self.torque_at(t, q, v), self.plant.velocity(q, v)
        tau = self.pushed(t, q, tau)
        return u, self.plant.acceleration(q, v, self.net_torque(tau, q, u) - force, added)

    def implicit_stage(
        self, q: np.ndarray, v: np.ndarray, added: np.ndarray, force: np.ndarray
    ) -> np.ndarray:
        """a of the first stage of a step with implicit forces, with the torque of `start_step`."""
        tau = self.pushed(self.t, q, self.tau)
        return self.plant.acceleration(q, v, self.net_torque(tau, q, v) - force, added)

    def start_step(self, step: int, t: float, q: np.ndarray, v: np.ndarray) -> State:
        """The value at the first stage of a step."""
        self.step, self.t = step, t
        self.tau, u = self.torque_at(t, q, v), self.plant.velocity(q, v)
        tau = self.pushed(t, q, self.tau)
        self.a, self.forces = self.plant.forces(q, v, self.net_torque(tau, q, u))
        return u, self.a

    def torque_at(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The applied torque, limited to the efforts if these act."""
        tau = self.torque(self.step, t, q, v)
        return tau if self.effort is None else limit_torque(tau, self.effort)

    def pushed(self, t: float, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """tau with the torque of the external forces."""
        return tau if self.push is None else tau + self.push.torque(t, q)

    def net_torque(
        self, tau: np.ndarray, q: np.ndarray, u: np.ndarray, samples: bool = False
    ) -> np.ndarray:
        """tau less the losses at the joint velocity u and the springs at q; with `samples`, the
        arrays are (..., samples, n)."""
        batched = {
            name: row[..., None, :] for name, row in self.active.items() if samples and row.ndim > 1
        }
        return net_torque_with_loops(self.plant.manifold, tau, q, u, **(self.active | batched))
