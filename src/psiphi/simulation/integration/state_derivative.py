"""The right side of the equations of motion: dq/dt and dv/dt at a time and a state, with the torques asked along the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.simulation.control.torque_input import TorqueInput, within
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction, opposed
from psiphi.simulation.plant import Plant

State = tuple[np.ndarray, np.ndarray]


class StateDerivative:
    """(t, q, v) -> (joint velocity, a). `begin` opens a step, and remembers what a sample of it holds."""

    def __init__(
        self,
        system: Plant,
        torque: TorqueInput,
        losses: DampingAndFriction,
        effort: np.ndarray | None,
        hold: bool,
    ):
        self.system, self.torque, self.effort, self.hold = system, torque, effort, hold
        self.losses, self.acting = losses, losses.acting | losses.springs.acting
        self.step = 0
        self.tau = self.a = np.zeros(system.nv)
        self.forces: np.ndarray | None = None

    def __call__(
        self, t: float, q: np.ndarray, v: np.ndarray, added: Any = None, push: Any = 0.0
    ) -> State:
        """At a stage; of a step with implicit losses `added` stands beside D, and `push` is what the stages before ask for."""
        tau, u = self.tau if self.hold else self.control(t, q, v), self.system.velocity(q, v)
        return u, self.system.acceleration(q, v, self.total(tau, q, u) - push, added)

    def braced(self, q: np.ndarray, v: np.ndarray, added: np.ndarray, push: Any) -> np.ndarray:
        """a of the first stage of a step with implicit losses or springs: the torque is that of `begin`."""
        return self.system.acceleration(q, v, self.total(self.tau, q, v) - push, added)

    def begin(self, step: int, t: float, q: np.ndarray, v: np.ndarray) -> State:
        """The first stage of a step."""
        self.step = step
        self.tau, u = self.control(t, q, v), self.system.velocity(q, v)
        self.a, self.forces = self.system.forces(q, v, self.total(self.tau, q, u))
        return u, self.a

    def control(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The torque asked for, cut to the effort limits where these act."""
        tau = self.torque(self.step, t, q, v)
        return tau if self.effort is None else within(tau, self.effort)

    def total(
        self, tau: np.ndarray, q: np.ndarray, u: np.ndarray, samples: bool = False
    ) -> np.ndarray:
        """Less what joints lose at the velocity u, and what springs pull at q; of `samples` (..., samples, nv), too."""
        more = {
            name: row[..., None, :] for name, row in self.acting.items() if samples and row.ndim > 1
        }
        return opposed(self.system.manifold, tau, q, u, **(self.acting | more))
