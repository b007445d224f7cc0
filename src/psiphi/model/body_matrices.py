"""Joints and bodies as 6-D matrices in public link axes, for one state or a batch: what definitions are written with.

    φ(p, k) and H*(k) of a joint     M(k) of a body     D, G and P⁺ of a joint that carries an articulated inertia P

The joint table is written in canonical axes (z along the joint); here its rows are turned into the link frames as the
model gives them. No gauge, no customisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.model.components import canonical_axes
from psiphi.model.model import WORLD, Body, Joint, Pose
from psiphi.model.spatial.rotations import skew
from psiphi.model.spatial.screw_paths import pose as pose_along

EYE3 = np.eye(3).tolist()


@dataclass(frozen=True)
class Motion:
    """Joint k: the link's pose in its parent (R, p), H* and d/dt H* (..., 6, nv), and (d/dt H*) v (..., 6), in link axes."""

    R: np.ndarray
    p: np.ndarray
    S: np.ndarray
    S_dot: np.ndarray
    rate: np.ndarray

    @property
    def phi(self) -> np.ndarray:
        """φ(parent, k) in link axes: forces from k to its parent."""
        return transmission(self.R, self.p)


def transmission(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """[[I, p~], [0, I]] diag(R, R)."""
    out = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = R
    out[..., :3, 3:] = skew(p) @ R
    return out


def joint_motion(joint: Joint, q: np.ndarray, v: np.ndarray) -> Motion:
    """The joint's own part of q (..., nq) and v (..., nv) -> its motion."""
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    axes = canonical_axes(joint)
    before, after = axes.before, axes.after
    coordinates = list(np.moveaxis(q, -1, 0))
    R, p = pose_along(joint.row.motion(coordinates, axes), EYE3, [0.0, 0.0, 0.0])
    moved = Pose(before @ stacked(R, lead) @ after.T, stacked(p, lead) @ before.T)
    S = turn(after, np.swapaxes(stacked(joint.row.H(coordinates, axes), lead), -1, -2))
    changed = joint_map_rate(joint, q, v)
    S_dot = np.zeros_like(S) if changed is None else changed
    rate = (S_dot @ np.broadcast_to(v, (*lead, v.shape[-1]))[..., None])[..., 0]
    outer = joint.pose
    return Motion(
        outer.rotation @ moved.rotation,
        moved.translation @ outer.rotation.T + outer.translation,
        S,
        S_dot,
        rate,
    )


def joint_map_rate(joint: Joint, q: np.ndarray, *along: np.ndarray) -> np.ndarray | None:
    """The derivative of H* (..., 6, nv) along x, or along x and y, in link axes; None where H is constant."""
    if joint.row.Hdot is None:
        return None
    rule = joint.row.Hdot if len(along) == 1 else joint.row.Hddot
    if rule is None:
        raise StateError(
            f"a {joint.kind} joint tells no second derivative of H",
            "give its row of JOINTS an Hddot",
        )
    axes, lead = (
        canonical_axes(joint),
        np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in along)),
    )
    rows = rule(*(list(np.moveaxis(x, -1, 0)) for x in (q, *along)), axes)
    return turn(axes.after, np.swapaxes(stacked(rows, lead), -1, -2))


def stacked(values, lead: tuple[int, ...]) -> np.ndarray:
    """Nested lists of scalars and batch arrays -> one array (*lead, ...)."""
    if isinstance(values, list | tuple):
        parts = [stacked(x, lead) for x in values]
        return np.stack(parts, axis=len(lead))
    return np.broadcast_to(np.asarray(values, dtype=float), lead)


def turn(R: np.ndarray, X: np.ndarray) -> np.ndarray:
    """diag(R, R) X."""
    return np.concatenate([R @ X[..., :3, :], R @ X[..., 3:, :]], axis=-2)


def spatial_inertia(body: Body) -> np.ndarray:
    """M(k) = [[I, m p~], [-m p~, m]] about the link's origin, I = I_c - m p~ p~."""
    p, m = skew(body.com), body.mass
    return np.block([[body.inertia - m * p @ p, m * p], [-m * p, m * np.eye(3)]])


def across(
    P: np.ndarray, S: np.ndarray, rotor: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(D, G, P⁺) of a joint with H* = S: D = H P H* + J_m, G = P H* D⁻¹, P⁺ = P - G H P; LinAlgError where D is singular."""
    U = P @ S
    D = np.swapaxes(S, -1, -2) @ U + rotor
    G = np.swapaxes(np.linalg.solve(D, np.swapaxes(U, -1, -2)), -1, -2)
    return D, G, P - G @ np.swapaxes(U, -1, -2)


def tip_to_base(
    order: Iterable[int],
    parent: Sequence[int],
    own: Callable[[int], Any],
    step: Callable[[int, Any], Any],
) -> None:
    """x(k) = own(k) + sum_c step(c, x(c)) over the children c of k; `order` has children before their parents.

    The loop over the tree on plain matrices, for definitions and for models that are still being checked: programs have
    theirs in `compiler/sweeps/tree_loop.py`.
    """
    inbox: dict[int, Any] = {}
    for k in order:
        handed = step(k, inbox.pop(k, 0.0) + own(k))
        if parent[k] != WORLD:
            inbox[parent[k]] = inbox.get(parent[k], 0.0) + handed
