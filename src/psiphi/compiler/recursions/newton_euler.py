"""Newton-Euler equations of one body: the force for a motion, without the bias vectors a and b.

Accelerations are inertial derivatives; gravity is the pseudo-acceleration -g of the world. With the
angular velocity w and acceleration w' of a body, and U = w'~ + w~ w~, a point at l accelerates by
v' + U l. The force on the body is

    F = m v' + U m p        N = dual(U J - (U J)*) + m p x v'

which is M phi* (H* u + a) + b in operators (Balafoutis and Patel; J is the second moment). The
composite body is all that a joint carries, with joints locked:

    r(k) = M(k) + sum_c phi(k, c) r(c) phi*(k, c)        tip to base (docs/mathematics.md section 6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.axes.cluster_axes import RotorLink
from psiphi.compiler.axes.link import Link
from psiphi.compiler.recursions.body_step import EYE3, ZERO3
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import StackedInertia
from psiphi.model.spatial.screw_paths import pose, rotate, second_moment, unrotate
from psiphi.model.spatial.screws import Inertia, add, cross, rigid_inertia
from psiphi.model.spatial.small_matrices import (
    add_matrices,
    adjoint_map,
    body_part,
    mirror_upper_half,
    shifted_second_moment,
)


def acceleration_tensor(w: list, wd: list) -> list:
    """U = wd~ + w~ w~."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return tensor_of_products(xx, yy, zz, xy, xz, yz, wd)


def tensor_of_products(
    xx: AnyScalar,
    yy: AnyScalar,
    zz: AnyScalar,
    xy: AnyScalar,
    xz: AnyScalar,
    yz: AnyScalar,
    wd: list,
) -> list:
    """wd~ + S - tr(S) 1 for the symmetric S = [xx xy xz; xy yy yz; xz yz zz].

    S is w w* in U, and w dw* + dw w* in dU.
    """
    return [
        [-(yy + zz), xy - wd[2], xz + wd[1]],
        [xy + wd[2], -(xx + zz), yz - wd[0]],
        [xz - wd[1], yz + wd[0], -(xx + yy)],
    ]


def body_force(link: Link | RotorLink, U: list, vd: list) -> list:
    """[N; F], the force that moves the body with U and v' at its origin."""
    J, p = link.pseudo, link.moment
    # F = m v' + U (m p): the acceleration of the origin for the whole mass, plus that of the centre
    # of mass relative to it
    Fc = small_matrices.apply(U, p)
    F = [link.mass * a + b for a, b in zip(vd, Fc, strict=True)]
    # N: the axial vector of U J - (U J)*, entry by entry; products with the same J are merged
    N = [
        U[2][0] * J[0][1]
        + U[2][1] * J[1][1]
        + (U[2][2] - U[1][1]) * J[1][2]
        - U[1][0] * J[0][2]
        - U[1][2] * J[2][2],
        (U[0][0] - U[2][2]) * J[0][2]
        + U[0][1] * J[1][2]
        + U[0][2] * J[2][2]
        - U[2][0] * J[0][0]
        - U[2][1] * J[0][1],
        U[1][0] * J[0][0]
        + (U[1][1] - U[0][0]) * J[0][1]
        + U[1][2] * J[0][2]
        - U[0][1] * J[1][1]
        - U[0][2] * J[1][2],
    ]
    return add(N, cross(p, vd)) + F


def required_force(body: BodyView, u: list, name: str) -> list:
    """Base to tip: the force for the joint accelerations u. The motion is stored as `name`."""
    _, _, vd, U = body_motion(body, u, name)
    return [
        y
        for index, link in enumerate(body.links)
        for y in body_force(link, body_part(U, index, 3), body_part(vd, index, 3))
    ]


def body_motion(body: BodyView, u: list, name: str) -> tuple:
    """Base to tip: w, w', v' and U of the body for the joint accelerations u, stored as `name`.
    Those of a cluster are stacked."""
    if body.is_cluster:
        moved = _cluster_motion(body, u, name)
    else:
        # most joint maps are constant in body axes; that of a universal joint adds dH*/dt v to the
        # acceleration
        Hdot, v = body.link.row.Hdot, body.joint_input("v")
        H_dot = None if Hdot is None else Hdot(body.joint_input("q"), v, body.link)
        moved = _propagate(body.path, body.H, H_dot, v, u, *body.parent[name])
    body.store(**{name: moved})
    return moved


