"""Whole rollouts on a graphics card, in one launch: states of the card go in, samples of the card come out.

What the law of the torque needs besides (gains, references, dt) is small, and is copied to the card before.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.arguments import on_card
from psiphi.control.plant import Plant, parameters_of
from psiphi.emitters.joined import Named
from psiphi.errors import StateError
from psiphi.functions.robot import Robot
from psiphi.model.manifold import Manifold
from psiphi.rollouts.machine import Machine, Recipe
from psiphi.rollouts.parts import sizes_of, trace
from psiphi.rollouts.runner import KEPT, ROOMS
from psiphi.rollouts.supply import Drive
from psiphi.runtime import cache, cuda
from psiphi.runtime.device_arrays import library_of
from psiphi.runtime.launching import SIZE, batch_of, loaded, one_kind, send, views_of
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import PARAMETERS, Argument

_kept: dict[tuple[str, int], Any] = {}  # kernels, by name and card


@dataclass(frozen=True, eq=False)
class CardMachine(Machine):
    """Nobody looks at the state before: its quaternions are scaled to unit length where a motion begins."""

    @cached_property
    def blocks(self) -> Named:
        return super().blocks | {"start": (_start(self.manifold), {})}


def _start(m: Manifold) -> Straight:
    return trace("start", sizes_of(m, "qv"), lambda q, v: {"q": m.unit(q), "Q": m.unit(q), "V": v})


def run(plant: Plant, drive: Drive, plan: Recipe, dt: float, state: dict[str, Any], steps: int, every: int) -> tuple[Any, Any]:
    """q (..., samples, nq) and v (..., samples, nv); `state`: "q", "v" and "tau", those that are arrays of the card."""
    if any(map(on_card, parameters_of(plant.robot))):
        raise StateError("rollout: the parameters are on a graphics card", "give light.at(...) arrays of the host")
    inputs = [Argument("tau" if name == "tau" else f"{name}0", (plant.nq if name == "q" else plant.nv,)) for name in state]
    views = views_of("rollout", inputs, list(state.values()))
    char, device = one_kind("rollout", inputs, views, None)
    batch, strides = batch_of("rollout", inputs, views)
    like = next(iter(state.values()))
    library = library_of("rollout: q0", like)
    places = {name: (view.pointer, stride, 0) for name, view, stride in zip(state, views, strides, strict=True)}
    rest = (
        drive.given()
        | dict(zip([PARAMETERS], parameters_of(plant.robot), strict=False))
        | {"h": np.array([dt]), **({} if "v" in state else {"v": np.zeros(plant.nv)})}
    )
    tables = drive.tables(plan, 0, steps, dt)
    alive = []
    for name, x, core in [*((n, x, 1) for n, x in rest.items() if n not in places), *((n, x, 2) for n, x in tables.items())]:
        rows = _rows(name, np.asarray(x, dtype=char), core, batch)
        alive.append(library.put(like, rows))
        each = math.prod(rows.shape[rows.ndim - core :]) * SIZE[char] if rows.ndim > core else 0
        places[name] = library.view(alive[-1]).pointer, each, rows.shape[-1] * SIZE[char] * (core == 2)
    samples = 1 + steps // every
    made = [library.empty(like, (*batch, samples, size), char) for size in (plant.nq, plant.nv)]
    arrays = [places[name] for name in (*plan.given, *plan.tables)]
    for (_, pointer), size in zip(made, (plant.nq, plant.nv), strict=True):
        arrays.append((pointer, samples * size * SIZE[char], size * SIZE[char]))
    n, stream = math.prod(batch), library.stream(like)
    if n:
        numbers = [x for _, outer, row in arrays for x in (outer, row)]
        code = _kernel(plant.given, plan, char, device)
        send(code, [pointer for pointer, *_ in arrays], [*numbers, n, steps, every], n, stream, device)
    q, v = (library.ready(like, array, stream) for array, _ in made)
    return q, v


def _rows(name: str, x: np.ndarray, core: int, batch: tuple[int, ...]) -> np.ndarray:
    """Numbers of the host: one row (table) for all, or one for every motion."""
    lead, own = x.shape[: x.ndim - core], x.shape[x.ndim - core :]
    if math.prod(lead) == 1:
        return np.ascontiguousarray(x.reshape(own))
    try:
        return np.ascontiguousarray(np.broadcast_to(x, (*batch, *own)))
    except ValueError:
        cause = f"rollout: {name.removeprefix('law.')} has batch axes {lead}, the initial state {batch}"
        raise StateError(cause, "make them equal, 1, or absent") from None


def _kernel(robot: Robot, plan: Recipe, char: str, device: int) -> Any:
    """The kernel, from this process, from the disk, or made now."""
    machine = CardMachine(robot, plan)
    what = [*plan.key, *machine.foreign, cuda.CUDA.key(char)]
    name = cache.key(cache.sources(ROOMS), robot.digest, "card", json.dumps(what), np.__version__)
    if (name, device) not in _kept:
        while len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        built = cache.remember(name, lambda: cuda.CUDA.build(cuda.CUDA.emit(machine.rollout, char), {"flops": machine.flops}))
        _kept[name, device] = loaded(cuda.CUDA.load(built)[0], name, device)
    return _kept[name, device]
