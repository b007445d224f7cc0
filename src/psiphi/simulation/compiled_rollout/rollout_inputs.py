"""The torque input of a compiled rollout, as arrays for the kernel: a table of torques, or the
numbers and the reference of a built-in controller."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import name_of
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_blocks import contact_place
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, law_place
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.control_law import Controller, Law, is_law_controller
from psiphi.simulation.control.torque_input import TorqueInput, limit_torque
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import CONTACT_METHOD, METHODS
from psiphi.simulation.plant import Plant

Values = tuple[np.ndarray, ...]


def why_not_compiled(system: object, tau: object, method: str, has_stops: bool = False) -> str:
    """Why there is no kernel for this simulation; "" if there is one."""
    if not isinstance(system, Robot | System):
        return "only robots and closed chains have compiled rollouts"
    if not system.joints:
        return "the system has no joints"
    if method not in (*METHODS, CONTACT_METHOD):
        return f"{method} chooses its own steps"
    if has_stops and len(system.joints) > UNROLL_LIMIT:
        bodies = f"up to {UNROLL_LIMIT} bodies, and there are {len(system.joints)}"
        return f'limits="block" needs the inverse mass matrix, which is compiled for {bodies}'
    if not callable(tau):
        return ""
    if not isinstance(tau, Controller) or not is_law_controller(tau):
        return f"the torque is {name_of(tau)}, a Python function"
    return "" if tau.robot == system else "the controller is made for another system"


@dataclass(frozen=True)
class RolloutInput:
    """The torque of a rollout, and the forces that act besides."""

    torque: TorqueInput
    losses: DampingAndFriction
    controller: Controller | None = None
    effort: np.ndarray | None = None  # limits for controllers; tables are within them already
    contacts: GroundContact | None = None  # the contacts with the ground
    first_reference: dict[float, Values] = field(default_factory=dict, compare=False)

    @property
    def law(self) -> Law:
        return Law() if self.controller is None else self.controller.law

    @property
    def time_varying(self) -> bool:
        """Whether the torques, or the reference, change from step to step."""
        if self.torque.table is not None:
            return self.torque.table.shape[-2] > 1
        reference = getattr(self.controller, "reference", None)
        return reference is not None and getattr(reference, "constant", None) is None

    @property
    def force_values(self) -> dict[str, np.ndarray]:
        """The numbers of the losses, springs and effort limits that act."""
        losses, springs = self.losses, self.losses.springs
        values = losses.active
        if losses.implicit and not losses.is_empty:
            values = values | {"implicit_losses": losses.implicit_losses}
        values = values | springs.active
        if springs.implicit:
            values = values | {"implicit_springs": springs.implicit_springs}
        if self.controller is not None and self.effort is not None:
            values = values | {"effort": self.effort}
        if self.contacts is not None:
            numbers = self.contacts.numbers | self.contacts.tables
            values = values | {contact_place(name): x for name, x in numbers.items()}
        return values

    def options(
        self, plant: Plant, method: str, hold: bool, stops: JointStops | None = None
    ) -> RolloutOptions:
        springs = self.losses.springs
        options = RolloutOptions(
            method,
            self.law,
            self.time_varying,
            hold or self.contacts is not None,
            () if self.controller is None else tuple(self.controller.numbers),
            tuple(self.losses.active),
            self.losses.implicit,
            self.controller is not None and self.effort is not None,
            (stops or None) if self.contacts is None else None,
            has_parameters=plant.robot.freed is not None,
            springs=tuple(springs.active),
            implicit_springs=springs.implicit,
            contacts=self.contacts,
        )
        if not isinstance(plant.system, System):
            return options
        return replace(options, closure=plant.system.key, project=plant.project is not None)

    def constants(self) -> dict[str, np.ndarray]:
        """{place: values} of all that is constant: forces, numbers of the law, and torques or
        references that do not change."""
        if self.controller is None:
            constant = {} if self.time_varying else {"tau": self._table[..., 0, :]}
            return self.force_values | constant
        no_reference = self.time_varying or not self.law.reference_places
        fixed = () if no_reference else self.controller.reference(0.0)
        values = self.controller.numbers | dict(zip(self.law.reference_places, fixed, strict=False))
        return self.force_values | {law_place(name): x for name, x in values.items()}

    @property
    def _table(self) -> np.ndarray:
        assert self.torque.table is not None
        return self.torque.table

    def tables(
        self, options: RolloutOptions, start: int, count: int, dt: float
    ) -> dict[str, np.ndarray]:
        """{place: (..., count, n)} of all that changes, for the steps from `start` on."""
        if not self.time_varying:
            return {}
        if self.controller is None:
            return {"tau": self._table[..., start : start + count, :]}
        # the same rounding as in `pp.simulate`
        stages = [
            (start + np.arange(count)) * dt + j * (0.5 * dt) for j in range(options.half_steps)
        ]
        times = np.unique(stages)
        rows = self.references(times)
        return {
            law_place(name, j): rows[i][..., np.searchsorted(times, stage), :]
            for j, stage in enumerate(stages)
            for i, name in enumerate(options.law.reference_places)
        }

    def references(self, times: np.ndarray) -> Values:
        """The reference of the controller at these times, (..., times, n) each."""
        assert self.controller is not None
        along = getattr(self.controller.reference, "along", None)
        if along is not None and (found := along(times)) is not None:
            self._check_repeatable(float(times[0]), tuple(x[..., 0, :] for x in found))
            return found[: len(self.law.reference_places)]
        # copies: a reference may return the same array at each call
        values = [tuple(map(np.array, self.controller.reference(float(t)))) for t in times]
        self._check_repeatable(float(times[0]), values[0])
        try:
            return tuple(
                np.stack(np.broadcast_arrays(*rows), axis=-2) for rows in zip(*values, strict=True)
            )
        except ValueError:
            shapes = dict.fromkeys(str(x.shape[:-1]) for row in values for x in row)
            cause = (
                "the batch axes of the reference do not fit together: "
                f"{', '.join(shapes)}, from t = {times[0]:g} to {times[-1]:g}"
            )
            raise StateError(cause, "return the same batch axes at all times") from None

    def _check_repeatable(self, t: float, values: Values) -> None:
        """Refuse a reference that is not a function of time: kernels call it in their own order,
        and simulations again where they look for events."""
        if not self.first_reference:
            self.first_reference[t] = values
        ((t, values),) = self.first_reference.items()
        assert self.controller is not None
        again = self.controller.reference(t)
        if not all(
            np.array_equal(a, b, equal_nan=True) for a, b in zip(values, again, strict=True)
        ):
            raise StateError(
                f"the reference at t = {t:g} differs between two calls: it has state or is random",
                "make it a function of t alone; "
                "pp.simulate(..., compiled=False) calls it at every stage",
            )

    def torque_at_samples(
        self, robot: Robot, t: np.ndarray, dt: float, q: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """The torque at samples (..., n, nv), computed again: the kernel does not store it."""
        shape = (*q.shape[:-1], robot.nv)

        def samples_first(x: np.ndarray) -> np.ndarray:
            """The axis of samples in front, so that arrays with batch axes broadcast."""
            return np.moveaxis(np.broadcast_to(x, (*q.shape[:-1], x.shape[-1])), -2, 0)

        if self.controller is None:
            rows = self._table.shape[-2]
            steps = np.minimum(np.rint(t / dt).astype(int), rows - 1)
            return np.broadcast_to(self._table[..., steps, :], shape)
        state = samples_first(q), samples_first(v)
        if not self.law.reference_places:
            tau = self.controller(0.0, *state)
        elif self.time_varying:
            tau = self.controller.torque(*state, *map(samples_first, self.references(t)))
        else:
            tau = self.controller.torque(*state, *self.controller.reference(0.0))
        tau = np.moveaxis(tau, 0, -2)
        return tau if self.effort is None else limit_torque(tau, self.effort)
