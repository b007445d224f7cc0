"""MeasuredRows motions as rows of a linear system: tau = Y pi, and wrenches through joints beside them.

Every row (a joint's torque, a wrench's component) has a noise of its own; a sample has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import batch_axes, read
from psiphi.model.parameters.free_parameters import INERTIA
from psiphi.model.state_checks import check_order
from psiphi.robot.identification.base_parameters import (
    BaseParameters,
    base_of,
    checked_words,
    motions,
    parameter_names,
    parameters,
)

WRENCH = ("Mx", "My", "Mz", "Fx", "Fy", "Fz")


@dataclass(frozen=True)
class MeasuredRows:
    """Y (samples, rows, n) and y (samples, rows) with y = Y pi, and the names of the rows."""

    Y: np.ndarray
    y: np.ndarray
    rows: tuple[str, ...]
    base: BaseParameters
    words: tuple[str, ...]


def rms(x: np.ndarray) -> np.ndarray:
    """The root mean square of each row over the samples, whose squares may be no floating-point numbers."""
    largest = np.abs(x).max(axis=0)
    return largest * np.sqrt(((x / np.where(largest > 0.0, largest, 1.0)) ** 2).mean(axis=0))


def measured(
    robot: Any, q: Any, v: Any, a: Any, tau: Any, more: Any, wrenches: Any
) -> MeasuredRows:
    """The data as they were given, checked and stacked."""
    if robot.freed is not None:
        raise StateError(
            f"identify: numbers of {robot.name} are inputs", "give the robot before `free`"
        )
    if not robot.nv:
        raise StateError(
            f"identify: nothing of {robot.name} moves", 'pp.load(..., base="free") lets it fly'
        )
    words, links = checked_words(more), _links(robot, wrenches)
    state = _samples(robot, q, v, a, tau, wrenches)
    q, v, a, tau = (state.pop(name) for name in ("q", "v", "a", "tau"))
    Y, y = [robot.regressor(q, v, a, more=words)], [tau - _rotors(robot, q, v, a, words)]
    names = [*robot.velocity_names]
    for link, wrench in state.items():
        Y.append(_padded(robot.wrench_regressor(q, v, a, link), Y[0].shape[-1]))
        y.append(wrench)
        names += [f"{link}.{x}" for x in WRENCH]
    return MeasuredRows(
        np.concatenate(Y, axis=-2),
        np.concatenate(y, axis=-1),
        tuple(names),
        seen(robot, words, links),
        words,
    )


def _rotors(
    robot: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray, words: tuple[str, ...]
) -> np.ndarray:
    """What rotors need that are no parameters: the torques of a robot without mass, less what armature's columns say."""
    if robot.embedding is None or not robot.embedding.loops:
        return np.zeros_like(a) if "armature" in words else robot.armature * a
    light = robot.free("inertia")
    spinning = light.inverse_dynamics(q, v, a, parameters=np.zeros(light.freed.size))
    return spinning - robot.armature * a if "armature" in words else spinning


def seen(robot: Any, words: tuple[str, ...], links: tuple[str, ...]) -> BaseParameters:
    """The combinations that torques, and wrenches through these links' joints, can tell."""
    if not links:
        return robot.base_parameters(more=words)
    names, rng = parameter_names(robot, words), np.random.default_rng(0)
    q, v, a = motions(robot, rng, 2 + 2 * len(names) // max(1, robot.nv))
    Y = [robot.regressor(q, v, a, more=words)]
    Y += [_padded(robot.wrench_regressor(q, v, a, link), len(names)) for link in links]
    own = np.concatenate([parameters(robot), *(getattr(robot, word) for word in words)])
    return base_of(names, np.concatenate(Y, axis=-2).reshape(-1, len(names)), own)


def _padded(W: np.ndarray, width: int) -> np.ndarray:
    """Wrenches through joints know nothing of rotors and losses."""
    return np.concatenate([W, np.zeros((*W.shape[:-1], width - W.shape[-1]))], axis=-1)


def _links(robot: Any, wrenches: Any) -> tuple[str, ...]:
    if wrenches is None:
        return ()
    if not isinstance(wrenches, Mapping):
        raise StateError(
            f"wrenches is {shown(wrenches)}, expected {{link: (..., 6)}}", "give a dict"
        )
    known = [body.name for body in robot.bodies]
    for link in wrenches:
        if link not in known:
            raise StateError(
                f"identify: wrenches of {shown(link)}, which is no moving link",
                nearest(link, known),
            )
    return tuple(wrenches)


def _samples(robot: Any, q: Any, v: Any, a: Any, tau: Any, wrenches: Any) -> dict[str, np.ndarray]:
    """All arrays (samples, n), finite."""
    sizes = {"q": (q, robot.nq), "v": (v, robot.nv), "a": (a, robot.nv), "tau": (tau, robot.nv)}
    sizes |= {link: (wrench, 6) for link, wrench in (wrenches or {}).items()}
    found = {}
    for name, (given, size) in sizes.items():
        array, fault = read(given, (size,))
        if fault:
            raise StateError(
                f"identify: {name} {fault}",
                f"give {size} numbers in the last axis, samples in front",
            )
        check_order(robot, f"identify: {name}", given, "q" if name == "q" else "v")
        found[name] = array.astype(float, copy=False)
    lead = batch_axes("identify, samples", {name: x.shape[:-1] for name, x in found.items()})
    for name in found.keys() - {
        "q",
        "v",
        "a",
    }:  # one velocity may be that of all samples, one torque is no measurement
        if found[name].shape[:-1] != lead:
            cause = f"identify: {name} has shape {found[name].shape}, expected {(*lead, found[name].shape[-1])}"
            raise StateError(cause, "give what was measured in every sample")
    out = {
        name: np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1])
        for name, x in found.items()
    }
    for name, x in out.items():
        bad = np.flatnonzero(~np.isfinite(x).all(axis=-1))
        if len(bad):
            raise StateError(
                f"identify: {name} of sample {bad[0]} is not finite", "leave such samples out"
            )
    least = len(INERTIA) * len(robot.bodies) // max(1, robot.nv) + 1
    if len(out["q"]) < least:
        raise StateError(
            f"identify: {len(out['q'])} samples came, expected at least {least}", "measure longer"
        )
    return out
