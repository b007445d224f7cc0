"""What drives a compiled rollout: arrays, or a built-in controller, as numbers for the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import name_of
from psiphi.compiler.passes import UNROLLED
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, place
from psiphi.simulation.control.control_law import Law, is_lawful
from psiphi.simulation.control.torque_input import TorqueInput, within
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import METHODS
from psiphi.simulation.plant import Plant


def obstacle(system: Any, tau: Any, method: str, blocks: bool = False) -> str:
    """Why there is no kernel for this; empty when there is one."""
    if not isinstance(system, Robot | System):
        return "only robots and closed chains have compiled rollouts"
    if not system.joints:
        return "nothing moves"
    if method not in METHODS:
        return f"{method} takes steps of its own choosing"
    if blocks and len(system.joints) > UNROLLED:
        return f'limits="block" takes the whole inverse mass matrix, and there are {len(system.joints)} bodies'
    if not callable(tau):
        return ""
    if not is_lawful(tau):
        return f"the torque is {name_of(tau)}, a Python function"
    return "" if tau.robot == system else "the controller is made for another system"


@dataclass(frozen=True)
class RolloutInput:
    """The torque of a rollout: a table of torques, or a controller with its reference."""

    torque: TorqueInput
    losses: DampingAndFriction
    controller: Any = None
    effort: np.ndarray | None = None  # of tables nothing is cut here: they were
    asked: dict[float, Any] = field(
        default_factory=dict, compare=False
    )  # what the reference answered first

    @property
    def law(self) -> Law:
        return Law() if self.controller is None else self.controller.law

    @property
    def timed(self) -> bool:
        """Whether it changes from step to step by itself."""
        if self.torque.table is not None:
            return self.torque.table.shape[-2] > 1
        reference = getattr(self.controller, "reference", None)
        return reference is not None and getattr(reference, "constant", None) is None

    @property
    def brakes(self) -> dict[str, np.ndarray]:
        """The numbers of the losses and limits that act."""
        cut = {} if self.controller is None or self.effort is None else {"effort": self.effort}
        springs = self.losses.springs
        stiff = (
            {"stiff": self.losses.stiff} if self.losses.implicit and not self.losses.none else {}
        )
        firm = {"firm": springs.firm} if springs.implicit else {}
        return self.losses.acting | stiff | springs.acting | firm | cut

    def plan(
        self, plant: Plant, method: str, hold: bool, stops: JointStops | None = None
    ) -> RolloutOptions:
        keeps = () if self.controller is None else tuple(self.controller.numbers)
        cut = "effort" in self.brakes
        losses = tuple(self.losses.acting), self.losses.implicit
        plan = RolloutOptions(
            method, self.law, self.timed, hold, keeps, *losses, cut, stops or None
        )
        springs = self.losses.springs
        plan = replace(
            plan,
            free=plant.robot.freed is not None,
            springs=tuple(springs.acting),
            firm=springs.implicit,
        )
        if not isinstance(plant.given, System):
            return plan
        return replace(plan, closure=plant.given.key, project=plant.project is not None)

    def given(self) -> dict[str, np.ndarray]:
        """What stays the same: the law's numbers, and torques or references that do not change."""
        if self.torque.table is not None:
            return (
                self.brakes if self.timed else self.brakes | {"tau": self.torque.table[..., 0, :]}
            )
        fixed = () if self.timed or not self.law.followed else self.controller.reference(0.0)
        own = self.controller.numbers | dict(zip(self.law.followed, fixed, strict=False))
        return self.brakes | {place(name): x for name, x in own.items()}

    def tables(
        self, plan: RolloutOptions, start: int, count: int, dt: float
    ) -> dict[str, np.ndarray]:
        """(..., count, n) for the steps from `start` on, by place."""
        if not self.timed:
            return {}
        if self.torque.table is not None:
            return {"tau": self.torque.table[..., start : start + count, :]}
        stages = [
            (start + np.arange(count)) * dt + j * (0.5 * dt) for j in range(plan.times)
        ]  # to the last bit as in Python
        times = np.unique(stages)
        rows = self.references(times)
        return {
            place(name, j): rows[i][..., np.searchsorted(times, stage), :]
            for j, stage in enumerate(stages)
            for i, name in enumerate(plan.law.followed)
        }

    def references(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the controller follows at these times, (..., times, n) each."""
        at_once = getattr(self.controller.reference, "along", None)
        if at_once is not None and (found := at_once(times)) is not None:
            return found[: len(self.law.followed)]
        each = [
            tuple(map(np.array, self.controller.reference(float(t)))) for t in times
        ]  # copies: it may answer in one array
        self._refuse_memory(float(times[0]), each[0])
        try:
            return tuple(
                np.stack(np.broadcast_arrays(*rows), axis=-2) for rows in zip(*each, strict=True)
            )
        except ValueError:
            shapes = ", ".join(
                str(shape) for shape in dict.fromkeys(x.shape[:-1] for row in each for x in row)
            )
            cause = f"the reference has batch axes that do not fit together: {shapes}, from t = {times[0]:g} to {times[-1]:g}"
            raise StateError(cause, "give the same batch axes at all times") from None

    def _refuse_memory(self, t: float, known: Any) -> None:
        """Kernels ask a reference in an order of their own, events between: it has to be a function of time."""
        ((t, known),) = (self.asked or {t: known}).items()
        self.asked[t] = known
        again = self.controller.reference(t)
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(known, again, strict=True)):
            cause = f"the reference answers otherwise when it is asked again at t = {t:g}: it remembers, or varies"
            raise StateError(
                cause,
                "make it a function of t alone; pp.simulate(..., compiled=False) asks it at every stage",
            )

    def at_samples(
        self, robot: Robot, t: np.ndarray, dt: float, q: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """The torque at samples (..., n, nv): what the kernel computed on its way and did not keep."""
        shape = (*q.shape[:-1], robot.nv)

        def front(x: np.ndarray) -> np.ndarray:
            """The axis of samples first: behind it all that has batch axes fits."""
            return np.moveaxis(np.broadcast_to(x, (*q.shape[:-1], x.shape[-1])), -2, 0)

        if self.torque.table is not None:
            rows = self.torque.table.shape[-2]
            steps = np.minimum(np.rint(t / dt).astype(int), rows - 1)
            return np.broadcast_to(self.torque.table[..., steps, :], shape)
        if not self.law.followed:
            tau = np.moveaxis(self.controller(0.0, front(q), front(v)), 0, -2)
        else:
            rows = map(front, self.references(t)) if self.timed else self.controller.reference(0.0)
            tau = np.moveaxis(self.controller.torque(front(q), front(v), *rows), 0, -2)
        return tau if self.effort is None else within(tau, self.effort)
