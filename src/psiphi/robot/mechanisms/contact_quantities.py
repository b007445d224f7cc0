"""Quantities of contacts: configuration, used friction, and the effective inertia of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import real_array
from psiphi.model.loops.constraints import Friction
from psiphi.model.spatial.rotations import multiply, quaternions
from psiphi.model.spatial.scalar_arrays import on_arrays
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.solve.constraint_solve import deficient_groups
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System


def _frame_rotation(system: System, q: Numbers, frame: str) -> np.ndarray:
    return system.robot.frame_pose(q, frame)[..., :3, :3]


def _contact_index(system: System, contact: int | str) -> int:
    """The index of a contact given by name or index."""
    names = [c.name for c in system.contacts]
    index = names.index(contact) if isinstance(contact, str) and contact in names else contact
    if (
        isinstance(index, bool)
        or not isinstance(index, int | np.integer)
        or not -len(names) <= index < len(names)
    ):
        raise StateError(
            f"no contact {shown(contact)}",
            f"the contacts are {', '.join(names)}; give a name, or an index from 0",
        )
    return int(index)


def configuration_rate(system: System, q: Numbers, v: Numbers, contact: int | str) -> np.ndarray:
    """F(theta) W: half the quaternion product of theta with the angular velocity of frame 1
    relative to frame 2, in axes of frame 2. -> (..., 4)"""
    index = _contact_index(system, contact)
    W, theta = system.contact_rates(q, v)[..., index, :3], configuration(system, q, index)
    spin = np.concatenate([-W, np.zeros((*W.shape[:-1], 1))], axis=-1)
    return 0.5 * on_arrays(multiply, spin, np.broadcast_to(theta, spin.shape))


def configuration(system: System, q: Numbers, contact: int | str) -> np.ndarray:
    """theta, the quaternion of R2* R1 (..., 4)."""
    c = system.contacts[_contact_index(system, contact)]
    (q,) = system.state_arrays(q=q)
    back = np.swapaxes(_frame_rotation(system, q, c.second), -1, -2)
    return quaternions(back @ _frame_rotation(system, q, c.first))


def ratio(system: System, q: Numbers, forces: Numbers) -> np.ndarray:
    """max(|f_t| / (mu f_n), |m_n| / (torsion f_n)) of each contact (..., l).

    Infinite if f_n <= 0; zero for contacts without friction, and for frictionless one-sided ones
    that push.
    """
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
            back = np.swapaxes(_frame_rotation(system, q, c.second), -1, -2)
            out[..., i] = _friction_ratio(c.friction, back, forces[..., i, :])
    return out


def _friction_ratio(friction: Friction, back: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """The ratio of one contact; `back` rotates world axes to those of frame 2."""
    moment, force = (
        (back @ wrench[..., part, None])[..., 0] for part in (slice(0, 3), slice(3, 6))
    )
    n = np.asarray(friction.normal)
    normal = force @ n
    tangential = np.linalg.norm(force - normal[..., None] * n, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        used = tangential / (friction.mu * normal) if friction.mu else np.zeros_like(normal)
        if friction.torsion is not None:
            used = np.maximum(used, np.abs(moment @ n) / (friction.torsion * normal))
    pulled = np.where((normal == 0.0) & ((tangential == 0.0) | (friction.mu == 0.0)), 0.0, np.inf)
    return np.where(np.isnan(normal), np.nan, np.where(normal > 0.0, used, pulled))


def inertias(system: System, q: Numbers, axes: str) -> tuple[np.ndarray, np.ndarray]:
    """M(C) (..., 6, 6), and A* Lambda A of every arm (..., arms, 6, 6): the terms of the hub,
    transformed by J^-1, where V = J v of the object."""
    algebra, body = Algebra(system.closure, trunks=False), system.object
    hub = algebra.hub
    if not body or hub is None or hub.name != body or len(hub.coordinates) != 6:
        raise StateError(
            f"{system.name} is not several arms around one free body",
            "use effective_inertia(q, frame), the inertia of all mechanisms together",
        )
    (q,) = system.state_arrays(q=q)
    own, added, ill_conditioning = system.call_function(
        system.compiled_function("inertias", lambda: system_stages.inertias(algebra)), (q,)
    )
    added = added.reshape(*own.shape[:-2], len(hub.groups), *own.shape[-2:])
    J_inv = np.linalg.inv(system.robot.jacobian(q, body, axes=axes)[..., list(hub.coordinates)])
    J_inv_t = np.swapaxes(J_inv, -1, -2)
    arms = J_inv_t[..., None, :, :] @ added @ J_inv[..., None, :, :]
    singular = ~(ill_conditioning < ILL_CONDITIONED) | np.array(deficient_groups(algebra))
    return J_inv_t @ own @ J_inv, np.where(singular[..., None, None], np.nan, arms)
