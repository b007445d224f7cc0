"""Control of an object that several arms hold: its motion or its impedance, and the forces of the contacts."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import finite_array, frozen, real_array
from psiphi.model.spatial.rotations import conjugate, logarithm, multiply, quaternions
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import Turn, add, cross, dot, subtract
from psiphi.robot.mechanisms.dynamics.object_dynamics import HAND, GraspMap, grasp_map
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.control.control_law import Controller, Law, Step, Values
from psiphi.simulation.control.joint_controllers import read_gains, read_posture, value_at_start
from psiphi.simulation.control.task_space_controller import check_target

SMALLEST = 1e-12  # of the largest, and in kg or kg m^2: an inertia below this is none
MOTION, SHAPED, NATURAL = "motion", "shaped", "natural"


class ObjectControl(Controller):
    """The torques that move a held object as wanted, with the contact forces that are wanted:

        A = A_ref - kd E' - kp E                                          the motion of the object
        M_d (A - A_ref) + B E' + K E = f                                  or its impedance: `inertia`, `damping`, `stiffness`
        f_i = f_d,i + W_i A_i (sum A* W A)^-1 (F - sum A* f_d)            the load F of that motion, shared by the contacts

    E = [rotation vector; difference] from the target's pose to the object's, E' = V - V_ref, A = [w'; v']: world axes, of the
    origin of the object's frame. `target`: a pose (4, 4), or a function of time that answers one, alone, with the velocity
    [w; v], or with velocity and acceleration.

    `kp`, `kd` (100, 20 unless given) make the error obey its equation exactly. `stiffness` and `damping` (a number, six, or
    6 x 6) make the object yield to wrenches instead: with an `inertia` M_d, to the wrench f that is `measured`; without one, to
    any wrench f, and M_d is what the object and its arms weigh together. `measured` (6,), or a function of time, is what acts
    on the object besides contacts and gravity, [moment; force] in world axes at its origin.

    `forces` (l, 6), or a function of time, are the contact wrenches that are wanted, each on the body of its second frame, in
    axes of that frame; what the load asks besides is added. `squeeze` (N) adds forces towards the middle of the hands. Where
    the object touches the world (a loop to it), that contact gets what `forces` wants, and the object moves as is left to it.
    `share`: the weights W (l, 6, 6), in axes of the second frames; or one positive number a contact, how heavy is the piece of
    the object at each hand whose spatial inertia is W: these do not squeeze. By default the pieces are equal.

    Arms with joints to spare keep a `posture` (nq,) where the object leaves them freedom; without one they are slowed down.

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
        target: Any,
        kp: Any = None,
        kd: Any = None,
        *,
        stiffness: Any = None,
        damping: Any = None,
        inertia: Any = None,
        measured: Any = None,
        forces: Any = None,
        squeeze: float = 0.0,
        share: Any = None,
        posture: Any = None,
        posture_kp: Any = 10.0,
        posture_kd: Any = 6.0,
    ):
        if not isinstance(system, System):
            raise StateError(
                f"ObjectControl of {shown(system)}, expected a closed system", "pp.grasp makes one"
            )
        super().__init__(system)
        holding = grasp_map(system)
        form, numbers = _form(kp, kd, stiffness, damping, inertia, measured)
        wish = ObjectCommand(
            holding.joint.q_slice.start, holding.joint.v_slice.start, form, posture is not None
        )
        self.numbers = {
            **numbers,
            "posture": read_posture(system, posture),
            "posture_kp": read_gains(system, "posture_kp", posture_kp),
            "posture_kd": read_gains(system, "posture_kd", posture_kd),
            "weights": _weights(holding, share).reshape(-1),
        }
        self.reference = ObjectReference(
            holding, target, measured, forces, _inward(holding, squeeze)
        )
        count = 6 * len(system.contacts)
        steps = Step(wish, sizes=wish.sizes(system.nq, system.nv, count)), Step("object_torque")
        self.law = Law(steps, ("x_ref", "V_ref", "A_ref", "f_ref", "wanted_ref"), astuple(wish))


