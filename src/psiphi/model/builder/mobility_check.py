"""Can every joint be moved? Exactly when each D(k) of the articulated-inertia sweep is positive definite.

    P(k) = M(k) + sum_children phi P+ phi*,   D = H P H* + armature,   P+ = P - P H* D^-1 H P   (docs/mathematics.md section 4)

A massless body is legal when what it carries, as far as it resists, makes D(k) positive definite. The test runs at a
generic configuration: the rank of D(k) there is its rank almost everywhere, so that one pass is a proof. It is tried near
the neutral configuration and, should rounding have the last word there, once more far from it. Bodies with mass and full
rotational inertia pass without a sweep, since then D(k) >= H M H* > 0, unless sizes are so far apart that rounding decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi._util.errors import SingularError
from psiphi.model.body_matrices import across, joint_motion, spatial_inertia, tip_to_base
from psiphi.model.builder.records import DocumentRecord, JointRecord
from psiphi.model.diagnostics import ReaderReport, SourceLocation
from psiphi.model.manifold import Manifold
from psiphi.model.model import WORLD, Joint, Model

TOLERANCE = (
    1e-12  # the smallest eigenvalue of D, in units of the inertia that could have stood there
)
SMALLEST = 1e-100  # kg m^2 or kg: the smallest D whose inverse is of any use
FULL = 1e-9  # a body is full when its smallest principal moment is this share of the largest
REMEDY = (
    "give the link mass and inertia (in kg and metres), weld the joint (fixed, or pp.load(..., lock=joint)), or give the joint "
    "armature"
)


def check_massless(
    model: Model, joints: Mapping[str, JointRecord] | None = None, log: ReaderReport | None = None
) -> None:
    """A joint that carries no mass and no inertia at all needs armature on every coordinate."""
    heavy = [body.mass > 0.0 or bool(body.inertia.any()) for body in model.bodies]
    for k in range(len(heavy) - 1, -1, -1):
        if heavy[k] and model.joints[k].parent != WORLD:
            heavy[model.joints[k].parent] = True
    for joint, carries in zip(model.joints, heavy, strict=True):
        if joint.modes is None and not carries and not (joint.armature > 0.0).all():
            _refuse(
                joint,
                "nothing that this joint carries has mass or inertia, so no force is needed to move it",
                joints,
                log,
            )


def check_movable(
    model: Model, joints: Mapping[str, JointRecord] | None = None, log: ReaderReport | None = None
) -> None:
    """Raise SingularError naming the first joint, from the tips, whose D(k) is not positive definite."""
    suspect = _suspects(model)
    if not suspect.any():
        return
    needed = suspect.copy()  # a suspect's D needs the P of everything it carries
    for k, joint in enumerate(model.joints):
        needed[k] |= joint.parent != WORLD and needed[joint.parent]
    order = {int(k): bool(suspect[k]) for k in np.flatnonzero(needed)[::-1]}  # tips first
    try:
        _sweep(model, order, 0.2, joints, log)
    except SingularError:
        _sweep(model, order, 2.0, joints, log)


def _sweep(model: Model, suspects: dict[int, bool], spread: float, joints, log) -> None:
    """Tip to base at a random configuration within about `spread` radians or metres of the neutral one."""
    rng = np.random.default_rng(20)
    carried: dict[
        int, np.ndarray
    ] = {}  # the traces (rotational, translational) of what a body carries, were it locked

    def inertia(k: int) -> np.ndarray:
        return spatial_inertia(model.bodies[k])

    def step(k: int, P: np.ndarray) -> Any:
        """D(k), its test, and phi P+ phi* handed to the parent."""
        joint = model.joints[k]
        bends, change = joint.modes is not None, spread * rng.standard_normal(joint.row.nv)
        q = (
            np.zeros(joint.row.nq)
            if bends
            else Manifold.alone(joint.kind).exp(np.array(joint.row.neutral), change)
        )
        motion = joint_motion(joint, q, np.zeros(joint.row.nv))
        phi, H = motion.phi, motion.S.T
        locked = carried.pop(k, 0.0) + _traces(inertia(k))
        if suspects[k] and not bends:
            _test(joint, H @ P @ H.T + np.diag(joint.armature), H, locked, joints, log)
        if joint.parent == WORLD:
            return 0.0
        carried[joint.parent] = carried.get(joint.parent, 0.0) + _traces(phi @ P @ phi.T)
        # places that bend with others: their modal mass was judged as a whole, and here they stand still
        P_plus = P if bends else across(P, motion.S, np.diag(joint.armature))[2]
        return phi @ (0.5 * (P_plus + P_plus.T)) @ phi.T  # else rounding grows along long chains

    with np.errstate(all="ignore"):
        tip_to_base(suspects, model.parent, inertia, step)


def _suspects(model: Model) -> np.ndarray:
    """Bodies without mass or full rotational inertia, unless one coordinate moves them and H M H* > 0 along it."""
    if not model.bodies:
        return np.zeros(0, dtype=bool)
    I = np.array([body.inertia for body in model.bodies])
    J = np.linalg.eigvalsh(I)
    mass = np.array([body.mass for body in model.bodies])
    suspect = ~((mass > SMALLEST) & (J[:, 0] > FULL * J[:, 2]) & (J[:, 0] > SMALLEST))
    if _extreme(model, mass, J):
        return np.ones_like(suspect)
    hinged = np.array(
        [
            k
            for k in np.flatnonzero(suspect)
            if model.joints[k].row.nv == 1 and model.joints[k].modes is None
        ],
        dtype=int,
    )
    if hinged.size:
        suspect[hinged] = ~_resists(model, hinged, mass[hinged], I[hinged])
    return suspect


def _extreme(model: Model, mass: np.ndarray, J: np.ndarray) -> bool:
    """Sizes so far apart that rounding the large may swallow the small: then every D(k) is looked at."""
    reach = np.abs(
        np.array(
            [
                [joint.pose.translation for joint in model.joints],
                [body.com for body in model.bodies],
            ]
        )
    ).max()
    small = J[:, 0][J[:, 0] > 0.0]
    return bool(small.size and max(mass.max() * reach * reach, J.max()) * TOLERANCE > small.min())


def _resists(model: Model, hinged: np.ndarray, mass: np.ndarray, I: np.ndarray) -> np.ndarray:
    """H M H* + armature > 0 for joints with one coordinate: h_w^2 a* (I - m c~ c~) a + h_v^2 m, whatever they carry."""
    joints = [model.joints[k] for k in hinged]
    H = (
        np.array([joint.row.H((0.0,), joint)[0] for joint in joints])[:, [2, 5]] ** 2
    )  # in canonical axes: z entries only
    axis, armature = np.array([j.axis for j in joints]), np.array([j.armature[0] for j in joints])
    com = np.array([model.bodies[k].com for k in hinged])
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
    d = P.diagonal()
    return np.array([d[:3].sum(), d[3:].sum()])


def _test(joint: Joint, D: np.ndarray, H: np.ndarray, locked: np.ndarray, joints, log) -> None:
    """D(k) > 0, each coordinate measured in the inertia it could have met: |h_w|^2 tr I + |h_v|^2 tr M + armature."""
    unit = (H[:, :3] ** 2).sum(1) * locked[0] + (H[:, 3:] ** 2).sum(1) * locked[1] + joint.armature
    root = np.sqrt(np.maximum(unit, SMALLEST))
    scaled = D / np.outer(root, root)
    smallest = np.linalg.eigvalsh(scaled)[0] if np.isfinite(scaled).all() else np.nan
    if not (smallest > TOLERANCE and D.diagonal().min() > SMALLEST):
        text = f"its articulated inertia D is not positive definite (smallest eigenvalue {smallest:.1e} of {unit.max():.1e}): "
        _refuse(
            joint,
            text + "what it carries can be moved without any force, or far too little",
            joints,
            log,
        )


def _refuse(
    joint: Joint, cause: str, joints: Mapping[str, JointRecord] | None, log: ReaderReport | None
) -> None:
    at: SourceLocation = (
        joints[joint.name]
        if joints and joint.name in joints
        else DocumentRecord(f"joint {joint.name!r}")
    )
    (log or ReaderReport()).fail(at, cause, REMEDY, SingularError)
