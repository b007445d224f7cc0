"""Contacts seen by themselves: their configuration, how much friction they use, and the inertia one feels at what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import real_array
from psiphi.model.spatial.rotations import multiply, quaternions
from psiphi.model.spatial.scalar_arrays import on_arrays
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.solve.constraint_solve import low_groups
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN


def _axes(system: Any, q, frame: str) -> np.ndarray:
    return system.robot.frame_pose(q, frame)[..., :3, :3]


def _numbered(system: Any, contact: int | str) -> int:
    names = [c.name for c in system.contacts]
    number = names.index(contact) if isinstance(contact, str) and contact in names else contact
    if (
        isinstance(number, bool)
        or not isinstance(number, int | np.integer)
        or not -len(names) <= number < len(names)
    ):
        raise StateError(
            f"no contact {shown(contact)}",
            f"contacts are {', '.join(names)}, or their numbers from 0",
        )
    return int(number)


def configuration_rate(system: Any, q, v, contact: int | str) -> np.ndarray:
    """F(theta) W: half the quaternion product of the spin of frame 1 as frame 2 sees it, in its axes, with theta."""
    number = _numbered(system, contact)
    W, theta = system.contact_rates(q, v)[..., number, :3], configuration(system, q, number)
    spin = np.concatenate([-W, np.zeros((*W.shape[:-1], 1))], axis=-1)
    return 0.5 * on_arrays(multiply, spin, np.broadcast_to(theta, spin.shape))


def configuration(system: Any, q, contact: int | str) -> np.ndarray:
    """The quaternion of R2* R1."""
    c = system.contacts[_numbered(system, contact)]
    (q,) = system.state_arrays(q=q)
    return quaternions(np.swapaxes(_axes(system, q, c.second), -1, -2) @ _axes(system, q, c.first))


def ratio(system: Any, q, forces) -> np.ndarray:
    """max(|f_t| / (mu f_n), |m_n| / (torsion f_n)); infinite where f_n <= 0, zero for contacts without
    friction, and for those that slide and push."""
    forces = real_array(
        "forces",
        forces,
        (len(system.contacts), 6),
        "take them from forward_dynamics(..., forces=True)",
    )
    (q,) = system.state_arrays(q=q)
    out = np.zeros((*np.broadcast_shapes(q.shape[:-1], forces.shape[:-2]), len(system.contacts)))
    for i, c in enumerate(system.contacts):
        if c.friction is not None:
            out[..., i] = _used(
                c.friction, np.swapaxes(_axes(system, q, c.second), -1, -2), forces[..., i, :]
            )
    return out


def _used(friction: Any, back: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    moment, force = (
        (back @ wrench[..., part, None])[..., 0] for part in (slice(0, 3), slice(3, 6))
    )
    n = np.asarray(friction.normal)
    normal = force @ n
    sideways = np.linalg.norm(force - normal[..., None] * n, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        used = sideways / (friction.mu * normal) if friction.mu else np.zeros_like(normal)
        if friction.torsion is not None:
            used = np.maximum(used, np.abs(moment @ n) / (friction.torsion * normal))
    pulled = np.where((normal == 0.0) & ((sideways == 0.0) | (friction.mu == 0.0)), 0.0, np.inf)
    return np.where(np.isnan(normal), np.nan, np.where(normal > 0.0, used, pulled))


def inertias(system: Any, q, axes: str) -> tuple[np.ndarray, np.ndarray]:
    """M(C) (..., 6, 6), and A* Lambda A of every arm (..., arms, 6, 6), where V = J v of the object: J^-* . J^-1."""
    algebra, body = Algebra(system.closure, trunks=False), system.object
    hub = algebra.hub
    if not body or hub is None or hub.name != body or len(hub.coordinates) != 6:
        raise StateError(
            f"{system.name} is not several arms around one free body",
            "ask for effective_inertia(q, frame), the inertia of all",
        )
    (q,) = system.state_arrays(q=q)
    own, added, strain = system.call_function(
        system.compiled_function("inertias", lambda: system_stages.inertias(algebra)), (q,)
    )
    added = added.reshape(*own.shape[:-2], len(hub.groups), *own.shape[-2:])
    back = np.linalg.inv(system.robot.jacobian(q, body, axes=axes)[..., list(hub.coordinates)])
    moved = np.swapaxes(back, -1, -2) @ own @ back
    arms = np.swapaxes(back, -1, -2)[..., None, :, :] @ added @ back[..., None, :, :]
    stiff = ~(strain < STRAIN) | np.array(low_groups(algebra))
    return moved, np.where(stiff[..., None, None], np.nan, arms)