@dataclass(frozen=True)
class ObjectCommand:
    """u of all joints and w on the object, on any scalars; `at_q` and `at_v`: where its coordinates begin."""

    at_q: int
    at_v: int
    form: str
    postured: bool

    def sizes(self, nq: int, nv: int, wanted: int) -> dict[str, int]:
        own = {
            "q": nq,
            "v": nv,
            "posture": nq,
            "posture_kp": nv,
            "posture_kd": nv,
            "wanted_ref": wanted,
        }
        return own | {
            "x_ref": 7,
            "V_ref": 6,
            "A_ref": 6,
            "f_ref": 6,
            "yields": 36,
            "damps": 36,
            "stiffens": 36,
        }

    def __call__(
        self,
        m,
        q,
        v,
        posture,
        posture_kp,
        posture_kd,
        x_ref,
        V_ref,
        A_ref,
        f_ref,
        wanted_ref,
        yields,
        damps,
        stiffens,
    ) -> Values:
        u = (posture_kp * m.log(q, posture) if self.postured else 0.0) - posture_kd * v
        p, own = entries(q)[self.at_q : self.at_q + 7], entries(v)[self.at_v : self.at_v + 6]
        R, x, f = Turn.from_quaternion(p[3:]), entries(x_ref), entries(f_ref)
        turned = logarithm(multiply(p[3:], conjugate(x[3:])))[
            0
        ]  # from the target's axes to the object's
        E = [*turned, *(a - b for a, b in zip(p[:3], x[:3], strict=True))]
        rate = subtract(R.rotate(own[:3]) + R.rotate(own[3:]), entries(V_ref))
        pull = add(_times(damps, rate), _times(stiffens, E))
        A, w = entries(A_ref), f
        if self.form == NATURAL:
            w = pull
        else:
            given = (
                [b - a for a, b in zip(pull, f, strict=True)]
                if self.form == SHAPED
                else [-x for x in pull]
            )
            A = add(A, _times(yields, given))
        turns, slides = R.unrotate(A[:3]), R.unrotate(A[3:])
        wish = [
            *turns,
            *(a - b for a, b in zip(slides, cross(own[:3], own[3:]), strict=True)),
        ]  # d/dt of body velocities
        whole = entries(u)
        whole[self.at_v : self.at_v + 6] = wish
        return {
            "u": stack_entries(whole),
            "w": stack_entries(R.unrotate(w[:3]) + R.unrotate(w[3:])),
            "wanted": wanted_ref,
        }


def _times(matrix, x: list) -> list:
    rows = entries(matrix)
    return [dot(rows[6 * r : 6 * r + 6], x) for r in range(6)]


class ObjectReference:
    """What is followed, by time: the pose (7,), velocity and acceleration of the object, the measured wrench, wanted forces."""

    def __init__(
        self, holding: GraspMap, target: Any, measured: Any, forces: Any, inward: np.ndarray
    ):
        self.holding, self.inward = holding, inward
        self.given = (
            target,
            np.zeros(6) if measured is None else measured,
            np.zeros_like(inward) if forces is None else forces,
        )
        named = zip(("target", "measured wrench", "forces"), self.given, strict=True)
        first = self._read(
            *(value_at_start(name, given) if callable(given) else given for name, given in named)
        )
        self.constant = None if any(map(callable, self.given)) else tuple(map(frozen, first))

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        return self.constant or self._read(
            *(given(t) if callable(given) else given for given in self.given)
        )

    def _read(self, target: Any, measured: Any, forces: Any) -> tuple[np.ndarray, ...]:
        parts = target if isinstance(target, tuple) else (target,)
        if not 1 <= len(parts) <= 3:
            cause = f"the target gave {len(parts)} arrays, expected a pose, its velocity and its acceleration"
            raise StateError(cause, "give one to three")
        place, *rates = parts
        words = "the target's velocity", "the target's acceleration"
        more = [
            finite_array(name, x, (6,), "[w; v]: six numbers")
            for name, x in zip(words, rates, strict=False)
        ]
        wrench = finite_array(
            "the measured wrench", measured, (6,), "give [moment; force]: six numbers"
        )
        count = len(self.inward)
        wanted = (
            finite_array(
                "forces",
                forces,
                (count, 6),
                f"give {count} wrenches [moment; force], one a contact",
            )
            + self.inward
        )
        flat = wanted.reshape(*wanted.shape[:-2], 6 * count)
        return (_place(place), *more, *(np.zeros(6) for _ in range(2 - len(more))), wrench, flat)


def _place(pose: Any) -> np.ndarray:
    """A pose as position and quaternion."""
    T = finite_array(
        "the target", pose, (4, 4), "give a pose (4, 4), like robot.frame_pose(q, frame)"
    )
    check_target(T)
    return np.concatenate([T[..., :3, 3], quaternions(T[..., :3, :3])], axis=-1)


