"""`contacts=` and `schedule=` of `pp.OptimalControl`, checked; forces of a contact sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_names, matching_names, real_array
from psiphi.apps.optimal_control.contact_sequence.held_contacts import (
    POINT,
    ROWS,
    HeldContacts,
    HeldFrames,
)
from psiphi.robot.robot import Robot

CONTACTS_REMEDY = 'give names of frames: contacts=["left_foot", "right_foot"]'
MAX_CONTACT_ROWS = 24  # their equations are factored without loops


def read_contacts(robot: Robot, contacts: Any) -> HeldFrames:
    """((frame, "point" or "pose"), ...) of a list of names, or of {name: kind}."""
    if contacts is None:
        return ()
    kinds = contacts if isinstance(contacts, Mapping) else {}
    named: dict[str, str] = {}
    for pattern in as_names("contacts", contacts, "names of frames", CONTACTS_REMEDY):
        kind = kinds.get(pattern, POINT)
        if not isinstance(kind, str) or kind not in ROWS:
            cause = f"contacts: the kind of {pattern!r} is {shown(kind)}, expected point or pose"
            raise StateError(cause, 'give "point" for a foot that may turn, "pose" for a flat one')
        for name in matching_names("frame", pattern, robot.frames, robot.name):
            if robot.frame(name).body < 0:
                cause = f"contacts: the frame {name!r} belongs to the world, which does not move"
                raise StateError(cause, CONTACTS_REMEDY)
            if name in named:
                raise StateError(f"contacts names the frame {name!r} twice", CONTACTS_REMEDY)
            named[name] = kind
    if not named:
        raise StateError("contacts is empty", "leave it out, or name frames")
    rows = sum(len(ROWS[kind]) for kind in named.values())
    if rows > MAX_CONTACT_ROWS:
        cause = f"contacts: {rows} equations, expected at most {MAX_CONTACT_ROWS}"
        raise StateError(cause, 'use fewer contacts, or "point" instead of "pose"')
    return tuple(named.items())


def read_schedule(contacts: HeldFrames, schedule: Any, steps: int) -> np.ndarray | None:
    """(..., steps, contacts), 1.0 where a contact holds; None of a problem without contacts."""
    if not contacts:
        if schedule is not None:
            cause = "solve: schedule is given, and the problem has no contacts"
            raise StateError(cause, "give contacts= to pp.OptimalControl")
        return None
    names = [name for name, _ in contacts]
    remedy = f"give 1 where a contact holds and 0 elsewhere: (..., {steps}, {len(names)})"
    if schedule is None:
        cause = f"solve: the schedule of the contacts {', '.join(names)} is missing"
        raise StateError(cause, remedy)
    if isinstance(schedule, Mapping):
        for name in schedule:
            if name not in names:
                raise StateError(f"schedule: {name!r} is no contact", nearest(name, names))
        missing = [name for name in names if name not in schedule]
        if missing:
            raise StateError(f"schedule: {', '.join(missing)} is missing", "give all contacts")
        rows = [_holds(f"schedule of {x!r}", schedule[x], (steps,), remedy) for x in names]
        return np.stack(np.broadcast_arrays(*rows), axis=-1)
    return _holds("schedule", schedule, (steps, len(names)), remedy)


def _holds(name: str, value: Any, core: tuple[int, ...], remedy: str) -> np.ndarray:
    try:
        is_flag = np.asarray(value).dtype == bool
    except (ValueError, TypeError, RecursionError):  # real_array says what is wrong
        is_flag = False
    array = np.asarray(value, dtype=float) if is_flag else real_array(name, value, (), remedy)
    if array.shape[array.ndim - len(core) :] != core:
        expected = f"(..., {', '.join(map(str, core))})"
        raise StateError(f"{name} has shape {array.shape}, expected {expected}", remedy)
    if not np.isin(array, (0.0, 1.0)).all():
        raise StateError(f"{name} holds numbers other than 0 and 1", remedy)
    return array


def holding_torques(
    robot: Robot, held: HeldContacts, motors: Sequence[int], q: np.ndarray, schedule: np.ndarray
) -> np.ndarray:
    """(B, N, nu): the least torques that, with the forces of the contacts that hold, balance
    gravity at q (B, nq); schedule (B, N, contacts)."""
    count, steps, size = schedule.shape
    g, m = robot.gravity(q), len(motors)
    J = [robot.jacobian(q, frame)[:, list(ROWS[kind])] for frame, kind in held.contacts]
    columns = np.swapaxes(np.concatenate(J, axis=1), -1, -2)
    select = np.broadcast_to(np.eye(robot.nv)[:, list(motors)], (count, robot.nv, m))
    cases, which = np.unique(schedule.reshape(-1, size), axis=0, return_inverse=True)
    rows = [i for i, _ in held.rows]
    found = np.zeros((len(cases), count, m))
    for case, u in zip(cases, found, strict=True):
        inverse = np.linalg.pinv(np.concatenate([select, columns * case[rows]], axis=-1), 1e-9)
        u[:] = np.einsum("bij,bj->bi", inverse[:, :m], g)
    return found[which.reshape(count, steps), np.arange(count)[:, None]]


def wrenches(held: HeldContacts, rows: np.ndarray) -> np.ndarray:
    """(..., contacts, 6) of the rows (..., n) of the forces: moments and forces in world axes."""
    found = np.zeros((*rows.shape[:-1], len(held.contacts), 6))
    for k, (i, row) in enumerate(held.rows):
        found[..., i, row] = rows[..., k]
    return found


def friction_needed(forces: np.ndarray, up: np.ndarray, holds: np.ndarray) -> np.ndarray:
    """|f_t| / f_n of forces (..., 3), infinite where a contact that holds pulls, 0 where it does
    not hold."""
    normal = forces @ up
    across = np.linalg.norm(forces - normal[..., None] * up, axis=-1)
    scale = 1e-9 * np.abs(forces).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(normal > scale, across / normal, np.inf)
    none = (np.abs(forces).max(axis=-1) <= scale) | (holds == 0.0)
    return np.where(none, 0.0, ratio)


def contact_lines(names: Sequence[str], needed: np.ndarray) -> list[str]:
    """A line for each contact: the friction that it needs, and in how many steps it pulls."""
    lines = []
    for name, each in zip(names, np.moveaxis(needed, -1, 0), strict=True):
        pulls = int(np.isinf(each).sum())
        most = float(np.max(each, initial=0.0, where=np.isfinite(each)))
        text = f"contact {name}: needs a friction of {most:.2f}"
        lines.append(text + f", pulls in {pulls} steps" * bool(pulls))
    return lines
