"""What drives a compiled rollout: arrays, or one of the controllers that have blocks, as numbers for the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.closed.system import System
from psiphi.functions.compiler import UNROLLED
from psiphi.functions.robot import Robot
from psiphi.simulation.blocks import STAGES
from psiphi.simulation.controllers import PD, ComputedTorque, GravityCompensation
from psiphi.simulation.machine import Plan, place
from psiphi.simulation.manifold import Manifold
from psiphi.simulation.plant import Plant
from psiphi.simulation.torques import Losses, Torque

LAWS: dict[type, str] = {GravityCompensation: "gravity", PD: "pd", ComputedTorque: "computed"}


def obstacle(system: Any, tau: Any, method: str) -> str:
    """Why there is no kernel for this; empty when there is one."""
    if not isinstance(system, Robot | System):
        return "only robots and closed chains have compiled rollouts"
    if not 0 < len(system.joints) <= UNROLLED:
        return f"there are {len(system.joints)} bodies, and compiled rollouts take 1 to {UNROLLED}"
    if method not in STAGES:
        return f"{method} takes steps of its own choosing"
    if not callable(tau):
        return ""
    if type(tau) not in LAWS:
        return f"the torque is {type(tau).__name__}, a function of Python"
    if isinstance(system, System):
        return "controllers of closed chains run in Python"
    if tau.robot != system:
        return "the controller is made for another robot"
    if isinstance(tau, PD) and any(np.any(tau.kp[..., own]) for _, own, _ in Manifold(system).bent):
        return "differences of quaternions have no compiled form (kp = 0 there, as for a flying base, has one)"
    return ""


@dataclass(frozen=True)
class Drive:
    """The torque of a rollout: a table of torques, or a controller with its reference."""

    torque: Torque
    controller: Any = None

    @property
    def law(self) -> str:
        if self.controller is None:
            return "torque"
        return LAWS[type(self.controller)] + " gravity" * bool(getattr(self.controller, "gravity", False))

    @property
    def timed(self) -> bool:
        """Whether it changes from step to step by itself."""
        if self.torque.table is not None:
            return self.torque.table.shape[-2] > 1
        reference = getattr(self.controller, "reference", None)
        return reference is not None and reference.constant is None

    def plan(self, plant: Plant, method: str, hold: bool, losses: Losses) -> Plan:
        closed = isinstance(plant.given, System)
        closure = plant.given.closure.key if closed else ""
        return Plan(method, self.law, self.timed, hold, losses, closure, closed and plant.project is not None)

    def given(self) -> dict[str, np.ndarray]:
        """What stays the same: gains, and torques or references that do not change."""
        if self.torque.table is not None:
            return {} if self.timed else {"tau": self.torque.table[..., 0, :]}
        if not isinstance(self.controller, PD):
            return {}
        fixed = {} if self.timed else dict(zip(("q_ref", "v_ref", "a_ref"), self.controller.reference(0.0), strict=True))
        return {"kp": self.controller.kp, "kd": self.controller.kd} | fixed

    def tables(self, plan: Plan, start: int, count: int, dt: float) -> dict[str, np.ndarray]:
        """(..., count, n) for the steps from `start` on, by place."""
        if not self.timed:
            return {}
        if self.torque.table is not None:
            return {"tau": self.torque.table[..., start : start + count, :]}
        stride = 2 if plan.times == 3 else 1
        times = (start + np.arange(stride * count + (stride == 2)) / stride) * dt
        rows = self.references(times)
        return {
            place(name, j): rows[i][..., j::stride, :][..., :count, :]
            for j in range(plan.times)
            for i, name in enumerate(plan.references)
        }

    def references(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """q_ref, v_ref, a_ref at these times, (..., times, n) each."""
        each = [self.controller.reference(float(t)) for t in times]
        return tuple(np.stack(np.broadcast_arrays(*rows), axis=-2) for rows in zip(*each, strict=True))

    def at_samples(self, robot: Robot, t: np.ndarray, dt: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The torque at samples (..., n, nv): what the kernel computed on its way and did not keep."""
        shape = (*q.shape[:-1], robot.nv)
        if self.torque.table is not None:
            rows = self.torque.table.shape[-2]
            steps = np.minimum(np.rint(t / dt).astype(int), rows - 1)
            return np.broadcast_to(self.torque.table[..., steps, :], shape)
        if not isinstance(self.controller, PD):
            return self.controller(0.0, q, v)
        fixed = (x[..., None, :] for x in self.controller.reference(0.0))
        return self.controller.law(q, v, *(self.references(t) if self.timed else fixed))