def _form(
    kp: Any, kd: Any, stiffness: Any, damping: Any, inertia: Any, measured: Any
) -> tuple[str, dict[str, np.ndarray]]:
    """Motion, or impedance with an inertia of one's own or the natural one; and the numbers of each."""
    yielding = {"stiffness": stiffness, "damping": damping, "inertia": inertia}
    came = [name for name, x in yielding.items() if x is not None]
    if not came:
        parts = (
            np.eye(6),
            _square("kd", 20.0 if kd is None else kd),
            _square("kp", 100.0 if kp is None else kp),
        )
        return MOTION, dict(
            zip(("yields", "damps", "stiffens"), (x.reshape(-1) for x in parts), strict=True)
        )
    if kp is not None or kd is not None:
        cause = f"{', '.join(came)} came beside {'kp' if kp is not None else 'kd'}"
        raise StateError(
            cause,
            "give kp and kd for a motion that is kept, or stiffness and damping for an object that yields",
        )
    if inertia is None and measured is not None:
        cause = "a measured wrench came for an object that yields with its natural inertia"
        raise StateError(
            cause, "give inertia=, or leave measured= out: the natural inertia needs no measurement"
        )
    M = np.eye(6) if inertia is None else _square("inertia", inertia)
    if np.linalg.eigvalsh(M).min() <= SMALLEST * np.abs(M).max() or np.abs(M).max() < SMALLEST:
        raise StateError(
            f"inertia is {shown(inertia)}, expected one that is positive definite",
            "give positive numbers",
        )
    B, K = (
        np.zeros((6, 6)) if x is None else _square(name, x)
        for name, x in (("damping", damping), ("stiffness", stiffness))
    )
    numbers = {
        "yields": np.linalg.inv(M).reshape(-1),
        "damps": B.reshape(-1),
        "stiffens": K.reshape(-1),
    }
    return NATURAL if inertia is None else SHAPED, numbers


def _square(name: str, given: Any) -> np.ndarray:
    """A number, six, or a matrix (6, 6), as a matrix: symmetric, and no eigenvalue below zero."""
    x = real_array(name, given, (), "give a number, six, or a matrix (6, 6)")
    if x.shape not in ((), (6,), (6, 6)) or not np.isfinite(x).all():
        raise StateError(
            f"{name} is {shown(given)}, expected a number, six, or a matrix (6, 6)",
            "give one of these",
        )
    matrix = x if x.ndim == 2 else np.eye(6) * x
    size = np.abs(matrix).max()
    if (
        not np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-9 * size)
        or np.linalg.eigvalsh(matrix).min() < -1e-9 * size
    ):
        raise StateError(
            f"{name} is {shown(given)}, expected a symmetric matrix without negative eigenvalues",
            "look at its signs",
        )
    return matrix


def _weights(holding: GraspMap, share: Any) -> np.ndarray:
    """W^-1 (l, 6, 6): of equal pieces at the hands, of pieces that are as heavy as `share` says, or of `share` itself."""
    count, body = len(holding.closure.constraints), holding.closure.model.bodies[holding.body]
    round_ = np.trace(body.inertia) / 3.0
    piece = np.diag(
        [round_] * 3 + [body.mass] * 3
    )  # alike about all axes: in the axes of any frame the same
    given = real_array(
        "share",
        np.ones(count) if share is None else share,
        (),
        "give one number a contact, or (l, 6, 6)",
    )
    if given.shape == (count,) and (given > 0.0).all() and np.isfinite(given).all():
        return np.linalg.inv(given[:, None, None] * piece)
    if given.shape == (count, 6, 6) and np.isfinite(given).all():
        even = (given + np.swapaxes(given, -1, -2)) / 2
        if np.allclose(even, given, rtol=1e-9, atol=0.0) and np.linalg.eigvalsh(even).min() > 0.0:
            return np.linalg.inv(even)
    cause = f"share is {shown(share)}, expected {count} positive numbers or positive definite matrices ({count}, 6, 6)"
    raise StateError(cause, "one a contact")


def _inward(holding: GraspMap, squeeze: Any) -> np.ndarray:
    """(l, 6): forces of the given size from each hand to the middle of all, in axes of the frames on the object."""
    size, model = real_array("squeeze", squeeze, (), "give newtons"), holding.closure.model
    if size.ndim or not np.isfinite(size):
        raise StateError(f"squeeze is {shown(squeeze)}, expected one finite number", "give newtons")
    out = np.zeros((len(holding.closure.constraints), 6))
    hands = [i for i, role in enumerate(holding.roles) if role == HAND]
    grips = [model.frame(holding.closure.constraints[i].second) for i in hands]
    if not size:
        return out
    if any(grip.body != holding.body for grip in grips):
        cause = "squeeze came, and some hand's second frame is not on the object"
        raise StateError(cause, "say forces= instead: wrenches on the bodies of the second frames")
    points = np.array([grip.pose.translation for grip in grips])
    for i, grip, way in zip(hands, grips, points.mean(axis=0) - points, strict=True):
        out[i, 3:] = grip.pose.rotation.T @ (size * way / max(float(np.linalg.norm(way)), 1e-12))
    return out
