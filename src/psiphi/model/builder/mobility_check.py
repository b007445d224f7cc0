"""Check that the mass matrix is invertible: each D(k) of the articulated-inertia sweep is positive
definite.

    P(k) = M(k) + sum_children phi P+ phi*
    D = H P H* + armature
    P+ = P - P H* D^-1 H P                   (docs/mathematics.md section 4)

A massless body is allowed if the bodies that it carries make D(k) positive definite. The check runs
at a generic configuration, where the rank of D(k) is its rank almost everywhere, so that one sweep
is a proof. The first sweep is near the neutral configuration; if it fails, which may be due to
rounding, a second one is far from it. Bodies with mass and full rotational inertia need no sweep,
since D(k) >= H M H* > 0, unless sizes differ so widely that rounding decides.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psiphi._util.errors import SingularError
from psiphi.model.body_matrices import articulate_joint, joint_motion, spatial_inertia, tip_to_base
from psiphi.model.builder.records import DocumentRecord, JointRecord
from psiphi.model.diagnostics import ReaderReport, SourceLocation
from psiphi.model.manifold import Manifold
from psiphi.model.model import WORLD, Joint, Model

TOLERANCE = 1e-12  # of the smallest eigenvalue of D, relative to the inertia of a locked subtree
SMALLEST = 1e-100  # kg m^2 or kg: the smallest D that can be inverted
FULL = 1e-9  # an inertia is full if its smallest principal moment is this share of the largest
REMEDY = (
    "give the link mass and inertia (in kg and metres), weld the joint (fixed, or "
    "pp.load(..., lock=joint)), or give the joint armature"
)


def check_massless(
    model: Model, joints: Mapping[str, JointRecord] | None = None, log: ReaderReport | None = None
) -> None:
    """Check that a joint that carries neither mass nor inertia has armature on every coordinate."""
    has_mass = [body.mass > 0.0 or bool(body.inertia.any()) for body in model.bodies]
    for k in range(len(has_mass) - 1, -1, -1):
        if has_mass[k] and model.joints[k].parent != WORLD:
            has_mass[model.joints[k].parent] = True
    for joint, carries in zip(model.joints, has_mass, strict=True):
        if joint.modes is None and not carries and not (joint.armature > 0.0).all():
            cause = (
                "nothing that this joint carries has mass or inertia, "
                "so no force is needed to move it"
            )
            _raise_singular(joint, cause, joints, log)


def check_movable(
    model: Model, joints: Mapping[str, JointRecord] | None = None, log: ReaderReport | None = None
) -> None:
    """Raise a SingularError for the first joint, from the tips, with D(k) not positive definite."""
    to_check = _bodies_to_check(model)
    if not to_check.any():
        return
    needed = to_check.copy()  # D(k) needs P of all descendants of k
    for k, joint in enumerate(model.joints):
        needed[k] |= joint.parent != WORLD and needed[joint.parent]
    order = {int(k): bool(to_check[k]) for k in np.flatnonzero(needed)[::-1]}  # tips first
    try:
        _sweep(model, order, 0.2, joints, log)
    except SingularError:
        _sweep(model, order, 2.0, joints, log)


def _sweep(
    model: Model,
    order: dict[int, bool],
    spread: float,
    joints: Mapping[str, JointRecord] | None,
    log: ReaderReport | None,
) -> None:
    """Tip to base, at a random configuration about `spread` radians or metres from neutral.

    `order` are the bodies, tips first, and whether D(k) is to be checked.
    """
    rng = np.random.default_rng(20)
    # (tr I, tr m 1) of the inertia of the locked subtrees on a body.
    locked: dict[int, np.ndarray] = {}

    def inertia(k: int) -> np.ndarray:
        return spatial_inertia(model.bodies[k])

    def step(k: int, P: np.ndarray) -> np.ndarray:
        """Check D(k), and return phi P+ phi* for the parent."""
        joint = model.joints[k]
        is_node, change = joint.modes is not None, spread * rng.standard_normal(joint.row.nv)
        q = (
            np.zeros(joint.row.nq)
            if is_node
            else Manifold.of_kind(joint.kind).exp(np.array(joint.row.neutral), change)
        )
        motion = joint_motion(joint, q, np.zeros(joint.row.nv))
        phi, H = motion.phi, motion.S.T
        traces = locked.pop(k, 0.0) + _traces(inertia(k))
        if order[k] and not is_node:
            _check_D(joint, H @ P @ H.T + np.diag(joint.armature), H, traces, joints, log)
        if joint.parent == WORLD:
            return np.zeros(())
        locked[joint.parent] = locked.get(joint.parent, 0.0) + _traces(phi @ P @ phi.T)
        # Nodes of a flexible body share modes, whose mass matrix is checked as a whole elsewhere.
        # Here they are rigid.
        P_plus = P if is_node else articulate_joint(P, motion.S, np.diag(joint.armature))[2]
        return phi @ (0.5 * (P_plus + P_plus.T)) @ phi.T  # else rounding grows along long chains

    with np.errstate(all="ignore"):
        tip_to_base(order, model.parent, inertia, step)


def _bodies_to_check(model: Model) -> np.ndarray:
    """A mask (bodies,) of those whose D(k) needs a check.

    These have no mass or no full rotational inertia; not bodies on a joint with one coordinate and
    H M H* > 0.
    """
    if not model.bodies:
        return np.zeros(0, dtype=bool)
    I = np.array([body.inertia for body in model.bodies])
    J = np.linalg.eigvalsh(I)
    mass = np.array([body.mass for body in model.bodies])
    to_check = ~((mass > SMALLEST) & (J[:, 0] > FULL * J[:, 2]) & (J[:, 0] > SMALLEST))
    if _sizes_differ_widely(model, mass, J):
        return np.ones_like(to_check)
    one_axis = np.array(
        [
            k
            for k in np.flatnonzero(to_check)
            if model.joints[k].row.nv == 1 and model.joints[k].modes is None
        ],
        dtype=int,
    )
    if one_axis.size:
        to_check[one_axis] = ~_has_own_inertia(model, one_axis, mass[one_axis], I[one_axis])
    return to_check


def _sizes_differ_widely(model: Model, mass: np.ndarray, J: np.ndarray) -> bool:
    """Whether rounding of large inertias may exceed small ones: then all D(k) are checked."""
    translations = [joint.pose.translation for joint in model.joints]
    reach = np.abs(np.array([translations, [body.com for body in model.bodies]])).max()
    small = J[:, 0][J[:, 0] > 0.0]
    return bool(small.size and max(mass.max() * reach * reach, J.max()) * TOLERANCE > small.min())


def _has_own_inertia(
    model: Model, bodies: np.ndarray, mass: np.ndarray, I: np.ndarray
) -> np.ndarray:
    """Whether H M H* + armature > 0 for bodies on joints with one coordinate.

    H M H* = h_w^2 a* (I - m c~ c~) a + h_v^2 m, where a is the axis.
    """
    joints = [model.joints[k] for k in bodies]
    # In canonical axes, only the z entries of H are not zero.
    H = np.array([joint.row.H((0.0,), joint)[0] for joint in joints])[:, [2, 5]] ** 2
    axis, armature = np.array([j.axis for j in joints]), np.array([j.armature[0] for j in joints])
    com = np.array([model.bodies[k].com for k in bodies])
    arm = np.cross(axis, com)
    D = (
        H[:, 0] * (np.einsum("ki,kij,kj->k", axis, I, axis) + mass * (arm**2).sum(1))
        + H[:, 1] * mass
        + armature
    )
    scale = (
        H[:, 0] * (np.trace(I, axis1=1, axis2=2) + 2.0 * mass * (com**2).sum(1))
        + 3.0 * H[:, 1] * mass
        + armature
    )
    return np.minimum(D - FULL * scale, D - SMALLEST) > 0.0


def _traces(P: np.ndarray) -> np.ndarray:
    """The traces of the rotational and the translational block."""
    d = P.diagonal()
    return np.array([d[:3].sum(), d[3:].sum()])


def _check_D(
    joint: Joint,
    D: np.ndarray,
    H: np.ndarray,
    traces: np.ndarray,
    joints: Mapping[str, JointRecord] | None,
    log: ReaderReport | None,
) -> None:
    """Check D(k) > 0, scaled by the inertia of the locked subtree.

    The scale of a coordinate is |h_w|^2 tr I + |h_v|^2 tr M + armature.
    """
    scale = (H[:, :3] ** 2).sum(1) * traces[0] + (H[:, 3:] ** 2).sum(1) * traces[1] + joint.armature
    root = np.sqrt(np.maximum(scale, SMALLEST))
    scaled = D / np.outer(root, root)
    smallest = np.linalg.eigvalsh(scaled)[0] if np.isfinite(scaled).all() else np.nan
    if not (smallest > TOLERANCE and D.diagonal().min() > SMALLEST):
        cause = (
            "its articulated inertia D is not positive definite (smallest eigenvalue "
            f"{smallest:.1e} of {scale.max():.1e}): it moves without force, or with too little"
        )
        _raise_singular(joint, cause, joints, log)


def _raise_singular(
    joint: Joint, cause: str, joints: Mapping[str, JointRecord] | None, log: ReaderReport | None
) -> None:
    where: SourceLocation = DocumentRecord(f"joint {joint.name!r}")
    if joints and joint.name in joints:
        where = joints[joint.name]
    (log or ReaderReport()).fail(where, cause, REMEDY, SingularError)
