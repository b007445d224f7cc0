"""6-D matrices of joints and bodies in the link frames of the model, for one state or a batch.

    φ(p, k) and H*(k) of a joint
    M(k) of a body
    D, G and P⁺ of a joint that carries the articulated inertia P

The joint table uses canonical axes (z along the joint); here they are rotated into the link frames
of the model. The definitions of the operators use these matrices; compiled code does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util.errors import StateError
from psiphi.model.components import canonical_axes
from psiphi.model.model import WORLD, Body, Joint, Pose
from psiphi.model.spatial.rotations import skew
from psiphi.model.spatial.screw_paths import pose as pose_along

EYE3 = np.eye(3).tolist()


@dataclass(frozen=True)
class JointMotion:
    """The kinematics of joint k in link axes.

    (R, p) is the link's pose in its parent, S = H* and S_dot = d/dt H* (..., 6, nv),
    rate = (d/dt H*) v (..., 6).
    """

    R: np.ndarray
    p: np.ndarray
    S: np.ndarray
    S_dot: np.ndarray
    rate: np.ndarray

    @property
    def phi(self) -> np.ndarray:
        """φ(parent, k) in link axes, which maps forces from link k to its parent."""
        return force_transform(self.R, self.p)


def force_transform(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """[[I, p~], [0, I]] diag(R, R)."""
    out = np.zeros((*np.broadcast_shapes(R.shape[:-2], p.shape[:-1]), 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = R
    out[..., :3, 3:] = skew(p) @ R
    return out


def joint_motion(joint: Joint, q: np.ndarray, v: np.ndarray) -> JointMotion:
    """The kinematics of a joint; q (..., nq) and v (..., nv) are the joint's coordinates only."""
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    axes = canonical_axes(joint)
    before, after = axes.before, axes.after
    coordinates = list(np.moveaxis(q, -1, 0))
    R, p = pose_along(joint.row.motion(coordinates, axes), EYE3, [0.0, 0.0, 0.0])
    inner = Pose(before @ stack_scalars(R, lead) @ after.T, stack_scalars(p, lead) @ before.T)
    S = rotate_spatial(
        after, np.swapaxes(stack_scalars(joint.row.H(coordinates, axes), lead), -1, -2)
    )
    derivative = joint_map_rate(joint, q, v)
    S_dot = np.zeros_like(S) if derivative is None else derivative
    rate = (S_dot @ np.broadcast_to(v, (*lead, v.shape[-1]))[..., None])[..., 0]
    outer = joint.pose
    return JointMotion(
        outer.rotation @ inner.rotation,
        inner.translation @ outer.rotation.T + outer.translation,
        S,
        S_dot,
        rate,
    )


def joint_map_rate(joint: Joint, q: np.ndarray, *along: np.ndarray) -> np.ndarray | None:
    """The derivative of H* (..., 6, nv) along x, or along x and y, in link axes.

    None if H is constant.
    """
    if joint.row.Hdot is None:
        return None
    rule = joint.row.Hdot if len(along) == 1 else joint.row.Hddot
    if rule is None:
        raise StateError(
            f"a {joint.kind} joint has no second derivative of H",
            "give its row of JOINTS an Hddot",
        )
    axes = canonical_axes(joint)
    lead = np.broadcast_shapes(q.shape[:-1], *(x.shape[:-1] for x in along))
    rows = rule(*(list(np.moveaxis(x, -1, 0)) for x in (q, *along)), axes)
    return rotate_spatial(axes.after, np.swapaxes(stack_scalars(rows, lead), -1, -2))


def stack_scalars(values: list | tuple | ArrayLike, lead: tuple[int, ...]) -> np.ndarray:
    """One array (*lead, ...) of nested lists of scalars and batch arrays."""
    if isinstance(values, list | tuple):
        parts = [stack_scalars(x, lead) for x in values]
        return np.stack(parts, axis=len(lead))
    return np.broadcast_to(np.asarray(values, dtype=float), lead)


def rotate_spatial(R: np.ndarray, X: np.ndarray) -> np.ndarray:
    """diag(R, R) X."""
    return np.concatenate([R @ X[..., :3, :], R @ X[..., 3:, :]], axis=-2)


def spatial_inertia(body: Body) -> np.ndarray:
    """M(k) = [[I, m p~], [-m p~, m 1]] about the link's origin, where I = I_c - m p~ p~."""
    p, m = skew(body.com), body.mass
    return np.block([[body.inertia - m * p @ p, m * p], [-m * p, m * np.eye(3)]])


def articulate_joint(
    P: np.ndarray, S: np.ndarray, rotor: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(D, G, P⁺) of a joint with H* = S that carries the articulated inertia P.

    D = H P H* + J_m, G = P H* D⁻¹, P⁺ = P - G H P. LinAlgError if D is singular.
    """
    U = P @ S
    D = np.swapaxes(S, -1, -2) @ U + rotor
    G = np.swapaxes(np.linalg.solve(D, np.swapaxes(U, -1, -2)), -1, -2)
    return D, G, P - G @ np.swapaxes(U, -1, -2)


def tip_to_base(
    order: Iterable[int],
    parent: Sequence[int],
    local: Callable[[int], np.ndarray],
    step: Callable[[int, np.ndarray], np.ndarray],
) -> None:
    """x(k) = local(k) + sum_c step(c, x(c)) over the children c of k.

    `order` has children before their parents. For definitions and for models that are being
    checked; compiled programs use the loop of `compiler/sweeps/tree_loop.py`.
    """
    sums: dict[int, np.ndarray | float] = {}
    for k in order:
        message = step(k, sums.pop(k, 0.0) + local(k))
        if parent[k] != WORLD:
            sums[parent[k]] = sums.get(parent[k], 0.0) + message
