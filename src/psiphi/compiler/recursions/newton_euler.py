"""Newton and Euler at one body: what a motion costs in force, without the bias vectors a and b written out.

Accelerations are inertial derivatives, gravity is the pseudo-acceleration -g of the world. With w, w' the angular velocity
and acceleration of a body and U = w'~ + w~ w~, a point at l accelerates by v' + U l, and the body needs

    F = m v' + U m p        N = dual(U J - (U J)*) + m p x v'        (Balafoutis and Patel; J the second moment)

which is M phi* (H* u + a) + b of the operators. All that a joint carries is one body more, the composite one, joints locked:

    r(k) = M(k) + sum_c phi(k, c) r(c) phi*(k, c)        tip to base (docs/mathematics.md section 6)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psiphi.compiler.recursions.body_step import EYE3, ZERO3
from psiphi.compiler.sweeps.sweep_program import BodyView
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.body_stacks import StackedInertia
from psiphi.model.spatial.screw_paths import pose, rotate, second_moment, unrotate
from psiphi.model.spatial.screws import Inertia, add, cross, rigid
from psiphi.model.spatial.small_matrices import adjoint_map, part, plus, steiner, symmetric


def tensor(w, wd) -> list:
    """U = wd~ + w~ w~."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return of_products(xx, yy, zz, xy, xz, yz, wd)


def of_products(xx, yy, zz, xy, xz, yz, wd) -> list:
    """wd~ + S - tr(S) 1 of the symmetric S = [xx xy xz; xy yy yz; xz yz zz], which w w* is in U, and w dw* + dw w* in dU."""
    return [
        [-(yy + zz), xy - wd[2], xz + wd[1]],
        [xy + wd[2], -(xx + zz), yz - wd[0]],
        [xz - wd[1], yz + wd[0], -(xx + yy)],
    ]


def body_force(link, U, vd) -> list:
    """[N; F] that moves the body with U and v' at its origin."""
    J, p = link.pseudo, link.moment
    # F = m v' + U (m p): the origin's acceleration for all of the mass, and what its turning adds at the centre of mass
    Fc = small_matrices.apply(U, p)
    F = [link.mass * a + b for a, b in zip(vd, Fc, strict=True)]
    # N: the vector of U J - (U J)*, entry by entry; two products with the same J are one
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


def accelerate(site: BodyView, u, name: str) -> list:
    """Base to tip: the force that the body needs under the joint accelerations u; its motion is kept as `name`."""
    _, _, vd, U = move(site, u, name)
    return [
        y
        for at, link in enumerate(site.bodies)
        for y in body_force(link, part(U, at, 3), part(vd, at, 3))
    ]


def move(site: BodyView, u, name: str) -> tuple:
    """Base to tip: w, w', v' and U of the body under the joint accelerations u, kept as `name`; of a cluster, stacked."""
    if site.is_cluster:
        moved = _move_together(site, u, name)
    else:
        # most joint maps are constant in body axes; a universal joint's is not, and dH*/dt v joins its acceleration
        rise = (
            None
            if site.link.row.Hdot is None
            else site.link.row.Hdot(site.of("q"), site.of("v"), site.link)
        )
        moved = _moved(site.path, site.H, rise, site.of("v"), u, *site.parent[name])
    site.keep(**{name: moved})
    return moved


def _move_together(site: BodyView, u, name: str) -> tuple:
    """The bodies of a cluster, base to tip: their joints have the rates X v and the accelerations X u + (dX/dt) v."""
    link, q = site.link, site.of("q")
    X = link.laws.X(q)
    v = small_matrices.apply(X, site.of("v"))
    # d/dt (X v) = X u + (dX/dt) v: what followers do by themselves is the drift
    drift = link.laws.drift(q, v)
    rates, gains = link.laws.of_v(v), link.laws.of_v(add(small_matrices.apply(X, u), drift))
    found: list[tuple] = []
    for k, (body, H, x) in enumerate(zip(link.links, link.maps(q), link.laws.of_q(q), strict=True)):
        # the bodies of a cluster hang on each other, or on the parent (on < 0): base to tip among them, as in the tree
        on = link.cluster.hangs[k]
        rise = None if body.row.Hdot is None else body.row.Hdot(x, rates[k], body)
        above = site.parent[name] if on < 0 else found[on]
        found.append(_moved(site.path[0].paths[k], H, rise, rates[k], gains[k], *above))
    total = [x for own in gains for x in own]
    still = [ZERO3, ZERO3, ZERO3]
    found += [(ZERO3, ZERO3, [total[c], 0.0, 0.0], still) for c in link.rotors]
    return tuple([x for moved in found for x in moved[i]] for i in range(4))


