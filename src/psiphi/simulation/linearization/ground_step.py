"""`robot.step(q, v, tau, dt, contacts=ground)`: one step of a robot on the ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.extras import import_optional
from psiphi._util.validate import array_library, is_foreign, is_lazy, on_gpu
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.arrays.array_dispatch import convert_like, dispatch, is_tracer
from psiphi.functions.arrays.function_registry import register
from psiphi.model.contact.contact_state import ContactState
from psiphi.model.contact.given_contacts import GivenContacts
from psiphi.model.contact.ground import Ground
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_step import (
    ContactStep,
    choose_method,
    ground_contact,
)
from psiphi.simulation.forces.damping_and_friction import read_losses
from psiphi.simulation.integration.integrators import CONTACT_METHOD
from psiphi.simulation.linearization.linearize import read_foreign
from psiphi.simulation.linearization.step_arguments import (
    FLOAT32,
    check_batch,
    read_dt,
    read_state,
)
from psiphi.simulation.plant import Plant
from psiphi.simulation.rollout.rollout import RolloutArguments, rollout_of_tensors

if TYPE_CHECKING:
    from psiphi.robot.free_robot import FreeRobot

KEPT = 8  # grounds of which a robot keeps the step


def ground_step(
    robot: Robot,
    q: Numbers,
    v: Numbers,
    tau: Numbers,
    dt: Numbers,
    method: str | None,
    ground: Ground,
) -> tuple[Any, Any, ContactState]:
    """The state after one step, and what its contacts do; arrays (..., n), float32 if q, v and tau
    all are. The contacts are solved in float64."""
    choose_method(method, ground, "step")
    if any(map(is_lazy, (q, v, tau, dt))):
        raise StateError(
            "step: contacts are not implemented for Dask arrays", "use pp.rollout, or x.compute()"
        )
    if any(map(is_foreign, (q, v, tau, dt, *robot.parameter_arguments))):
        if isinstance(ground, GivenContacts):
            raise StateError(
                "step: given contacts have no derivatives, and arguments are of torch or JAX",
                "give NumPy arrays",
            )
        return _step_of_tensors(robot, q, v, tau, dt, ground)
    state = read_state("step", robot, q, v, tau)
    is_single = all(x.dtype == FLOAT32 for x in state)
    q, v, tau = (np.asarray(x, dtype=float) for x in state)
    robot.check_nonzero_quaternions("step", q)
    h = read_dt(dt)
    check_batch("step", (q, v, tau), h, robot.parameter_arguments)
    with np.errstate(all="ignore"):
        own = ground.origin if isinstance(ground, GivenContacts) else ground
        solved = _contact_step(robot, own)(q, v, tau, np.asarray(h, dtype=float), ground=ground)
    if not is_single:
        return solved.q, solved.v, solved.contacts
    numbers = {name: x.astype(FLOAT32) for name, x in solved.contacts._asdict().items()}
    contacts = ContactState(**numbers | {"modes": solved.contacts.modes})
    return solved.q.astype(FLOAT32), solved.v.astype(FLOAT32), contacts


def _step_of_tensors(
    robot: Robot, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers, ground: Ground
) -> tuple[Any, Any, ContactState]:
    """A step of arrays of torch or JAX, with the derivatives of their library. What the contacts do
    is a constant of these."""
    if is_foreign(dt) or read_dt(dt).ndim:
        cause = "step: dt is an array, and other arguments are of torch or JAX"
        raise StateError(cause, "give a number like 2e-3")
    h, sizes, bound = float(read_dt(dt)), (robot.nq, robot.nv, robot.nv), robot.parameter_arguments
    state: tuple[Any, ...] = (q, v, tau)
    if any(map(is_foreign, state)):
        state, _ = read_foreign(sizes, state, None, bound, "step")
    else:  # the robot's parameters alone are foreign
        state = tuple(convert_like(bound[0], np.asarray(x, dtype=float)) for x in state)
    if any(map(on_gpu, state)) and not any(map(is_tracer, state)):
        raise StateError("step: contacts are not implemented on the GPU", "give arrays on the CPU")
    start: dict[str, Any] = dict(zip(("q", "v", "tau", PARAMETERS), (*state, *bound), strict=False))
    start["tau"] = start["tau"][..., None, :]
    arguments = RolloutArguments(h, 1, CONTACT_METHOD, contacts=ground)
    moved = rollout_of_tensors(robot, Plant(robot), start, arguments, checks_ground=False)
    contacts = dispatch(ContactFunction(robot, ground, h), [_constant(x) for x in (*state, *bound)])
    return moved[0][..., -1, :], moved[1][..., -1, :], ContactState(*contacts)


def _constant(x: Any) -> Any:
    """The array without derivatives."""
    if array_library(x) == "torch":
        return x.detach()
    return import_optional("jax", "an array of jax", "psiphi[jax]").lax.stop_gradient(x)


class ContactFunction:
    """What the contacts of a step do, as a function of q, v, tau, and of parameters if they are
    arrays; for `dispatch`."""

    name = "step"
    is_temporary = True  # it exists for one call

    def __init__(self, robot: Robot, ground: Ground, dt: float):
        self.robot, self.ground, self.dt = robot, ground, dt
        count = len(robot.contact_points) + len(robot.contact_pairs)
        sizes = [robot.nq, robot.nv, robot.nv, *(x.shape[-1] for x in robot.parameter_arguments)]
        named = zip(("q", "v", "tau", PARAMETERS), sizes, strict=False)
        self.inputs = tuple(Argument(name, (size,)) for name, size in named)
        self.outputs = (
            Argument("forces", (count, 3)),
            *(Argument(name, (count,)) for name in ("gaps", "modes", "residual", "margin")),
        )
        self.number = register(self)

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        q, v, tau, *parameters = arrays
        robot = cast("FreeRobot", self.robot).at(*parameters) if parameters else self.robot
        _, _, found = ground_step(robot, q, v, tau, self.dt, None, self.ground)
        return tuple(x.astype(q.dtype) for x in found)

    def pullback(self, *names: str) -> NoReturn:
        raise StateError("step: forces of contacts have no derivatives", "detach them")

    pushforward = pullback


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
