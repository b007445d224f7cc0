"""The second door: `pp.rollout(robot, q0, v0, tau, ...)`, the compiled kernel and nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from psiphi.arguments import flag, is_foreign, is_lazy, on_card, whole
from psiphi.control.losses import read_losses
from psiphi.control.plant import Plant
from psiphi.control.stops import Stops
from psiphi.control.torques import read_effort, read_torque
from psiphi.control.traced import lawful
from psiphi.errors import StateError
from psiphi.functions.robot import Robot
from psiphi.rollouts import on_cards
from psiphi.rollouts.differentiated import NO_SLOPE
from psiphi.rollouts.integrators import METHODS
from psiphi.rollouts.mending import STRAINED, Careful, Strained
from psiphi.rollouts.sensitivity import Sensitivity
from psiphi.rollouts.supply import Drive, obstacle
from psiphi.simulation.rolled_arrays import rolled
from psiphi.simulation.rolled_blocks import rolled_later
from psiphi.simulation.rolled_states import GivenTorque, RolledStates
from psiphi.simulation.start import check_closed, check_size, initial_state, step_size, step_stride
from psiphi.wording import shown


def rollout(
    robot: Any,
    q0: Any,
    v0: Any = None,
    tau: Any = None,
    dt: float = 1e-3,
    steps: int = 1000,
    method: str = "rk4",
    *,
    every: int = 1,
    hold: bool = False,
    damping: Any = False,
    friction: Any = False,
    friction_speed: float | None = None,
    springs: Any = False,
    effort: Any = False,
    actuated: Any = None,
    passive: Any = None,
    limits: str = "ignore",
    out: tuple[np.ndarray, np.ndarray] | None = None,
) -> RolledStates:
    """q (..., n, nq), v (..., n, nv): the states at steps 0, every, 2 every, ...: `simulate`'s kernel, and nothing else.

    Arguments as in `simulate`; tau is nothing, an array, a controller, or a function of your own that leaves a tape (see
    `control/traced.py`). `out` takes the results. The answer's `vjp` and `jvp` are the motion's derivatives; tensors of
    torch have gradients.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = rollout(robot, robot.random(seed=0, size=100), steps=50, every=10)
    >>> q.shape
    (100, 6, 6)
    """
    plant = Plant(robot)
    plant.with_motors(actuated, passive)
    if not isinstance(method, str):
        raise StateError(f"method is {shown(method)}, expected one of {', '.join(METHODS)}", 'leave it out for "rk4"')
    if any(map(is_lazy, (q0, v0, tau))):
        rows, starts = 1 + whole("steps", steps) // step_stride(every), {"q0": q0, "v0": v0, "tau": tau}
        lost = {"damping": damping, "friction": friction, "friction_speed": friction_speed, "springs": springs}
        lost |= {"effort": effort, "limits": limits}
        how = {"dt": dt, "steps": steps, "method": method, "every": every, "hold": hold, "actuated": actuated}
        return rolled_later(rollout, plant, starts, rows, {**how, **lost, "passive": passive, "out": out})
    if any(map(on_card, (q0, v0, tau))):
        state, brakes = {"q": q0, "v": v0, "tau": tau}, (damping, friction, friction_speed, springs)
        length = whole("steps", steps), step_stride(every), step_size(dt)
        return _on_card(plant, state, *length, method, flag("hold", hold), brakes, effort, limits, out)
    if foreign := [x for x in (q0, v0, tau) if is_foreign(x)]:
        rest: dict[str, Any] = {"every": every, "hold": hold, "damping": damping, "friction": friction, "limits": limits}
        rest |= {
            "friction_speed": friction_speed,
            "springs": springs,
            "effort": effort,
            "actuated": actuated,
            "passive": passive,
        }
        if out is not None:
            raise StateError("rollout: out= is for NumPy arrays, and these are not", "leave it out")
        if _blocks(limits) and any(getattr(x, "requires_grad", False) for x in foreign):
            raise StateError(f"rollout: {NO_SLOPE}", 'leave limits="ignore", or give tensors without gradients')

        def run(q: np.ndarray, v: np.ndarray, tau: Any) -> RolledStates:
            return rollout(robot, q, v, tau, dt, steps, method, **rest)

        return rolled(run, plant, {"q": q0, "v": v0, "tau": tau}, foreign[0], whole("steps", steps), step_stride(every))
    q, v = initial_state(plant, q0, v0)
    check_closed(plant, q, v)
    steps, every, dt = whole("steps", steps), step_stride(every), step_size(dt)
    if out is None:
        check_size(plant, q.shape[:-1], steps, every, whole=False)
    tau, cut = lawful(plant.given, tau, q.ndim > 1), read_effort(plant, effort)
    torque, losses = (
        read_torque(tau, plant, q.shape[:-1], steps).cut(cut),
        read_losses(plant, damping, friction, friction_speed, springs),
    )
    reason = obstacle(plant.given, tau, method, _blocks(limits))
    if reason:
        raise StateError(f"rollout: {reason}", "pp.simulate takes every system, torque and method")
    drive = Drive(torque, losses.within(plant, method, dt), tau if callable(tau) else None, cut)
    plan = drive.plan(plant, method, flag("hold", hold), Stops(plant) if _blocks(limits) else None)
    runner = Careful(plant, drive, plan, dt, q.shape[:-1])
    q_out, v_out = _results(out, (*q.shape[:-1], 1 + steps // every), plant)
    flat = q.reshape(-1, plant.nq), v.reshape(-1, plant.nv)
    states = q_out.reshape(runner.count, *q_out.shape[-2:]), v_out.reshape(runner.count, *v_out.shape[-2:])
    for state, first in zip(states, flat, strict=True):
        state[:, 0] = first
    try:
        _fill(runner, states, every)
    except Strained:
        raise StateError(f"rollout: {STRAINED}", "pp.simulate takes such steps in Python, which says what is wrong") from None
    ways = partial(Sensitivity, plant, drive, plan, runner, states, every)
    given = (
        None if callable(tau) else GivenTorque(torque, np.shape(tau) if tau is not None else (plant.nv,), tau is not None, cut)
    )
    return RolledStates.of((q_out, v_out), ways, given)


def _on_card(
    plant: Plant,
    state: dict[str, Any],
    steps: int,
    every: int,
    dt: float,
    method: str,
    hold: bool,
    brakes: tuple[Any, ...],
    effort: Any,
    limits: str,
    out: Any,
) -> Any:
    """The same on a graphics card; the torque is nothing, a constant array of the card, or what it may be on the host."""
    if not isinstance(plant.given, Robot) or _blocks(limits) or out is not None:
        what = "out= is" if out is not None else 'limits="block" is' if _blocks(limits) else f"{plant.name} is a closed chain:"
        raise StateError(f"rollout: {what} not for graphics cards", "give arrays of the host")
    tau = state["tau"]
    there = {name: x for name, x in state.items() if on_card(x) or (name != "tau" and x is not None)}
    if "tau" in there and effort is not False:
        raise StateError("rollout: tau is on a graphics card, where it is not cut to effort limits", "cut it before")
    batch = tuple(np.broadcast_shapes(*(np.shape(x)[:-1] for x in there.values())))
    tau = None if "tau" in there else lawful(plant.given, tau, len(batch) > 0)
    reason = obstacle(plant.given, tau, method, False)
    if reason:
        raise StateError(f"rollout: {reason}", "give arrays of the host; pp.simulate takes every system, torque and method")
    cut = read_effort(plant, effort)
    torque, losses = read_torque(tau, plant, batch, steps).cut(cut), read_losses(plant, *brakes).within(plant, method, dt)
    drive = Drive(torque, losses, tau if callable(tau) else None, cut)
    return on_cards.run(plant, drive, drive.plan(plant, method, hold), dt, there, steps, every)


def _fill(runner: Careful, states: tuple[np.ndarray, ...], every: int) -> None:
    """All samples behind the first, piece by piece."""
    rows, done = states[0].shape[1], 0
    while runner.count and done < rows - 1:
        some = min(rows - 1 - done, runner.piece(every) // every)
        out = tuple(x[:, done + 1 : done + 1 + some] for x in states)
        q, v = (x[:, done] for x in states)
        runner.advance(q, v, every * done, every * some, every, out)
        done += some


def _blocks(limits: Any) -> bool:
    """Whether joints end at their limits."""
    if not isinstance(limits, str) or limits not in ("ignore", "block"):
        raise StateError(f"limits is {shown(limits)}, expected ignore or block", "pp.simulate records limits and stops at them")
    return limits == "block"


def _results(out: Any, lead: tuple[int, ...], plant: Plant) -> tuple[np.ndarray, np.ndarray]:
    """New arrays, or those given when they fit."""
    shapes = (*lead, plant.nq), (*lead, plant.nv)
    if out is None:
        return np.empty(shapes[0]), np.empty(shapes[1])
    arrays: tuple[Any, ...] = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(arrays) != 2 or not all(map(_takes, arrays, shapes)):
        raise StateError(f"out is {shown(out)}, expected two arrays", f"give np.empty({shapes[0]}), np.empty({shapes[1]})")
    return arrays[0], arrays[1]


def _takes(array: Any, shape: tuple[int, ...]) -> bool:
    good = isinstance(array, np.ndarray) and array.dtype == float and array.shape == shape
    return good and array.flags.c_contiguous and array.flags.writeable