def _moved(
    path: list, H: list, rise: list | None, v: list, u, w_p: list, wd_p: list, vd_p: list, U_p: list
) -> tuple:
    """w = R* w_p + w_d,  w' = R* w_p' + (R* w_p) x w_d + ..,  v' = R* (v_p' + U_p l) + (R* w_p + w) x v_d + .."""
    # what the joint adds to the motion: V_d = H* v, and H* u + dH*/dt v
    Vd, A = adjoint_map(H, v), adjoint_map(H, u)
    if rise is not None:
        A = add(A, adjoint_map(rise, v))
    # the parent's motion in this body's axes, then the joint's: wp x w_d and (wp + w) x v_d are a(k) of S0 (2.31), (2.32)
    wp = unrotate(path, w_p)
    w = add(wp, Vd[:3])
    wd = add(add(unrotate(path, wd_p), cross(wp, Vd[:3])), A[:3])
    # the origin, at l from the parent's, accelerates by v_p' + U_p l; the cross term is Coriolis's of a joint that slides
    l = pose(path, EYE3, ZERO3)[1]
    vd = unrotate(path, add(vd_p, small_matrices.apply(U_p, l)))
    vd = add(add(vd, cross(add(wp, w), Vd[3:])), A[3:])
    return w, wd, vd, tensor(w, wd)


def world_at_rest(gravity) -> tuple:
    """What the world keeps for `accelerate`."""
    # a world that accelerates by -g stands for gravity on every body: it is felt once, at the roots
    return (ZERO3, ZERO3, [-g for g in gravity], [ZERO3, ZERO3, ZERO3])


def compose(site: BodyView) -> None:
    """Tip to base: r(k) = M(k) + sum phi r(c) phi*, as (mass, first moment, second moment) of a rigid body."""
    # this body with all that its children sent; of a cluster, each body with what hangs on it
    bodies = [Rigid(link.mass, link.moment, link.pseudo) for link in site.bodies]
    below = site.children.get("rigid")
    if below is not None:
        bodies = [
            x + y
            for x, y in zip(
                bodies, below if isinstance(below, RigidStack) else [below], strict=True
            )
        ]
    site.keep(
        r=StackedInertia([x.inertia for x in bodies]) if site.is_cluster else bodies[0].inertia
    )
    site.send(rigid=site.handed(_carried, bodies))


def _carried(path: list, body: Rigid) -> Rigid:
    """As the parent sees it: m, m p + m l, and J by Steiner. Moments of mass move cheaper than 6 x 6 inertias."""
    mass = body.mass
    l, p = pose(path, EYE3, ZERO3)[1], rotate(path, body.moment)
    first = [x + mass * y for x, y in zip(p, l, strict=True)]
    return Rigid(mass, first, steiner(second_moment(path, body.J), mass, p, l))


class RigidStack(list):
    """The rigid bodies that the bodies of a cluster carry."""

    def __add__(self, other: RigidStack) -> RigidStack:  # type: ignore[override]
        return RigidStack(x + y for x, y in zip(self, other, strict=True))


@dataclass(frozen=True)
class Rigid:
    """Mass, first and second moment of a rigid body; they add."""

    mass: Any
    moment: list
    J: list

    def __add__(self, other: Rigid) -> Rigid:
        return Rigid(
            self.mass + other.mass, add(self.moment, other.moment), symmetric(plus(self.J, other.J))
        )

    def put(self, at: int, count: int) -> RigidStack:
        """Carried by one body of a cluster."""
        nothing = Rigid(0.0, ZERO3, [ZERO3, ZERO3, ZERO3])
        return RigidStack(self if i == at else nothing for i in range(count))

    @property
    def inertia(self) -> Inertia:
        return rigid(self.mass, self.moment, self.J)