def _cluster_motion(body: BodyView, u: list, name: str) -> tuple:
    """The bodies of a cluster, base to tip. The rates of their joints are X v, their accelerations
    X u + (dX/dt) v."""
    link, q = body.link, body.joint_input("q")
    X = link.kinematics.X(q)
    v = small_matrices.apply(X, body.joint_input("v"))
    # (dX/dt) v is the drift of the dependent joints
    drift = link.kinematics.drift(q, v)
    rates = link.kinematics.split_v(v)
    accelerations = link.kinematics.split_v(add(small_matrices.apply(X, u), drift))
    motions: list[tuple] = []
    for k, (member, H, x) in enumerate(
        zip(link.links, link.maps(q), link.kinematics.split_q(q), strict=True)
    ):
        # the parent of a member is an earlier member, or the parent of the cluster (index < 0)
        parent = link.cluster.parents[k]
        H_dot = None if member.row.Hdot is None else member.row.Hdot(x, rates[k], member)
        above = body.parent[name] if parent < 0 else motions[parent]
        path = body.path[0].paths[k]
        motions.append(_propagate(path, H, H_dot, rates[k], accelerations[k], *above))
    flat = [x for own in accelerations for x in own]
    still = [ZERO3, ZERO3, ZERO3]
    motions += [(ZERO3, ZERO3, [flat[c], 0.0, 0.0], still) for c in link.rotors]
    return tuple([x for motion in motions for x in motion[i]] for i in range(4))


def _propagate(
    path: list,
    H: list,
    H_dot: list | None,
    v: list,
    u: list,
    w_p: list,
    wd_p: list,
    vd_p: list,
    U_p: list,
) -> tuple:
    """The motion of a body from that of its parent.

    w = R* w_p + w_d        w' = R* w_p' + (R* w_p) x w_d + ..
    v' = R* (v_p' + U_p l) + (R* w_p + w) x v_d + ..
    """
    # the joint adds V_d = H* v to the velocity, and H* u + dH*/dt v to the acceleration
    Vd, A = adjoint_map(H, v), adjoint_map(H, u)
    if H_dot is not None:
        A = add(A, adjoint_map(H_dot, v))
    # the parent's motion in this body's axes, then the joint's: wp x w_d and (wp + w) x v_d are
    # a(k) of S0 (2.31), (2.32)
    wp = unrotate(path, w_p)
    w = add(wp, Vd[:3])
    wd = add(add(unrotate(path, wd_p), cross(wp, Vd[:3])), A[:3])
    # the origin, at l from the parent's, accelerates by v_p' + U_p l; the cross term is the
    # Coriolis acceleration of a sliding joint
    l = pose(path, EYE3, ZERO3)[1]
    vd = unrotate(path, add(vd_p, small_matrices.apply(U_p, l)))
    vd = add(add(vd, cross(add(wp, w), Vd[3:])), A[3:])
    return w, wd, vd, acceleration_tensor(w, wd)


def world_at_rest(gravity: Sequence[AnyScalar]) -> tuple:
    """The motion of the world at rest, as `required_force` reads it."""
    # a world that accelerates by -g has the effect of gravity on every body
    return (ZERO3, ZERO3, [-g for g in gravity], [ZERO3, ZERO3, ZERO3])


def composite_body(body: BodyView) -> None:
    """Tip to base: r(k) = M(k) + sum phi r(c) phi*, as mass, first moment and second moment of a
    rigid body."""
    # this body plus its children's composites; in a cluster, each body plus those that hang on it
    bodies = [Rigid(link.mass, link.moment, link.pseudo) for link in body.links]
    below = body.children.get("rigid")
    if below is not None:
        bodies = [
            x + y
            for x, y in zip(
                bodies, below if isinstance(below, RigidStack) else [below], strict=True
            )
        ]
    body.store(
        r=StackedInertia([x.inertia for x in bodies]) if body.is_cluster else bodies[0].inertia
    )
    body.send(rigid=body.to_parent(_seen_by_parent, bodies))


def _seen_by_parent(path: list, body: Rigid) -> Rigid:
    """In the parent's axes: m, m p + m l, and J by Steiner's theorem. Moments of mass move at a
    lower cost than 6 x 6 inertias."""
    mass = body.mass
    l, p = pose(path, EYE3, ZERO3)[1], rotate(path, body.moment)
    first = [x + mass * y for x, y in zip(p, l, strict=True)]
    return Rigid(mass, first, shifted_second_moment(second_moment(path, body.J), mass, p, l))


class RigidStack(list):
    """The composite bodies of the bodies of a cluster."""

    def __add__(self, other: RigidStack) -> RigidStack:  # type: ignore[override]
        return RigidStack(x + y for x, y in zip(self, other, strict=True))


@dataclass(frozen=True)
class Rigid:
    """Mass, first and second moment of a rigid body; they add up."""

    mass: Any
    moment: list
    J: list

    def __add__(self, other: Rigid) -> Rigid:
        return Rigid(
            self.mass + other.mass,
            add(self.moment, other.moment),
            mirror_upper_half(add_matrices(self.J, other.J)),
        )

    def insert_body(self, index: int, count: int) -> RigidStack:
        """The stack of a cluster in which body `index` carries this body."""
        empty = Rigid(0.0, ZERO3, [ZERO3, ZERO3, ZERO3])
        return RigidStack(self if i == index else empty for i in range(count))

    @property
    def inertia(self) -> Inertia:
        return rigid_inertia(self.mass, self.moment, self.J)
