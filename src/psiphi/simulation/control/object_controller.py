"""Control of an object that several arms hold: its motion or impedance, and the contact forces."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import finite_array, frozen, real_array
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.rotations import conjugate, logarithm, multiply, quaternions
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import Turn, add, cross, dot, subtract
from psiphi.robot.mechanisms.dynamics.object_dynamics import HAND, GraspMap, grasp_map
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.control.control_law import Controller, Law, Step, Values
from psiphi.simulation.control.joint_controllers import (
    Source,
    read_gains,
    read_posture,
    value_at,
)
from psiphi.simulation.control.task_space_controller import check_target

MIN_INERTIA = 1e-12  # relative to the largest, and in kg or kg m^2
MOTION, SHAPED, NATURAL = "motion", "shaped", "natural"


class ObjectControl(Controller):
    """Torques that control a held object and the contact forces on it:

        A = A_ref - kd E' - kp E                               the motion of the object, or
        M_d (A - A_ref) + B E' + K E = f                       its impedance
        f_i = f_d,i + W_i A_i (sum A* W A)^-1 (F - sum A* f_d)    contact forces, with the load F

    E = [rotation vector; difference] from the pose of the target to that of the object,
    E' = V - V_ref, A = [w'; v'], in world axes at the origin of the object's frame. `target` is a
    pose (4, 4), or a function of time that returns one, alone, with the velocity [w; v], or with
    velocity and acceleration.

    `kp` and `kd` (100 and 20 by default) make the error obey the first equation exactly.
    `stiffness` K, `damping` B and `inertia` M_d (each a number, six, or 6 x 6) make the object
    yield to wrenches instead. With an `inertia`, it yields to the wrench f that is `measured`;
    without one, to any wrench, and M_d is the inertia of the object together with its arms.
    `measured` (6,), or a function of time, is the external wrench on the object besides contacts
    and gravity, [moment; force] in world axes at its origin.

    `forces` (l, 6), or a function of time, are the desired contact wrenches f_d, each on the body
    of its second frame, in the axes of that frame; the load is added to them. `squeeze` (N) adds
    forces towards the middle of the hands. A contact between the object and the world (a loop to
    it) gets its desired force, and the object moves in the directions that it leaves free. `share`
    are the weights W (l, 6, 6), in the axes of the second frames, or one positive number per
    contact: the relative mass of the part of the object at each hand, whose spatial inertia is W.
    Such weights do not squeeze the object. By default the parts are equal.

    Redundant arms move to a `posture` (nq,) as far as the object leaves them free; without one,
    their motion is damped.

    >>> import numpy as np, psiphi as pp
    >>> case = pp.scenes.load("two_arms")
    >>> cell, q, rest = case.system, case.q0, np.zeros(18)
    >>> control = ObjectControl(cell, cell.frame_pose(q, cell.object), squeeze=40.0)
    >>> a, forces = cell.forward_dynamics(q, rest, control(0.0, q, rest), forces=True)
    >>> bool(abs(a).max() < 1e-9), forces[:, 3].round(3).tolist()
    (True, [40.0, -40.0])
    """

    def __init__(
        self,
        system: System,
        target: Source,
        kp: Numbers | None = None,
        kd: Numbers | None = None,
        *,
        stiffness: Numbers | None = None,
        damping: Numbers | None = None,
        inertia: Numbers | None = None,
        measured: Source | None = None,
        forces: Source | None = None,
        squeeze: float = 0.0,
        share: Numbers | None = None,
        posture: Numbers | None = None,
        posture_kp: Numbers = 10.0,
        posture_kd: Numbers = 6.0,
    ):
        if not isinstance(system, System):
            raise StateError(
                f"ObjectControl of {shown(system)}, expected a closed system", "pp.grasp makes one"
            )
        super().__init__(system)
        grasp = grasp_map(system)
        form, matrices = _read_impedance(kp, kd, stiffness, damping, inertia, measured)
        command = ObjectCommand(
            grasp.joint.q_slice.start, grasp.joint.v_slice.start, form, posture is not None
        )
        self.numbers = {
            **matrices,
            "posture": read_posture(system, posture),
            "posture_kp": read_gains(system, "posture_kp", posture_kp),
            "posture_kd": read_gains(system, "posture_kd", posture_kd),
            "weights": _inverse_weights(grasp, share).reshape(-1),
        }
        squeeze_forces = _squeeze_forces(grasp, squeeze)
        self.reference = ObjectReference(target, measured, forces, squeeze_forces)
        sizes = command.sizes(system.nq, system.nv, 6 * len(system.contacts))
        steps = Step(command, sizes=sizes), Step("object_torque")
        places = ("x_ref", "V_ref", "A_ref", "f_ref", "forces_ref")
        self.law = Law(steps, places, astuple(command))


@dataclass(frozen=True)
class ObjectCommand:
    """The rule for u, the acceleration of all joints, and w, the wrench on the object.

    It runs on any scalars. `q_start` and `v_start` are the indices at which the coordinates of the
    object begin.
    """

    q_start: int
    v_start: int
    form: str
    has_posture: bool

    def sizes(self, nq: int, nv: int, forces: int) -> dict[str, int]:
        """The sizes of the places; `forces` is that of all contact forces."""
        return {
            "q": nq,
            "v": nv,
            "posture": nq,
            "posture_kp": nv,
            "posture_kd": nv,
            "forces_ref": forces,
            "x_ref": 7,
            "V_ref": 6,
            "A_ref": 6,
            "f_ref": 6,
            "inverse_inertia": 36,
            "damping": 36,
            "stiffness": 36,
        }

    def __call__(
        self,
        m: Manifold,
        q,
        v,
        posture,
        posture_kp,
        posture_kd,
        x_ref,
        V_ref,
        A_ref,
        f_ref,
        forces_ref,
        inverse_inertia,
        damping,
        stiffness,
    ) -> Values:
        u = (posture_kp * m.log(q, posture) if self.has_posture else 0.0) - posture_kd * v
        p = entries(q)[self.q_start : self.q_start + 7]
        V_body = entries(v)[self.v_start : self.v_start + 6]
        R, x, f = Turn.from_quaternion(p[3:]), entries(x_ref), entries(f_ref)
        # the rotation from the axes of the target to those of the object
        turn = logarithm(multiply(p[3:], conjugate(x[3:])))[0]
        E = [*turn, *(a - b for a, b in zip(p[:3], x[:3], strict=True))]
        rate = subtract(R.rotate(V_body[:3]) + R.rotate(V_body[3:]), entries(V_ref))
        feedback = add(_matrix_product(damping, rate), _matrix_product(stiffness, E))
        A, w = entries(A_ref), f
        if self.form == NATURAL:
            w = feedback
        else:
            force = (
                [b - a for a, b in zip(feedback, f, strict=True)]
                if self.form == SHAPED
                else [-x for x in feedback]
            )
            A = add(A, _matrix_product(inverse_inertia, force))
        angular, linear = R.unrotate(A[:3]), R.unrotate(A[3:])
        # d/dt of the body velocity
        A_body = [
            *angular,
            *(a - b for a, b in zip(linear, cross(V_body[:3], V_body[3:]), strict=True)),
        ]
        accelerations = entries(u)
        accelerations[self.v_start : self.v_start + 6] = A_body
        return {
            "u": stack_entries(accelerations),
            "w": stack_entries(R.unrotate(w[:3]) + R.unrotate(w[3:])),
            "wanted": forces_ref,
        }


def _matrix_product(matrix: np.ndarray, x: list) -> list:
    """The product of a flat 6 x 6 matrix and six scalars."""
    rows = entries(matrix)
    return [dot(rows[6 * r : 6 * r + 6], x) for r in range(6)]


class ObjectReference:
    """The reference of an object: t -> its pose (7,), velocity and acceleration, the measured
    wrench, and the desired contact forces."""

    def __init__(
        self,
        target: Source,
        measured: Source | None,
        forces: Source | None,
        squeeze_forces: np.ndarray,
    ):
        self.squeeze_forces = squeeze_forces
        self.sources = (
            target,
            np.zeros(6) if measured is None else measured,
            np.zeros_like(squeeze_forces) if forces is None else forces,
        )
        named = zip(("target", "measured wrench", "forces"), self.sources, strict=True)
        first = self._read(*(value_at(name, x) if callable(x) else x for name, x in named))
        self.constant = None if any(map(callable, self.sources)) else tuple(map(frozen, first))

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        return self.constant or self._read(*(x(t) if callable(x) else x for x in self.sources))

    def _read(self, target: object, measured: object, forces: object) -> tuple[np.ndarray, ...]:
        parts = target if isinstance(target, tuple) else (target,)
        if not 1 <= len(parts) <= 3:
            raise StateError(
                f"the target gave {len(parts)} arrays, expected a pose, its velocity and its "
                "acceleration",
                "give one to three",
            )
        pose, *rates = parts
        names = "the target's velocity", "the target's acceleration"
        motion = [
            finite_array(name, x, (6,), "give [w; v]: six numbers")
            for name, x in zip(names, rates, strict=False)
        ]
        motion += [np.zeros(6) for _ in range(2 - len(motion))]
        remedy = "give [moment; force]: six numbers"
        wrench = finite_array("the measured wrench", measured, (6,), remedy)
        count = len(self.squeeze_forces)
        remedy = f"give {count} wrenches [moment; force], one per contact"
        wrenches = finite_array("forces", forces, (count, 6), remedy) + self.squeeze_forces
        flat = wrenches.reshape(*wrenches.shape[:-2], 6 * count)
        return (_pose_coordinates(pose), *motion, wrench, flat)


def _pose_coordinates(pose: object) -> np.ndarray:
    """A pose as position and quaternion."""
    remedy = "give a pose (4, 4), like robot.frame_pose(q, frame)"
    T = finite_array("the target", pose, (4, 4), remedy)
    check_target(T)
    return np.concatenate([T[..., :3, 3], quaternions(T[..., :3, :3])], axis=-1)


def _read_impedance(
    kp: Numbers | None,
    kd: Numbers | None,
    stiffness: Numbers | None,
    damping: Numbers | None,
    inertia: Numbers | None,
    measured: Source | None,
) -> tuple[str, dict[str, np.ndarray]]:
    """The form of the control and its flat matrices: a motion, or an impedance with a given
    inertia or the natural one."""
    impedance = {"stiffness": stiffness, "damping": damping, "inertia": inertia}
    given = [name for name, x in impedance.items() if x is not None]
    if not given:
        B = _read_matrix("kd", 20.0 if kd is None else kd)
        K = _read_matrix("kp", 100.0 if kp is None else kp)
        return MOTION, _flat_matrices(np.eye(6), B, K)
    if kp is not None or kd is not None:
        raise StateError(
            f"{', '.join(given)} is given beside {'kp' if kp is not None else 'kd'}",
            "give kp and kd for an exact motion, or stiffness and damping for an object that "
            "yields",
        )
    if inertia is None and measured is not None:
        raise StateError(
            "measured= is given for an object that yields with its natural inertia",
            "give inertia=, or leave measured= out: the natural inertia needs no measurement",
        )
    M = np.eye(6) if inertia is None else _read_matrix("inertia", inertia)
    if (
        np.linalg.eigvalsh(M).min() <= MIN_INERTIA * np.abs(M).max()
        or np.abs(M).max() < MIN_INERTIA
    ):
        raise StateError(
            f"inertia is {shown(inertia)}, expected a positive definite one",
            "give positive numbers",
        )
    B = np.zeros((6, 6)) if damping is None else _read_matrix("damping", damping)
    K = np.zeros((6, 6)) if stiffness is None else _read_matrix("stiffness", stiffness)
    return NATURAL if inertia is None else SHAPED, _flat_matrices(np.linalg.inv(M), B, K)


def _flat_matrices(M_inv: np.ndarray, B: np.ndarray, K: np.ndarray) -> dict[str, np.ndarray]:
    matrices = {"inverse_inertia": M_inv, "damping": B, "stiffness": K}
    return {name: x.reshape(-1) for name, x in matrices.items()}


def _read_matrix(name: str, value: Numbers) -> np.ndarray:
    """A number, six, or a matrix (6, 6), as a symmetric matrix without negative eigenvalues."""
    x = real_array(name, value, (), "give a number, six, or a matrix (6, 6)")
    if x.shape not in ((), (6,), (6, 6)) or not np.isfinite(x).all():
        raise StateError(
            f"{name} is {shown(value)}, expected a number, six, or a matrix (6, 6)",
            "give one of these",
        )
    matrix = x if x.ndim == 2 else np.eye(6) * x
    size = np.abs(matrix).max()
    if (
        not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-9 * size)
        or np.linalg.eigvalsh(matrix).min() < -1e-9 * size
    ):
        raise StateError(
            f"{name} is {shown(value)}, expected a symmetric matrix without negative eigenvalues",
            "check its signs",
        )
    return matrix


def _inverse_weights(grasp: GraspMap, share: Numbers | None) -> np.ndarray:
    """W^-1 (l, 6, 6) of equal parts at the hands, of parts with the masses `share`, or of `share`
    itself."""
    count, body = len(grasp.closure.constraints), grasp.closure.model.bodies[grasp.body]
    # isotropic, so the same in the axes of every frame
    moment = np.trace(body.inertia) / 3.0
    part = np.diag([moment] * 3 + [body.mass] * 3)
    weights = real_array(
        "share",
        np.ones(count) if share is None else share,
        (),
        "give one number per contact, or (l, 6, 6)",
    )
    if weights.shape == (count,) and (weights > 0.0).all() and np.isfinite(weights).all():
        return np.linalg.inv(weights[:, None, None] * part)
    if weights.shape == (count, 6, 6) and np.isfinite(weights).all():
        symmetric = (weights + np.swapaxes(weights, -1, -2)) / 2
        is_symmetric = np.allclose(symmetric, weights, rtol=1e-9, atol=0.0)
        if is_symmetric and np.linalg.eigvalsh(symmetric).min() > 0.0:
            return np.linalg.inv(symmetric)
    raise StateError(
        f"share is {shown(share)}, expected {count} positive numbers or positive definite "
        f"matrices ({count}, 6, 6)",
        "give one per contact",
    )


def _squeeze_forces(grasp: GraspMap, squeeze: float) -> np.ndarray:
    """(l, 6): forces of this size from each hand towards the middle of all hands, in the axes of
    the frames on the object."""
    size = real_array("squeeze", squeeze, (), "give newtons")
    constraints, model = grasp.closure.constraints, grasp.closure.model
    if size.ndim or not np.isfinite(size):
        raise StateError(f"squeeze is {shown(squeeze)}, expected one finite number", "give newtons")
    out = np.zeros((len(constraints), 6))
    hands = [i for i, role in enumerate(grasp.roles) if role == HAND]
    frames = [model.frame(constraints[i].second) for i in hands]
    if not size:
        return out
    if any(frame.body != grasp.body for frame in frames):
        raise StateError(
            "squeeze is given, but the second frame of some hand is not on the object",
            "give forces= instead: wrenches on the bodies of the second frames",
        )
    points = np.array([frame.pose.translation for frame in frames])
    inward = points.mean(axis=0) - points
    for i, frame, direction in zip(hands, frames, inward, strict=True):
        length = max(float(np.linalg.norm(direction)), 1e-12)
        out[i, 3:] = frame.pose.rotation.T @ (size * direction / length)
    return out
