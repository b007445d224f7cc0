"""A third opinion that can take complex steps: dynamics in 4x4 matrices, after Uicker (1965) and
Kahn (1969).

A body is its second moments J = ∫ r r* dm of points r = (x, y, z, 1), a 4x4 matrix; T(k) takes its
points to the world. With T_i the change of T along the tangent vector e_i and T'' the acceleration
along the motion, the power of all points is

    M_ij  = sum_k tr T_i J T_j* + rotors
    tau_i = sum_k tr T_i J (T'' - [0 | g])* + rotor a_i - wrenches
    C(y)z = sum_k tr T_i J (T_yz)*
    T_yz: first along z, then the base point moves along y

No spatial vectors, no frames but the links as they were built (welded ones too), no sweeps: nothing
is shared with psiphi but the numbers of the model. Everything is analytic in the tangent vector x
that q is moved by and in v, a, tau and f_ext (transposes, never adjoints; no norm, no branch), so
Im f(x + i 1e-30 d) / 1e-30 is the derivative along d, to the last digit. Arrays have any leading
axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi.model.model import Model

STEP = 1e-30  # of a complex step: nothing is subtracted, so nothing is lost
TERMS = 30  # of an exponential series: half a turn, to the last digit


def twist(w, u) -> np.ndarray:
    """(..., 3), (..., 3) -> (..., 4, 4): what takes a point r to its velocity w × r + u."""
    w, u = np.broadcast_arrays(w, u)
    out = np.zeros((*w.shape[:-1], 4, 4), dtype=w.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., k, j], out[..., j, k] = w[..., i], -w[..., i]
        out[..., i, 3] = u[..., i]
    return out


def screw(axis, turn: float, slide: float) -> np.ndarray:
    return twist(turn * np.asarray(axis), slide * np.asarray(axis))


def exponential(X: np.ndarray) -> np.ndarray:
    out = term = np.broadcast_to(np.eye(4), X.shape)
    for n in range(1, TERMS):
        term = term @ X / n
        out = out + term
    return out


def placed(rotation, translation) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = np.reshape(rotation, (3, 3)), translation
    return out


def turned(quaternion) -> np.ndarray:
    """x, y, z, w of any length -> 4x4: half a turn squared, as every rotation by a quaternion."""
    x, y, z, w = np.asarray(quaternion) / np.sqrt(np.sum(np.square(quaternion)))
    U = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return placed(np.eye(3) + 2.0 * w * U + 2.0 * U @ U, np.zeros(3))


@dataclass(frozen=True)
class Jet:
    """A matrix, its changes along y and along z, and the change along y of that along z."""

    at: np.ndarray
    y: np.ndarray
    z: np.ndarray
    yz: np.ndarray

    def __matmul__(self, b: Jet) -> Jet:
        a = self
        both = a.yz @ b.at + a.y @ b.z + a.z @ b.y + a.at @ b.yz
        return Jet(a.at @ b.at, a.y @ b.at + a.at @ b.y, a.z @ b.at + a.at @ b.z, both)


def still(T: np.ndarray) -> Jet:
    return Jet(T, *(np.zeros((4, 4)),) * 3)


def group(generators, x, y, z) -> Jet:
    """exp(x)(1 + y)(1 + z): tangent vectors of a group, in body axes."""
    X, Y, Z = (np.einsum("...i,iab->...ab", s, generators) for s in (x, y, z))
    E = exponential(X)
    return Jet(E, E @ Y, E @ Z, E @ Y @ Z)


LINES = np.array([twist(np.zeros(3), e) for e in np.eye(3)])
TURNS = np.array([twist(e, np.zeros(3)) for e in np.eye(3)])


def one_by_one(*screws):
    """Coordinates that are added to: a product of exponentials, each of its own generator."""

    def motion(q, x, y, z) -> Jet:
        out = still(np.eye(4))
        for i, S in enumerate(screws):
            out = (
                out
                @ still(exponential(q[i] * S))
                @ group(S[None], x[..., i : i + 1], y[..., i : i + 1], z[..., i : i + 1])
            )
        return out

    return motion


def together(place, generators):
    """Coordinates q of a place in a group, moved by tangent vectors in body axes."""
    return lambda q, x, y, z: still(place(q)) @ group(generators, x, y, z)


def planar(joint):
    across, normal = joint.axis2, joint.axis
    C = np.column_stack([across, np.cross(normal, across), normal])
    moves = np.array([screw(normal, 1.0, 0.0), screw(C[:, 0], 0.0, 1.0), screw(C[:, 1], 0.0, 1.0)])

    def place(q):
        return placed(np.eye(3), C[:, :2] @ q[:2]) @ exponential(q[2] * moves[0])

    return together(place, moves)


KINDS = {
    "revolute": lambda j: one_by_one(screw(j.axis, 1.0, 0.0)),
    "continuous": lambda j: one_by_one(screw(j.axis, 1.0, 0.0)),
    "prismatic": lambda j: one_by_one(screw(j.axis, 0.0, 1.0)),
    "helical": lambda j: one_by_one(screw(j.axis, 1.0, j.pitch)),
    "cylindrical": lambda j: one_by_one(screw(j.axis, 1.0, 0.0), screw(j.axis, 0.0, 1.0)),
    "universal": lambda j: one_by_one(screw(j.axis, 1.0, 0.0), screw(j.axis2, 1.0, 0.0)),
    "spherical": lambda j: together(turned, TURNS),
    "planar": planar,
    "free": lambda j: together(
        lambda q: placed(np.eye(3), q[:3]) @ turned(q[3:]), np.concatenate([TURNS, LINES])
    ),
}


def moments(mass: float, com, inertia) -> np.ndarray:
    """∫ r r* dm, of the inertia about the centre of mass (ixx, ixy, ixz, iyy, iyz, izz)."""
    xx, xy, xz, yy, yz, zz = inertia
    I, r = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), np.append(com, 1.0)
    out = mass * np.outer(r, r)
    out[:3, :3] += 0.5 * np.trace(I) * np.eye(3) - I
    return out


def spin(X: np.ndarray) -> np.ndarray:
    """The vector of a skew matrix: of w~ it is w."""
    return 0.5 * np.stack(
        [X[..., 2, 1] - X[..., 1, 2], X[..., 0, 2] - X[..., 2, 0], X[..., 1, 0] - X[..., 0, 1]],
        axis=-1,
    )


def _t(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


class Placed:
    """All links of a robot at q ⊕ x: each with its second moments and its `Jet` along y and z."""

    def __init__(self, robot: Homogeneous, x, y, z):
        self.robot, self.links = robot, {"world": still(np.eye(4))}
        x, y, z = (np.asarray(s) for s in (x, y, z))
        for name, above, place, own, motion in robot.chain:
            jet = self.links[above] @ still(place)
            if motion is not None:
                v = robot.model.joint(own).v_slice
                jet = jet @ motion(
                    robot.q[robot.model.joint(own).q_slice], x[..., v], y[..., v], z[..., v]
                )
            self.links[name] = jet

    def sum(self, what):
        """The sum over all bodies of what(jet, J)."""
        return sum(
            what(jet, self.robot.moments[name])
            for name, jet in self.links.items()
            if name in self.robot.moments
        )

    def frame(self, name: str) -> Jet:
        link, place = self.robot.frames[name]
        return self.links[link] @ still(place)


class Homogeneous:
    """A robot at the configuration q; its functions take x first, the tangent vector that q is
    moved by."""

    def __init__(self, model: Model, q):
        assert model.description is not None
        self.model, self.q, built = model, np.asarray(q, dtype=float), model.description
        carriers = {joint.child: joint for joint in built.joints}
        self.chain, known = [], {"world"}
        while len(known) <= len(built.links):
            for link in built.links:
                joint = carriers.get(link.name)
                above = "world" if joint is None else joint.parent
                if link.name not in known and above in known:
                    place = np.eye(4) if joint is None else placed(*joint.place)
                    moves = joint is not None and joint.kind != "fixed"
                    motion = KINDS[joint.kind](model.joint(joint.name)) if moves else None
                    self.chain.append(
                        (link.name, above, place, joint.name if moves else "", motion)
                    )
                    known.add(link.name)
        fast = self._welded()
        self.moments = {
            x.name: moments(x.mass, x.com, x.inertia) for x in built.links if x.name not in fast
        }
        self.outboard = [self._outboard(body.name) for body in model.bodies]
        self.frames = {name: (name, np.eye(4)) for name in known}
        self.frames |= {frame.name: (frame.link, placed(*frame.place)) for frame in built.frames}
        self.rotors = np.concatenate([np.zeros(0), *(j.armature for j in model.joints)])
        self.g = np.zeros((4, 4))
        self.g[:3, 3] = model.gravity_vector

    def _welded(self) -> set[str]:
        """Links that never move: their masses are the ground's."""
        found = {"world"}
        for name, above, _, own, _ in self.chain:
            found |= {name} if not own and above in found else set()
        return found

    def _outboard(self, name: str) -> list[str]:
        """A link and all that hangs on it."""
        found = [name]
        for link, above, *_ in self.chain:
            found += [link] if above in found else []
        return found

    # -- where things are, and how they move -------------------------------------------------------

    def along(self, x, y=None, z=None) -> Placed:
        none = np.zeros(self.model.nv)
        return Placed(self, x, none if y is None else y, none if z is None else z)

    def columns(self, x) -> Placed:
        """Along every unit vector: one more axis, the last of the leading ones."""
        return self.along(np.asarray(x)[..., None, :], np.eye(self.model.nv))

    def frame_pose(self, x, frame, axes="world"):
        return self.along(x).frame(frame).at

    def frame_velocity(self, x, v, frame, axes="world"):
        return _velocity(self.along(x, v).frame(frame), axes)

    def jacobian(self, x, frame, axes="world"):
        return _t(_velocity(self.columns(x).frame(frame), axes))

    def frame_acceleration(self, x, v, a, frame, axes="world"):
        """d/dt of the frame's velocity: of R' R* and p', and of R* times them in the frame's own
        axes."""
        jet, more = self.along(x, v, v).frame(frame), self.along(x, a).frame(frame)
        T2 = jet.yz + more.y
        R, R1, R2 = (X[..., :3, :3] for X in (jet.at, jet.y, T2))
        w, u = spin(R1 @ _t(R)), jet.y[..., :3, 3]
        w1, u1 = spin(R2 @ _t(R) + R1 @ _t(R1)), T2[..., :3, 3]
        if axes == "frame":
            w1, u1 = (_into(R, y1) + _into(R1, y) for y, y1 in ((w, w1), (u, u1)))
        return np.concatenate([w1, u1], axis=-1)

    def frame_imu(self, x, v, a, frame, axes="frame"):
        """The angular velocity and p'' - g, both in the frame's own axes."""
        jet, more = self.along(x, v, v).frame(frame), self.along(x, a).frame(frame)
        R = jet.at[..., :3, :3]
        rise = jet.yz[..., :3, 3] + more.y[..., :3, 3] - self.g[:3, 3]
        return np.concatenate([_into(R, spin(jet.y[..., :3, :3] @ _t(R))), _into(R, rise)], axis=-1)

    def link_accelerations(self, x, v, a):
        """Of the origin of every moving body, in its axes, less gravity."""
        bent, more = self.along(x, v, v), self.along(x, a)
        found = []
        for body in self.model.bodies:
            T, T1, T2 = (
                bent.links[body.name].at,
                bent.links[body.name].y,
                self._acceleration(bent, more, body.name),
            )
            R, R1, R2 = (X[..., :3, :3] for X in (T, T1, T2))
            found.append(
                np.concatenate(
                    [_into(R, spin(R2 @ _t(R) + R1 @ _t(R1))), _into(R, T2[..., :3, 3])], axis=-1
                )
            )
        return np.stack(found, axis=-2)

    def center_of_mass(self, x):
        total = self.along(x).sum(lambda T, J: (T.at @ J)[..., :, 3])
        return total[..., :3] / total[..., 3:]

    # -- energy and momentum -----------------------------------------------------------------------

    def kinetic_energy(self, x, v):
        moving = self.along(x, v).sum(lambda T, J: np.einsum("...ij,jk,...ik->...", T.y, J, T.y))
        return 0.5 * (moving + (self.rotors * v * v).sum(-1))

    def potential_energy(self, x):
        return -self.along(x).sum(
            lambda T, J: np.einsum("i,...i->...", self.g[:, 3], (T.at @ J)[..., :, 3])
        )

    def energy(self, x, v):
        return self.kinetic_energy(x, v) + self.potential_energy(x)

    def momentum(self, x, v):
        return _momentum(self.along(x, v))

    def centroidal_momentum(self, x, v):
        return self._about_the_centre(x, self.momentum(x, v))

    def centroidal_momentum_matrix(self, x):
        return _t(self._about_the_centre(np.asarray(x)[..., None, :], _momentum(self.columns(x))))

    def _about_the_centre(self, x, h):
        n, p = h[..., :3], h[..., 3:]
        return np.concatenate([n - _cross(self.center_of_mass(x), p), p], axis=-1)

    # -- dynamics ----------------------------------------------------------------------------------

    def mass_matrix(self, x):
        bodies = self.columns(x).sum(lambda T, J: np.einsum("...iab,bc,...jac->...ij", T.y, J, T.y))
        return bodies + np.diag(self.rotors)

    def mass_matrix_inverse(self, x):
        return np.linalg.inv(self.mass_matrix(x))

    def mass_product(self, x, a):
        return _times(self.mass_matrix(x), a)

    def mass_matrix_factors(self, x):
        """M = L D L*, block by block from the last joint: L upper triangular with identities, D a
        block a joint."""
        M = self.mass_matrix(x)
        L, D = np.zeros_like(M) + np.eye(self.model.nv), np.zeros_like(M)
        for joint in reversed(self.model.joints):
            own = joint.v_slice
            D[..., own, own] = M[..., own, own]
            L[..., : own.start, own] = M[..., : own.start, own] @ np.linalg.inv(D[..., own, own])
            M = M - L[..., :, own] @ D[..., own, own] @ _t(L[..., :, own])
        return L, D

    def factor_product(self, x, y):
        L, D = self.mass_matrix_factors(x)
        return _times(L, y), _times(D, y)

    def mass_solve(self, x, tau):
        return _solved(self.mass_matrix(x), tau)

    def mass_log_det(self, x):
        return np.log(np.linalg.det(self.mass_matrix(x)))

    def _felt(self, x, accelerations, wrenches=None, frames=(), axes="world"):
        """sum tr T_i J A*, less the power of wrenches, for accelerations A (jet name -> matrix)."""
        columns = self.columns(x)
        out = sum(
            np.einsum("...iab,bc,...ac->...i", columns.links[name].y, J, accelerations(name))
            for name, J in self.moments.items()
        )
        for i, frame in enumerate(frames):
            V = _velocity(columns.frame(frame), axes)  # (..., nv, 6)
            out = out - _times(V, wrenches[..., i, :])
        return out

    def inverse_dynamics(self, x, v, a, f_ext=None, frames=(), axes="world"):
        bent, more = self.along(x, v, v), self.along(x, a)
        torque = self._felt(
            x, lambda name: self._acceleration(bent, more, name), f_ext, frames, axes
        )
        return torque + self.rotors * a

    def joint_torques(self, x, v, a, **given):
        """What passes through the joints: without what turns the rotors."""
        return self.inverse_dynamics(x, v, a, **given) - self.rotors * a

    def _acceleration(self, bent: Placed, more: Placed, name: str):
        """T'' - [0 | g] along the motion: of v twice, and of a."""
        return bent.links[name].yz + more.links[name].y - self.g

    def joint_forces(self, x, v, a):
        """[moment; force] of all that a joint carries, about its body's origin in its axes."""
        bent, more = self.along(x, v, v), self.along(x, a)
        found = []
        for k, body in enumerate(self.model.bodies):
            T = bent.links[body.name].at
            n, f = 0.0, 0.0
            for name in self.outboard[k]:
                A, J = self._acceleration(bent, more, name), self.moments[name]
                f = f + (A @ J)[..., :3, 3]
                n = n - 2.0 * spin((bent.links[name].at @ J @ _t(A))[..., :3, :3])
            n = n - _cross(T[..., :3, 3], f)
            found.append(np.concatenate([_into(T[..., :3, :3], y) for y in (n, f)], axis=-1))
        return np.stack(found, axis=-2)

    def bias(self, x, v):
        return self.inverse_dynamics(x, v, np.zeros(self.model.nv))

    def gravity(self, x):
        return self.bias(x, np.zeros(self.model.nv))

    def forward_dynamics(self, x, v, tau, f_ext=None, frames=(), axes="world"):
        rest = self.inverse_dynamics(x, v, np.zeros(self.model.nv), f_ext, frames, axes)
        return _solved(self.mass_matrix(x), tau - rest)

    def coriolis_product(self, x, v, z):
        bent = self.along(x, v, z).links
        return self._felt(x, lambda name: bent[name].yz)

    def coriolis(self, x, v):
        eye, x, v = np.eye(self.model.nv), np.asarray(x)[..., None, :], np.asarray(v)[..., None, :]
        return _t(self.coriolis_product(x, v, eye))

    def operational_compliance(self, x, frame, axes="world"):
        J = self.jacobian(x, frame, axes)
        return J @ np.linalg.solve(self.mass_matrix(x), _t(J))

    def operational_space_inertia(self, x, frame, axes="world"):
        """Its inverse; of least norm where fewer coordinates than six carry the frame, J of their
        number as its rank."""
        carriers = self._carriers(self.frames[frame][0])
        if len(carriers) >= 6:
            return np.linalg.inv(self.operational_compliance(x, frame, axes))
        J = self.jacobian(x, frame, axes)[..., carriers]
        X = np.linalg.solve(_t(J) @ J, _t(J))
        Y = self.mass_matrix_inverse(x)[..., carriers, :][..., carriers]
        return _t(X) @ np.linalg.solve(Y, X)

    def _carriers(self, link: str) -> list[int]:
        """The coordinates that move a link."""
        inward, found = {name: (above, own) for name, above, _, own, _ in self.chain}, []
        while link != "world":
            link, own = inward[link]
            found += self.model.joint(own).coordinates if own else []
        return sorted(found)


def _velocity(jet: Jet, axes: str) -> np.ndarray:
    R = jet.at[..., :3, :3]
    w, u = spin(jet.y[..., :3, :3] @ _t(R)), jet.y[..., :3, 3]
    return np.concatenate([w, u] if axes == "world" else [_into(R, w), _into(R, u)], axis=-1)


def _momentum(links: Placed) -> np.ndarray:
    """∫ r × r' dm about the world's origin, ∫ r' dm."""
    turning = links.sum(lambda T, J: -2.0 * spin((T.at @ J @ _t(T.y))[..., :3, :3]))
    return np.concatenate([turning, links.sum(lambda T, J: (T.y @ J)[..., :3, 3])], axis=-1)


def _into(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ji,...j->...i", R, x)


def _cross(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _times(twist(x, x)[..., :3, :3], y)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", A, x)


def _solved(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.linalg.solve(A, x[..., None])[..., 0]
