"""`robot.step(q, v, tau, dt, contacts=ground)`: one step of a robot on the ground."""

from __future__ import annotations

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import is_foreign, is_lazy
from psiphi.model.contact.contact_state import ContactState
from psiphi.model.contact.ground import Ground
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_step import (
    ContactStep,
    choose_method,
    ground_contact,
)
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.linearization.step_arguments import check_batch, read_dt, read_state
from psiphi.simulation.plant import Plant

KEPT = 8  # grounds of which a robot keeps the step


def ground_step(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: Numbers,
    method: str | None,
    ground: Ground,
) -> tuple[np.ndarray, np.ndarray, ContactState]:
    """The state after one step, and what its contacts do; NumPy arrays (..., n)."""
    choose_method(method, ground, "step")
    arguments = (q, v, tau, dt, *robot.parameter_arguments)
    if any(is_foreign(x) or is_lazy(x) for x in arguments):
        raise StateError(
            "step: contacts are implemented for NumPy arrays", "convert with numpy.asarray"
        )
    q, v, tau = (np.asarray(x, dtype=float) for x in read_state("step", robot, q, v, tau))
    robot.check_nonzero_quaternions("step", q)
    h = read_dt(dt)
    check_batch("step", (q, v, tau), h, robot.parameter_arguments)
    with np.errstate(all="ignore"):
        return _contact_step(robot, ground)(q, v, tau, np.asarray(h, dtype=float))


def _contact_step(robot: Robot, ground: Ground) -> ContactStep:
    known: dict[int, ContactStep] = robot.__dict__.setdefault("_contact_steps", {})
    key = id(ground)  # which `known` keeps alive
    if key not in known:
        plant = Plant(robot)
        losses = read_losses(plant, False, False, None, False)
        made = ContactStep(plant, losses, ground_contact(plant, ground, "ignore", "step"))
        while len(known) >= KEPT:
            del known[next(iter(known))]
        known[key] = made
    return known[key]
